// Where in the dashboard we are: the path below the base, and the query that holds ranges and choices. Everything a page
// shows can be had again from its address.
import { useEffect, useReducer } from 'preact/hooks';

const base = new URL(document.baseURI).pathname.replace(/[^/]*$/, '');
const listeners = new Set<() => void>();

export interface Place {
  path: string; // "gpus/GPU-…", no slash at either end
  query: URLSearchParams;
}

export function here(): Place {
  const full = location.pathname;
  const path = full.startsWith(base) ? full.slice(base.length) : full.slice(1);
  return { path: decodeURIComponent(path).replace(/\/+$/, ''), query: new URLSearchParams(location.search) };
}

/** An address below the base, for links. */
export function href(path: string, query?: URLSearchParams | Record<string, string>): string {
  const text = new URLSearchParams(query).toString().replace(/%3A/gi, ':').replace(/%2C/gi, ',');
  return base + path.split('/').map(encodeURIComponent).join('/') + (text ? `?${text}` : '');
}

export function go(to: string, { replace = false, keepScroll = false } = {}): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  if (!keepScroll) window.scrollTo(0, 0);
  for (const l of [...listeners]) l();
}

/** The same page with another query. A new entry in the history unless told otherwise: the back button undoes it. */
export function goQuery(change: (query: URLSearchParams) => void, replace = false): void {
  const { path, query } = here();
  change(query);
  const to = href(path, query);
  if (to !== location.pathname + location.search) go(to, { replace, keepScroll: true });
}

export function usePlace(): Place {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const listen = (): void => again(undefined as never);
    listeners.add(listen);
    window.addEventListener('popstate', listen);
    return () => {
      listeners.delete(listen);
      window.removeEventListener('popstate', listen);
    };
  }, []);
  return here();
}

/** Clicks on our own links stay in the page. */
export function catchLinks(e: MouseEvent): void {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const a = (e.target as Element | null)?.closest?.('a');
  if (!a || a.target || a.hasAttribute('download') || a.origin !== location.origin || !a.pathname.startsWith(base)) return;
  if (/^(api|metrics|healthz|readyz)(\/|$)/.test(a.pathname.slice(base.length))) return;
  e.preventDefault();
  go(a.pathname + a.search + a.hash);
}
