import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task } from '../src/api/types';
import { floatOf, layBars, span, taskName, taskSentence, verdict } from '../src/format/tasks';
import { EMPTY, takeDelta, takeSnapshot, TASKS_S } from '../src/live/state';

const of = (more: Partial<Task>): Task => ({
  id: 'a', node: 'lab', pid: 7, gpus: ['GPU-1'], user: 'alice', kind: 'docker', container: null, container_id: null, image: null, pod: null, slurm_job: null, unit: null,
  command: '/usr/bin/python3 -u /srv/train.py --big', opened: null, start: 100, end: null, end_is_exact: false, source: 'open', deadline_s: null, float_s: null,
  expected_s: null, state: 'running', hit: null, gpu_seconds: 0, energy_joules: 0, memory_bytes: 0, memory_peak_bytes: 0, ...more,
});

test('what is said of a task', () => {
  assert.equal(verdict(of({}), 1000), 'running');
  assert.equal(verdict(of({ deadline_s: 30 }), 129), 'running');
  assert.equal(verdict(of({ deadline_s: 30 }), 131), 'overdue'); // before the server says so
  assert.equal(verdict(of({ deadline_s: 30, state: 'overdue', hit: false }), 131), 'overdue');
  assert.equal(verdict(of({ state: 'ended', end: 120, hit: true, deadline_s: 30, float_s: 10 }), 999), 'hit');
  assert.equal(verdict(of({ state: 'ended', end: 140, hit: false, deadline_s: 30, float_s: -10 }), 999), 'miss');
  assert.equal(verdict(of({ state: 'ended', end: 140 }), 999), 'ended');
  assert.equal(taskName(of({})), 'train.py');
  assert.equal(taskName(of({ container: 'box' })), 'box');
  assert.equal(floatOf(of({ deadline_s: 30 }), 110), 20);
  assert.equal(floatOf(of({}), 110), undefined);
  assert.match(taskSentence(of({ deadline_s: 30 }), 140, 'GPU 1'), /^train.py of alice on GPU 1: has run for 40.s of 30.0.s, overdue by 10.0.s$/);
  assert.equal(span(-1.5), '−1.50\u202fs');
});

test('bars do not overlap, and what is late is marked', () => {
  const tasks = [of({ id: 'a', start: 0, end: 50, state: 'ended' }), of({ id: 'b', start: 40, end: 60, state: 'ended' }), of({ id: 'c', start: 70, deadline_s: 10 }), of({ id: 'd', start: -50, end: -20, state: 'ended' })];
  const { bars, lanes } = layBars(tasks, 0, 100, 90);
  assert.deepEqual(bars.map((b) => [b.task.id, b.lane]), [['a', 0], ['b', 1], ['c', 0]]);
  assert.equal(lanes, 2);
  const c = bars[2];
  assert.ok(c && Math.abs(c.left - 0.7) < 1e-9 && Math.abs(c.width - 0.2) < 1e-9 && Math.abs((c.due ?? 0) - 0.8) < 1e-9 && Math.abs((c.late ?? 0) - 0.5) < 1e-9);
});

test('a delta changes tasks, and forgets those that ended long ago', () => {
  const first = takeSnapshot({ seq: 1, time: 1000, gpus: [], nodes: [], tasks: [of({ id: 'a' }), of({ id: 'b', end: 900, state: 'ended' })] }).picture;
  assert.equal(first.tasks.size, 2);
  const same = takeDelta(first, { seq: 2, time: 1001 });
  assert.equal(same.picture.tasks, first.tasks);
  assert.equal(same.isTasksChanged, false);
  const next = takeDelta(first, { seq: 2, time: 901 + TASKS_S, tasks: [of({ id: 'a', state: 'overdue' })] });
  assert.deepEqual([...next.picture.tasks.values()].map((t) => [t.id, t.state]), [['a', 'overdue']]);
  assert.equal(takeDelta(EMPTY, { seq: 1, time: 1 }).isTasksChanged, false);
});
