// Tasks of one GPU as bars on a line of time, each against its deadline: the frame is what it may take, the filling what it took,
// and what is beyond the deadline is hatched. Signs and words say the same as the colours.
import { useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import type { Task } from '../api/types';
import { axisLabels } from '../format/times';
import { Bar, layBars, SIGNS, taskName, taskSentence, verdict, WORDS } from '../format/tasks';
import { href } from '../live/route';
import { roving } from './roving';

const pct = (v: number): string => `${(v * 100).toFixed(2)}%`;
const LANE = 26;

export const taskHref = (t: Task): string => (t.container_id ? href(`containers/${t.container_id}`) : href(`gpus/${t.gpus[0] ?? ''}`));

function TaskBar({ bar, now, gpu, isFirst, from, to }: { bar: Bar; now: number; gpu: string; isFirst: boolean; from: number; to: number }): JSX.Element {
  const t = bar.task;
  const v = verdict(t, now);
  const text = taskSentence(t, now, gpu);
  const frameEnd = t.deadline_s === null ? bar.left + bar.width : Math.min(1, (t.start + t.deadline_s - from) / (to - from));
  const frame = Math.max(bar.width, frameEnd - bar.left);
  return (
    <li style={{ top: `${bar.lane * LANE}px` }}>
      {t.deadline_s !== null && <span class="allowed" aria-hidden="true" style={{ left: pct(bar.left), width: pct(frame) }} />}
      <a class={`task ${v}`} data-item data-verdict={v} data-pid={t.pid} href={taskHref(t)} tabIndex={isFirst ? 0 : -1} aria-label={text} title={text} style={{ left: pct(bar.left), width: pct(bar.width) }}>
        {bar.late !== undefined && <i class="late" style={{ left: pct(bar.late) }} aria-hidden="true" />}
        <span class="label" aria-hidden="true"><b>{SIGNS[v]}</b>{v === 'overdue' || v === 'miss' ? <em>{WORDS[v]}</em> : ''}{taskName(t)}</span>
      </a>
      {bar.due !== undefined && <span class="due" aria-hidden="true" style={{ left: pct(bar.due) }} />}
    </li>
  );
}

/** Marks at whole steps of time. */
export function Axis({ from, to }: { from: number; to: number }): JSX.Element {
  const step = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 10800].find((s) => (to - from) / s <= 8) ?? 21600;
  const marks: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) marks.push(t);
  const labels = axisLabels(marks, step);
  return <div class="axis" aria-hidden="true">{marks.map((m, i) => <span key={m} style={{ left: pct((m - from) / (to - from)) }}>{labels[i]}</span>)}</div>;
}

export function Lanes({ tasks, gpu, from, to, now }: { tasks: Task[]; gpu: string; from: number; to: number; now: number }): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  const { bars, lanes } = layBars(tasks, from, to, now);
  return (
    <ul class="lanes" ref={list} style={{ height: `${lanes * LANE}px` }} onKeyDown={(e) => roving(e, list.current)} onFocusIn={(e) => roving.remember(e, list.current)} aria-label={`Tasks on ${gpu}; arrow keys move between them`}>
      {bars.map((b, i) => <TaskBar key={b.task.id} bar={b} now={now} gpu={gpu} isFirst={i === 0} from={from} to={to} />)}
      <span class="nowline" aria-hidden="true" style={{ left: pct((now - from) / (to - from)) }} />
    </ul>
  );
}
