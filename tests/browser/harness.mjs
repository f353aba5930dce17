// What every browser test needs: an instance of its own with simulated GPUs, a browser, a signed-in page. A page that writes
// an error to its console or asks for anything outside its server fails the test that opened it.
import { execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const build = process.env.BUILD_DIR ?? join(root, 'build');
export const need = createRequire(join(root, 'web/package.json'));
const { chromium } = need('playwright-core');

if (!existsSync(join(build, 'gpumgr'))) throw new Error(`there is no ${build}/gpumgr: script/build makes it, BUILD_DIR names another place`);

const FLAGS = ['--no-sandbox', '--headless', '--disable-gpu', '--disable-background-networking', '--no-first-run'];

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits for a fact, and says what was missing when it does not come. */
export async function until(what, fact, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  let last;
  while (Date.now() < end) {
    try {
      last = await fact();
      if (last) return last;
    } catch (e) {
      last = e;
    }
    await sleep(100);
  }
  throw new Error(`waited ${seconds} s for ${what}; last: ${last instanceof Error ? last.message : JSON.stringify(last)}`);
}

function freePort() {
  return new Promise((done) => {
    const s = createServer().listen(0, '127.0.0.1', () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });
}

export class Instance {
  static async start(...flags) {
    const me = new Instance();
    me.dir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-'));
    chmodSync(me.dir, 0o755); // the server is not root and must be able to pass
    me.port = await freePort();
    me.base = '/';
    const at = flags.indexOf('--server.base_path');
    if (at >= 0) me.base = flags[at + 1];
    me.url = `http://127.0.0.1:${me.port}${me.base}`;
    me.said = '';
    const source = flags.some((f) => f === '--sim' || f === '--gpu-library') ? [] : ['--sim', '8'];
    me.words = ['up', ...source, '--dir', me.dir, '--listen', `127.0.0.1:${me.port}`, ...flags];
    await me.begin();
    return me;
  }

  async begin() {
    this.process = spawn(join(build, 'gpumgr'), this.words, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on('data', (d) => { this.said = (this.said + d).slice(-20000); });
    this.ended = new Promise((done) => this.process.on('exit', done));
    try {
      await until('the server to answer', async () => (await fetch(`${this.url}healthz`)).ok);
    } catch (e) {
      await this.stop();
      throw new Error(`${e.message}\n${this.said}`);
    }
  }

  /** Runs a gpumgr command on this instance and gives what it printed. */
  command(...words) {
    return new Promise((done, fail) => execFile(join(build, 'gpumgr'), words, (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));
  }

  sim(...words) {
    return this.command('sim', ...words, '--sim-dir', join(this.dir, 'run/sim'));
  }

  /** A one-time sign-in link of whoever runs the test. */
  async link() {
    const out = await this.command('web', '--dir', this.dir);
    const link = /\S*signin#\S+/.exec(out)?.[0];
    if (!link) throw new Error(`no link in: ${out}`);
    return this.url + link.slice(link.indexOf('signin#'));
  }

  /** The pid of the running server process. */
  async serverPid() {
    const out = await new Promise((done) => execFile('pgrep', ['-P', String(this.process.pid), '-f', 'gpumgr-server'], (_e, text) => done(text)));
    return Number(out.trim().split('\n')[0]);
  }

  async end() {
    this.process.kill('SIGTERM');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 15000);
    await this.ended;
    clearTimeout(timer);
  }

  /** Jobs outlive everything, by design: whoever leaves must end them. Their shims have the instance's directory on their command line;
   *  what they started is below them and stays there, so a shim goes last. */
  async endJobs() {
    const below = () => {
      const parent = new Map();
      const shims = new Set();
      for (const pid of readdirSync('/proc').filter((n) => /^\d+$/.test(n)).map(Number)) {
        try {
          parent.set(pid, Number(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) . /s, '').split(' ')[0]));
          const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
          if (/gpumgr-shim$/.test(words[0]) && words.some((w) => w.startsWith(`${this.dir}/`))) shims.add(pid);
        } catch { /* it has just ended */ }
      }
      const ours = new Set(shims);
      for (let before = -1; before !== ours.size;) {
        before = ours.size;
        for (const [pid, of] of parent) if (ours.has(of)) ours.add(pid);
      }
      return ours.size > shims.size ? [...ours].filter((pid) => !shims.has(pid)) : [...shims];
    };
    await until('all jobs are ended', () => {
      const left = below();
      for (const pid of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch { /* it was quicker */ }
      }
      return left.length === 0;
    });
  }

  async stop() {
    await this.end();
    await this.endJobs();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export const openBrowser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });

/** A context whose pages are watched; `troubles` gathers what they should not do. `expect` names console errors that a test provokes. */
export async function openContext(browser, options = {}) {
  const { expect = [], ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', ...rest });
  context.setDefaultTimeout(60000); // on a small machine everybody waits for a processor
  const troubles = [];
  context.on('page', (page) => {
    page.on('console', (m) => { if (m.type() === 'error' && !expect.some((e) => e.test(m.text()))) troubles.push(`console: ${m.text()} ${m.location().url}`); });
    page.on('pageerror', (e) => troubles.push(`error: ${e.message}`));
    page.on('request', (r) => { if (!/^http:\/\/127\.0\.0\.1:/.test(r.url())) troubles.push(`asked outside: ${r.url()}`); });
  });
  return { context, troubles };
}

/** A context with a session. */
export async function signedIn(browser, instance, options = {}) {
  const { context, troubles } = await openContext(browser, options);
  const page = await context.newPage();
  await page.goto(await instance.link());
  await page.waitForSelector('[data-gpu], .blank');
  await page.close();
  return { context, troubles };
}

export async function uuids(page) {
  return page.evaluate(async () => (await (await fetch(new URL('api/v1/gpus', document.baseURI))).json()).gpus.map((g) => g.uuid));
}

/** Every page by name, as a path below the base; `uuid` is the GPU of the GPU page. */
export const pagesOf = (uuid) => ({
  overview: '', compact: '?view=tiles', table: '?view=table', gpu: `gpus/${uuid}`, compare: 'compare?metric=gpu_temperature_celsius,gpu_power_watts',
  queue: 'queue', submit: 'submit', services: 'services', 'add a service': 'services/new', repeats: 'repeats', 'new repeat': 'repeats/new', calendar: 'calendar', containers: 'containers', 'add a container': 'containers/new', tasks: 'tasks', events: 'events', nodes: 'nodes', groups: 'groups', account: 'account',
});

/** Waits until a page shows what it is for, not a placeholder. */
export async function settled(page) {
  await page.waitForSelector('main h1');
  await page.waitForFunction(() => document.documentElement.dataset.status === 'live');
  await page.waitForFunction(() => !document.querySelector('.plot.loading, .busy'));
}

/** What most files begin with: an instance, a browser, somebody signed in, the cards' UUIDs, from `begin` on. Pages are closed
 * after each test, the rest after the last. */
export function lab() {
  const l = {
    async begin(...flags) {
      l.gpumgr = await Instance.start(...flags);
      l.browser = await openBrowser();
      Object.assign(l, await signedIn(l.browser, l.gpumgr));
      const page = await l.context.newPage();
      await page.goto(l.gpumgr.url);
      l.ids = await uuids(page);
      await page.close();
      return l;
    },
    async open(path) {
      const page = await l.context.newPage();
      await page.goto(l.gpumgr.url + path);
      await settled(page);
      return page;
    },
  };
  afterEach(async () => { for (const page of l.context?.pages() ?? []) await page.close(); });
  after(async () => {
    await l.browser?.close();
    await l.gpumgr?.stop();
  });
  return l;
}

const axe = readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8');

/** Runs axe through the debugger, which the page's content policy does not bind. */
export async function audit(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })).violations);
  return found.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 140)} ${n.any?.[0]?.message ?? ''}`).join(' | ')}`);
}
