// All containers that have to do with GPUs, on all machines, also those that were started elsewhere: whose they are, what they have, and
// what may be done with them.
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import type { ContainerList, ContainerRow } from '../api/types_work';
import { fits, gpusWords, isUp, stateMood, stateWords } from '../format/containers';
import { JOB_SIGNS } from '../format/jobs';
import { bytes, duration, plural } from '../format/numbers';
import { moment } from '../format/times';
import { useAsk } from '../live/ask';
import { useClock, useTopics } from '../live/hooks';
import { goQuery, href, usePlace } from '../live/route';
import { store } from '../live/store';
import { ContainerActs } from '../parts/container_acts';
import { Busy, PageHead, Problem, Segment, useTitle } from '../parts/small';
import { WorkTabs } from '../parts/work_tabs';

const WHICH = [{ key: 'all', name: 'All' }, { key: 'up', name: 'Running' }, { key: 'mine', name: 'Mine' }];

function Row({ c, now, hasNodes, onProblem, again }: { c: ContainerRow; now: number; hasNodes: boolean; onProblem: (text: string) => void; again: () => void }): JSX.Element {
  const since = isUp(c) ? c.started : c.created;
  return (
    <tr data-container={c.name}>
      <td><a class="link" href={href(`containers/${c.id}`)}>{c.name}</a><div class="dim">{c.image}{hasNodes ? ` · ${c.node}` : ''}</div></td>
      <td data-label="User">{c.user ?? ''}{c.account && c.account !== c.user ? <div class="dim">account {c.account}</div> : null}{!c.is_ours && c.user && <div class="dim">started elsewhere</div>}</td>
      <td data-label="GPUs">{gpusWords(c)}</td>
      <td class="num" data-label="Memory">{c.memory_bytes ? bytes(c.memory_bytes) : ''}</td>
      <td class="num" data-label="Deadline">{c.deadline ?? ''}</td>
      <td data-label="State"><span class={`jobstate ${stateMood(c)}`}><span aria-hidden="true">{JOB_SIGNS[stateMood(c)]}</span> {stateWords(c)}</span>{c.job !== null && <div class="dim"><a class="link" href={href(`jobs/${c.job}`)}>job {c.job}</a></div>}{c.error && <div class="dim clip" title={c.error}>{c.error}</div>}</td>
      <td class="num" data-label="Age" title={`${isUp(c) ? 'started' : 'made'} ${moment(since, now)}`}>{since === null ? '' : duration(Math.max(0, now - since))}</td>
      <td class="num"><ContainerActs c={c} onProblem={onProblem} again={again} /></td>
    </tr>
  );
}

export function ContainersPage(): JSX.Element {
  useTitle('Containers');
  useTopics('list');
  const now = useClock(1);
  const { query } = usePlace();
  const [problem, setProblem] = useState('');
  const { answer, problem: trouble, again } = useAsk<ContainerList>('containers?gpu=true', 4, 'tasks');
  const which = query.get('show') ?? 'all';
  const text = query.get('find') ?? '';
  const put = (key: string, value: string, standard: string): void => goQuery((q) => (value === standard ? q.delete(key) : q.set(key, value)), true);
  const all = [...(answer?.containers ?? [])].sort((a, b) => Number(isUp(b)) - Number(isUp(a)) || (b.created ?? 0) - (a.created ?? 0));
  const shown = all.filter((c) => fits(c, { text, which }));
  const up = all.filter(isUp).length;
  const hasNodes = store.nodes().length > 1;
  return (
    <>
      <WorkTabs />
      <PageHead title="Containers" crumb={answer ? `${up} running${all.length > up ? `, ${all.length - up} stopped` : ''}` : ''}><a class="button main" href={href('containers/new')}>Add a container</a></PageHead>
      {(problem || trouble) && <Problem>{problem || trouble}</Problem>}
      {(answer?.problems ?? []).map((p) => <Problem key={p.node}>{hasNodes ? `${p.node}: ` : ''}{p.text}</Problem>)}
      {!answer ? !trouble && <Busy what="Asking the engines" /> : (
        <section class="panel" aria-label="GPU containers">
          <header class="wrap"><h2>GPU containers</h2><p class="sub">{shown.length === all.length ? plural(all.length, 'container') : `${shown.length} of ${all.length}`}</p><span class="spacer" />
            <input type="search" class="find" aria-label="Find" placeholder="name, image, user, GPU" value={text} onInput={(e) => put('find', e.currentTarget.value, '')} />
            <Segment label="Which" value={which} options={WHICH} onPick={(k) => put('show', k, 'all')} />
          </header>
          {shown.length ? (
            <div class="scroll" tabIndex={0} role="region" aria-label="Containers as a table">
              <table class="jobs containers">
                <thead><tr><th>Container</th><th>User</th><th>GPUs</th><th class="num">Memory</th><th class="num">Deadline</th><th>State</th><th class="num">Age</th><th><span class="unseen">Actions</span></th></tr></thead>
                <tbody>{shown.map((c) => <Row key={`${c.node}/${c.id}`} c={c} now={now} hasNodes={hasNodes} onProblem={setProblem} again={again} />)}</tbody>
              </table>
            </div>
          ) : <p class="empty">{all.length ? 'No container fits this choice.' : <span>No container here has to do with GPUs. <a class="link" href={href('containers/new')}>Add one</a>, or start one with <code>gpumgr docker run --gpus …</code></span>}</p>}
        </section>
      )}
    </>
  );
}
