// What needs a person, the worst first, as sentences at the top of the overview; or that nothing does.
import type { JSX } from 'preact';
import { Level, needsAttention, nodeTrouble, notes, rank } from '../format/health';
import { plural } from '../format/numbers';
import { useClock, useTopics } from '../live/hooks';
import { href } from '../live/route';
import { store } from '../live/store';

const MOST = 3;
const MARK: Record<Level, string> = { crit: '▲', hot: '▲', warn: '●', info: '', good: '' };

export function Attention(): JSX.Element | null {
  useTopics('tick', 'list');
  const now = useClock(5);
  if (!store.hasPicture) return null;
  const rows = store.gpus()
    .flatMap((g) => {
      const first = notes(g, now)[0];
      return first && needsAttention(first.level) ? [{ gpu: g, note: first }] : [];
    })
    .sort((a, b) => rank(a.note.level) - rank(b.note.level) || (b.gpu.metrics['gpu_temperature_celsius'] ?? 0) - (a.gpu.metrics['gpu_temperature_celsius'] ?? 0));
  const nodes = store.nodes().map((n) => ({ name: n.name, trouble: nodeTrouble(n, now) })).filter((n) => n.trouble);
  if (!rows.length && !nodes.length) return <p class="attention good"><span class="mark" aria-hidden="true">✓</span>All {plural(store.picture.gpus.size, 'GPU')} are well.</p>;
  const names = store.nodes().length > 1;
  return (
    <ul class="attention" aria-label="Needs attention">
      {nodes.map((n) => <li key={n.name} class="crit"><span class="mark" aria-hidden="true">▲</span><a href={href(`nodes/${n.name}`)}>{n.name}</a><span>{n.trouble}</span></li>)}
      {rows.slice(0, MOST).map(({ gpu, note }) => (
        <li key={gpu.uuid} class={note.level}>
          <span class="mark" aria-hidden="true">{MARK[note.level]}</span>
          <a href={href(`gpus/${gpu.uuid}`)}>{names && `${gpu.node} `}GPU {gpu.index}</a>
          <span class="text">{note.text}</span>
        </li>
      ))}
      {rows.length > MOST && <li class="more"><a href={href('', { show: 'attention' })}>and {rows.length - MOST} more</a></li>}
    </ul>
  );
}
