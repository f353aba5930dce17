import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RepeatSlot } from '../src/api/types_work';
import { NO_REPEAT, repeatField, repeatSpec, slotMood, slotWords, whenWords, zoned } from '../src/format/repeats';

const slot = (over: Partial<RepeatSlot> = {}): RepeatSlot => ({ at: 1, local: '2026-11-16T03:00:00+01:00', outcome: 'done', by_hand: false, count: 1, job: 17, ...over });

test('repeats: a moment by the clocks of its own zone', () => {
  assert.equal(zoned('2026-11-16T03:00:00+01:00'), 'Mon 16 Nov 03:00 +01:00');
  assert.equal(zoned('2026-03-29T02:30:15-03:30'), 'Sun 29 Mar 02:30:15 -03:30');
  assert.equal(zoned('soon'), 'soon');
});

test('repeats: what became of a time', () => {
  const rows: [Partial<RepeatSlot>, string, string][] = [
    [{}, 'done', 'Mon 16 Nov 03:00 +01:00: done, job 17'],
    [{ outcome: 'missed', job: null, count: 4 }, 'bad', 'Mon 16 Nov 03:00 +01:00: missed, with 3 before it'],
    [{ outcome: 'failed', by_hand: true }, 'bad', 'Mon 16 Nov 03:00 +01:00: failed, by hand, job 17'],
    [{ outcome: 'skipped', job: null }, 'cancelled', 'Mon 16 Nov 03:00 +01:00: skipped'],
    [{ outcome: 'held' }, 'waiting', 'Mon 16 Nov 03:00 +01:00: held, job 17'],
    [{ outcome: 'exit unknown' }, 'bad', 'Mon 16 Nov 03:00 +01:00: exit unknown, job 17'],
  ];
  for (const [over, mood, words] of rows) assert.deepEqual([slotMood(slot(over)), slotWords(slot(over))], [mood, words]);
});

test('repeats: what the form sends', () => {
  assert.deepEqual(repeatSpec({ ...NO_REPEAT, command: 'a', zone: ' Europe/Berlin ' }), { command: 'a', gpus: 1, repeat: { cron: '0 3 * * *', late: '10m', overlap: 'skip', zone: 'Europe/Berlin' } });
  assert.deepEqual(repeatSpec({ ...NO_REPEAT, command: 'a', name: 'n', kind: 'interval', when: 'R/x', gpus: 'two' }), { command: 'a', name: 'n', gpus: 'two', repeat: { interval: 'R/x', late: '10m', overlap: 'skip' } });
  assert.equal(whenWords({ cron: null, interval: 'R/x', zone: 'UTC' }), 'R/x · UTC');
});

test('repeats: the field that a sentence is about', () => {
  assert.equal(repeatField('repeat.cron: "61 * * * *": minute'), 'when');
  assert.equal(repeatField('repeat.zone: there is no zone'), 'zone');
  assert.equal(repeatField('gpus: 9 are wanted'), 'gpus');
  assert.equal(repeatField('the server does not answer'), undefined);
});
