// Temperature and power of one GPU: as a scatter over time, and how they were spread.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { Gpu, Inventory } from '../api/types';
import type { Loaded } from '../charts/history';
import { heatColour } from '../charts/paint';
import { ChartPanel } from '../charts/panel';
import type { Line, Mark } from '../charts/plot';
import { targetOf } from '../format/health';
import { celsius, fixed, digitsOf, percent, watts, duration } from '../format/numbers';
import { align, find, histogram, means, shareOfAny, summary, wattHours, weights } from '../format/series';

export interface GpuChart {
  gpu: Gpu;
  loaded: Loaded;
  when: string;
  inventory: Inventory | undefined;
  onRange: (from: number, to: number) => void;
}

export const SYNC = 'gpu';

export function TemperaturePanel({ gpu, loaded, when, inventory, onRange }: GpuChart): JSX.Element {
  const h = loaded.history;
  const target = targetOf(gpu);
  const slowdown = inventory?.temperature_limits?.['slowdown_celsius'];
  const { time, lines } = useMemo(() => {
    const core = find(h, 'gpu_temperature_celsius');
    const memory = find(h, 'gpu_memory_temperature_celsius');
    const present = [core, memory].filter((s) => s !== undefined);
    const frame = align(present.flatMap((s) => [s.mean, s.min, s.max].filter((c) => c !== undefined).map((value) => ({ time: s.time, value }))));
    let next = 0;
    const made: Line[] = present.map((s) => {
      const values = frame.columns[next++] ?? [];
      const min = s.min ? frame.columns[next++] : undefined;
      const max = s.max ? frame.columns[next++] : undefined;
      return s === core ? { label: 'core', values, min, max, colour: 'mild', kind: 'heat', target, size: 1.7 } : { label: 'memory', values, colour: 'faint', kind: 'dots', size: 1, alpha: 0.6 };
    });
    return { time: frame.time, lines: made.reverse() };
  }, [h, target]);
  const marks: Mark[] = [];
  if (target !== undefined) marks.push({ value: target, label: `target ${celsius(target)}`, colour: 'hot' });
  if (slowdown !== undefined) marks.push({ value: slowdown, label: `slows itself at ${celsius(slowdown)}`, colour: 'crit' });
  const s = summary(find(h, 'gpu_temperature_celsius'));
  return (
    <ChartPanel title="Temperature" name={`Temperature of GPU ${gpu.index}`} unit="celsius" height={216} syncKey={SYNC}
      sub={s ? <>{celsius(s.min)} to {celsius(s.max)}, mean {celsius(s.mean)} in {when}</> : ''}
      time={time} lines={lines} marks={marks} from={loaded.from} to={loaded.to} yMin={20} isLoading={loaded.isLoading} error={loaded.error} isEmpty={!s} onRange={onRange} />
  );
}

export function TemperatureHistogram({ gpu, loaded }: GpuChart): JSX.Element {
  const target = targetOf(gpu);
  const core = find(loaded.history, 'gpu_temperature_celsius');
  const width = 2;
  const isRolled = loaded.history !== undefined && loaded.history.resolution !== 'raw';
  const { bins, lines, over } = useMemo(() => {
    const weight = weights(core?.time ?? [], core?.step_s);
    const made = histogram(core?.mean ?? [], width, weight);
    const near = (core?.mean ?? []).map((v) => (typeof v === 'number' ? (v >= (target ?? Infinity) - 6 ? 1 : 0) : null));
    const line: Line = { label: 'share of the time', values: made.part, colour: 'mild', kind: 'bars', paint: (_v, i) => heatColour((made.at[i] ?? 0) + width / 2, target) };
    return { bins: { ...made, at: made.at.map((b) => b + width / 2) }, lines: [line], over: target === undefined ? undefined : shareOfAny([near], weight) };
  }, [core, target]);
  return (
    <ChartPanel title="How it was spread" name={`How the temperature of GPU ${gpu.index} was spread`} unit="ratio" height={216} legend={false}
      sub={isRolled ? `by the ${loaded.history?.resolution}'s mean; the hottest moment had ${celsius(summary(core)?.max)}` : over === undefined ? 'share of the time' : over < 0.005 ? `never within 6 °C of its target` : `${percent(over)} of the time within 6 °C of its target`}
      time={bins.at} lines={lines} yMin={0} isBins xWords={(v) => celsius(v)} isLoading={loaded.isLoading} isEmpty={!bins.at.length} />
  );
}

export function PowerPanel({ gpu, loaded, onRange }: GpuChart): JSX.Element {
  const h = loaded.history;
  const { time, lines } = useMemo(() => {
    const power = find(h, 'gpu_power_watts');
    const limit = find(h, 'gpu_power_limit_enforced_watts');
    const present = [limit, power].filter((s) => s !== undefined);
    const frame = align(present.flatMap((s) => [s.mean, s.min, s.max].filter((c) => c !== undefined).map((value) => ({ time: s.time, value }))));
    let next = 0;
    const made: Line[] = present.map((s) => {
      const values = frame.columns[next++] ?? [];
      const min = s.min ? frame.columns[next++] : undefined;
      const max = s.max ? frame.columns[next++] : undefined;
      return s === limit ? { label: 'limit in force', values, colour: 'accent', kind: 'step', fill: 'accent', width: 1.6 } : { label: 'power', values, min, max, colour: 'ink', kind: 'dots', size: 1.3, alpha: 0.7 };
    });
    return { time: frame.time, lines: made };
  }, [h]);
  const now = gpu.metrics['gpu_power_watts'];
  const limit = gpu.metrics['gpu_power_limit_enforced_watts'];
  const baseline = gpu.guard?.unit === 'W' ? gpu.guard.baseline : undefined;
  const lowered = baseline !== undefined && limit !== undefined && baseline - limit > 0.5 ? `; the guard lowered it by ${watts(baseline - limit)}` : '';
  return (
    <ChartPanel title="Power and its limit" name={`Power and power limit of GPU ${gpu.index}`} unit="watts" height={196} syncKey={SYNC}
      sub={now === undefined ? '' : <>now {watts(now)}{limit === undefined ? '' : <> of {watts(limit)}</>}{lowered}</>}
      time={time} lines={lines} from={loaded.from} to={loaded.to} yMin={0} yMax={gpu.metrics['gpu_power_limit_max_watts']} isLoading={loaded.isLoading} error={loaded.error} isEmpty={!time.length} onRange={onRange} />
  );
}

export function PowerBars({ gpu, loaded, when, onRange }: GpuChart): JSX.Element {
  const h = loaded.history;
  const power = find(h, 'gpu_power_watts');
  const { bars, lines } = useMemo(() => {
    const made = means(power, loaded.from, loaded.to, 30);
    return { bars: made, lines: [{ label: 'mean power', values: made.mean, colour: 'accent', kind: 'bars' } as Line] };
  }, [power, Math.floor(loaded.from), Math.floor(loaded.to)]);
  const energy = wattHours(power, h?.step_s ?? 1);
  const energyWords = energy === undefined ? '' : energy >= 1000 ? `${fixed(energy / 1000, digitsOf(energy / 1000))}\u202fkWh` : `${fixed(energy, digitsOf(energy))}\u202fWh`;
  return (
    <ChartPanel title={`Power, ${bars.step < 60 ? `${bars.step}-second` : duration(bars.step)} means`} name={`Mean power of GPU ${gpu.index}`} unit="watts" height={196} legend={false} syncKey={undefined}
      sub={energyWords && `${energyWords} in ${when}`} time={bars.time} lines={lines} from={loaded.from} to={loaded.to} yMin={0}
      isLoading={loaded.isLoading} isEmpty={!power?.time.length} onRange={onRange} />
  );
}
