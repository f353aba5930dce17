// Who was on a GPU: a band over the time of its charts. A bar leads to its job, or to the container of a process outside the queue,
// and says whose it is, since when, and how busy the GPU was.
import { useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import type { GpuJobs, Task } from '../api/types';
import { layStays, StayBar, stayLabel, staysOf, staysSentence } from '../format/onit';
import { ends, Range } from '../format/range';
import { useAsk } from '../live/ask';
import { href } from '../live/route';
import { jobHref } from './job_state';
import { roving } from './roving';
import { Problem } from './small';
import { Axis, taskHref } from './timeline';

const LANE = 26;
const pct = (v: number): string => `${(v * 100).toFixed(2)}%`;

/** Of a span that moves the address stays: seconds before now. */
function spanQuery(range: Range): string {
  return range.kind === 'last' ? `from=${-range.seconds}` : `from=${range.from}&to=${range.to}`;
}

function Bar({ bar, isFirst }: { bar: StayBar; isFirst: boolean }): JSX.Element {
  const { stay } = bar;
  const to = stay.job ? jobHref(stay.job) : stay.task ? taskHref(stay.task) : href('');
  return (
    <li style={{ top: `${bar.lane * LANE}px` }}>
      <a class={`stay ${stay.kind} ${stay.mood}${bar.isOpen ? ' on' : ''}`} data-item data-job={stay.job?.id} href={to} tabIndex={isFirst ? 0 : -1} title={stay.sentence} aria-label={stay.sentence} style={{ left: pct(bar.left), width: pct(bar.width) }}>
        {bar.width > 0.025 && <span class="label" aria-hidden="true">{stayLabel(stay)}</span>}
      </a>
    </li>
  );
}

export function OnIt({ uuid, index, range, when, now }: { uuid: string; index: number; range: Range; when: string; now: number }): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  const [from, to] = ends(range, now);
  const query = spanQuery(range);
  const jobs = useAsk<GpuJobs>(`gpus/${uuid}/jobs?${query}`, 5, 'jobs');
  const tasks = useAsk<{ tasks: Task[] }>(`tasks?gpu=${encodeURIComponent(uuid)}&limit=200${range.kind === 'fixed' ? `&to=${range.to}` : ''}`, 5, 'tasks');
  const { bars, lanes, more } = layStays(staysOf(jobs.answer?.jobs ?? [], tasks.answer?.tasks ?? [], now), from, to, now);
  const problem = jobs.problem || tasks.problem;
  return (
    <section class="panel onit" aria-label="Who was on it">
      <header><h2>Who was on it</h2><p class="sub">{jobs.answer && tasks.answer ? staysSentence(bars, more, when) : ''}</p></header>
      {problem && <Problem>{problem}</Problem>}
      <div class={jobs.answer && tasks.answer ? '' : 'loading'}>
        <ul class="lanes" ref={list} style={{ height: `${lanes * LANE}px` }} onKeyDown={(e) => roving(e, list.current)} onFocusIn={(e) => roving.remember(e, list.current)} aria-label={`Jobs and processes on GPU ${index}; arrow keys move between them`}>
          {bars.map((b, i) => <Bar key={b.stay.key} bar={b} isFirst={i === 0} />)}
        </ul>
        <Axis from={from} to={to} />
      </div>
      {jobs.answer && !jobs.answer.is_whole && <p class="sub">So many that only the newest {jobs.answer.jobs.length} are drawn: look closer for the others.</p>}
    </section>
  );
}
