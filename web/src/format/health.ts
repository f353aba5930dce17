// What a person should know about a card, in words: how hot it is against its target, what is wrong, why it is slow, what
// the guard does. Pure: a GPU as the API tells it in, sentences out.
import type { Gpu, Node } from '../api/types';
import { celsius, duration, percent, plural, watts } from './numbers';
import { ago, moment, unix } from './times';

export type Heat = 'none' | 'cool' | 'mild' | 'warm' | 'hot' | 'crit';
export type Level = 'crit' | 'hot' | 'warn' | 'info' | 'good';

export interface Note {
  level: Level;
  tag: string; // one or two words, for a badge
  text: string; // a sentence without the card's name
  brief?: string; // the same beside its temperature
}

const RANK: Record<Level, number> = { crit: 0, hot: 1, warn: 2, info: 3, good: 4 };
const USUAL_TARGET = 84;

export function targetOf(g: Gpu): number | undefined {
  return g.metrics['gpu_guard_target_celsius'] ?? g.guard?.target;
}

export function heat(temp: number | null | undefined, target: number | undefined = USUAL_TARGET): Heat {
  if (typeof temp !== 'number') return 'none';
  if (temp >= target) return 'crit';
  if (temp >= target - 6) return 'hot';
  if (temp >= target - 20) return 'warm';
  return temp >= 45 ? 'mild' : 'cool';
}

export const isThere = (g: Gpu): boolean => g.state === 'ok';

/** The clock reasons that mean "slower than it could be", the worst first, in words. */
export const SLOW: { metric: string; words: string; short: string; level: Level }[] = [
  { metric: 'gpu_clock_reason_hw_thermal', words: 'the hardware lowers clocks for heat', short: 'hardware, heat', level: 'crit' },
  { metric: 'gpu_clock_reason_power_brake', words: 'the power brake signal lowers clocks', short: 'power brake', level: 'crit' },
  { metric: 'gpu_clock_reason_hw_slowdown', words: 'the hardware slows itself down', short: 'hardware', level: 'crit' },
  { metric: 'gpu_clock_reason_sw_thermal', words: 'the driver lowers clocks for heat', short: 'driver, heat', level: 'hot' },
  { metric: 'gpu_clock_reason_power_cap', words: 'the power limit holds the clocks', short: 'power limit', level: 'info' },
  { metric: 'gpu_clock_reason_sync_boost', words: 'a sync boost group holds the clocks', short: 'sync boost', level: 'info' },
  { metric: 'gpu_clock_reason_application_clocks', words: 'application clocks hold the clocks', short: 'application clocks', level: 'info' },
  { metric: 'gpu_clock_reason_display', words: 'a display setting holds the clocks', short: 'display', level: 'info' },
];
export const IDLE = 'gpu_clock_reason_idle';

export function slowReasons(g: Gpu): (typeof SLOW)[number][] {
  return SLOW.filter((r) => (g.metrics[r.metric] ?? 0) > 0);
}

const STATE_WORDS: Record<string, string> = {
  lost: 'It is lost',
  'not answering': 'The driver does not answer for it',
  fenced: 'It is left alone, because a stuck process holds it',
  forbidden: 'The driver does not let us see it',
  starting: 'Found; nothing was read yet',
  stale: 'Nothing new comes from it',
};

function stateNote(g: Gpu, now: number): Note | undefined {
  if (isThere(g)) return undefined;
  const why = g.state_reason ?? g.state_text ?? '';
  const since = unix(g.state_since);
  const base = STATE_WORDS[g.state] ?? `Its state is "${g.state}"`;
  const long = Number.isFinite(since) && now - since >= 1 ? `, for ${duration(now - since)}` : '';
  const reason = why && !(g.state === 'lost' && /says that it is lost/.test(why)) ? `: ${why}` : '';
  const level: Level = g.state === 'starting' ? 'info' : g.state === 'forbidden' || g.state === 'stale' ? 'warn' : 'crit';
  return { level, tag: g.state, text: `${base}${long}${reason}.` };
}

/** What is wrong with a whole machine; '' when nothing is. */
export function nodeTrouble(n: Node, now: number): string {
  if (n.state === 'gone') return `Gone since ${moment(n.last_seen, now)}: nothing was heard of it for ${duration(Math.max(0, now - unix(n.last_seen)))}.`;
  if (n.state !== 'ok') return `Silent: last heard of ${ago(n.last_seen, now)}.`;
  const driver = n.driver?.state;
  return driver && driver !== 'ok' ? `The driver is ${driver}${n.driver?.text ? `: ${n.driver.text}` : ''}.` : '';
}

/** How much the guard keeps back, in its lever's unit; 0 when nothing. */
export function withheld(g: Gpu): number {
  const { limit, baseline } = g.guard ?? {};
  return typeof limit === 'number' && typeof baseline === 'number' && limit < baseline - 0.5 ? baseline - limit : 0;
}

const isHeatReason = (reason: string | undefined): boolean => /hot|margin|cannot be read|blind|silent/.test(reason ?? '');

export function guardSentence(g: Gpu): string {
  const guard = g.guard;
  if (!guard) return 'No guard watches this card.';
  const unit = guard.unit ?? '';
  const target = typeof guard.target === 'number' ? celsius(guard.target) : 'its target';
  if (guard.mode === 'off') return `The guard is off${guard.why ? `: ${guard.why}` : ''}.`;
  const back = withheld(g);
  if (back > 0) return `The guard keeps ${Math.round(back)} ${unit} back: ${guard.reason ?? 'by hand'}. Limit ${Math.round(guard.limit ?? 0)} of ${Math.round(guard.baseline ?? 0)} ${unit}.`;
  if (guard.mode === 'observes') return `The guard only observes${guard.why ? `: ${guard.why}` : ''}.`;
  return `The guard holds it below ${target} by its ${guard.lever}; nothing is kept back.`;
}

function heatNote(g: Gpu): Note | undefined {
  const temp = g.metrics['gpu_temperature_celsius'];
  const target = targetOf(g);
  const level = heat(temp, target);
  const back = withheld(g);
  const unit = g.guard?.unit ?? 'W';
  const kept = back > 0 ? ` The guard keeps ${Math.round(back)} ${unit} back.` : '';
  const own = slowReasons(g).find((r) => r.level === 'crit' || r.level === 'hot');
  const brief = (words: string): string => (back > 0 ? `Guard \u2212${Math.round(back)} ${unit}: ${words}.` : `${words.charAt(0).toUpperCase()}${words.slice(1)}.`);
  if (own && own.level === 'crit') return { level: 'crit', tag: own.short === 'power brake' ? 'brake' : 'slowed', text: `${celsius(temp)}, and ${own.words}.${kept}`, brief: brief(own.words) };
  if (level === 'crit') return { level: 'crit', tag: 'too hot', text: `${celsius(temp)}, at or above its target of ${celsius(target)}.${kept}`, brief: brief('at or above its target') };
  if (level === 'hot') return { level: 'hot', tag: 'hot', text: `${celsius(temp)}, close to its target of ${celsius(target)}.${kept}`, brief: brief('close to its target') };
  if (own) return { level: 'hot', tag: 'hot', text: `${celsius(temp)}, and ${own.words}.${kept}`, brief: brief(own.words) };
  if (back > 0 && isHeatReason(g.guard?.reason)) return { level: 'hot', tag: level === 'warm' ? 'hot' : 'held back', text: `${celsius(temp)}; ${g.guard?.reason}.${kept}`, brief: brief(g.guard?.reason ?? '') };
  if (back > 0) return { level: 'warn', tag: 'held back', text: `The guard keeps ${Math.round(back)} ${unit} back: ${g.guard?.reason}.`, brief: brief(g.guard?.reason ?? 'by hand') };
  return undefined;
}

/** How hot a card counts: what its core says, or worse, when something already acts on its heat. */
export function heatOf(g: Gpu): Heat {
  const note = heatNote(g);
  const own = heat(g.metrics['gpu_temperature_celsius'], targetOf(g));
  return own !== 'none' && note && (note.level === 'crit' || note.tag === 'hot') && own !== 'crit' ? (note.level as Heat) : own;
}

function partNotes(g: Gpu, now: number): Note[] {
  const m = g.metrics;
  const notes: Note[] = [];
  if (m['gpu_remapped_rows_failed']) notes.push({ level: 'crit', tag: 'replace', text: 'A memory row could not be remapped: replace the card.' });
  if (m['gpu_recovery_action']) notes.push({ level: 'crit', tag: 'recover', text: `The driver asks for ${['nothing', 'a reset', 'a reboot', 'draining its peers', 'draining and a reset', 'IMEX recovery'][m['gpu_recovery_action']] ?? 'a recovery'}.` });
  if (m['gpu_remapped_rows_pending'] || m['gpu_retired_pages_pending']) notes.push({ level: 'warn', tag: 'reset due', text: 'A memory repair waits for a reset.' });
  if (m['gpu_ecc_uncorrected_total']) notes.push({ level: 'warn', tag: 'memory errors', text: `${plural(m['gpu_ecc_uncorrected_total'], 'memory error')} not corrected since the driver was loaded.` });
  const fresh = (g.xids ?? []).filter((x) => now - unix(x.last) < 3600);
  const newest = fresh.sort((a, b) => unix(b.last) - unix(a.last))[0];
  if (newest) {
    const count = newest.count > 1 ? `, ${newest.count} times` : '';
    const level: Level = newest.severity !== 'info' && now - unix(newest.last) < 600 ? 'warn' : 'info';
    notes.push({ level, tag: `XID ${newest.code}`, text: `XID ${newest.code}${newest.what ? ` (${newest.what})` : ''}${count}, last ${ago(newest.last, now)}.` });
  }
  return notes;
}

function useNote(g: Gpu): Note | undefined {
  if (!isThere(g)) return undefined;
  const utilisation = g.metrics['gpu_utilization_ratio'];
  const slow = slowReasons(g)[0];
  if (isHeldIdle(g)) return { level: 'info', tag: 'held idle', text: `Held by ${heldWords(g)}, and idle.` };
  if (g.processes && g.processes.length === 0 && (utilisation ?? 0) < 0.02) return { level: 'good', tag: 'free', text: 'Free: nobody is on it.' };
  if (g.processes && g.processes.length > 0 && utilisation !== undefined && utilisation < 0.01) return { level: 'info', tag: 'held idle', text: `Held but idle: ${plural(g.processes.length, 'process', 'processes')} and no work.` };
  if (slow && slow.level === 'info') {
    const limit = g.metrics['gpu_power_limit_enforced_watts'] ?? g.metrics['gpu_power_limit_watts'];
    return slow.metric.endsWith('power_cap') ? { level: 'info', tag: 'power cap', text: `At its power limit${limit === undefined ? '' : ` of ${watts(limit)}`}.` } : { level: 'info', tag: slow.short, text: `${slow.words.charAt(0).toUpperCase()}${slow.words.slice(1)}.` };
  }
  const active = g.metrics['gpu_sm_active_ratio'];
  if (utilisation !== undefined && active !== undefined && utilisation > 0.6 && active < utilisation / 3)
    return { level: 'info', tag: 'little done', text: `Reported ${percent(utilisation)} busy, but SMs are active only ${percent(active)} of the time.` };
  return undefined;
}

/** Everything worth telling, the worst first. An unremarkable card gives an empty list. */
export function notes(g: Gpu, now: number): Note[] {
  const gone = stateNote(g, now);
  const list = gone && gone.level !== 'info' ? [gone, ...partNotes(g, now)] : [gone, heatNote(g), ...partNotes(g, now), useNote(g)];
  return list.filter((n): n is Note => n !== undefined).sort((a, b) => RANK[a.level] - RANK[b.level]);
}

export function worst(list: Note[]): Level {
  return list[0]?.level ?? 'good';
}

export const isAlarm = (level: Level): boolean => level === 'crit' || level === 'hot';
export const needsAttention = (level: Level): boolean => RANK[level] <= RANK.warn;
export const rank = (level: Level): number => RANK[level];

/** Why a figure is missing, for its dash. */
export function absence(g: Gpu, what: string): string {
  return isThere(g) ? `This card does not tell its ${what}.` : `Not known: the card is ${g.state}.`;
}

/** Somebody's by the queue, though nobody is on it: others cannot have it. */
export function isHeldIdle(g: Gpu): boolean {
  return isThere(g) && !!g.held?.length && !isBusy(g);
}

/** "train of ada (job 17)". */
export const heldWords = (g: Gpu): string => (g.held ?? []).map((h) => `${h.name} of ${h.user} (job ${h.job})`).join(', ');

export function isBusy(g: Gpu): boolean {
  return isThere(g) && ((g.metrics['gpu_utilization_ratio'] ?? 0) >= 0.01 || (g.processes?.length ?? 0) > 0);
}
