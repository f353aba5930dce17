// The frame around every page: where one can go, whether what one sees is live, light or dark, who one is.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import type { Session } from '../api/types';
import { needsAttention, notes, worst } from '../format/health';
import { duration } from '../format/numbers';
import { verdict } from '../format/tasks';
import { unix } from '../format/times';
import { useClock, useStatus, useTopics } from '../live/hooks';
import { href, usePlace } from '../live/route';
import { store } from '../live/store';
import { chooseTheme, onTheme, theme } from '../live/theme';
import { alarm, Voice } from './say';
import { workPaths } from './work_tabs';

const PAGES: { path: string; name: string; also?: string[] }[] = [
  { path: '', name: 'Overview', also: ['gpus'] },
  { path: 'queue', name: 'Queue', also: workPaths() },
  { path: 'tasks', name: 'Tasks' },
  { path: 'compare', name: 'Compare' },
  { path: 'events', name: 'Events' },
  { path: 'nodes', name: 'Nodes' },
  { path: 'groups', name: 'Groups' },
  { path: 'account', name: 'Account' },
];

const SEEN_S = 3600;

function Badge({ page }: { page: string }): JSX.Element | null {
  useTopics('list', 'events', 'tasks');
  const now = useClock(10);
  if (page === '') {
    const bad = store.gpus().filter((g) => needsAttention(worst(notes(g, now)))).length;
    return bad ? <span class="badge bad" aria-label={`${bad} need attention`}>{bad}</span> : <span class="badge">{store.picture.gpus.size || ''}</span>;
  }
  if (page === 'tasks') {
    const late = store.tasks().filter((t) => verdict(t, now) === 'overdue').length;
    return late ? <span class="badge bad" aria-label={`${late} overdue`}>{late}</span> : null;
  }
  if (page === 'events') {
    const fresh = store.events.filter((e) => e.severity !== 'info' && now - unix(e.time) < SEEN_S).length;
    return fresh ? <span class="badge bad" aria-label={`${fresh} in the last hour`}>{fresh}</span> : null;
  }
  return null;
}

/** Live, stale or connecting, always in sight; stale also greys the page. */
export function LiveState(): JSX.Element {
  const status = useStatus();
  useClock(1);
  const silent = store.silenceS();
  useEffect(() => {
    document.documentElement.dataset['status'] = status;
  }, [status]);
  const text = status === 'live' ? 'live' : status === 'stale' ? `stale for ${duration(silent)}, reconnecting` : 'connecting';
  return <span class={`live ${status}`} role="status"><i class="dot" aria-hidden="true" />{text}</span>;
}

function ThemeButton(): JSX.Element {
  const [now, set] = useState(theme());
  useEffect(() => onTheme(() => set(theme())), []);
  const other = now === 'dark' ? 'light' : 'dark';
  return (
    <button type="button" class="icon" onClick={() => chooseTheme(other)} aria-label={`Switch to ${other} colours`} title={`Switch to ${other} colours`}>
      <svg viewBox="0 0 20 20" aria-hidden="true">{now === 'dark'
        ? <g fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"><circle cx="10" cy="10" r="3.4" /><path d="M10 2v2M10 16v2M2 10h2M16 10h2M4.3 4.3l1.4 1.4M14.3 14.3l1.4 1.4M4.3 15.7l1.4-1.4M14.3 5.7l1.4-1.4" /></g>
        : <path d="M16.5 12.2A7 7 0 0 1 7.8 3.5a7 7 0 1 0 8.7 8.7z" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linejoin="round" />}</svg>
    </button>
  );
}

/** Speaks up when a card is newly in trouble. */
function Alarms(): null {
  useTopics('tick');
  const known = useRef<Map<string, string>>();
  const now = store.now();
  const state = new Map(store.gpus().map((g) => [g.uuid, notes(g, now).filter((n) => n.level === 'crit')[0]?.tag ?? '']));
  const before = known.current;
  known.current = state;
  if (before && store.hasPicture) {
    for (const g of store.gpus()) {
      const tag = state.get(g.uuid) ?? '';
      const was = before.get(g.uuid) ?? '';
      if (tag && tag !== was) alarm(`GPU ${g.index}: ${notes(g, now)[0]?.text ?? tag}`);
      else if (!tag && was) alarm(`GPU ${g.index} is well again.`);
    }
  }
  return null;
}

function skip(e: Event): void {
  e.preventDefault();
  document.getElementById('main')?.focus();
}

export function Shell({ session, children }: { session: Session; children: ComponentChildren }): JSX.Element {
  const { path } = usePlace();
  const at = path.split('/')[0] ?? '';
  return (
    <div class="shell">
      <header class="side">
        <a class="skip" href={href(path)} onClick={skip}>Skip to the content</a>
        <a class="brand" href={href('')} aria-label="gpumgr, overview"><svg viewBox="0 0 32 32" aria-hidden="true"><rect x="3" y="8" width="26" height="16" rx="3" fill="currentColor" /><circle cx="11" cy="16" r="4.5" class="hole" /><circle cx="21" cy="16" r="4.5" class="hole" /></svg><span>gpumgr</span></a>
        <nav aria-label="Pages">
          {PAGES.map((p) => (
            <a key={p.path} href={href(p.path)} aria-current={at === p.path ? 'page' : p.also?.includes(at) ? 'true' : undefined}><span>{p.name}</span><Badge page={p.path} /></a>
          ))}
        </nav>
        <div class="me">
          <LiveState />
          <span class="who" title={`Signed in as ${session.user?.name ?? 'nobody'} (${session.user?.role ?? ''})`}>{session.user?.name}</span>
          <ThemeButton />
        </div>
      </header>
      <main id="main" tabIndex={-1}>{children}</main>
      <Alarms />
      <Voice />
    </div>
  );
}
