// The queue: the plan of the next hours, who waits and why and until when, what runs, what is over.
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send } from '../api/client';
import type { Job, Queue, QueueGpu, Session } from '../api/types';
import type { Reservations } from '../api/types_work';
import { keptOf } from '../format/calendar';
import { endWords, isOver, jobKey, mayControl, ranFor, slotsOf, startsIn } from '../format/jobs';
import { bytes, duration, percent, plural, show } from '../format/numbers';
import { ago, clock } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { goQuery, href, usePlace } from '../live/route';
import { gpuHref, JobName, JobState, onWords, wantsWords } from '../parts/job_state';
import { Plan } from '../parts/plan';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, Segment, useTitle } from '../parts/small';
import { Sure } from '../parts/sure';
import { WorkTabs } from '../parts/work_tabs';

const WINDOWS = [{ key: '1', name: '1 h' }, { key: '2', name: '2 h' }, { key: '8', name: '8 h' }, { key: '24', name: '24 h' }];

export type Who = Session['user'];

export function CancelJob({ job, who, onProblem, again }: { job: Job; who: Who; onProblem: (text: string) => void; again: () => void }): JSX.Element | null {
  if (!mayControl(job, who) || isOver(job)) return null;
  return <Sure name="Cancel" label={`Cancel ${job.name}`} ask={job.started === null ? 'Really cancel' : 'Really end it'} onProblem={onProblem}
    act={async () => { await send('DELETE', `jobs/${job.id}${job.element === null ? '' : `?element=${job.element}`}`); say(`${job.name} is cancelled.`); again(); }} />;
}

interface TableProps {
  jobs: Job[];
  now: number;
  who: Who;
  onProblem: (text: string) => void;
  again: () => void;
}

function Waiting({ jobs, count, now, who, onProblem, again }: TableProps & { count: number }): JSX.Element {
  return (
    <section class="panel" aria-label="Waiting">
      <header><h2>Waiting</h2><p class="sub">{count > jobs.length ? `the first ${jobs.length} of ${plural(count, 'job')}` : count ? plural(count, 'job') : 'nobody waits'}</p></header>
      {jobs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Waiting jobs as a table">
          <table class="jobs">
            <thead><tr><th class="num">Place</th><th>Job</th><th>GPUs</th><th>Why, and when</th><th class="num">Starts in</th><th><span class="unseen">Actions</span></th></tr></thead>
            <tbody>{jobs.map((j) => (
              <tr key={jobKey(j)} data-job={jobKey(j)}>
                <td class="num" data-label="Place">{j.place ?? '–'}</td>
                <td><JobName job={j} /></td>
                <td class="wants" data-label="GPUs">{wantsWords(j)}</td>
                <td class="why">{j.why ?? 'It was just handed in.'}{j.sooner && <div class="sooner">Would start {j.sooner}</div>}{j.finish_by !== null && <div class={`dim${j.starts_at !== null && j.starts_at > j.finish_by ? ' late' : ''}`}>to be done by {clock(j.finish_by, false)}</div>}</td>
                <td class="num" data-label="Starts in" title={j.starts_at === null ? 'nothing tells when a GPU will fall free' : clock(j.starts_at)}>{startsIn(j, now)}</td>
                <td class="num"><CancelJob job={j} who={who} onProblem={onProblem} again={again} /></td>
              </tr>))}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Running({ jobs, now, who, onProblem, again }: TableProps): JSX.Element {
  return (
    <section class="panel" aria-label="Running">
      <header><h2>Running</h2><p class="sub">{jobs.length ? plural(jobs.length, 'job') : 'no job runs'}</p></header>
      {jobs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Running jobs as a table">
          <table class="jobs">
            <thead><tr><th>Job</th><th>State</th><th>On</th><th class="num">Runs for</th><th class="num">Time limit</th><th class="num">Memory, most</th><th class="num">GPU time used</th><th><span class="unseen">Actions</span></th></tr></thead>
            <tbody>{jobs.map((j) => {
              const ran = ranFor(j, now);
              const held = ran === null ? 0 : ran * Math.max(1, j.gpus);
              return (
                <tr key={jobKey(j)} data-job={jobKey(j)}>
                  <td><JobName job={j} /></td>
                  <td><JobState job={j} />{(j.text ?? j.state_text) && <div class="dim">{j.text ?? j.state_text}</div>}</td>
                  <td data-label="On">{onWords(j)}</td>
                  <td class="num" data-label="Runs for">{ran === null ? '' : duration(ran)}</td>
                  <td class="num" data-label="Time limit">{j.time_limit_s === null ? 'none' : duration(j.time_limit_s)}</td>
                  <td class="num" data-label="Memory, most">{j.memory_peak_bytes ? bytes(j.memory_peak_bytes) : ''}</td>
                  <td class="num" data-label="GPU time used">{j.gpu_seconds !== null && held > 0 ? percent(Math.min(1, j.gpu_seconds / held)) : ''}</td>
                  <td class="num"><CancelJob job={j} who={who} onProblem={onProblem} again={again} /></td>
                </tr>
              );
            })}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Finished({ now }: { now: number }): JSX.Element {
  const { query } = usePlace();
  const only = query.get('over') ?? 'all';
  const { answer, problem } = useAsk<{ jobs: Job[]; next: unknown }>(`jobs?state=${only === 'bad' ? 'failed,timeout,exit unknown' : 'over'}&limit=50`, 10, 'jobs');
  return (
    <section class="panel" aria-label="Finished">
      <header><h2>Finished</h2><p class="sub">the newest first</p><span class="spacer" />
        <Segment label="Which" value={only} options={[{ key: 'all', name: 'All' }, { key: 'bad', name: 'Failed' }]} onPick={(k) => goQuery((q) => (k === 'all' ? q.delete('over') : q.set('over', k)), true)} /></header>
      {problem && <Problem>{problem}</Problem>}
      {answer && (answer.jobs.length ? (
        <div class="scroll" tabIndex={0} role="region" aria-label="Finished jobs as a table">
          <table class="jobs">
            <thead><tr><th>Job</th><th>State</th><th>How it ended</th><th>On</th><th class="num">Waited</th><th class="num">Took</th><th class="num">Energy</th><th class="num">Ended</th></tr></thead>
            <tbody>{answer.jobs.map((j) => (
              <tr key={jobKey(j)} data-job={jobKey(j)}>
                <td><JobName job={j} /></td><td><JobState job={j} /></td><td class="why">{endWords(j)}</td><td data-label="On">{onWords(j)}</td>
                <td class="num" data-label="Waited">{j.started === null ? '' : duration(j.started - j.submitted)}</td><td class="num" data-label="Took">{j.started === null ? '' : show('seconds', ranFor(j, now) ?? 0)}</td>
                <td class="num" data-label="Energy">{j.energy_joules ? show('joules', j.energy_joules) : ''}</td><td class="num" data-label="Ended">{j.ended === null ? '' : ago(j.ended, now)}</td>
              </tr>))}</tbody>
          </table>
        </div>
      ) : <p class="empty">{only === 'bad' ? 'No job has failed.' : 'No job has ended yet.'}</p>)}
    </section>
  );
}

/** What stands between a GPU and the queue, and who is to blame. */
function takenWords(g: QueueGpu, now: number): string {
  if (g.cordon !== null || g.verdict === 'cordoned') return `was taken out of service${g.cordoned_by ? ` by ${g.cordoned_by}` : ''}${g.cordon ? `: ${g.cordon}` : ''}`;
  if (g.verdict !== 'foreign') return g.verdict_text;
  const held = g.memory_bytes ? ` with ${bytes(g.memory_bytes)}` : '';
  const idle = g.idle_since !== null && now - g.idle_since > 60 ? `, idle for ${duration(now - g.idle_since)}` : '';
  const done = g.outside ? `; ${g.outside}${g.ends !== null ? `, will be ended at ${clock(g.ends)}` : ''}` : '';
  return `is used outside the queue${g.user ? ` by ${g.user}` : ''}${g.pid ? ` (pid ${g.pid})` : ''}${held}${idle}${done}`;
}

function Taken({ gpus, now }: { gpus: QueueGpu[]; now: number }): JSX.Element | null {
  const rows = gpus.filter((g) => g.verdict !== 'free' && (g.outside || !g.held_by.length));
  if (!rows.length) return null;
  return (
    <section class="panel" aria-label="Not to be given away">
      <header><h2>Not to be given away</h2><p class="sub">used by somebody outside the queue, out of service, too hot or lost</p></header>
      <ul class="rows">{rows.map((g) => <li key={g.uuid}><span><a class="link" href={gpuHref(g)}>GPU {g.name}</a> {takenWords(g, now)}</span></li>)}</ul>
    </section>
  );
}

export function QueuePage({ who }: { who: Who }): JSX.Element {
  useTitle('Queue');
  useTopics('list');
  const now = useClock(1);
  const { query } = usePlace();
  const [problem, setProblem] = useState('');
  const { answer, problem: trouble, again } = useAsk<Queue>('queue', 2, 'jobs');
  const hours = WINDOWS.find((w) => w.key === query.get('plan'))?.key ?? '2';
  const since = Math.floor(now / 600) * 600; // the address stays for ten minutes
  const reserved = useAsk<Reservations>(`reservations?from=${since}&to=${since + 25 * 3600}`, 15, 'jobs').answer;
  if (!answer) return trouble ? <Problem>{trouble}</Problem> : <Busy what="Asking the server" />;
  const table = { now, who, onProblem: setProblem, again };
  return (
    <>
      <WorkTabs />
      <PageHead title="Queue" crumb={`${answer.waiting_count} waiting · ${answer.running.length} running`}>
        <Segment label="How far the plan goes" value={hours} options={WINDOWS} onPick={(k) => goQuery((q) => (k === '2' ? q.delete('plan') : q.set('plan', k)), true)} />
        <a class="button main" href={href('submit')}>Submit a job</a>
      </PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      <Plan gpus={answer.gpus} slots={slotsOf(answer)} kept={reserved ? keptOf(reserved.reservations, reserved.windows) : []} now={now} hours={Number(hours)} />
      <Waiting jobs={[...answer.waiting].sort((a, b) => (a.place ?? Infinity) - (b.place ?? Infinity))} count={answer.waiting_count} {...table} />
      <Running jobs={answer.running} {...table} />
      <Taken gpus={answer.gpus} now={now} />
      <Finished now={now} />
    </>
  );
}
