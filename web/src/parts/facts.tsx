// The totals of everything that is shown, each with what it is measured against.
import type { JSX } from 'preact';
import type { Gpu } from '../api/types';
import { heatOf, isBusy, isHeldIdle, isThere, targetOf } from '../format/health';
import { Amount, amount, bytesOf, celsius, fixed, percent, watts } from '../format/numbers';
import { useTopics } from '../live/hooks';
import { store } from '../live/store';

interface Fact {
  name: string;
  value: Amount;
  note: string;
  level?: string;
}

const sum = (list: (number | undefined)[]): number | undefined => {
  const known = list.filter((v): v is number => v !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) : undefined;
};
const mean = (list: (number | undefined)[]): number | undefined => {
  const known = list.filter((v): v is number => v !== undefined);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : undefined;
};
const big = (v: number | undefined): Amount => (v !== undefined && v >= 1000 ? { text: fixed(v / 1000, 2), unit: 'kW' } : amount('watts', v));

export function facts(gpus: Gpu[]): Fact[] {
  const of = (name: string): (number | undefined)[] => gpus.map((g) => g.metrics[name]);
  const busy = gpus.filter(isBusy).length;
  const gone = gpus.filter((g) => !isThere(g)).length;
  const held = gpus.filter(isHeldIdle).length;
  const free = gpus.length - busy - gone - held;
  const power = sum(of('gpu_power_watts'));
  const limit = sum(gpus.map((g) => g.metrics['gpu_power_limit_enforced_watts'] ?? g.metrics['gpu_power_limit_watts']));
  const hottest = [...gpus].filter((g) => g.metrics['gpu_temperature_celsius'] !== undefined).sort((a, b) => (b.metrics['gpu_temperature_celsius'] ?? 0) - (a.metrics['gpu_temperature_celsius'] ?? 0))[0];
  const active = mean(of('gpu_sm_active_ratio'));
  const reported = mean(of('gpu_utilization_ratio'));
  const used = sum(of('gpu_memory_used_bytes'));
  const total = sum(of('gpu_memory_total_bytes'));
  const memory = bytesOf(used, total);
  const unit = memory.total.split('\u202f')[1] ?? '';
  const top = hottest?.metrics['gpu_temperature_celsius'];
  return [
    { name: 'GPUs', value: { text: `${busy}`, unit: `of ${gpus.length} busy` }, note: [free ? `${free} free` : 'none free', held ? `${held} held idle` : '', gone ? `${gone} not there` : ''].filter(Boolean).join(' · '), level: gone ? 'crit' : undefined },
    { name: 'Hottest', value: amount('celsius', top), note: hottest ? `${new Set(gpus.map((g) => g.node)).size > 1 ? `${hottest.node} ` : ''}GPU ${hottest.index}, target ${celsius(targetOf(hottest))}` : 'no temperature is known', level: hottest ? heatOf(hottest) : undefined },
    { name: 'Power', value: big(power), note: limit === undefined ? 'no limit is known' : `of ${limit >= 1000 ? `${fixed(limit / 1000, 2)}\u202fkW` : watts(limit)} allowed` },
    { name: 'Activity', value: amount('ratio', active ?? reported), note: active === undefined ? 'utilisation, mean' : `of SMs; util ${percent(reported)}` },
    { name: 'Memory', value: { text: memory.used, unit }, note: total === undefined ? '' : `of ${memory.total}` },
  ];
}

export function Facts(): JSX.Element {
  useTopics('tick', 'list');
  return (
    <dl class="facts">
      {facts(store.gpus()).map((f) => (
        <div class={`fact ${f.level ?? ''}`} key={f.name}>
          <dt>{f.name}</dt>
          <dd class="value">{f.value.text} <small>{f.value.unit}</small></dd>
          <dd class="note">{f.note}</dd>
        </div>
      ))}
    </dl>
  );
}
