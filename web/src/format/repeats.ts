// Repeating jobs in words: when they come, and what became of their times.
import type { Session } from '../api/types';
import type { Repeat, RepeatJob, RepeatSlot } from '../api/types_work';
import { commandText, type Mood } from './jobs';

/** "Mon 16 Nov 03:00 +01:00": a moment by the clocks of its zone, wherever the reader is. */
export function zoned(local: string): string {
  const m = /^(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d):(\d\d)([+-]\d\d:\d\d)$/.exec(local);
  if (!m) return local;
  const [, year = '', month = '', day = '', time = '', seconds = '', offset = ''] = m;
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  const words = date.toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' }).replace(',', '');
  return `${words} ${time}${seconds === '00' ? '' : `:${seconds}`} ${offset}`;
}

/** What a slot is drawn as: missed is as bad as failed, what was left out on purpose is not. */
export function slotMood(s: RepeatSlot): Mood {
  switch (s.outcome) {
    case 'done': return 'done';
    case 'waiting':
    case 'held': return 'waiting';
    case 'starting':
    case 'running':
    case 'ending': return 'running';
    case 'skipped':
    case 'paused':
    case 'cancelled': return 'cancelled';
    default: return 'bad';
  }
}

export const SLOT_SIGNS: Record<string, string> = { missed: '!', skipped: '–', paused: '‖' };

/** "Sun 15 Nov 13:20 +01:00: missed, with 3 before it". */
export function slotWords(s: RepeatSlot): string {
  const more = s.count > 1 ? `, with ${s.count - 1} before it` : '';
  return `${zoned(s.local)}: ${s.outcome}${more}${s.by_hand ? ', by hand' : ''}${s.job === null ? '' : `, job ${s.job}`}`;
}

/** "0 3 * * * · Europe/Berlin". */
export const whenWords = (r: Pick<Repeat, 'cron' | 'interval' | 'zone'>): string => `${r.cron ?? r.interval} · ${r.zone}`;

export interface RepeatWish {
  command: string;
  name: string;
  gpus: string;
  timeLimit: string;
  kind: 'cron' | 'interval';
  when: string;
  zone: string;
  late: string;
  overlap: 'skip' | 'queue' | 'cancel';
}

export const NO_REPEAT: RepeatWish = { command: '', name: '', gpus: '1', timeLimit: '', kind: 'cron', when: '0 3 * * *', zone: '', late: '10m', overlap: 'skip' };

/** As the API takes it. */
export function repeatSpec(w: RepeatWish): Record<string, unknown> {
  const repeat: Record<string, string> = { [w.kind]: w.when.trim(), late: w.late.trim(), overlap: w.overlap };
  if (w.zone.trim()) repeat.zone = w.zone.trim();
  return { command: w.command, ...(w.name.trim() ? { name: w.name.trim() } : {}), gpus: gpusOf(w.gpus), ...(w.timeLimit.trim() ? { time_limit: w.timeLimit.trim() } : {}), repeat };
}

/** What is no number is sent as it was typed: the server says what is wrong with it. */
function gpusOf(text: string): number | string {
  const gpus = Number(text);
  return Number.isInteger(gpus) && gpus > 0 ? gpus : text;
}

/** One that is there, in the form. */
export function repeatWish(j: RepeatJob): RepeatWish {
  const r = j.repeat;
  return { command: commandText(j.command), name: j.name, gpus: String(j.gpus), timeLimit: j.time_limit ?? '', kind: r.cron === undefined ? 'interval' : 'cron', when: r.cron ?? r.interval ?? '', zone: r.zone ?? '', late: r.late, overlap: r.overlap };
}

/** What was changed in the form, and nothing else: null takes a key away. */
export function repeatChange(w: RepeatWish, was: RepeatWish): Record<string, unknown> {
  const is = (key: keyof RepeatWish): boolean => w[key].trim() !== was[key].trim();
  const repeat: Record<string, string | null> = {
    ...(is('when') || is('kind') ? { [w.kind]: w.when.trim() } : {}), ...(is('zone') ? { zone: w.zone.trim() || null } : {}),
    ...(is('late') ? { late: w.late.trim() || null } : {}), ...(is('overlap') ? { overlap: w.overlap } : {}),
  };
  return {
    ...(is('command') ? { command: w.command.trim() } : {}), ...(is('name') ? { name: w.name.trim() || null } : {}), ...(is('gpus') ? { gpus: gpusOf(w.gpus.trim()) } : {}),
    ...(is('timeLimit') ? { time_limit: w.timeLimit.trim() || null } : {}), ...(Object.keys(repeat).length ? { repeat } : {}),
  };
}

/** The owner changes what it does, nobody else. */
export function mayEdit(r: Pick<Repeat, 'account' | 'user'>, who: Session['user'] | undefined): boolean {
  return !!who && (r.account === who.name || r.user === who.name);
}

/** The field that a sentence of the server is about: "repeat.zone: ..." is the zone's. */
export function repeatField(sentence: string): keyof RepeatWish | undefined {
  const m = /^(?:repeat\.)?(\w+)(?:\[|:|\.)/.exec(sentence);
  const of: Record<string, keyof RepeatWish> = { cron: 'when', interval: 'when', zone: 'zone', late: 'late', overlap: 'overlap', gpus: 'gpus', time_limit: 'timeLimit', name: 'name', command: 'command' };
  return m?.[1] ? of[m[1]] : undefined;
}
