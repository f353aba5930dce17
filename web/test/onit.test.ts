import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GpuJob, Task } from '../src/api/types';
import { jobStaySentence, layStays, LANES_MOST, Stay, staysOf, staysSentence, taskStaySentence } from '../src/format/onit';

const plain = (s: string): string => s.replace(/\u202f/g, ' ');
const gpuJob = (over: Partial<GpuJob> = {}): GpuJob => ({ id: 17, element: null, attempt: 1, name: 'train', user: 'ada', state: 'running', parent: null, granted: 100, started: 101, ended: null, gpus: 1, share_bytes: null, gpu_utilization_ratio: 0.93, memory_peak_bytes: null, ...over });
const task = (over: Partial<Task> = {}): Task => ({
  id: 'b-7-1', node: 'lab', pid: 7, gpus: ['GPU-a'], user: 'bob', kind: 'session', container: null, container_id: null, image: null, pod: null, slurm_job: null, unit: null, job: null, command: 'python x.py', opened: null, start: 100, end: null,
  end_is_exact: false, source: 'list', deadline_s: null, float_s: null, expected_s: null, state: 'running', hit: null, gpu_seconds: 50, energy_joules: 0, memory_bytes: 0, memory_peak_bytes: 0, ...over,
});
const stay = (from: number, to: number | null): Stay => ({ key: `${from} ${to}`, kind: 'job', mood: 'running', name: 'a', user: null, from, to, sentence: '' });

test('on it: who, what, since when and how busy', () => {
  assert.match(plain(jobStaySentence(gpuJob(), 221)), /^train of ada, job 17: runs since .* \(2 min\), GPU 93 % busy$/);
  assert.match(plain(jobStaySentence(gpuJob({ element: 3, state: 'failed', ended: 161, gpu_utilization_ratio: null }), 221)), /^train of ada, job 17\[3\]: failed, .* to .* \(1 min\)$/);
  assert.match(jobStaySentence(gpuJob({ started: null, state: 'starting' }), 221), /is being started/);
  assert.match(plain(taskStaySentence(task(), 200)), /^x\.py of bob, pid 7, outside the queue: since .* \(1 min\), GPU 50 % busy$/);
});

test('on it: tasks of the queue\'s jobs are their jobs', () => {
  const got = staysOf([gpuJob()], [task(), task({ id: 'c', kind: 'job' }), task({ id: 'd', kind: 'docker', job: 17 })], 200);
  assert.deepEqual(got.map((s) => [s.kind, s.name, s.from, s.to]), [['job', 'train', 100, null], ['task', 'x.py', 100, null]]);
});

test('on it: bars lie where their times are, in as few lanes as they can', () => {
  const { bars, lanes, more } = layStays([stay(150, null), stay(0, 90), stay(100, 150), stay(120, 130), stay(300, 400)], 95, 195, 195);
  assert.deepEqual(bars.map((b) => [b.lane, Number(b.left.toFixed(2)), Number(b.width.toFixed(2)), b.isOpen]), [[0, 0.05, 0.5, false], [1, 0.25, 0.1, false], [0, 0.55, 0.45, true]]);
  assert.deepEqual([lanes, more], [2, 0]);
  const crowd = layStays(Array.from({ length: 20 }, () => stay(100, 190)), 95, 195, 195);
  assert.deepEqual([crowd.bars.length, crowd.lanes, crowd.more], [LANES_MOST, LANES_MOST, 20 - LANES_MOST]);
  assert.equal(layStays([], 0, 1, 1).lanes, 1);
  assert.ok((layStays([stay(100, 100.001)], 0, 1000, 1000).bars[0]?.width ?? 0) > 0.001, 'a short one is still seen');
});

test('on it: in a sentence', () => {
  const { bars, more } = layStays([stay(1, 2), stay(3, 4)], 0, 10, 10);
  assert.equal(staysSentence(bars, more, 'the last hour'), '2 runs of jobs in the last hour');
  assert.equal(staysSentence([], 0, 'the last hour'), 'nobody in the last hour');
  assert.match(staysSentence(bars, 3, 'x'), /; 3 more are not drawn$/);
});
