// Signing in: a one-time link whose secret stands after the # (so that no server log ever has it), or name and password.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { send, sentence } from '../api/client';
import type { Session } from '../api/types';
import { Busy, useTitle } from '../parts/small';
import { here, href } from '../live/route';

interface Props {
  session: Session;
  wasIn: boolean;
  onSignedIn: () => void;
}

function takeToken(): string {
  const token = here().path === 'signin' ? decodeURIComponent(location.hash.slice(1)) : '';
  if (token) history.replaceState(null, '', href('signin'));
  return token;
}

export function SignIn({ session, wasIn, onSignedIn }: Props): JSX.Element {
  useTitle('Sign in');
  const [token] = useState(takeToken);
  const [isBusy, setBusy] = useState(!!token);
  const [problem, setProblem] = useState('');
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const alert = useRef<HTMLParagraphElement>(null);

  const signIn = async (body: { link: string } | { user: string; password: string }): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await send('POST', 'session', body);
      onSignedIn();
    } catch (e) {
      setProblem('link' in body ? `${sentence(e)} A link works once and not for long; get a new one.` : sentence(e));
      setPassword('');
    }
    setBusy(false);
  };
  useEffect(() => {
    if (token) void signIn({ link: token });
  }, []);
  useEffect(() => alert.current?.focus(), [problem]);

  return (
    <main class="alone" id="main">
      <section class="panel door">
        <h1><svg viewBox="0 0 32 32" aria-hidden="true"><rect x="3" y="8" width="26" height="16" rx="3" fill="currentColor" /><circle cx="11" cy="16" r="4.5" class="hole" /><circle cx="21" cy="16" r="4.5" class="hole" /></svg>gpumgr</h1>
        <p class="where">{session.host ? <>The GPUs of <b>{session.host}</b></> : 'The GPUs of this machine'}</p>
        {wasIn && !problem && <p class="notice" role="status">You were signed out. Sign in to go on where you were.</p>}
        {problem && <p class="problem" role="alert" tabIndex={-1} ref={alert}>{problem}</p>}
        {isBusy && token ? <Busy what="Signing in with the link" /> : (
          <>
            <div class="way">
              <h2>With a link</h2>
              <p>On the machine itself, as yourself, run <code>gpumgr web</code> and open the link that it prints. There is nothing to remember.</p>
            </div>
            <form class="way" onSubmit={(e) => { e.preventDefault(); void signIn({ user, password }); }}>
              <h2>With a password</h2>
              <label>Name<input name="username" autocomplete="username" required value={user} onInput={(e) => setUser(e.currentTarget.value)} /></label>
              <label>Password<input name="password" type="password" autocomplete="current-password" required value={password} onInput={(e) => setPassword(e.currentTarget.value)} /></label>
              <button type="submit" class="main" disabled={isBusy}>{isBusy ? 'Signing in…' : 'Sign in'}</button>
            </form>
          </>
        )}
      </section>
    </main>
  );
}
