// Compare: any metrics, of any GPUs, nodes and groups, on one chart each. The address holds the choice.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get } from '../api/client';
import type { Group, MetricInfo } from '../api/types';
import { useHistory } from '../charts/history';
import { ChartPanel } from '../charts/panel';
import type { Line } from '../charts/plot';
import { metricLabel, metricShelf } from '../format/labels';
import { Range, rangeWords } from '../format/range';
import { align, summary } from '../format/series';
import { show } from '../format/numbers';
import { useTopics } from '../live/hooks';
import { goQuery, usePlace } from '../live/route';
import { store } from '../live/store';
import { RangePicker, useRange } from '../parts/range';
import { PageHead, useTitle } from '../parts/small';

const COLOURS = 8;
const MOST = 16;
const WIDTH = 1000;

export function nameOf(of: string): string {
  const at = of.indexOf(':');
  const kind = of.slice(0, at);
  const name = of.slice(at + 1);
  if (kind !== 'gpu') return kind === 'host' ? `host ${name}` : name;
  const gpu = store.picture.gpus.get(name);
  return gpu ? `${store.nodes().length > 1 ? `${gpu.node} ` : ''}GPU ${gpu.index}` : name.slice(0, 12);
}

/** A line for each member, the same colour in every chart; beyond eight the second round is dashed. */
function colourOf(i: number): Pick<Line, 'colour' | 'dash'> {
  return { colour: `series${(i % COLOURS) + 1}`, dash: i >= COLOURS ? [6, 4] : undefined };
}

function MetricChart({ of, metric, info, range, onRange }: { of: string[]; metric: string; info: MetricInfo | undefined; range: Range; onRange: (a: number, b: number) => void }): JSX.Element {
  const members = metric.startsWith('host_') ? [...new Set(of.map((o) => (o.startsWith('gpu:') ? `host:${store.picture.gpus.get(o.slice(4))?.node}` : o.replace(/^node:/, 'host:'))))].filter((o) => o.startsWith('host:')) : of;
  const loaded = useHistory(members, [metric], range, WIDTH);
  const h = loaded.history;
  const { time, lines } = useMemo(() => {
    const present = members.map((o, i) => ({ i, o, s: h?.series.find((s) => s.of === o && s.metric === metric) })).filter((p) => p.s !== undefined);
    const frame = align(present.flatMap(({ s }) => [s?.mean, s?.min, s?.max].filter((c) => c !== undefined).map((value) => ({ time: s?.time ?? [], value }))));
    let next = 0;
    const made = present.map(({ i, o, s }): Line => {
      const values = frame.columns[next++] ?? [];
      const min = s?.min ? frame.columns[next++] : undefined;
      const max = s?.max ? frame.columns[next++] : undefined;
      const alone = present.length <= 4;
      return { label: nameOf(o), values, ...(alone ? { min, max } : {}), kind: 'line', width: 1.5, ...colourOf(i) };
    });
    return { time: frame.time, lines: made };
  }, [h, metric, members.join()]);
  const unit = info?.unit ?? 'number';
  const ranked = (h?.series ?? []).map((s) => ({ of: s.of, sum: summary(s) })).filter((r) => r.sum).sort((a, b) => (b.sum?.mean ?? 0) - (a.sum?.mean ?? 0));
  const first = ranked[0];
  const last = ranked[ranked.length - 1];
  const sub = !first?.sum ? '' : ranked.length === 1 || !last?.sum ? `mean ${show(unit, first.sum.mean)}, at most ${show(unit, first.sum.max)} in ${rangeWords(range, store.now())}` : `highest on average: ${nameOf(first.of)} with ${show(unit, first.sum.mean)}; lowest: ${nameOf(last.of)} with ${show(unit, last.sum.mean)}`;
  return <ChartPanel title={metricLabel(metric)} sub={sub} name={`${metricLabel(metric)} of ${members.map(nameOf).join(', ')}`} unit={unit} time={time} lines={lines} from={loaded.from} to={loaded.to} height={300} syncKey="compare"
    yMin={unit === 'ratio' || unit === 'bool' ? 0 : undefined} yMax={unit === 'ratio' || unit === 'bool' ? 1 : undefined} isLoading={loaded.isLoading} error={loaded.error} isEmpty={!lines.length} emptyWords="None of the chosen has this metric in this time." onRange={onRange}
    note={h && <p class="foot">{info?.help ? `${info.help}. ` : ''}{h.resolution === 'raw' ? (h.step_s ? `Readings in steps of ${show('seconds', h.step_s)}` : 'Every reading') : `Rolled up by the ${h.resolution}${lines.length <= 4 ? '; the band is lowest to highest' : '; the band shows with four lines or fewer'}`}.</p>} />;
}

function useCatalogue(): MetricInfo[] {
  const [list, setList] = useState<MetricInfo[]>([]);
  useEffect(() => {
    get<{ metrics: MetricInfo[] }>('metrics').then((got) => setList(got.metrics), () => {});
  }, []);
  return list;
}

function useGroups(): Group[] {
  const [list, setList] = useState<Group[]>([]);
  useEffect(() => {
    get<{ groups: Group[] }>('groups').then((got) => setList(got.groups), () => {});
  }, []);
  return list;
}

function Members({ of, groups, onPick }: { of: string[]; groups: Group[]; onPick: (of: string[]) => void }): JSX.Element {
  const toggle = (key: string): void => onPick(of.includes(key) ? of.filter((o) => o !== key) : [...of, key].slice(-MOST));
  const box = (key: string, name: string): JSX.Element => {
    const at = of.indexOf(key);
    return <label key={key} class="member"><input type="checkbox" checked={at >= 0} onChange={() => toggle(key)} /><i class="swatch" style={{ background: at >= 0 ? `var(--series${(at % COLOURS) + 1})` : undefined }} />{name}</label>;
  };
  const gpus = store.gpus();
  return (
    <fieldset class="members">
      <legend class="unseen">What to compare</legend>
      {gpus.map((g) => box(`gpu:${g.uuid}`, nameOf(`gpu:${g.uuid}`)))}
      {store.nodes().map((n) => box(`node:${n.name}`, `all of ${n.name}`))}
      {groups.map((g) => box(`group:${g.name}`, g.label || g.name))}
      <span class="spacer" />
      <button type="button" class="quiet" onClick={() => onPick(gpus.slice(0, MOST).map((g) => `gpu:${g.uuid}`))}>All GPUs</button>
      <button type="button" class="quiet" onClick={() => onPick([])}>None</button>
    </fieldset>
  );
}

function MetricMenu({ catalogue, value, onPick, label }: { catalogue: MetricInfo[]; value: string; onPick: (m: string) => void; label: string }): JSX.Element {
  const shelves = new Map<string, MetricInfo[]>();
  for (const m of catalogue) shelves.set(metricShelf(m.name), [...(shelves.get(metricShelf(m.name)) ?? []), m]);
  return (
    <select aria-label={label} value={value} onChange={(e) => onPick(e.currentTarget.value)}>
      {value === '' && <option value="">Add a metric…</option>}
      {value !== '' && !catalogue.some((m) => m.name === value) && <option value={value}>{metricLabel(value)}</option>}
      {[...shelves].map(([shelf, list]) => <optgroup key={shelf} label={shelf}>{list.map((m) => <option key={m.name} value={m.name} title={m.help}>{metricLabel(m.name)}</option>)}</optgroup>)}
    </select>
  );
}

export function Compare(): JSX.Element {
  useTitle('Compare');
  useTopics('list');
  const { query } = usePlace();
  const { range, setRange, onRange } = useRange();
  const catalogue = useCatalogue();
  const groups = useGroups();
  const asked = query.get('of');
  const of = asked === null ? store.gpus().slice(0, COLOURS).map((g) => `gpu:${g.uuid}`) : asked.split(',').filter(Boolean);
  const metrics = (query.get('metric') ?? 'gpu_temperature_celsius').split(',').filter(Boolean);
  const setOf = (list: string[]): void => goQuery((q) => q.set('of', list.join()), true);
  const setMetrics = (list: string[]): void => goQuery((q) => q.set('metric', list.join()), true);
  return (
    <>
      <PageHead title="Compare"><RangePicker range={range} setRange={setRange} /></PageHead>
      <section class="panel tools" aria-label="Choice">
        <Members of={of} groups={groups} onPick={setOf} />
        <div class="metrics">
          {metrics.map((m, i) => (
            <span key={m} class="picked">
              <MetricMenu catalogue={catalogue} value={m} label={`Metric ${i + 1}`} onPick={(next) => setMetrics(metrics.map((x) => (x === m ? next : x)))} />
              {metrics.length > 1 && <button type="button" class="quiet" aria-label={`Remove ${metricLabel(m)}`} onClick={() => setMetrics(metrics.filter((x) => x !== m))}>×</button>}
            </span>
          ))}
          {metrics.length < 4 && <MetricMenu catalogue={catalogue.filter((c) => !metrics.includes(c.name))} value="" label="Add a metric" onPick={(m) => m && setMetrics([...metrics, m])} />}
        </div>
      </section>
      {of.length ? metrics.map((m) => <MetricChart key={m} of={of} metric={m} info={catalogue.find((c) => c.name === m)} range={range} onRange={onRange} />) : <section class="panel"><p class="empty">Choose at least one GPU, node or group above.</p></section>}
    </>
  );
}
