// Jobs that come again: when next, what became of their last times, and a form whose next five times are shown while one types.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, isAbort, send, sentence } from '../api/client';
import type { Session } from '../api/types';
import type { Repeat, RepeatTimes } from '../api/types_work';
import { JOB_SIGNS, mayControl } from '../format/jobs';
import { duration, plural } from '../format/numbers';
import { mayEdit, NO_REPEAT, repeatField, repeatSpec, RepeatWish, SLOT_SIGNS, slotMood, slotWords, whenWords } from '../format/repeats';
import { useAsk } from '../live/ask';
import { go, href } from '../live/route';
import { Field, FieldOf, OVERLAPS, RuleFields, Times } from '../parts/repeat_form';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { Sure } from '../parts/sure';
import { WorkTabs } from '../parts/work_tabs';

const WAIT_MS = 300; // after the last key
const STRIP = 40;
function Strip({ r }: { r: Repeat }): JSX.Element {
  const slots = r.slots.slice(0, STRIP).reverse();
  if (!slots.length) return <p class="dim">it has not come yet</p>;
  return (
    <ol class="slots" aria-label={`Last times of ${r.name}`}>{slots.map((s, i) => {
      const sign = SLOT_SIGNS[s.outcome] ?? JOB_SIGNS[slotMood(s)];
      const words = slotWords(s);
      return (
        <li key={`${s.at} ${i}`} class={slotMood(s)} data-outcome={s.outcome} title={words}>
          {s.job === null ? <span><span aria-hidden="true">{sign}</span><span class="unseen">{words}</span></span> : <a href={href(`jobs/${s.job}`)} aria-label={words}>{sign}</a>}
        </li>);
    })}</ol>
  );
}

function Acts({ r, mayEdit, onProblem, again }: { r: Repeat; mayEdit: boolean; onProblem: (text: string) => void; again: () => void }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const act = async (verb: string, done: (got: { job?: number }) => string): Promise<void> => {
    setBusy(true);
    try {
      say(done(await send<{ job?: number }>('POST', `repeats/${r.id}/${verb}`)));
      onProblem('');
    } catch (e) {
      onProblem(sentence(e));
    }
    setBusy(false);
    again();
  };
  const pause = r.state === 'paused' ? 'resume' : 'pause';
  return (
    <span class="acts">
      {mayEdit && <a class="button" href={href(`repeats/${r.id}/edit`)} aria-label={`Edit ${r.name}`}>Edit</a>}
      {(r.state === 'on' || r.state === 'paused') && (
        <button type="button" disabled={isBusy} aria-label={`${pause === 'pause' ? 'Pause' : 'Resume'} ${r.name}`} onClick={() => void act(pause, () => (pause === 'pause' ? `${r.name} is paused.` : `${r.name} goes on.`))}>{pause === 'pause' ? 'Pause' : 'Resume'}</button>)}
      <button type="button" disabled={isBusy} aria-label={`Run ${r.name} now`} onClick={() => void act('run', (got) => `Job ${got.job} is in the queue.`)}>Run now</button>
      <Sure name="Remove" label={`Remove ${r.name}`} ask={`Really remove ${r.name}`} onProblem={onProblem} act={async () => { await send('DELETE', `repeats/${r.id}`); say(`${r.name} is gone.`); again(); }} />
    </span>
  );
}

function One({ r, who, onProblem, again }: { r: Repeat; who: Session['user']; onProblem: (text: string) => void; again: () => void }): JSX.Element {
  const mood = r.state === 'on' ? 'running' : r.state === 'in trouble' ? 'bad' : 'cancelled';
  return (
    <section class="panel repeat" aria-label={`Repeat ${r.name}`} data-repeat={r.id}>
      <header class="wrap"><h2>{r.name}</h2><span class={`jobstate ${mood}`} data-state={r.state}><span aria-hidden="true">{JOB_SIGNS[mood]}</span> {r.state}</span>
        <p class="sub">{r.user} · <code>{whenWords(r)}</code></p><span class="spacer" />{mayControl(r, who) && <Acts r={r} mayEdit={mayEdit(r, who)} onProblem={onProblem} again={again} />}</header>
      {r.problem && <p class="wrong">{r.problem}</p>}
      <div class="twice">
        <div><h3>Next</h3><Times next={r.next} /></div>
        <div><h3>Last</h3><Strip r={r} />
          <p class="dim">{OVERLAPS[r.overlap]}; made good for {duration(r.late_s)}{r.open_jobs.length ? <>; now {r.open_jobs.map((j, i) => <span key={j}>{i ? ', ' : ''}<a class="link" href={href(`jobs/${j}`)}>job {j}</a></span>)}</> : null}</p>
          <p class="dim"><code>{r.command.join(' ')}</code></p></div>
      </div>
    </section>
  );
}

export function RepeatsPage({ who }: { who: Session['user'] }): JSX.Element {
  useTitle('Repeats');
  const [problem, setProblem] = useState('');
  const { answer, problem: trouble, again } = useAsk<{ repeats: Repeat[] }>('repeats', 5, 'jobs');
  const all = answer?.repeats ?? [];
  return (
    <>
      <WorkTabs />
      <PageHead title="Repeats" crumb={answer ? plural(all.length, 'repeating job') : ''}><a class="button main" href={href('repeats/new')}>New repeat</a></PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      {!answer ? !trouble && <Busy what="Asking the server" /> : all.length ? all.map((r) => <One key={r.id} r={r} who={who} onProblem={setProblem} again={again} />) : (
        <section class="panel blank"><p>Nothing repeats yet. <a class="link" href={href('repeats/new')}>Make one that does</a>, or use <code>gpumgr submit --cron &quot;0 3 * * *&quot; -- COMMAND</code></p></section>)}
    </>
  );
}

/** The server is asked while one types; nothing is stored by that. */
function useTimes(w: RepeatWish): { times?: RepeatTimes; problem?: string } {
  const [told, set] = useState<{ times?: RepeatTimes; problem?: string }>({});
  useEffect(() => {
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      get<RepeatTimes>('repeat-times', { [w.kind]: w.when, ...(w.zone.trim() ? { zone: w.zone.trim() } : {}) }, abort.signal).then(
        (times) => set({ times }), (e: unknown) => { if (!isAbort(e)) set({ problem: sentence(e) }); });
    }, WAIT_MS);
    return () => { abort.abort(); window.clearTimeout(timer); };
  }, [w.kind, w.when, w.zone]);
  return told;
}

export function RepeatNew(): JSX.Element {
  useTitle('New repeat');
  const [w, setWish] = useState<RepeatWish>(NO_REPEAT);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const told = useTimes(w);
  const put = (change: Partial<RepeatWish>): void => { setProblem(''); setWish((old) => ({ ...old, ...change })); };
  const said = problem || told.problem || '';
  const at = said ? repeatField(said) : undefined;
  const field: FieldOf = (of) => ({ of, w, put, wrong: at === of ? said : undefined });
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      await send('POST', 'jobs', repeatSpec(w));
      say('It repeats from now on.');
      go(href('repeats'));
    } catch (err) {
      setProblem(sentence(err));
      setBusy(false);
    }
  };
  return (
    <>
      <PageHead title="New repeat" crumb="each of its times becomes a job, once"><a class="button" href={href('repeats')}>To the repeats</a></PageHead>
      {problem && !at && <Problem>{problem}</Problem>}
      <div class="submit">
        <form class="panel" onSubmit={(e) => void submit(e)} aria-label="Repeat">
          <Field {...field('command')} name="Command" hint="as in a shell" placeholder="python evaluate.py" />
          <div class="fields"><Field {...field('name')} name="Name" hint="made of the command when empty" /><Field {...field('gpus')} name="GPUs" /><Field {...field('timeLimit')} name="Time limit" hint="2h; none when empty" /></div>
          <RuleFields w={w} put={put} field={field} />
          <div class="buttons"><button type="submit" class="main" disabled={isBusy || !!told.problem || !w.command.trim()}>{isBusy ? 'Handing in…' : 'Repeat it'}</button></div>
        </form>
        <section class="panel foretold" aria-label="Next five times" aria-live="polite">
          <header><h2>Next five times</h2></header>
          {told.problem ? <p class="wrong">{told.problem}</p> : told.times ? <><Times next={told.times.next} /><p class="dim">by the clocks of {told.times.zone}</p></> : <p class="empty">…</p>}
        </section>
      </div>
    </>
  );
}
