// Groups: any named set of GPUs and nodes, to be looked at as one. Administrators make and change them.
import { useEffect, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { get, send, sentence } from '../api/client';
import type { Group } from '../api/types';
import { bytesOf, plural, watts } from '../format/numbers';
import { useTopics } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';
import { say } from '../parts/say';
import { Busy, PageHead, Problem, useTitle } from '../parts/small';
import { nameOf } from './compare';

const GOOD_NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}';

function gpusOf(group: Group): string[] {
  return [...new Set(group.members.flatMap((m) => (m.startsWith('gpu:') ? [m.slice(4)] : (store.picture.nodes.get(m.slice(5))?.gpus ?? store.gpus().filter((g) => g.node === m.slice(5)).map((g) => g.uuid)))))];
}

function Editor({ group, onDone }: { group: Group | undefined; onDone: (changed: boolean) => void }): JSX.Element {
  const [name, setName] = useState(group?.name ?? '');
  const [label, setLabel] = useState(group?.label ?? '');
  const [members, setMembers] = useState<string[]>(group?.members ?? []);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const toggle = (m: string): void => setMembers(members.includes(m) ? members.filter((x) => x !== m) : [...members, m]);
  const save = async (e: Event): Promise<void> => {
    e.preventDefault();
    if (!members.length) return setProblem('Choose at least one GPU or node.');
    setBusy(true);
    try {
      await send('PUT', `groups/${encodeURIComponent(name)}`, label ? { members, label } : { members });
      say(`Group ${name} saved.`);
      onDone(true);
    } catch (err) {
      setProblem(sentence(err));
      setBusy(false);
    }
  };
  return (
    <form class="panel editor" onSubmit={(e) => void save(e)} aria-label={group ? `Change ${group.name}` : 'New group'}>
      <h2>{group ? `Change ${group.label || group.name}` : 'New group'}</h2>
      <div class="fields">
        <label>Name<input required pattern={GOOD_NAME} title="Letters, digits, dot, dash and underscore" value={name} disabled={!!group} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Shown as <small>(may be empty)</small><input value={label} maxLength={80} onInput={(e) => setLabel(e.currentTarget.value)} /></label>
      </div>
      <fieldset class="members"><legend>Members</legend>
        {store.gpus().map((g) => <label key={g.uuid} class="member"><input type="checkbox" checked={members.includes(`gpu:${g.uuid}`)} onChange={() => toggle(`gpu:${g.uuid}`)} />{nameOf(`gpu:${g.uuid}`)}</label>)}
        {store.nodes().map((n) => <label key={n.name} class="member"><input type="checkbox" checked={members.includes(`node:${n.name}`)} onChange={() => toggle(`node:${n.name}`)} />all of {n.name}</label>)}
      </fieldset>
      {problem && <Problem>{problem}</Problem>}
      <div class="buttons"><button type="submit" class="main" disabled={isBusy}>{isBusy ? 'Saving…' : 'Save'}</button><button type="button" onClick={() => onDone(false)}>Cancel</button></div>
    </form>
  );
}

function GroupCard({ group, isAdmin, onEdit, onGone }: { group: Group; isAdmin: boolean; onEdit: () => void; onGone: () => void }): JSX.Element {
  useTopics('tick');
  const [isAsking, setAsking] = useState(false);
  const [problem, setProblem] = useState('');
  const gpus = gpusOf(group).map((u) => store.picture.gpus.get(u)).filter((g) => g !== undefined);
  const sum = (metric: string): number => gpus.reduce((s, g) => s + (g.metrics[metric] ?? 0), 0);
  const memory = bytesOf(sum('gpu_memory_used_bytes'), sum('gpu_memory_total_bytes'));
  const hottest = Math.max(...gpus.map((g) => g.metrics['gpu_temperature_celsius'] ?? -Infinity));
  const remove = async (): Promise<void> => {
    try {
      await send('DELETE', `groups/${encodeURIComponent(group.name)}`);
      onGone();
    } catch (e) {
      setProblem(sentence(e));
    }
  };
  return (
    <section class="panel group" aria-label={group.label || group.name}>
      <header><h2>{group.label || group.name}</h2>{group.label && <p class="sub">{group.name}</p>}</header>
      <p>{plural(gpus.length, 'GPU')} · {watts(sum('gpu_power_watts'))} · memory {memory.used} / {memory.total}{Number.isFinite(hottest) && ` · hottest ${hottest} °C`}</p>
      <p class="dim">{group.members.map(nameOf).join(', ')}</p>
      {problem && <Problem>{problem}</Problem>}
      <div class="buttons">
        <a class="button" href={href('compare', { of: `group:${group.name}`, metric: 'gpu_power_watts' })}>As one</a>
        <a class="button" href={href('compare', { of: gpusOf(group).map((u) => `gpu:${u}`).join(), metric: 'gpu_temperature_celsius' })}>Compare members</a>
        {isAdmin && <button type="button" onClick={onEdit}>Change</button>}
        {isAdmin && (isAsking ? <><button type="button" class="danger" onClick={() => void remove()}>Really remove</button><button type="button" onClick={() => setAsking(false)}>Keep</button></> : <button type="button" onClick={() => setAsking(true)}>Remove</button>)}
      </div>
    </section>
  );
}

export function Groups({ isAdmin }: { isAdmin: boolean }): JSX.Element {
  useTitle('Groups');
  useTopics('list');
  const [groups, setGroups] = useState<Group[]>();
  const [problem, setProblem] = useState('');
  const [edited, setEdited] = useState<Group | 'new'>();
  const load = (): void => {
    get<{ groups: Group[] }>('groups').then((got) => { setGroups(got.groups); setProblem(''); }, (e) => setProblem(sentence(e)));
  };
  useEffect(load, []);
  const done = (changed: boolean): void => {
    setEdited(undefined);
    if (changed) load();
  };
  return (
    <>
      <PageHead title="Groups" crumb="named sets of GPUs and nodes, to be looked at as one">{isAdmin && <button type="button" class="main" onClick={() => setEdited('new')}>New group</button>}</PageHead>
      {problem && <Problem>{problem}</Problem>}
      {edited && <Editor key={edited === 'new' ? '' : edited.name} group={edited === 'new' ? undefined : edited} onDone={done} />}
      {!groups && !problem && <Busy what="Reading groups" />}
      {groups?.length === 0 && !edited && <section class="panel blank"><h2>No group yet</h2><p>A group gathers GPUs or whole nodes under one name: a rack, a lab, the cards of a project. Its power, memory and temperature can then be drawn as one line.</p>{!isAdmin && <p>An administrator can make one.</p>}</section>}
      <div class="grid even">{groups?.map((g) => <GroupCard key={g.name} group={g} isAdmin={isAdmin} onEdit={() => setEdited(g)} onGone={load} />)}</div>
    </>
  );
}
