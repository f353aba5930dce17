// What the API says about services, containers, reservations and repeating jobs.
import type { Job } from './types';

export interface ServicePolicy {
  restart: 'always' | 'on-failure' | 'never';
  pause: string;
  pause_most: string;
  forget: string;
  give_up: number;
  within: string;
  yield: boolean;
  health?: { http?: string; port?: number; status?: number; tcp?: number; command?: string[]; interval: string; timeout: string; grace: string; failures: number } | undefined;
}

/** A job that stays up. */
export interface Service {
  id: number;
  name: string;
  state: 'starting' | 'waiting' | 'healthy' | 'unhealthy' | 'backing off' | 'yielded' | 'suspended' | 'ended' | 'given up' | 'being removed';
  text: string | null;
  user: string;
  uid: number;
  account: string | null;
  node: string;
  made: number;
  revision: number;
  next_revision: number | null;
  job: number | null;
  next_job: number | null;
  old_job: number | null;
  restarts: number;
  healthy_since: number | null;
  starts_at: number | null;
  starting_since: number | null; // of the run that is to become healthy
  starting_until: number | null; // by when its checks must pass
  failures: number;
  probe: 'none' | 'http' | 'tcp' | 'command';
  image: string;
  gpus: number;
  priority: number;
  service?: ServicePolicy;
  checks: { time: number; job: number; ok: boolean; took_s: number }[];
  check_text: string | null;
  revisions?: { number: number; made: number; by: string; job: Job }[]; // of one that was asked for
  jobs?: Job[];
}
export interface Services {
  time: number;
  services: Service[];
}

/** A container that has to do with GPUs, as its machine's engine has it now. */
export interface ContainerRow {
  node: string;
  id: string;
  name: string;
  image: string;
  engine: string;
  state: string | null;
  user: string | null;
  account: string | null;
  is_ours: boolean; // added by gpumgr: `user` is whose it is
  deadline: string | null;
  ui: string | null;
  job: number | null;
  created: number | null;
  started: number | null;
  ended: number | null;
  exit_code: number | null;
  error: string | null;
  restart: string | null;
  gpus: { uuid: string; index: number | null }[];
  all_gpus: boolean;
  tasks: number;
  memory_bytes: number;
  may: string[]; // what whoever asks may do with it
}

export interface ContainerList {
  time: number;
  containers: ContainerRow[];
  problems: { node: string; text: string }[];
}

export interface ContainerSpec {
  image: string;
  name: string;
  command: string[];
  env: Record<string, string>;
  mounts: string[];
  labels: Record<string, string>;
  gpus: number; // -1: all
  gpu_ids: string[];
  shared?: boolean;
  cwd: string;
  deadline: string;
  period: string;
  ui: string;
  restart: string;
}

/** What a change changes: of a container, a repeat, a reservation. */
export interface Change {
  key: string;
  from: unknown; // null: it is not there
  to: unknown;
}

export interface Image {
  name: string;
  size_bytes: number;
  created: number;
}

/** GPUs kept for somebody. Times are Unix seconds. */
export interface Reservation {
  id: number;
  user: string | null;
  group: string | null;
  node: string;
  gpu_uuids: string[];
  gpu_indices: number[];
  begins: number;
  for_s: number;
  every: string | null;
  zone: string | null;
  until: number | null;
  note: string | null;
  made_by: string;
  made: number;
  state: 'ahead' | 'now' | 'unused' | 'over';
  next: { from: number; to: number } | null;
  may_cancel: boolean;
}

export interface ReservedWindow {
  id: number;
  from: number;
  to: number;
}

export interface Reservations {
  time: number;
  hours_left: number | null; // null: without a limit
  reservations: Reservation[];
  windows: ReservedWindow[];
}

/** A time of a repeating job: when, and what became of it. */
export interface RepeatSlot {
  at: number;
  local: string;
  outcome: string;
  by_hand: boolean;
  count: number;
  job: number | null;
}

export interface RepeatTimes {
  cron: string | null;
  interval: string | null;
  zone: string;
  next: { at: number; local: string }[];
}

/** A repeating job, with what its jobs ask for. */
export interface Repeat extends RepeatTimes {
  id: number;
  name: string;
  state: 'on' | 'paused' | 'over' | 'in trouble';
  problem: string | null;
  user: string;
  account: string | null;
  late_s: number;
  overlap: 'skip' | 'queue' | 'cancel';
  open_jobs: number[];
  slots: RepeatSlot[];
  command: string[];
}

/** A job as it can be handed in again, as far as the page asks for it. */
export interface RepeatJob {
  name: string;
  command: string[];
  gpus: number;
  time_limit?: string;
  repeat: { cron?: string; interval?: string; zone?: string; late: string; overlap: 'skip' | 'queue' | 'cancel' };
}

export interface RepeatEdited {
  changes: Change[];
  seals: boolean;
  times: RepeatTimes;
  job?: RepeatJob;
}

export interface ReservationEdited {
  changes: Change[];
  reservation: Reservation;
}
