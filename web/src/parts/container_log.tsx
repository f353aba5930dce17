// What a container wrote, followed while it runs. The newest lines stay in sight unless the reader has scrolled up.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { apiUrl } from '../api/client';

const KEPT_CHARS = 500_000;

export function ContainerLog({ path, isRunning }: { path: string; isRunning: boolean }): JSX.Element {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const [isOver, setOver] = useState(false);
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    setText('');
    setOver(false);
    const source = new EventSource(`${apiUrl(path)}&follow=true&tail=500`);
    source.addEventListener('log', (e) => { setProblem(''); setText((t) => (t + (JSON.parse((e as MessageEvent<string>).data) as { text: string }).text).slice(-KEPT_CHARS)); });
    source.addEventListener('end', (e) => {
      source.close();
      setOver(true);
      setProblem((JSON.parse((e as MessageEvent<string>).data || '{}') as { error?: string }).error ?? '');
    });
    source.addEventListener('open', () => setText(''));
    source.onerror = () => setProblem('The log does not come; the page tries again by itself.');
    return () => source.close();
  }, [path, isRunning]);
  useEffect(() => { if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight; }, [text]);
  const scrolled = (): void => {
    const b = box.current;
    if (b) isAtEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
  };
  return (
    <section class="panel" aria-label="Log">
      <header><h2>Log</h2><p class="sub">its last 500 lines{isOver ? '' : ', followed'}</p><span class="spacer" /><a class="quiet" href={`${apiUrl(path)}&tail=2000`} download="container.txt">Download</a></header>
      {problem && <p class="problem" role="status">{problem}</p>}
      <pre class="log" ref={box} tabIndex={0} role="log" aria-label="Log" onScroll={scrolled}>{text || (isOver ? 'It wrote nothing.' : 'Nothing yet.')}</pre>
    </section>
  );
}
