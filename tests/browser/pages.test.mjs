// Every page opens, shows live values, and stays within its server and its content policy.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { lab, pagesOf, until } from './harness.mjs';

const here = lab();
let gpumgr, troubles, ids;
before(async () => { ({ gpumgr, troubles, ids } = await here.begin()); });
const { open } = here;

const WANTED = {
  overview: ['[data-gpu="0"]', '[data-gpu="7"]', '.facts', '.attention'],
  compact: ['.tile[data-gpu="7"]'],
  table: ['table.gpus tbody tr[data-gpu="7"]'],
  gpu: ['th:has-text("Running for")', 'text=Temperature', 'text=How it was spread', 'text=Power and its limit', 'text=Why is it slow?', 'text=On it now', 'text=What it is', 'text=Serial number', 'text=Supported clocks'],
  compare: ['.chart:nth-of-type(2) canvas', 'text=highest on average'],
  queue: ['section[aria-label="Plan"] .row', 'text=nobody waits', 'text=No job has ended yet.', 'a:has-text("Submit a job")'],
  submit: ['textarea', 'text=Say what to run.'],
  tasks: ['.timeline .row', '.lanes .task', 'table.tasks tbody tr'],
  events: ['ol.events li'],
  nodes: ['text=CPU', 'section[aria-label="Network"] canvas'],
  groups: ['text=No group yet'],
  account: ['text=Where you are signed in', 'text=this one', 'text=Tokens for programs'],
};

for (const name of Object.keys(WANTED)) {
  test(`${name}: opens and shows what it is for`, async () => {
    if (name === 'events') await gpumgr.sim('fault', '1', 'xid', '31');
    const page = await open(pagesOf(ids[2])[name]);
    for (const selector of WANTED[name]) await page.waitForSelector(selector);
    assert.match(await page.title(), /gpumgr/);
    assert.deepEqual(troubles.splice(0), []);
  });
}

test('overview: values move without a reload', async () => {
  const page = await open('');
  const read = () => page.$$eval('[data-gpu] .meters', (all) => all.map((e) => e.textContent).join('|'));
  const first = await read();
  await until('other values', async () => (await read()) !== first);
});

test('overview: eight cards fit one screen of 1440 by 900', async () => {
  const page = await open('');
  const bottoms = await page.$$eval('[data-gpu]', (all) => all.map((e) => e.getBoundingClientRect().bottom));
  assert.equal(bottoms.length, 8);
  assert.ok(Math.max(...bottoms) <= 900, `the last card ends at ${Math.max(...bottoms)}`);
});

for (const [width, height] of [[1920, 1080], [2560, 1440], [3840, 2160]]) {
  test(`overview: a wall screen of ${width} by ${height} is filled, and read from afar`, async () => {
    const page = await open('');
    await page.setViewportSize({ width, height });
    for (const view of ['Cards', 'Compact']) {
      await page.click(`button:has-text("${view}")`);
      const all = await page.$$eval('[data-gpu]', (cards) => cards.map((e) => ({ right: e.getBoundingClientRect().right, bottom: e.getBoundingClientRect().bottom, size: (e.querySelector('.temp .value') ?? e.querySelector('.temp')).getBoundingClientRect().height })));
      assert.equal(all.length, 8);
      assert.ok(Math.max(...all.map((c) => c.bottom)) <= height, `${view}: below the screen`);
      assert.ok(view === 'Compact' || Math.max(...all.map((c) => c.right)) > width * 0.85, `${view}: the right is empty`);
      assert.ok(all.every((c) => c.size >= height / 40), `${view}: ${all[0].size} px is small on this screen`);
    }
    await page.click('button:has-text("Cards")');
  });
}

test('overview: the hot card stands out and is named first', async () => {
  const page = await open('');
  // The third simulated card has bad cooling: the guard soon has to act.
  await page.waitForSelector('[data-gpu="2"].hot, [data-gpu="2"].crit', { timeout: 120000 });
  const first = await page.textContent('.attention li:first-child');
  assert.match(first, /GPU 2/);
});

test('overview: only the changed card is drawn anew', async () => {
  const page = await open('');
  const node = await page.$('[data-gpu="4"]');
  await node.evaluate((e) => { e.dataset.kept = 'yes'; });
  await page.waitForTimeout(2500);
  assert.equal(await page.getAttribute('[data-gpu="4"]', 'data-kept'), 'yes');
});

test('overview: finding, choosing and sorting are in the address', async () => {
  const page = await open('');
  await page.fill('input[type=search]', 'gpu 5');
  await page.waitForFunction(() => document.querySelectorAll('[data-gpu]').length === 1);
  assert.match(page.url(), /q=gpu\+5/);
  await page.fill('input[type=search]', 'no such thing');
  await page.waitForSelector('text=No GPU fits this choice');
  await page.click('text=Show all 8');
  await page.waitForFunction(() => document.querySelectorAll('[data-gpu]').length === 8);
  await page.selectOption('.pick select', 'temperature');
  const hottest = await until('the hottest first', () => page.$$eval('[data-gpu] .temp .value', (all) => {
    const t = all.map((e) => Number(e.textContent));
    return t.length === 8 && t[0] >= Math.max(...t) - 3;
  }));
  assert.ok(hottest);
});

test('events: a new one appears by itself', async () => {
  const page = await open('events');
  await gpumgr.sim('fault', '5', 'xid', '94');
  await page.waitForSelector('ol.events li:has-text("XID 94")');
  await page.click('text=Critical');
  assert.match(page.url(), /severity=critical/);
  await page.waitForFunction(() => ![...document.querySelectorAll('ol.events li')].some((e) => e.classList.contains('info') || e.classList.contains('warning')));
});

test('gpu: an XID has its meaning and advice', async () => {
  await gpumgr.sim('fault', '1', 'xid', '48');
  const page = await open(`gpus/${ids[1]}`);
  await page.waitForSelector('.xids li:has-text("XID 48"):has-text("double bit")');
  assert.match(await page.textContent('.xids li:has-text("XID 48")'), /[Rr]eset/);
});

test('no page did what it should not', () => assert.deepEqual(troubles, []));
