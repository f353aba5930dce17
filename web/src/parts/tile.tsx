// A GPU as a small tile, for machines and fleets with many: its heat as colour and number, two bars, a mark when wrong.
import type { JSX } from 'preact';
import { absence, heatOf, isAlarm, isHeldIdle, isThere, notes, worst } from '../format/health';
import { percent, share, watts } from '../format/numbers';
import { useGpu } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';
import { powerScale } from './card';
import { Absent } from './small';

const width = (v: number | undefined): string => `${Math.round((v ?? 0) * 100)}%`;

export function GpuTile({ uuid, isFirst }: { uuid: string; isFirst: boolean }): JSX.Element | null {
  const gpu = useGpu(uuid);
  if (!gpu) return null;
  const temp = gpu.metrics['gpu_temperature_celsius'];
  const list = notes(gpu, store.now());
  const level = worst(list);
  const { power, most } = powerScale(gpu);
  const utilisation = gpu.metrics['gpu_utilization_ratio'];
  const users = [...new Set((gpu.processes ?? []).map((p) => p.user).filter(Boolean))].join(', ');
  const text = `GPU ${gpu.index}: ${temp ?? 'unknown'} degrees, ${watts(power)}, ${percent(utilisation)} used. ${list[0]?.text ?? ''}`;
  return (
    <a class={`tile ${heatOf(gpu)} ${level}${isThere(gpu) ? '' : ' gone'}`} href={href(`gpus/${uuid}`)} data-item data-gpu={gpu.index} tabIndex={isFirst ? 0 : -1} aria-label={text} title={text}>
      <span class="index">{gpu.index}</span>
      <span class="temp value">{temp === undefined ? <Absent why={absence(gpu, 'temperature')} /> : <>{Math.round(temp)}°</>}</span>
      <span class="mini" aria-hidden="true"><i style={{ width: width(share(power, most)) }} /></span>
      <span class="mini" aria-hidden="true"><i style={{ width: width(utilisation) }} /></span>
      <span class="who">{isAlarm(level) || level === 'warn' ? list[0]?.tag : isThere(gpu) ? users || (isHeldIdle(gpu) ? gpu.held?.[0]?.user : list[0]?.tag === 'free' ? 'free' : '\u00a0') : gpu.state}</span>
    </a>
  );
}
