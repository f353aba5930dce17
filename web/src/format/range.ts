// A span of time to look at: the last so many seconds, which moves with the clock, or two fixed ends. Lives in the page's
// address, so that a link shows what its sender saw and the back button undoes a zoom. Pure.
import { clock, moment } from './times';

export type Range = { kind: 'last'; seconds: number } | { kind: 'fixed'; from: number; to: number };

export const SPAN_MIN = 20;
export const SPAN_MAX = 366 * 86400;

export const PRESETS: { key: string; seconds: number; words: string }[] = [
  { key: '5m', seconds: 300, words: '5 minutes' },
  { key: '1h', seconds: 3600, words: 'hour' },
  { key: '6h', seconds: 6 * 3600, words: '6 hours' },
  { key: '24h', seconds: 86400, words: '24 hours' },
  { key: '7d', seconds: 7 * 86400, words: '7 days' },
  { key: '30d', seconds: 30 * 86400, words: '30 days' },
  { key: '1y', seconds: 365 * 86400, words: 'year' },
];

export const DEFAULT: Range = { kind: 'last', seconds: 300 };

export function parseRange(query: URLSearchParams, fallback: Range = DEFAULT): Range {
  const from = Number(query.get('from'));
  const to = Number(query.get('to'));
  if (query.has('from') && query.has('to') && from > 0 && to - from >= 1 && to - from <= SPAN_MAX * 1.01) return { kind: 'fixed', from, to };
  const preset = PRESETS.find((p) => p.key === query.get('range'));
  return preset ? { kind: 'last', seconds: preset.seconds } : fallback;
}

export function putRange(query: URLSearchParams, range: Range): void {
  for (const key of ['range', 'from', 'to']) query.delete(key);
  if (range.kind === 'fixed') {
    query.set('from', String(Math.round(range.from * 10) / 10));
    query.set('to', String(Math.round(range.to * 10) / 10));
  } else {
    const preset = PRESETS.find((p) => p.seconds === range.seconds);
    if (preset && preset.seconds !== 300) query.set('range', preset.key);
  }
}

export function ends(range: Range, now: number): [number, number] {
  return range.kind === 'last' ? [now - range.seconds, now] : [range.from, range.to];
}

export const spanOf = (range: Range): number => (range.kind === 'last' ? range.seconds : range.to - range.from);

/** Kept within what exists: no future, no less than seconds, no more than a year. */
export function fixedRange(from: number, to: number, now: number): Range {
  const span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, to - from));
  const middle = (from + to) / 2;
  let end = middle + span / 2;
  if (end > now) end = now;
  return { kind: 'fixed', from: end - span, to: end };
}

/** Factor below 1 looks closer, above 1 wider; `at` stays where it is. */
export function zoom(range: Range, factor: number, now: number, at?: number): Range {
  const [from, to] = ends(range, now);
  const span = to - from;
  const next = Math.min(SPAN_MAX, Math.max(SPAN_MIN, span * factor));
  const middle = at ?? (range.kind === 'last' ? to : (from + to) / 2);
  const left = middle - ((middle - from) / span) * next;
  return fixedRange(left, left + next, now);
}

/** By a share of the span; negative goes back. */
export function pan(range: Range, by: number, now: number): Range {
  const [from, to] = ends(range, now);
  const shift = (to - from) * by;
  return fixedRange(from + shift, to + shift, now);
}

export function rangeWords(range: Range, now: number): string {
  if (range.kind === 'last') {
    const preset = PRESETS.find((p) => p.seconds === range.seconds);
    return `the last ${preset ? preset.words : `${range.seconds} s`}`;
  }
  const sameDay = new Date(range.from * 1000).toDateString() === new Date(range.to * 1000).toDateString();
  return `${moment(range.from, now)} to ${sameDay ? clock(range.to) : moment(range.to, now)}`;
}
