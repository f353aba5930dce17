// The dashboard's start: who is there, then the page that the address asks for.
import { render } from 'preact';
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { sentence, session as askSession, whenSignedOut } from './api/client';
import type { Session } from './api/types';
import { catchLinks, go, href, usePlace } from './live/route';
import { store } from './live/store';
import { Stream } from './live/stream';
import { startTheme } from './live/theme';
import { Account } from './pages/account';
import { Calendar } from './pages/calendar';
import { Compare } from './pages/compare';
import { ContainerPage } from './pages/container';
import { ContainerAdd, ContainerEdit } from './pages/container_form';
import { ContainersPage } from './pages/containers';
import { Events } from './pages/events';
import { GpuPage } from './pages/gpu';
import { Groups } from './pages/groups';
import { JobPage } from './pages/job';
import { Nodes } from './pages/nodes';
import { Overview } from './pages/overview';
import { QueuePage } from './pages/queue';
import { RepeatEdit } from './pages/repeat_edit';
import { RepeatNew, RepeatsPage } from './pages/repeats';
import { ServicesPage } from './pages/services';
import { SignIn } from './pages/signin';
import { Submit } from './pages/submit';
import { Tasks } from './pages/tasks';
import { Shell } from './parts/shell';
import { Busy } from './parts/small';

function Page({ session, onSignedOut }: { session: Session; onSignedOut: () => void }): JSX.Element {
  const { path } = usePlace();
  const [head = '', ...rest] = path.split('/');
  const tail = rest.join('/');
  const isAdmin = session.user?.role === 'admin';
  const isFirst = useRef(true);
  useEffect(() => {
    // On another page the focus goes to its content; on the first it stays where the browser begins.
    if (!isFirst.current) document.getElementById('main')?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);
  if (head === 'gpus' && tail) return <GpuPage key={tail} uuid={tail} isAdmin={isAdmin} />;
  if (head === 'compare') return <Compare />;
  if (head === 'queue' || (head === 'jobs' && !tail)) return <QueuePage who={session.user} />;
  if (head === 'jobs') return <JobPage key={tail} id={tail} who={session.user} />;
  if (head === 'services') return <ServicesPage id={tail} who={session.user} />;
  if (head === 'submit') return <Submit />;
  if (head === 'calendar') return <Calendar who={session.user} />;
  if (head === 'tasks') return <Tasks />;
  if (head === 'containers' && !tail) return <ContainersPage />;
  if (head === 'containers' && tail === 'new') return <ContainerAdd />;
  if (head === 'containers' && rest[1] === 'edit') return <ContainerEdit key={tail} id={rest[0] ?? ''} />;
  if (head === 'containers') return <ContainerPage key={tail} id={tail} />;
  if (head === 'repeats' && rest[1] === 'edit') return <RepeatEdit key={tail} id={rest[0] ?? ''} />;
  if (head === 'repeats') return tail === 'new' ? <RepeatNew /> : <RepeatsPage who={session.user} />;
  if (head === 'events') return <Events />;
  if (head === 'nodes') return <Nodes name={tail} isAdmin={isAdmin} />;
  if (head === 'groups') return <Groups isAdmin={isAdmin} />;
  if (head === 'account') return <Account session={session} onSignedOut={onSignedOut} />;
  if (head === '' || head === 'gpus') return <Overview />;
  return <section class="panel blank"><h1>There is no such page</h1><p><a href={href('')}>To the overview</a></p></section>;
}

function App(): JSX.Element {
  const { path } = usePlace();
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState('');
  const [wasIn, setWasIn] = useState(false);

  const ask = async (): Promise<void> => {
    try {
      setSession(await askSession());
      setProblem('');
    } catch (e) {
      setProblem(sentence(e));
      window.setTimeout(() => void ask(), 2000);
    }
  };
  const signedOut = (): void => setSession((s) => (s ? { ...s, user: null } : s));
  useEffect(() => {
    whenSignedOut(signedOut);
    void ask();
  }, []);

  const user = session?.user?.name;
  useEffect(() => {
    if (!user) return undefined;
    setWasIn(true);
    const stream = new Stream(store, signedOut);
    stream.start();
    return () => stream.stop();
  }, [user]);

  const isAtSignIn = path === 'signin';
  const hasToken = isAtSignIn && location.hash.length > 1;
  useEffect(() => {
    if (user && isAtSignIn && !hasToken) go(href(''), { replace: true });
  }, [user, isAtSignIn, hasToken]);

  if (!session) return <main class="alone">{problem ? <p class="problem" role="alert">{problem}</p> : <Busy what="Asking the server" />}</main>;
  if (!user || hasToken) return <SignIn session={session} wasIn={wasIn} onSignedIn={() => { if (isAtSignIn) go(href(''), { replace: true }); void ask(); }} />;
  return <Shell session={session}><Page session={session} onSignedOut={signedOut} /></Shell>;
}

startTheme();
document.addEventListener('click', catchLinks);
const at = document.getElementById('app');
if (at) render(<App />, at);
