// What the server's API speaks. Fields that a card or a server may lack are optional: absent is not zero.

/** Unix seconds, or an ISO date where the command line's JSON is passed through. */
export type Stamp = number | string;
export type Metrics = Record<string, number>;

export interface Process {
  pid: number;
  user?: string;
  uid?: number;
  command?: string;
  comm?: string;
  kinds?: string[];
  memory_bytes?: number;
  sm_ratio?: number;
  memory_ratio?: number;
  start?: Stamp;
  gpu_instance?: number;
  container?: string;
}

export interface Xid {
  code: number;
  count: number;
  last: Stamp;
  severity?: string;
  what?: string;
  advice?: string;
}

export interface Guard {
  mode: string;
  lever: string;
  why?: string;
  limit?: number;
  baseline?: number;
  unit?: string;
  target?: number;
  reason?: string;
}

export interface Inventory {
  serial?: string;
  board_part?: string;
  vbios?: string;
  inforom?: string;
  architecture?: string;
  driver?: string;
  cores?: number;
  memory_bus_bits?: number;
  nvlinks?: number;
  sm_max_mhz?: number;
  memory_max_mhz?: number;
  ecc?: boolean;
  persistence?: boolean;
  mig?: boolean;
  pci?: { address?: string; generation_max?: number; width_max?: number };
  power_limits?: { min_watts?: number; max_watts?: number; default_watts?: number };
  temperature_limits?: Record<string, number>;
  control?: string[];
  clocks_mhz?: { memory: number; graphics: number[] }[];
  [more: string]: unknown;
}

/** Whose a GPU is by the queue, whether or not he uses it. */
export interface Holder {
  job: number;
  name: string;
  user: string;
}

export interface Gpu {
  held?: Holder[]; // not of the stream: what the queue says is put beside it
  index: number;
  uuid: string;
  model: string;
  state: string;
  state_reason?: string;
  state_text?: string;
  state_since?: Stamp;
  pci?: string;
  node?: string;
  age_s?: number;
  metrics: Metrics;
  processes?: Process[];
  xids?: Xid[];
  guard?: Guard;
  instances?: Gpu[];
  inventory?: Inventory;
  gpu_instance?: number;
}

export interface Totals {
  power_watts?: number;
  power_limit_watts?: number;
  memory_used_bytes?: number;
  memory_total_bytes?: number;
  gpus?: number;
  busy?: number;
  lost?: number;
}

export interface Node {
  name: string;
  state: string;
  last_seen?: Stamp;
  driver?: { state?: string; version?: string; text?: string; library?: string };
  version?: string;
  boot_id?: string;
  gpus?: string[];
  host?: Metrics;
  totals?: Totals;
}

export interface GpuEvent {
  id?: number | string;
  time: Stamp;
  severity: string;
  kind: string;
  text: string;
  code?: number;
  pid?: number;
  node?: string;
  gpu?: string | null;
  gpu_index?: number | null;
}

export interface Series {
  of: string;
  metric: string;
  resolution?: string;
  step_s?: number; // 0: as it was read
  time: number[];
  mean: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
}

export interface History {
  from: number;
  to: number;
  resolution: 'raw' | 'minute' | 'hour';
  step_s: number;
  read?: { raw_rows?: number; minute_rows?: number; hour_rows?: number };
  series: Series[];
}

export interface MetricInfo {
  name: string;
  unit: string;
  kind: string;
  keep?: string;
  help: string;
  scope: string;
}

export interface Group {
  name: string;
  label?: string;
  members: string[];
}

export interface User {
  name: string;
  role: string;
  unix?: boolean;
  has_password?: boolean;
}

export interface Session {
  user: User | null;
  csrf?: string;
  version?: string;
  host?: string;
}

/** A GPU task: one process on one or several GPUs. What is not known is null. */
export interface Task {
  id: string;
  node: string;
  pid: number;
  gpus: string[];
  user: string | null;
  kind: string;
  container: string | null;
  container_id: string | null;
  image: string | null;
  pod: string | null;
  slurm_job: number | null;
  unit: string | null;
  job?: number | null; // of the queue
  command: string | null;
  opened: number | null;
  start: number;
  end: number | null;
  end_is_exact: boolean;
  source: string;
  deadline_s: number | null;
  float_s: number | null;
  expected_s: number | null;
  state: 'running' | 'overdue' | 'ended';
  hit: boolean | null;
  gpu_seconds: number;
  energy_joules: number;
  memory_bytes: number;
  memory_peak_bytes: number;
}

export interface Container {
  id: string;
  node: string;
  name: string;
  image: string | null;
  engine: string;
  state: string;
  tenant: string | null;
  priority: number | null;
  created: number | null;
  deadline_s: number | null;
  period_s: number | null;
  periods: number | null;
  periods_hit: number | null;
  running: number;
  ended: number;
  hits: number;
  misses: number;
  hit_rate: number | null;
  float_s: number | null;
  least_float_s: number | null;
  last_miss: number | null;
  slack: [number | null, number][];
  gpu_seconds: number;
  energy_joules: number;
  memory_bytes: number;
  labels: Record<string, string>;
  gpus?: string[];
  left_s?: number | null;
}

/** A job, or one element of an array. What is not known, or does not apply, is null. */
export interface Job {
  id: number;
  element: number | null;
  name: string;
  state: 'waiting' | 'held' | 'starting' | 'running' | 'ending' | 'done' | 'failed' | 'cancelled' | 'timeout' | 'exit unknown';
  state_text: string | null;
  user: string;
  uid: number | null;
  account: string | null;
  origin: string;
  /** What made it, of a record that was handed in once. Its name is the job's. */
  parent: { kind: 'repeat' | 'service'; id: number } | null;
  command: string[];
  image: string | null;
  gpus: number;
  scope: string[];
  memory_bytes: number | null;
  share_bytes: number | null;
  priority: number;
  submitted: number;
  granted: number | null;
  started: number | null;
  ended: number | null;
  finish_by: number | null;
  time_limit_s: number | null;
  retries: number;
  attempt: number;
  node: string | null;
  gpu_uuids: string[];
  gpu_indices: number[];
  gpu_names: string[]; // "3", of an instance "3:1"
  exit_code: number | null;
  signal: number | null;
  reason: string | null;
  text: string | null;
  ui: { port: number | 'auto'; path: string } | null; // a UI of its own
  labels: Record<string, string>;
  after: string[];
  array: string | null;
  elements?: { total: number } & Record<string, number>; // of an array: how many are in which state
  place: number | null;
  why: string | null;
  starts_at: number | null;
  sooner: string | null;
  untold: string | null;
  insight: string | null;
  gpu_seconds: number | null;
  energy_joules: number | null;
  cpu_seconds: number | null;
  gpu_utilization_ratio: number | null; // since its start
  cpu_ratio: number | null; // 1: one core all the time
  memory_peak_bytes: number | null;
  memory_now_bytes: number | null; // this and what follows: told while it runs
  host_now_bytes: number | null;
  host_peak_bytes: number | null;
  disk_read_bytes: number | null;
  disk_written_bytes: number | null;
  log_bytes: number | null;
}

/** A run of a job that held a GPU. */
export interface GpuJob extends Pick<Job, 'id' | 'element' | 'attempt' | 'name' | 'user' | 'state' | 'parent' | 'granted' | 'started' | 'ended' | 'gpus' | 'share_bytes' | 'gpu_utilization_ratio' | 'memory_peak_bytes'> {}

export interface GpuJobs {
  from: number;
  to: number;
  is_whole: boolean; // false: older ones were left out
  jobs: GpuJob[];
}

/** What a run used over its time, of its own. Lists of the same length. */
export interface JobCurves {
  id: number;
  attempt: number;
  started: number | null;
  ended: number | null;
  step_s: number;
  time: number[];
  cpu_cores: (number | null)[];
  memory_bytes: (number | null)[];
  disk_read_bytes_per_second: (number | null)[];
  disk_written_bytes_per_second: (number | null)[];
}

/** What a job would come to that is not handed in yet. */
export interface Trial extends Pick<Job, 'name' | 'gpus' | 'time_limit_s' | 'finish_by' | 'array' | 'gpu_uuids' | 'gpu_indices' | 'gpu_names' | 'why' | 'place' | 'starts_at' | 'sooner'> {
  starts_now: boolean;
}

export interface PlanBar {
  gpu: string;
  from: number;
  to: number | null; // null: nobody knows
  kind: 'run' | 'plan';
  job: number;
}

export interface QueueGpu {
  uuid: string;
  index: number;
  name: string; // as people call it: "3", of an instance "3:1"
  node: string;
  held_by: number[];
  verdict: string;
  verdict_text: string;
  user: string | null;
  pid: number | null;
  memory_bytes: number | null;
  since: number | null;
  idle_since: number | null;
  outside: string | null;
  ends: number | null;
  cordon: string | null;
  cordoned_by: string | null;
}

export interface Queue {
  time: number;
  waiting: Job[];
  waiting_count: number;
  running: Job[];
  gpus: QueueGpu[];
  plan: PlanBar[];
}

export interface Snapshot {
  seq: number;
  time: Stamp;
  gpus: Gpu[];
  nodes: Node[];
  tasks?: Task[];
}

export type GpuDelta = Partial<Omit<Gpu, 'metrics'>> & { metrics?: Record<string, number | null> };
export type NodeDelta = Partial<Omit<Node, 'host' | 'totals'>> & { host?: Record<string, number | null>; totals?: Totals };
export interface Delta {
  seq: number;
  time: Stamp;
  gpus?: Record<string, GpuDelta>;
  nodes?: Record<string, NodeDelta>;
  tasks?: Task[];
  jobs?: unknown[]; // those that changed: whoever shows them asks again
}
