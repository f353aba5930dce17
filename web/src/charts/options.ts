// uPlot's options from our description of a chart.
import uPlot from 'uplot';
import { axisLabels } from '../format/times';
import { fixed } from '../format/numbers';
import { colour, faded } from '../live/theme';
import type { Line, Mark } from './plot';
import { paintDots, paintMarks } from './paint';
import { AxisUnit, yEnds } from './scale';

export interface Shape {
  lines: Line[];
  now: () => Line[]; // the same lines with the values of the moment
  unit: AxisUnit;
  marks: Mark[];
  yMin?: number;
  yMax?: number;
  isTime: boolean;
  syncKey?: string;
  xWords?: (v: number) => string;
}

/** Column numbers of each line in uPlot's data: its values, and its lowest and highest where it has them. */
export function columnsOf(lines: Line[]): { at: number; min?: number; max?: number }[] {
  let next = 1;
  return lines.map((l) => {
    const at = next++;
    return l.min && l.max ? { at, min: next++, max: next++ } : { at };
  });
}

export function dataOf(time: number[], lines: Line[], by: number): uPlot.AlignedData {
  const scaled = (c: (number | null | undefined)[]): (number | null | undefined)[] =>
    by === 1 ? c : c.map((v) => (typeof v === 'number' ? v / by : v));
  const data: (number[] | (number | null | undefined)[])[] = [time];
  for (const l of lines) {
    data.push(scaled(l.values));
    if (l.min && l.max) data.push(scaled(l.min), scaled(l.max));
  }
  return data as uPlot.AlignedData;
}

function seriesOf(l: Line, now: () => Line | undefined): uPlot.Series {
  const stroke = colour(l.colour);
  const common = { label: l.label, stroke, width: l.width ?? 1.5, points: { show: false }, spanGaps: false };
  switch (l.kind) {
    case 'heat':
    case 'dots': return { ...common, paths: () => null };
    case 'step': return { ...common, paths: uPlot.paths.stepped?.({ align: 1 }), fill: l.fill ? faded(l.fill, 0.12) : undefined };
    case 'bars': return {
      ...common, width: 0, fill: stroke,
      paths: uPlot.paths.bars?.({
        size: [0.82, 40], align: 0, radius: 0.12,
        disp: l.paint ? { fill: { unit: 3, values: () => { const line = now() ?? l; return line.values.map((v, i) => line.paint?.(v ?? 0, i) ?? stroke); } } } : undefined,
      }),
    };
    default: return { ...common, fill: l.fill ? faded(l.fill, 0.12) : undefined, dash: l.dash };
  }
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;
// As uPlot's own (months are thirty days there), and two minutes: five minutes on a phone would have a single mark.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), ...[1, 2, 3, 4, 6, 8, 12].map((n) => n * HOUR), ...[1, 2, 3, 4, 5, 7, 10, 15, 30, 60, 90, 120, 180, 365, 730].map((n) => n * DAY)];

function axes(shape: Shape): uPlot.Axis[] {
  const font = '11px system-ui, sans-serif';
  const common = { stroke: colour('faint'), font, ticks: { show: false }, border: { show: false } };
  const tail = shape.unit.name ? `\u202f${shape.unit.name}` : '';
  return [
    {
      ...common, size: 26, gap: 6, incrs: shape.isTime ? TIME_STEPS : undefined, space: (_u, _at, _min, _max, room) => (!shape.isTime ? 44 : room < 420 ? 62 : 84), grid: { show: false },
      values: (_u, marks, _at, _space, step) =>
        shape.isTime ? axisLabels(marks, step) : marks.map((v) => (shape.xWords ? shape.xWords(v) : fixed(v, 0))),
    },
    {
      ...common, size: (_u, labels) => Math.max(46, 16 + 6.2 * Math.max(0, ...(labels ?? []).map((l) => l.length))), gap: 6, space: 34, grid: { stroke: colour('line'), width: 1 },
      values: (_u, marks) => {
        const digits = Math.max(0, ...marks.map((v) => (Number.isInteger(v) ? 0 : (String(+v.toFixed(3)).split('.')[1] ?? '').length)));
        return marks.map((v, i) => fixed(v, digits) + (i === marks.length - 1 ? tail : ''));
      },
    },
  ];
}

export function optionsOf(shape: Shape, width: number, height: number, hooks: uPlot.Hooks.Arrays): uPlot.Options {
  const columns = columnsOf(shape.lines);
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  shape.lines.forEach((l, i) => {
    series.push(seriesOf(l, () => shape.now()[i]));
    const c = columns[i];
    if (c?.min === undefined || c.max === undefined) return;
    const edge = { label: `${l.label}, spread`, points: { show: false }, width: 0, stroke: 'transparent', ...(l.kind === 'heat' || l.kind === 'dots' ? { paths: () => null } : {}) };
    series.push(edge, edge);
    if (l.kind !== 'heat' && l.kind !== 'dots') bands.push({ series: [c.max, c.min], fill: faded(l.colour, 0.18) });
  });
  return {
    width, height, series, bands,
    padding: [10, 10, 0, 0],
    legend: { show: false },
    scales: {
      x: shape.isTime ? { time: true, auto: false } : { time: false, range: (_u, a, b) => [a - 1.5, b + 1.5] as [number, number] },
      y: {
        range: (_u, low, high) => {
          const marks = shape.marks.filter((m) => m.isInView !== false).map((m) => m.value / shape.unit.by);
          const scaled = (v: number | undefined): number | undefined => (v === undefined ? undefined : v / shape.unit.by);
          return yEnds(Math.min(low ?? Infinity, ...marks), Math.max(high ?? -Infinity, ...marks), scaled(shape.yMin), scaled(shape.yMax));
        },
      },
    },
    axes: axes(shape),
    cursor: {
      x: true, y: false,
      points: { size: 7, width: 2 },
      drag: { x: shape.isTime, y: false, setScale: false, dist: 4 },
      sync: shape.syncKey ? { key: shape.syncKey, scales: ['x', null] } : undefined,
      bind: { dblclick: () => null },
    },
    hooks: {
      ...hooks,
      drawSeries: [(u, at) => {
        const i = columns.findIndex((c) => c.at === at);
        const l = shape.lines[i];
        const c = columns[i];
        if (l && c && (l.kind === 'heat' || l.kind === 'dots')) paintDots(u, c.at, l, shape.unit.by, c.min, c.max);
      }],
      draw: [(u) => paintMarks(u, shape.marks, shape.unit.by)],
    },
  };
}
