// Points in time as people read them, in the viewer's zone with a 24-hour clock. Pure but for the zone.
import type { Stamp } from '../api/types';
import { ABSENT, duration } from './numbers';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (n: number): string => String(n).padStart(2, '0');

/** Unix seconds of whatever the API gave; NaN where it gave nothing. */
export function unix(at: Stamp | null | undefined): number {
  if (typeof at === 'number') return at;
  return at ? Date.parse(at) / 1000 : NaN;
}

export function clock(at: Stamp | null | undefined, withSeconds = true): string {
  const s = unix(at);
  if (!Number.isFinite(s)) return ABSENT;
  const d = new Date(s * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}${withSeconds ? `:${two(d.getSeconds())}` : ''}`;
}

export function day(at: Stamp): string {
  const d = new Date(unix(at) * 1000);
  return `${d.getDate()} ${MONTHS[d.getMonth()]}`;
}

/** Today only the clock; otherwise the day too; another year, that as well. */
export function moment(at: Stamp | null | undefined, now: number = Date.now() / 1000): string {
  const s = unix(at);
  if (!Number.isFinite(s)) return ABSENT;
  const d = new Date(s * 1000);
  const n = new Date(now * 1000);
  if (d.toDateString() === n.toDateString()) return clock(s);
  return `${day(s)}${d.getFullYear() === n.getFullYear() ? '' : ` ${d.getFullYear()}`} ${clock(s, false)}`;
}

export function ago(at: Stamp | null | undefined, now: number): string {
  const s = now - unix(at);
  return Number.isFinite(s) ? (s < 5 ? 'just now' : `${duration(s)} ago`) : ABSENT;
}

/** Labels of an axis whose marks are `step` seconds apart: each says only what its neighbour does not. */
export function axisLabels(marks: number[], step: number): string[] {
  let before = '';
  return marks.map((s) => {
    const d = new Date(s * 1000);
    const date = day(s);
    if (step >= 28 * 86400) {
      const year = String(d.getFullYear());
      const label = year === before ? (MONTHS[d.getMonth()] ?? '') : `${MONTHS[d.getMonth()]} ${year}`;
      before = year;
      return label;
    }
    if (step >= 86400) return date;
    const label = clock(s, step < 60);
    const isNewDay = before !== '' && date !== before;
    before = date;
    return isNewDay ? date : label;
  });
}
