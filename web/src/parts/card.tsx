// A GPU on the overview. The temperature and what is wrong are loud, everything else is quiet.
import type { JSX } from 'preact';
import type { Gpu } from '../api/types';
import { Spark } from '../charts/spark';
import { absence, heatOf, isAlarm, isThere, notes, targetOf, worst } from '../format/health';
import { amount, bytesOf, percent, share, watts } from '../format/numbers';
import { shortModel } from '../format/labels';
import { useGpu } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';
import { WhoChips } from './processes';
import { Absent, Chip, Meter } from './small';

export function Temperature({ gpu }: { gpu: Gpu }): JSX.Element {
  const temp = gpu.metrics['gpu_temperature_celsius'];
  const target = targetOf(gpu);
  return (
    <span class={`temp ${heatOf(gpu)}`}>
      {temp === undefined ? <Absent why={absence(gpu, 'temperature')} /> : <b class="value">{amount('celsius', temp).text}</b>}
      <small>{target === undefined ? '°C' : <>/ {Math.round(target)} °C</>}</small>
    </span>
  );
}

export function powerScale(gpu: Gpu): { power?: number; limit?: number; most?: number } {
  const m = gpu.metrics;
  const limit = m['gpu_power_limit_enforced_watts'] ?? m['gpu_power_limit_watts'];
  return { power: m['gpu_power_watts'], limit, most: m['gpu_power_limit_max_watts'] ?? limit };
}

export function Meters({ gpu }: { gpu: Gpu }): JSX.Element {
  const m = gpu.metrics;
  const { power, limit, most } = powerScale(gpu);
  const used = bytesOf(m['gpu_memory_used_bytes'], m['gpu_memory_total_bytes']);
  const active = m['gpu_sm_active_ratio'];
  const utilisation = m['gpu_utilization_ratio'];
  return (
    <div class="meters">
      <Meter name="power" share={share(power, most)} tick={limit !== undefined && most ? limit / most : undefined}
        title={limit === undefined ? undefined : `Limit ${watts(limit)}; the card may have up to ${watts(most)}`}
        value={power === undefined ? <Absent why={absence(gpu, 'power')} /> : <>{Math.round(power)} <small>/ {limit === undefined ? '' : Math.round(limit)} W</small></>} />
      <Meter name="activity" share={active ?? utilisation} outline={active === undefined ? undefined : utilisation}
        title={active === undefined ? 'Utilisation: share of time in which a kernel ran' : 'Filled: SMs active. Outline: utilisation, the share of time in which a kernel ran'}
        value={utilisation === undefined ? <Absent why={absence(gpu, 'utilisation')} /> : active === undefined ? percent(utilisation) : <>{percent(active)} <small>util {percent(utilisation)}</small></>} />
      <Meter name="memory" share={share(m['gpu_memory_used_bytes'], m['gpu_memory_total_bytes'])}
        value={m['gpu_memory_used_bytes'] === undefined ? <Absent why={absence(gpu, 'memory')} /> : <>{used.used} <small>/ {used.total}</small></>} />
    </div>
  );
}

export function GpuCard({ uuid, isFirst }: { uuid: string; isFirst: boolean }): JSX.Element | null {
  const gpu = useGpu(uuid);
  if (!gpu) return null;
  const list = notes(gpu, store.now());
  const level = worst(list);
  const first = list[0];
  const name = `GPU ${gpu.index}, ${shortModel(gpu.model)}: ${gpu.metrics['gpu_temperature_celsius'] ?? 'unknown'} degrees. ${first?.text ?? ''}`;
  return (
    <a class={`panel gpu ${level}${isThere(gpu) ? '' : ' gone'}`} href={href(`gpus/${uuid}`)} data-item data-gpu={gpu.index} tabIndex={isFirst ? 0 : -1} aria-label={name}>
      <header>
        <span class="index">GPU {gpu.index}</span>
        <span class="model">{shortModel(gpu.model)}</span>
        {first && (isAlarm(level) || level === 'warn') && <span class={`flag ${level}`}>{first.tag}</span>}
        <Temperature gpu={gpu} />
      </header>
      <Spark uuid={uuid} />
      <Meters gpu={gpu} />
      <div class="chips">
        <WhoChips gpu={gpu} />
        {list.filter((n) => n.tag === 'free').map((n) => <Chip key={n.tag} level="good">free</Chip>)}
      </div>
      <p class={`note ${level}`}>{first && first.tag !== 'free' && (first.brief ?? first.text)}</p>
    </a>
  );
}
