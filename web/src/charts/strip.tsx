// "Why is it slow?": a band for each reason, filled where it held the clocks back, and a sentence that sums it up.
import { useEffect, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import type { History } from '../api/types';
import { IDLE, SLOW } from '../format/health';
import { percent } from '../format/numbers';
import { find, heldShare, shareOfAny, spells, weights } from '../format/series';
import { colour, onTheme } from '../live/theme';

const COLOURS: Record<string, string> = { crit: 'crit-fill', hot: 'hot-fill', warn: 'warm-fill', info: 'warm-fill', good: 'faint' };

export interface Band {
  label: string;
  colour: string;
  spells: [number, number, number][];
  share: number | undefined;
}

/** The guard's band: where its limit stood below the whole way. */
function guardBand(h: History | undefined, step: number): Band {
  const limit = find(h, 'gpu_guard_limit_ratio');
  const held = limit && { ...limit, mean: heldShare(limit) };
  return { label: 'our guard', colour: 'hot-fill', spells: spells(held, step), share: held ? shareOfAny([held.mean], weights(held.time, step)) : undefined };
}

export function bandsOf(h: History | undefined): Band[] {
  const step = h?.step_s ?? 1;
  const reasons = SLOW.map((r) => {
    const s = find(h, r.metric);
    return { label: r.short, colour: COLOURS[r.level] ?? 'warm-fill', spells: spells(s, step), share: s ? shareOfAny([s.mean], weights(s.time, step)) : undefined };
  });
  const idle = find(h, IDLE);
  return [guardBand(h, step), ...reasons, { label: 'idle', colour: 'bar', spells: spells(idle, step), share: idle ? shareOfAny([idle.mean], weights(idle.time, step)) : undefined }];
}

/** Always the usual ones; the rare ones only when they held. */
export function bandsShown(bands: Band[]): Band[] {
  const usual = new Set(['our guard', 'power limit', 'driver, heat', 'hardware, heat', 'idle']);
  return bands.filter((b) => usual.has(b.label) || b.spells.length > 0);
}

export function slowSentence(h: History | undefined, when: string): string {
  if (!h) return '';
  const guard = find(h, 'gpu_guard_limit_ratio');
  const columns = [...SLOW.map((r) => find(h, r.metric)?.mean), guard && heldShare(guard)].filter((c) => c !== undefined);
  const held = shareOfAny(columns as (number | null)[][], weights(find(h, IDLE)?.time ?? [], h.step_s));
  if (held === undefined) return 'This card does not say what holds its clocks.';
  const most = bandsOf(h).filter((b) => b.label !== 'idle' && (b.share ?? 0) > 0.005).sort((a, b) => (b.share ?? 0) - (a.share ?? 0))[0];
  if (held < 0.005) return `Nothing held its clocks back in ${when}.`;
  return `In ${when} something held its clocks back ${percent(held)} of the time${most ? `, mostly ${most.label === 'our guard' ? 'our guard' : `the ${most.label.replace('hardware, heat', 'hardware, for heat').replace('driver, heat', 'driver, for heat')}`}` : ''}.`;
}

function paint(canvas: HTMLCanvasElement, band: Band, from: number, to: number): void {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ctx = canvas.getContext('2d');
  if (!ctx || !width) return;
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  ctx.scale(devicePixelRatio, devicePixelRatio);
  ctx.fillStyle = colour('track');
  ctx.beginPath();
  ctx.roundRect?.(0, 0, width, height, 3);
  ctx.fill();
  ctx.clip();
  ctx.fillStyle = colour(band.colour);
  for (const [a, b, share] of band.spells) {
    const left = ((a - from) / (to - from)) * width;
    const right = ((b - from) / (to - from)) * width;
    if (right < 0 || left > width) continue;
    ctx.globalAlpha = 0.35 + 0.65 * Math.min(1, share);
    ctx.fillRect(left, 0, Math.max(1, right - left), height);
  }
}

function BandRow({ band, from, to }: { band: Band; from: number; to: number }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = (): void => {
    if (canvas.current) paint(canvas.current, band, from, to);
  };
  useEffect(draw);
  useEffect(() => {
    const off = onTheme(draw);
    const observer = new ResizeObserver(draw);
    if (canvas.current) observer.observe(canvas.current);
    return () => {
      off();
      observer.disconnect();
    };
  });
  return (
    <li class={`band${band.spells.length ? '' : ' none'}`}>
      <span class="name">{band.label}</span>
      <canvas ref={canvas} aria-hidden="true" />
      <span class="val">{band.share === undefined ? '–' : percent(band.share)}</span>
    </li>
  );
}

export function Strip({ history, from, to }: { history: History | undefined; from: number; to: number }): JSX.Element {
  return <ul class="strip" aria-label="Reasons that held the clocks back, with their share of the time">{bandsShown(bandsOf(history)).map((b) => <BandRow key={b.label} band={b} from={from} to={to} />)}</ul>;
}
