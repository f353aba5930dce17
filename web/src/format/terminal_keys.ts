// What a key of the keyboard is to a terminal. Pure.

export interface Press {
  key: string;
  ctrl: boolean;
  alt: boolean;
  shift: boolean;
  meta: boolean;
}

const NAMED: Record<string, string> = {
  Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', Delete: '\x1b[3~', Insert: '\x1b[2~', PageUp: '\x1b[5~', PageDown: '\x1b[6~',
  F1: '\x1bOP', F2: '\x1bOQ', F3: '\x1bOR', F4: '\x1bOS', F5: '\x1b[15~', F6: '\x1b[17~', F7: '\x1b[18~', F8: '\x1b[19~', F9: '\x1b[20~', F10: '\x1b[21~', F11: '\x1b[23~', F12: '\x1b[24~',
};
const ARROWS: Record<string, string> = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D', Home: 'H', End: 'F' };

/** What a key sends; null: it is the browser's (copying, reloading, leaving the terminal by Shift+Tab). */
export function keyBytes(p: Press, usesApplicationKeys: boolean): string | null {
  if (p.meta || (p.ctrl && p.shift)) return null;
  if (p.key === 'Tab' && p.shift) return null;
  const arrow = ARROWS[p.key];
  if (arrow) {
    const modifier = 1 + (p.shift ? 1 : 0) + (p.alt ? 2 : 0) + (p.ctrl ? 4 : 0);
    return modifier > 1 ? `\x1b[1;${modifier}${arrow}` : `\x1b${usesApplicationKeys ? 'O' : '['}${arrow}`;
  }
  const named = NAMED[p.key];
  if (named) return p.alt ? `\x1b${named}` : named;
  if ([...p.key].length !== 1) return null;
  if (p.ctrl) {
    const c = p.key.toLowerCase();
    if (c >= 'a' && c <= 'z') return (p.alt ? '\x1b' : '') + String.fromCharCode(c.charCodeAt(0) - 96);
    const at = ' [\\]^_'.indexOf(c);
    return at === 0 ? '\0' : at > 0 ? String.fromCharCode(26 + at) : null;
  }
  return p.alt ? `\x1b${p.key}` : p.key;
}
