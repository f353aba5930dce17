// The range of time that charts show: presets, steps back and forth, closer and wider. What is picked goes into the address.
import type { JSX } from 'preact';
import { fixedRange, pan, parseRange, PRESETS, putRange, Range, rangeWords, spanOf, zoom } from '../format/range';
import { goQuery, usePlace } from '../live/route';
import { store } from '../live/store';
import { Segment } from './small';

export function useRange(fallback?: Range): { range: Range; setRange: (r: Range) => void; onRange: (from: number, to: number) => void } {
  const { query } = usePlace();
  const setRange = (r: Range): void => goQuery((q) => putRange(q, r));
  return { range: parseRange(query, fallback), setRange, onRange: (from, to) => setRange(fixedRange(from, to, store.now())) };
}

export function RangePicker({ range, setRange }: { range: Range; setRange: (r: Range) => void }): JSX.Element {
  const now = store.now();
  const preset = range.kind === 'last' ? PRESETS.find((p) => p.seconds === range.seconds)?.key : undefined;
  const step = (next: Range): void => setRange(next);
  const isAtNow = range.kind === 'last' || range.to > now - 2;
  return (
    <div class="range">
      {range.kind === 'fixed' && <span class="span">{rangeWords(range, now)}</span>}
      <div class="segment" role="group" aria-label="Move and zoom">
        <button type="button" onClick={() => step(pan(range, -0.5, now))} aria-label="Earlier" title="Earlier">‹</button>
        <button type="button" onClick={() => step(pan(range, 0.5, now))} disabled={isAtNow} aria-label="Later" title="Later">›</button>
        <button type="button" onClick={() => step(zoom(range, 2, now))} disabled={spanOf(range) > 360 * 86400} aria-label="Wider" title="Wider">−</button>
        <button type="button" onClick={() => step(zoom(range, 0.5, now))} aria-label="Closer" title="Closer">+</button>
      </div>
      <Segment label="Range" value={preset} onPick={(key) => setRange({ kind: 'last', seconds: PRESETS.find((p) => p.key === key)?.seconds ?? 300 })}
        options={PRESETS.map((p) => ({ key: p.key, name: p.key.replace('m', ' min').replace('h', ' h').replace('d', ' d').replace('y', ' y'), title: `The last ${p.words}` }))} />
    </div>
  );
}
