// Services: jobs that stay up. The list says how each is; one of them has its checks, its runs, its revisions, and the form that
// changes it, which shows the difference before anything is done.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, send, sentence } from '../api/client';
import type { Service, Services } from '../api/types_work';
import { duration, plural } from '../format/numbers';
import { checkMoods, differences, editable, handIn, mayControlService, NEW_SERVICE, probeWords, readSpec, restartWords, serviceMood, serviceNote, serviceState, SERVICE_SIGNS, stripWords } from '../format/services';
import { ago, clock, moment } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { go, href } from '../live/route';
import { JobName, JobState, onWords } from '../parts/job_state';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { Sure } from '../parts/sure';
import { WorkTabs } from '../parts/work_tabs';
import type { Who } from './queue';

function State({ s }: { s: Service }): JSX.Element {
  const mood = serviceMood(s);
  return <span class={`servicestate ${mood}`} data-state={s.state}><span aria-hidden="true">{SERVICE_SIGNS[mood]}</span> {serviceState(s)}</span>;
}

/** Each check a bar, the newest on the right: as high as it took long, within the time that it may take. */
function Strip({ s }: { s: Service }): JSX.Element {
  const most = Math.max(0.05, ...s.checks.map((c) => c.took_s));
  const moods = checkMoods(s);
  return (
    <span class="checks" role="img" aria-label={stripWords(s)}>
      {s.checks.map((c, i) => <i key={`${c.job} ${c.time}`} class={moods[i]} style={{ height: `${moods[i] === 'bad' ? 100 : moods[i] === 'early' ? 30 : 20 + 80 * (c.took_s / most)}%` }} title={`${clock(c.time)}: ${moods[i] === 'ok' ? 'well' : moods[i] === 'bad' ? 'failed' : 'not up yet'}, ${duration(c.took_s)}`} />)}
    </span>
  );
}

interface ActProps {
  s: Service;
  who: Who;
  onProblem: (text: string) => void;
  again: () => void;
}

function Actions({ s, who, onProblem, again }: ActProps): JSX.Element | null {
  if (!mayControlService(s, who) || s.state === 'being removed') return null;
  const isUp = !['suspended', 'ended', 'given up'].includes(s.state);
  const act = (verb: string, done: string) => async (): Promise<void> => {
    await send('POST', `services/${s.id}/${verb}`);
    say(`${s.name} ${done}.`);
    again();
  };
  return (
    <span class="actions">
      {isUp ? <Sure name="Suspend" label={`Suspend ${s.name}`} ask="Really end its run" onProblem={onProblem} act={act('suspend', 'is suspended')} />
        : <Sure name="Resume" label={`Resume ${s.name}`} ask="Start it" onProblem={onProblem} act={act('resume', 'is started again')} />}
      {s.state !== 'suspended' && <Sure name="Restart" label={`Restart ${s.name}`} ask="Really start anew" onProblem={onProblem} act={act('restart', 'is started anew')} />}
    </span>
  );
}

function List({ who }: { who: Who }): JSX.Element {
  useTitle('Services');
  const now = useClock(1);
  const [problem, setProblem] = useState('');
  const { answer, problem: trouble, again } = useAsk<Services>('services', 2, 'jobs');
  if (!answer) return trouble ? <Problem>{trouble}</Problem> : <Busy what="Asking the server" />;
  const bad = answer.services.filter((s) => serviceMood(s) === 'bad').length;
  return (
    <>
      <WorkTabs />
      <PageHead title="Services" crumb={`${plural(answer.services.length, 'service')}${bad ? ` · ${bad} in trouble` : ''}`}><a class="button main" href={href('services/new')}>Add a service</a></PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      <section class="panel" aria-label="Services">
        {!answer.services.length ? <p class="empty">No service yet. A service is a job that stays up: a notebook, a model server.</p> : (
          <div class="scroll" tabIndex={0} role="region" aria-label="Services as a table">
            <table class="jobs services">
              <thead><tr><th>Service</th><th>State</th><th>Checks</th><th class="num">GPUs</th><th class="num">Restarts</th><th class="num">Revision</th><th><span class="unseen">Actions</span></th></tr></thead>
              <tbody>{answer.services.map((s) => (
                <tr key={s.id} data-service={s.id}>
                  <td><a class="link" href={href(`services/${s.id}`)}>{s.name}</a><div class="dim">{s.user}{s.job !== null && <> · <a class="link" href={href(`jobs/${s.job}`)}>job {s.job}</a></>}</div></td>
                  <td><State s={s} /> <span class="dim">{serviceNote(s, now)}</span>{s.text && <div class="dim">{s.text}</div>}</td>
                  <td data-label="Checks"><Strip s={s} /></td>
                  <td class="num" data-label="GPUs">{s.gpus}</td>
                  <td class="num" data-label="Restarts">{s.restarts}</td>
                  <td class="num" data-label="Revision">{s.revision}{s.next_revision !== null && s.next_revision !== s.revision ? ` → ${s.next_revision}` : ''}</td>
                  <td class="num"><Actions s={s} who={who} onProblem={setProblem} again={again} /></td>
                </tr>))}</tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

interface FormProps {
  of?: Service;
  onDone: (id: number) => void;
  onProblem: (text: string) => void;
}

/** The job as JSON, and what would change. */
function SpecForm({ of, onDone, onProblem }: FormProps): JSX.Element {
  const [before, setBefore] = useState<ReturnType<typeof editable>>();
  const [text, setText] = useState(of ? '' : NEW_SERVICE);
  const [replaces, setReplaces] = useState(false);
  useEffect(() => {
    if (!of) return;
    get<ReturnType<typeof editable>>(`services/${of.id}/spec`).then((spec) => {
      const plain = editable(spec);
      setBefore(plain);
      setText(JSON.stringify(plain, null, 2));
    }, (e: unknown) => onProblem(sentence(e)));
  }, [of?.id, of?.revision]);
  const read = readSpec(text);
  const changes = before && 'spec' in read ? differences(before, editable(read.spec)) : [];
  const mayGo = 'spec' in read && (!of || changes.length > 0);
  const hand = async (): Promise<void> => {
    if (!('spec' in read)) return;
    const got = await send<{ id: number }>('POST', 'jobs', handIn(read.spec, !of ? 'no' : replaces ? 'replace' : 'beside'));
    say(of ? `${of.name} is being updated.` : 'The service is being started.');
    onDone(got.id);
  };
  return (
    <section class="panel submit services" aria-label={of ? 'Update' : 'The service'}>
      <form onSubmit={(e) => e.preventDefault()}>
        <label for="spec">{of ? 'What it is made of; change what is to be otherwise' : 'The job, and how it stays up'}</label>
        <textarea id="spec" rows={14} spellcheck={false} value={text} aria-invalid={'problem' in read && text !== ''} aria-describedby="spec-wrong" onInput={(e) => setText((e.target as HTMLTextAreaElement).value)} />
        <p class="wrong" id="spec-wrong">{'problem' in read && text !== '' ? read.problem : ''}</p>
        {of && <label class="check"><input type="checkbox" checked={replaces} onChange={(e) => setReplaces((e.target as HTMLInputElement).checked)} /> End the old one first (where GPUs or the port do not suffice for both)</label>}
        <div>{mayGo ? <Sure name={of ? 'Update' : 'Add'} label={of ? `Update ${of.name}` : 'Add the service'} ask={of ? `Really change ${plural(changes.length, 'key')}` : 'Really start it'} onProblem={onProblem} act={hand} /> : <button type="button" disabled>{of ? 'Update' : 'Add'}</button>}</div>
      </form>
      {of && (
        <div aria-live="polite">
          <h2>What would change</h2>
          {!changes.length ? <p class="empty">Nothing yet.</p> : (
            <table class="difference"><thead><tr><th>Key</th><th>Now</th><th>Then</th></tr></thead>
              <tbody>{changes.map((c) => <tr key={c.key}><td>{c.key}</td><td><del>{c.before ?? '–'}</del></td><td><ins>{c.after ?? '–'}</ins></td></tr>)}</tbody></table>)}
        </div>
      )}
    </section>
  );
}

function One({ id, who }: { id: string; who: Who }): JSX.Element {
  const now = useClock(1);
  const [problem, setProblem] = useState('');
  const [isEditing, setEditing] = useState(false);
  const { answer: s, problem: trouble, again } = useAsk<Service>(`services/${encodeURIComponent(id)}`, 2, 'jobs');
  useTitle(s ? `${s.name}, service` : 'Service');
  if (!s || trouble) return <><WorkTabs />{trouble ? <Problem>{trouble} <a class="link" href={href('services')}>To the services</a></Problem> : <Busy what="Asking the server" />}</>;
  const may = mayControlService(s, who);
  const rows: [string, string, string][] = [
    ['State', serviceState(s), serviceNote(s, now)],
    ['Restarts', String(s.restarts), restartWords(s)],
    ['Revision', String(s.revision), s.next_revision !== null ? `to ${s.next_revision}` : `${plural(s.revisions?.length ?? 0, 'revision')} kept`],
    ['GPUs', String(s.gpus), s.service?.yield ? 'given to a higher priority' : 'held'],
  ];
  return (
    <>
      <WorkTabs />
      <PageHead title={s.name} crumb={`service ${s.id} · ${s.user} · on ${s.node} · made ${ago(s.made, now)}`}>
        <State s={s} />
        <Actions s={s} who={who} onProblem={setProblem} again={again} />
        {may && <button type="button" aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>Update…</button>}
        {may && s.state !== 'being removed' && <Sure name="Remove" label={`Remove ${s.name}`} ask="Really remove it" onProblem={setProblem} act={async () => { await send('DELETE', `services/${s.id}`); say(`${s.name} is being removed.`); go(href('services')); }} />}
      </PageHead>
      {problem && <Problem>{problem}</Problem>}
      {s.text && <section class="panel" aria-label="What happened last"><p class="why">{s.text}</p></section>}
      {isEditing && <SpecForm of={s} onProblem={setProblem} onDone={() => { setEditing(false); again(); }} />}
      <dl class="facts four">{rows.map(([name, value, note]) => <div class={`fact${name === 'State' && serviceMood(s) === 'bad' ? ' crit' : ''}`} key={name}><dt>{name}</dt><dd class="value">{value}</dd><dd class="note" title={note}>{note}</dd></div>)}</dl>
      <section class="panel" aria-label="Checks"><header><h2>Checks</h2><p class="sub">{probeWords(s)}</p></header>
        {s.checks.length > 0 && <Strip s={s} />}{s.check_text && <p class={checkMoods(s).at(-1) === 'early' ? 'sub' : 'wrong'}>{s.check_text}</p>}
      </section>
      <section class="panel" aria-label="Runs"><header><h2>Runs</h2><p class="sub">each is a job of the queue</p></header>
        {!s.jobs?.length ? <p class="empty">None now.</p> : (
          <div class="scroll" tabIndex={0} role="region" aria-label="Runs as a table"><table class="jobs"><thead><tr><th>Job</th><th>State</th><th>On</th><th>Part</th></tr></thead>
            <tbody>{s.jobs.map((j) => <tr key={j.id}><td><JobName job={j} /></td><td><JobState job={j} />{j.why && <div class="dim">{j.why}</div>}</td><td data-label="On">{onWords(j)}</td><td>{j.id === s.job ? 'serves' : j.id === s.next_job ? `revision ${s.next_revision}, until it is healthy` : 'is being ended'}</td></tr>)}</tbody></table></div>)}
      </section>
      <section class="panel" aria-label="Revisions"><header><h2>Revisions</h2></header>
        <ul class="rows">{(s.revisions ?? []).map((v) => <li key={v.number}><span><b>{v.number}</b>{v.number === s.revision ? ' (serves)' : ''} · {v.by}, {moment(v.made, now)} · <code>{[v.job.image, ...v.job.command].filter(Boolean).join(' ')}</code></span></li>)}</ul>
      </section>
    </>
  );
}

function Add(): JSX.Element {
  useTitle('Add a service');
  const [problem, setProblem] = useState('');
  return <><WorkTabs /><PageHead title="Add a service" />{problem && <Problem>{problem}</Problem>}<SpecForm onProblem={setProblem} onDone={(id) => go(href(`services/${id}`))} /></>;
}

export function ServicesPage({ id, who }: { id: string; who: Who }): JSX.Element {
  useTopics('list');
  return id === 'new' ? <Add /> : id ? <One key={id} id={id} who={who} /> : <List who={who} />;
}
