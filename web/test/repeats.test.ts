import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RepeatJob, RepeatSlot } from '../src/api/types_work';
import { mayEdit, NO_REPEAT, repeatChange, repeatField, repeatSpec, repeatWish, type RepeatWish, slotMood, slotWords, whenWords, zoned } from '../src/format/repeats';

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

test('repeats: one that is there in the form, and only what was changed goes back', () => {
  const job: RepeatJob = { name: 'nightly', command: ['python', 'a b.py'], gpus: 2, time_limit: '2h', repeat: { cron: '0 3 * * *', zone: 'Europe/Berlin', late: '10m', overlap: 'skip' } };
  const was = repeatWish(job);
  assert.deepEqual(was, { command: "python 'a b.py'", name: 'nightly', gpus: '2', timeLimit: '2h', kind: 'cron', when: '0 3 * * *', zone: 'Europe/Berlin', late: '10m', overlap: 'skip' });
  assert.deepEqual(repeatWish({ ...job, command: ['/bin/sh', '-c', 'a | b'], repeat: { interval: 'R/x', late: '1h', overlap: 'queue' } }), { ...was, command: 'a | b', kind: 'interval', when: 'R/x', zone: '', late: '1h', overlap: 'queue' });
  const rows: [Partial<RepeatWish>, Record<string, unknown>][] = [
    [{}, {}],
    [{ when: ' 0 3 * * * ' }, {}],
    [{ when: '0 4 * * *' }, { repeat: { cron: '0 4 * * *' } }],
    [{ kind: 'interval', when: 'R/x' }, { repeat: { interval: 'R/x' } }],
    [{ zone: '', overlap: 'queue' }, { repeat: { zone: null, overlap: 'queue' } }],
    [{ timeLimit: '', gpus: '3' }, { gpus: 3, time_limit: null }],
    [{ gpus: 'two', name: '' }, { name: null, gpus: 'two' }],
    [{ command: 'python b.py' }, { command: 'python b.py' }],
  ];
  for (const [change, want] of rows) assert.deepEqual(repeatChange({ ...was, ...change }, was), want);
});

test('repeats: its owner changes one, an administrator does not', () => {
  const who = (name: string, role: 'admin' | 'member') => ({ name, role }) as unknown as Parameters<typeof mayEdit>[1];
  assert.equal(mayEdit({ account: 'ada', user: 'ada' }, who('ada', 'member')), true);
  assert.equal(mayEdit({ account: null, user: 'ada' }, who('ada', 'member')), true);
  assert.equal(mayEdit({ account: 'web', user: 'ada' }, who('root', 'admin')), false);
  assert.equal(mayEdit({ account: null, user: 'ada' }, undefined), false);
});
