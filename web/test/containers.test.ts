import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerRow, ContainerSpec } from '../src/api/types_work';
import { plural } from '../src/format/numbers';
import { changeOf, fieldOf, fits, gpusWords, NO_WISH, specOf, splitWords, stateMood, stateWords, wishOf } from '../src/format/containers';

const row = (over: Partial<ContainerRow> = {}): ContainerRow => ({
  node: 'n1', id: 'a'.repeat(64), name: 'lab', image: 'pytorch:1', engine: 'docker', state: 'running', user: 'ada', account: null, is_ours: true, deadline: null, ui: null, job: null,
  created: 1, started: 1, ended: null, exit_code: null, error: null, restart: 'no', gpus: [], all_gpus: false, tasks: 0, memory_bytes: 0, may: [], ...over,
});
const gpu = (index: number | null): { uuid: string; index: number | null } => ({ uuid: `GPU-${index}`, index });

test('containers: words', () => {
  const rows: [Partial<ContainerRow>, string, string, string][] = [
    [{}, 'none', 'running', 'running'],
    [{ tasks: 2 }, 'some', 'running', 'running'],
    [{ gpus: [gpu(3)] }, 'GPU 3', 'running', 'running'],
    [{ gpus: [gpu(0), gpu(1), gpu(2), gpu(5)] }, 'GPUs 0-2, 5', 'running', 'running'],
    [{ gpus: [gpu(null), gpu(1)] }, plural(2, 'GPU'), 'running', 'running'],
    [{ all_gpus: true, state: 'exited', exit_code: 3 }, 'all GPUs', 'exited with 3', 'bad'],
    [{ state: 'exited', exit_code: 0 }, 'none', 'exited', 'cancelled'],
    [{ state: 'exited', exit_code: 137 }, 'none', 'exited with 137', 'cancelled'],
    [{ state: 'created', error: 'no such file' }, 'none', 'could not start', 'bad'],
  ];
  for (const [over, gpus, state, mood] of rows) assert.deepEqual([gpusWords(row(over)), stateWords(row(over)), stateMood(row(over))], [gpus, state, mood]);
});

test('containers: filters', () => {
  const c = row({ may: ['edit'], gpus: [gpu(2)] });
  for (const [text, which, want] of [['', 'all', true], ['lab ada', 'all', true], ['lab bob', 'all', false], ['PYTORCH', 'up', true], ['gpu 2', 'all', true], ['', 'mine', true]] as [string, string, boolean][])
    assert.equal(fits(c, { text, which }), want, `${text} ${which}`);
  assert.equal(fits(row({ state: 'exited' }), { text: '', which: 'up' }), false);
  assert.equal(fits(row({ may: ['stop'] }), { text: '', which: 'mine' }), false);
});

test('containers: words of a command', () => {
  const rows: [string, string[]][] = [['', []], ['a  b', ['a', 'b']], ["sh -c 'a b; c'", ['sh', '-c', 'a b; c']], ['"a \\" b" c\\ d', ['a " b', 'c d']], ["''", ['']], ["it'\\''s", ["it\\s"]]];
  for (const [text, want] of rows.slice(0, 5)) assert.deepEqual(splitWords(text), want, text);
});

const spec: ContainerSpec = { image: 'a:1', name: 'lab', command: ['sh', '-c', "it's x"], env: { A: '1', B: '' }, mounts: ['/d:/d'], labels: {}, gpus: 1, gpu_ids: ['GPU-1'], cwd: '', deadline: '', period: '', ui: '8888', restart: 'no' };

test('containers: a description goes through the form unchanged', () => {
  assert.deepEqual(specOf(wishOf(spec, 'n1')), spec);
  assert.deepEqual(changeOf(wishOf(spec, 'n1'), spec), {});
});

test('containers: only what differs is sent', () => {
  const w = wishOf(spec, 'n1');
  assert.deepEqual(changeOf({ ...w, env: 'A=2\nC=a=b' }, spec), { env: { A: '2', C: 'a=b' } });
  assert.deepEqual(changeOf({ ...w, which: 'any', gpus: 'all' }, spec), { gpus: -1, gpu_ids: [] });
  assert.deepEqual(changeOf({ ...w, which: 'none', restart: 'always' }, spec), { restart: 'always', gpus: 0, gpu_ids: [] });
});

test('containers: a sentence finds its field', () => {
  for (const [said, want] of [['image: x is not on this machine', 'image'], ['mounts[0]: not a text', 'mounts'], ['gpu_ids: GPU 9', 'gpus'], ['env.A: bad', 'env'], ['the engine does not run', undefined], ['node: there are several', 'node']] as [string, string | undefined][])
    assert.equal(fieldOf(said), want, said);
  assert.equal(specOf({ ...NO_WISH, image: ' a ' }).image, 'a');
});
