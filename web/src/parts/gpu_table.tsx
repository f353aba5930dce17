// All GPUs as rows, for those who compare figures.
import type { JSX } from 'preact';
import { absence, heatOf, notes, worst } from '../format/health';
import { bytesOf, celsius, megahertz, percent, watts } from '../format/numbers';
import { shortModel } from '../format/labels';
import { useGpu } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';
import { powerScale } from './card';
import { WhoChips } from './processes';
import { Absent } from './small';

function Row({ uuid }: { uuid: string }): JSX.Element | null {
  const gpu = useGpu(uuid);
  if (!gpu) return null;
  const m = gpu.metrics;
  const list = notes(gpu, store.now());
  const { power, limit } = powerScale(gpu);
  const memory = bytesOf(m['gpu_memory_used_bytes'], m['gpu_memory_total_bytes']);
  const or = (v: number | undefined, what: string, text: JSX.Element | string): JSX.Element | string => (v === undefined ? <Absent why={absence(gpu, what)} /> : text);
  return (
    <tr class={worst(list)} data-gpu={gpu.index}>
      <th scope="row"><a href={href(`gpus/${uuid}`)}>GPU {gpu.index}</a></th>
      <td>{shortModel(gpu.model)}</td>
      <td class={`num temp ${heatOf(gpu)}`}><b class="value">{or(m['gpu_temperature_celsius'], 'temperature', celsius(m['gpu_temperature_celsius']))}</b></td>
      <td class="num">{or(m['gpu_memory_temperature_celsius'], 'memory temperature', celsius(m['gpu_memory_temperature_celsius']))}</td>
      <td class="num">{or(power, 'power', <>{Math.round(power ?? 0)} <small>/ {watts(limit)}</small></>)}</td>
      <td class="num">{or(m['gpu_utilization_ratio'], 'utilisation', percent(m['gpu_utilization_ratio']))}</td>
      <td class="num">{or(m['gpu_sm_active_ratio'], 'SM activity', percent(m['gpu_sm_active_ratio']))}</td>
      <td class="num">{or(m['gpu_memory_used_bytes'], 'memory', <>{memory.used} <small>/ {memory.total}</small></>)}</td>
      <td class="num">{or(m['gpu_sm_clock_hertz'], 'clock', megahertz(m['gpu_sm_clock_hertz']))}</td>
      <td><span class="chips"><WhoChips gpu={gpu} most={1} /></span></td>
      <td class={`note ${worst(list)}`}>{list[0] ? (list[0].brief ?? list[0].text) : 'well'}</td>
    </tr>
  );
}

export function GpuTable({ uuids }: { uuids: string[] }): JSX.Element {
  return (
    <div class="panel scroll" tabIndex={0} role="region" aria-label="GPUs as a table">
      <table class="gpus">
        <thead><tr><th>GPU</th><th>Model</th><th class="num">Core</th><th class="num">Memory</th><th class="num">Power</th><th class="num">Utilisation</th><th class="num">SM active</th><th class="num">Memory used</th><th class="num">SM clock</th><th>Who</th><th>State</th></tr></thead>
        <tbody>{uuids.map((u) => <Row key={u} uuid={u} />)}</tbody>
      </table>
    </div>
  );
}
