import assert from 'node:assert/strict';
import test from 'node:test';
import { amount, bytesOf, duration, fixed, plural, share, show } from '../src/format/numbers';

const plain = (s: string): string => s.replace(/\u202f/g, ' ');

const rows: [string, number | undefined | null, string][] = [
  ['celsius', 83.6, '84 °C'], ['celsius', undefined, '–'], ['celsius', null, '–'], ['celsius', NaN, '–'], ['celsius', 0, '0 °C'],
  ['watts', 324.371, '324 W'], ['watts', 4479.6, '4,480 W'], ['watts', 56000, '56.0 kW'],
  ['ratio', 0.57, '57 %'], ['ratio', 0, '0 %'], ['ratio', 0.004, '0.4 %'], ['ratio', 1, '100 %'],
  ['hertz', 1.98e9, '1,980 MHz'],
  ['bytes', 0, '0 B'], ['bytes', 57409536000, '53.5 GiB'], ['bytes', 1024, '1.00 KiB'],
  ['bytes_per_second', 1.5e9, '1.50 GB/s'], ['bytes_per_second', 0, '0 B/s'],
  ['joules', 3600, '1.00 Wh'], ['joules', 7.2e6, '2.00 kWh'],
  ['seconds', 0.0005, '0.50 ms'], ['seconds', 12, '12.0 s'], ['seconds', 3720, '1 h 2 min'],
  ['bool', 1, 'yes'], ['bool', 0, 'no'], ['bool', 0.25, '25 %'],
  ['number', 18, '18'], ['number', 2.347, '2.35'],
];
for (const [unit, v, want] of rows) test(`amount: ${String(v)} ${unit} is ${want}`, () => assert.equal(plain(show(unit, v)), want));

test('amount: what is absent has no unit', () => assert.deepEqual(amount('watts', undefined), { text: '–', unit: '' }));
test('fixed: no minus zero, thousands apart', () => {
  assert.equal(fixed(-0.2, 0), '0');
  assert.equal(fixed(1234567.8, 1), '1,234,567.8');
  assert.equal(fixed(-5, 0), '\u22125');
});
test('duration: two parts at most', () => {
  for (const [s, want] of [[0, '0 s'], [59.4, '59 s'], [60, '1 min'], [3600, '1 h'], [11520, '3 h 12 min'], [90061, '1 d 1 h'], [-3, '0 s']] as const) assert.equal(plain(duration(s)), want);
});
test('bytesOf: used in the unit of the total', () => {
  assert.deepEqual(bytesOf(57409536000, 150754820096), { used: '53.5', total: '140\u202fGiB' });
  assert.equal(bytesOf(undefined, 150754820096).used, '–');
  assert.equal(bytesOf(0, 150754820096).used, '0');
  assert.equal(bytesOf(0, undefined).total, '');
});
test('share: only of what is known, never beyond its ends', () => {
  assert.equal(share(1, 4), 0.25);
  assert.equal(share(9, 4), 1);
  assert.equal(share(undefined, 4), undefined);
  assert.equal(share(1, 0), undefined);
});
test('plural', () => assert.deepEqual([plain(plural(1, 'GPU')), plain(plural(3, 'process', 'processes'))], ['1 GPU', '3 processes']));
