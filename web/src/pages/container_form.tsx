// A container as a form: a new one from an image that the machine has, or one that is there, whose changes are shown before they are
// made. Whatever is wrong is said by the machine itself, beside the field it is about.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, send, sentence } from '../api/client';
import type { Queue, QueueGpu } from '../api/types';
import type { Change, ContainerSpec, Image } from '../api/types_work';
import { changeOf, fieldOf, NO_WISH, specOf, Wish, wishOf } from '../format/containers';
import { bytes } from '../format/numbers';
import { ago } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { go, href, usePlace } from '../live/route';
import { store } from '../live/store';
import { Changes, NoChanges } from '../parts/changes';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, Segment, useTitle } from '../parts/small';
import { WorkTabs } from '../parts/work_tabs';

interface Fields {
  wish: Wish;
  put: (change: Partial<Wish>) => void;
  wrong: (of: keyof Wish) => string | undefined;
}

function Field({ of, name, hint, rows, required, placeholder, list, wish, put, wrong }: Fields & { of: keyof Wish; name: string; hint?: string; rows?: number; required?: boolean; placeholder?: string; list?: string }): JSX.Element {
  const id = `container-${of}`;
  const said = wrong(of);
  const common = { id, value: String(wish[of]), required, placeholder, spellcheck: false, autocomplete: 'off', 'aria-invalid': said ? ('true' as const) : undefined, 'aria-describedby': said ? `${id}-wrong` : hint ? `${id}-hint` : undefined };
  return (
    <div class="field">
      <label for={id}>{name}</label>
      {rows ? <textarea rows={rows} {...common} onInput={(e) => put({ [of]: e.currentTarget.value } as Partial<Wish>)} /> : <input {...common} list={list} onInput={(e) => put({ [of]: e.currentTarget.value } as Partial<Wish>)} />}
      {said ? <span class="wrong" id={`${id}-wrong`}>{said}</span> : hint && <span class="hint" id={`${id}-hint`}>{hint}</span>}
    </div>
  );
}

/** Who has a GPU now: a container that takes it would stand beside the queue. */
const holderOf = (g: QueueGpu): string => (g.held_by.length ? `job ${g.held_by.join(', ')}` : g.verdict === 'free' ? '' : g.verdict === 'foreign' ? (g.user ?? 'somebody') : g.verdict_text);

/** own: what the container has already, which it need not share with itself. */
function Gpus({ own = [], ...f }: Fields & { own?: string[] }): JSX.Element {
  useTopics('list');
  const { answer } = useAsk<Queue>('queue', 5, 'jobs');
  const { wish, put, wrong } = f;
  const holder = (g: QueueGpu): string => (own.includes(g.uuid) && !g.held_by.length ? '' : holderOf(g));
  const said = wrong('gpus');
  const gpus = (answer?.gpus ?? []).filter((g) => !wish.node || g.node === wish.node);
  const taken = gpus.filter((g) => wish.chosen.includes(g.uuid) && holder(g));
  const toggle = (uuid: string): void => put({ chosen: wish.chosen.includes(uuid) ? wish.chosen.filter((u) => u !== uuid) : [...wish.chosen, uuid] });
  return (
    <fieldset><legend>GPUs</legend>
      <Segment label="GPUs" value={wish.which} onPick={(which) => put({ which })} options={[{ key: 'none', name: 'None' }, { key: 'any', name: 'Free ones' }, { key: 'these', name: 'Just these' }]} />
      {wish.which === 'any' && <Field of="gpus" name="How many" hint={`a number, or all; ${gpus.filter((g) => !holder(g)).length} of ${gpus.length} are free now`} {...f} />}
      {wish.which === 'these' && <div class="cards">{gpus.map((g) => <label key={g.uuid} class={holder(g) ? 'busy' : ''} title={holder(g) ? `has: ${holder(g)}` : 'free'}><input type="checkbox" checked={wish.chosen.includes(g.uuid)} onChange={() => toggle(g.uuid)} />GPU {g.index}{holder(g) ? <span class="dim"> {holder(g)}</span> : null}</label>)}</div>}
      {wish.which !== 'any' && said && <span class="wrong">{said}</span>}
      {wish.which !== 'none' && <p class="hint">The queue leaves them alone while the container runs, whether or not it works. For work that ends, <a class="link" href={href('submit')}>submit a job</a>: it waits its turn.</p>}
      {(taken.length > 0 || wish.shared || /belongs to|is free|are free/.test(said ?? '')) && wish.which !== 'none' && (
        <label class="tick"><input type="checkbox" checked={wish.shared} onChange={() => put({ shared: !wish.shared })} />Share {taken.length ? taken.map((g) => `GPU ${g.index} with ${holder(g)}`).join(', ') : 'GPUs with whoever has them'}</label>
      )}
    </fieldset>
  );
}

function ImageList({ images }: { images: Image[] | undefined }): JSX.Element {
  const now = useClock(60);
  return <datalist id="images">{(images ?? []).map((i) => <option key={i.name} value={i.name}>{bytes(i.size_bytes)}, {ago(i.created, now)}</option>)}</datalist>;
}

function Rest(f: Fields): JSX.Element {
  const opens = (['cwd', 'env', 'labels', 'deadline', 'period', 'ui', 'restart'] as (keyof Wish)[]).some((k) => f.wrong(k));
  return (
    <details class="more" open={opens || !!f.wish.env || !!f.wish.deadline || f.wish.restart !== 'no' ? true : undefined}><summary>More: environment, deadline, its own page, restart, labels</summary>
      <div class="fields"><Field of="env" name="Environment" hint="NAME=VALUE, a line each" rows={3} {...f} /><Field of="labels" name="Labels" hint="KEY=VALUE, a line each" rows={3} {...f} /></div>
      <div class="fields"><Field of="deadline" name="Deadline of each GPU task" placeholder="30s" {...f} /><Field of="period" name="Period" placeholder="1m" hint="in each a task must begin" {...f} /></div>
      <div class="fields"><Field of="ui" name="Port of its own page" placeholder="8888/lab" {...f} /><Field of="cwd" name="Working directory" {...f} />
        <div class="field"><label for="container-restart">When it ends</label>
          <select id="container-restart" value={f.wish.restart} onChange={(e) => f.put({ restart: e.currentTarget.value })}>
            {[['no', 'it stays down'], ['on-failure', 'again after a failure'], ['unless-stopped', 'again, unless stopped'], ['always', 'always again'], ...(/:/.test(f.wish.restart) ? [[f.wish.restart, f.wish.restart]] : [])].map(([k, n]) => <option key={k} value={k}>{n}</option>)}
          </select></div></div>
    </details>
  );
}

function useForm(first: Wish): Fields & { problem: string; setProblem: (text: string) => void; set: (w: Wish) => void } {
  const [wish, set] = useState<Wish>(first);
  const [problem, setProblem] = useState('');
  const at = problem ? fieldOf(problem) : undefined;
  return { wish, set, put: (change) => { setProblem(''); set((w) => ({ ...w, ...change })); }, wrong: (of) => (at === of ? problem : undefined), problem, setProblem };
}

export function ContainerAdd(): JSX.Element {
  useTitle('Add a container');
  useTopics('list');
  const nodes = store.nodes();
  return nodes.length ? <AddForm nodes={nodes} /> : <Busy what="Asking which machines there are" />;
}

function AddForm({ nodes }: { nodes: { name: string }[] }): JSX.Element {
  const form = useForm(NO_WISH);
  const { wish, put, problem, setProblem } = form;
  const [isBusy, setBusy] = useState(false);
  const node = wish.node || nodes[0]?.name || '';
  const { answer: images, problem: trouble } = useAsk<Image[]>(`images?node=${encodeURIComponent(node)}`, 60);
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      const made = await send<{ id: string; name: string }>('POST', `containers?node=${encodeURIComponent(node)}`, specOf(wish));
      say(`${made.name} runs.`);
      go(href(`containers/${made.id}`));
    } catch (err) {
      setProblem(sentence(err));
      setBusy(false);
    }
  };
  return (
    <>
      <WorkTabs />
      <PageHead title="Add a container" crumb="it runs as you, from an image that the machine has"><a class="button" href={href('containers')}>All containers</a></PageHead>
      {(trouble || (problem && !fieldOf(problem))) && <Problem>{problem || trouble}</Problem>}
      <div class="submit single">
        <form class="panel" onSubmit={(e) => void submit(e)} aria-label="Container">
          {nodes.length > 1 && <div class="field"><label for="container-node">Machine</label><select id="container-node" value={node} onChange={(e) => put({ node: e.currentTarget.value, chosen: [] })}>{nodes.map((n) => <option key={n.name}>{n.name}</option>)}</select></div>}
          <div class="fields"><Field of="image" name="Image" required list="images" placeholder="pytorch/pytorch:latest" hint={images ? `${images.length} on this machine` : undefined} {...form} /><Field of="name" name="Name" hint="made up when empty" {...form} /></div>
          <ImageList images={images} />
          <Field of="command" name="Command" hint="the image's own when empty" placeholder="jupyter lab --port 8888" {...form} />
          <Gpus {...form} wish={{ ...wish, node }} />
          <Field of="mounts" name="Data" hint="your directories in it: SOURCE:TARGET or SOURCE:TARGET:ro, a line each" placeholder="/data/me:/data" rows={2} {...form} />
          <Rest {...form} />
          <div class="buttons"><button type="submit" class="main" disabled={isBusy || !wish.image.trim()}>{isBusy ? 'Starting…' : 'Add and start'}</button></div>
        </form>
      </div>
    </>
  );
}

type Told = { changes: Change[]; restarts: boolean };

export function ContainerEdit({ id }: { id: string }): JSX.Element {
  const { query } = usePlace();
  const node = query.get('node') ?? '';
  const at = (more = ''): string => `containers/${id}${more}?node=${encodeURIComponent(node)}`;
  const [was, setWas] = useState<ContainerSpec>();
  const form = useForm(NO_WISH);
  const { wish, set, problem, setProblem } = form;
  const [told, setTold] = useState<Told>();
  const [isBusy, setBusy] = useState(false);
  useTitle(was ? `Edit ${was.name}` : 'Edit');
  useEffect(() => {
    get<ContainerSpec>(at('/spec')).then((s) => { setWas(s); set(wishOf(s, node)); }, (e: unknown) => setProblem(sentence(e)));
  }, [id, node]);
  if (!was) return problem ? <><WorkTabs /><Problem>{problem} <a class="link" href={href('containers')}>All containers</a></Problem></> : <Busy what="Asking the engine" />;
  const put = (change: Partial<Wish>): void => { setTold(undefined); form.put(change); };
  const step = async (isDry: boolean): Promise<void> => {
    setBusy(true);
    try {
      const got = await send<Told & { id?: string }>('PUT', `${at()}${isDry ? '&dry_run=true' : ''}`, changeOf(wish, was));
      setProblem('');
      if (isDry) setTold(got);
      else { say(`${wish.name} is changed.`); go(href(`containers/${got.id ?? id}`)); return; }
    } catch (e) {
      setProblem(sentence(e));
      if (!isDry) setTold(undefined);
    }
    setBusy(false);
  };
  const fields = { ...form, put };
  return (
    <>
      <WorkTabs />
      <PageHead title={`Edit ${was.name}`} crumb="the change is shown before it is made"><a class="button" href={href(`containers/${id}`)}>Back to it</a></PageHead>
      {problem && !fieldOf(problem) && <Problem>{problem}</Problem>}
      <div class="submit">
        <form class="panel" aria-label="Container" onSubmit={(e) => { e.preventDefault(); void step(true); }}>
          <div class="fields"><Field of="image" name="Image" required list="images" {...fields} /><Field of="name" name="Name" {...fields} /></div>
          <Field of="command" name="Command" hint="the image's own when empty" {...fields} />
          <Gpus {...fields} own={was.gpu_ids} />
          <Field of="mounts" name="Data" hint="SOURCE:TARGET or SOURCE:TARGET:ro, a line each" rows={2} {...fields} />
          <Rest {...fields} />
          <div class="buttons"><button type="submit" class={told ? '' : 'main'} disabled={isBusy}>{isBusy && !told ? 'Asking…' : 'Show what changes'}</button></div>
        </form>
        {told ? <div><Changes changes={told.changes} sub={told.restarts ? `${was.name} is stopped and started anew; if that fails, it is put back` : `${was.name} is made anew; it stays stopped`} /><p class="buttons"><button type="button" class="main" disabled={isBusy} onClick={() => void step(false)}>{isBusy ? 'Changing…' : `Change ${was.name}`}</button></p></div>
          : <NoChanges />}
      </div>
    </>
  );
}
