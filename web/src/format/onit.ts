// Who was on a GPU and when: jobs of the queue, and tasks outside of it, as bars on the time of its charts. Pure.
import type { GpuJob, Task } from '../api/types';
import { JOB_SIGNS, jobKey, mood, Mood } from './jobs';
import { duration, percent } from './numbers';
import { took, taskName } from './tasks';
import { moment } from './times';

export interface Stay {
  key: string;
  kind: 'job' | 'task';
  mood: Mood;
  name: string;
  user: string | null;
  from: number;
  to: number | null; // null: it goes on
  sentence: string;
  job?: GpuJob;
  task?: Task;
}

const ofUser = (user: string | null): string => (user ? ` of ${user}` : '');

/** "train of ada, job 17: runs since 14:03:12 (2 h 5 min), GPU 93 % busy". */
export function jobStaySentence(j: GpuJob, now: number): string {
  const since = j.started ?? j.granted ?? now;
  const what = `${j.name}${ofUser(j.user)}, job ${j.id}${j.element === null ? '' : `[${j.element}]`}`;
  const when = j.ended === null ? (j.started === null ? 'is being started' : `runs since ${moment(since, now)} (${duration(now - since)})`) : `${j.state}, ${moment(since, now)} to ${moment(j.ended, now)} (${duration(j.ended - since)})`;
  return `${what}: ${when}${j.gpu_utilization_ratio === null ? '' : `, GPU ${percent(j.gpu_utilization_ratio)} busy`}`;
}

export function taskStaySentence(t: Task, now: number): string {
  const ran = took(t, now);
  const when = t.end === null ? `since ${moment(t.start, now)} (${duration(ran)})` : `${moment(t.start, now)} to ${moment(t.end, now)} (${duration(ran)})`;
  const busy = ran > 0 && t.gpus.length ? `, GPU ${percent(Math.min(1, t.gpu_seconds / (ran * t.gpus.length)))} busy` : '';
  return `${taskName(t)}${ofUser(t.user)}, pid ${t.pid}, outside the queue: ${when}${busy}`;
}

/** Tasks of the queue's own jobs are their jobs. */
export function staysOf(jobs: GpuJob[], tasks: Task[], now: number): Stay[] {
  const ofQueue = jobs.map((j): Stay => ({
    key: `${jobKey(j)} ${j.attempt}`, kind: 'job', mood: mood(j), name: j.name, user: j.user, from: j.granted ?? j.started ?? now, to: j.ended, sentence: jobStaySentence(j, now), job: j,
  }));
  const others = tasks.filter((t) => t.kind !== 'job' && (t.job ?? null) === null).map((t): Stay => ({
    key: t.id, kind: 'task', mood: t.end === null ? 'running' : 'done', name: taskName(t), user: t.user, from: t.start, to: t.end, sentence: taskStaySentence(t, now), task: t,
  }));
  return [...ofQueue, ...others];
}

export interface StayBar {
  stay: Stay;
  lane: number;
  left: number; // shares of the span, cut at its edges
  width: number;
  isOpen: boolean; // it goes on
}

export const LANES_MOST = 6;

/** Bars in [from, to], each in the first lane where it overlaps no other; `left` of them have no lane and are only counted. */
export function layStays(stays: Stay[], from: number, to: number, now: number): { bars: StayBar[]; lanes: number; more: number } {
  const ends: number[] = [];
  const least = (to - from) / 500; // a short one is still a bar
  const bars: StayBar[] = [];
  let more = 0;
  for (const stay of [...stays].sort((a, b) => a.from - b.from)) {
    const end = Math.max(stay.to ?? now, stay.from + least);
    if (end <= from || stay.from >= to) continue;
    let lane = ends.findIndex((e) => e <= stay.from);
    if (lane < 0 && ends.length < LANES_MOST) lane = ends.push(0) - 1;
    if (lane < 0) {
      more++;
      continue;
    }
    ends[lane] = end;
    const left = Math.max(0, (stay.from - from) / (to - from));
    bars.push({ stay, lane, left, width: Math.min(1, (end - from) / (to - from)) - left, isOpen: stay.to === null });
  }
  return { bars, lanes: Math.max(1, ends.length), more };
}

export const stayLabel = (s: Stay): string => `${JOB_SIGNS[s.mood]} ${s.user ? `${s.user} · ` : ''}${s.name}`;

/** "2 jobs and 1 process outside the queue in the last hour". */
export function staysSentence(bars: StayBar[], more: number, when: string): string {
  const jobs = new Set(bars.filter((b) => b.stay.kind === 'job').map((b) => b.stay.key)).size;
  const tasks = bars.length - jobs;
  const count = (n: number, one: string, many: string): string => `${n} ${n === 1 ? one : many}`;
  const parts = [jobs ? count(jobs, 'run of a job', 'runs of jobs') : '', tasks ? count(tasks, 'process outside the queue', 'processes outside the queue') : ''].filter(Boolean);
  return parts.length ? `${parts.join(' and ')} in ${when}${more ? `; ${more} more are not drawn` : ''}` : `nobody in ${when}`;
}
