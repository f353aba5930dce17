// Series as charts want them: on one time axis, summed up, counted into bins. Pure.
import type { History, Series } from '../api/types';

export type Column = (number | null | undefined)[];

export interface Frame {
  time: number[];
  columns: Column[];
}

/** Several series on the union of their times. A time that a series lacks is undefined (no gap), a gap is null. */
export function align(series: { time: number[]; value: Column }[]): Frame {
  const first = series[0];
  if (!first) return { time: [], columns: [] };
  if (series.every((s) => s.time.length === first.time.length && s.time.every((t, i) => t === first.time[i])))
    return { time: first.time, columns: series.map((s) => s.value) };
  const all = new Set<number>();
  for (const s of series) for (const t of s.time) all.add(t);
  const time = Float64Array.from(all).sort();
  const place = new Map<number, number>();
  time.forEach((t, i) => place.set(t, i));
  const columns = series.map((s) => {
    const column: Column = new Array(time.length).fill(undefined);
    s.time.forEach((t, i) => {
      column[place.get(t) as number] = s.value[i];
    });
    return column;
  });
  return { time: Array.from(time), columns };
}

/** What stands at that place of a column that was aligned: the reading, or the last one before it where others were read more
 *  often; nothing in a gap. */
export function readAt(values: Column, at: number): number | null {
  for (let i = Math.min(at, values.length - 1); i >= 0; i--) {
    const v = values[i];
    if (v !== undefined) return v;
  }
  return null;
}

export function find(history: History | undefined, metric: string, of?: string): Series | undefined {
  return history?.series.find((s) => s.metric === metric && (of === undefined || s.of === of));
}

const LONGEST_S = 5;

/** How long each reading counts: until the next one, but not across a gap. Cards near their target are read ten times as
 *  often, and must not weigh ten times as much. */
export function weights(time: number[], step = 0): number[] {
  const longest = Math.max(LONGEST_S, step * 1.5);
  return time.map((t, i) => Math.min(longest, Math.max(0.001, (time[i + 1] ?? t + Math.max(step, (t - (time[i - 1] ?? t - 1)))) - t)));
}

export interface Summary {
  count: number;
  min: number;
  mean: number;
  max: number;
  last: number;
}

/** Over all of a series: the lowest and highest that a rollup saw count, not only its means. */
export function summary(s: Series | undefined): Summary | undefined {
  if (!s) return undefined;
  const weight = weights(s.time, s.step_s);
  let count = 0;
  let all = 0;
  let sum = 0;
  let min = Infinity;
  let max = -Infinity;
  let last = NaN;
  s.mean.forEach((v, i) => {
    if (typeof v !== 'number') return;
    count++;
    all += weight[i] as number;
    sum += v * (weight[i] as number);
    last = v;
    min = Math.min(min, s.min?.[i] ?? v);
    max = Math.max(max, s.max?.[i] ?? v);
  });
  return count ? { count, min, mean: sum / all, max, last } : undefined;
}

/** Share of the time in each bin of `width`, from the lowest bin that has any to the highest. */
export function histogram(values: Column, width: number, weight?: number[]): { at: number[]; part: number[] } {
  const bins = new Map<number, number>();
  let count = 0;
  values.forEach((v, i) => {
    if (typeof v !== 'number') return;
    const bin = Math.floor(v / width) * width;
    const w = weight?.[i] ?? 1;
    bins.set(bin, (bins.get(bin) ?? 0) + w);
    count += w;
  });
  if (!count) return { at: [], part: [] };
  const keys = [...bins.keys()];
  const at: number[] = [];
  const part: number[] = [];
  for (let b = Math.min(...keys); b <= Math.max(...keys) + width / 2; b += width) {
    at.push(b);
    part.push((bins.get(b) ?? 0) / count);
  }
  return { at, part };
}

/** Means over equal steps of about `bars` parts; a step without readings is null. */
export function means(s: { time: number[]; mean: Column } | undefined, from: number, to: number, bars: number): { time: number[]; mean: (number | null)[]; step: number } {
  const step = niceStep((to - from) / bars);
  const start = Math.floor(from / step) * step;
  const n = Math.max(1, Math.ceil((to - start) / step));
  const sums = new Float64Array(n);
  const counts = new Float64Array(n);
  const weight = weights(s?.time ?? []);
  s?.time.forEach((t, i) => {
    const v = s.mean[i];
    const at = Math.floor((t - start) / step);
    if (typeof v !== 'number' || at < 0 || at >= n) return;
    sums[at] = (sums[at] as number) + v * (weight[i] as number);
    counts[at] = (counts[at] as number) + (weight[i] as number);
  });
  return {
    time: Array.from(sums, (_, i) => start + (i + 0.5) * step),
    mean: Array.from(sums, (sum, i) => (counts[i] ? sum / (counts[i] as number) : null)),
    step,
  };
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 2 * 86400, 7 * 86400, 14 * 86400];
export function niceStep(want: number): number {
  return STEPS.find((s) => s >= want) ?? (STEPS[STEPS.length - 1] as number);
}

/** Watt-hours under a power series: each reading counts until the next, but never across a gap. */
export function wattHours(s: Series | undefined, step: number): number | undefined {
  if (!s || s.time.length < 2) return undefined;
  const longest = Math.max(step * 3, 5);
  let sum = 0;
  for (let i = 0; i + 1 < s.time.length; i++) {
    const v = s.mean[i];
    if (typeof v !== 'number') continue;
    sum += v * Math.min((s.time[i + 1] as number) - (s.time[i] as number), longest);
  }
  return sum / 3600;
}

/** The share of the time in which at least one of these (0 or 1, or a rollup's share) held. */
export function shareOfAny(columns: Column[], weight?: number[]): number | undefined {
  const n = Math.max(0, ...columns.map((c) => c.length));
  let seen = 0;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    let most = -1;
    for (const c of columns) {
      const v = c[i];
      if (typeof v === 'number') most = Math.max(most, v);
    }
    if (most < 0) continue;
    const w = weight?.[i] ?? 1;
    seen += w;
    sum += Math.min(1, most) * w;
  }
  return seen ? sum / seen : undefined;
}

/** Where a level stood below its whole way, as 0 or 1; of a rollup the share of its time, from how far mean and lowest fell. */
export function heldShare(s: Series, whole = 1): (number | null)[] {
  const slack = whole * 0.005;
  return s.mean.map((v, i) => {
    if (typeof v !== 'number') return null;
    const low = s.min?.[i];
    if (typeof low !== 'number') return v < whole - slack ? 1 : 0;
    return low < whole - slack ? Math.min(1, Math.max(0, (whole - v) / (whole - low))) : 0;
  });
}

/** Runs in which a 0/1 series (or a rollup's share) is above zero: [from, to, share]. */
export function spells(s: Series | undefined, step: number): [number, number, number][] {
  const out: [number, number, number][] = [];
  const longest = Math.max(step * 3, 3);
  s?.time.forEach((t, i) => {
    const v = s.mean[i];
    if (typeof v !== 'number' || v <= 0.001) return;
    const next = s.time[i + 1];
    const end = next !== undefined && next - t <= longest ? next : t + step;
    const last = out[out.length - 1];
    if (last && t - last[1] < 0.01 && Math.abs(last[2] - v) < 0.05) last[1] = end;
    else out.push([t, end, v]);
  });
  return out;
}

/** The same history with this second's readings at its end, and what has left the span dropped now and then. */
export function grown(h: History, time: number, spanS: number, read: (of: string, metric: string) => number | null): History {
  const series = h.series.map((s) => {
    const last = s.time[s.time.length - 1];
    if (last !== undefined && time - last < 0.2) return s;
    let drop = 0;
    while (drop < s.time.length && (s.time[drop] as number) < time - spanS - 2) drop++;
    const gap = last !== undefined && time - last > 6;
    const value = read(s.of, s.metric);
    const longer = (column: (number | null)[]): (number | null)[] => [...column.slice(drop), ...(gap ? [null] : []), value];
    return {
      ...s,
      time: [...s.time.slice(drop), ...(gap ? [last + 1] : []), time],
      mean: longer(s.mean),
      ...(s.min && s.max ? { min: longer(s.min), max: longer(s.max) } : {}),
    };
  });
  return { ...h, series, to: time };
}

/** Without the steps at its end that nothing fell into yet: what comes live goes on from the last reading. */
export function trimmed(h: History): History {
  const series = h.series.map((s) => {
    let n = s.mean.length;
    while (n > 0 && typeof s.mean[n - 1] !== 'number') n--;
    return n === s.mean.length ? s : { ...s, time: s.time.slice(0, n), mean: s.mean.slice(0, n), ...(s.min && s.max ? { min: s.min.slice(0, n), max: s.max.slice(0, n) } : {}) };
  });
  return { ...h, series };
}
