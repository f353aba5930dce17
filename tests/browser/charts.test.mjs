// Ranges: zoom by dragging, step, presets, back through what was seen; comparing; groups; the guard by hand.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { lab, settled, until } from './harness.mjs';

const here = lab();
let troubles, ids;
before(async () => { ({ troubles, ids } = await here.begin()); });
const { open } = here;
const query = (page) => new URL(page.url()).searchParams;

/** Pixels of a canvas that have colour: lines, dots and bars, not the grey axes. */
const inked = (page, selector) => page.$eval(`${selector} canvas`, (c) => {
  const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height);
  let n = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 40 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 50) n++;
  return n;
});

test('gpu: the charts are drawn, and grow live', async () => {
  const page = await open(`gpus/${ids[0]}`);
  await until('ink', async () => (await inked(page, 'section[aria-label=Temperature]')) > 20);
  for (const name of ['How it was spread', 'Power and its limit', 'Utilisation and activity', 'Memory', 'Clocks']) await until(`ink in ${name}`, async () => (await inked(page, `section[aria-label="${name}"]`)) > 5);
  await page.waitForTimeout(3000); // some seconds of live values later the bars are still there
  assert.ok((await inked(page, 'section[aria-label="How it was spread"]')) > 500, 'bars');
  const first = await page.textContent('section[aria-label="Power and its limit"] .sub');
  await until('another sentence', async () => (await page.textContent('section[aria-label="Power and its limit"] .sub')) !== first);
});

test('gpu: dragging zooms all charts, back undoes it', async () => {
  const page = await open(`gpus/${ids[0]}`);
  const over = page.locator('section[aria-label=Temperature] .u-over');
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 70, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => new URL(location.href).searchParams.has('from'));
  const span = Number(query(page).get('to')) - Number(query(page).get('from'));
  assert.ok(span > 60 && span < 120, `a third of five minutes, not ${span} s`);
  await settled(page);
  await page.click('button[aria-label=Closer]');
  await page.waitForFunction((s) => { const q = new URL(location.href).searchParams; return Number(q.get('to')) - Number(q.get('from')) < s - 10; }, span);
  await page.goBack();
  await page.waitForFunction((s) => { const q = new URL(location.href).searchParams; return Math.abs(Number(q.get('to')) - Number(q.get('from')) - s) < 1; }, span);
  await page.goBack();
  await page.waitForFunction(() => !new URL(location.href).searchParams.has('from'));
  await page.waitForSelector('.range [aria-pressed=true]:has-text("5 min")');
});

test('gpu: Shift and drag moves the range', async () => {
  const page = await open(`gpus/${ids[0]}`);
  const box = await page.locator('section[aria-label=Temperature] .u-over').boundingBox();
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.waitForFunction(() => new URL(location.href).searchParams.has('from'));
  const q = query(page);
  assert.ok(Math.abs(Number(q.get('to')) - Number(q.get('from')) - 300) < 2, 'the span stays');
  assert.ok(Number(q.get('to')) < Date.now() / 1000 - 60, 'and lies earlier');
});

test('gpu: every preset from five minutes to a year', async () => {
  const page = await open(`gpus/${ids[0]}`);
  for (const key of ['1 h', '6 h', '24 h', '7 d', '30 d', '1 y', '5 min']) {
    await page.click(`.range button:text-is("${key}")`);
    await page.waitForSelector(`.range [aria-pressed=true]:text-is("${key}")`);
    await settled(page);
  }
  assert.deepEqual(troubles.splice(0), []);
});

test('gpu: a chart as a table', async () => {
  const page = await open(`gpus/${ids[0]}`);
  await page.click('section[aria-label=Temperature] button:has-text("Table")');
  await until('rows', async () => (await page.$$('section[aria-label=Temperature] tbody tr')).length > 3);
  assert.match(await page.textContent('section[aria-label=Temperature] tbody tr:first-child'), /°C/);
});

test('compare: lines for whom is chosen, several metrics, all in the address', async () => {
  const page = await open(`compare?of=gpu:${ids[0]},gpu:${ids[1]}&metric=gpu_power_watts`);
  await page.waitForSelector('.legend:has-text("GPU 0"):has-text("GPU 1")');
  await page.click('.members label:has-text("GPU 5")');
  await page.waitForSelector('.legend:has-text("GPU 5")');
  assert.ok(query(page).get('of').includes(ids[5]));
  await page.selectOption('select[aria-label="Add a metric"]', 'gpu_sm_active_ratio');
  await page.waitForSelector('h2:has-text("SM active")');
  assert.equal(query(page).get('metric'), 'gpu_power_watts,gpu_sm_active_ratio');
  await page.reload();
  await page.waitForSelector('h2:has-text("SM active")');
});

test('groups: made, changed, compared, removed', async () => {
  const page = await open('groups');
  await page.click('text=New group');
  await page.fill('.editor input >> nth=0', 'rack-a');
  await page.fill('.editor input >> nth=1', 'Rack A');
  await page.click('.editor button[type=submit]');
  await page.waitForSelector('.problem:has-text("at least one")');
  await page.click('.editor label:has-text("GPU 0")');
  await page.click('.editor label:has-text("GPU 1")');
  await page.click('.editor button[type=submit]');
  await page.waitForSelector('.group:has-text("Rack A"):has-text("2 GPUs")');
  await page.click('.group button:has-text("Change")');
  await page.click('.editor label:has-text("GPU 2")');
  await page.click('.editor button[type=submit]');
  await page.waitForSelector('.group:has-text("3 GPUs")');
  await page.click('.group a:has-text("As one")');
  await page.waitForSelector('.legend:has-text("rack-a")');
  await page.goBack();
  await page.click('.group button:has-text("Remove")');
  await page.click('text=Really remove');
  await page.waitForSelector('text=No group yet');
});

test('guard: a limit by hand is set, asked about, kept, and taken back', async () => {
  const page = await open(`gpus/${ids[7]}`);
  const panel = 'section[aria-label=Guard]';
  await page.fill(`${panel} input >> nth=0`, '450');
  await page.click(`${panel} button:text-is("Set")`);
  await page.waitForSelector(`${panel} .confirm progress`);
  await page.waitForSelector(`${panel} dd:has-text("450 W of 700 W")`);
  await page.click('text=Keep it');
  await page.waitForSelector(`${panel} >> text=Confirmed`);
  await page.click(`${panel} button:text-is("Restore")`);
  await page.waitForSelector(`${panel} dd:has-text("700 W of 700 W")`);
});

test('no page did what it should not', () => assert.deepEqual(troubles, []));
