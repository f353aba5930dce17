// Services, as sentences and marks: what can be wrong about the page is here, without it.
import type { Session } from '../api/types';
import type { Service } from '../api/types_work';
import { duration } from './numbers';

export type ServiceMood = 'good' | 'bad' | 'pending' | 'off';

const MOODS: Record<Service['state'], ServiceMood> = {
  healthy: 'good', starting: 'pending', waiting: 'pending', unhealthy: 'bad', 'backing off': 'bad', yielded: 'pending', suspended: 'off', ended: 'off', 'given up': 'bad', 'being removed': 'off',
};
export const SERVICE_SIGNS: Record<ServiceMood, string> = { good: '●', bad: '▲', pending: '◌', off: '○' };
export const serviceMood = (s: Service): ServiceMood => MOODS[s.state] ?? 'pending';

/** One without a check is not known to be healthy: it runs. */
export const serviceState = (s: Service): string => (s.state === 'healthy' && s.probe === 'none' ? 'running' : s.state);

export function mayControlService(s: Service, who: Session['user'] | undefined): boolean {
  return !!who && (who.role === 'admin' || s.account === who.name || (s.account === null && s.user === who.name));
}

/** "GET /healthz at port 8000", "port 5432", "a command". */
export function probeWords(s: Service): string {
  const h = s.service?.health;
  if (!h) return 'no check: it counts as healthy while it runs';
  const what = h.http !== undefined ? `GET ${h.http} at port ${h.port}` : h.tcp !== undefined ? `port ${h.tcp}` : (h.command ?? []).join(' ');
  return `${what}, every ${h.interval}`;
}

/** "always, after 1s to 5m; given up after 10 within 1h". */
export function restartWords(s: Service): string {
  const p = s.service;
  if (!p) return '';
  if (p.restart === 'never') return 'never';
  const end = p.give_up ? `; given up after ${p.give_up} within ${p.within}` : '';
  return `${p.restart}, after ${p.pause} to ${p.pause_most}${end}`;
}

/** "2 of 30 s", "1 min of 5 min". */
function startingWords(had: number, may: number): string {
  const seconds = Math.max(0, Math.round(had));
  return may < 60 ? `${seconds} of ${duration(may)}` : `${duration(seconds)} of ${duration(may)}`;
}

export type CheckMood = 'ok' | 'bad' | 'early';

/** A check that fails while its run is only starting says nothing bad: it is not up yet. One that never came up had failed. */
export function checkMoods(s: Service): CheckMood[] {
  const starting = s.starting_since === null ? null : (s.next_job ?? s.job);
  return s.checks.map((c, i): CheckMood => {
    if (c.ok) return 'ok';
    const wasUp = s.checks.slice(0, i).some((b) => b.job === c.job && b.ok);
    const comesUp = c.job === starting || s.checks.slice(i + 1).some((b) => b.job === c.job && b.ok);
    return !wasUp && comesUp ? 'early' : 'bad';
  });
}

/** What stands beside the state: since when, or when again. */
export function serviceNote(s: Service, now: number): string {
  if (s.starts_at !== null) return `starts again in ${duration(Math.max(0, s.starts_at - now))}`;
  if (s.starting_since !== null && s.state !== 'healthy') return s.starting_until === null ? `for ${duration(Math.max(0, now - s.starting_since))}` : startingWords(now - s.starting_since, s.starting_until - s.starting_since);
  if (s.state === 'healthy' && s.healthy_since !== null) return `for ${duration(Math.max(0, now - s.healthy_since))}`;
  return '';
}

/** "58 of 60 checks passed" for who cannot see the strip. */
export function stripWords(s: Service): string {
  const moods = checkMoods(s);
  const count = (m: CheckMood): number => moods.filter((x) => x === m).length;
  const early = count('early') ? `${count('early')} while it was starting` : '';
  if (!moods.length) return 'no check yet';
  return moods.length === count('early') ? early : `${count('ok')} of the last ${moods.length - count('early')} checks passed${early && `, ${early}`}`;
}

// ---- what is handed in ----

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const isEmpty = (v: Json): boolean => v === null || v === '' || (Array.isArray(v) && !v.length) || (typeof v === 'object' && v !== null && !Array.isArray(v) && !Object.keys(v).length);

/** A job's keys without those that say nothing, and without how it was last handed in: what one edits. */
export function editable(spec: { [key: string]: Json }): { [key: string]: Json } {
  const out: { [key: string]: Json } = {};
  for (const [k, v] of Object.entries(spec)) {
    if (isEmpty(v) || v === false || (k === 'priority' && v === 0) || (k === 'retries' && v === 0)) continue;
    if (k === 'over' && JSON.stringify(v) === '{"memory":"warn","idle":"warn"}') continue;
    if (k === 'service' && typeof v === 'object' && v !== null && !Array.isArray(v)) {
      const { update: _, ...rest } = v;
      out[k] = rest;
    } else {
      out[k] = v;
    }
  }
  return out;
}

function flatten(v: Json, path: string, into: Map<string, string>): void {
  if (typeof v === 'object' && v !== null && !Array.isArray(v)) for (const [k, x] of Object.entries(v)) flatten(x, path ? `${path}.${k}` : k, into);
  else into.set(path, JSON.stringify(v));
}

export interface Difference {
  key: string;
  before: string | null;
  after: string | null;
}

/** What would change, key by key; those that stay are left out. */
export function differences(before: { [key: string]: Json }, after: { [key: string]: Json }): Difference[] {
  const a = new Map<string, string>();
  const b = new Map<string, string>();
  flatten(before, '', a);
  flatten(after, '', b);
  return [...new Set([...a.keys(), ...b.keys()])].filter((k) => a.get(k) !== b.get(k)).map((key) => ({ key, before: a.get(key) ?? null, after: b.get(key) ?? null }));
}

/** The text of the form as a job, or the sentence that says what is wrong with it. */
export function readSpec(text: string): { spec: { [key: string]: Json } } | { problem: string } {
  try {
    const got = JSON.parse(text) as Json;
    if (typeof got !== 'object' || got === null || Array.isArray(got)) return { problem: 'A job is an object, as in {"command": ["python", "serve.py"]}.' };
    return { spec: got };
  } catch (e) {
    return { problem: `This is not JSON: ${e instanceof Error ? e.message : String(e)}` };
  }
}

/** With what makes it a service, and a new revision of one (update). */
export function handIn(spec: { [key: string]: Json }, update: 'no' | 'beside' | 'replace'): { [key: string]: Json } {
  const service = typeof spec['service'] === 'object' && spec['service'] !== null && !Array.isArray(spec['service']) ? spec['service'] : {};
  const { update: _, ...rest } = service as { [key: string]: Json };
  return { ...spec, service: update === 'no' ? rest : { ...rest, update } };
}

export const NEW_SERVICE = `{
  "name": "web",
  "command": ["python", "serve.py", "--port", "8000"],
  "gpus": 1,
  "service": {
    "restart": "always",
    "health": {"http": "/healthz", "port": 8000}
  }
}`;
