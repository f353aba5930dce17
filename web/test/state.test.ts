import assert from 'node:assert/strict';
import test from 'node:test';
import type { GpuEvent, Snapshot } from '../src/api/types';
import { addEvent, holdersOf, takeDelta, takeSnapshot, Trail, withHolders } from '../src/live/state';
import { metricLabel, metricShelf, shortModel } from '../src/format/labels';

const snapshot: Snapshot = {
  seq: 1, time: 100,
  gpus: [{ index: 0, uuid: 'a', model: 'H200', state: 'ok', metrics: { t: 50, p: 100 } }, { index: 1, uuid: 'b', model: 'H200', state: 'lost', state_reason: 'gone', metrics: {} }],
  nodes: [{ name: 'n', state: 'ok', host: { load: 1 } }],
};

test('delta: changes one card and leaves the others the same objects', () => {
  const { picture } = takeSnapshot(snapshot);
  const change = takeDelta(picture, { seq: 2, time: 101, gpus: { a: { metrics: { t: 51, p: null } } } });
  assert.deepEqual(change.picture.gpus.get('a')?.metrics, { t: 51 });
  assert.equal(change.picture.gpus.get('b'), picture.gpus.get('b'));
  assert.deepEqual([change.gpus, change.isListChanged, change.isLost, change.picture.time], [['a'], false, false, 101]);
  assert.deepEqual(picture.gpus.get('a')?.metrics, { t: 50, p: 100 }, 'the old picture is untouched');
});
test('delta: a card that comes back loses its old reason', () => {
  const change = takeDelta(takeSnapshot(snapshot).picture, { seq: 2, time: 101, gpus: { b: { state: 'ok', metrics: { t: 30 } } } });
  const b = change.picture.gpus.get('b');
  assert.deepEqual([b?.state, b?.state_reason, b?.metrics, change.isListChanged], ['ok', undefined, { t: 30 }, true]);
});
test('delta: an unknown card asks for a new snapshot', () => {
  const change = takeDelta(takeSnapshot(snapshot).picture, { seq: 2, time: 101, gpus: { z: { metrics: { t: 1 } } } });
  assert.ok(change.isLost);
  assert.ok(!change.picture.gpus.has('z'));
});
test('delta: host figures are merged', () => {
  const change = takeDelta(takeSnapshot(snapshot).picture, { seq: 2, time: 101, nodes: { n: { host: { load: 2, cpu: 0.5 } } } });
  assert.deepEqual(change.picture.nodes.get('n')?.host, { load: 2, cpu: 0.5 });
});
test('events: newest first, no doubles, not endless', () => {
  const event = (id: number, time: number): GpuEvent => ({ id, time, severity: 'info', kind: 'x', text: '' });
  let list: GpuEvent[] = [];
  for (const e of [event(1, 10), event(2, 30), event(3, 20), event(2, 30)]) list = addEvent(list, e, 2);
  assert.deepEqual(list.map((e) => e.id), [2, 3]);
});
test('trail: grows, forgets, and takes what the server remembers', () => {
  const t = new Trail(10);
  for (let i = 100; i < 200; i++) t.add(i, i);
  assert.ok(t.time.length < 60 && t.time[t.time.length - 1] === 199);
  t.add(199, 5);
  assert.equal(t.value[t.value.length - 1], 199);
  const fresh = new Trail(10);
  fresh.add(5, 50);
  fresh.add(9, 90);
  fresh.prime([3, 4, 5.1, 6], [30, 40, 51, 60]);
  assert.deepEqual([fresh.time, fresh.value], [[3, 4, 5.1, 6, 9], [30, 40, 51, 60, 90]]);
  fresh.prime([], []);
  assert.equal(fresh.time.length, 5);
});
test('labels: from the catalogue\'s names alone', () => {
  assert.equal(metricLabel('gpu_temperature_celsius'), 'Temperature');
  assert.equal(metricLabel('gpu_sm_active_ratio'), 'SM active');
  assert.equal(metricLabel('gpu_nvlink_tx_bytes_per_second'), 'NVLink sent');
  assert.equal(metricLabel('host_load1'), 'Load, 1 min');
  assert.equal(metricShelf('gpu_clock_reason_power_cap'), 'Why the clocks are low');
  assert.equal(metricShelf('host_cpus'), 'Host');
  assert.equal(shortModel('NVIDIA GeForce RTX 4090'), 'RTX 4090');
});

test('holders: a card that a job has is marked, others stay the same objects', () => {
  const { picture } = takeSnapshot(snapshot);
  const holders = holdersOf([{ id: 7, name: 'train', user: 'ada', gpu_uuids: ['a', 'gone'] }]);
  const marked = withHolders(picture, holders);
  assert.deepEqual(marked.gpus, ['a']);
  assert.deepEqual(marked.picture.gpus.get('a')?.held, [{ job: 7, name: 'train', user: 'ada' }]);
  assert.equal(marked.picture.gpus.get('b'), picture.gpus.get('b'));
  assert.equal(withHolders(marked.picture, holders).picture, marked.picture, 'nothing new, nothing changed');
  const after = takeDelta(marked.picture, { seq: 2, time: 101, gpus: { a: { metrics: { t: 51 } } } }).picture;
  assert.equal(after.gpus.get('a')?.held?.length, 1, 'readings do not take it away');
  assert.deepEqual(withHolders(after, new Map()).picture.gpus.get('a')?.held, []);
});
