// Arrow keys between the cards of a grid: one tab stop for all of them, and the last one visited keeps it.
type Roving = ((e: KeyboardEvent, list: HTMLElement | null) => void) & { remember: (e: FocusEvent, list: HTMLElement | null) => void };

const itemsOf = (list: HTMLElement): HTMLElement[] => [...list.querySelectorAll<HTMLElement>('[data-item]')];

function next(items: HTMLElement[], at: number, key: string): number {
  const here = items[at];
  if (!here) return 0;
  const box = here.getBoundingClientRect();
  const perRow = Math.max(1, items.filter((i) => Math.abs(i.getBoundingClientRect().top - box.top) < 4).length);
  switch (key) {
    case 'ArrowLeft': return at - 1;
    case 'ArrowRight': return at + 1;
    case 'ArrowUp': return at - perRow;
    case 'ArrowDown': return at + perRow;
    case 'Home': return 0;
    case 'End': return items.length - 1;
    default: return -1;
  }
}

export const roving: Roving = Object.assign(
  (e: KeyboardEvent, list: HTMLElement | null): void => {
    if (!list || e.altKey || e.ctrlKey || e.metaKey || !/^(Arrow|Home|End)/.test(e.key)) return;
    const items = itemsOf(list);
    const to = items[next(items, items.indexOf(document.activeElement as HTMLElement), e.key)];
    e.preventDefault();
    to?.focus();
  },
  {
    remember: (e: FocusEvent, list: HTMLElement | null): void => {
      if (!list || !(e.target instanceof HTMLElement) || !e.target.hasAttribute('data-item')) return;
      for (const item of itemsOf(list)) item.tabIndex = item === e.target ? 0 : -1;
    },
  },
);
