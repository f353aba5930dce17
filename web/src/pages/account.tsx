// One's own account: where one is signed in, tokens for programs, the password, the way out.
import { useEffect, useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import { get, send, sentence } from '../api/client';
import type { Session, Stamp } from '../api/types';
import { plural } from '../format/numbers';
import { ago, moment, unix } from '../format/times';
import { store } from '../live/store';
import { say } from '../parts/say';
import { PageHead, Problem, useTitle } from '../parts/small';

interface SessionRow {
  id: string | number;
  created?: Stamp;
  last_seen?: Stamp;
  address?: string;
  agent?: string;
  is_current?: boolean;
}
interface TokenRow {
  id: string | number;
  name: string;
  role?: string;
  created?: Stamp;
  last_used?: Stamp | null;
  expires?: Stamp | null;
}

function Part({ title, sub, children }: { title: string; sub: string; children: ComponentChildren }): JSX.Element {
  return <section class="panel" aria-label={title}><header><h2>{title}</h2><p class="sub">{sub}</p></header>{children}</section>;
}

/** A list of the API under one of these names, and how to read it again. */
function useList<T>(path: string): { list: T[] | undefined; problem: string; reload: () => void; setProblem: (s: string) => void } {
  const [list, setList] = useState<T[]>();
  const [problem, setProblem] = useState('');
  const reload = (): void => {
    get<Record<string, T[]>>(path).then((got) => { setList(got[path] ?? []); setProblem(''); }, (e) => setProblem(sentence(e)));
  };
  useEffect(reload, [path]);
  return { list, problem, reload, setProblem };
}

const browser = (agent: string | undefined): string => {
  const name = /(Firefox|Edg|OPR|Chrome|Safari|curl)\/?[\d.]*/.exec(agent ?? '')?.[1];
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent ?? '')?.[1];
  return [name?.replace('Edg', 'Edge').replace('OPR', 'Opera'), system && `on ${system.replace('Mac OS X', 'macOS')}`].filter(Boolean).join(' ') || agent || 'a browser';
};

function Sessions(): JSX.Element {
  const { list, problem, reload, setProblem } = useList<SessionRow>('sessions');
  const end = (id: string | number): void => {
    send('DELETE', `sessions/${id}`).then(reload, (e) => setProblem(sentence(e)));
  };
  const now = store.now();
  return (
    <Part title="Where you are signed in" sub="end what you do not know">
      {problem && <Problem>{problem}</Problem>}
      <ul class="rows">
        {[...(list ?? [])].sort((a, b) => Number(b.is_current ?? false) - Number(a.is_current ?? false) || unix(b.last_seen) - unix(a.last_seen)).map((s) => (
          <li key={s.id}>
            <div><b>{browser(s.agent)}</b>{s.is_current && <span class="chip good">this one</span>}<div class="dim">{[s.address, `signed in ${moment(s.created, now)}`, s.last_seen && `seen ${ago(s.last_seen, now)}`].filter(Boolean).join(' · ')}</div></div>
            {!s.is_current && <button type="button" onClick={() => end(s.id)}>End</button>}
          </li>
        ))}
      </ul>
    </Part>
  );
}

const LIVES = [['86400', 'a day'], ['2592000', '30 days'], ['31536000', 'a year'], ['', 'for good']] as const;

function Tokens(): JSX.Element {
  const { list, problem, reload, setProblem } = useList<TokenRow>('tokens');
  const [name, setName] = useState('');
  const [life, setLife] = useState('31536000');
  const [made, setMade] = useState('');
  const [isBusy, setBusy] = useState(false);
  const now = store.now();
  const create = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      const got = await send<{ token: string }>('POST', 'tokens', { name, ...(life ? { expires_s: Number(life) } : {}) });
      setMade(got.token);
      setName('');
      setProblem('');
      say('The token was made. It is shown once.');
      reload();
    } catch (err) {
      setProblem(sentence(err));
    }
    setBusy(false);
  };
  const remove = (id: string | number): void => {
    send('DELETE', `tokens/${id}`).then(reload, (e) => setProblem(sentence(e)));
  };
  return (
    <Part title="Tokens for programs" sub="sent as “Authorization: Bearer …”; only a hash is kept">
      {problem && <Problem>{problem}</Problem>}
      {made && <div class="made" role="status"><p>Copy it now; it is not shown again.</p><code tabIndex={0}>{made}</code> <button type="button" onClick={() => { void navigator.clipboard?.writeText(made); say('Copied.'); }}>Copy</button></div>}
      <ul class="rows">
        {list?.map((t) => (
          <li key={t.id}>
            <div><b>{t.name}</b><div class="dim">{[t.role, `made ${moment(t.created, now)}`, t.last_used ? `used ${ago(t.last_used, now)}` : 'never used', t.expires ? `until ${moment(t.expires, now)}` : 'for good'].filter(Boolean).join(' · ')}</div></div>
            <button type="button" onClick={() => remove(t.id)} aria-label={`Remove ${t.name}`}>Remove</button>
          </li>
        ))}
        {list?.length === 0 && <li class="empty">No token yet.</li>}
      </ul>
      <form class="fields" onSubmit={(e) => void create(e)}>
        <label>Name<input required maxLength={64} placeholder="prometheus" value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Valid for<select value={life} onChange={(e) => setLife(e.currentTarget.value)}>{LIVES.map(([s, words]) => <option key={s} value={s}>{words}</option>)}</select></label>
        <button type="submit" class="main" disabled={isBusy}>{isBusy ? 'Making…' : 'Make a token'}</button>
      </form>
    </Part>
  );
}

function Password({ name, hasOne }: { name: string; hasOne: boolean }): JSX.Element {
  const [old, setOld] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const [problem, setProblem] = useState('');
  const [isDone, setDone] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const change = async (e: Event): Promise<void> => {
    e.preventDefault();
    setDone(false);
    if (password !== again) return setProblem('The two new passwords differ.');
    setBusy(true);
    try {
      await send('PUT', `users/${encodeURIComponent(name)}/password`, hasOne ? { password, current: old } : { password });
      setDone(true);
      setProblem('');
      setOld('');
      setPassword('');
      setAgain('');
    } catch (err) {
      setProblem(sentence(err));
    }
    setBusy(false);
  };
  return (
    <Part title="Password" sub={hasOne ? 'changing it ends your other sessions' : 'none yet: you sign in by links'}>
      {problem && <Problem>{problem}</Problem>}
      {isDone && <p class="good" role="status">The password was changed.</p>}
      <form class="fields" onSubmit={(e) => void change(e)}>
        <input class="unseen" name="username" autocomplete="username" value={name} readOnly tabIndex={-1} aria-hidden="true" />
        {hasOne && <label>The one before<input type="password" required autocomplete="current-password" value={old} onInput={(e) => setOld(e.currentTarget.value)} /></label>}
        <label>New<input type="password" autocomplete="new-password" required minLength={8} maxLength={256} value={password} onInput={(e) => setPassword(e.currentTarget.value)} /></label>
        <label>New, again<input type="password" autocomplete="new-password" required value={again} onInput={(e) => setAgain(e.currentTarget.value)} /></label>
        <button type="submit" class="main" disabled={isBusy}>{isBusy ? 'Saving…' : hasOne ? 'Change' : 'Set'}</button>
      </form>
    </Part>
  );
}

interface UserRow {
  name: string;
  role: string;
  uid?: number | null;
  disabled?: boolean;
  has_password?: boolean;
}

/** For administrators: who has an account, and a one-time link for any of them. */
function Users(): JSX.Element {
  const { list, problem, setProblem } = useList<UserRow>('users');
  const [link, setLink] = useState<{ user: string; url: string }>();
  const make = (user: string): void => {
    send<{ url_path: string; url?: string }>('POST', 'links', { user }).then(
      (got) => setLink({ user, url: got.url ?? new URL(got.url_path.replace(/^\//, ''), document.baseURI).href }),
      (e) => setProblem(sentence(e)),
    );
  };
  return (
    <Part title="Accounts" sub="everybody who may look; “gpumgr user” changes them">
      {problem && <Problem>{problem}</Problem>}
      {link && <div class="made" role="status"><p>A link for {link.user}; it works once and not for long.</p><code tabIndex={0}>{link.url}</code></div>}
      <ul class="rows">
        {list?.map((u) => (
          <li key={u.name}>
            <div><b>{u.name}</b>{u.disabled && <span class="chip">disabled</span>}<div class="dim">{[u.role === 'admin' ? 'administrator' : u.role, typeof u.uid === 'number' && `Unix user ${u.uid}`, u.has_password ? 'has a password' : 'links only'].filter(Boolean).join(' · ')}</div></div>
            {!u.disabled && <button type="button" onClick={() => make(u.name)} aria-label={`Make a link for ${u.name}`}>Make a link</button>}
          </li>
        ))}
      </ul>
    </Part>
  );
}

interface Channel {
  name: string;
  is_configured: boolean;
  waiting: number;
  sent: number;
  last_sent: Stamp | null;
  trouble: string;
}

/** Who is told when something breaks, whether that works, and a message to try it. */
function Telling({ isAdmin }: { isAdmin: boolean }): JSX.Element {
  const [channels, setChannels] = useState<Channel[]>([]);
  const [problem, setProblem] = useState('');
  const [isTrying, setTrying] = useState(false);
  const load = (): void => {
    get<{ channels: Channel[] }>('notifications').then((got) => setChannels(got.channels), (e) => setProblem(sentence(e)));
  };
  useEffect(() => {
    load();
    const timer = window.setInterval(load, isTrying ? 1000 : 15000);
    const stop = isTrying ? window.setTimeout(() => setTrying(false), 15000) : 0;
    return () => {
      window.clearInterval(timer);
      window.clearTimeout(stop);
    };
  }, [isTrying]);
  const set = channels.filter((c) => c.is_configured);
  const tryIt = (): void => {
    setTrying(true);
    send('POST', 'notifications/test').catch((e) => { setProblem(sentence(e)); setTrying(false); });
  };
  const now = store.now();
  return (
    <Part title="Telling someone" sub="who hears of lost cards, XIDs and throttling">
      {problem && <Problem>{problem}</Problem>}
      {channels.length > 0 && set.length === 0 && <p class="dim">Nobody is told yet. Set <code>tell.webhook</code>, <code>tell.slack</code>, <code>tell.mail_to</code> or <code>tell.command</code> in the configuration.</p>}
      <ul class="rows">
        {set.map((c) => (
          <li key={c.name}><div><b>{c.name}</b>{c.waiting > 0 && <span class="chip">{c.waiting} waiting</span>}<div class="dim">{c.trouble ? c.trouble : c.last_sent ? `${plural(c.sent, 'message')} sent, the last ${ago(c.last_sent, now)}` : 'nothing sent yet'}</div></div></li>
        ))}
      </ul>
      {isAdmin && set.length > 0 && <div class="buttons"><button type="button" disabled={isTrying} onClick={tryIt}>{isTrying ? 'Sending…' : 'Send a test message'}</button></div>}
    </Part>
  );
}

export function Account({ session, onSignedOut }: { session: Session; onSignedOut: () => void }): JSX.Element {
  useTitle('Account');
  const [problem, setProblem] = useState('');
  const out = (): void => {
    send('DELETE', 'session').then(onSignedOut, (e) => setProblem(sentence(e)));
  };
  const user = session.user;
  return (
    <>
      <PageHead title={user?.name ?? 'Account'} crumb={[user?.role === 'admin' ? 'administrator: may change limits, groups and users' : 'member: sees everything, changes what is his own', session.version && `gpumgr ${session.version}`].filter(Boolean).join(' · ')}>
        <button type="button" onClick={out}>Sign out</button>
      </PageHead>
      {problem && <Problem>{problem}</Problem>}
      <div class="grid even">
        <Sessions />
        <Tokens />
        <Password name={user?.name ?? ''} hasOne={user?.has_password ?? false} />
        {user?.role === 'admin' && <Users />}
        <Telling isAdmin={user?.role === 'admin'} />
      </div>
    </>
  );
}
