// One GPU: how hot, how much power and under which settings, what it does, why it is slow, who is on it, what it is.
import type { JSX } from 'preact';
import type { Gpu } from '../api/types';
import { Strip, slowSentence } from '../charts/strip';
import { useHistory } from '../charts/history';
import { guardSentence, IDLE, isThere, notes, SLOW, withheld, worst } from '../format/health';
import { duration, show } from '../format/numbers';
import { shortModel } from '../format/labels';
import { rangeWords } from '../format/range';
import { useHolders } from '../live/holders';
import { useGpu, useTopics } from '../live/hooks';
import { here, href } from '../live/route';
import { store } from '../live/store';
import { Meters, Temperature } from '../parts/card';
import { OnIt } from '../parts/onit';
import { ProcessTable } from '../parts/processes';
import { RangePicker, useRange } from '../parts/range';
import { Chip, PageHead, Problem, useTitle } from '../parts/small';
import { ActivityPanel, ClockPanel, LinkPanel, MemoryPanel } from './gpu_work';
import { PowerBars, PowerPanel, TemperatureHistogram, TemperaturePanel } from './gpu_heat';
import { GpuEvents, Instances, InventoryPanel, useDetail, Xids } from './gpu_facts';
import { GuardPanel } from './gpu_guard';

const METRICS = [
  'gpu_temperature_celsius', 'gpu_memory_temperature_celsius', 'gpu_guard_target_celsius', 'gpu_guard_limit_ratio',
  'gpu_power_watts', 'gpu_power_limit_enforced_watts',
  'gpu_utilization_ratio', 'gpu_sm_active_ratio', 'gpu_tensor_active_ratio', 'gpu_dram_active_ratio',
  'gpu_memory_used_bytes', 'gpu_sm_clock_hertz', 'gpu_memory_clock_hertz',
  'gpu_pcie_tx_bytes_per_second', 'gpu_pcie_rx_bytes_per_second', 'gpu_nvlink_tx_bytes_per_second', 'gpu_nvlink_rx_bytes_per_second',
  IDLE, ...SLOW.map((s) => s.metric),
];
const WIDTH = 720;

function Neighbours({ gpu }: { gpu: Gpu }): JSX.Element {
  useTopics('list');
  const all = store.gpus();
  const at = all.findIndex((g) => g.uuid === gpu.uuid);
  const query = here().query;
  const link = (g: Gpu | undefined, words: string, sign: string): JSX.Element =>
    g ? <a class="button" href={href(`gpus/${g.uuid}`, query)} aria-label={`${words}: GPU ${g.index}`} title={`GPU ${g.index}`}>{sign}</a> : <span class="button off" aria-hidden="true">{sign}</span>;
  return <span class="neighbours">{link(all[at - 1], 'Previous', '‹')}{link(all[at + 1], 'Next', '›')}</span>;
}

function Now({ gpu }: { gpu: Gpu }): JSX.Element {
  const list = notes(gpu, store.now());
  return (
    <section class={`panel now ${worst(list)}${isThere(gpu) ? '' : ' gone'}`} aria-label="Now">
      <Temperature gpu={gpu} />
      <Meters gpu={gpu} />
      <div class="words">
        {list.map((n) => <p key={n.tag} class={n.level}><span class={`flag ${n.level}`}>{n.tag}</span>{n.text}</p>)}
        {withheld(gpu) === 0 && <p class="guard">{guardSentence(gpu)}</p>}
      </div>
    </section>
  );
}

export function GpuPage({ uuid, isAdmin }: { uuid: string; isAdmin: boolean }): JSX.Element {
  const gpu = useGpu(uuid);
  useHolders();
  const { range, setRange, onRange } = useRange();
  const loaded = useHistory([`gpu:${uuid}`], METRICS, range, WIDTH);
  const detail = useDetail(uuid);
  useTitle(gpu ? `GPU ${gpu.index}` : 'GPU');
  if (!gpu) return store.hasPicture ? <Problem>There is no GPU {uuid} here. <a href={href('')}>All GPUs</a></Problem> : <p class="busy">Asking the server…</p>;
  const when = rangeWords(range, store.now());
  const common = { gpu, loaded, when, onRange, inventory: detail?.inventory };
  return (
    <>
      <PageHead title={<>GPU {gpu.index}<Neighbours gpu={gpu} /></>} crumb={[gpu.node, shortModel(gpu.model), gpu.pci?.replace(/^0000(?=0000:)/, '')].filter(Boolean).join(' · ')}>
        <a class="button" href={href('compare', { of: `gpu:${uuid}`, metric: 'gpu_temperature_celsius' })}>Compare</a>
        <RangePicker range={range} setRange={setRange} />
      </PageHead>
      <Now gpu={gpu} />
      <OnIt uuid={uuid} index={gpu.index} range={range} when={when} now={loaded.to} />
      <div class="grid wide">
        <TemperaturePanel {...common} />
        <TemperatureHistogram {...common} />
        <PowerPanel {...common} />
        <PowerBars {...common} />
      </div>
      <section class="panel" aria-label="Why is it slow?">
        <header><h2>Why is it slow?</h2><p class="sub">{slowSentence(loaded.history, when)}</p></header>
        <Strip history={loaded.history} from={loaded.from} to={loaded.to} />
      </section>
      <div class="grid even">
        <ActivityPanel {...common} />
        <MemoryPanel {...common} />
        <ClockPanel {...common} />
        <LinkPanel {...common} />
      </div>
      <section class="panel" aria-label="On it now">
        <header><h2>On it now</h2>{gpu.processes && gpu.processes.length > 0 && <Chip>{gpu.processes.length}</Chip>}</header>
        <ProcessTable gpu={gpu} />
      </section>
      <Instances gpu={gpu} />
      <div class="grid even top">
        <div class="stack"><GuardPanel gpu={gpu} isAdmin={isAdmin} /><Xids gpu={gpu} /><GpuEvents gpu={gpu} /></div>
        <InventoryPanel gpu={gpu} inventory={detail?.inventory} />
      </div>
      {loaded.history && <p class="foot">{loaded.history.resolution === 'raw' ? (loaded.history.step_s ? `Readings in steps of ${show('seconds', loaded.history.step_s)}` : 'Every reading') : `Rolled up by the ${loaded.history.resolution}: mean, with lowest and highest, ${duration(loaded.history.step_s)} apart`}{loaded.tookMs !== undefined && `; the server took ${Math.round(loaded.tookMs)} ms`}.</p>}
    </>
  );
}
