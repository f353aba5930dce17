// Tasks against their deadlines: what to say of one, where its bar lies, which lane it gets. Pure.
import type { Task } from '../api/types';
import { duration, show } from './numbers';

export type Verdict = 'running' | 'overdue' | 'hit' | 'miss' | 'ended';

/** A running task whose deadline has passed is overdue, whether or not the server has said so yet. */
export function verdict(t: Task, now: number): Verdict {
  if (t.state === 'ended') return t.hit === null ? 'ended' : t.hit ? 'hit' : 'miss';
  return t.state === 'overdue' || (t.deadline_s !== null && now > t.start + t.deadline_s) ? 'overdue' : 'running';
}

/** A sign for each: colour alone tells nothing to some. */
export const SIGNS: Record<Verdict, string> = { running: '▶', overdue: '!', hit: '✓', miss: '✕', ended: '■' };
export const WORDS: Record<Verdict, string> = { running: 'running', overdue: 'overdue', hit: 'hit', miss: 'missed', ended: 'ended' };

export function taskName(t: Task): string {
  if (t.container) return t.container;
  const words = (t.command ?? '').trim().split(/\s+/);
  const first = (words[0] ?? '').split('/').pop() ?? '';
  const script = /^(python[\d.]*|bash|sh|node|java)$/.test(first) ? words.slice(1).find((w) => !w.startsWith('-')) : undefined;
  return (script ?? first).split('/').pop() || `pid ${t.pid}`;
}

/** "12.3 s", "3 min": with its sign. */
export function span(s: number | null | undefined): string {
  if (s === null || s === undefined || !Number.isFinite(s)) return show('seconds', undefined);
  return s < 0 ? `−${show('seconds', -s)}` : show('seconds', s);
}

export function took(t: Task, now: number): number {
  return Math.max(0, (t.end ?? now) - t.start);
}

/** What is left to its deadline, or was; undefined without one. */
export function floatOf(t: Task, now: number): number | undefined {
  if (t.deadline_s === null) return undefined;
  return t.state === 'ended' ? (t.float_s ?? undefined) : t.start + t.deadline_s - now;
}

export function taskSentence(t: Task, now: number, gpu: string): string {
  const v = verdict(t, now);
  const left = floatOf(t, now);
  const who = [taskName(t), t.user ? `of ${t.user}` : '', gpu ? `on ${gpu}` : ''].filter(Boolean).join(' ');
  const ran = v === 'running' || v === 'overdue' ? `has run for ${duration(took(t, now))}` : `took ${span(took(t, now))}`;
  if (t.deadline_s === null || left === undefined) return `${who}: ${ran}, no deadline${v === 'ended' && t.deadline_s !== null ? ' known to be kept' : ''}`;
  const of = `of ${span(t.deadline_s)}`;
  if (v === 'overdue') return `${who}: ${ran} ${of}, overdue by ${span(-left)}`;
  if (v === 'miss') return `${who}: ${ran} ${of}, missed by ${span(-left)}`;
  if (v === 'hit') return `${who}: ${ran} ${of}, ${span(left)} to spare`;
  return `${who}: ${ran} ${of}, ${span(left)} left`;
}

export interface Bar {
  task: Task;
  lane: number;
  left: number; // shares of the window, cut at its edges
  width: number;
  due: number | undefined; // where its deadline lies
  late: number | undefined; // where the part beyond its deadline begins, within the bar
}

/** Bars of tasks in [from, to], each in the first lane where it overlaps no other; the bar of a running one ends now. */
export function layBars(tasks: Task[], from: number, to: number, now: number): { bars: Bar[]; lanes: number } {
  const at = (t: number): number => (t - from) / (to - from);
  const ends: number[] = [];
  const least = (to - from) / 400; // a short task is still a bar
  const bars: Bar[] = [];
  for (const task of [...tasks].sort((a, b) => a.start - b.start)) {
    const end = Math.max(task.end ?? now, task.start + least);
    if (end < from || task.start > to) continue;
    let lane = ends.findIndex((e) => e <= task.start);
    if (lane < 0) lane = ends.push(0) - 1;
    const due = task.deadline_s === null ? undefined : task.start + task.deadline_s;
    ends[lane] = Math.max(end, Math.min(due ?? end, to)) + least;
    const left = Math.max(0, at(task.start));
    const right = Math.min(1, at(end));
    bars.push({
      task, lane, left, width: Math.max(0, right - left),
      due: due === undefined || at(due) < 0 || at(due) > 1 ? undefined : at(due),
      late: due !== undefined && due < end ? Math.max(0, (Math.max(due, from) - Math.max(task.start, from)) / (Math.min(end, to) - Math.max(task.start, from))) : undefined,
    });
  }
  return { bars, lanes: Math.max(1, ends.length) };
}
