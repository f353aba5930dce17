// The live picture of all GPUs and nodes, and how a message of the stream changes it. Pure: the old picture and a message in,
// the new picture and what changed out; an object that did not change stays the same object.
import type { Delta, Gpu, GpuDelta, GpuEvent, Holder, Job, Metrics, Node, Snapshot, Task } from '../api/types';
import { unix } from '../format/times';

export interface Picture {
  seq: number;
  time: number;
  gpus: Map<string, Gpu>;
  nodes: Map<string, Node>;
  tasks: Map<string, Task>; // those that run, and those that ended lately
}

export interface Change {
  picture: Picture;
  gpus: string[]; // whose readings or state changed
  nodes: string[];
  isTasksChanged: boolean;
  isJobsChanged: boolean;
  isListChanged: boolean; // cards came, went, or changed state
  isLost: boolean; // a message is missing: ask for a new snapshot
}

export const EMPTY: Picture = { seq: 0, time: 0, gpus: new Map(), nodes: new Map(), tasks: new Map() };

export const TASKS_S = 600; // ended tasks stay in the picture for so long

export function takeSnapshot(snapshot: Snapshot): Change {
  const gpus = new Map(snapshot.gpus.map((g) => [g.uuid, { ...g, metrics: g.metrics ?? {} }]));
  const nodes = new Map(snapshot.nodes.map((n) => [n.name, n]));
  return {
    picture: { seq: snapshot.seq, time: unix(snapshot.time), gpus, nodes, tasks: new Map((snapshot.tasks ?? []).map((t) => [t.id, t])) },
    gpus: [...gpus.keys()], nodes: [...nodes.keys()], isTasksChanged: true, isJobsChanged: true, isListChanged: true, isLost: false,
  };
}

function mergeNumbers(old: Metrics | undefined, news: Record<string, number | null> | undefined): Metrics {
  const merged: Metrics = { ...old };
  for (const [name, value] of Object.entries(news ?? {})) {
    if (value === null) delete merged[name];
    else merged[name] = value;
  }
  return merged;
}

function mergeGpu(old: Gpu, news: GpuDelta): Gpu {
  const { metrics, ...rest } = news;
  const next: Gpu = { ...old, ...rest, metrics: metrics ? mergeNumbers(old.metrics, metrics) : old.metrics };
  if (news.state !== undefined && news.state_reason === undefined) delete next.state_reason;
  return next;
}

/** The same map where nothing changed; without those that ended long ago where something did. */
function mergeTasks(old: Map<string, Task>, news: Task[] | undefined, now: number): Map<string, Task> {
  if (!news?.length) return old;
  const tasks = new Map(old);
  for (const t of news) tasks.set(t.id, t);
  for (const [id, t] of tasks) if (t.end !== null && now - t.end > TASKS_S) tasks.delete(id);
  return tasks;
}

export function takeDelta(old: Picture, delta: Delta): Change {
  const gpus = new Map(old.gpus);
  const nodes = new Map(old.nodes);
  const changed: string[] = [];
  let isListChanged = false;
  let isLost = false;
  for (const [uuid, news] of Object.entries(delta.gpus ?? {})) {
    const before = old.gpus.get(uuid);
    if (!before) {
      isLost = true;
      continue;
    }
    const after = mergeGpu(before, news);
    if (after.state !== before.state) isListChanged = true;
    gpus.set(uuid, after);
    changed.push(uuid);
  }
  const changedNodes: string[] = [];
  for (const [name, news] of Object.entries(delta.nodes ?? {})) {
    const before = old.nodes.get(name);
    if (!before) {
      isLost = true;
      continue;
    }
    const { host, ...rest } = news;
    nodes.set(name, { ...before, ...rest, host: host ? mergeNumbers(before.host, host) : before.host });
    changedNodes.push(name);
  }
  const time = unix(delta.time) || old.time;
  const tasks = mergeTasks(old.tasks, delta.tasks, time);
  return { picture: { seq: delta.seq, time, gpus, nodes, tasks }, gpus: changed, nodes: changedNodes, isTasksChanged: tasks !== old.tasks, isJobsChanged: !!delta.jobs?.length, isListChanged, isLost };
}

/** Puts beside each card whose it is by the queue; a card for which that is as before stays the same object. */
export function withHolders(old: Picture, holders: Map<string, Holder[]>): { picture: Picture; gpus: string[] } {
  const gpus = new Map(old.gpus);
  const changed: string[] = [];
  const text = (list: Holder[] | undefined): string => JSON.stringify(list ?? []);
  for (const [uuid, g] of old.gpus) {
    if (text(g.held) === text(holders.get(uuid))) continue;
    gpus.set(uuid, { ...g, held: holders.get(uuid) ?? [] });
    changed.push(uuid);
  }
  return changed.length ? { picture: { ...old, gpus }, gpus: changed } : { picture: old, gpus: [] };
}

/** Of jobs that have GPUs now. */
export function holdersOf(running: Pick<Job, 'id' | 'name' | 'user' | 'gpu_uuids'>[]): Map<string, Holder[]> {
  const holders = new Map<string, Holder[]>();
  for (const j of running) for (const uuid of j.gpu_uuids) holders.set(uuid, [...(holders.get(uuid) ?? []), { job: j.id, name: j.name, user: j.user }]);
  return holders;
}

/** Newest first, without doubles, and not endless. */
export function addEvent(list: GpuEvent[], event: GpuEvent, most = 500): GpuEvent[] {
  if (event.id !== undefined && list.some((e) => e.id === event.id)) return list;
  return [event, ...list].sort((a, b) => unix(b.time) - unix(a.time)).slice(0, most);
}

/** The last minutes of one reading of one card, for its spark line. */
export class Trail {
  time: number[] = [];
  value: (number | null)[] = [];

  constructor(readonly seconds: number) {}

  add(time: number, value: number | null): void {
    const last = this.time[this.time.length - 1];
    if (last !== undefined && time <= last) return;
    this.time.push(time);
    this.value.push(value);
    let old = 0;
    while (old < this.time.length && (this.time[old] as number) < time - this.seconds) old++;
    if (old > 32) {
      this.time.splice(0, old);
      this.value.splice(0, old);
    }
  }

  /** What the server remembers takes the place of what came live until then: it knows what was missed. */
  prime(time: number[], value: (number | null)[]): void {
    const last = time[time.length - 1];
    if (last === undefined) return;
    const n = this.time.findIndex((t) => t > last);
    const from = n < 0 ? this.time.length : n;
    this.time = [...time, ...this.time.slice(from)];
    this.value = [...value, ...this.value.slice(from)];
  }
}
