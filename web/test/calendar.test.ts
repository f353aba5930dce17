import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reservation } from '../src/api/types_work';
import { blocksOf, blockSentence, bodyOf, Booking, bookingChange, bookingOf, calendarQuery, changeWords, cronOf, drawn, everyWords, keptOf, keptSentence, localText, localTime, midnight, spanOf, spanWords, wrongWith } from '../src/format/calendar';

const at = (text: string): number => new Date(text).getTime() / 1000;
const reservation = (over: Partial<Reservation> = {}): Reservation => ({
  id: 3, user: 'ada', group: null, node: 'lab', gpu_uuids: ['GPU-a'], gpu_indices: [0], begins: 0, for_s: 7200, every: null, zone: null, until: null, note: null, made_by: 'ada', made: 0,
  state: 'ahead', next: null, may_cancel: true, ...over,
});

test('calendar: days and weeks', () => {
  const now = at('2026-11-18T15:20'); // a Wednesday
  const week = spanOf(now, true, 0);
  assert.deepEqual([week.from, week.to, week.days.length], [at('2026-11-18T00:00'), at('2026-11-25T00:00'), 7]);
  assert.equal(spanOf(now, true, -1).from, at('2026-11-11T00:00'));
  assert.deepEqual([spanOf(now, false, 1).from, spanOf(now, false, 1).to], [at('2026-11-19T00:00'), at('2026-11-20T00:00')]);
  assert.equal(midnight(now, 14), at('2026-12-02T00:00'));
});

test('calendar: where windows lie', () => {
  const span = spanOf(at('2026-11-18T12:00'), false, 0);
  const windows = [{ id: 3, from: at('2026-11-18T06:00'), to: at('2026-11-18T12:00') }, { id: 3, from: at('2026-11-17T18:00'), to: at('2026-11-18T06:00') },
    { id: 3, from: at('2026-11-19T06:00'), to: at('2026-11-19T12:00') }, { id: 4, from: at('2026-11-18T06:00'), to: at('2026-11-18T12:00') }];
  const blocks = blocksOf('GPU-a', [reservation(), reservation({ id: 4, gpu_uuids: ['GPU-b'] })], windows, span);
  assert.deepEqual(blocks.map((b) => [b.left, b.width]), [[0.25, 0.25], [0, 0.25]]);
  const group = reservation({ user: null, group: 'course', note: 'exam', every: '0 6 * * *' });
  assert.equal(blockSentence({ ...blocks[0]!, of: group }, 'GPU 0'), 'GPU 0 is reserved for group course, Wed 18 Nov, 06:00 to 12:00, and again: exam');
  assert.equal(spanWords(at('2026-11-17T18:00'), at('2026-11-18T06:00')), 'Tue 17 Nov 18:00 to Wed 18 Nov 06:00');
  assert.equal(spanWords(at('2026-11-17T18:00'), at('2026-11-18T00:00')), 'Tue 17 Nov, 18:00 to 00:00');
});

test('calendar: what was drawn', () => {
  const span = spanOf(at('2026-11-18T12:00'), false, 0);
  const rows: [number, number, string, string][] = [
    [0.5, 0.5, '12:00', '13:00'], [0.51, 0.74, '12:00', '18:00'], [0.74, 0.51, '12:00', '18:00'], [-0.2, 0.01, '00:00', '01:00'], [0.999, 1.4, '23:00', '00:00'],
  ];
  for (const [a, b, from, to] of rows) {
    const got = drawn(span, a, b, 3600);
    assert.deepEqual([localText(got.from).slice(11), localText(got.to).slice(11)], [from, to]);
  }
});

test('calendar: what is sent, and what is wrong', () => {
  const b: Booking = { from: '2026-11-18T09:00', to: '2026-11-18T13:00', gpus: ['GPU-a'], node: 'lab', who: 'ada', isGroup: false, often: 'once', until: '', note: '' };
  assert.deepEqual(bodyOf(b, 'Europe/Berlin'), { from: localTime(b.from), for_s: 4 * 3600, gpu_ids: ['GPU-a'], node: 'lab', user: 'ada' });
  assert.deepEqual(bodyOf({ ...b, who: 'course', isGroup: true, often: 'weekly', until: '2026-12-24', note: 'exam' }, 'Europe/Berlin'),
    { from: localTime(b.from), for_s: 4 * 3600, gpu_ids: ['GPU-a'], node: 'lab', group: 'course', every: '0 9 * * 3', zone: 'Europe/Berlin', until: at('2026-12-25T00:00'), note: 'exam' });
  assert.equal(cronOf('weekdays', at('2026-11-18T09:30')), '30 9 * * 1-5');
  assert.equal(wrongWith(b), '');
  assert.equal(wrongWith({ ...b, gpus: [] }), 'Choose at least one GPU.');
  assert.equal(wrongWith({ ...b, to: b.from }), 'It ends before it begins.');
  assert.equal(wrongWith({ ...b, to: '' }), 'Say when it begins and ends.');
});

test('calendar: how often, in words', () => {
  const rows: [string | null, string][] = [[null, ''], ['0 9 * * *', 'every day at 09:00'], ['30 14 * * 1-5', 'every weekday at 14:30'], ['5 7 * * 0', 'every Sun at 07:05'], ['R/2026-11-16T09:00Z/P1D', 'R/2026-11-16T09:00Z/P1D']];
  for (const [every, want] of rows) assert.equal(everyWords(reservation({ every })), want);
});

test('calendar: what the plan shows as kept, a GPU at a time', () => {
  const r = reservation({ id: 4, gpu_uuids: ['GPU-a', 'GPU-b'], note: 'demo' });
  const kept = keptOf([r], [{ id: 4, from: 100, to: 150 }, { id: 9, from: 1, to: 2 }]);
  assert.deepEqual(kept.map((k) => [k.gpu, k.from, k.to]), [['GPU-a', 100, 150], ['GPU-b', 100, 150]]);
  assert.match(keptSentence(kept[0]!, 'GPU 0'), /^GPU 0 is reserved for ada, .*: demo$/);
  assert.match(keptSentence({ ...kept[0]!, of: { ...r, state: 'unused' } }, 'GPU 0'), /stands unused, and others may have it/);
  const noon = new Date(2026, 9, 24, 12).getTime() / 1000;
  assert.deepEqual(calendarQuery(noon, noon), { span: 'day' });
  assert.deepEqual(calendarQuery(noon + 2 * 86400, noon), { span: 'day', step: '2' });
});

test('calendar: one that is there in the form, and only what was changed goes back', () => {
  const begins = at('2026-11-18T09:00') + 17; // a form knows minutes
  const r = reservation({ begins, gpu_uuids: ['GPU-a', 'GPU-b'], note: 'exam' });
  const was = bookingOf(r, 'Europe/Berlin');
  assert.deepEqual(was, { from: '2026-11-18T09:00', to: '2026-11-18T11:00', gpus: ['GPU-a', 'GPU-b'], node: 'lab', who: 'ada', isGroup: false, often: 'once', until: '', note: 'exam' });
  const rows: [Partial<Booking>, Record<string, unknown>][] = [
    [{}, {}],
    [{ gpus: ['GPU-b', 'GPU-a'] }, {}],
    [{ to: '2026-11-18T12:00' }, { for_s: 3 * 3600 - 17 }],
    [{ from: '2026-11-18T10:00', to: '2026-11-18T12:00' }, { from: at('2026-11-18T10:00') }],
    [{ from: '2026-11-18T10:00' }, { from: at('2026-11-18T10:00'), for_s: 3600 }],
    [{ gpus: ['GPU-b'], note: '' }, { gpu_ids: ['GPU-b'], note: '' }],
    [{ node: 'other', gpus: ['GPU-c'] }, { node: 'other', gpu_ids: ['GPU-c'] }],
    [{ who: 'course', isGroup: true }, { group: 'course' }],
    [{ often: 'daily', until: '2026-12-24' }, { every: '0 9 * * *', zone: 'Europe/Berlin', until: at('2026-12-25T00:00') }],
  ];
  for (const [change, want] of rows) assert.deepEqual(bookingChange({ ...was, ...change }, r, 'Europe/Berlin'), want);
});

test('calendar: one that comes again keeps its expression unless it is said otherwise', () => {
  const begins = at('2026-11-18T09:00');
  const daily = reservation({ begins, every: '0 9 * * *', zone: 'Europe/Berlin', until: at('2026-12-25T00:00') });
  const was = bookingOf(daily, 'Europe/Berlin');
  assert.deepEqual([was.often, was.until], ['daily', '2026-12-24']);
  assert.deepEqual(bookingChange({ ...was, often: 'once' }, daily, 'Europe/Berlin'), { every: '' });
  assert.deepEqual(bookingChange({ ...was, until: '' }, daily, 'Europe/Berlin'), { until: 0 });
  assert.deepEqual(bookingChange({ ...was, from: '2026-11-18T10:00', to: '2026-11-18T12:00' }, daily, 'Europe/Berlin'), { from: at('2026-11-18T10:00'), every: '0 10 * * *', zone: 'Europe/Berlin' });
  const other = bookingOf(daily, 'Asia/Kolkata'); // by other clocks it is not daily at nine
  assert.equal(other.often, 'other');
  assert.deepEqual(bookingChange({ ...other, to: '2026-11-18T12:00' }, daily, 'Asia/Kolkata'), { for_s: 3 * 3600 });
  assert.deepEqual([changeWords('for_s', 7200)?.replace(/\s/g, ' '), changeWords('gpu_indices', [0, 3]), changeWords('every', '0 9 * * 1-5'), changeWords('note', 'x')], ['2 h', 'GPU 0, GPU 3', 'every weekday at 09:00', undefined]);
  assert.equal(changeWords('from', begins), 'Wed 18 Nov 09:00');
});
