// Repeating jobs in words: when they come, and what became of their times.
import type { Repeat, RepeatSlot } from '../api/types_work';
import type { Mood } from './jobs';

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
  kind: 'cron' | 'interval';
  when: string;
  zone: string;
  late: string;
  overlap: 'skip' | 'queue' | 'cancel';
}

export const NO_REPEAT: RepeatWish = { command: '', name: '', gpus: '1', kind: 'cron', when: '0 3 * * *', zone: '', late: '10m', overlap: 'skip' };

/** As the API takes it. */
export function repeatSpec(w: RepeatWish): Record<string, unknown> {
  const repeat: Record<string, string> = { [w.kind]: w.when.trim(), late: w.late.trim(), overlap: w.overlap };
  if (w.zone.trim()) repeat.zone = w.zone.trim();
  const gpus = Number(w.gpus);
  return { command: w.command, ...(w.name.trim() ? { name: w.name.trim() } : {}), gpus: Number.isInteger(gpus) && gpus > 0 ? gpus : w.gpus, repeat };
}

/** The field that a sentence of the server is about: "repeat.zone: ..." is the zone's. */
export function repeatField(sentence: string): keyof RepeatWish | undefined {
  const m = /^(?:repeat\.)?(\w+)(?:\[|:|\.)/.exec(sentence);
  const of: Record<string, keyof RepeatWish> = { cron: 'when', interval: 'when', zone: 'zone', late: 'late', overlap: 'overlap', gpus: 'gpus', name: 'name', command: 'command' };
  return m?.[1] ? of[m[1]] : undefined;
}
