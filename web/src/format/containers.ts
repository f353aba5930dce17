// Containers: what to call their GPUs and states, which fit a filter, and what a form asks for. Pure.
import type { ContainerRow, ContainerSpec } from '../api/types_work';
import { ranges } from './jobs';
import { plural } from './numbers';

export type Verb = 'start' | 'stop' | 'restart' | 'remove' | 'edit' | 'log' | 'shell';

export const isUp = (c: ContainerRow): boolean => c.state === 'running' || c.state === 'paused' || c.state === 'restarting';

export const may = (c: ContainerRow, verb: Verb): boolean => c.may.includes(verb);

/** "GPU 0", "GPUs 0-3", "all GPUs", "none". */
export function gpusWords(c: ContainerRow): string {
  if (c.all_gpus) return 'all GPUs';
  if (!c.gpus.length) return c.tasks ? 'some' : 'none';
  const known = c.gpus.map((g) => g.index);
  if (known.some((n) => n === null)) return plural(c.gpus.length, 'GPU');
  return `GPU${known.length > 1 ? 's' : ''} ${ranges(known as number[])}`;
}

/** "running", "exited with 3", "could not start". */
export function stateWords(c: ContainerRow): string {
  if (isUp(c) || c.state === null) return c.state ?? 'unknown';
  if (c.error) return 'could not start';
  return c.exit_code ? `${c.state} with ${c.exit_code}` : c.state;
}

export type StateMood = 'running' | 'bad' | 'cancelled';
export const stateMood = (c: ContainerRow): StateMood => (isUp(c) ? 'running' : c.error || (c.exit_code && c.exit_code !== 143 && c.exit_code !== 137) ? 'bad' : 'cancelled');

export interface Filter {
  text: string;
  which: string; // all, up, mine
}

export function fits(c: ContainerRow, f: Filter): boolean {
  if (f.which === 'up' && !isUp(c)) return false;
  if (f.which === 'mine' && !may(c, 'edit')) return false;
  const words = f.text.toLowerCase().split(/\s+/).filter(Boolean);
  const in_ = [c.name, c.image, c.user ?? '', c.account ?? '', c.node, c.state ?? '', gpusWords(c)].join(' ').toLowerCase();
  return words.every((w) => in_.includes(w));
}

/* ---- the form ---- */

export interface Wish {
  node: string;
  image: string;
  name: string;
  command: string;
  which: 'none' | 'any' | 'these';
  gpus: string;
  chosen: string[];
  shared: boolean;
  mounts: string;
  env: string;
  labels: string;
  deadline: string;
  period: string;
  ui: string;
  restart: string;
  cwd: string;
}

export const NO_WISH: Wish = {
  node: '', image: '', name: '', command: '', which: 'none', gpus: '1', chosen: [], shared: false, mounts: '', env: '', labels: '', deadline: '', period: '', ui: '', restart: 'no', cwd: '',
};

const lines = (text: string): string[] => text.split('\n').map((l) => l.trim()).filter(Boolean);

/** A command line as words, as a shell splits it: quotes keep blanks together. Anything else a shell would do is left to one. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let has = false;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (quote) {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && i + 1 < text.length) word += text[++i];
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      has = true;
    } else if (c === '\\' && i + 1 < text.length) {
      word += text[++i];
      has = true;
    } else if (/\s/.test(c)) {
      if (has || word) words.push(word);
      word = '';
      has = false;
    } else word += c;
  }
  if (has || word) words.push(word);
  return words;
}

export const quoteWord = (w: string): string => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replace(/'/g, `'\\''`)}'`);

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(lines(text).map((l) => {
    const at = l.indexOf('=');
    return at < 0 ? [l, ''] : [l.slice(0, at).trim(), l.slice(at + 1)];
  }));
}

/** What the server is sent. */
export function specOf(w: Wish): ContainerSpec {
  return {
    image: w.image.trim(), name: w.name.trim(), command: splitWords(w.command), env: pairs(w.env), mounts: lines(w.mounts), labels: pairs(w.labels),
    gpus: w.which === 'none' ? 0 : w.which === 'these' ? w.chosen.length : w.gpus.trim() === 'all' ? -1 : Number(w.gpus) || 0,
    gpu_ids: w.which === 'these' ? w.chosen : [], ...(w.shared ? { shared: true } : {}),
    cwd: w.cwd.trim(), deadline: w.deadline.trim(), period: w.period.trim(), ui: w.ui.trim(), restart: w.restart,
  };
}

export function wishOf(s: ContainerSpec, node: string): Wish {
  const text = (o: Record<string, string>): string => Object.entries(o).map(([k, v]) => `${k}=${v}`).join('\n');
  return {
    node, image: s.image, name: s.name, command: s.command.map(quoteWord).join(' '), which: s.gpu_ids.length ? 'these' : s.gpus ? 'any' : 'none',
    gpus: s.gpus < 0 ? 'all' : String(s.gpus || 1), chosen: s.gpu_ids, shared: false, mounts: s.mounts.join('\n'), env: text(s.env), labels: text(s.labels),
    deadline: s.deadline, period: s.period, ui: s.ui, restart: s.restart || 'no', cwd: s.cwd,
  };
}

/** Only what differs from the container as it is: what is not sent stays. */
export function changeOf(w: Wish, was: ContainerSpec): Partial<ContainerSpec> {
  const now = specOf(w) as unknown as Record<string, unknown>;
  const before = { ...was, restart: was.restart || 'no' } as unknown as Record<string, unknown>;
  const keys = Object.keys(now).filter((k) => k !== 'gpus' && k !== 'gpu_ids' && JSON.stringify(now[k]) !== JSON.stringify(before[k]));
  const out: Record<string, unknown> = Object.fromEntries(keys.map((k) => [k, now[k]]));
  if (now['gpus'] !== before['gpus'] || JSON.stringify(now['gpu_ids']) !== JSON.stringify(before['gpu_ids'])) [out['gpus'], out['gpu_ids']] = [now['gpus'], now['gpu_ids']];
  if (w.shared) out['shared'] = true;
  return out as Partial<ContainerSpec>;
}

/** The field that a sentence of the server's is about. */
export function fieldOf(said: string): keyof Wish | undefined {
  const key = /^([a-z_]+)(?:\[\d+\]|\.[^:]*)?: /.exec(said)?.[1];
  if (key === 'gpu_ids') return 'gpus';
  return key && key in NO_WISH ? (key as keyof Wish) : undefined;
}
