// Who is on a card: in full as a table, in short as chips.
import type { JSX } from 'preact';
import type { Gpu, Process } from '../api/types';
import { heldWords, isHeldIdle } from '../format/health';
import { bytes, duration, percent } from '../format/numbers';
import { unix } from '../format/times';
import { href } from '../live/route';
import { store } from '../live/store';
import { Absent, Chip } from './small';

export function processName(p: Process): string {
  const words = (p.command ?? p.comm ?? '').trim().split(/\s+/);
  const first = (words[0] ?? '').split('/').pop() ?? '';
  const isRunner = /^(python[\d.]*|bash|sh|node|java|perl|ruby)$/.test(first);
  const script = isRunner ? words.slice(1).find((w) => !w.startsWith('-')) : undefined;
  return (script ?? first).split('/').pop() || `pid ${p.pid}`;
}

/** Users and programs in as few chips as they need: the biggest holders first. */
export function WhoChips({ gpu, most = 2 }: { gpu: Gpu; most?: number }): JSX.Element | null {
  if (!gpu.processes) return null;
  const sorted = [...gpu.processes].sort((a, b) => (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0));
  const holders = isHeldIdle(gpu) ? (gpu.held ?? []).map((h) => `${h.user} · ${h.name}`) : [];
  const labels = [...new Set([...sorted.map((p) => [p.user, p.container ?? processName(p)].filter(Boolean).join(' · ')), ...holders])];
  const rest = labels.length - most;
  return (
    <>
      {labels.slice(0, most).map((l) => <Chip key={l} level="who" title={l}>{l}</Chip>)}
      {rest > 0 && <Chip title={labels.slice(most).join(', ')}>+{rest}</Chip>}
    </>
  );
}

export function ProcessTable({ gpu }: { gpu: Gpu }): JSX.Element {
  const now = store.now();
  if (!gpu.processes) return <p class="empty">{gpu.state === 'ok' ? 'This card cannot list its processes; that is not the same as none.' : `The card is ${gpu.state}: who is on it is not known.`}</p>;
  if (!gpu.processes.length) return <p class="empty">{isHeldIdle(gpu) ? `Nobody is on it. It is held by ${heldWords(gpu)}.` : 'Nobody is on it.'}</p>;
  const rows = [...gpu.processes].sort((a, b) => (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0));
  const hasStart = rows.some((p) => Number.isFinite(unix(p.start)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Processes">
      <table>
        <thead><tr><th>User</th><th>What</th><th class="num">Memory</th><th class="num">SM share</th><th>Kind</th>{hasStart && <th class="num">Running for</th>}</tr></thead>
        <tbody>
          {rows.map((p) => {
            const since = unix(p.start);
            return (
              <tr key={p.pid}>
                <td>{p.user ?? (p.uid === undefined ? <Absent why="the user is not told" /> : `uid ${p.uid}`)}</td>
                <td><span class="command" title={p.command}>{processName(p)}</span><div class="dim">{p.container && <><a class="link" href={href(`containers/${p.container}`)}>{p.container}</a> · </>}pid {p.pid}{p.command && p.command !== processName(p) ? ` · ${p.command.slice(0, 120)}` : ''}</div></td>
                <td class="num">{p.memory_bytes === undefined ? <Absent why="the driver does not tell" /> : bytes(p.memory_bytes)}</td>
                <td class="num">{p.sm_ratio === undefined ? <Absent why="the driver does not tell" /> : percent(p.sm_ratio)}</td>
                <td>{p.kinds?.join(', ') ?? ''}</td>
                {hasStart && <td class="num">{Number.isFinite(since) ? duration(now - since) : <Absent why="its start is not told" />}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
