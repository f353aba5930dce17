// Containers from the browser, on a real Docker Engine and simulated GPUs: listed, added, read, entered, changed with the difference shown
// first, stopped, started and removed.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { audit, build, lab, settled, signedIn, until } from './harness.mjs';

const GAMES = 5; // a user that every Debian has: whom the account stands for
const skip = process.getuid() !== 0 || !existsSync('/usr/sbin/dockerd') ? 'an engine needs root and Docker' : false;
const here = lab();
const { open } = here;
let simDir, dataDir, engine, lines, image, gpumgr, browser, context, troubles;

const sim = (...words) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...words, '--sim-dir', simDir], (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));

async function docker(...words) {
  engine.stdin.write(`${JSON.stringify(words)}\n`);
  return JSON.parse((await lines.next()).value);
}
const inspect = async (name) => JSON.parse(await docker('inspect', name))[0];

before(async () => {
  if (skip) return;
  simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-sim-'));
  dataDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-data-'));
  for (const d of [simDir, dataDir]) chmodSync(d, 0o755);
  mkdirSync(join(dataDir, 'mine'));
  chownSync(join(dataDir, 'mine'), GAMES, GAMES);
  engine = spawn('/usr/bin/python3', [join(dirname(fileURLToPath(import.meta.url)), '../system/engine_serve.py')], { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, BUILD_DIR: build } });
  lines = createInterface({ input: engine.stdout })[Symbol.asyncIterator]();
  const said = JSON.parse((await lines.next()).value);
  image = said.image;
  await sim('start', '--gpus', '4');
  process.env.GPUSIM_DIR = simDir;
  ({ gpumgr, browser, context, troubles } = await here.begin('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'),
    '--guard.lock-dir', simDir, '--engines.docker', said.socket, '--engines.podman', '', '--jobs.mount_roots', dataDir));
  writeFileSync(join(gpumgr.dir, 'users'), 'root games\n');
});
after(async () => {
  if (skip) return;
  const ended = new Promise((done) => engine.on('exit', done));
  engine.stdin.end();
  await ended;
  await sim('stop');
  for (const d of [simDir, dataDir]) rmSync(d, { recursive: true, force: true });
});

const row = (page, name) => page.locator(`tr[data-container="${name}"]`);
const SCRIPT = 'trap "exit 0" TERM; echo it is up; while :; do usleep 50000; done';

/** Fills the form in, and gives the id of the container. */
async function add(page, name, fields = {}) {
  await page.goto(`${gpumgr.url}containers/new`);
  await settled(page);
  await page.fill('#container-image', image);
  await page.fill('#container-name', name);
  await page.fill('#container-command', `sh -c '${SCRIPT}'`);
  for (const [field, value] of Object.entries(fields)) {
    if (!(await page.isVisible(`#container-${field}`))) await page.click('details.more summary');
    await page.fill(`#container-${field}`, value);
  }
  await page.click('button:has-text("Add and start")');
  await page.waitForURL(/\/containers\/[0-9a-f]{64}$/, { timeout: 60000 });
  return /containers\/([0-9a-f]+)/.exec(page.url())[1];
}

test('containers: one is added, read, entered, changed, stopped, started and removed', { skip }, async () => {
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}containers/new`);
  await settled(page);
  await page.click('fieldset button:has-text("Just these")');
  await page.waitForSelector('.cards label:has-text("GPU 1")');
  const id = await add(page, 'lab', { mounts: `${dataDir}/mine:/mnt`, env: 'MOOD=calm', deadline: '30s' });

  // its page: what it is, its log
  await page.waitForSelector('.facts:has-text("running")');
  assert.match(await page.textContent('.facts'), /games/);
  await page.waitForSelector('.log:has-text("it is up")');

  // a shell in it, as its user
  await page.click('button:has-text("Open a shell")');
  await page.waitForSelector('.terminal .cursor');
  await page.keyboard.type('echo MOOD is $MOOD; /bin/busybox id -u; echo from the page > /mnt/note\n');
  await page.waitForSelector('.terminal pre:has-text("MOOD is calm")');
  await until('the note is written', () => readFileSync(join(dataDir, 'mine/note'), 'utf8') === 'from the page\n', 60);
  assert.match(await page.textContent('.terminal pre'), /calm\s*5\s*\/ \$/);
  await page.keyboard.press('Shift+Tab');
  await page.click('section[aria-label="Shell"] button:has-text("Close")');

  // a change is shown before it is made
  await page.click('.bar a:has-text("Edit")');
  await page.waitForSelector('#container-env');
  await page.fill('#container-env', 'MOOD=bright\nMORE=1');
  await page.click('button:has-text("Show what changes")');
  const changes = page.locator('section[aria-label="What changes"]');
  await changes.locator('tr:has-text("env: MOOD"):has-text("calm"):has-text("bright")').waitFor({ timeout: 60000 });
  await changes.locator('tr:has-text("env: MORE")').waitFor();
  assert.match(await changes.textContent(), /stopped and started anew; if that fails, it is put back/);
  assert.equal((await inspect('lab')).Id, id);
  assert.deepEqual(await audit(page), []);
  await page.click('button:has-text("Change lab")');
  await page.waitForURL((u) => /containers\/[0-9a-f]{64}$/.test(u.pathname) && !u.pathname.endsWith(id), { timeout: 60000 });
  const now = await inspect('lab');
  assert.ok(now.Id !== id && now.Config.Env.includes('MOOD=bright') && now.State.Running && now.Config.User === `${GAMES}:60`);

  // down, up, away
  await page.click('.bar button:has-text("Stop")');
  await page.waitForSelector('.facts:has-text("exited")', { timeout: 60000 });
  await page.click('.bar button:has-text("Start")');
  await page.waitForSelector('.facts:has-text("running")', { timeout: 60000 });
  await page.click('.bar button:has-text("Remove")');
  await page.click('button:has-text("Really remove lab")');
  await page.waitForURL(/\/containers$/, { timeout: 60000 });
  await row(page, 'lab').waitFor({ state: 'detached', timeout: 60000 });
  assert.equal((await docker('ps', '-aq')).trim(), '');
  assert.deepEqual(troubles.splice(0), []);
});

test('containers: the list shows all of them, and only what one may do', { skip }, async () => {
  await docker('run', '-d', '--name', 'elsewhere', '--network', 'none', '-e', 'NVIDIA_VISIBLE_DEVICES=all', image, 'sh', '-c', SCRIPT);
  await docker('run', '-d', '--name', 'no-gpu', '--network', 'none', image, 'sh', '-c', SCRIPT);
  const page = await context.newPage();
  await add(page, 'mine');
  await page.goto(`${gpumgr.url}containers`);
  await settled(page);
  await row(page, 'elsewhere').waitFor({ timeout: 60000 });
  await row(page, 'mine').waitFor();
  assert.equal(await row(page, 'no-gpu').count(), 0);
  assert.match(await row(page, 'elsewhere').textContent(), /started elsewhere/);
  await page.click('.segment button:has-text("Mine")');
  await row(page, 'elsewhere').waitFor({ state: 'detached' });
  await page.click('.segment button:has-text("All")');
  await page.fill('input[type=search]', 'elsew');
  await row(page, 'mine').waitFor({ state: 'detached' });
  await page.fill('input[type=search]', '');
  await row(page, 'mine').locator('button:has-text("Stop")').click();
  await row(page, 'mine').locator('text=exited').waitFor({ timeout: 60000 });
  // an administrator may stop what is not his, but neither change nor enter it
  await row(page, 'elsewhere').locator('a.link').first().click();
  await page.waitForSelector('.bar button:has-text("Stop")', { timeout: 60000 });
  assert.equal(await page.locator('.bar a:has-text("Edit"), button:has-text("Open a shell")').count(), 0);
  await page.waitForSelector('.log:has-text("it is up")');
  await docker('rm', '-f', 'elsewhere', 'no-gpu', 'mine');
  assert.deepEqual(troubles.splice(0), []);
});

test('containers: what is wrong is said beside its field, and a GPU that somebody has is not taken silently', { skip }, async () => {
  const watched = await signedIn(browser, gpumgr, { expect: [/status of 4\d\d/] }); // refusals that are provoked
  const page = await watched.context.newPage();
  await page.goto(`${gpumgr.url}containers/new`);
  await settled(page);
  await page.fill('#container-image', 'none:1');
  await page.click('button:has-text("Add and start")');
  await page.waitForSelector('#container-image-wrong:has-text("is not on this machine")', { timeout: 60000 });
  await page.fill('#container-image', image);
  await page.fill('#container-mounts', '/etc:/etc:ro');
  await page.click('button:has-text("Add and start")');
  await page.waitForSelector('#container-mounts-wrong:has-text("not below one of jobs.mount_roots")', { timeout: 60000 });
  await page.fill('#container-mounts', '');
  await page.fill('#container-command', `sh -c '${SCRIPT}'`);
  await page.fill('#container-name', 'first');
  await page.click('fieldset button:has-text("Just these")');
  await page.check('.cards label:has-text("GPU 2") input');
  await page.click('button:has-text("Add and start")');
  await page.waitForURL(/\/containers\/[0-9a-f]{64}$/, { timeout: 60000 });
  const its = page.url();
  await page.goto(`${gpumgr.url}containers/new`);
  await settled(page);
  await page.fill('#container-image', image);
  await page.fill('#container-command', `sh -c '${SCRIPT}'`);
  await page.click('fieldset button:has-text("Just these")');
  await page.waitForSelector('.cards label.busy:has-text("GPU 2"):has-text("container first")', { timeout: 60000 });
  const edit = await watched.context.newPage(); // it does not share its own GPU with itself
  await edit.goto(its);
  await edit.click('.bar a:has-text("Edit")');
  await edit.waitForSelector('.cards label:has-text("GPU 2") input:checked');
  assert.equal(await edit.locator('label.tick, .cards label.busy:has-text("GPU 2")').count(), 0);
  await edit.close();
  await page.check('.cards label:has-text("GPU 2") input');
  await page.click('button:has-text("Add and start")');
  await page.waitForSelector('fieldset .wrong:has-text("belongs to container first")', { timeout: 60000 });
  await page.check('label.tick input');
  await page.fill('#container-name', 'second');
  await page.click('button:has-text("Add and start")');
  await page.waitForURL(/\/containers\/[0-9a-f]{64}$/, { timeout: 60000 });
  await docker('rm', '-f', 'first', 'second');
  assert.deepEqual(watched.troubles, []);
  await watched.context.close();
});

test('containers: every page is for everybody, on a telephone too', { skip }, async () => {
  const page = await context.newPage();
  const id = await add(page, 'shown', { env: 'A=1', deadline: '1m' });
  await page.click('button:has-text("Open a shell")');
  await page.waitForSelector('.terminal .cursor');
  const edit = new URL(await page.getAttribute('.bar a:has-text("Edit")', 'href'), gpumgr.url).href.slice(gpumgr.url.length);
  for (const path of ['containers', 'containers/new', `containers/${id}`, edit]) {
    if (!page.url().endsWith(path)) await page.goto(gpumgr.url + path);
    await settled(page);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      for (const width of [1440, 375]) {
        await page.setViewportSize({ width, height: 900 });
        assert.deepEqual(await audit(page), [], `${path} ${colorScheme} ${width}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${path} is wider than ${width}`);
        if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${path.replace(/[0-9a-f]{64}/, 'one').replace(/\W+/g, '-')}-${colorScheme}-${width}.png`), fullPage: true });
      }
    }
  }
  await docker('rm', '-f', 'shown');
  assert.deepEqual(troubles.splice(0), []);
});
