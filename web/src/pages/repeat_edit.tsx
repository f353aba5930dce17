// A repeating job that is changed: the form has what it is, and what would change is shown, with its next times, before it does.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send, sentence } from '../api/client';
import type { RepeatEdited } from '../api/types_work';
import { commandText } from '../format/jobs';
import { NO_REPEAT, repeatChange, repeatField, RepeatWish, repeatWish } from '../format/repeats';
import { go, href } from '../live/route';
import { Changes, ChangeWords, NoChanges } from '../parts/changes';
import { Field, FieldOf, RuleFields, Times } from '../parts/repeat_form';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { WorkTabs } from '../parts/work_tabs';

const NAMES: Record<string, string> = { 'repeat.cron': 'cron', 'repeat.interval': 'interval', 'repeat.zone': 'time zone', 'repeat.late': 'made good for', 'repeat.overlap': 'overlap', time_limit: 'time limit', gpus: 'GPUs' };
const words: ChangeWords = (key, v) => (key === 'command' && Array.isArray(v) ? commandText(v.map(String)) : undefined);

export function RepeatEdit({ id }: { id: string }): JSX.Element {
  const [was, setWas] = useState<RepeatWish>();
  const [w, setWish] = useState<RepeatWish>(NO_REPEAT);
  const [told, setTold] = useState<RepeatEdited>();
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const path = `repeats/${encodeURIComponent(id)}`;
  useTitle(was ? `Edit ${was.name}` : 'Edit');
  useEffect(() => {
    send<RepeatEdited>('PUT', `${path}?dry_run=1`, {}).then((got) => {
      if (!got.job) return;
      const now = repeatWish(got.job);
      setWas(now);
      setWish(now);
    }, (e: unknown) => setProblem(sentence(e)));
  }, [path]);
  if (!was) return problem ? <><WorkTabs /><Problem>{problem} <a class="link" href={href('repeats')}>All repeats</a></Problem></> : <Busy what="Asking the server" />;
  const put = (change: Partial<RepeatWish>): void => { setProblem(''); setTold(undefined); setWish((old) => ({ ...old, ...change })); };
  const step = async (isDry: boolean): Promise<void> => {
    setBusy(true);
    try {
      const got = await send<RepeatEdited>('PUT', `${path}${isDry ? '?dry_run=1' : ''}`, repeatChange(w, was));
      setProblem('');
      if (isDry) setTold(got);
      else { say(`${was.name} is changed.`); go(href('repeats')); return; }
    } catch (e) {
      setProblem(sentence(e));
      setTold(undefined);
    }
    setBusy(false);
  };
  const at = problem ? repeatField(problem) : undefined;
  const field: FieldOf = (of) => ({ of, w, put, wrong: at === of ? problem : undefined });
  return (
    <>
      <WorkTabs />
      <PageHead title={`Edit ${was.name}`} crumb="the change is shown before it is made; times that are decided stay as they are"><a class="button" href={href('repeats')}>To the repeats</a></PageHead>
      {problem && !at && <Problem>{problem}</Problem>}
      <div class="submit">
        <form class="panel" aria-label="Repeat" onSubmit={(e) => { e.preventDefault(); void step(true); }}>
          <RuleFields w={w} put={put} field={field} />
          <fieldset><legend>What it runs</legend>
            <Field {...field('command')} name="Command" hint="as in a shell" />
            <div class="fields"><Field {...field('name')} name="Name" hint="made of the command when empty" /><Field {...field('gpus')} name="GPUs" /><Field {...field('timeLimit')} name="Time limit" hint="2h; none when empty" /></div>
          </fieldset>
          <div class="buttons"><button type="submit" class={told ? '' : 'main'} disabled={isBusy || !w.command.trim()}>{isBusy && !told ? 'Asking…' : 'Show what changes'}</button></div>
        </form>
        {!told ? <NoChanges /> : (
          <div class="told">
            <Changes changes={told.changes} sub="from now on" words={words} names={NAMES} />
            {told.seals && <p class="seals">What it runs is handed in anew for your account: with the environment of a fresh login, in your home directory, not with those that it was handed in with.</p>}
            <section class="panel foretold" aria-label="Next five times"><header><h2>Next five times</h2></header><Times next={told.times.next} /><p class="dim">by the clocks of {told.times.zone}</p></section>
            {told.changes.length > 0 && <p class="buttons"><button type="button" class="main" disabled={isBusy} onClick={() => void step(false)}>{isBusy ? 'Changing…' : `Change ${was.name}`}</button></p>}
          </div>)}
      </div>
    </>
  );
}
