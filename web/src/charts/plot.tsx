// One chart over time (or over bins): draws with uPlot, zooms by dragging, moves with Shift and dragging, is read with the
// arrow keys. It never owns its range: it asks for another, and the page decides.
import { useEffect, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import uPlot from 'uplot';
import { clock, moment } from '../format/times';
import { show } from '../format/numbers';
import { store } from '../live/store';
import { onTheme } from '../live/theme';
import { say } from '../parts/say';
import { dataOf, optionsOf, Shape, columnsOf } from './options';
import { readAt } from '../format/series';
import { axisUnit } from './scale';

export interface Line {
  label: string;
  values: (number | null | undefined)[];
  min?: (number | null | undefined)[];
  max?: (number | null | undefined)[];
  colour: string; // a name of the style sheet
  kind: 'line' | 'step' | 'dots' | 'heat' | 'bars';
  fill?: string;
  width?: number;
  size?: number;
  alpha?: number;
  dash?: number[];
  target?: number; // what heat is measured against
  paint?: (value: number, at: number) => string; // a colour for each bar
}

export interface Mark {
  value: number;
  label: string;
  colour: string;
  isInView?: boolean; // false: only where the axis reaches it anyway
}

export interface PlotProps {
  name: string;
  unit: string;
  time: number[];
  lines: Line[];
  marks?: Mark[];
  from?: number;
  to?: number;
  yMin?: number;
  yMax?: number;
  height?: number;
  syncKey?: string;
  isBins?: boolean;
  xWords?: (v: number) => string;
  isLoading?: boolean;
  legend?: boolean;
  onRange?: (from: number, to: number) => void;
}

const PAN_COMMIT_MS = 250;

export function Plot(p: PlotProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>();
  const props = useRef(p);
  props.current = p;

  const largest = p.lines.reduce((most, l) => {
    for (const v of l.max ?? l.values) if (typeof v === 'number' && v > most) most = v;
    return most;
  }, Math.max(0, p.yMax ?? 0));
  const unit = axisUnit(p.unit, largest);
  const structure = JSON.stringify([p.lines.map((l) => [l.label, l.colour, l.kind, !!l.min, l.target, l.fill]), unit, p.height, p.isBins, p.yMin, p.yMax, p.marks]);

  const read = (at: number | null | undefined): void => {
    const u = chart.current;
    const now = props.current;
    if (!u || !legend.current) return;
    const i = at ?? lastWithValue(now);
    legend.current.querySelectorAll('[data-line]').forEach((el, k) => {
      const l = now.lines[k];
      el.textContent = l ? show(now.unit, readAt(l.values, at ?? l.values.length - 1)) : '';
    });
    const when = legend.current.querySelector('[data-when]');
    const t = now.time[i];
    if (when) when.textContent = t === undefined || now.isBins ? '' : (at === null || at === undefined) && store.now() - t < 5 ? 'now' : moment(t, store.now());
  };

  useEffect(() => {
    const at = box.current;
    if (!at) return undefined;
    const make = (): void => {
      chart.current?.destroy();
      const now = props.current;
      const shape: Shape = { lines: now.lines, now: () => props.current.lines, unit, marks: now.marks ?? [], yMin: now.yMin, yMax: now.yMax, isTime: !now.isBins, syncKey: now.syncKey, xWords: now.xWords };
      const u = new uPlot(optionsOf(shape, at.clientWidth || 300, now.height ?? 200, {
        setCursor: [(me) => read(me.cursor.idx)],
        setSelect: [(me) => {
          const { left, width } = me.select;
          if (width < 4) return;
          const from = me.posToVal(left, 'x');
          const to = me.posToVal(left + width, 'x');
          me.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          props.current.onRange?.(from, to);
        }],
      }), dataOf(now.time, now.lines, unit.by), at);
      chart.current = u;
      if (!now.isBins && now.from !== undefined && now.to !== undefined) u.setScale('x', { min: now.from, max: now.to });
      if (!now.isBins) listenToPointer(u, props);
      read(null);
    };
    make();
    const offTheme = onTheme(make);
    const observer = new ResizeObserver(() => {
      const width = at.clientWidth;
      if (chart.current && width && width !== chart.current.width) chart.current.setSize({ width, height: props.current.height ?? 200 });
    });
    observer.observe(at);
    return () => {
      offTheme();
      observer.disconnect();
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [structure]);

  useEffect(() => {
    const u = chart.current;
    if (!u) return;
    u.batch(() => {
      u.setData(dataOf(p.time, p.lines, unit.by), !!p.isBins);
      if (!p.isBins && p.from !== undefined && p.to !== undefined) u.setScale('x', { min: p.from, max: p.to });
    });
    read(u.cursor.idx);
  }, [p.time, p.lines, p.from, p.to]);

  const onKey = (e: KeyboardEvent): void => {
    const u = chart.current;
    if (u && keyOnChart(e, u, props.current)) {
      e.preventDefault();
      e.stopPropagation();
    }
  };

  const help = p.isBins ? 'Left and right arrows read values.' : 'Left and right arrows read values, plus and minus zoom, Shift with arrows moves the range.';
  return (
    <div class={`plot${p.isLoading ? ' loading' : ''}`}>
      {p.legend !== false && (
        <div class="legend" ref={legend} aria-hidden="true">
          {p.lines.map((l) => (
            <span key={l.label}><i class={`swatch ${l.kind}`} style={{ background: l.kind === 'heat' ? undefined : `var(--${l.colour})` }} />{l.label} <b data-line /></span>
          ))}
          <span class="when" data-when />
        </div>
      )}
      <div class="canvas" ref={box} tabIndex={0} role="application" aria-roledescription="chart" aria-label={`${p.name}. ${help}`} onKeyDown={onKey} style={{ height: `${p.height ?? 200}px` }} />
    </div>
  );
}

function lastWithValue(p: PlotProps): number {
  for (let i = p.time.length - 1; i >= 0; i--) if (p.lines.some((l) => typeof l.values[i] === 'number')) return i;
  return p.time.length - 1;
}

/** Arrow keys walk through the readings and speak them; plus, minus and Shift change the range. */
function keyOnChart(e: KeyboardEvent, u: uPlot, p: PlotProps): boolean {
  const span = (p.to ?? 0) - (p.from ?? 0);
  const ask = (from: number, to: number): boolean => {
    if (p.isBins || !p.onRange) return false;
    p.onRange(from, to);
    return true;
  };
  const from = p.from ?? 0;
  const to = p.to ?? 0;
  if (e.ctrlKey || e.metaKey || e.altKey) return false;
  if (e.key === '+' || e.key === '=') return ask(from + span / 4, to - span / 4);
  if (e.key === '-' || e.key === '_') return ask(from - span / 2, to + span / 2);
  if (e.shiftKey && e.key === 'ArrowLeft') return ask(from - span / 4, to - span / 4);
  if (e.shiftKey && e.key === 'ArrowRight') return ask(from + span / 4, to + span / 4);
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity };
  const step = steps[e.key];
  if (step === undefined || !p.time.length) return false;
  const first = Math.max(0, p.isBins ? 0 : p.time.findIndex((t) => t >= from));
  const idx = u.cursor.idx ?? (step < 0 ? lastWithValue(p) + 1 : first - 1);
  let next = Math.min(p.time.length - 1, Math.max(first, idx + step));
  if (Math.abs(step) === 1) while (next > first && next < p.time.length - 1 && !p.lines.some((l) => typeof l.values[next] === 'number')) next += step;
  const t = p.time[next];
  if (t === undefined) return false;
  const c = columnsOf(p.lines)[0];
  const y = c ? (u.data[c.at]?.[next] ?? 0) : 0;
  u.setCursor({ left: u.valToPos(t, 'x'), top: u.valToPos(y as number, 'y') });
  const when = p.isBins ? (p.xWords?.(t) ?? String(t)) : clock(t);
  say(`${when}: ${p.lines.map((l) => `${l.label} ${show(p.unit, l.values[next])}`).join(', ')}`);
  return true;
}

/** Shift and drag moves the range; a sideways wheel moves it too, a pinch (Ctrl and wheel) zooms. */
function listenToPointer(u: uPlot, props: { current: PlotProps }): void {
  let commit = 0;
  const preview = (from: number, to: number): void => u.setScale('x', { min: from, max: to });
  const later = (from: number, to: number): void => {
    preview(from, to);
    window.clearTimeout(commit);
    commit = window.setTimeout(() => props.current.onRange?.(from, to), PAN_COMMIT_MS);
  };
  const ends = (): [number, number] => [u.scales['x']?.min ?? 0, u.scales['x']?.max ?? 1];

  u.over.addEventListener('mousedown', (e) => {
    if (!e.shiftKey || e.button !== 0) return;
    e.stopImmediatePropagation();
    e.preventDefault();
    const startX = e.clientX;
    const [from, to] = ends();
    const perPixel = (to - from) / u.over.clientWidth;
    let shift = 0;
    const move = (m: MouseEvent): void => {
      shift = (startX - m.clientX) * perPixel;
      preview(from + shift, to + shift);
    };
    const up = (): void => {
      window.removeEventListener('mousemove', move);
      window.removeEventListener('mouseup', up);
      if (shift) props.current.onRange?.(from + shift, to + shift);
    };
    window.addEventListener('mousemove', move);
    window.addEventListener('mouseup', up);
  }, true);

  u.over.addEventListener('wheel', (e) => {
    if (!props.current.onRange) return;
    const [from, to] = ends();
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      const at = u.posToVal(e.offsetX, 'x');
      const factor = Math.exp(Math.max(-40, Math.min(40, e.deltaY)) / 120);
      later(at - (at - from) * factor, at + (to - at) * factor);
    } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) * 1.5) {
      e.preventDefault();
      const shift = ((to - from) * e.deltaX) / u.over.clientWidth;
      later(from + shift, to + shift);
    }
  }, { passive: false });

  u.over.addEventListener('dblclick', () => {
    const [from, to] = ends();
    props.current.onRange?.(from - (to - from) / 2, to + (to - from) / 2);
  });
}

