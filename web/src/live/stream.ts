// The connection to the server's event stream. Nothing for three seconds means stale: the values go grey and a new
// connection is tried, with growing pauses. A tab that nobody looks at has no connection.
import { apiUrl, get, session } from '../api/client';
import type { Delta, GpuEvent, Snapshot } from '../api/types';
import { takeDelta, takeSnapshot } from './state';
import { Store } from './store';

const SILENCE_S = 3;
const PAUSE_MAX_S = 15;
const UNSEEN_S = 20; // a browser has six connections to a server: tabs that nobody looks at give theirs back

export class Stream {
  private source: EventSource | undefined;
  private watch = 0;
  private retry = 0;
  private failures = 0;
  private startedAt = 0;
  private unseen = 0;
  private isAway = false;

  constructor(private store: Store, private onSignedOut: () => void) {}

  start(): void {
    this.stop();
    document.addEventListener('visibilitychange', this.seen);
    this.isAway = document.hidden; // opened in the background: it connects when somebody looks at it
    if (!this.isAway) this.connect();
    this.watch = window.setInterval(() => this.look(), 500);
    get<{ events: GpuEvent[] }>('events', { limit: 100 }).then((got) => this.store.takeEvents(got.events), () => {});
  }

  private seen = (): void => {
    window.clearTimeout(this.unseen);
    if (document.hidden) {
      this.unseen = window.setTimeout(() => {
        this.isAway = true;
        this.source?.close();
        this.source = undefined;
      }, UNSEEN_S * 1000);
    } else if (this.isAway) {
      this.isAway = false;
      this.failures = 0;
      this.again(0);
    }
  };

  stop(): void {
    document.removeEventListener('visibilitychange', this.seen);
    window.clearTimeout(this.unseen);
    window.clearInterval(this.watch);
    window.clearTimeout(this.retry);
    this.retry = 0;
    this.source?.close();
    this.source = undefined;
  }

  private connect(): void {
    this.retry = 0;
    this.startedAt = performance.now();
    const source = new EventSource(apiUrl('events'));
    this.source = source;
    source.addEventListener('snapshot', (e) => {
      this.failures = 0;
      this.store.heard();
      this.store.take(takeSnapshot(JSON.parse((e as MessageEvent<string>).data) as Snapshot));
      this.store.renewed();
    });
    source.addEventListener('delta', (e) => {
      this.store.heard();
      const change = takeDelta(this.store.picture, JSON.parse((e as MessageEvent<string>).data) as Delta);
      this.store.take(change);
      if (change.isLost) this.again(0);
    });
    source.addEventListener('event', (e) => {
      this.store.heard();
      this.store.takeEvents([JSON.parse((e as MessageEvent<string>).data) as GpuEvent]);
    });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.failed();
    };
  }

  private look(): void {
    if (this.isAway) return;
    const isSilent = this.store.silenceS() > SILENCE_S;
    if (isSilent && this.store.hasPicture) this.store.setStatus('stale');
    if (this.source && (performance.now() - this.startedAt) / 1000 > SILENCE_S * 2 && (isSilent || !this.store.hasPicture)) this.failed();
  }

  private failed(): void {
    this.failures++;
    if (this.store.hasPicture) this.store.setStatus('stale');
    // A stream that is refused does not say why; the session does.
    session().then((s) => { if (!s.user) this.onSignedOut(); }, () => {});
    this.again(Math.min(PAUSE_MAX_S, 2 ** (this.failures - 1)) * (0.75 + Math.random() / 2));
  }

  private again(pauseS: number): void {
    this.source?.close();
    this.source = undefined;
    if (this.retry || this.isAway) return;
    this.retry = window.setTimeout(() => this.connect(), pauseS * 1000);
  }
}
