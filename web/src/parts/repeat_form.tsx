// The fields of a repeating job, for a new one and for one that is changed, and its next times.
import type { JSX } from 'preact';
import type { Repeat } from '../api/types_work';
import { RepeatWish, zoned } from '../format/repeats';
import { Segment } from './small';

export const OVERLAPS: Record<RepeatWish['overlap'], string> = {
  skip: 'a time is left out while the job before runs', queue: 'its job waits for the one before', cancel: 'the job before is ended',
};
/** Below "While the job before runs". */
const CHOICES: Record<RepeatWish['overlap'], string> = { skip: 'skip: it is left out', queue: 'queue: it waits', cancel: 'cancel: that one is ended' };

export function Times({ next }: { next: Repeat['next'] }): JSX.Element {
  return next.length ? <ol class="times">{next.map((n) => <li key={n.at}>{zoned(n.local)}</li>)}</ol> : <p class="empty">none any more</p>;
}

export interface FieldProps {
  of: 'command' | 'name' | 'gpus' | 'timeLimit' | 'when' | 'zone' | 'late';
  name: string;
  hint?: string;
  placeholder?: string;
  w: RepeatWish;
  wrong: string | undefined;
  put: (change: Partial<RepeatWish>) => void;
}

export function Field({ of, name, hint, placeholder, w, wrong, put }: FieldProps): JSX.Element {
  const id = `repeat-${of}`;
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <input id={id} value={w[of]} placeholder={placeholder} spellcheck={false} aria-invalid={wrong ? 'true' : undefined} aria-describedby={wrong ? `${id}-wrong` : hint ? `${id}-hint` : undefined} onInput={(e) => put({ [of]: e.currentTarget.value })} />
      {wrong ? <span class="wrong" id={`${id}-wrong`}>{wrong}</span> : hint && <span class="hint" id={`${id}-hint`}>{hint}</span>}
    </div>
  );
}

/** What a field needs besides its name. */
export type FieldOf = (of: FieldProps['of']) => Pick<FieldProps, 'of' | 'w' | 'wrong' | 'put'>;

export function RuleFields({ w, put, field }: { w: RepeatWish; put: FieldProps['put']; field: FieldOf }): JSX.Element {
  return (
    <>
      <fieldset><legend>When</legend>
        <Segment label="How it is said" value={w.kind} onPick={(kind) => put({ kind, when: kind === 'cron' ? '0 3 * * *' : `R/${new Date(Date.now() + 86400e3).toISOString().slice(0, 10)}T03:00:00/P1D` })} options={[{ key: 'cron', name: 'Cron' }, { key: 'interval', name: 'ISO 8601' }]} />
        <div class="fields"><Field {...field('when')} name={w.kind === 'cron' ? 'Expression' : 'Interval'} hint={w.kind === 'cron' ? 'minute hour day month weekday, or @daily' : 'R5/START/PT12H: five times; R/ goes on'} /><Field {...field('zone')} name="Time zone" hint="the server's own when empty" placeholder="Europe/Berlin" /></div>
      </fieldset>
      <div class="fields"><Field {...field('late')} name="Made good for" hint="after that a time counts as missed" />
        <div class="field"><label for="repeat-overlap">While the job before runs</label>
          <select id="repeat-overlap" value={w.overlap} onChange={(e) => put({ overlap: e.currentTarget.value as RepeatWish['overlap'] })}>{Object.entries(CHOICES).map(([k, text]) => <option key={k} value={k}>{text}</option>)}</select></div></div>
    </>
  );
}
