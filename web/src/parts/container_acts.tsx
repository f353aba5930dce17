// What may be done with a container, as buttons: only what whoever looks may do. What cannot be taken back asks again, by name.
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send, sentence } from '../api/client';
import type { ContainerRow } from '../api/types_work';
import { isUp, may } from '../format/containers';
import { href } from '../live/route';
import { OpenUi } from './open_ui';
import { say } from './say';
import { Sure } from './sure';

interface ActsProps {
  c: ContainerRow;
  onProblem: (text: string) => void;
  again: () => void;
  onRemoved?: () => void;
  isWhole?: boolean; // on its own page: all of them
}

export const containerPath = (c: Pick<ContainerRow, 'id' | 'node'>, verb = ''): string => `containers/${c.id}${verb ? `/${verb}` : ''}?node=${encodeURIComponent(c.node)}`;

export function ContainerActs({ c, onProblem, again, onRemoved, isWhole }: ActsProps): JSX.Element {
  const [isBusy, setBusy] = useState('');
  const [taken, setTaken] = useState(''); // why its GPUs are not free
  const act = async (verb: string, done: string, more = ''): Promise<void> => {
    setBusy(verb);
    setTaken('');
    try {
      await send('POST', containerPath(c, verb) + more);
      onProblem('');
      say(`${c.name} ${done}.`);
    } catch (e) {
      if (verb === 'start' && /^gpus: .*(belongs to|has memory)/.test(sentence(e))) setTaken(sentence(e));
      onProblem(sentence(e));
    }
    setBusy('');
    again();
  };
  const button = (verb: string, name: string, done: string): JSX.Element => (
    <button type="button" disabled={!!isBusy} aria-label={`${name} ${c.name}`} onClick={() => void act(verb, done)}>{isBusy === verb ? `${name}…` : name}</button>
  );
  return (
    <span class="acts">
      {isWhole && c.ui && isUp(c) && may(c, 'shell') && <OpenUi path={containerPath(c, 'ui')} what={c.name} onProblem={onProblem} />}
      {!isUp(c) && may(c, 'start') && button('start', 'Start', 'is started')}
      {taken && <button type="button" class="danger" disabled={!!isBusy} onClick={() => void act('start', 'is started', '&shared=true')}>Start all the same</button>}
      {isUp(c) && may(c, 'stop') && button('stop', 'Stop', 'is stopped')}
      {isWhole && isUp(c) && may(c, 'restart') && button('restart', 'Restart', 'is started anew')}
      {isWhole && may(c, 'edit') && <a class="button" href={href(`containers/${c.id}/edit`, { node: c.node })}>Edit</a>}
      {may(c, 'remove') && <Sure name="Remove" label={`Remove ${c.name}`} ask={`Really remove ${c.name}`} onProblem={onProblem} act={async () => { await send('DELETE', containerPath(c)); say(`${c.name} is removed.`); again(); onRemoved?.(); }} />}
    </span>
  );
}
