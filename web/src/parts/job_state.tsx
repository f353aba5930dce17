// A job's state, and what it is called, as every table shows them.
import type { JSX } from 'preact';
import type { Job, QueueGpu } from '../api/types';
import { jobNumber, JOB_SIGNS, mood, wants } from '../format/jobs';
import { href } from '../live/route';
import { store } from '../live/store';

export function JobState({ job }: { job: Job }): JSX.Element {
  const m = mood(job);
  return <span class={`jobstate ${m}`} data-state={job.state}><span aria-hidden="true">{JOB_SIGNS[m]}</span> {job.state}</span>;
}

/** An element of an array is a part of its job's page. */
export const jobHref = (job: { id: number; element: number | null }): string => href(`jobs/${job.id}`, job.element === null ? {} : { element: String(job.element) });

export function JobName({ job }: { job: Job }): JSX.Element {
  return <><a class="link" href={jobHref(job)}>{job.name}</a><div class="dim">{job.user} · {jobNumber(job)}</div></>;
}

export const wantsWords = (job: Job): string => wants(job, (uuid) => store.picture.gpus.get(uuid)?.index);

export function onWords(job: Pick<Job, 'gpu_indices' | 'gpu_names' | 'gpu_uuids'>): string {
  const names = job.gpu_indices.every((n) => n !== null) ? job.gpu_names : job.gpu_uuids.flatMap((u) => store.picture.gpus.get(u)?.index ?? []);
  return names.length ? `GPU ${names.join(', ')}` : '';
}

/** Of an instance the page of its card. */
export function gpuHref(gpu: Pick<QueueGpu, 'uuid' | 'node' | 'index'>): string {
  const card = store.picture.gpus.get(gpu.uuid) ?? [...store.picture.gpus.values()].find((g) => g.node === gpu.node && g.index === gpu.index);
  return href(`gpus/${card?.uuid ?? gpu.uuid}`);
}
