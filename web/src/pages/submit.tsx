// Handing in a job. While one types, the server is asked what would come of it (nothing is stored by that): the answer is where and
// when it would start, or the sentence that says what is wrong, beside the field it is about.
import { useEffect, useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import { ApiError, get, isAbort, send, sentence } from '../api/client';
import type { Job, Trial } from '../api/types';
import { commandText, fieldOf, NO_WISH, specOf, startsIn, Wish } from '../format/jobs';
import { duration } from '../format/numbers';
import { clock } from '../format/times';
import { useClock, useTopics } from '../live/hooks';
import { go, href, usePlace } from '../live/route';
import { store } from '../live/store';
import { onWords } from '../parts/job_state';
import { say } from '../parts/say';
import { PageHead, Problem, Segment, useTitle } from '../parts/small';

const WAIT_MS = 300; // after the last key

interface Foretold {
  trial?: Trial;
  problem?: string;
}

function useForetold(wish: Wish): Foretold {
  const [told, set] = useState<Foretold>({});
  const spec = JSON.stringify(specOf(wish));
  useEffect(() => {
    if (!wish.command.trim() && !wish.image.trim()) {
      set({});
      return undefined;
    }
    let isOld = false;
    const timer = window.setTimeout(() => {
      send<{ jobs: Trial[] }>('POST', 'jobs?dry_run=1', JSON.parse(spec)).then(
        (got) => { if (!isOld) set({ trial: got.jobs[0] }); },
        (e: unknown) => { if (!isOld && !isAbort(e)) set({ problem: sentence(e) }); },
      );
    }, WAIT_MS);
    return () => { isOld = true; window.clearTimeout(timer); };
  }, [spec]);
  return told;
}

function Foretelling({ told, now }: { told: Foretold; now: number }): JSX.Element {
  const first = told.trial;
  return (
    <section class="panel foretold" aria-label="What would come of it" aria-live="polite">
      <header><h2>What would come of it</h2></header>
      {told.problem ? <p class="wrong">{told.problem}</p> : !first ? <p class="empty">Say what to run.</p> : (
        <>
          <p class="big">{first.starts_now ? `Starts now${onWords(first) ? ` on ${onWords(first)}` : ''}` : first.starts_at === null ? 'Waits; nobody can tell how long' : `Starts in about ${startsIn(first, now)}, at ${clock(first.starts_at, false)}`}</p>
          {first.why && <p class="why">{first.why}</p>}
          {first.sooner && <p class="sooner">Would start {first.sooner}</p>}
          <dl class="pairs">
            <div><dt>Name</dt><dd>{first.name}</dd></div>
            {first.array && <div><dt>Elements</dt><dd>{first.array}</dd></div>}
            {first.place !== null && !first.starts_now && <div><dt>Place</dt><dd>{first.place}</dd></div>}
            {first.time_limit_s !== null && <div><dt>At most</dt><dd>{duration(first.time_limit_s)}</dd></div>}
            {first.finish_by !== null && <div><dt>To be done by</dt><dd>{clock(first.finish_by, false)}</dd></div>}
          </dl>
        </>
      )}
    </section>
  );
}

interface FieldProps {
  of: keyof Wish;
  name: string;
  hint?: string;
  wish: Wish;
  wrong: string | undefined;
  put: (change: Partial<Wish>) => void;
  rows?: number;
  required?: boolean;
  placeholder?: string;
}

function Field({ of, name, hint, wish, wrong, put, rows, required, placeholder }: FieldProps): JSX.Element {
  const id = `wish-${of}`;
  const common = { id, value: String(wish[of]), required, placeholder, 'aria-invalid': wrong ? ('true' as const) : undefined, 'aria-describedby': wrong ? `${id}-wrong` : hint ? `${id}-hint` : undefined, spellcheck: false };
  return (
    <div class="field">
      <label for={id}>{name}</label>
      {rows ? <textarea rows={rows} {...common} onInput={(e) => put({ [of]: e.currentTarget.value } as Partial<Wish>)} /> : <input {...common} onInput={(e) => put({ [of]: e.currentTarget.value } as Partial<Wish>)} />}
      {wrong ? <span class="wrong" id={`${id}-wrong`}>{wrong}</span> : hint && <span class="hint" id={`${id}-hint`}>{hint}</span>}
    </div>
  );
}

function WhichGpus({ wish, put, children }: { wish: Wish; put: (change: Partial<Wish>) => void; children: ComponentChildren }): JSX.Element {
  useTopics('list');
  const toggle = (uuid: string): void => put({ chosen: wish.chosen.includes(uuid) ? wish.chosen.filter((u) => u !== uuid) : [...wish.chosen, uuid] });
  return (
    <fieldset><legend>GPUs</legend>
      <Segment label="Which GPUs" value={wish.which} onPick={(which) => put({ which })} options={[{ key: 'any', name: 'Any' }, { key: 'these', name: 'Only some' }]} />
      {wish.which === 'these' && (
        <>
          <div class="cards">{store.gpus().map((g) => {
            const isBusy = (g.processes?.length ?? 0) > 0;
            return <label key={g.uuid} class={isBusy ? 'busy' : ''}><input type="checkbox" checked={wish.chosen.includes(g.uuid)} onChange={() => toggle(g.uuid)} />GPU {g.index}{isBusy ? ' (in use)' : ''}</label>;
          })}</div>
          <label style={{ display: 'inline-flex', gap: '6px', alignItems: 'center' }}><input type="checkbox" checked={wish.all} onChange={() => put({ all: !wish.all })} />wait for all of them together</label>
        </>
      )}
      {(wish.which === 'any' || !wish.all) && children}
    </fieldset>
  );
}

/** A job that is to be run again: its own words, back in the form. */
async function wishOf(id: string): Promise<Partial<Wish>> {
  const j = await get<Job>(`jobs/${id}`);
  return {
    command: commandText(j.command), name: j.name, image: j.image ?? '', gpus: String(j.gpus),
    which: j.scope.length ? 'these' : 'any', chosen: j.scope, all: j.scope.length === j.gpus, array: j.array ?? '',
    timeLimit: j.time_limit_s === null ? '' : `${Math.round(j.time_limit_s)}s`, priority: j.priority ? String(j.priority) : '', retries: j.retries ? String(j.retries) : '',
    memory: j.memory_bytes ? String(j.memory_bytes) : '', share: j.share_bytes ? String(j.share_bytes) : '',
    ui: j.ui ? `${j.ui.port}${j.ui.path === '/' ? '' : j.ui.path}` : '',
    labels: Object.entries(j.labels).map(([k, v]) => `${k}=${v}`).join('\n'),
  };
}

export function Submit(): JSX.Element {
  useTitle('Submit a job');
  const now = useClock(5);
  const { query } = usePlace();
  const [wish, setWish] = useState<Wish>(NO_WISH);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const like = query.get('like');
  const put = (change: Partial<Wish>): void => { setProblem(''); setWish((w) => ({ ...w, ...change })); };
  useEffect(() => {
    if (like) wishOf(like).then(put, (e: unknown) => setProblem(sentence(e)));
  }, [like]);
  const told = useForetold(wish);
  const said = problem || told.problem || '';
  const wrongAt = said ? fieldOf(said) : undefined;
  const field = { wish, put };
  const wrong = (of: keyof Wish): string | undefined => (wrongAt === of ? said : undefined);
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      const made = await send<{ id: number }>('POST', 'jobs', specOf(wish));
      say(`Job ${made.id} is in the queue.`);
      go(href(`jobs/${made.id}`));
    } catch (err) {
      setProblem(err instanceof ApiError ? err.message : sentence(err));
      setBusy(false);
    }
  };
  return (
    <>
      <PageHead title="Submit a job" crumb="it starts when its GPUs are free"><a class="button" href={href('queue')}>To the queue</a></PageHead>
      {problem && !wrongAt && <Problem>{problem}</Problem>}
      <div class="submit">
        <form class="panel" onSubmit={(e) => void submit(e)} aria-label="Job">
          <Field of="command" name="Command" hint="as in a shell; with an image its arguments" rows={3} required={!wish.image} placeholder="python train.py --epochs 10" {...field} wrong={wrong('command')} />
          <div class="fields"><Field of="name" name="Name" hint="made of the command when empty" {...field} wrong={wrong('name')} /><Field of="image" name="Container image" hint="empty: a process" {...field} wrong={wrong('image')} /></div>
          <WhichGpus wish={wish} put={put}><div class="fields"><Field of="gpus" name="How many" {...field} wrong={wrong('gpus')} /><Field of="memory" name="Memory of each, at least" placeholder="40GiB" {...field} wrong={wrong('memory')} /><Field of="share" name="Or a part of one GPU's memory" placeholder="10GiB" {...field} wrong={wrong('share')} /></div></WhichGpus>
          <div class="fields"><Field of="timeLimit" name="Time limit" hint="a limit helps it to start sooner" placeholder="2h" {...field} wrong={wrong('timeLimit')} /><Field of="deadline" name="To be done within" placeholder="8h" {...field} wrong={wrong('deadline')} /></div>
          <details class="more" open={!!wrongAt && ['priority', 'retries', 'after', 'array', 'env', 'labels', 'notify', 'cwd', 'mounts', 'ui'].includes(wrongAt) ? true : undefined}><summary>More: order, retries, arrays, environment, notification</summary>
            <div class="fields"><Field of="priority" name="Priority" hint="-100 to 100" {...field} wrong={wrong('priority')} /><Field of="retries" name="Tries after a failure" {...field} wrong={wrong('retries')} /><Field of="after" name="After jobs" placeholder="17 18:any" {...field} wrong={wrong('after')} /><Field of="array" name="Array" placeholder="1-100%8" hint="{index} in the command" {...field} wrong={wrong('array')} /></div>
            <div class="fields"><Field of="cwd" name="Working directory" {...field} wrong={wrong('cwd')} /><Field of="ui" name="Its own UI" placeholder="8888/lab" hint="a port, or auto: told in $GPUMGR_UI_PORT" {...field} wrong={wrong('ui')} /></div>
            <div class="fields"><Field of="env" name="Environment" hint="KEY=VALUE, a line each" rows={2} {...field} wrong={wrong('env')} /><Field of="labels" name="Labels" hint="KEY=VALUE, a line each" rows={2} {...field} wrong={wrong('labels')} /></div>
            <div class="fields"><Field of="mounts" name="Mounts of the container" hint="SOURCE:TARGET[:ro], a line each" rows={2} {...field} wrong={wrong('mounts')} /><Field of="notify" name="Tell" hint="mail:ADDRESS or webhook:URL, a line each" rows={2} {...field} wrong={wrong('notify')} /></div>
          </details>
          <div class="buttons"><button type="submit" class="main" disabled={isBusy || !!told.problem || (!wish.command.trim() && !wish.image.trim())}>{isBusy ? 'Handing in…' : 'Submit'}</button></div>
        </form>
        <Foretelling told={told} now={now} />
      </div>
    </>
  );
}
