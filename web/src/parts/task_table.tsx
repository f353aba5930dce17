// Tasks as rows: the same as the bars, in words and figures.
import type { JSX } from 'preact';
import type { Task } from '../api/types';
import { bytes } from '../format/numbers';
import { moment } from '../format/times';
import { floatOf, SIGNS, span, taskName, took, verdict, WORDS } from '../format/tasks';
import { href } from '../live/route';
import { store } from '../live/store';
import { Absent } from './small';

export function gpuWords(t: Task): string {
  return t.gpus.map((u) => { const g = store.picture.gpus.get(u); return g ? `GPU ${g.index}` : u.slice(0, 12); }).join(', ');
}

export function Verdict({ task, now }: { task: Task; now: number }): JSX.Element {
  const v = verdict(task, now);
  return <span class={`verdict ${v}`}><span aria-hidden="true">{SIGNS[v]}</span> {WORDS[v]}</span>;
}

export function TaskTable({ tasks, now, label, hasContainer = true }: { tasks: Task[]; now: number; label: string; hasContainer?: boolean }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="tasks">
        <thead><tr><th>Task</th><th>State</th><th>On</th><th>User</th><th>Started</th><th class="num">Took</th><th class="num">Deadline</th><th class="num">Float</th><th class="num">Memory, most</th></tr></thead>
        <tbody>
          {tasks.map((t) => {
            const left = floatOf(t, now);
            return (
              <tr key={t.id} class={verdict(t, now)} data-pid={t.pid}>
                <td>{hasContainer && t.container_id ? <a class="link" href={href(`containers/${t.container_id}`)}>{taskName(t)}</a> : <span class="command" title={t.command ?? ''}>{taskName({ ...t, container: hasContainer ? t.container : null })}</span>}<div class="dim">pid {t.pid}{t.slurm_job !== null ? ` · Slurm job ${t.slurm_job}` : t.unit ? ` · ${t.unit}` : ''}</div></td>
                <td><Verdict task={t} now={now} /></td>
                <td>{gpuWords(t)}</td>
                <td>{t.user ?? <Absent why="the user is not told" />}</td>
                <td>{moment(t.start, now)}</td>
                <td class="num">{span(took(t, now))}</td>
                <td class="num">{t.deadline_s === null ? 'none' : span(t.deadline_s)}</td>
                <td class="num">{t.deadline_s === null ? '' : left === undefined ? <Absent why="it ended while nobody watched" /> : span(left)}</td>
                <td class="num">{t.memory_peak_bytes ? bytes(t.memory_peak_bytes) : <Absent why="the driver does not tell" />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
