import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { History, Job, JobCurves, Queue } from '../src/api/types';
import { endWords, fieldOf, jobKey, jobLines, jobNumber, layPlan, mayControl, mood, NO_WISH, parentWords, planSentence, ranges, Slot, slotsOf, specOf, startsIn, wants } from '../src/format/jobs';

const GIB = 2 ** 30;
const job = (over: Partial<Job> = {}): Job => ({
  id: 17, element: null, name: 'train', state: 'waiting', state_text: null, account: null, granted: null, user: 'ada', uid: 1000, origin: 'command', parent: null, ui: null, command: ['train'], image: null, gpus: 1, scope: [], memory_bytes: null,
  share_bytes: null, priority: 0, submitted: 100, started: null, ended: null, finish_by: null, time_limit_s: null, retries: 0, attempt: 0, node: null, gpu_uuids: [], gpu_indices: [], gpu_names: [],
  exit_code: null, signal: null, reason: null, text: null, labels: {}, after: [], array: null, place: 1, why: null, starts_at: null, sooner: null, untold: null, insight: null, gpu_seconds: null,
  energy_joules: null, cpu_seconds: null, memory_peak_bytes: null, gpu_utilization_ratio: null, cpu_ratio: null, memory_now_bytes: null, host_now_bytes: null, host_peak_bytes: null,
  disk_read_bytes: null, disk_written_bytes: null, log_bytes: null, ...over,
});
const index = (uuid: string): number | undefined => ({ 'GPU-a': 0, 'GPU-b': 1, 'GPU-c': 2 })[uuid];
const plain = (s: string): string => s.replace(/\u202f/g, ' ');

test('jobs: what one asks for', () => {
  const rows: [Partial<Job>, string][] = [
    [{ gpus: 2 }, '2 of any'],
    [{ gpus: 1, scope: ['0:1'] }, 'GPU 0:1'],
    [{ gpus: 1, scope: ['0:1', '2'] }, '1 of GPUs 0:1, 2'],
    [{ gpus: 2, memory_bytes: 40 * GIB }, '2 of any with 40.0 GiB'],
    [{ gpus: 1, scope: ['GPU-b'] }, 'GPU 1'],
    [{ gpus: 3, scope: ['GPU-c', 'GPU-a', 'GPU-b'] }, 'GPUs 0-2'],
    [{ gpus: 1, scope: ['GPU-a', 'GPU-c'] }, '1 of GPUs 0, 2'],
    [{ gpus: 2, scope: ['0', '5'] }, 'GPUs 0, 5'],
    [{ gpus: 1, scope: ['GPU-gone', 'GPU-a'] }, '1 of 2 GPUs'],
    [{ share_bytes: 10 * GIB }, '10.0 GiB of one'],
  ];
  for (const [over, want] of rows) assert.equal(plain(wants(job(over), index)), want);
});

test('jobs: numbers in a row are a range', () => {
  assert.equal(ranges([3, 1, 2, 7, 0]), '0-3, 7');
  assert.equal(ranges([4, 5]), '4, 5');
  assert.equal(ranges([]), '');
});

test('jobs: names, states and ends', () => {
  assert.equal(jobKey({ id: 3, element: null }), '3');
  assert.equal(jobKey({ id: 3, element: 0 }), '3.0');
  assert.equal(jobNumber(job({ element: 4 })), 'job 17[4]');
  assert.equal(jobNumber(job({ array: '1-100%8' })), 'job 17[1-100%8]');
  assert.equal(jobNumber(job({ origin: 'watchmen' })), 'watchmen client 17');
  assert.equal(parentWords(job()), '');
  assert.equal(parentWords(job({ parent: { kind: 'repeat', id: 3 } })), 'of repeat train');
  assert.equal(mood(job({ state: 'exit unknown' })), 'bad');
  assert.equal(mood(job({ state: 'held' })), 'waiting');
  assert.equal(endWords(job({ state: 'failed', exit_code: 3 })), 'exit 3');
  assert.equal(endWords(job({ state: 'failed', signal: 9 })), 'signal 9');
  assert.equal(endWords(job({ state: 'timeout', signal: 15, reason: 'reached its time limit' })), 'reached its time limit');
  assert.equal(endWords(job({ state: 'exit unknown' })), 'ended, nobody knows how');
  assert.equal(endWords(job({ state: 'running', exit_code: 0 })), '');
});

test('jobs: when it starts, in words', () => {
  assert.equal(startsIn(job(), 100), 'not known');
  assert.equal(startsIn(job({ starts_at: 100.2 }), 100), 'any moment');
  assert.equal(plain(startsIn(job({ starts_at: 460 }), 100)), '6 min');
});

test('jobs: bars of the plan lie where their times are, and an end that nobody knows is open', () => {
  const bar = (from: number, to: number | null, kind: Slot['kind'] = 'running'): Slot => ({ gpu: 'GPU-a', from, to, kind, job: 1, name: 'a', user: 'ada' });
  const laid = layPlan([bar(150, 200), bar(50, 110), bar(0, 90), bar(180, null)], 100, 200);
  assert.deepEqual(laid.map((b) => [b.left, Number(b.width.toFixed(3)), b.isOpen]), [[0, 0.1, false], [0.5, 0.5, false], [0.8, 0.2, true]]);
  assert.match(planSentence(bar(100, 220, 'planned'), 'GPU 0', 40), /planned in 1.min, for about 2.min/);
  assert.match(planSentence({ ...bar(0, null, 'foreign'), user: null }, 'GPU 0', 40), /^GPU 0: a has it, outside the queue$/);
});

test('jobs: the plan has names, and GPUs that are nobody\'s to give', () => {
  const gpu = { index: 0, name: '0', node: 'lab', held_by: [], user: null, pid: null, memory_bytes: null, since: 50, idle_since: null, outside: null, ends: null, cordon: null, cordoned_by: null };
  const q: Queue = {
    time: 100, waiting: [job({ id: 2, name: 'later' })], waiting_count: 1, running: [job({ id: 1, name: 'runs', state: 'running' })],
    gpus: [{ ...gpu, uuid: 'GPU-a', verdict: 'free', verdict_text: 'is free', held_by: [1] }, { ...gpu, uuid: 'GPU-b', verdict: 'foreign', verdict_text: 'is used', user: 'bob', pid: 7 }, { ...gpu, uuid: 'GPU-c', verdict: 'cordoned', verdict_text: 'was taken out of service', cordon: 'fan' }],
    plan: [{ gpu: 'GPU-a', from: 90, to: 150, job: 1, kind: 'run' }, { gpu: 'GPU-a', from: 150, to: null, job: 2, kind: 'plan' }],
  };
  assert.deepEqual(slotsOf(q).map((s) => [s.gpu, s.kind, s.name, s.user]), [['GPU-b', 'foreign', 'pid 7', 'bob'], ['GPU-c', 'out', 'fan', null], ['GPU-a', 'running', 'runs', 'ada'], ['GPU-a', 'planned', 'later', 'ada']]);
});

test('jobs: who may end one', () => {
  const who = (name: string, role = 'member'): Parameters<typeof mayControl>[1] => ({ name, role });
  assert.equal(mayControl(job({ user: 'ada' }), who('ada')), true);
  assert.equal(mayControl(job({ user: 'ada' }), who('bob')), false);
  assert.equal(mayControl(job({ user: 'runner', account: 'bob' }), who('bob')), true);
  assert.equal(mayControl(job({ user: 'bob', account: 'eve' }), who('bob')), false);
  assert.equal(mayControl(job(), who('root', 'admin')), true);
  assert.equal(mayControl(job(), null), false);
});

test('jobs: a form as the API takes it', () => {
  assert.deepEqual(specOf({ ...NO_WISH, command: ' python x.py ' }), { command: 'python x.py', gpus: 1 });
  assert.deepEqual(specOf({ ...NO_WISH, command: 'x', which: 'these', chosen: ['GPU-a', 'GPU-b'] }), { command: 'x', gpu_ids: ['GPU-a', 'GPU-b'] });
  assert.deepEqual(specOf({ ...NO_WISH, command: 'x', which: 'these', all: false, gpus: '1', chosen: ['GPU-a', 'GPU-b'] }), { command: 'x', scope: ['GPU-a', 'GPU-b'], gpus: 1 });
  assert.deepEqual(specOf({ ...NO_WISH, command: 'x', ui: ' 8888/lab ' }), { command: 'x', gpus: 1, ui: '8888/lab' });
  assert.deepEqual(specOf({ ...NO_WISH, command: 'x', gpus: 'two' }), { command: 'x', gpus: 'two' }, 'the server says what is wrong with it');
  assert.deepEqual(specOf({ ...NO_WISH, command: 'x', share: '10GiB', env: 'A=1\n\nB=x=y', after: '17, 18:any', priority: '-3' }),
    { command: 'x', share: '10GiB', env: { A: '1', B: 'x=y' }, after: ['17', '18:any'], priority: -3 });
});

test('jobs: a sentence finds its field', () => {
  assert.equal(fieldOf('gpus: 9 are asked for, and this machine has 8'), 'gpus');
  assert.equal(fieldOf('time_limit: "x" is no length of time'), 'timeLimit');
  assert.equal(fieldOf('The server does not answer'), undefined);
});

test('jobs: lines of its charts are its own, with those of the machine behind them on one scale', () => {
  const own: JobCurves = { id: 1, attempt: 1, started: 100, ended: null, step_s: 2, time: [102, 104], cpu_cores: [0.5, null], memory_bytes: [7, 9], disk_read_bytes_per_second: [null, null], disk_written_bytes_per_second: [5, 6] };
  const series = (metric: string, mean: (number | null)[]) => ({ of: 'host:lab', metric, time: [101, 103], mean });
  const host: History = { from: 100, to: 104, resolution: 'raw', step_s: 0, series: [series('host_cpu_utilization_ratio', [0.25, null]), series('host_cpus', [8, 8]), series('host_disk_read_bytes_per_second', [1, 2])] };
  const { cpu, memory, disk } = jobLines(own, host);
  assert.deepEqual(cpu.map((l) => [l.label, l.isFaint, l.time, l.value]), [['the machine', true, [101, 103], [2, null]], ['the job', false, [102, 104], [0.5, null]]]);
  assert.deepEqual(memory.map((l) => l.value), [[7, 9]]);
  assert.deepEqual(disk.map((l) => [l.label, l.value.length]), [['the machine read', 2], ['the machine wrote', 0], ['the job read', 2], ['the job wrote', 2]]);
  assert.deepEqual(jobLines(undefined, undefined).cpu.map((l) => l.label), ['the job'], 'without a count of processors the machine has no scale');
});
