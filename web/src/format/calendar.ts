// The calendar's figures: which days are shown, where a window lies in them, what was drawn with the pointer, and what is sent.
// Pure but for the viewer's zone.
import type { Reservation, ReservedWindow } from '../api/types_work';
import { duration } from './numbers';
import { clock, day } from './times';

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const two = (n: number): string => String(n).padStart(2, '0');

/** Midnight of that day, so many days on; days with a change of clocks are as long as they are. */
export function midnight(at: number, days = 0): number {
  const d = new Date(at * 1000);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime() / 1000;
}

export interface Span {
  from: number;
  to: number;
  days: number[]; // midnights
}

/** The seven days from today on, or one; step: so many of those further. What is over nobody reserves. */
export function spanOf(now: number, isWeek: boolean, step: number): Span {
  const from = midnight(now, isWeek ? 7 * step : step);
  const count = isWeek ? 7 : 1;
  return { from, to: midnight(from, count), days: Array.from({ length: count }, (_, i) => midnight(from, i)) };
}

export const dayName = (at: number): string => `${WEEKDAYS[new Date(at * 1000).getDay()]} ${day(at)}`;

export interface Block {
  window: ReservedWindow;
  of: Reservation;
  left: number; // parts of the span
  width: number;
}

/** The windows of one GPU. */
export function blocksOf(gpu: string, reservations: Reservation[], windows: ReservedWindow[], span: Span): Block[] {
  const of = new Map(reservations.filter((r) => r.gpu_uuids.includes(gpu)).map((r) => [r.id, r]));
  const length = span.to - span.from;
  return windows.flatMap((window) => {
    const r = of.get(window.id);
    const from = Math.max(window.from, span.from);
    const to = Math.min(window.to, span.to);
    return r && to > from ? [{ window, of: r, left: (from - span.from) / length, width: (to - from) / length }] : [];
  });
}

export const holder = (r: Reservation): string => (r.group ? `group ${r.group}` : (r.user ?? ''));

export function spanWords(from: number, to: number): string {
  return midnight(from) === midnight(to - 1) ? `${dayName(from)}, ${clock(from, false)} to ${clock(to, false)}` : `${dayName(from)} ${clock(from, false)} to ${dayName(to)} ${clock(to, false)}`;
}

export function blockSentence(b: Block, gpu: string): string {
  const note = b.of.note ? `: ${b.of.note}` : '';
  return `${gpu} is reserved for ${holder(b.of)}, ${spanWords(b.window.from, b.window.to)}${b.of.every ? ', and again' : ''}${note}`;
}

/** Where the calendar shows that moment: one day, so many steps from today. */
export function calendarQuery(at: number, now: number): Record<string, string> {
  const step = Math.round((midnight(at) - midnight(now)) / 86400);
  return { span: 'day', ...(step ? { step: String(step) } : {}) };
}

export interface Kept {
  gpu: string;
  from: number;
  to: number;
  of: Reservation;
}

/** What is kept for somebody, a GPU at a time. One that stands unused is everybody's until its user comes. */
export function keptOf(reservations: Reservation[], windows: ReservedWindow[]): Kept[] {
  const of = new Map(reservations.map((r) => [r.id, r]));
  return windows.flatMap((w) => (of.get(w.id)?.gpu_uuids ?? []).map((gpu) => ({ gpu, from: w.from, to: w.to, of: of.get(w.id) as Reservation })));
}

export function keptSentence(k: Kept, gpu: string): string {
  return `${gpu} is reserved for ${holder(k.of)}, ${spanWords(k.from, k.to)}${k.of.note ? `: ${k.of.note}` : ''}${k.of.state === 'unused' ? '; it stands unused, and others may have it until its user comes' : ''}`;
}

/** What was drawn from one place to another, in whole steps that lie within the span; a click is one step. */
export function drawn(span: Span, a: number, b: number, stepS: number): { from: number; to: number } {
  const at = (share: number): number => span.from + Math.min(1, Math.max(0, share)) * (span.to - span.from);
  const first = span.from + Math.floor((Math.min(at(a), at(b)) - span.from) / stepS) * stepS;
  const last = span.from + Math.ceil((Math.max(at(a), at(b)) - span.from) / stepS) * stepS;
  const from = Math.min(first, span.to - stepS);
  return { from, to: Math.min(span.to, Math.max(last, from + stepS)) };
}

/** For an input of type datetime-local, and back. */
export function localText(at: number): string {
  const d = new Date(at * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
}
export const localTime = (text: string): number => new Date(text).getTime() / 1000;

export type Often = 'once' | 'daily' | 'weekdays' | 'weekly' | 'other'; // other: an expression that the form has no words for

/** As often as that, at the time of the day at which it begins. */
export function cronOf(often: Often, from: number): string | undefined {
  const d = new Date(from * 1000);
  const at = `${d.getMinutes()} ${d.getHours()}`;
  return { once: undefined, other: undefined, daily: `${at} * * *`, weekdays: `${at} * * 1-5`, weekly: `${at} * * ${d.getDay()}` }[often];
}

export interface Booking {
  from: string; // as datetime-local writes it
  to: string;
  gpus: string[];
  node: string;
  who: string;
  isGroup: boolean;
  often: Often;
  until: string; // a date, or nothing
  note: string;
}

/** One that is there, in the form: the words for how often are those that mean the same by the clocks of this browser. */
export function bookingOf(r: Reservation, zone: string): Booking {
  const same = (['daily', 'weekdays', 'weekly'] as const).find((o) => r.every === cronOf(o, r.begins) && r.zone === zone);
  return {
    from: localText(r.begins), to: localText(r.begins + r.for_s), gpus: r.gpu_uuids, node: r.node, who: r.group ?? r.user ?? '', isGroup: r.group !== null,
    often: r.every ? (same ?? 'other') : 'once', until: r.until ? localText(r.until - 1).slice(0, 10) : '', note: r.note ?? '',
  };
}

/** What was changed in the form, and nothing else. A form knows minutes: what was not touched stays as it was to the second. */
export function bookingChange(b: Booking, r: Reservation, zone: string): Record<string, unknown> {
  const was = bookingOf(r, zone);
  const from = b.from === was.from ? r.begins : localTime(b.from);
  const isLong = b.from !== was.from || b.to !== was.to;
  const forS = b.to === was.to && b.from === was.from ? r.for_s : localTime(b.to) - from;
  const every = b.often === 'other' ? r.every : (cronOf(b.often, from) ?? null);
  const isSame = b.gpus.length === was.gpus.length && b.gpus.every((u) => was.gpus.includes(u));
  return {
    ...(from !== r.begins ? { from } : {}), ...(isLong && forS !== r.for_s ? { for_s: forS } : {}),
    ...(b.node !== was.node ? { node: b.node } : {}), ...(isSame && b.node === was.node ? {} : { gpu_ids: b.gpus }),
    ...(b.who !== was.who || b.isGroup !== was.isGroup ? { [b.isGroup ? 'group' : 'user']: b.who } : {}),
    ...(every === r.every ? {} : every === null ? { every: '' } : { every, zone }),
    ...(every !== null && b.until !== was.until ? { until: b.until ? midnight(localTime(`${b.until}T00:00`), 1) : 0 } : {}),
    ...(b.note !== was.note ? { note: b.note } : {}),
  };
}

/** A value of a change in words; undefined: as it stands. */
export function changeWords(key: string, v: unknown): string | undefined {
  if (typeof v === 'number') return key === 'for_s' ? duration(v) : `${dayName(v)} ${clock(v, false)}`;
  if (key === 'every' && typeof v === 'string') return everyWords({ every: v, zone: null });
  return Array.isArray(v) ? v.map((i) => `GPU ${i}`).join(', ') : undefined;
}

/** What is wrong with it as far as the page can tell. */
export function wrongWith(b: Booking): string {
  const from = localTime(b.from);
  const to = localTime(b.to);
  if (!b.gpus.length) return 'Choose at least one GPU.';
  if (!Number.isFinite(from) || !Number.isFinite(to)) return 'Say when it begins and ends.';
  if (to <= from) return 'It ends before it begins.';
  return '';
}

export function bodyOf(b: Booking, zone: string): Record<string, unknown> {
  const from = localTime(b.from);
  const every = cronOf(b.often, from);
  return {
    from, for_s: localTime(b.to) - from, gpu_ids: b.gpus, node: b.node,
    ...(b.who ? { [b.isGroup ? 'group' : 'user']: b.who } : {}),
    ...(every ? { every, zone } : {}),
    ...(every && b.until ? { until: midnight(localTime(`${b.until}T00:00`), 1) } : {}),
    ...(b.note ? { note: b.note } : {}),
  };
}

/** "every weekday at 09:00", or the expression itself. */
export function everyWords(r: Pick<Reservation, 'every' | 'zone'>): string {
  if (!r.every) return '';
  const m = /^(\d+) (\d+) \* \* (\*|1-5|[0-6])$/.exec(r.every);
  if (!m) return r.every;
  const at = `at ${two(Number(m[2]))}:${two(Number(m[1]))}`;
  const often = m[3] === '*' ? 'every day' : m[3] === '1-5' ? 'every weekday' : `every ${WEEKDAYS[Number(m[3])]}`;
  return `${often} ${at}${r.zone ? ` (${r.zone})` : ''}`;
}

export const lengthWords = (r: Reservation): string => duration(r.for_s);
