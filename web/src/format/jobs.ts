// Jobs in the queue: what to call one, what it wants, when it starts, where its bar lies, and what a form asks for. Pure.
import type { History, Job, JobCurves, Queue, Session } from '../api/types';
import { bytes, duration, plural } from './numbers';
import { Column, find } from './series';

export type Mood = 'waiting' | 'running' | 'done' | 'bad' | 'cancelled';

export function mood(j: Pick<Job, 'state'>): Mood {
  switch (j.state) {
    case 'waiting':
    case 'held': return 'waiting';
    case 'starting':
    case 'running':
    case 'ending': return 'running';
    case 'done': return 'done';
    case 'cancelled': return 'cancelled';
    default: return 'bad';
  }
}

/** A sign for each: colour alone tells nothing to some. */
export const JOB_SIGNS: Record<Mood, string> = { waiting: '…', running: '▶', done: '✓', bad: '✕', cancelled: '⊘' };

export const isOver = (j: Job): boolean => ['done', 'bad', 'cancelled'].includes(mood(j));

export const jobKey = (j: { id: number; element: number | null }): string => (j.element === null ? String(j.id) : `${j.id}.${j.element}`);

/** One's own, or anybody's for an administrator. The server has the last word. */
export function mayControl(j: Pick<Job, 'account' | 'user'>, who: Session['user'] | undefined): boolean {
  return !!who && (who.role === 'admin' || j.account === who.name || (j.account === null && j.user === who.name));
}

/** "of repeat nightly": what made it; nothing for one that somebody handed in. */
export const parentWords = (j: Job): string => (j.parent ? `of ${j.parent.kind} ${j.name}` : '');

/** "job 17", "job 17[3]", "job 17[1-100%8]". */
export function jobNumber(j: Job): string {
  return `${j.origin === 'watchmen' ? 'watchmen client' : 'job'} ${j.id}${j.element !== null ? `[${j.element}]` : j.array ? `[${j.array}]` : ''}`;
}

/** Numbers in a row as ranges: "0-3, 7". */
export function ranges(numbers: number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let k = i;
    while (k + 1 < sorted.length && sorted[k + 1] === (sorted[k] as number) + 1) k++;
    parts.push(k - i > 1 ? `${sorted[i]}-${sorted[k]}` : sorted.slice(i, k + 1).join(', '));
    i = k + 1;
  }
  return parts.join(', ');
}

/** What it asks for: "2 of any", "GPU 3", "2 of GPUs 0-3", "10 GiB of one". index: a card's number by its UUID. */
export function wants(j: Job, index: (uuid: string) => number | undefined): string {
  const memory = j.memory_bytes ? ` with ${bytes(j.memory_bytes)}` : '';
  if (j.share_bytes) return `${bytes(j.share_bytes)} of one`;
  if (!j.scope.length) return `${j.gpus} of any${memory}`;
  const known = j.scope.map((s) => (/^\d+$/.test(s) ? Number(s) : /^\d+:\d+$/.test(s) ? s : index(s))); // 0:1 is an instance
  const numbers = known.filter((n) => typeof n === 'number');
  const names = numbers.length === known.length ? ranges(numbers) : known.every((n) => n !== undefined) ? known.join(', ') : plural(j.scope.length, 'GPU');
  if (!known.every((n) => n !== undefined)) return j.scope.length === j.gpus ? names : `${j.gpus} of ${names}${memory}`;
  return j.scope.length === j.gpus ? `GPU${j.gpus > 1 ? 's' : ''} ${names}` : `${j.gpus} of GPUs ${names}${memory}`;
}

/** "now", "6 min", "not known". */
export function startsIn(j: Pick<Job, 'starts_at'>, now: number): string {
  if (j.starts_at === null) return 'not known';
  const s = j.starts_at - now;
  return s < 1 ? 'any moment' : duration(s);
}

export function ranFor(j: Job, now: number): number | null {
  return j.started === null ? null : Math.max(0, (j.ended ?? now) - j.started);
}

/** How it ended, in words. */
export function endWords(j: Job): string {
  if (!isOver(j)) return '';
  if (j.text ?? j.state_text) return (j.text ?? j.state_text) as string;
  if (j.reason) return j.reason; // who ended it says more than the signal that he sent
  if (j.state === 'exit unknown') return 'ended, nobody knows how';
  if (j.signal) return `signal ${j.signal}`;
  return j.exit_code === null ? j.state : `exit ${j.exit_code}`;
}

/* ---- its charts ---- */

export interface JobLine {
  label: string;
  colour: string;
  isFaint: boolean; // all of its machine, behind its own
  time: number[];
  value: Column;
}

/** What a run used of its machine, and fainter what the machine did altogether, where both have one scale. */
export function jobLines(own: JobCurves | undefined, host: History | undefined): { cpu: JobLine[]; memory: JobLine[]; disk: JobLine[] } {
  const mine = (label: string, colour: string, value: Column | undefined): JobLine => ({ label, colour, isFaint: false, time: own?.time ?? [], value: value ?? [] });
  const cpus = find(host, 'host_cpus')?.mean.find((v) => typeof v === 'number');
  const machine = (label: string, colour: string, metric: string, by = 1): JobLine => {
    const s = find(host, metric);
    return { label, colour, isFaint: true, time: s?.time ?? [], value: s?.mean.map((v) => (typeof v === 'number' ? v * by : v)) ?? [] };
  };
  return {
    cpu: [...(typeof cpus === 'number' ? [machine('the machine', 'bar', 'host_cpu_utilization_ratio', cpus)] : []), mine('the job', 'series1', own?.cpu_cores)],
    memory: [mine('the job', 'series1', own?.memory_bytes)],
    disk: [
      machine('the machine read', 'bar', 'host_disk_read_bytes_per_second'), machine('the machine wrote', 'bar-weak', 'host_disk_written_bytes_per_second'),
      mine('the job read', 'series1', own?.disk_read_bytes_per_second), mine('the job wrote', 'series2', own?.disk_written_bytes_per_second),
    ],
  };
}

export type SlotKind = 'running' | 'planned' | 'foreign' | 'out';

/** A span of time in which one GPU is somebody's. */
export interface Slot {
  gpu: string;
  from: number;
  to: number | null; // null: nobody knows
  kind: SlotKind;
  job: number | null;
  name: string;
  user: string | null;
}

const NOT_TAKEN = ['free', 'foreign'];

/** The plan with names, and the GPUs that are nobody's to give. */
export function slotsOf(q: Queue): Slot[] {
  const jobs = new Map([...q.waiting, ...q.running].map((j) => [j.id, j]));
  const planned = q.plan.map((b): Slot => {
    const j = jobs.get(b.job);
    return { gpu: b.gpu, from: b.from, to: b.to, kind: b.kind === 'run' ? 'running' : 'planned', job: b.job, name: j?.name ?? `job ${b.job}`, user: j?.user ?? null };
  });
  const others = q.gpus.flatMap((g): Slot[] => {
    if (g.verdict === 'foreign' && !g.held_by.length) return [{ gpu: g.uuid, from: g.since ?? q.time, to: null, kind: 'foreign', job: null, name: g.pid ? `pid ${g.pid}` : 'a process', user: g.user }];
    return NOT_TAKEN.includes(g.verdict) || g.held_by.length ? [] : [{ gpu: g.uuid, from: g.since ?? q.time, to: null, kind: 'out', job: null, name: g.cordon || g.verdict_text, user: null }];
  });
  return [...others, ...planned];
}

export interface Bar {
  slot: Slot;
  left: number;
  width: number;
  isOpen: boolean; // its end is not known, or beyond
}

/** Bars of one GPU in [from, to]; one whose end nobody knows reaches to the edge. */
export function layPlan(slots: Slot[], from: number, to: number): Bar[] {
  const at = (t: number): number => Math.min(1, Math.max(0, (t - from) / (to - from)));
  return slots
    .filter((s) => s.from < to && (s.to === null || s.to > from))
    .sort((a, b) => a.from - b.from)
    .map((slot) => ({ slot, left: at(slot.from), width: Math.max(0.004, at(slot.to ?? to) - at(slot.from)), isOpen: slot.to === null || slot.to > to }));
}

export function planSentence(s: Slot, gpu: string, now: number): string {
  const who = s.user ? `${s.name} of ${s.user}` : s.name;
  const until = s.to === null ? 'its end is not known' : s.kind === 'planned' ? `for about ${duration(s.to - s.from)}` : `for about ${duration(Math.max(0, s.to - now))} more`;
  if (s.kind === 'planned') return `${gpu}: ${who} is planned in ${duration(Math.max(0, s.from - now))}, ${until}`;
  if (s.kind === 'foreign') return `${gpu}: ${who} has it, outside the queue`;
  if (s.kind === 'out') return `${gpu}: ${who}`;
  return `${gpu}: ${who} runs, ${until}`;
}

/* ---- the form ---- */

export interface Wish {
  command: string;
  name: string;
  image: string;
  which: 'any' | 'these';
  gpus: string;
  chosen: string[]; // UUIDs
  all: boolean; // all of the chosen, or as many as `gpus` says
  memory: string;
  share: string;
  timeLimit: string;
  deadline: string;
  priority: string;
  retries: string;
  after: string;
  array: string;
  env: string;
  labels: string;
  notify: string;
  cwd: string;
  mounts: string;
  ui: string;
}

export const NO_WISH: Wish = {
  command: '', name: '', image: '', which: 'any', gpus: '1', chosen: [], all: true, memory: '', share: '', timeLimit: '', deadline: '',
  priority: '', retries: '', after: '', array: '', env: '', labels: '', notify: '', cwd: '', mounts: '', ui: '',
};

const lines = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean);

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(lines(text).map((l) => { const i = l.indexOf('='); return i < 0 ? [l, ''] : [l.slice(0, i), l.slice(i + 1)]; }));
}

/** As the API takes it: what was left empty is left out, and a number that is none is passed on for the server to name. */
export function specOf(w: Wish): Record<string, unknown> {
  const number = (text: string): number | string => (/^-?\d+$/.test(text.trim()) ? Number(text) : text.trim());
  const spec: Record<string, unknown> = {};
  if (w.command.trim()) spec['command'] = w.command.trim();
  const texts: [string, string][] = [['name', w.name], ['image', w.image], ['memory', w.memory], ['share', w.share], ['time_limit', w.timeLimit], ['deadline', w.deadline], ['array', w.array], ['cwd', w.cwd], ['ui', w.ui]];
  for (const [key, text] of texts) if (text.trim()) spec[key] = text.trim();
  if (w.which === 'these') {
    if (w.all) spec['gpu_ids'] = w.chosen;
    else Object.assign(spec, { scope: w.chosen, gpus: number(w.gpus) });
  } else if (!w.share.trim()) {
    spec['gpus'] = number(w.gpus);
  }
  if (w.priority.trim()) spec['priority'] = number(w.priority);
  if (w.retries.trim()) spec['retries'] = number(w.retries);
  if (w.after.trim()) spec['after'] = w.after.split(/[\s,]+/).filter(Boolean);
  if (lines(w.env).length) spec['env'] = pairs(w.env);
  if (lines(w.labels).length) spec['labels'] = pairs(w.labels);
  if (lines(w.notify).length) spec['notify'] = lines(w.notify);
  if (lines(w.mounts).length) spec['mounts'] = lines(w.mounts);
  return spec;
}

const FIELDS: [RegExp, keyof Wish][] = [
  [/^command\b/, 'command'], [/^name\b/, 'name'], [/^image\b/, 'image'], [/^(gpus|gpu_ids|scope)\b/, 'gpus'], [/^memory\b/, 'memory'], [/^share\b/, 'share'],
  [/^time_limit\b/, 'timeLimit'], [/^(deadline|finish_by)\b/, 'deadline'], [/^priority\b/, 'priority'], [/^retries\b/, 'retries'], [/^after\b/, 'after'],
  [/^array\b/, 'array'], [/^env\b/, 'env'], [/^labels\b/, 'labels'], [/^notify\b/, 'notify'], [/^cwd\b/, 'cwd'], [/^mounts\b/, 'mounts'], [/^ui\b/, 'ui'],
];

/** Which field a sentence of the server is about: it begins with the key. */
export function fieldOf(sentence: string): keyof Wish | undefined {
  return FIELDS.find(([r]) => r.test(sentence.replace(/^["'`]/, '')))?.[1];
}

/** A command as one would type it into a shell. */
export function commandText(words: string[]): string {
  const isShell = words.length === 3 && words[1] === '-c' && /\bsh$/.test(words[0] ?? '');
  const quoted = (w: string): string => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replace(/'/g, `'\\''`)}'`);
  return isShell ? (words[2] ?? '') : words.map(quoted).join(' ');
}
