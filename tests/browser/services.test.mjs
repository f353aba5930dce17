// Services from the browser: one is added, watched, suspended, resumed, updated with its difference shown, and removed. Real processes
// on quiet simulated GPUs; what they answer is set by a file.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { audit, build, lab, settled, until } from './harness.mjs';

const here = lab();
const { open } = here;
let simDir, gpumgr, context, troubles, port;

const sim = (...words) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...words, '--sim-dir', simDir], (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));
const freePort = () => new Promise((done) => { const s = createServer().listen(0, '127.0.0.1', () => { const p = s.address().port; s.close(() => done(p)); }); });

const SERVER = `
import http.server, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(pathlib.Path(sys.argv[2]).read_text()))
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
`;
const answer = (status) => writeFileSync(join(simDir, 'status'), String(status));
const command = (at) => ['/usr/bin/python3', join(simDir, 'server.py'), String(at), join(simDir, 'status')];
const health = (at, more = {}) => ({ http: '/', port: at, interval: '1s', timeout: '1s', grace: '60s', failures: 5, ...more });

before(async () => {
  simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-sim-'));
  chmodSync(simDir, 0o755);
  await sim('start', '--gpus', '4');
  writeFileSync(join(simDir, 'server.py'), SERVER);
  answer(200);
  port = await freePort();
  process.env.GPUSIM_DIR = simDir;
  ({ gpumgr, context, troubles } = await here.begin('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'),
    '--guard.lock-dir', simDir, '--jobs.run-as', 'nobody', '--engines.docker', '', '--engines.podman', ''));
});
after(async () => {
  await sim('stop');
  rmSync(simDir, { recursive: true, force: true });
});

const state = (page) => page.locator('.bar .servicestate').getAttribute('data-state');
const becomes = (page, want) => until(`it is ${want}`, async () => (await state(page)) === want, 90);
/** The first click asks, the second does it. */
async function sure(page, label) {
  await page.click(`button[aria-label="${label}"]`);
  await page.click(`button.danger[aria-label^="${label}: "]`);
}

test('services: one is added, checked, suspended and resumed', async () => {
  const page = await open('services');
  await page.waitForSelector('text=No service yet');
  assert.deepEqual(await page.locator('nav[aria-label="Work"] a[aria-current="page"]').allTextContents(), ['Services']);
  await page.click('text=Add a service');
  await page.waitForURL(/services\/new/);
  await page.fill('#spec', '{');
  await page.waitForSelector('#spec-wrong:has-text("not JSON")');
  assert.equal(await page.isDisabled('form button'), true);
  await page.fill('#spec', JSON.stringify({ name: 'web', command: command(port), gpus: 1, service: { health: { ...health(port), timeout: '5s' } } }));
  troubles.length = 0;
  await sure(page, 'Add the service');
  await page.waitForSelector('.problem:has-text("longer than the interval")');
  troubles.splice(0);
  await page.fill('#spec', JSON.stringify({ name: 'web', command: command(port), gpus: 1, service: { pause: '100ms', health: health(port) } }));
  await sure(page, 'Add the service');
  await page.waitForURL(/services\/\d+$/);
  await becomes(page, 'healthy');
  await until('its checks are shown', async () => (await page.locator('section[aria-label="Checks"] .checks i.ok').count()) >= 2, 60);
  assert.match(await page.textContent('section[aria-label="Runs"]'), /serves/);
  await sure(page, 'Suspend web');
  await becomes(page, 'suspended');
  await sure(page, 'Resume web');
  await becomes(page, 'healthy');
  await page.goto(`${gpumgr.url}services`);
  await page.waitForSelector('tr[data-service] [data-state="healthy"]');
  assert.match(await page.textContent('tr[data-service]'), /web.*healthy/s);
  assert.deepEqual(troubles.splice(0), []);
});

test('services: one that is only starting is not red', async () => {
  const page = await open('services');
  const text = JSON.stringify({ name: 'slow', command: 'sleep 600', gpus: 1, service: { health: { tcp: 1, interval: '1s', timeout: '1s', grace: '5m', failures: 1 } } });
  await page.goto(`${gpumgr.url}services/new`);
  await page.fill('#spec', text);
  await sure(page, 'Add the service');
  await page.waitForURL(/services\/\d+$/);
  const strip = page.locator('section[aria-label="Checks"] .checks');
  await until('checks while it starts', async () => (await strip.locator('i.early').count()) >= 2, 60);
  assert.equal(await strip.locator('i.bad').count(), 0);
  assert.equal(await state(page), 'starting');
  assert.match(await page.locator('.fact:has-text("State")').textContent(), /\d+.* of 5.min/);
  assert.match(await strip.getAttribute('aria-label'), /while it was starting$/);
  await sure(page, 'Remove slow');
  await page.waitForURL(/services$/);
  await until('it is gone', async () => (await page.locator('tr[data-service]:has-text("slow")').count()) === 0, 60);
  assert.deepEqual(troubles.splice(0), []);
});

test('services: one that fails its checks says so, and is started again', async () => {
  const page = await open('services');
  await page.click('tr[data-service] a:has-text("web")');
  await becomes(page, 'healthy');
  answer(500);
  await page.waitForSelector('section[aria-label="What happened last"]:has-text("GET / answers 500")', { timeout: 90000 });
  await until('a failed check is shown', async () => (await page.locator('.checks i.bad').count()) > 0, 60);
  answer(200);
  await becomes(page, 'healthy');
  await until('the restart is counted', async () => Number(await page.locator('.fact:has-text("Restarts") .value').textContent()) >= 1, 60);
  assert.deepEqual(troubles.splice(0), []);
});

test('services: an update shows the difference first, and is taken back when it fails', async () => {
  const page = await open('services');
  await page.click('tr[data-service] a:has-text("web")');
  await becomes(page, 'healthy');
  await page.click('button:has-text("Update…")');
  await until('the form is filled', async () => (await page.inputValue('#spec')).includes('"command"'));
  assert.equal(await page.isDisabled('form button:has-text("Update")'), true); // nothing would change
  const spec = JSON.parse(await page.inputValue('#spec'));
  const other = await freePort();
  spec.command = ['sh', '-c', 'exit 7'];
  spec.service.health.port = other;
  await page.fill('#spec', JSON.stringify(spec));
  await page.waitForSelector('.difference tr:has-text("service.health.port")');
  const rows = await page.locator('.difference tbody tr').allTextContents();
  assert.equal(rows.length, 2);
  assert.ok(rows.some((r) => r.includes('service.health.port') && r.includes(String(port)) && r.includes(String(other))));
  await sure(page, 'Update web');
  await page.waitForSelector('section[aria-label="What happened last"]:has-text("revision 2 was taken back, revision 1 stays")', { timeout: 90000 });
  assert.equal(await state(page), 'healthy');
  assert.match(await page.textContent('section[aria-label="Revisions"]'), /1 \(serves\)/);
  // And one that gets well takes its place.
  await page.click('button:has-text("Update…")');
  await until('the form is filled', async () => (await page.inputValue('#spec')).includes('"command"'));
  await page.fill('#spec', JSON.stringify({ ...spec, command: command(other) }));
  await sure(page, 'Update web');
  await page.waitForSelector('section[aria-label="What happened last"]:has-text("updated to revision 3")', { timeout: 90000 });
  assert.deepEqual(troubles.splice(0), []);
});

test('services: the page passes axe and fits a phone', async () => {
  const page = await open('services');
  await page.click('tr[data-service] a:has-text("web")');
  await settled(page);
  await page.click('button:has-text("Update…")');
  await page.waitForSelector('#spec');
  assert.deepEqual(await audit(page), []);
  await page.setViewportSize({ width: 375, height: 740 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(troubles.splice(0), []);
});

test('services: one is removed', async () => {
  const page = await open('services');
  await page.click('tr[data-service] a:has-text("web")');
  await page.waitForSelector('button[aria-label="Remove web"]');
  await sure(page, 'Remove web');
  await page.waitForURL(/services$/);
  await until('it is gone', async () => (await page.locator('text=No service yet').count()) > 0, 60);
  assert.deepEqual(troubles.splice(0), []);
});
