// One job: where it stands and why, what it used, its GPUs and its machine over its run, its log.
import { useMemo, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send } from '../api/client';
import type { Job, JobCurves } from '../api/types';
import { useHistory } from '../charts/history';
import { ChartPanel } from '../charts/panel';
import type { Line } from '../charts/plot';
import { endWords, isOver, jobKey, JobLine, jobLines, jobNumber, mayControl, mood, parentWords, ranFor, startsIn } from '../format/jobs';
import { bytes, duration, fixed, percent, show } from '../format/numbers';
import type { Range } from '../format/range';
import { align } from '../format/series';
import { ago, moment } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock } from '../live/hooks';
import { href, usePlace } from '../live/route';
import { store } from '../live/store';
import { jobHref, JobState, onWords, wantsWords } from '../parts/job_state';
import { Log } from '../parts/log';
import { OpenUi } from '../parts/open_ui';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { CancelJob, Who } from './queue';

type Answer = Job & { runs?: Job[] };

type Row = [string, string, string];

/** What it holds now, and beside it the most; of one that is over the most alone. */
function nowAndMost(now: number | null, most: number | null): [string, string] {
  if (now !== null) return [bytes(now), most ? `${bytes(Math.max(now, most))} at most` : ''];
  return [most ? bytes(most) : '–', most ? 'at most' : ''];
}

function busyWords(j: Job, held: number): string {
  if (j.gpu_seconds === null || !held) return j.started !== null && !isOver(j) ? 'not told yet' : '';
  return `${show('seconds', j.gpu_seconds)} of ${show('seconds', held)} held`;
}

function Facts({ j, now }: { j: Job; now: number }): JSX.Element {
  const ran = ranFor(j, now);
  const held = ran === null ? 0 : ran * Math.max(1, j.gpus);
  const rows: Row[] = [
    ['State', j.state, isOver(j) ? endWords(j) : j.state === 'waiting' || j.state === 'held' ? (j.place ? `place ${j.place}` : 'not in line yet') : j.text ?? j.state_text ?? ''],
    j.started === null ? ['Starts in', startsIn(j, now), j.starts_at === null ? '' : moment(j.starts_at, now)] : ['Started', moment(j.started, now), `waited ${duration(j.started - j.submitted)}`],
    [isOver(j) ? 'Took' : 'Runs for', ran === null ? '–' : show('seconds', ran), j.time_limit_s === null ? 'no time limit' : `of at most ${duration(j.time_limit_s)}`],
    ['GPUs busy', j.gpu_utilization_ratio === null || j.gpu_seconds === null ? '–' : percent(j.gpu_utilization_ratio), busyWords(j, held)],
    ['GPU memory', ...nowAndMost(j.memory_now_bytes, j.memory_peak_bytes)],
    ['CPU', j.cpu_ratio === null || !j.cpu_seconds ? '–' : `${fixed(j.cpu_ratio, j.cpu_ratio < 9.95 ? 1 : 0)} cores`, j.cpu_seconds ? `${show('seconds', j.cpu_seconds)} of CPU time` : ''],
    ['Memory', ...nowAndMost(j.host_now_bytes, j.host_peak_bytes)],
    j.disk_read_bytes === null || j.disk_written_bytes === null
      ? ['Energy', j.energy_joules ? show('joules', j.energy_joules) : '–', 'of its GPUs']
      : ['Disk', bytes(j.disk_read_bytes + j.disk_written_bytes), `${bytes(j.disk_read_bytes)} read, ${bytes(j.disk_written_bytes)} written`],
  ];
  return <dl class="facts four">{rows.map(([name, value, note]) => <div class={`fact${name === 'State' && mood(j) === 'bad' ? ' crit' : ''}`} key={name}><dt>{name}</dt><dd class="value">{value}</dd><dd class="note" title={note}>{note}</dd></div>)}</dl>;
}

const COLOURS = ['series1', 'series2', 'series3', 'series4', 'series5', 'series6', 'series7', 'series8'];

interface Drawn {
  time: number[];
  lines: Line[];
}

/** Its GPUs over its run, and what it used of its machine; behind that, fainter, all that the machine did. */
function Charts({ j, now }: { j: Job; now: number }): JSX.Element | null {
  const from = Math.floor(j.started ?? now);
  const to = j.ended ?? now;
  // A run that goes on is looked at as the last so many seconds, in steps, so that it is not asked for every second.
  const span = Math.ceil(Math.max(60, now - from) / 30) * 30;
  const range: Range = j.ended === null && span <= 86400 ? { kind: 'last', seconds: span } : { kind: 'fixed', from, to: Math.max(to, from + 20) };
  const gpus = useMemo(() => j.gpu_uuids.map((u) => `gpu:${u}`), [j.gpu_uuids.join()]);
  const work = useHistory(gpus, ['gpu_utilization_ratio', 'gpu_memory_used_bytes', 'gpu_power_watts', 'gpu_temperature_celsius'], range, 600);
  const host = useHistory(j.node ? [`host:${j.node}`] : [], ['host_cpu_utilization_ratio', 'host_cpus', 'host_disk_read_bytes_per_second', 'host_disk_written_bytes_per_second'], range, 600);
  const own = useAsk<JobCurves>(`jobs/${j.id}/curves?attempt=${j.attempt}${j.element === null ? '' : `&element=${j.element}`}`, isOver(j) ? 3600 : 4);
  const perGpu = (metric: string): Drawn => {
    const series = (work.history?.series ?? []).filter((s) => s.metric === metric);
    const frame = align(series.map((s) => ({ time: s.time, value: s.mean })));
    return { time: frame.time, lines: series.map((s, i): Line => ({ kind: 'line', label: `GPU ${store.picture.gpus.get(s.of.slice(4))?.index ?? i}`, colour: COLOURS[i % COLOURS.length] as string, values: frame.columns[i] ?? [] })) };
  };
  const drawn = (wishes: JobLine[]): Drawn => {
    const present = wishes.filter((w) => w.value.some((v) => typeof v === 'number'));
    const frame = align(present.map(({ time, value }) => ({ time, value })));
    return { time: frame.time, lines: present.map(({ label, colour, isFaint }, i): Line => ({ kind: 'line', label, colour, width: isFaint ? 1 : 1.6, values: frame.columns[i] ?? [] })) };
  };
  if (j.started === null) return null;
  const { cpu, memory, disk } = jobLines(own.answer, host.history);
  const charts: [string, string, Drawn, { isLoading: boolean; error?: string }, number?][] = [
    ...(j.gpu_uuids.length ? [
      ['Utilisation', 'ratio', perGpu('gpu_utilization_ratio'), work, 1],
      ['GPU memory', 'bytes', perGpu('gpu_memory_used_bytes'), work],
      ['Power', 'watts', perGpu('gpu_power_watts'), work],
      ['Temperature', 'celsius', perGpu('gpu_temperature_celsius'), work],
    ] as [string, string, Drawn, typeof work, number?][] : []),
    ['CPU, in cores', 'number', drawn(cpu), { isLoading: !own.answer && !own.problem, error: own.problem }],
    ['Memory', 'bytes', drawn(memory), { isLoading: !own.answer && !own.problem, error: own.problem }],
    ['Disk', 'bytes_per_second', drawn(disk), { isLoading: !own.answer && !own.problem, error: own.problem }],
  ];
  return (
    <div class="grid even jobcharts">{charts.map(([title, unit, data, loaded, most]) => (
      <ChartPanel key={title} title={title} name={`${title} while ${j.name} ran`} unit={unit} yMin={0} yMax={most} height={150} syncKey="job" {...data}
        from={range.kind === 'fixed' ? range.from : from} to={range.kind === 'fixed' ? range.to : now} isLoading={loaded.isLoading} error={loaded.error} isEmpty={!data.lines.length}
        emptyWords={title === 'Memory' || title.startsWith('CPU') || title === 'Disk' ? (isOver(j) ? 'It was over before anything was measured.' : 'Nothing is told yet.') : undefined} />))}
    </div>
  );
}

function Runs({ runs, now }: { runs: Job[]; now: number }): JSX.Element {
  const isArray = runs.some((r) => r.element !== null);
  return (
    <section class="panel" aria-label={isArray ? 'Elements' : 'Tries'}>
      <header><h2>{isArray ? 'Elements' : 'Tries'}</h2><p class="sub">those that have begun</p></header>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${isArray ? 'Elements' : 'Tries'} as a table`}>
        <table class="jobs"><thead><tr>{isArray && <th>Element</th>}<th class="num">Try</th><th>State</th><th>On</th><th>Started</th><th class="num">Took</th><th>How it ended</th></tr></thead>
          <tbody>{runs.map((r) => (
            <tr key={`${r.element} ${r.attempt}`}>{isArray && <td><a class="link" href={jobHref(r)}>{r.element}</a></td>}<td class="num">{r.attempt}</td><td><JobState job={r} /></td><td>{onWords(r)}</td><td>{r.started === null ? '' : moment(r.started, now)}</td>
              <td class="num">{r.started === null ? '' : show('seconds', ranFor(r, now) ?? 0)}</td><td class="why">{endWords(r)}</td></tr>))}</tbody></table>
      </div>
    </section>
  );
}

export function JobPage({ id, who }: { id: string; who: Who }): JSX.Element {
  const { answer: whole, problem: trouble, again } = useAsk<Answer>(`jobs/${encodeURIComponent(id)}`, 2, 'jobs');
  const element = usePlace().query.get('element');
  const now = useClock(1);
  const [problem, setProblem] = useState('');
  const j = element === null ? whole : [...(whole?.runs ?? [])].reverse().find((r) => String(r.element) === element);
  useTitle(j ? `${j.name}, job ${id}` : 'Job');
  if (whole && !j) return <Problem>Element {element} of job {id} has not begun. <a class="link" href={href(`jobs/${id}`)}>To the whole job</a></Problem>;
  if (!j || !whole) return trouble ? <Problem>{trouble} <a class="link" href={href('queue')}>To the queue</a></Problem> : <Busy what="Asking the server" />;
  const canHold = mayControl(j, who) && element === null && (j.state === 'waiting' || j.state === 'held');
  const hold = async (): Promise<void> => {
    try {
      await send('POST', `jobs/${j.id}/${j.state === 'held' ? 'release' : 'hold'}`);
      say(j.state === 'held' ? 'It is back in the line.' : 'It is held.');
      again();
    } catch (e) {
      setProblem(e instanceof Error ? e.message : String(e));
    }
  };
  return (
    <>
      <PageHead title={j.name} crumb={[jobNumber(j), parentWords(j), j.user, wantsWords(j), onWords(j) && `on ${onWords(j)}`, `handed in ${ago(j.submitted, now)}`].filter(Boolean).join(' · ')}>
        <JobState job={j} />
        {j.ui && j.state === 'running' && mayControl(j, who) && <OpenUi path={`jobs/${j.id}/ui${j.element === null ? '' : `?element=${j.element}`}`} what={j.name} onProblem={setProblem} />}
        {canHold && <button type="button" onClick={() => void hold()}>{j.state === 'held' ? 'Let it go' : 'Hold'}</button>}
        <CancelJob job={j} who={who} onProblem={setProblem} again={again} />
        {j.origin !== 'watchmen' && <a class="button" href={href('submit', { like: String(j.id) })}>Run again…</a>}
      </PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      {j.why && !isOver(j) && j.started === null && <section class="panel" aria-label="Why it waits"><p class="why">{j.why}</p>{j.sooner && <p class="sooner">Would start {j.sooner}</p>}</section>}
      {j.untold && <section class="panel" aria-label="Not told yet"><p class="why">{j.untold}</p></section>}
      {j.insight && <section class="panel insight" aria-label="Insight"><b>In short</b><p>{j.insight}</p></section>}
      <Facts j={j} now={now} />
      <section class="panel" aria-label="What it runs"><dl class="pairs">
        {j.elements && element === null && <div><dt>Elements</dt><dd>{Object.entries(j.elements).filter(([k]) => k !== 'total').map(([k, n]) => `${n} ${k}`).join(', ')} of {j.elements.total}</dd></div>}
        <div><dt>{j.image ? 'Arguments' : 'Command'}</dt><dd><code>{j.command.join(' ') || '–'}</code></dd></div>
        {j.ui && <div><dt>Its own UI</dt><dd>{j.ui.port === 'auto' ? 'a port that is picked' : `port ${j.ui.port}`}, {j.ui.path}</dd></div>}
        {j.image && <div><dt>Image</dt><dd>{j.image}</dd></div>}
        {j.after.length > 0 && <div><dt>After</dt><dd>{j.after.join(', ')}</dd></div>}
        {j.finish_by !== null && <div><dt>To be done by</dt><dd>{moment(j.finish_by, now)}</dd></div>}
        {Object.entries(j.labels).map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}
      </dl></section>
      {j.started !== null && j.origin !== 'watchmen' && mayControl(j, who) && !j.elements && <Log key={`${jobKey(j)} ${j.attempt}`} path={`jobs/${j.id}/log?attempt=${j.attempt}${j.element === null ? '' : `&element=${j.element}`}`} total={j.log_bytes ?? 0} isRunning={!isOver(j)} />}
      {!j.elements && <Charts key={`${jobKey(j)} ${j.attempt}`} j={j} now={now} />}
      {element === null && whole.runs && whole.runs.length > 1 && <Runs runs={whole.runs} now={now} />}
    </>
  );
}
