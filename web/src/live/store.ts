// The page's one live store: holds the picture, tells components what changed. A component listens to a topic: "gpu:UUID",
// "node:NAME", "list" (which cards there are and how they stand), "tick" (each second), "renewed" (a connection began), "events", "tasks", "jobs", "status". News are gathered and
// told once a frame, and not at all while nobody looks.
import { getHistory } from '../api/client';
import type { Gpu, GpuEvent, Holder, Node, Task } from '../api/types';
import { trimmed } from '../format/series';
import { addEvent, Change, EMPTY, Picture, Trail, withHolders } from './state';

export type Status = 'connecting' | 'live' | 'stale';
export const TRAIL_SECONDS = 300;

type Listener = () => void;

export class Store {
  picture: Picture = EMPTY;
  status: Status = 'connecting';
  hasPicture = false;
  events: GpuEvent[] = [];
  trails = new Map<string, Trail>();
  private heardAt = 0;
  private holders = new Map<string, Holder[]>();
  private offset = 0; // the server's clock less ours
  private listeners = new Map<string, Set<Listener>>();
  private pending = new Set<string>();
  private isPlanned = false;
  private isPriming = false;

  constructor() {
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && this.pending.size) this.plan();
    });
  }

  on(topic: string, listener: Listener): () => void {
    let set = this.listeners.get(topic);
    if (!set) this.listeners.set(topic, (set = new Set()));
    set.add(listener);
    return () => set.delete(listener);
  }

  private tell(...topics: string[]): void {
    for (const t of topics) this.pending.add(t);
    this.plan();
  }

  private plan(): void {
    if (this.isPlanned || document.hidden) return;
    this.isPlanned = true;
    requestAnimationFrame(() => {
      this.isPlanned = false;
      const topics = [...this.pending];
      this.pending.clear();
      for (const topic of topics) for (const listener of [...(this.listeners.get(topic) ?? [])]) listener();
    });
  }

  /** Server time: what ages and "last 5 minutes" are counted from. */
  now(): number {
    return Date.now() / 1000 + this.offset;
  }

  heard(): void {
    this.heardAt = performance.now();
    this.setStatus('live');
  }

  silenceS(): number {
    return this.heardAt ? (performance.now() - this.heardAt) / 1000 : 0;
  }

  setStatus(status: Status): void {
    if (status === this.status) return;
    this.status = status;
    this.tell('status');
  }

  /** What the queue says about whose the cards are. */
  setHolders(holders: Map<string, Holder[]>): void {
    this.holders = holders;
    const { picture, gpus } = withHolders(this.picture, holders);
    this.picture = picture;
    if (gpus.length) this.tell('list', ...gpus.map((u) => `gpu:${u}`));
  }

  take(change: Change): void {
    this.picture = change.isListChanged ? withHolders(change.picture, this.holders).picture : change.picture;
    this.hasPicture = true;
    if (change.picture.time) this.offset = change.picture.time - Date.now() / 1000;
    for (const [uuid, gpu] of this.picture.gpus) this.trail(uuid).add(this.picture.time, gpu.metrics['gpu_temperature_celsius'] ?? null);
    this.tell('tick', ...change.gpus.map((u) => `gpu:${u}`), ...change.nodes.map((n) => `node:${n}`));
    if (change.isListChanged) this.tell('list');
    if (change.isTasksChanged) this.tell('tasks');
    if (change.isJobsChanged) this.tell('jobs');
  }

  /** A connection began: what was missed before it can be asked for. */
  renewed(): void {
    this.tell('renewed');
    void this.primeTrails();
  }

  takeEvents(list: GpuEvent[]): void {
    const before = this.events;
    for (const e of list) this.events = addEvent(this.events, e);
    if (this.events !== before) this.tell('events');
  }

  trail(uuid: string): Trail {
    let t = this.trails.get(uuid);
    if (!t) this.trails.set(uuid, (t = new Trail(TRAIL_SECONDS)));
    return t;
  }

  /** Fills the spark lines with what the server remembers, once a connection. */
  async primeTrails(): Promise<void> {
    const uuids = [...this.picture.gpus.keys()].slice(0, 64);
    if (this.isPriming || !uuids.length) return;
    this.isPriming = true;
    try {
      const got = await getHistory(uuids.map((u) => `gpu:${u}`), ['gpu_temperature_celsius'], this.now() - TRAIL_SECONDS, this.now(), 300);
      for (const s of trimmed(got).series) this.trail(s.of.replace(/^gpu:/, '')).prime(s.time, s.mean);
      this.tell('list');
    } catch {
      // The lines begin with now instead.
    }
    this.isPriming = false;
  }

  gpus(): Gpu[] {
    return [...this.picture.gpus.values()].sort((a, b) => (a.node ?? '').localeCompare(b.node ?? '') || a.index - b.index);
  }

  /** The newest first. */
  tasks(): Task[] {
    return [...this.picture.tasks.values()].sort((a, b) => b.start - a.start);
  }

  nodes(): Node[] {
    return [...this.picture.nodes.values()].sort((a, b) => a.name.localeCompare(b.name));
  }
}

export const store = new Store();
