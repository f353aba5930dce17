// When things go wrong: a card is lost and comes back, the stream breaks, there is no GPU at all.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, afterEach, before, test } from 'node:test';
import { Instance, openBrowser, settled, signedIn, until } from './harness.mjs';

let gpumgr, browser, context;
before(async () => {
  gpumgr = await Instance.start('--server.gone_s', '2');
  browser = await openBrowser();
  ({ context } = await signedIn(browser, gpumgr));
});
afterEach(async () => { for (const page of context?.pages() ?? []) await page.close(); });
after(async () => {
  await browser?.close();
  await gpumgr?.stop();
});

test('a lost card is unmistakable, and comes back', async () => {
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  await gpumgr.sim('fault', '6', 'lost');
  await page.waitForSelector('[data-gpu="6"].gone.crit .flag:has-text("lost")');
  assert.equal(await page.textContent('[data-gpu="6"] .temp .absent [aria-hidden]'), '–');
  await page.waitForSelector('.attention li.crit:has-text("GPU 6")');
  await page.waitForFunction(() => /GPU 6/.test(document.querySelector('[role=alert]')?.textContent ?? ''));
  await gpumgr.sim('heal', '6');
  await page.waitForSelector('[data-gpu="6"]:not(.gone) .temp .value', { timeout: 60000 });
  await page.waitForFunction(() => /GPU 6 is well again/.test(document.querySelector('[role=alert]')?.textContent ?? ''));
});

test('a sensor that is not there is a dash with a reason, not a zero', async () => {
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  await gpumgr.sim('fault', '4', 'sensor', 'temperature', 'off');
  await page.waitForSelector('[data-gpu="4"] .temp .absent');
  assert.match(await page.getAttribute('[data-gpu="4"] .temp .absent', 'title'), /does not tell its temperature/);
  await gpumgr.sim('heal', '4');
  await page.waitForSelector('[data-gpu="4"] .temp .value');
});

test('a silent server makes the page stale, and it recovers by itself', async () => {
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  const pid = await gpumgr.serverPid();
  assert.ok(pid > 1);
  process.kill(pid, 'SIGSTOP');
  try {
    await page.waitForSelector('.live.stale');
    const opacity = await page.$eval('[data-gpu="0"] .temp .value', (e) => Number(getComputedStyle(e).opacity));
    assert.ok(opacity < 1, 'values are greyed');
  } finally {
    try { process.kill(pid, 'SIGCONT'); } catch { /* the supervisor was faster and replaced it */ }
  }
  await page.waitForSelector('.live.live');
});

test('a killed server comes back, and so does the page, still signed in', async () => {
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  const before = await gpumgr.serverPid();
  process.kill(before, 'SIGKILL');
  await until('another server', async () => ![0, NaN, before].includes(await gpumgr.serverPid()));
  await page.waitForSelector('.live.live');
  const read = () => page.$$eval('[data-gpu] .meters', (all) => all.map((e) => e.textContent).join('|'));
  const first = await read();
  await until('values that move again', async () => (await read()) !== first);
  assert.equal(await page.$$eval('[data-gpu]', (all) => all.length), 8);
});

test('a machine that falls silent is said to be gone, and can be forgotten', async () => {
  const here = dirname(fileURLToPath(import.meta.url));
  const node = spawn('/usr/bin/python3', ['-B', join(here, '../system/hand_node.py'), join(gpumgr.dir, 'run/server/link.sock')], { stdio: ['pipe', 'ignore', 'inherit'] });
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}nodes`);
  try {
    await page.waitForSelector('a.node:has-text("hand")');
  } finally {
    node.kill();
  }
  await page.waitForSelector('a.node.gone:has-text("hand"):has-text("Gone since")');
  await page.goto(gpumgr.url);
  await page.waitForSelector('.attention li.crit:has-text("hand"):has-text("Gone since")');
  await page.click('.attention a:has-text("hand")');
  await page.click('text=Forget this machine');
  await page.click('text=Really forget it');
  await page.waitForFunction(() => !document.querySelector('.danger'));
  await page.goto(gpumgr.url);
  await settled(page);
  assert.equal(await page.locator('.attention li:has-text("hand")').count(), 0);
  await page.goto(`${gpumgr.url}events`);
  await page.waitForSelector('text=forgot this machine');
});

test('tabs that were opened in the background leave the connections to the one that is seen', async () => {
  // A browser has six connections to a server, and a stream keeps one.
  const { context: many } = await signedIn(browser, gpumgr);
  await many.addInitScript(() => {
    if (!location.search.includes('behind')) return;
    let isHidden = true;
    Object.defineProperty(document, 'hidden', { get: () => isHidden });
    window.comeForward = () => { isHidden = false; document.dispatchEvent(new Event('visibilitychange')); };
  });
  const tabs = [];
  for (let i = 0; i < 8; i++) {
    tabs.push(await many.newPage());
    await tabs[i].goto(`${gpumgr.url}?behind`);
  }
  const seen = await many.newPage();
  await seen.goto(gpumgr.url);
  await settled(seen);
  await seen.close();
  await tabs[0].evaluate(() => window.comeForward());
  await settled(tabs[0]);
  await many.close();
});

test('without a driver the page says what to do', async () => {
  const none = await Instance.start('--gpu-library', '/nonexistent/libnvidia-ml.so.1');
  try {
    const { context: other } = await signedIn(browser, none);
    const page = await other.newPage();
    await page.goto(none.url);
    await page.waitForSelector('.blank:has-text("No GPU to show yet")');
    assert.match(await page.textContent('.blank'), /gpumgr up --sim 8/);
    assert.match(await page.textContent('.blank'), /gpumgr doctor/);
    await other.close();
  } finally {
    await none.stop();
  }
});
