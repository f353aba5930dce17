import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../src/api/types_work';
import { checkMoods, differences, editable, handIn, mayControlService, probeWords, readSpec, restartWords, serviceMood, serviceNote, serviceState, stripWords } from '../src/format/services';

const service = (over: Partial<Service> = {}): Service => ({
  id: 3, name: 'web', state: 'healthy', text: null, user: 'ada', uid: 1000, account: null, node: 'n', made: 100, revision: 1, next_revision: null, job: 7, next_job: null, old_job: null, restarts: 0,
  healthy_since: 150, starts_at: null, starting_since: null, starting_until: null, failures: 0, probe: 'http', image: '', gpus: 1, priority: 0, checks: [], check_text: null,
  service: { restart: 'always', pause: '1s', pause_most: '5m', forget: '1m', give_up: 10, within: '1h', yield: false, health: { http: '/healthz', port: 8000, interval: '10s', timeout: '3s', grace: '1m', failures: 3 } }, ...over,
});

test('services: moods, states and notes', () => {
  assert.equal(serviceMood(service()), 'good');
  assert.equal(serviceMood(service({ state: 'given up' })), 'bad');
  assert.equal(serviceMood(service({ state: 'yielded' })), 'pending');
  assert.equal(serviceState(service({ probe: 'none' })), 'running');
  assert.equal(serviceNote(service(), 160).replace(/\u202f/g, ' '), 'for 10 s');
  assert.match(serviceNote(service({ state: 'backing off', starts_at: 164 }), 160), /^starts again in 4/);
  assert.equal(stripWords(service()), 'no check yet');
  assert.equal(stripWords(service({ checks: [{ time: 1, job: 7, ok: true, took_s: 0 }, { time: 2, job: 7, ok: false, took_s: 0 }] })), '1 of the last 2 checks passed');
});

test('services: what fails while it starts is not a failure', () => {
  const plain = (text: string): string => text.replace(/\u202f/g, ' ');
  const check = (time: number, job: number, ok: boolean) => ({ time, job, ok, took_s: 0 });
  const starting = service({ state: 'starting', healthy_since: null, starting_since: 100, starting_until: 130, checks: [check(101, 7, false)] });
  assert.deepEqual(checkMoods(starting), ['early']);
  assert.equal(plain(serviceNote(starting, 102)), '2 of 30 s');
  assert.equal(plain(serviceNote({ ...starting, starting_until: 400 }, 190)), '1 min of 5 min');
  assert.equal(plain(serviceNote({ ...starting, starting_until: null }, 102)), 'for 2 s');
  assert.equal(stripWords(starting), '1 while it was starting');
  const up = service({ checks: [check(101, 7, false), check(102, 7, true), check(103, 7, false)] });
  assert.deepEqual(checkMoods(up), ['early', 'ok', 'bad'], 'once it was up, a failure is one');
  assert.equal(stripWords(up), '1 of the last 2 checks passed, 1 while it was starting');
  const never = service({ state: 'backing off', checks: [check(101, 7, false), check(102, 7, false)] });
  assert.deepEqual(checkMoods(never), ['bad', 'bad'], 'one that never came up has failed');
  const next = service({ next_job: 8, starting_since: 200, starting_until: 230, checks: [check(199, 7, true), check(201, 8, false), check(202, 7, false)] });
  assert.deepEqual(checkMoods(next), ['ok', 'early', 'bad'], 'the new one starts, the old one fails');
});

test('services: policies in words', () => {
  assert.equal(probeWords(service()), 'GET /healthz at port 8000, every 10s');
  assert.match(probeWords(service({ service: { ...service().service!, health: undefined } })), /^no check/);
  assert.equal(restartWords(service()), 'always, after 1s to 5m; given up after 10 within 1h');
  assert.equal(restartWords(service({ service: { ...service().service!, restart: 'never' } })), 'never');
});

test('services: who may', () => {
  assert.equal(mayControlService(service(), { name: 'ada', role: 'member' }), true);
  assert.equal(mayControlService(service(), { name: 'bob', role: 'member' }), false);
  assert.equal(mayControlService(service({ account: 'bob' }), { name: 'bob', role: 'member' }), true);
  assert.equal(mayControlService(service(), { name: 'bob', role: 'admin' }), true);
  assert.equal(mayControlService(service(), undefined), false);
});

test('services: what is edited, what differs, what is handed in', () => {
  const spec = { name: 'web', command: ['serve'], image: null, gpus: 1, priority: 0, retries: 0, pty: false, labels: {}, over: { memory: 'warn', idle: 'warn' }, service: { restart: 'always', update: 'beside', health: { tcp: 80 } } };
  const plain = editable(spec);
  assert.deepEqual(plain, { name: 'web', command: ['serve'], gpus: 1, service: { restart: 'always', health: { tcp: 80 } } });
  assert.deepEqual(differences(plain, plain), []);
  assert.deepEqual(differences(plain, { ...plain, gpus: 2, image: 'x', service: { restart: 'always' } }), [
    { key: 'gpus', before: '1', after: '2' }, { key: 'service.health.tcp', before: '80', after: null }, { key: 'image', before: null, after: '"x"' }]);
  assert.deepEqual(handIn(plain, 'replace')['service'], { restart: 'always', health: { tcp: 80 }, update: 'replace' });
  assert.deepEqual(handIn({ command: ['a'] }, 'no'), { command: ['a'], service: {} });
  assert.ok('problem' in readSpec('{') && 'problem' in readSpec('[]') && 'spec' in readSpec('{}'));
});
