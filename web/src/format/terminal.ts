// A terminal's screen as values: bytes of a shell in, rows of cells out. What shells, editors and pagers of today send is understood
// (ECMA-48 with xterm's habits); the rest is passed over. Pure: no DOM, no clock. The usual library for this writes style elements
// into the page, which our content policy forbids, and is four times the size of the whole dashboard's script.

export interface Style {
  fg: number; // 0-15, 16-255 as xterm counts, -1: the usual one
  bg: number;
  bold: boolean;
  dim: boolean;
  underline: boolean;
  inverse: boolean;
}

export interface Cell {
  text: string; // one character; "" behind a wide one
  style: Style;
}

export interface Run {
  text: string;
  style: Style;
}

const PLAIN: Style = Object.freeze({ fg: -1, bg: -1, bold: false, dim: false, underline: false, inverse: false });
const SCROLLBACK = 2000;

const same = (a: Style, b: Style): boolean => a === b || (a.fg === b.fg && a.bg === b.bg && a.bold === b.bold && a.dim === b.dim && a.underline === b.underline && a.inverse === b.inverse);

/** Characters that take two columns: East Asian ones and most pictures. */
export function isWide(code: number): boolean {
  return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff)
    || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
}

const isCombining = (code: number): boolean => (code >= 0x300 && code <= 0x36f) || code === 0x200d || (code >= 0xfe00 && code <= 0xfe0f);

/** A colour of 24 bits as the nearest of the cube of 216. */
const cube = (r: number, g: number, b: number): number => 16 + 36 * Math.round((r / 255) * 5) + 6 * Math.round((g / 255) * 5) + Math.round((b / 255) * 5);

/** "#rrggbb" of a number from 16 to 255. The first sixteen are the theme's. */
export function colour(n: number): string {
  const hex = (v: number): string => v.toString(16).padStart(2, '0');
  if (n >= 232) return `#${hex(8 + 10 * (n - 232)).repeat(3)}`;
  const level = (v: number): number => (v ? 55 + 40 * v : 0);
  const at = n - 16;
  return `#${hex(level(Math.floor(at / 36)))}${hex(level(Math.floor(at / 6) % 6))}${hex(level(at % 6))}`;
}

export class Screen {
  rows: number;
  columns: number;
  x = 0;
  y = 0;
  isCursorShown = true;
  usesApplicationKeys = false;
  bracketsPaste = false;
  title = '';
  /** What the program asks the terminal, answered: to be sent back. */
  reply = '';
  /** Lines that left at the top. */
  past: Cell[][] = [];
  private grid: Cell[][];
  private other: Cell[][] | null = null; // the usual screen, while another is shown
  private saved = { x: 0, y: 0, style: PLAIN };
  private usual = { x: 0, y: 0, style: PLAIN };
  private style: Style = PLAIN;
  private top = 0;
  private bottom: number;
  private wraps = true;
  private isPastEnd = false; // the next character begins a line
  private state: 'text' | 'escape' | 'csi' | 'string' | 'skip' = 'text';
  private csi = '';
  private osc = '';
  private decoder = new TextDecoder('utf-8');

  constructor(rows: number, columns: number) {
    this.rows = rows;
    this.columns = columns;
    this.bottom = rows - 1;
    this.grid = Array.from({ length: rows }, () => this.blank());
  }

  /** The line as runs of one style; without what is empty at its end. */
  line(row: number): Run[] {
    return runs(this.grid[row] ?? []);
  }

  feed(bytes: Uint8Array): void {
    for (const c of this.decoder.decode(bytes, { stream: true })) this.take(c);
  }

  resize(rows: number, columns: number): void {
    const fit = (grid: Cell[][], isUsual: boolean): Cell[][] => {
      const lines = grid.map((l) => (l.length > columns ? l.slice(0, columns) : [...l, ...this.cells(columns - l.length)]));
      while (lines.length > rows) {
        const isEmptyBelow = isUsual && this.y < lines.length - 1;
        const gone = isEmptyBelow ? lines.pop() : lines.shift();
        if (!isEmptyBelow && isUsual && gone && !this.other) this.keep(gone);
        if (!isEmptyBelow) this.y = Math.max(0, this.y - 1);
      }
      while (lines.length < rows) lines.push(this.cells(columns));
      return lines;
    };
    this.grid = fit(this.grid, true);
    if (this.other) this.other = fit(this.other, false);
    this.rows = rows;
    this.columns = columns;
    this.top = 0;
    this.bottom = rows - 1;
    this.x = Math.min(this.x, columns - 1);
    this.y = Math.min(this.y, rows - 1);
    this.isPastEnd = false;
  }

  private cells(n: number): Cell[] {
    return Array.from({ length: Math.max(0, n) }, () => ({ text: ' ', style: PLAIN }));
  }

  private blank(): Cell[] {
    const style = this.style?.bg >= 0 ? { ...PLAIN, bg: this.style.bg } : PLAIN;
    return Array.from({ length: this.columns }, () => ({ text: ' ', style }));
  }

  private keep(line: Cell[]): void {
    this.past.push(line);
    if (this.past.length > SCROLLBACK) this.past.splice(0, this.past.length - SCROLLBACK);
  }

  private scrollUp(n: number, from = this.top): void {
    for (let i = 0; i < Math.min(n, this.rows); i++) {
      const [gone] = this.grid.splice(from, 1);
      if (gone && from === 0 && !this.other) this.keep(gone);
      this.grid.splice(this.bottom, 0, this.blank());
    }
  }

  private scrollDown(n: number, from = this.top): void {
    for (let i = 0; i < Math.min(n, this.rows); i++) {
      this.grid.splice(this.bottom, 1);
      this.grid.splice(from, 0, this.blank());
    }
  }

  private newLine(): void {
    if (this.y === this.bottom) this.scrollUp(1);
    else if (this.y < this.rows - 1) this.y++;
    this.isPastEnd = false;
  }

  private put(c: string): void {
    const code = c.codePointAt(0) ?? 32;
    if (isCombining(code)) {
      const before = this.grid[this.y]?.[Math.max(0, this.isPastEnd ? this.x : this.x - 1)];
      if (before) before.text += c;
      return;
    }
    const width = isWide(code) ? 2 : 1;
    if ((this.isPastEnd || this.x + width > this.columns) && this.wraps) {
      this.x = 0;
      this.newLine();
    }
    const line = this.grid[this.y] as Cell[];
    line[this.x] = { text: c, style: this.style };
    if (width === 2 && this.x + 1 < this.columns) line[this.x + 1] = { text: '', style: this.style };
    this.isPastEnd = this.x + width >= this.columns;
    this.x = Math.min(this.columns - 1, this.x + width);
  }

  private take(c: string): void {
    if (this.state === 'text') this.takeText(c);
    else if (this.state === 'escape') this.takeEscape(c);
    else if (this.state === 'skip') this.state = 'text';
    else if (this.state === 'csi') {
      if (c >= '@' && c <= '~') {
        this.state = 'text';
        this.command(c, this.csi);
      } else if (c < ' ') this.control(c);
      else if (this.csi.length < 64) this.csi += c;
    } else if (c === '\x07' || c === '\x1b' || c === '\x9c') {
      this.state = c === '\x1b' ? 'skip' : 'text';
      if (/^[02];/.test(this.osc)) this.title = this.osc.slice(2);
    } else if (this.osc.length < 512) this.osc += c;
  }

  private takeText(c: string): void {
    if (c === '\x1b') this.state = 'escape';
    else if (c < ' ' || c === '\x7f') this.control(c);
    else this.put(c);
  }

  private control(c: string): void {
    if (c === '\r') this.x = 0;
    if (c === '\b') this.x = Math.max(0, this.x - 1);
    if (c === '\t') this.x = Math.min(this.columns - 1, (Math.floor(this.x / 8) + 1) * 8);
    if (c === '\n' || c === '\v' || c === '\f') this.newLine();
    if (c === '\r' || c === '\b' || c === '\t') this.isPastEnd = false;
  }

  private takeEscape(c: string): void {
    this.state = 'text';
    if (c === '[') [this.state, this.csi] = ['csi', ''];
    else if (c === ']' || c === 'P' || c === '_' || c === '^') [this.state, this.osc] = ['string', ''];
    else if (c === '(' || c === ')' || c === '#' || c === '%' || c === ' ') this.state = 'skip';
    else if (c === '7') this.saved = { x: this.x, y: this.y, style: this.style };
    else if (c === '8') this.restore(this.saved);
    else if (c === 'D') this.newLine();
    else if (c === 'E') { this.x = 0; this.newLine(); }
    else if (c === 'M') { if (this.y === this.top) this.scrollDown(1); else this.y = Math.max(0, this.y - 1); }
    else if (c === 'c') this.reset();
  }

  private restore(s: { x: number; y: number; style: Style }): void {
    this.x = Math.min(s.x, this.columns - 1);
    this.y = Math.min(s.y, this.rows - 1);
    this.style = s.style;
    this.isPastEnd = false;
  }

  private reset(): void {
    this.style = PLAIN;
    this.grid = Array.from({ length: this.rows }, () => this.blank());
    this.other = null;
    this.x = this.y = this.top = 0;
    this.bottom = this.rows - 1;
    this.isCursorShown = this.wraps = true;
    this.isPastEnd = this.usesApplicationKeys = this.bracketsPaste = false;
  }

  private move(x: number, y: number): void {
    this.x = Math.min(this.columns - 1, Math.max(0, x));
    this.y = Math.min(this.rows - 1, Math.max(0, y));
    this.isPastEnd = false;
  }

  private command(c: string, text: string): void {
    const isPrivate = text.startsWith('?');
    if (/[<=>!"$' ]/.test(text)) return;
    const n = text.replace(/^\?/, '').split(/[;:]/).map((p) => (/^\d{1,5}$/.test(p) ? Number(p) : -1));
    const first = Math.max(1, n[0] ?? 1);
    const at = (i: number): number => Math.max(1, n[i] ?? 1) - 1;
    switch (c) {
      case 'A': this.move(this.x, this.y - first); break;
      case 'B': case 'e': this.move(this.x, this.y + first); break;
      case 'C': case 'a': this.move(this.x + first, this.y); break;
      case 'D': this.move(this.x - first, this.y); break;
      case 'E': this.move(0, this.y + first); break;
      case 'F': this.move(0, this.y - first); break;
      case 'G': case '`': this.move(at(0), this.y); break;
      case 'd': this.move(this.x, at(0)); break;
      case 'H': case 'f': this.move(at(1), at(0)); break;
      case 'J': this.eraseScreen(Math.max(0, n[0] ?? 0)); break;
      case 'K': this.eraseLine(Math.max(0, n[0] ?? 0)); break;
      case 'L': if (this.y >= this.top && this.y <= this.bottom) this.scrollDown(first, this.y); break;
      case 'M': if (this.y >= this.top && this.y <= this.bottom) this.deleteLines(first); break;
      case 'P': this.shift(-first); break;
      case '@': this.shift(first); break;
      case 'X': this.fill(this.y, this.x, Math.min(this.columns, this.x + first)); break;
      case 'S': this.scrollUp(first); break;
      case 'T': this.scrollDown(first); break;
      case 'm': this.style = styled(this.style, n); break;
      case 'r': this.region(at(0), (n[1] ?? -1) < 1 ? this.rows - 1 : at(1)); break;
      case 'h': case 'l': if (isPrivate) n.forEach((mode) => this.mode(mode, c === 'h')); break;
      case 'n': if (n[0] === 6) this.reply += `\x1b[${this.y + 1};${this.x + 1}R`; else if (n[0] === 5) this.reply += '\x1b[0n'; break;
      case 'c': if (!isPrivate) this.reply += '\x1b[?1;2c'; break;
      case 's': this.saved = { x: this.x, y: this.y, style: this.style }; break;
      case 'u': this.restore(this.saved); break;
      default: break;
    }
  }

  private region(top: number, bottom: number): void {
    if (top >= bottom || bottom >= this.rows) return;
    this.top = top;
    this.bottom = bottom;
    this.move(0, 0);
  }

  private deleteLines(n: number): void {
    for (let i = 0; i < Math.min(n, this.bottom - this.y + 1); i++) {
      this.grid.splice(this.y, 1);
      this.grid.splice(this.bottom, 0, this.blank());
    }
  }

  private mode(mode: number, isOn: boolean): void {
    if (mode === 1) this.usesApplicationKeys = isOn;
    if (mode === 7) this.wraps = isOn;
    if (mode === 25) this.isCursorShown = isOn;
    if (mode === 2004) this.bracketsPaste = isOn;
    if (mode !== 1049 && mode !== 1047 && mode !== 47) return;
    if (isOn && !this.other) {
      this.usual = { x: this.x, y: this.y, style: this.style };
      this.other = this.grid;
      this.grid = Array.from({ length: this.rows }, () => this.blank());
    } else if (!isOn && this.other) {
      this.grid = this.other;
      this.other = null;
      this.restore(this.usual);
    }
    this.top = 0;
    this.bottom = this.rows - 1;
  }

  private fill(row: number, from: number, to: number): void {
    const line = this.grid[row];
    const empty = this.blank();
    for (let x = from; line && x < to; x++) line[x] = empty[x] as Cell;
    this.isPastEnd = false;
  }

  private eraseLine(how: number): void {
    this.fill(this.y, how === 0 ? this.x : 0, how === 1 ? this.x + 1 : this.columns);
  }

  private eraseScreen(how: number): void {
    if (how === 3) this.past = [];
    if (how === 0 || how === 1) this.eraseLine(how);
    for (let y = 0; y < this.rows; y++)
      if (how === 2 || (how === 0 && y > this.y) || (how === 1 && y < this.y)) this.fill(y, 0, this.columns);
  }

  private shift(n: number): void {
    const line = this.grid[this.y] as Cell[];
    const empty = this.blank().slice(0, Math.min(Math.abs(n), this.columns - this.x));
    if (n > 0) line.splice(this.x, 0, ...empty);
    else line.splice(this.x, empty.length);
    if (n > 0) line.length = this.columns;
    else line.push(...empty);
  }
}

/** Cells as runs of one style; without what is empty at their end. */
export function runs(cells: Cell[]): Run[] {
  let end = cells.length;
  while (end > 0 && cells[end - 1]?.text === ' ' && same((cells[end - 1] as Cell).style, PLAIN)) end--;
  const out: Run[] = [];
  for (const c of cells.slice(0, end)) {
    const last = out[out.length - 1];
    if (last && same(last.style, c.style)) last.text += c.text;
    else out.push({ text: c.text, style: c.style });
  }
  return out;
}

function styled(before: Style, numbers: number[]): Style {
  let s = { ...before };
  for (let i = 0; i < numbers.length; i++) {
    const n = Math.max(0, numbers[i] ?? 0);
    if (n === 0) s = { ...PLAIN };
    else if (n === 1) s.bold = true;
    else if (n === 2) s.dim = true;
    else if (n === 4) s.underline = true;
    else if (n === 7) s.inverse = true;
    else if (n === 22) s.bold = s.dim = false;
    else if (n === 24) s.underline = false;
    else if (n === 27) s.inverse = false;
    else if (n >= 30 && n <= 37) s.fg = n - 30;
    else if (n >= 90 && n <= 97) s.fg = n - 82;
    else if (n === 39) s.fg = -1;
    else if (n >= 40 && n <= 47) s.bg = n - 40;
    else if (n >= 100 && n <= 107) s.bg = n - 92;
    else if (n === 49) s.bg = -1;
    else if (n === 38 || n === 48) {
      const is256 = numbers[i + 1] === 5;
      const value = is256 ? Math.min(255, Math.max(0, numbers[i + 2] ?? 0)) : cube(numbers[i + 2] ?? 0, numbers[i + 3] ?? 0, numbers[i + 4] ?? 0);
      if (n === 38) s.fg = value;
      else s.bg = value;
      i += is256 ? 2 : 4;
    }
  }
  return same(s, PLAIN) ? PLAIN : s;
}
