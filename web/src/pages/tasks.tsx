// GPU tasks: a live line of time for each GPU with tasks as bars against their deadlines, the containers, and the list.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, isAbort, sentence } from '../api/client';
import type { Container, Task } from '../api/types';
import { percent, plural } from '../format/numbers';
import { span, SIGNS, verdict, Verdict as Kind } from '../format/tasks';
import { useClock, useTopics } from '../live/hooks';
import { goQuery, href, usePlace } from '../live/route';
import { store } from '../live/store';
import { Axis, Lanes } from '../parts/timeline';
import { TaskTable } from '../parts/task_table';
import { PageHead, Problem, Segment, useTitle } from '../parts/small';

const WINDOWS = [{ key: '60', name: '1 min' }, { key: '300', name: '5 min' }, { key: '600', name: '10 min' }];
const ROWS = 40; // at first

export function useContainers(): { containers: Container[]; problem: string } {
  const [containers, set] = useState<Container[]>([]);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    const load = (): void => {
      get<{ containers: Container[] }>('containers', {}, abort.signal).then((got) => { set(got.containers); setProblem(''); }, (e: unknown) => { if (!isAbort(e)) setProblem(sentence(e)); });
    };
    load();
    const timer = window.setInterval(load, 3000);
    return () => { window.clearInterval(timer); abort.abort(); };
  }, []);
  return { containers, problem };
}

export const rateWords = (c: Container): string => (c.hit_rate === null ? 'none judged' : `${percent(Math.floor(c.hit_rate * 100) / 100)} of ${c.hits + c.misses}`);

function Containers({ containers }: { containers: Container[] }): JSX.Element {
  return (
    <section class="panel" aria-label="Containers">
      <header><h2>Containers</h2><p class="sub">{plural(containers.length, 'container')} with GPU tasks or deadlines</p></header>
      {containers.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Containers as a table">
          <table>
            <thead><tr><th>Container</th><th>Image</th><th class="num">Deadline</th><th class="num">Running</th><th class="num">Slack</th><th class="num">Kept</th><th>State</th></tr></thead>
            <tbody>{containers.map((c) => (
              <tr key={`${c.node}/${c.id}`}>
                <td><a class="link" href={href(`containers/${c.id}`)}>{c.name}</a></td>
                <td>{c.image ?? ''}</td>
                <td class="num">{c.deadline_s === null ? 'none' : span(c.deadline_s)}</td>
                <td class="num">{c.running}</td>
                <td class="num">{c.left_s !== null && c.left_s !== undefined ? `${span(c.left_s)} left` : c.least_float_s === null ? '' : `${span(c.least_float_s)} at least`}</td>
                <td class="num">{c.misses ? <span class="verdict miss"><span aria-hidden="true">{SIGNS.miss}</span> {rateWords(c)}</span> : rateWords(c)}</td>
                <td>{c.state}</td>
              </tr>))}</tbody>
          </table>
        </div>
      ) : <p class="empty"><span>No container uses a GPU now. <code>gpumgr docker run --deadline 30s …</code> starts one with a deadline.</span></p>}
    </section>
  );
}

function Legend(): JSX.Element {
  const rows: [Kind, string][] = [['running', 'runs, within the frame that it may take'], ['hit', 'ended in time'], ['overdue', 'runs beyond its deadline'], ['miss', 'ended too late'], ['ended', 'no deadline']];
  return <p class="legend tasks">{rows.map(([k, text]) => <span key={k}><i class={`key ${k}`} aria-hidden="true">{SIGNS[k]}</i>{text}</span>)}</p>;
}

function Timelines({ tasks, window: wide, now }: { tasks: Task[]; window: number; now: number }): JSX.Element {
  useTopics('list');
  const from = now - wide;
  const to = now + wide * 0.15; // deadlines lie ahead
  return (
    <section class="panel timeline" aria-label="Tasks over time">
      {store.gpus().map((g) => {
        const name = `${store.nodes().length > 1 ? `${g.node} ` : ''}GPU ${g.index}`;
        const instances = new Set([g.uuid, ...(g.instances ?? []).map((i) => i.uuid)]);
        return (
          <div class="row" key={g.uuid}>
            <a class="gpuname" href={href(`gpus/${g.uuid}`)} title={name}>{store.nodes().length > 1 && <span class="nodename">{g.node} </span>}GPU {g.index}</a>
            <Lanes tasks={tasks.filter((t) => t.gpus.some((u) => instances.has(u)))} gpu={name} from={from} to={to} now={now} />
          </div>
        );
      })}
      <div class="row"><span /><Axis from={from} to={to} /></div>
      <Legend />
    </section>
  );
}

export function Tasks(): JSX.Element {
  useTitle('Tasks');
  useTopics('tasks');
  const now = useClock(1);
  const { query } = usePlace();
  const { containers, problem } = useContainers();
  const wide = WINDOWS.find((w) => w.key === query.get('window'))?.key ?? '300';
  const only = query.get('show') ?? 'all';
  const all = store.tasks();
  const late = all.filter((t) => ['overdue', 'miss'].includes(verdict(t, now)));
  const [most, setMost] = useState(ROWS);
  const fitting = only === 'running' ? all.filter((t) => t.state !== 'ended') : only === 'late' ? late : all;
  const shown = fitting.slice(0, most);
  const running = all.filter((t) => t.state !== 'ended').length;
  const overdue = all.filter((t) => verdict(t, now) === 'overdue').length;
  const put = (key: string, value: string, standard: string): void => goQuery((q) => (value === standard ? q.delete(key) : q.set(key, value)), true);
  return (
    <>
      <PageHead title="Tasks" crumb={`${running} running${overdue ? `, ${overdue} overdue` : ''}${late.length - overdue ? `, ${late.length - overdue} missed lately` : ''}`}>
        <Segment label="How far back" value={wide} onPick={(k) => put('window', k, '300')} options={WINDOWS} />
      </PageHead>
      {problem && <Problem>{problem}</Problem>}
      <Timelines tasks={all} window={Number(wide)} now={now} />
      <Containers containers={containers} />
      <section class="panel" aria-label="List of tasks">
        <header><h2>List</h2><p class="sub">running, and ended in the last ten minutes</p><span class="spacer" />
          <Segment label="Which" value={only} onPick={(k) => put('show', k, 'all')} options={[{ key: 'all', name: 'All' }, { key: 'running', name: 'Running' }, { key: 'late', name: 'Late' }]} />
        </header>
        {shown.length ? <TaskTable tasks={shown} now={now} label="Tasks as a table" /> : <p class="empty">{only === 'all' ? 'No process has used a GPU in the last ten minutes.' : 'No task fits this choice.'}</p>}
        {fitting.length > shown.length && <p class="more"><button type="button" onClick={() => setMost(most * 5)}>{fitting.length - shown.length} more</button></p>}
      </section>
    </>
  );
}
