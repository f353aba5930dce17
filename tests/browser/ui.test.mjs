// A job's own UI, opened from its page: a real WebSocket server as the job, in another tab, and nothing of the dashboard in its reach.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { audit, build, lab, settled, until } from './harness.mjs';

const here = lab();
let simDir, gpumgr, context, troubles;

const sim = (...words) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...words, '--sim-dir', simDir], (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));

before(async () => {
  simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-ui-'));
  chmodSync(simDir, 0o755);
  copyFileSync(new URL('../system/ui_app.py', import.meta.url), join(simDir, 'ui_app.py'));
  chmodSync(join(simDir, 'ui_app.py'), 0o644);
  await sim('start', '--gpus', '4');
  process.env.GPUSIM_DIR = simDir;
  ({ gpumgr, context, troubles } = await here.begin('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'),
    '--guard.lock-dir', simDir, '--jobs.run-as', 'nobody', '--engines.docker', '', '--engines.podman', ''));
});
after(async () => {
  await sim('stop');
  rmSync(simDir, { recursive: true, force: true });
});

/** Hands a job in by the form, and waits until it runs. */
async function submit(page, command, ui) {
  await page.goto(`${gpumgr.url}submit`);
  await page.fill('#wish-command', command);
  await page.click('summary:has-text("More")');
  await page.fill('#wish-ui', ui);
  await page.waitForSelector('.foretold .big');
  await page.click('button:has-text("Submit")');
  await page.waitForURL(/\/jobs\/\d+/);
  await until('it runs', async () => (await page.locator('.bar .jobstate').getAttribute('data-state')) === 'running', 60);
}

test('ui: it opens from the job\'s page, speaks by WebSocket, and is an origin of its own', async () => {
  const page = await context.newPage();
  await submit(page, `exec /usr/bin/python3 ${join(simDir, 'ui_app.py')} $GPUMGR_UI_PORT`, 'auto');
  await page.waitForSelector('.log:has-text("up")', { timeout: 60000 });
  await settled(page);
  assert.deepEqual(await audit(page), []);
  const [tab] = await Promise.all([context.waitForEvent('page'), page.click('button:has-text("Open UI")')]);
  await tab.waitForSelector('h1:has-text("A job\'s own page")', { timeout: 60000 });
  await tab.waitForSelector('#heard:has-text("you said: from the page")', { timeout: 60000 });
  const there = new URL(tab.url());
  assert.notEqual(there.origin, new URL(gpumgr.url).origin);
  assert.equal(there.pathname + there.search, '/'); // the ticket is not in the address bar
  assert.equal(await tab.evaluate(() => document.cookie), '');
  assert.equal(await tab.evaluate(() => window.opener), null);
  // Neither its pages nor the job behind them get anything of the dashboard.
  const [seen] = await tab.evaluate(async (url) => [await fetch(`${url}api/v1/session`, { credentials: 'include' }).then(() => 'read', () => 'refused')], gpumgr.url);
  assert.equal(seen, 'refused');
  const said = await tab.evaluate(async () => (await (await fetch('/say')).json()).fields);
  assert.ok(!said.some(([k, v]) => k.toLowerCase() === 'cookie' && /gpumgr/.test(v)), JSON.stringify(said));
  // Nor does the dashboard's origin, or another one, get anything of the UI's.
  const back = await page.evaluate(async (url) => fetch(`${url}/say`, { credentials: 'include', mode: 'no-cors' }).then(() => 'read', () => 'refused'), there.origin);
  assert.equal(back, 'refused');
  troubles.length = 0; // what was refused just now
});

test('ui: one that does not listen yet says so, and is there when it does', async () => {
  const page = await context.newPage();
  await submit(page, `while [ ! -e ${join(simDir, 'ready')} ]; do sleep 0.1; done; exec /usr/bin/python3 ${join(simDir, 'ui_app.py')} $GPUMGR_UI_PORT`, 'auto');
  const [tab] = await Promise.all([context.waitForEvent('page'), page.click('button:has-text("Open UI")')]);
  await tab.waitForSelector('h1:has-text("Not there yet")', { timeout: 60000 });
  assert.match(await tab.textContent('main'), /does not listen at port \d+ yet/);
  copyFileSync(join(simDir, 'ui_app.py'), join(simDir, 'ready'));
  await tab.waitForSelector('h1:has-text("A job\'s own page")', { timeout: 60000 });
  troubles.length = 0; // 503 in between
});

test('ui: what is wrong stands beside the field, and a job without a UI has no button', async () => {
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}submit`);
  await page.fill('#wish-command', 'sleep 600');
  await page.click('summary:has-text("More")');
  await page.fill('#wish-ui', '99999');
  await page.waitForSelector('#wish-ui-wrong:has-text("is not PORT")');
  await submit(page, 'sleep 600', '');
  assert.equal(await page.locator('button:has-text("Open UI")').count(), 0);
  troubles.length = 0; // 400 for the port
});
