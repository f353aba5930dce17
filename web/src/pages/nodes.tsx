// The machines: CPU, memory, disk, network and load of each, now and over time, and what their GPUs take together.
import type { JSX } from 'preact';
import { useHistory } from '../charts/history';
import { ChartPanel } from '../charts/panel';
import { send, sentence } from '../api/client';
import type { Metrics, Node } from '../api/types';
import { nodeTrouble } from '../format/health';
import { bytes, bytesOf, duration, fixed, percent, plural, share, show, watts } from '../format/numbers';
import { rangeWords } from '../format/range';
import { useClock, useNode, useTopics } from '../live/hooks';
import { go, href } from '../live/route';
import { store } from '../live/store';
import { RangePicker, useRange } from '../parts/range';
import { say } from '../parts/say';
import { Absent, Meter, PageHead, Problem, useTitle } from '../parts/small';
import { linesOf } from './gpu_work';
import { useMemo, useState } from 'preact/hooks';
import { find, summary } from '../format/series';

const METRICS = [
  'host_cpu_utilization_ratio', 'host_cpu_iowait_ratio', 'host_load1', 'host_load5', 'host_load15', 'host_memory_used_bytes', 'host_swap_used_bytes',
  'host_disk_used_bytes', 'host_disk_read_bytes_per_second', 'host_disk_written_bytes_per_second', 'host_disk_busy_ratio', 'host_network_received_bytes_per_second', 'host_network_sent_bytes_per_second',
];

function HostMeters({ host }: { host: Metrics }): JSX.Element {
  const memory = bytesOf(host['host_memory_used_bytes'], host['host_memory_total_bytes']);
  const disk = bytesOf(host['host_disk_used_bytes'], host['host_disk_total_bytes']);
  const cpus = host['host_cpus'];
  const load = host['host_load1'];
  const or = (v: number | undefined, text: JSX.Element | string): JSX.Element | string => (v === undefined ? <Absent why="the host does not tell" /> : text);
  return (
    <div class="meters">
      <Meter name="CPU" share={host['host_cpu_utilization_ratio']} value={or(host['host_cpu_utilization_ratio'], <>{percent(host['host_cpu_utilization_ratio'])} <small>{cpus === undefined ? '' : `of ${plural(cpus, 'CPU')}`}</small></>)} />
      <Meter name="memory" share={share(host['host_memory_used_bytes'], host['host_memory_total_bytes'])} value={or(host['host_memory_used_bytes'], <>{memory.used} <small>/ {memory.total}</small></>)} />
      <Meter name="disk" share={share(host['host_disk_used_bytes'], host['host_disk_total_bytes'])} value={or(host['host_disk_used_bytes'], <>{disk.used} <small>/ {disk.total}</small></>)} />
      <Meter name="load" share={share(load, cpus)} value={or(load, <>{fixed(load ?? 0, 2)} <small>{cpus === undefined ? '' : `/ ${cpus}`}</small></>)} />
    </div>
  );
}

function hostSentence(h: Metrics): string {
  const words: string[] = [];
  const load = h['host_load1'];
  const cpus = h['host_cpus'];
  if (load !== undefined && cpus) words.push(load > cpus ? `More work than CPUs: load ${fixed(load, 1)} on ${cpus}.` : 'CPUs keep up with the work.');
  const disk = share(h['host_disk_used_bytes'], h['host_disk_total_bytes']);
  if (disk !== undefined && disk > 0.9) words.push(`The disk is ${percent(disk)} full.`);
  const free = h['host_memory_available_bytes'];
  const total = h['host_memory_total_bytes'];
  if (free !== undefined && total && free / total < 0.1) words.push(`Only ${bytes(free)} of memory are left.`);
  const wait = h['host_cpu_iowait_ratio'];
  if (wait !== undefined && wait > 0.2) words.push(`CPUs wait for the disk ${percent(wait)} of the time.`);
  return words.join(' ');
}

function NodeCard({ node }: { node: Node }): JSX.Element {
  const t = node.totals;
  const h = node.host ?? {};
  const memory = bytesOf(t?.memory_used_bytes, t?.memory_total_bytes);
  return (
    <a class={`panel gpu node ${node.state === 'ok' ? '' : 'crit gone'}`} href={href(`nodes/${node.name}`)} data-item>
      <header><span class="index">{node.name}</span>{node.state !== 'ok' && <span class="flag crit">{node.state}</span>}<span class="model">{node.version && `gpumgr ${node.version}`}</span></header>
      <HostMeters host={h} />
      <p class="note">{[t?.gpus !== undefined && `${t.busy ?? 0} of ${plural(t.gpus, 'GPU')} busy`, t?.power_watts !== undefined && `${watts(t.power_watts)} of ${watts(t.power_limit_watts)}`, t?.memory_total_bytes !== undefined && `GPU memory ${memory.used} / ${memory.total}`].filter(Boolean).join(' · ')}</p>
      <p class="note">{node.state === 'ok' ? (h['host_uptime_seconds'] === undefined ? '\u00a0' : `up for ${duration(h['host_uptime_seconds'])}`) : nodeTrouble(node, store.now())}</p>
    </a>
  );
}

/** For a machine that will not come back: taken off the list after a second word. */
function Forget({ name }: { name: string }): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState('');
  const forget = async (): Promise<void> => {
    try {
      await send('DELETE', `nodes/${encodeURIComponent(name)}`);
      say(`${name} is forgotten.`);
      go(href('nodes'));
    } catch (e) {
      setProblem(sentence(e));
    }
  };
  return (
    <div class="buttons">
      {problem && <Problem>{problem}</Problem>}
      {isAsking ? <><button type="button" class="danger" onClick={() => void forget()}>Really forget it</button><button type="button" onClick={() => setAsking(false)}>Keep</button></> : <button type="button" title="Takes it off the lists until it comes back; its history stays" onClick={() => setAsking(true)}>Forget this machine</button>}
    </div>
  );
}

function NodeDetail({ name, isAdmin }: { name: string; isAdmin: boolean }): JSX.Element {
  const node = useNode(name);
  const now = useClock(5);
  const { range, setRange, onRange } = useRange({ kind: 'last', seconds: 3600 });
  const loaded = useHistory([`host:${name}`], METRICS, range, 700);
  const h = loaded.history;
  const plots = useMemo(() => ({
    cpu: linesOf(h, [{ metric: 'host_cpu_utilization_ratio', label: 'in use', colour: 'series1', fill: 'series1' }, { metric: 'host_cpu_iowait_ratio', label: 'waiting for the disk', colour: 'series4' }]),
    load: linesOf(h, [{ metric: 'host_load1', label: '1 min', colour: 'series1' }, { metric: 'host_load5', label: '5 min', colour: 'series2' }, { metric: 'host_load15', label: '15 min', colour: 'series3' }]),
    memory: linesOf(h, [{ metric: 'host_memory_used_bytes', label: 'in use', colour: 'series1', fill: 'series1' }, { metric: 'host_swap_used_bytes', label: 'swap', colour: 'series4' }]),
    space: linesOf(h, [{ metric: 'host_disk_used_bytes', label: 'in use', colour: 'series1', fill: 'series1' }]),
    disk: linesOf(h, [{ metric: 'host_disk_read_bytes_per_second', label: 'read', colour: 'series1' }, { metric: 'host_disk_written_bytes_per_second', label: 'written', colour: 'series2' }]),
    network: linesOf(h, [{ metric: 'host_network_received_bytes_per_second', label: 'received', colour: 'series1' }, { metric: 'host_network_sent_bytes_per_second', label: 'sent', colour: 'series2' }]),
  }), [h]);
  if (!node) return store.hasPicture ? <Problem>There is no node {name}. <a href={href('nodes')}>All nodes</a></Problem> : <p class="busy">Asking the server…</p>;
  const host = node.host ?? {};
  const common = { from: loaded.from, to: loaded.to, isLoading: loaded.isLoading, error: loaded.error, onRange, height: 168, syncKey: 'node', yMin: 0 };
  const most = (metric: string, unit: string): string => {
    const s = summary(find(h, metric));
    return s ? `mean ${show(unit, s.mean)}, at most ${show(unit, s.max)} in ${rangeWords(range, store.now())}` : '';
  };
  return (
    <>
      <PageHead title={node.name} crumb={[node.driver?.version && `driver ${node.driver.version}`, node.version && `gpumgr ${node.version}`, host['host_uptime_seconds'] !== undefined && `up for ${duration(host['host_uptime_seconds'])}`].filter(Boolean).join(' · ')}><RangePicker range={range} setRange={setRange} /></PageHead>
      <section class={`panel now host ${node.state === 'ok' ? '' : 'crit gone'}`} aria-label="Now">
        <HostMeters host={host} />
        <div class="words">
          <p>{nodeTrouble(node, now) || hostSentence(host) || 'It answers.'}</p>
          {!!node.gpus?.length && <p><a href={href('compare', { of: node.gpus.map((u) => `gpu:${u}`).join(), metric: 'gpu_power_watts' })}>Compare its {plural(node.gpus.length, 'GPU')}</a></p>}
          {node.state === 'gone' && (isAdmin ? <Forget name={name} /> : <p class="dim">An administrator can take it off the list.</p>)}
        </div>
      </section>
      <div class="grid even">
        <ChartPanel title="CPU" name={`CPU of ${name}`} unit="ratio" yMax={1} {...plots.cpu} {...common} sub={most('host_cpu_utilization_ratio', 'ratio')} isEmpty={!plots.cpu.lines.length} />
        <ChartPanel title="Memory" name={`Memory of ${name}`} unit="bytes" yMax={host['host_memory_total_bytes']} {...plots.memory} {...common} sub={most('host_memory_used_bytes', 'bytes')} isEmpty={!plots.memory.lines.length} />
        <ChartPanel title="Load" name={`Load of ${name}`} unit="number" {...plots.load} {...common} marks={host['host_cpus'] ? [{ value: host['host_cpus'], label: `${host['host_cpus']} CPUs`, colour: 'faint' }] : []} sub="tasks that run or wait" isEmpty={!plots.load.lines.length} />
        <ChartPanel title="Disk space" name={`Disk space of ${name}`} unit="bytes" yMax={host['host_disk_total_bytes']} {...plots.space} {...common} sub="of the root file system" isEmpty={!plots.space.lines.length} />
        <ChartPanel title="Disk" name={`Disk traffic of ${name}`} unit="bytes_per_second" yMax={1e6} {...plots.disk} {...common} sub={host['host_disk_busy_ratio'] === undefined ? '' : `busy ${percent(host['host_disk_busy_ratio'])} of the time now`} isEmpty={!plots.disk.lines.length} />
        <ChartPanel title="Network" name={`Network traffic of ${name}`} unit="bytes_per_second" yMax={1e6} {...plots.network} {...common} sub={most('host_network_received_bytes_per_second', 'bytes_per_second')} isEmpty={!plots.network.lines.length} />
      </div>
    </>
  );
}

function NodeList(): JSX.Element {
  useTopics('tick', 'list');
  const nodes = store.nodes();
  return (
    <>
      <PageHead title="Nodes" crumb={nodes.length ? plural(nodes.length, 'machine') : ''} />
      {nodes.length ? <div class="cards">{nodes.map((n) => <NodeCard key={n.name} node={n} />)}</div> : <section class="panel blank"><h2>No node yet</h2><p>A node appears here when it first reports. <code>gpumgr up</code> runs one beside the server.</p></section>}
    </>
  );
}

export function Nodes({ name, isAdmin }: { name: string; isAdmin: boolean }): JSX.Element {
  useTopics('list');
  const only = store.nodes().length === 1 ? store.nodes()[0]?.name : undefined;
  const shown = name || only;
  useTitle(shown ?? 'Nodes');
  return shown ? <NodeDetail key={shown} name={shown} isAdmin={isAdmin} /> : <NodeList />;
}
