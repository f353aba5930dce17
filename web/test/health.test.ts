import assert from 'node:assert/strict';
import test from 'node:test';
import type { Gpu } from '../src/api/types';
import { absence, guardSentence, heat, heatOf, heldWords, isBusy, isHeldIdle, nodeTrouble, notes, slowReasons, withheld, worst } from '../src/format/health';

const NOW = 1_800_000_000;
const guard = { mode: 'acts', lever: 'power limit', limit: 700, baseline: 700, unit: 'W', target: 84, reason: 'calm' };
const base: Gpu = {
  index: 2, uuid: 'GPU-2', model: 'NVIDIA H200', state: 'ok', processes: [{ pid: 7, memory_bytes: 1 }], xids: [], guard,
  metrics: { gpu_temperature_celsius: 50, gpu_utilization_ratio: 0.9, gpu_power_limit_enforced_watts: 700, gpu_guard_target_celsius: 84 },
};
const gpu = (over: Partial<Gpu>, metrics: Record<string, number> = {}): Gpu => ({ ...base, ...over, metrics: { ...(over.metrics ?? base.metrics), ...metrics } });

test('heat: against the card\'s own target', () => {
  for (const [t, target, want] of [[undefined, 84, 'none'], [30, 84, 'cool'], [50, 84, 'mild'], [64, 84, 'warm'], [78, 84, 'hot'], [84, 84, 'crit'], [66, 70, 'hot'], [84, undefined, 'crit']] as const) assert.equal(heat(t, target), want);
});

const small = 'the margin to the thermal limit is small';
const rows: [string, Gpu, string, string][] = [
  ['a card at work is unremarkable', gpu({}), 'good', ''],
  ['too hot', gpu({}, { gpu_temperature_celsius: 85 }), 'crit', 'too hot'],
  ['close to its target', gpu({}, { gpu_temperature_celsius: 80 }), 'hot', 'hot'],
  ['slowed by its hardware', gpu({}, { gpu_clock_reason_hw_thermal: 1 }), 'crit', 'slowed'],
  ['power brake', gpu({}, { gpu_clock_reason_power_brake: 1 }), 'crit', 'brake'],
  ['held back for heat while it is warm', gpu({ guard: { ...guard, limit: 500, reason: small } }, { gpu_temperature_celsius: 74 }), 'hot', 'hot'],
  ['still held back when it has cooled', gpu({ guard: { ...guard, limit: 500, reason: small } }), 'hot', 'held back'],
  ['held back for another reason', gpu({ guard: { ...guard, limit: 500 } }), 'warn', 'held back'],
  ['lost', gpu({ state: 'lost', state_since: NOW - 60, metrics: {} }), 'crit', 'lost'],
  ['forbidden', gpu({ state: 'forbidden', metrics: {} }), 'warn', 'forbidden'],
  ['starting is no alarm', gpu({ state: 'starting', metrics: {} }), 'info', 'starting'],
  ['a row that could not be remapped', gpu({}, { gpu_remapped_rows_failed: 1 }), 'crit', 'replace'],
  ['the driver asks for a reset', gpu({}, { gpu_recovery_action: 1 }), 'crit', 'recover'],
  ['a repair waits', gpu({}, { gpu_remapped_rows_pending: 1 }), 'warn', 'reset due'],
  ['a fresh XID', gpu({ xids: [{ code: 31, count: 2, last: NOW - 60 }] }), 'warn', 'XID 31'],
  ['an XID that means no harm', gpu({ xids: [{ code: 63, count: 1, last: NOW - 60, severity: 'info' }] }), 'info', 'XID 63'],
  ['an XID of half an hour ago', gpu({ xids: [{ code: 31, count: 2, last: NOW - 1800 }] }), 'info', 'XID 31'],
  ['an old XID is history', gpu({ xids: [{ code: 31, count: 2, last: NOW - 7200 }] }), 'good', ''],
  ['at its power limit', gpu({}, { gpu_clock_reason_power_cap: 1 }), 'info', 'power cap'],
  ['held idle', gpu({}, { gpu_utilization_ratio: 0 }), 'info', 'held idle'],
  ['free', gpu({ processes: [] }, { gpu_utilization_ratio: 0 }), 'good', 'free'],
  ['busy for show', gpu({}, { gpu_sm_active_ratio: 0.1 }), 'info', 'little done'],
];
for (const [name, g, level, tag] of rows) test(`notes: ${name}`, () => {
  const list = notes(g, NOW);
  assert.deepEqual([worst(list), list[0]?.tag ?? ''], [level, tag]);
});

test('notes: a card that cannot list its processes is not called free', () => assert.deepEqual(notes(gpu({ processes: undefined }, { gpu_utilization_ratio: 0 }), NOW), []));
test('notes: the worst comes first', () => {
  const list = notes(gpu({ xids: [{ code: 48, count: 1, last: NOW - 5 }] }, { gpu_temperature_celsius: 90 }), NOW);
  assert.deepEqual(list.map((n) => n.level), ['crit', 'warn']);
});
test('notes: a lost card says since when, and no stale heat', () => {
  const [first, ...rest] = notes(gpu({ state: 'lost', state_reason: 'the driver says that it is lost', state_since: new Date((NOW - 180) * 1000).toISOString() }, { gpu_temperature_celsius: 95 }), NOW);
  assert.equal(first?.text.replace(/\u202f/g, ' '), 'It is lost, for 3 min.');
  assert.deepEqual(rest, []);
});
test('heatOf: a card that is throttled for heat counts as hot', () => {
  assert.equal(heatOf(gpu({ guard: { ...guard, limit: 500, reason: 'the core is hot' } }, { gpu_temperature_celsius: 70 })), 'hot');
  assert.equal(heatOf(gpu({})), 'mild');
  assert.equal(heatOf(gpu({ metrics: {} })), 'none');
});
test('guard: in one sentence', () => {
  assert.match(guardSentence(gpu({ guard: { ...guard, limit: 540, reason: 'the core is hot' } })), /keeps 160 W back: the core is hot/);
  assert.match(guardSentence(gpu({})), /nothing is kept back/);
  assert.match(guardSentence(gpu({ guard: { mode: 'off', lever: 'none', why: 'switched off' } })), /is off: switched off/);
  assert.match(guardSentence(gpu({ guard: undefined })), /No guard/);
});
test('guard: a missing limit is not a withheld one', () => assert.equal(withheld(gpu({ guard: { mode: 'observes', lever: 'none' } })), 0));
test('slow: reasons, the worst first', () => assert.deepEqual(slowReasons(gpu({}, { gpu_clock_reason_power_cap: 1, gpu_clock_reason_hw_thermal: 1 })).map((r) => r.short), ['hardware, heat', 'power limit']));
test('absence has a reason', () => {
  assert.match(absence(gpu({}), 'power'), /does not tell its power/);
  assert.match(absence(gpu({ state: 'lost' }), 'power'), /is lost/);
});
test('busy: a lost card is not', () => {
  assert.ok(isBusy(gpu({})));
  assert.ok(!isBusy(gpu({ state: 'lost' })));
  assert.ok(!isBusy(gpu({ processes: [] }, { gpu_utilization_ratio: 0 })));
});

test('a machine: gone, silent, or without its driver', () => {
  const node = { name: 'lab', state: 'ok', last_seen: NOW - 300, driver: { state: 'ok' } };
  assert.equal(nodeTrouble(node, NOW), '');
  assert.match(nodeTrouble({ ...node, state: 'gone' }, NOW), /^Gone since .*: nothing was heard of it for 5\u202f?.min\.$/);
  assert.match(nodeTrouble({ ...node, state: 'stale' }, NOW), /^Silent: last heard of 5.min ago\.$/);
  assert.equal(nodeTrouble({ ...node, driver: { state: 'absent', text: 'no library' } }, NOW), 'The driver is absent: no library.');
});

test('health: a card that a job holds and leaves idle is not free', () => {
  const idle = gpu({ processes: [], held: [{ job: 17, name: 'train', user: 'ada' }] }, { gpu_utilization_ratio: 0 });
  assert.equal(notes(gpu({ processes: [] }, { gpu_utilization_ratio: 0 }), NOW)[0]?.tag, 'free');
  assert.equal(notes(idle, NOW)[0]?.tag, 'held idle');
  assert.equal(notes(idle, NOW)[0]?.text, 'Held by train of ada (job 17), and idle.');
  assert.ok(isHeldIdle(idle) && !isBusy(idle));
  assert.ok(!isHeldIdle(gpu({ held: idle.held })), 'one that works is just busy');
  assert.ok(!isHeldIdle({ ...idle, state: 'lost' }));
  assert.equal(heldWords(gpu({})), '');
});
