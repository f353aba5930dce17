// The pages of work are tabs of one place: what waits and runs, what stays up, what repeats, who has which hour. They are links,
// so that each has its own address; a page puts them above its heading. With one page there is nothing to choose.
import type { JSX } from 'preact';
import { href, usePlace } from '../live/route';

/** A row for each page, in the order in which they stand. `also`: other addresses that belong to it. */
export const WORK: { path: string; name: string; also?: string[] }[] = [
  { path: 'queue', name: 'Queue', also: ['jobs', 'submit'] },
  { path: 'services', name: 'Services' },
  { path: 'repeats', name: 'Repeats' },
  { path: 'calendar', name: 'Calendar' },
  { path: 'containers', name: 'Containers' },
];

/** The addresses of all of them: the place "Queue" of the side bar. */
export const workPaths = (): string[] => WORK.flatMap((w) => [w.path, ...(w.also ?? [])]);

export function WorkTabs(): JSX.Element | null {
  const { path } = usePlace();
  const at = path.split('/')[0] ?? '';
  if (WORK.length < 2) return null;
  return (
    <nav class="tabs" aria-label="Work">
      {WORK.map((w) => <a key={w.path} href={href(w.path)} aria-current={at === w.path ? 'page' : w.also?.includes(at) ? 'true' : undefined}>{w.name}</a>)}
    </nav>
  );
}
