import assert from 'node:assert/strict';
import test from 'node:test';
import { ago, axisLabels, clock, moment, unix } from '../src/format/times';
import { ends, fixedRange, pan, parseRange, putRange, rangeWords, spanOf, zoom } from '../src/format/range';

const at = (s: string): number => new Date(s).getTime() / 1000; // in the zone of the machine, as the page shows it
const plain = (s: string): string => s.replace(/\u202f/g, ' ');

test('unix: numbers and ISO dates', () => {
  assert.equal(unix(12), 12);
  assert.equal(unix('1970-01-01T00:01:00Z'), 60);
  assert.ok(Number.isNaN(unix(undefined)));
});
test('moment: today the clock, else the day, else the year too', () => {
  const now = at('2026-11-15T14:00:00');
  assert.equal(moment(at('2026-11-15T09:05:03'), now), '09:05:03');
  assert.equal(moment(at('2026-11-02T09:05:03'), now), '2 Nov 09:05');
  assert.equal(moment(at('2025-11-02T09:05:03'), now), '2 Nov 2025 09:05');
  assert.equal(moment(undefined, now), '–');
});
test('ago', () => {
  assert.equal(ago(100, 102), 'just now');
  assert.equal(plain(ago(100, 280)), '3 min ago');
});
test('axis labels say the day only where it changes', () => {
  const marks = ['2026-11-14T22:00:00', '2026-11-14T23:00:00', '2026-11-15T00:00:00', '2026-11-15T01:00:00'].map(at);
  assert.deepEqual(axisLabels(marks, 3600), ['22:00', '23:00', '15 Nov', '01:00']);
  assert.deepEqual(axisLabels(marks.slice(0, 2), 10), ['22:00:00', '23:00:00']);
  assert.deepEqual(axisLabels([at('2025-12-01T00:00:00'), at('2026-01-01T00:00:00'), at('2026-02-01T00:00:00')], 30 * 86400), ['Dec 2025', 'Jan 2026', 'Feb']);
});
test('clock without seconds', () => assert.equal(clock(at('2026-11-15T09:05:03'), false), '09:05'));

test('range: from the address and back', () => {
  for (const text of ['', 'range=24h', 'range=1y', 'from=1000&to=2000']) {
    const query = new URLSearchParams();
    putRange(query, parseRange(new URLSearchParams(text)));
    assert.equal(query.toString(), text);
  }
});
test('range: nonsense in the address is the standard', () => {
  for (const text of ['range=3w', 'from=9&to=3', 'from=x&to=y', 'from=-5&to=9', 'from=1&to=99999999999']) assert.deepEqual(parseRange(new URLSearchParams(text)), { kind: 'last', seconds: 300 });
});
test('range: no future, not too close, not too wide', () => {
  const now = 1_000_000_000;
  assert.deepEqual(fixedRange(now - 10, now + 50, now), { kind: 'fixed', from: now - 60, to: now });
  assert.equal(spanOf(fixedRange(now - 1001, now - 1000, now)), 20);
  assert.equal(spanOf(fixedRange(now - 9e9, now, now)), 366 * 86400);
});
test('range: zooming into what is live keeps its end', () => {
  const now = 1_000_000_000;
  assert.deepEqual(ends(zoom({ kind: 'last', seconds: 3600 }, 0.5, now), now), [now - 1800, now]);
  const z = zoom({ kind: 'fixed', from: now - 2000, to: now - 1000 }, 0.5, now, now - 2000);
  assert.deepEqual(z, { kind: 'fixed', from: now - 2000, to: now - 1500 });
});
test('range: moving stops at now', () => {
  const now = 1_000_000_000;
  assert.deepEqual(pan({ kind: 'last', seconds: 100 }, -0.5, now), { kind: 'fixed', from: now - 150, to: now - 50 });
  assert.deepEqual(pan({ kind: 'fixed', from: now - 110, to: now - 10 }, 0.5, now), { kind: 'fixed', from: now - 100, to: now });
});
test('range: in words', () => assert.equal(rangeWords({ kind: 'last', seconds: 3600 }, 0), 'the last hour'));
