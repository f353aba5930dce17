// What uPlot does not draw itself: dots coloured by heat, the spread of a rollup behind them, and horizontal marks.
import type uPlot from 'uplot';
import { colour } from '../live/theme';
import { heat } from '../format/health';
import type { Line, Mark } from './plot';

const HEAT_COLOUR = { none: 'faint', cool: 'cool-fill', mild: 'mild-fill', warm: 'warm-fill', hot: 'hot-fill', crit: 'crit-fill' } as const;

export const heatColour = (temp: number, target: number | undefined): string => colour(HEAT_COLOUR[heat(temp, target)]);

type Values = (number | null | undefined)[];

/** Dots in as few paths as there are colours; a year at one dot an hour is drawn in a millisecond. */
export function paintDots(u: uPlot, at: number, line: Line, by: number, min?: number, max?: number): void {
  const { ctx, bbox } = u;
  const time = u.data[0] as number[];
  const values = u.data[at] as Values;
  const lows = min === undefined ? undefined : (u.data[min] as Values);
  const highs = max === undefined ? undefined : (u.data[max] as Values);
  const left = bbox.left - 4;
  const right = bbox.left + bbox.width + 4;
  const r = (line.size ?? 1.6) * devicePixelRatio;
  const dots = new Map<string, Path2D>();
  const spread = new Map<string, Path2D>();
  const of = (paths: Map<string, Path2D>, c: string): Path2D => {
    let p = paths.get(c);
    if (!p) paths.set(c, (p = new Path2D()));
    return p;
  };
  for (let i = 0; i < time.length; i++) {
    const v = values[i];
    if (typeof v !== 'number') continue;
    const x = u.valToPos(time[i] as number, 'x', true);
    if (x < left || x > right) continue;
    const c = line.kind === 'heat' ? heatColour(v * by, line.target) : colour(line.colour);
    const y = u.valToPos(v, 'y', true);
    of(dots, c).rect(x - r, y - r, 2 * r, 2 * r);
    const low = lows?.[i];
    const high = highs?.[i];
    if (typeof low === 'number' && typeof high === 'number' && high > low) {
      const top = u.valToPos(high, 'y', true);
      of(spread, c).rect(x - r * 0.6, top, r * 1.2, u.valToPos(low, 'y', true) - top);
    }
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - 2, bbox.width, bbox.height + 4);
  ctx.clip();
  ctx.globalAlpha = 0.22;
  for (const [c, path] of spread) { ctx.fillStyle = c; ctx.fill(path); }
  ctx.globalAlpha = line.alpha ?? 0.85;
  for (const [c, path] of dots) { ctx.fillStyle = c; ctx.fill(path); }
  ctx.restore();
}

export function paintMarks(u: uPlot, marks: Mark[], by: number): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  let above = -Infinity;
  for (const mark of [...marks].sort((a, b) => b.value - a.value)) {
    const y = u.valToPos(mark.value / by, 'y', true);
    if (y < bbox.top - 1 || y > bbox.top + bbox.height + 1) continue;
    ctx.strokeStyle = ctx.fillStyle = colour(mark.colour);
    ctx.lineWidth = 1.2 * devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    const isNearTop = y - Math.max(bbox.top, above) < 16 * devicePixelRatio; // no room above its line
    above = y;
    ctx.textBaseline = isNearTop ? 'top' : 'bottom';
    const width = ctx.measureText(mark.label).width;
    const textY = y + (isNearTop ? 3 : -3) * devicePixelRatio;
    const ink = ctx.fillStyle;
    ctx.fillStyle = colour('panel');
    ctx.globalAlpha = 0.8;
    ctx.fillRect(bbox.left + bbox.width - width - 4, isNearTop ? textY - 1 : textY - 12 * devicePixelRatio, width + 4, 13 * devicePixelRatio);
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink;
    ctx.fillText(mark.label, bbox.left + bbox.width - 2, textY);
  }
  ctx.restore();
}
