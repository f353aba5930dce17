// What is known of one GPU besides its curves: events, XIDs with advice, what the card is.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get } from '../api/client';
import type { Gpu, GpuEvent, Inventory } from '../api/types';
import { bytesOf, celsius, fixed, percent, plural } from '../format/numbers';
import { moment } from '../format/times';
import { useTopics } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';
import { EventList } from '../parts/events';
import { addEvent } from '../live/state';

/** The GPU with its inventory: asked once, and again when the card comes back. */
export function useDetail(uuid: string): Gpu | undefined {
  const [detail, setDetail] = useState<Gpu>();
  const state = store.picture.gpus.get(uuid)?.state;
  useEffect(() => {
    const abort = new AbortController();
    get<Gpu>(`gpus/${uuid}`, undefined, abort.signal).then(setDetail, () => {});
    return () => abort.abort();
  }, [uuid, state]);
  return detail?.uuid === uuid ? detail : undefined;
}

export function GpuEvents({ gpu }: { gpu: Gpu }): JSX.Element {
  useTopics('events');
  const [old, setOld] = useState<GpuEvent[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    get<{ events: GpuEvent[] }>('events', { gpu: gpu.uuid, limit: 30 }, abort.signal).then((got) => setOld(got.events), () => {});
    return () => abort.abort();
  }, [gpu.uuid]);
  const live = store.events.filter((e) => e.gpu === gpu.uuid);
  const all = live.reduce((list, e) => addEvent(list, e), old).slice(0, 8);
  return (
    <section class="panel" aria-label="Events">
      <header><h2>Events</h2><p class="sub">the newest first</p><a class="quiet" href={href('events', { gpu: gpu.uuid })}>All</a></header>
      {all.length ? <EventList events={all} withGpu={false} /> : <p class="empty">Nothing has happened to it yet.</p>}
    </section>
  );
}

/** What an XID means: from the API where it says so, else from the event that told of it. */
function meaning(gpu: Gpu, code: number, told: { what?: string; advice?: string }): { what: string; advice: string } {
  const event = store.events.find((e) => e.kind === 'xid' && e.gpu === gpu.uuid && (e.code === code || new RegExp(`^XID ${code}\\b`).test(e.text)));
  const [what = '', advice = ''] = (event?.text.replace(/^XID \d+[^:]*: /, '') ?? '').split(/; (.*)/);
  return { what: told.what ?? what, advice: told.advice ?? advice };
}

export function Xids({ gpu }: { gpu: Gpu }): JSX.Element {
  useTopics('events');
  const xids = gpu.xids ?? [];
  return (
    <section class="panel" aria-label="XID errors">
      <header><h2>XID errors</h2><p class="sub">what the driver reported, and what to do</p></header>
      {xids.length ? (
        <ul class="xids">
          {xids.map((x) => {
            const { what, advice } = meaning(gpu, x.code, x);
            return <li key={x.code}><b>XID {x.code}</b> <span>{what || 'see NVIDIA\'s list of XIDs'}</span><span class="dim">{x.count === 1 ? 'once' : `${x.count} times`}, last {moment(x.last, store.now())}</span>{advice && <p class="advice">{advice.charAt(0).toUpperCase() + advice.slice(1)}.</p>}</li>;
          })}
        </ul>
      ) : <p class="empty">None since the sampler started.</p>}
    </section>
  );
}

/** The parts of a card that is divided (MIG), each with what it does. */
export function Instances({ gpu }: { gpu: Gpu }): JSX.Element | null {
  const list = gpu.instances ?? [];
  if (!list.length) return null;
  return (
    <section class="panel" aria-label="Instances">
      <header><h2>Instances</h2><p class="sub">the card is divided into {plural(list.length, 'part')}</p></header>
      <div class="scroll" tabIndex={0} role="region" aria-label="Instances of the card">
        <table>
          <thead><tr><th>Instance</th><th>Profile</th><th>State</th><th class="num">Memory</th><th class="num">SMs active</th><th class="num">Processes</th></tr></thead>
          <tbody>
            {list.map((i) => {
              const memory = bytesOf(i.metrics['gpu_memory_used_bytes'], i.metrics['gpu_memory_total_bytes']);
              return <tr key={i.uuid}><th scope="row">{i.gpu_instance ?? i.index}</th><td>{i.model.replace(/^.*MIG /, '')}</td><td>{i.state}</td><td class="num">{memory.used} <small>/ {memory.total || '–'}</small></td><td class="num">{percent(i.metrics['gpu_sm_active_ratio'])}</td><td class="num">{i.processes ? i.processes.length : '–'}</td></tr>;
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const yesNo = (v: boolean | undefined): string | undefined => (v === undefined ? undefined : v ? 'on' : 'off');

function rows(gpu: Gpu, inventory: Inventory | undefined): [string, string | undefined][] {
  const i = inventory ?? {};
  const limits = i.power_limits;
  const heat = i.temperature_limits;
  return [
    ['Model', gpu.model],
    ['UUID', gpu.uuid],
    ['Serial number', i.serial],
    ['Board part', i.board_part],
    ['Architecture', i.architecture],
    ['Cores', i.cores === undefined ? undefined : fixed(i.cores, 0)],
    ['VBIOS', i.vbios],
    ['Driver', i.driver],
    ['PCIe', i.pci?.generation_max === undefined ? gpu.pci : `${gpu.pci ?? ''} · at most generation ${i.pci.generation_max} × ${i.pci.width_max}`],
    ['Power limits', limits?.min_watts === undefined ? undefined : `${limits.min_watts} to ${limits.max_watts} W, usually ${limits.default_watts} W`],
    ['Slows itself at', heat?.['slowdown_celsius'] === undefined ? undefined : celsius(heat['slowdown_celsius'])],
    ['Shuts down at', heat?.['shutdown_celsius'] === undefined ? undefined : celsius(heat['shutdown_celsius'])],
    ['Can be steered by', i.control?.join(', ')],
    ['ECC', yesNo(i.ecc)],
    ['Persistence', yesNo(i.persistence)],
    ['MIG', yesNo(i.mig)],
  ];
}

export function InventoryPanel({ gpu, inventory }: { gpu: Gpu; inventory: Inventory | undefined }): JSX.Element {
  return (
    <section class="panel" aria-label="What it is">
      <header><h2>What it is</h2></header>
      <dl class="pairs">{rows(gpu, inventory).filter(([, v]) => v).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>
    </section>
  );
}
