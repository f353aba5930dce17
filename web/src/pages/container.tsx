// One container: what may be done with it, its log, a shell in it; its deadline and how it is kept, slack over time, how slack is
// spread, and its tasks.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { apiUrl, get, isAbort, sentence } from '../api/client';
import type { Container, Task } from '../api/types';
import type { ContainerList, ContainerRow } from '../api/types_work';
import { gpusWords, isUp, may, stateMood, stateWords } from '../format/containers';
import { JOB_SIGNS } from '../format/jobs';
import { bytes, percent, plural, show } from '../format/numbers';
import { ago, moment } from '../format/times';
import { span, taskSentence, verdict } from '../format/tasks';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { go, href } from '../live/route';
import { ContainerActs, containerPath } from '../parts/container_acts';
import { ContainerLog } from '../parts/container_log';
import { gpuWords, TaskTable } from '../parts/task_table';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { Terminal } from '../parts/terminal';
import { WorkTabs } from '../parts/work_tabs';
import { rateWords } from './tasks';

type Answer = Container & { tasks: Task[] };

/** Its tasks; nothing for one that had none. */
function useContainer(id: string): { answer: Answer | undefined; problem: string; isAsked: boolean } {
  useTopics('tasks');
  const [answer, set] = useState<Answer>();
  const [problem, setProblem] = useState('');
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    const load = (): void => {
      get<Answer | undefined>(`containers/${encodeURIComponent(id)}`, { or_none: 'true' }, abort.signal).then(
        (got) => { set(got); setAsked(true); setProblem(''); },
        (e: unknown) => { if (!isAbort(e)) { setAsked(true); setProblem(sentence(e)); } },
      );
    };
    load();
    const timer = window.setInterval(load, 2000);
    return () => { window.clearInterval(timer); abort.abort(); };
  }, [id]);
  return { answer, problem, isAsked };
}

const W = 720;
const H = 190;

/** Float time of each task at its end: above the line it was kept, below it was missed. */
function SlackChart({ tasks, now }: { tasks: Task[]; now: number }): JSX.Element {
  const ended = tasks.filter((t) => t.end !== null && t.float_s !== null).sort((a, b) => (a.end ?? 0) - (b.end ?? 0));
  if (!ended.length) return <p class="empty">No task with a deadline has ended yet.</p>;
  const first = ended[0]?.end ?? now;
  const last = Math.max(ended[ended.length - 1]?.end ?? now, first + 1);
  const floats = ended.map((t) => t.float_s ?? 0);
  const top = Math.max(0, ...floats, ...ended.map((t) => t.deadline_s ?? 0)) || 1;
  const bottom = Math.min(0, ...floats) * 1.1 || -top * 0.08;
  const x = (t: number): number => 8 + ((t - first) / (last - first)) * (W - 16);
  const y = (f: number): number => 8 + ((top - f) / (top - bottom)) * (H - 16);
  const misses = ended.filter((t) => verdict(t, now) === 'miss').length;
  return (
    <figure class="slack">
      <div class="field">
      <svg viewBox={`0 0 ${W} ${H}`} role="img" aria-label={`Slack of ${ended.length} tasks over time: from ${span(Math.min(...floats))} to ${span(Math.max(...floats))}, ${misses} missed`} preserveAspectRatio="none">
        <rect x="0" y={y(0)} width={W} height={H - y(0)} class="beyond" />
        <line x1="0" x2={W} y1={y(0)} y2={y(0)} class="zero" />
        <polyline points={ended.map((t) => `${x(t.end ?? 0)},${y(t.float_s ?? 0)}`).join(' ')} />
      </svg>
      {ended.map((t) => {
        const v = verdict(t, now);
        return <span key={t.id} class={`point ${v}`} style={{ left: `${(x(t.end ?? 0) / W) * 100}%`, top: `${(y(t.float_s ?? 0) / H) * 100}%` }} title={`${moment(t.end, now)}: ${taskSentence(t, now, '')}`} aria-hidden="true">{v === 'miss' ? '✕' : ''}</span>;
      })}
      <span class="mark" style={{ top: `${(y(0) / H) * 100}%` }} aria-hidden="true">deadline</span>
      </div>
      <figcaption><span>{moment(first, now)}</span><span>{span(top)} at the top; dots were kept, crosses missed</span><span>{moment(last, now)}</span></figcaption>
    </figure>
  );
}

function Spread({ slack }: { slack: [number | null, number][] }): JSX.Element {
  const most = Math.max(1, ...slack.map(([, n]) => n));
  const name = (i: number): string => {
    const upper = slack[i]?.[0];
    const lower = i > 0 ? slack[i - 1]?.[0] : undefined;
    if (upper === null || upper === undefined) return `over ${percent(lower)}`;
    return lower === undefined || lower === null ? `below ${percent(upper)}` : `${percent(lower)} to ${percent(upper)}`;
  };
  return (
    <ul class="spread">
      {slack.map(([upper, n], i) => n > 0 && (
        <li key={i} class={upper !== null && upper <= 0 ? 'miss' : 'hit'}>
          <span class="name">{name(i)}{upper !== null && upper <= 0 ? ' ✕' : ''}</span><span class="track" aria-hidden="true"><i style={{ width: `${(n / most) * 100}%` }} /></span><span class="val">{n}</span>
        </li>))}
    </ul>
  );
}

function Facts({ c, now }: { c: Container; now: number }): JSX.Element {
  const rows: [string, string, string][] = [
    ['Deadline', c.deadline_s === null ? 'none' : span(c.deadline_s), 'for each task, from its start'],
    ['Running now', String(c.running), c.left_s === null || c.left_s === undefined ? (c.running ? 'no deadline' : c.state) : c.left_s < 0 ? `overdue by ${span(-c.left_s)}` : `${span(c.left_s)} left`],
    ['Kept', c.hit_rate === null ? '–' : percent(Math.floor(c.hit_rate * 100) / 100), c.hit_rate === null ? 'none judged yet' : `${c.hits} kept, ${c.misses} missed${c.last_miss === null ? '' : `, last ${ago(c.last_miss, now)}`}`],
    ...(c.period_s === null ? [] : [['Period', span(c.period_s), c.periods ? `a task began in ${c.periods_hit} of ${c.periods}` : 'none over yet'] as [string, string, string]]),
    ['Float time', span(c.float_s), c.least_float_s === null ? '' : `least ${span(c.least_float_s)}`],
    ['Used', show('seconds', c.gpu_seconds), `of GPU time, ${show('joules', c.energy_joules)}, ${bytes(c.memory_bytes)} held`],
  ];
  return <dl class="facts">{rows.map(([name, value, note]) => <div class={`fact${(name === 'Kept' && c.misses) || (name === 'Period' && c.periods !== c.periods_hit) ? ' crit' : ''}`} key={name}><dt>{name}</dt><dd class="value">{value}</dd><dd class="note" title={note}>{note}</dd></div>)}</dl>;
}

/** How it does with its GPU tasks: only of one that had any, or has a deadline. */
function Work({ c, now }: { c: Answer; now: number }): JSX.Element {
  return (
    <>
      <Facts c={c} now={now} />
      {(c.deadline_s !== null || c.hits + c.misses > 0) && (
        <div class="grid wide">
          <section class="panel" aria-label="Slack over time"><header><h2>Slack over time</h2><p class="sub">time that was left when each task ended</p></header><SlackChart tasks={c.tasks} now={now} /></section>
          <section class="panel" aria-label="How slack is spread"><header><h2>How slack is spread</h2><p class="sub">share of the deadline that was left</p></header>{c.hits + c.misses ? <Spread slack={c.slack} /> : <p class="empty">Nothing was judged yet.</p>}</section>
        </div>)}
      <section class="panel" aria-label="Its tasks"><header><h2>Its tasks</h2><p class="sub">{plural(c.tasks.length, 'task')}, the newest first; kept {rateWords(c)}</p></header>
        {c.tasks.length ? <TaskTable tasks={c.tasks} now={now} label="Its tasks as a table" hasContainer={false} /> : <p class="empty">It has not used a GPU yet.</p>}
      </section>
    </>
  );
}

function Shell({ c }: { c: ContainerRow }): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  const [why, setWhy] = useState('');
  if (!may(c, 'shell') || !isUp(c)) return null;
  return (
    <section class="panel" aria-label="Shell">
      <header><h2>Shell</h2><p class="sub">{isOpen ? 'in it, as you; Shift+Tab leaves the terminal' : why || 'in it, as you'}</p><span class="spacer" />
        <button type="button" onClick={() => { setWhy(''); setOpen(!isOpen); }}>{isOpen ? 'Close' : 'Open a shell'}</button></header>
      {isOpen && <Terminal name={c.name} url={(rows, columns) => apiUrl(`containers/${c.id}/shell`, { node: c.node, rows, columns })} onEnd={(said) => { setWhy(said); setOpen(false); }} />}
    </section>
  );
}

function What({ c, now }: { c: ContainerRow; now: number }): JSX.Element {
  const rows: [string, JSX.Element | string, string][] = [
    ['State', <span class={`jobstate ${stateMood(c)}`}><span aria-hidden="true">{JOB_SIGNS[stateMood(c)]}</span> {stateWords(c)}</span>, c.error ?? (isUp(c) ? (c.started ? `since ${moment(c.started, now)}` : '') : c.ended ? `ended ${ago(c.ended, now)}` : '')],
    ['User', c.user ?? 'not known', c.is_ours ? (c.account && c.account !== c.user ? `added by account ${c.account}` : 'added here') : 'started elsewhere'],
    ['GPUs', gpusWords(c), c.memory_bytes ? `${bytes(c.memory_bytes)} held by ${plural(c.tasks, 'task')}` : c.gpus.length || c.all_gpus ? 'no task on them now' : 'it was given none'],
    ['Made', c.created === null ? 'not known' : ago(c.created, now), c.restart && c.restart !== 'no' ? `restarts: ${c.restart}` : 'it is not restarted'],
  ];
  return <dl class="facts four">{rows.map(([name, value, note]) => <div class="fact" key={name}><dt>{name}</dt><dd class="value">{value}</dd><dd class="note" title={note}>{note}</dd></div>)}</dl>;
}

export function ContainerPage({ id }: { id: string }): JSX.Element {
  const { answer: c, problem, isAsked } = useContainer(id);
  const { answer: list, again } = useAsk<ContainerList>('containers?gpu=true', 3, 'tasks');
  const [trouble, setTrouble] = useState('');
  const now = useClock(1);
  const row = list?.containers.find((r) => r.id === id || r.name === id);
  const name = row?.name ?? c?.name;
  useTitle(name ?? 'Container');
  const [isLate, setLate] = useState(false); // an engine that hangs makes nobody wait for a page
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), 2000);
    return () => window.clearTimeout(timer);
  }, []);
  if (!c && !row) return isAsked && (list || isLate) ? <><WorkTabs /><Problem>{problem || 'No container of this id or name is known.'} <a class="link" href={href('containers')}>All containers</a></Problem></> : <Busy what="Asking the server" />;
  const on = [...new Set((c?.tasks ?? []).filter((t) => t.state !== 'ended').map(gpuWords))].join(', ');
  return (
    <>
      <WorkTabs />
      <PageHead title={name} crumb={[row?.engine ?? c?.engine, row?.image ?? c?.image, row?.node ?? c?.node, on && `on ${on}`, row ? '' : c?.state].filter(Boolean).join(' · ')}>
        {row && <ContainerActs c={row} isWhole onProblem={setTrouble} again={again} onRemoved={() => go(href('containers'))} />}
        <a class="button" href={href('containers')}>All containers</a>
      </PageHead>
      {(trouble || (c && problem)) && <Problem>{trouble || problem}</Problem>}
      {row && <What c={row} now={now} />}
      {row && may(row, 'log') && <ContainerLog path={containerPath(row, 'log')} isRunning={isUp(row)} />}
      {row && <Shell c={row} />}
      {c && <Work c={c} now={now} />}
    </>
  );
}
