// A terminal: what a shell shows, drawn from the screen of format/terminal, and keys back to it over a WebSocket. Shift+Tab leaves it.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { colour, Run, runs, Screen, Style } from '../format/terminal';
import { keyBytes } from '../format/terminal_keys';

const SHOWN_PAST = 500; // lines above the screen that can be scrolled to

function looks(s: Style): { class: string; style: Record<string, string> } {
  const [fg, bg] = s.inverse ? [s.bg < 0 ? -2 : s.bg, s.fg < 0 ? -2 : s.fg] : [s.fg, s.bg];
  const names = [s.bold && 'bold', s.dim && 'faint', s.underline && 'under', fg === -2 && 'f-inverse', bg === -2 && 'b-inverse', fg >= 0 && fg < 16 && `f${fg}`, bg >= 0 && bg < 16 && `b${bg}`].filter(Boolean);
  return { class: names.join(' '), style: { ...(fg >= 16 ? { color: colour(fg) } : {}), ...(bg >= 16 ? { background: colour(bg) } : {}) } };
}

const spans = (line: Run[]): (JSX.Element | string)[] => line.map((r, i) => {
  const how = looks(r.style);
  return how.class || Object.keys(how.style).length ? <span key={i} class={how.class} style={how.style}>{r.text}</span> : r.text;
});

/** The line with the cursor: its cell is drawn inverse. */
function withCursor(line: Run[], x: number): (JSX.Element | string)[] {
  const cells: Run[] = line.flatMap((r) => [...r.text].map((text) => ({ text, style: r.style })));
  while (cells.length <= x) cells.push({ text: ' ', style: { fg: -1, bg: -1, bold: false, dim: false, underline: false, inverse: false } });
  return [...spans(cells.slice(0, x)), <span key="cursor" class="cursor">{cells[x]?.text}</span>, ...spans(cells.slice(x + 1)).map((s, i) => (typeof s === 'string' ? s : <span key={`r${i}`} {...s.props} />))];
}

export function Terminal({ url, name, onEnd }: { url: (rows: number, columns: number) => string; name: string; onEnd: (why: string) => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const keys = useRef<HTMLTextAreaElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const screen = useRef<Screen>(new Screen(24, 80));
  const socket = useRef<WebSocket>();
  const [, draw] = useState(0);
  const [isOpen, setOpen] = useState(false);

  const size = (): [number, number] => {
    const cell = probe.current?.getBoundingClientRect();
    const room = box.current;
    if (!cell?.width || !room) return [24, 80];
    return [Math.max(4, Math.floor((room.clientHeight - 16) / cell.height)), Math.max(20, Math.floor((room.clientWidth - 20) / (cell.width / 10)))];
  };
  const type = (text: string): void => {
    if (socket.current?.readyState === WebSocket.OPEN && text) socket.current.send(new TextEncoder().encode(text));
  };

  useEffect(() => {
    const [rows, columns] = size();
    screen.current = new Screen(rows, columns);
    const s = new WebSocket(url(rows, columns).replace(/^http/, 'ws'));
    socket.current = s;
    s.binaryType = 'arraybuffer';
    let frame = 0;
    s.onopen = () => { setOpen(true); keys.current?.focus(); };
    s.onmessage = (e: MessageEvent<ArrayBuffer>) => {
      screen.current.feed(new Uint8Array(e.data));
      type(screen.current.reply);
      screen.current.reply = '';
      if (!frame) frame = window.requestAnimationFrame(() => { frame = 0; draw((n) => n + 1); });
    };
    s.onclose = (e) => onEnd(e.reason || 'the connection ended');
    const watch = new ResizeObserver(() => {
      const [r, c] = size();
      if (r === screen.current.rows && c === screen.current.columns) return;
      screen.current.resize(r, c);
      if (s.readyState === WebSocket.OPEN) s.send(JSON.stringify({ rows: r, columns: c }));
      draw((n) => n + 1);
    });
    if (box.current) watch.observe(box.current);
    return () => {
      watch.disconnect();
      window.cancelAnimationFrame(frame);
      s.onclose = null;
      s.close();
    };
  }, [name]);

  useEffect(() => { if (box.current) box.current.scrollTop = box.current.scrollHeight; });

  const pressed = (e: KeyboardEvent): void => {
    if (e.isComposing) return;
    const bytes = keyBytes({ key: e.key, ctrl: e.ctrlKey, alt: e.altKey, shift: e.shiftKey, meta: e.metaKey }, screen.current.usesApplicationKeys);
    if (bytes === null || (e.key === 'v' && e.ctrlKey) || (e.key === 'c' && e.ctrlKey && !window.getSelection()?.isCollapsed)) return; // the browser's own
    if ([...e.key].length === 1 && !e.ctrlKey && !e.altKey) return; // it comes as input, whatever keyboard it is
    e.preventDefault();
    type(bytes);
  };
  const pasted = (e: ClipboardEvent): void => {
    const text = (e.clipboardData?.getData('text') ?? '').replace(/\r?\n/g, '\r');
    e.preventDefault();
    type(screen.current.bracketsPaste ? `\x1b[200~${text}\x1b[201~` : text);
  };
  const s = screen.current;
  return (
    <div class="terminal" ref={box} role="group" aria-label={`Shell in ${name}`} onMouseUp={() => { if (window.getSelection()?.isCollapsed) keys.current?.focus({ preventScroll: true }); }}>
      <span class="probe" ref={probe} aria-hidden="true">0123456789</span>
      <textarea ref={keys} class="keys" aria-label={`Keys for the shell in ${name}; Shift+Tab leaves it`} autocapitalize="off" autocomplete="off" spellcheck={false} onKeyDown={pressed} onPaste={pasted}
        onInput={(e) => { if ((e as unknown as InputEvent).isComposing) return; type(e.currentTarget.value); e.currentTarget.value = ''; }} onCompositionEnd={(e) => { type(e.currentTarget.value); e.currentTarget.value = ''; }} />
      <pre role="log" aria-label="What the shell shows" aria-live="off">
        {s.past.slice(-SHOWN_PAST).map((line, i) => <div key={`p${i}`}>{spans(runs(line))}</div>)}
        {Array.from({ length: s.rows }, (_, y) => <div key={y}>{y === s.y && s.isCursorShown && isOpen ? withCursor(s.line(y), s.x) : spans(s.line(y))}</div>)}
      </pre>
    </div>
  );
}
