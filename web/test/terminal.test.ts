import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colour, Screen } from '../src/format/terminal';
import { keyBytes } from '../src/format/terminal_keys';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (s: Screen): string[] => Array.from({ length: s.rows }, (_, i) => s.line(i).map((r) => r.text).join(''));

const shown: [string, string, string[], [number, number]][] = [
  ['plain', 'ab\r\ncd', ['ab', 'cd', ''], [2, 1]],
  ['wraps when the next comes', 'abcdef', ['abcde', 'f', ''], [1, 1]],
  ['a full line stays', 'abcde\r\nx', ['abcde', 'x', ''], [1, 1]],
  ['scrolls', '1\r\n2\r\n3\r\n4', ['2', '3', '4'], [1, 2]],
  ['backspace', 'abc\b\bX', ['aXc', '', ''], [2, 0]],
  ['tab stays in the line', 'a\tb', ['a   b', '', ''], [4, 0]],
  ['moves and erases', 'abcde\x1b[1;2H\x1b[K', ['a', '', ''], [1, 0]],
  ['erases the screen', 'a\r\nb\x1b[2J\x1b[Hx', ['x', '', ''], [1, 0]],
  ['erases to the cursor', 'abcde\x1b[1;3H\x1b[1K', ['   de', '', ''], [2, 0]],
  ['inserts and deletes characters', 'abc\x1b[1;2H\x1b[2@\x1b[1;5H\x1b[P', ['a  b', '', ''], [4, 0]],
  ['inserts a line', 'a\r\nb\x1b[1;1H\x1b[L', ['', 'a', 'b'], [0, 0]],
  ['deletes a line', 'a\r\nb\r\nc\x1b[1;1H\x1b[M', ['b', 'c', ''], [0, 0]],
  ['a region scrolls alone', 'a\r\nb\r\nc\x1b[1;2r\x1b[2;1H\n', ['b', '', 'c'], [0, 1]],
  ['reverse index', 'a\x1b[1;1H\x1bMx', ['x', 'a', ''], [1, 0]],
  ['another screen and back', 'sh\x1b[?1049hvi\x1b[?1049l', ['sh', '', ''], [2, 0]],
  ['wide characters', '日本x', ['日本x', '', ''], [4, 0]],
  ['combining', 'e\u0301x', ['e\u0301x', '', ''], [2, 0]],
  ['titles are not shown', '\x1b]0;name\x07a', ['a', '', ''], [1, 0]],
  ['what it does not know is passed over', '\x1b(B\x1b[>4;1m\x1b[?2004ha\x1b]8;;x\x1b\\b', ['ab', '', ''], [2, 0]],
  ['saved and restored', 'a\x1b7\x1b[3;3Hx\x1b8b', ['ab', '', '  x'], [2, 0]],
];
for (const [name, input, lines, [x, y]] of shown)
  test(`terminal: ${name}`, () => {
    const whole = new Screen(3, 5);
    whole.feed(bytes(input));
    assert.deepEqual(text(whole), lines);
    assert.deepEqual([whole.x, whole.y], [x, y]);
    const pieces = new Screen(3, 5); // bytes come as they come
    for (const b of bytes(input)) pieces.feed(Uint8Array.of(b));
    assert.deepEqual(text(pieces), lines);
  });

test('terminal: styles', () => {
  const s = new Screen(1, 40);
  s.feed(bytes('\x1b[1;31mred\x1b[0m \x1b[38;5;200mx\x1b[48;2;255;0;0my\x1b[m z'));
  const runs = s.line(0);
  assert.deepEqual(runs.map((r) => r.text), ['red', ' ', 'x', 'y', ' z']);
  assert.deepEqual([runs[0]?.style.fg, runs[0]?.style.bold, runs[2]?.style.fg, runs[3]?.style.bg, runs[4]?.style.fg], [1, true, 200, 196, -1]);
  assert.equal(colour(196), '#ff0000');
  assert.equal(colour(255), '#eeeeee');
});

test('terminal: answers', () => {
  const s = new Screen(3, 5);
  s.feed(bytes('ab\x1b[6n\x1b[c'));
  assert.equal(s.reply, '\x1b[1;3R\x1b[?1;2c');
});

test('terminal: another size keeps what is there', () => {
  const s = new Screen(4, 10);
  s.feed(bytes('one\r\ntwo\r\nthree'));
  s.resize(2, 20);
  assert.deepEqual(text(s), ['two', 'three']);
  s.resize(4, 20);
  assert.deepEqual(text(s), ['two', 'three', '', '']);
  s.feed(bytes('!'));
  assert.deepEqual(text(s), ['two', 'three!', '', '']);
});

test('terminal: nothing that comes makes it fail', () => {
  let seed = 1;
  const next = (n: number): number => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const s = new Screen(6, 12);
  for (let i = 0; i < 40000; i++) {
    const odd = ['\x1b[', '\x1b]', '\x1b', ';', '?', '999', '\r', '\n', 'H', 'J', 'm', 'r', 'P', '@', 'L', 'M', 'h', 'l', '1049', '日', 'a'];
    s.feed(bytes(odd[next(odd.length)] as string));
    if (next(500) === 0) s.resize(1 + next(9), 1 + next(20));
    assert.ok(s.x >= 0 && s.x < s.columns && s.y >= 0 && s.y < s.rows && text(s).length === s.rows);
  }
});

const keys: [string, Partial<Parameters<typeof keyBytes>[0]>, boolean, string | null][] = [
  ['a', {}, false, 'a'], ['c', { ctrl: true }, false, '\x03'], ['Enter', {}, false, '\r'], ['ArrowUp', {}, false, '\x1b[A'], ['ArrowUp', {}, true, '\x1bOA'],
  ['ArrowLeft', { ctrl: true }, false, '\x1b[1;5D'], ['Tab', { shift: true }, false, null], ['Tab', {}, false, '\t'], ['c', { ctrl: true, shift: true }, false, null],
  ['v', { meta: true }, false, null], ['Shift', { shift: true }, false, null], ['ä', {}, false, 'ä'], ['b', { alt: true }, false, '\x1bb'], [' ', { ctrl: true }, false, '\0'], [']', { ctrl: true }, false, '\x1d'],
];
test('terminal: keys', () => {
  for (const [key, more, isApplication, want] of keys)
    assert.equal(keyBytes({ key, ctrl: false, alt: false, shift: false, meta: false, ...more }, isApplication), want, key);
});
