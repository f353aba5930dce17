// The overview: what needs a person first, the totals, then a card for each GPU (or a tile, or a row).
import { useMemo, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import type { Gpu } from '../api/types';
import { isBusy, isHeldIdle, needsAttention, notes, rank, worst } from '../format/health';
import { plural } from '../format/numbers';
import { shortModel } from '../format/labels';
import { useClock, useTopics } from '../live/hooks';
import { useHolders } from '../live/holders';
import { goQuery, usePlace } from '../live/route';
import { store } from '../live/store';
import { GpuCard } from '../parts/card';
import { Facts } from '../parts/facts';
import { Attention } from '../parts/attention';
import { GpuTable } from '../parts/gpu_table';
import { GpuTile } from '../parts/tile';
import { roving } from '../parts/roving';
import { PageHead, Segment, useTitle } from '../parts/small';
import { NoGpus } from './empty';

type View = 'cards' | 'tiles' | 'table';
type Only = 'all' | 'attention' | 'busy' | 'free';
const MANY = 16;

const SORTS: { key: string; name: string; by?: (g: Gpu) => number }[] = [
  { key: 'index', name: 'number' },
  { key: 'attention', name: 'attention first' },
  { key: 'temperature', name: 'hottest', by: (g) => g.metrics['gpu_temperature_celsius'] ?? -1 },
  { key: 'power', name: 'most power', by: (g) => g.metrics['gpu_power_watts'] ?? -1 },
  { key: 'utilisation', name: 'busiest', by: (g) => g.metrics['gpu_utilization_ratio'] ?? -1 },
  { key: 'memory', name: 'most memory', by: (g) => g.metrics['gpu_memory_used_bytes'] ?? -1 },
];

/** A number alone is a card's or a process's; other words may stand anywhere. */
function matches(g: Gpu, words: string): boolean {
  const number = /^\s*(gpu\s*)?(\d+)\s*$/i.exec(words);
  if (number) return g.index === Number(number[2]) || (!number[1] && (g.processes ?? []).some((p) => p.pid === Number(number[2])));
  const hay = [`gpu ${g.index}`, g.model, g.uuid, g.node, g.state, g.pci, ...(g.processes ?? []).flatMap((p) => [p.user, p.container, p.command, String(p.pid)]), ...(g.held ?? []).flatMap((h) => [h.user, h.name])].join(' ').toLowerCase();
  return words.toLowerCase().split(/\s+/).every((w) => hay.includes(w));
}

export function chosen(gpus: Gpu[], only: Only, words: string, sort: string, now: number): Gpu[] {
  const list = gpus.filter((g) => {
    if (words && !matches(g, words)) return false;
    if (only === 'attention') return needsAttention(worst(notes(g, now)));
    if (only === 'busy') return isBusy(g);
    if (only === 'free') return g.state === 'ok' && !isBusy(g) && !isHeldIdle(g);
    return true;
  });
  const by = SORTS.find((s) => s.key === sort)?.by;
  if (sort === 'attention') return list.sort((a, b) => rank(worst(notes(a, now))) - rank(worst(notes(b, now))));
  return by ? list.sort((a, b) => by(b) - by(a)) : list;
}

function machineWords(gpus: Gpu[]): string {
  const models = new Map<string, number>();
  for (const g of gpus) models.set(shortModel(g.model), (models.get(shortModel(g.model)) ?? 0) + 1);
  const driver = [...new Set(store.nodes().map((n) => n.driver?.version).filter(Boolean))];
  return [[...models].map(([m, n]) => `${n} × ${m}`).join(', '), driver.length === 1 ? `driver ${driver[0]}` : ''].filter(Boolean).join(' · ');
}

function Cards({ gpus, view }: { gpus: Gpu[]; view: View }): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  if (view === 'table') return <GpuTable uuids={gpus.map((g) => g.uuid)} />;
  return (
    <ul class={`${view}${gpus.length % 4 === 0 && gpus.length <= 8 ? ' fours' : ''}`} ref={list} onKeyDown={(e) => roving(e, list.current)} onFocusIn={(e) => roving.remember(e, list.current)} aria-label="GPUs; arrow keys move between them">
      {gpus.map((g, i) => <li key={g.uuid}>{view === 'tiles' ? <GpuTile uuid={g.uuid} isFirst={i === 0} /> : <GpuCard uuid={g.uuid} isFirst={i === 0} />}</li>)}
    </ul>
  );
}

export function Overview(): JSX.Element {
  useTopics('list');
  useHolders();
  const { query } = usePlace();
  const now = useClock(5);
  const nodes = store.nodes();
  useTitle(nodes.length === 1 ? (nodes[0]?.name ?? '') : 'Overview');
  const all = store.gpus();
  const view = (query.get('view') as View | null) ?? (all.length > MANY ? 'tiles' : 'cards');
  const only = (query.get('show') as Only | null) ?? 'all';
  const sort = query.get('sort') ?? 'index';
  const words = query.get('q') ?? '';
  const gpus = useMemo(() => chosen(all, only, words, sort, now), [all.length, only, words, sort, now, store.picture]);
  if (store.hasPicture && !all.length) return <NoGpus />;
  const put = (key: string, value: string, standard: string): void => goQuery((q) => (value === standard ? q.delete(key) : q.set(key, value)), true);
  const sections = nodes.length > 1 ? nodes.map((n) => ({ name: n.name, gpus: gpus.filter((g) => g.node === n.name) })).filter((s) => s.gpus.length) : [{ name: '', gpus }];
  return (
    <>
      <PageHead title={nodes.length === 1 ? nodes[0]?.name : plural(nodes.length, 'node')} crumb={machineWords(all)} />
      <Attention />
      <Facts />
      <div class="tools" role="search" aria-label="Choose GPUs">
        <input type="search" placeholder="Find a GPU, a user, a program" aria-label="Find a GPU, a user, a container, a program" value={words} onInput={(e) => put('q', e.currentTarget.value, '')} />
        <Segment<Only> label="Show" value={only} onPick={(k) => put('show', k, 'all')} options={[{ key: 'all', name: 'All' }, { key: 'attention', name: 'Attention' }, { key: 'busy', name: 'Busy' }, { key: 'free', name: 'Free' }]} />
        <label class="pick">sorted by <select value={sort} onChange={(e) => put('sort', e.currentTarget.value, 'index')}>{SORTS.map((s) => <option key={s.key} value={s.key}>{s.name}</option>)}</select></label>
        <span class="spacer" />
        <Segment<View> label="View" value={view} onPick={(k) => put('view', k, all.length > MANY ? 'tiles' : 'cards')} options={[{ key: 'cards', name: 'Cards' }, { key: 'tiles', name: 'Compact' }, { key: 'table', name: 'Table' }]} />
      </div>
      {sections.map((s) => (
        <section key={s.name} class={s.name && view === 'tiles' ? 'rack' : ''} aria-label={s.name ? `GPUs of ${s.name}` : 'GPUs'}>
          {s.name && <h2 class="node">{s.name} <small>{plural(s.gpus.length, 'GPU')}</small></h2>}
          <Cards gpus={s.gpus} view={view} />
        </section>
      ))}
      {!gpus.length && store.hasPicture && <p class="empty">No GPU fits this choice. <button type="button" class="link" onClick={() => goQuery((q) => ['q', 'show'].forEach((k) => q.delete(k)), true)}>Show all {all.length}</button></p>}
    </>
  );
}
