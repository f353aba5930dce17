// Requests to the server: relative to the page's base, JSON both ways, one error type whose message is the server's sentence.
import type { History, Session } from './types';

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

type Params = Record<string, string | number | undefined | null>;

let csrf = '';
let onSignedOut: () => void = () => {};

/** Who is told when the server no longer knows us. */
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

export function apiUrl(path: string, params?: Params): string {
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [key, value] of Object.entries(params ?? {}))
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(key, String(value));
  return url.href.replace(/%3A/gi, ':').replace(/%2C/gi, ',');
}

async function failure(reply: Response): Promise<ApiError> {
  try {
    const body = (await reply.json()) as { error?: { code?: string; message?: string } };
    if (body.error?.message) return new ApiError(reply.status, body.error.code ?? 'internal', body.error.message);
  } catch {
    // Not JSON: something between us and the server answered.
  }
  return new ApiError(reply.status, 'internal', `The server answered ${reply.status} ${reply.statusText}`.trim() + '.');
}

async function ask(method: string, path: string, params?: Params, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (method !== 'GET' && csrf) headers['X-CSRF-Token'] = csrf;
  let reply: Response;
  try {
    reply = await fetch(apiUrl(path, params), {
      method, headers, signal, credentials: 'same-origin', body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new ApiError(0, 'unavailable', 'The server does not answer; the page tries again by itself.');
  }
  if (reply.ok) return reply;
  const error = await failure(reply);
  if (reply.status === 401 && path !== 'session') onSignedOut();
  throw error;
}

export async function get<T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> {
  const reply = await ask('GET', path, params, undefined, signal);
  return (reply.status === 204 ? undefined : await reply.json()) as T; // undefined: only where it was asked for
}

/** A call that changes something; its reply, or undefined where the server has nothing to say. */
export async function send<T = void>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const reply = await ask(method, path, undefined, body);
  const text = await reply.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

export interface LogPart {
  text: string;
  offset: number; // where the text begins; later than asked for where the middle was cut out
  next: number;
  total: number;
  isOver: boolean; // the run has ended: no more will come
}

/** A part of a job's log. */
export async function getLog(path: string, params: Params, signal?: AbortSignal): Promise<LogPart> {
  const reply = await ask('GET', path, params, undefined, signal);
  const bytes = await reply.arrayBuffer();
  const offset = Number(reply.headers.get('X-Log-Offset') ?? params['offset'] ?? 0);
  const next = offset + bytes.byteLength;
  return { text: new TextDecoder().decode(bytes), offset, next, total: Number(reply.headers.get('X-Log-Total') ?? next), isOver: reply.headers.get('X-Log-Over') === '1' };
}

export async function session(): Promise<Session> {
  const got = await get<Session>('session');
  csrf = got.csrf ?? '';
  return got;
}

const SERIES_AT_ONCE = 16; // what the server answers in one reply, of either

function parts<T>(list: T[], size: number): T[][] {
  return list.length <= size ? [list] : [list.slice(0, size), ...parts(list.slice(size), size)];
}

/** History of any number of things and metrics: asked for in as few calls as the server allows, told as one. */
export async function getHistory(of: string[], metrics: string[], from: number, to: number, width: number, signal?: AbortSignal): Promise<History> {
  const calls = parts(of, SERIES_AT_ONCE).flatMap((o) => parts(metrics, SERIES_AT_ONCE).map((m) =>
    get<History>('history', { of: o.join(), metric: m.join(), from: Math.floor(from), to: Math.ceil(to), width }, signal)));
  const [first, ...rest] = await Promise.all(calls);
  return { ...(first as History), series: [first as History, ...rest].flatMap((h) => h.series) };
}

export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === 'AbortError';
}

export function sentence(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
