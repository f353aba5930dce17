// Light or dark: the system's wish unless the viewer chose. Canvases cannot follow a style sheet, so they are told.
export type Theme = 'light' | 'dark';
const KEY = 'gpumgr.theme';
const listeners = new Set<() => void>();
const system = window.matchMedia('(prefers-color-scheme: dark)');

export function chosenTheme(): Theme | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : undefined;
  } catch {
    return undefined;
  }
}

export const theme = (): Theme => chosenTheme() ?? (system.matches ? 'dark' : 'light');

function apply(): void {
  document.documentElement.dataset['theme'] = theme();
  for (const l of [...listeners]) l();
}

export function chooseTheme(t: Theme): void {
  try {
    if (t === (system.matches ? 'dark' : 'light')) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, t);
  } catch {
    // No storage: it lasts as long as the page.
  }
  document.documentElement.dataset['theme'] = t;
  for (const l of [...listeners]) l();
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function startTheme(): void {
  apply();
  system.addEventListener('change', apply);
}

const cache = new Map<string, string>();
onTheme(() => cache.clear());

/** A colour of the style sheet, for a canvas. */
export function colour(name: string): string {
  let c = cache.get(name);
  if (c === undefined) {
    c = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || '#888';
    cache.set(name, c);
  }
  return c;
}

/** The same, see-through. The style sheet's tokens are all #rrggbb. */
export function faded(name: string, alpha: number): string {
  return colour(name) + Math.round(alpha * 255).toString(16).padStart(2, '0');
}
