import assert from 'node:assert/strict';
import test from 'node:test';
import type { History, Series } from '../src/api/types';
import { readAt, grown, trimmed } from '../src/format/series';
import { axisUnit, yEnds } from '../src/charts/scale';
import { align, heldShare, histogram, means, shareOfAny, spells, summary, wattHours, weights } from '../src/format/series';

const series = (time: number[], mean: (number | null)[], more: Partial<Series> = {}): Series => ({ of: 'gpu:a', metric: 'm', time, mean, ...more });

test('align: same times are kept as they are', () => {
  const a = { time: [1, 2], value: [5, 6] };
  assert.equal(align([a, { time: [1, 2], value: [7, 8] }]).time, a.time);
});
test('align: a time that one lacks is no gap, a null is', () => {
  const f = align([{ time: [1, 3], value: [5, null] }, { time: [2, 3], value: [7, 8] }]);
  assert.deepEqual(f, { time: [1, 2, 3], columns: [[5, undefined, null], [undefined, 7, 8]] });
});
test('align: nothing', () => assert.deepEqual(align([]), { time: [], columns: [] }));
test('summary: the lowest and highest of a rollup count', () => {
  assert.deepEqual(summary(series([1, 2, 3], [10, null, 20], { min: [2, null, 15], max: [30, null, 21] })), { count: 2, min: 2, mean: 15, max: 30, last: 20 });
  assert.equal(summary(series([1], [null])), undefined);
  assert.equal(summary(undefined), undefined);
});
test('weights: until the next reading, not across a gap', () => {
  assert.deepEqual(weights([0, 0.5, 1, 60]).map((w) => Math.round(w * 1000) / 1000), [0.5, 0.5, 5, 5]);
  assert.deepEqual(weights([0, 60, 120], 60), [60, 60, 60]);
  assert.equal(summary(series([0, 0.5, 1, 2], [100, 100, 10, 10]))?.mean, (100 * 1 + 10 * 2) / 3);
});
test('histogram: shares that add up, empty bins between', () => {
  assert.deepEqual(histogram([40, 41, 44, null, undefined, 45], 2), { at: [40, 42, 44], part: [0.5, 0, 0.5] });
  assert.deepEqual(histogram([null], 2), { at: [], part: [] });
  assert.deepEqual(histogram([40, 44], 2, [3, 1]).part, [0.75, 0, 0.25]);
});
test('means: equal steps, null where nothing was', () => {
  const m = means({ time: [0, 1, 2, 3, 7], mean: [10, 20, null, 40, 70] }, 0, 8, 4);
  assert.deepEqual(m, { time: [1, 3, 5, 7], mean: [15, 40, null, 70], step: 2 });
});
test('watt-hours: not across a gap', () => {
  assert.equal(wattHours(series([0, 1, 2, 3600], [3600, 3600, 3600, 0]), 1), 1 + 1 + 5);
  assert.equal(wattHours(series([0], [1]), 1), undefined);
});
test('share of any: where one of them held', () => {
  assert.equal(shareOfAny([[1, 0, 0, null], [0, 0, 1, null]]), 2 / 3);
  assert.equal(shareOfAny([[null]]), undefined);
  assert.equal(shareOfAny([]), undefined);
});
test('held: of readings yes or no, of a rollup its share', () => {
  assert.deepEqual(heldShare(series([0, 1, 2], [1, 0.7, null])), [0, 1, null]);
  assert.deepEqual(heldShare(series([0, 60, 120], [1, 0.9, 0.6], { min: [1, 0.6, 0.6], max: [1, 1, 0.6] })).map((v) => Math.round((v ?? 0) * 100)), [0, 25, 100]);
});
test('spells: runs that touch are one, a gap ends one', () => {
  assert.deepEqual(spells(series([0, 1, 2, 3, 20, 21], [0, 1, 1, 0, 1, 0]), 1), [[1, 3, 1], [20, 21, 1]]);
  assert.deepEqual(spells(series([0, 1, 30], [1, 1, 1]), 1), [[0, 2, 1], [30, 31, 1]]);
});

test('grown: this second is added, the old one leaves, silence is a gap', () => {
  const h: History = { from: 0, to: 10, resolution: 'raw', step_s: 1, series: [series([0, 9, 10], [1, 2, 3])] };
  const next = grown(h, 11, 0, () => 4);
  assert.deepEqual([next.series[0]?.time, next.series[0]?.mean], [[9, 10, 11], [2, 3, 4]]);
  assert.deepEqual(grown(h, 30, 50, () => null).series[0]?.time, [0, 9, 10, 11, 30]);
  assert.deepEqual(grown(h, 30, 50, () => null).series[0]?.mean, [1, 2, 3, null, null]);
  assert.equal(grown(h, 10.1, 50, () => 1).series[0], h.series[0]);
});

test('grown: a rollup\'s spread grows too', () => {
  const h: History = { from: 0, to: 10, resolution: 'raw', step_s: 1, series: [series([9, 10], [2, 3], { min: [1, 1], max: [4, 4] })] };
  assert.deepEqual([grown(h, 11, 50, () => 7).series[0]?.min, grown(h, 11, 50, () => 7).series[0]?.max], [[1, 1, 7], [4, 4, 7]]);
});
test('trimmed: empty steps at the end go, gaps inside stay', () => {
  const h: History = { from: 0, to: 10, resolution: 'raw', step_s: 1, series: [series([1, 2, 3, 4], [1, null, 3, null], { min: [1, null, 3, null], max: [1, null, 3, null] })] };
  const [s] = trimmed(h).series;
  assert.deepEqual([s?.time, s?.mean, s?.max], [[1, 2, 3], [1, null, 3], [1, null, 3]]);
  assert.deepEqual(trimmed({ ...h, series: [series([1], [null])] }).series[0]?.time, []);
});

test('axis: units by size', () => {
  assert.deepEqual(axisUnit('bytes', 150e9), { by: 2 ** 30, name: 'GiB' });
  assert.deepEqual(axisUnit('bytes_per_second', 3e8), { by: 1e6, name: 'MB/s' });
  assert.deepEqual(axisUnit('bytes', 0), { by: 2 ** 20, name: 'MiB' });
  assert.deepEqual(axisUnit('bytes_per_second', 0), { by: 1e6, name: 'MB/s' });
  assert.deepEqual(axisUnit('ratio', 1), { by: 0.01, name: '%' });
});
test('axis: ends are round and hold what must be seen', () => {
  assert.deepEqual(yEnds(0, 87, 0, 100), [0, 100]);
  assert.deepEqual(yEnds(41, 73, undefined, undefined), [40, 80]);
  assert.deepEqual(yEnds(Infinity, -Infinity, 0, 1), [0, 1]);
  const [a, b] = yEnds(5, 5, undefined, undefined);
  assert.ok(a < 5 && b > 5);
  assert.ok(yEnds(0, 120, 0, 100)[1] >= 120);
});

test('series: what is read at a place of several that were read at other times', () => {
  const column = [1, undefined, undefined, null, undefined, 5, undefined];
  assert.deepEqual([0, 2, 3, 4, 5, 6, 99].map((i) => readAt(column, i)), [1, 1, null, null, 5, 5, 5]);
  assert.equal(readAt([], 0), null);
  assert.equal(readAt([undefined], 0), null);
});
