// A job's log, followed while it runs. The newest lines stay in sight unless the reader has scrolled up; what is long ago, or was cut
// out by the limit on its size, is said instead of shown.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { getLog, isAbort, sentence } from '../api/client';
import { bytes } from '../format/numbers';

const FIRST_BYTES = 128 * 1024; // of a long log only the end is loaded at first
const KEPT_CHARS = 1_000_000;
const EVERY_MS = 1000;

export function Log({ path, total, isRunning }: { path: string; total: number; isRunning: boolean }): JSX.Element {
  const [text, setText] = useState('');
  const [from, setFrom] = useState(0);
  const [problem, setProblem] = useState('');
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  const running = useRef(isRunning);
  running.current = isRunning;

  useEffect(() => {
    const abort = new AbortController();
    let at = Math.max(0, total - FIRST_BYTES);
    let timer = 0;
    setText('');
    setFrom(at);
    const more = async (): Promise<void> => {
      try {
        const part = await getLog(path, { offset: at }, abort.signal);
        if (part.offset > at) setText((t) => `${t}\n[${bytes(part.offset - at)} are not kept]\n`);
        if (part.text) setText((t) => (t + part.text).slice(-KEPT_CHARS));
        at = part.next;
        setProblem('');
        if (part.isOver && at >= part.total) return;
        timer = window.setTimeout(() => void more(), at < part.total ? 0 : EVERY_MS);
      } catch (e) {
        if (isAbort(e)) return;
        setProblem(sentence(e));
        if (running.current) timer = window.setTimeout(() => void more(), 3000);
      }
    };
    void more();
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [path]);

  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = (): void => {
    const b = box.current;
    if (b) isAtEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
  };
  return (
    <section class="panel" aria-label="Log">
      <header><h2>Log</h2><p class="sub">{from > 0 ? `the last ${bytes(FIRST_BYTES)} of ${bytes(total)}` : 'what it wrote, standard error included'}{isRunning ? ', followed' : ''}</p><span class="spacer" /><a class="quiet" href={`${new URL(`api/v1/${path}`, document.baseURI).href}${path.includes('?') ? '&' : '?'}whole=1`} download={`${path.replace(/\W+/g, '-')}.txt`}>Download</a></header>
      {problem && <p class="problem" role="status">{problem}</p>}
      <pre class="log" ref={box} tabIndex={0} role="log" aria-label="Log" onScroll={scrolled}>{text || (isRunning ? 'Nothing yet.' : 'It wrote nothing.')}</pre>
    </section>
  );
}
