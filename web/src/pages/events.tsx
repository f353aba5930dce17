// Everything that happened: live at the top, older pages on demand, chosen by severity, kind, GPU and words.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, isAbort, sentence } from '../api/client';
import type { GpuEvent } from '../api/types';
import { plural } from '../format/numbers';
import { useTopics } from '../live/hooks';
import { goQuery, usePlace } from '../live/route';
import { addEvent } from '../live/state';
import { store } from '../live/store';
import { EventList, kindWords } from '../parts/events';
import { Busy, PageHead, Problem, Segment, useTitle } from '../parts/small';

const ORDER = ['info', 'warning', 'error', 'critical'];
const PAGE = 100;

interface Choice {
  severity: string;
  kind: string;
  gpu: string;
  node: string;
  words: string;
}

export function fits(e: GpuEvent, c: Choice): boolean {
  if (c.severity && ORDER.indexOf(e.severity) < ORDER.indexOf(c.severity)) return false;
  if (c.kind && e.kind !== c.kind) return false;
  if (c.gpu && e.gpu !== c.gpu) return false;
  if (c.node && e.node !== c.node) return false;
  return !c.words || `${e.text} ${kindWords(e.kind)} gpu ${e.gpu_index ?? ''}`.toLowerCase().includes(c.words.toLowerCase());
}

export function Events(): JSX.Element {
  useTitle('Events');
  useTopics('events', 'list');
  const { query } = usePlace();
  const choice: Choice = { severity: query.get('severity') ?? '', kind: query.get('kind') ?? '', gpu: query.get('gpu') ?? '', node: query.get('node') ?? '', words: query.get('q') ?? '' };
  const [old, setOld] = useState<GpuEvent[]>([]);
  const [next, setNext] = useState<string | number | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [problem, setProblem] = useState('');
  const params = { severity: choice.severity, kind: choice.kind, gpu: choice.gpu, node: choice.node, limit: PAGE };
  const key = JSON.stringify(params);

  const load = async (before?: string | number, signal?: AbortSignal): Promise<void> => {
    setLoading(true);
    try {
      const got = await get<{ events: GpuEvent[]; next: string | number | null }>('events', { ...params, before }, signal);
      setOld((list) => (before === undefined ? got.events : [...list, ...got.events]));
      setNext(got.next ?? null);
      setProblem('');
    } catch (e) {
      if (isAbort(e)) return;
      setProblem(sentence(e));
    }
    setLoading(false);
  };
  useEffect(() => {
    const abort = new AbortController();
    setOld([]);
    void load(undefined, abort.signal);
    return () => abort.abort();
  }, [key]);

  const all = store.events.reduce((list, e) => addEvent(list, e, 5000), old).filter((e) => fits(e, choice));
  const kinds = [...new Set([...store.events, ...old].map((e) => e.kind))].sort();
  const put = (name: string, value: string): void => goQuery((q) => (value ? q.set(name, value) : q.delete(name)), true);
  const bad = all.filter((e) => e.severity === 'critical' || e.severity === 'error').length;
  return (
    <>
      <PageHead title="Events" crumb={all.length ? `${plural(all.length, 'event')}${next !== null ? ' and older ones' : ''}, ${bad ? `${bad} of them serious` : 'none of them serious'}` : ''} />
      <div class="tools" role="search" aria-label="Choose events">
        <input type="search" placeholder="Find words" aria-label="Find words" value={choice.words} onInput={(e) => put('q', e.currentTarget.value)} />
        <Segment label="At least" value={choice.severity} onPick={(k) => put('severity', k)} options={[{ key: '', name: 'All' }, { key: 'warning', name: 'Warnings' }, { key: 'error', name: 'Errors' }, { key: 'critical', name: 'Critical' }]} />
        <label class="pick">kind <select value={choice.kind} onChange={(e) => put('kind', e.currentTarget.value)}><option value="">any</option>{kinds.map((k) => <option key={k} value={k}>{kindWords(k)}</option>)}</select></label>
        <label class="pick">on <select value={choice.gpu} onChange={(e) => put('gpu', e.currentTarget.value)}><option value="">any GPU</option>{store.gpus().map((g) => <option key={g.uuid} value={g.uuid}>{store.nodes().length > 1 ? `${g.node} ` : ''}GPU {g.index}</option>)}</select></label>
      </div>
      {problem && <Problem>{problem}</Problem>}
      <section class="panel flush" aria-label="Events">
        {all.length ? <EventList events={all} isLive /> : isLoading ? <Busy what="Reading events" /> : <p class="empty">{Object.values(choice).some(Boolean) ? 'No event fits this choice.' : 'Nothing has happened yet. Errors, throttling and cards that come and go appear here by themselves.'}</p>}
        {next !== null && !isLoading && <p class="more"><button type="button" onClick={() => void load(next)}>Older events</button></p>}
      </section>
    </>
  );
}
