// A past of thirty days for eight GPUs: a chart of yesterday opens at once, and a year's view reads rollups only.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chownSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { build, Instance, openBrowser, settled, signedIn } from './harness.mjs';

const DAYS = 30;
const OPENS_MS = Number(process.env.OPENS_MS ?? 200);
let gpumgr, browser, context, ids;

before(async () => {
  gpumgr = await Instance.start();
  ids = JSON.parse(await gpumgr.command('status', '--json', '--dir', gpumgr.dir)).gpus.map((g) => g.uuid);
  await gpumgr.end();
  const home = join(gpumgr.dir, 'server');
  for (const name of readdirSync(home).filter((n) => n.startsWith('history.db'))) rmSync(join(home, name));
  execFileSync(join(build, 'tests/history_preload'), [join(home, 'history.db'), String(DAYS), ...ids]);
  const { uid, gid } = statSync(home);
  for (const name of readdirSync(home)) chownSync(join(home, name), uid, gid);
  await gpumgr.begin();
  browser = await openBrowser();
  ({ context } = await signedIn(browser, gpumgr));
});
afterEach(async () => { for (const page of context?.pages() ?? []) await page.close(); });
after(async () => {
  await browser?.close();
  await gpumgr?.stop();
});

/** Clicks, and gives the milliseconds until all charts of the page show what was asked for. */
const clickToChart = (page, selector) => page.evaluate((s) => new Promise((done) => {
  const began = performance.now();
  document.querySelector(s).click();
  const look = () => {
    const isThere = document.querySelectorAll('.chart canvas').length > 3 && !document.querySelector('.plot.loading');
    if (isThere) requestAnimationFrame(() => done(performance.now() - began)); // painted
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(() => requestAnimationFrame(look));
}), selector);

test(`a chart of yesterday opens in less than ${OPENS_MS} ms`, async (t) => {
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}gpus/${ids[2]}?range=24h`);
  await settled(page);
  const took = [];
  for (let i = 0; i < 5; i++) {
    took.push(await clickToChart(page, 'button[aria-label=Earlier]')); // half a day back, each time a span not seen before
    await settled(page);
  }
  took.sort((a, b) => a - b);
  t.diagnostic(`from click to charts, ms: ${took.map((v) => v.toFixed(0)).join(' ')}`);
  assert.ok(took[2] < OPENS_MS, `the median of ${took.map((v) => v.toFixed(0)).join(', ')} ms`);
  assert.match(await page.textContent('section[aria-label=Temperature] .sub'), /°C to \d+/);
});

test('a year reads rollups, and no reading of a single second', async () => {
  const page = await context.newPage();
  const read = [];
  page.on('response', async (r) => { if (/\/history\?/.test(r.url())) read.push((await r.json()).read); });
  await page.goto(`${gpumgr.url}gpus/${ids[2]}?range=1y`);
  await settled(page);
  await page.waitForSelector('text=Rolled up by the hour');
  assert.ok(read.length > 0);
  const year = read.filter((r) => r.hour_rows > 0);
  assert.ok(year.length > 0, JSON.stringify(read));
  for (const r of year) assert.equal(r.raw_rows, 0, JSON.stringify(r));
});

test('every span is one that a person can read', async () => {
  const page = await context.newPage();
  for (const range of ['5m', '1h', '24h', '7d', '30d', '1y']) {
    await page.goto(`${gpumgr.url}compare?range=${range}`);
    await settled(page);
    assert.match(await page.textContent('.chart .sub'), /highest on average/, range);
  }
});
