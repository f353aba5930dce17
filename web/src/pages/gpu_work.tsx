// What one GPU does: utilisation and activity, memory, clocks, links.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { History } from '../api/types';
import { ChartPanel } from '../charts/panel';
import type { Line, Mark } from '../charts/plot';
import { bytesOf, megahertz, percent, show } from '../format/numbers';
import { align, find, summary } from '../format/series';
import type { GpuChart } from './gpu_heat';
import { SYNC } from './gpu_heat';

type Wish = Pick<Line, 'label' | 'colour'> & Partial<Line> & { metric: string };

/** Lines for those metrics that the history has, on one time axis, with the spread where it is rolled up. */
export function linesOf(h: History | undefined, wishes: Wish[]): { time: number[]; lines: Line[] } {
  const present = wishes.flatMap((w) => {
    const s = find(h, w.metric);
    return s && s.mean.some((v) => typeof v === 'number') ? [{ w, s }] : [];
  });
  const frame = align(present.flatMap(({ s }) => [s.mean, s.min, s.max].filter((c) => c !== undefined).map((value) => ({ time: s.time, value }))));
  let next = 0;
  const lines = present.map(({ w, s }): Line => {
    const { metric: _metric, ...line } = w;
    const values = frame.columns[next++] ?? [];
    const min = s.min ? frame.columns[next++] : undefined;
    const max = s.max ? frame.columns[next++] : undefined;
    return { kind: 'line', min, max, ...line, values };
  });
  return { time: frame.time, lines };
}

const common = (p: GpuChart): { from: number; to: number; isLoading: boolean; error?: string; onRange: (a: number, b: number) => void; height: number; syncKey: string } =>
  ({ from: p.loaded.from, to: p.loaded.to, isLoading: p.loaded.isLoading, error: p.loaded.error, onRange: p.onRange, height: 168, syncKey: SYNC });

export function ActivityPanel(p: GpuChart): JSX.Element {
  const h = p.loaded.history;
  const { time, lines } = useMemo(() => linesOf(h, [
    { metric: 'gpu_utilization_ratio', label: 'utilisation', colour: 'faint', fill: 'faint', width: 1 },
    { metric: 'gpu_sm_active_ratio', label: 'SMs active', colour: 'series1' },
    { metric: 'gpu_tensor_active_ratio', label: 'tensor', colour: 'series2', width: 1.2 },
    { metric: 'gpu_dram_active_ratio', label: 'memory bandwidth', colour: 'series3', width: 1.2 },
  ]), [h]);
  const util = summary(find(h, 'gpu_utilization_ratio'));
  const active = summary(find(h, 'gpu_sm_active_ratio'));
  return <ChartPanel title="Utilisation and activity" name={`Utilisation of GPU ${p.gpu.index}`} unit="ratio" yMin={0} yMax={1} time={time} lines={lines} {...common(p)} isEmpty={!lines.length}
    sub={util ? (active ? `a kernel ran ${percent(util.mean)} of the time; SMs were active ${percent(active.mean)}` : `a kernel ran ${percent(util.mean)} of the time`) : ''} />;
}

export function MemoryPanel(p: GpuChart): JSX.Element {
  const h = p.loaded.history;
  const total = p.gpu.metrics['gpu_memory_total_bytes'];
  const { time, lines } = useMemo(() => linesOf(h, [{ metric: 'gpu_memory_used_bytes', label: 'in use', colour: 'series1', fill: 'series1' }]), [h]);
  const s = summary(find(h, 'gpu_memory_used_bytes'));
  const used = bytesOf(s?.max, total);
  return <ChartPanel title="Memory" name={`Memory of GPU ${p.gpu.index}`} unit="bytes" yMin={0} yMax={total} time={time} lines={lines} {...common(p)} isEmpty={!lines.length}
    sub={s ? `at most ${used.used} of ${used.total} in ${p.when}` : ''} />;
}

export function ClockPanel(p: GpuChart): JSX.Element {
  const h = p.loaded.history;
  const { time, lines } = useMemo(() => linesOf(h, [
    { metric: 'gpu_sm_clock_hertz', label: 'SM', colour: 'series1', kind: 'step' },
    { metric: 'gpu_memory_clock_hertz', label: 'memory', colour: 'series3', kind: 'step', width: 1.2 },
  ]), [h]);
  const most = p.inventory?.sm_max_mhz;
  const marks: Mark[] = most ? [{ value: most * 1e6, label: `SM at most ${megahertz(most * 1e6)}`, colour: 'faint' }] : [];
  const now = p.gpu.metrics['gpu_sm_clock_hertz'];
  const supported = p.inventory?.clocks_mhz ?? [];
  const graphics = supported[0]?.graphics ?? [];
  return (
    <ChartPanel title="Clocks" name={`Clocks of GPU ${p.gpu.index}`} unit="hertz" yMin={0} time={time} lines={lines} marks={marks} {...common(p)} isEmpty={!lines.length}
      sub={now === undefined ? '' : `SM now ${megahertz(now)}${most ? `, ${percent(now / (most * 1e6))} of its most` : ''}`}
      note={supported.length > 0 && (
        <details class="more"><summary>Supported clocks: {graphics.length} steps from {Math.min(...graphics)} to {Math.max(...graphics)} MHz, memory at {supported.map((c) => c.memory).join(' or ')} MHz</summary>
          {supported.map((c) => <p key={c.memory}><b>memory {c.memory} MHz</b> <span class="dim">{c.graphics.join(' · ')}</span></p>)}
        </details>
      )} />
  );
}

export function LinkPanel(p: GpuChart): JSX.Element {
  const h = p.loaded.history;
  const { time, lines } = useMemo(() => linesOf(h, [
    { metric: 'gpu_nvlink_tx_bytes_per_second', label: 'NVLink sent', colour: 'series1' },
    { metric: 'gpu_nvlink_rx_bytes_per_second', label: 'NVLink received', colour: 'series2' },
    { metric: 'gpu_pcie_tx_bytes_per_second', label: 'PCIe sent', colour: 'series3' },
    { metric: 'gpu_pcie_rx_bytes_per_second', label: 'PCIe received', colour: 'series4' },
  ]), [h]);
  const { gpu } = p;
  const width = gpu.metrics['gpu_pcie_link_width'];
  const generation = gpu.metrics['gpu_pcie_link_generation'];
  const most = lines.reduce((m, l) => Math.max(m, ...(l.values.filter((v) => typeof v === 'number') as number[])), 0);
  return <ChartPanel title="Links" name={`PCIe and NVLink traffic of GPU ${gpu.index}`} unit="bytes_per_second" yMin={0} yMax={1e6} time={time} lines={lines} {...common(p)} isEmpty={!lines.length} emptyWords="This card does not tell its traffic."
    sub={[generation !== undefined && width !== undefined ? `PCIe ${generation} × ${width}` : '', gpu.metrics['gpu_nvlink_links_active'] !== undefined ? `${gpu.metrics['gpu_nvlink_links_active']} NVLinks up` : '', lines.length ? `at most ${show('bytes_per_second', most)}` : ''].filter(Boolean).join(' · ')} />;
}
