// Tasks against their deadlines: hit, overdue and miss are told apart by shape and words, the container's page has its slack over
// time, and all of it says what the API says. The tasks are made up by hand and told over the link.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, test } from 'node:test';
import { lab, settled, signedIn, until } from './harness.mjs';

const TRAIN = 'ab'.repeat(32);
const here = dirname(fileURLToPath(import.meta.url));
const lab4 = lab();
const { open } = lab4;
let gpumgr, browser, context, troubles, ids, node;

/** Tells the server of tasks and containers, and waits until all are told. */
async function tell(...rows) {
  let told = 0;
  const count = (d) => { told += String(d).split('told').length - 1; };
  node.stdout.on('data', count);
  for (const row of rows) node.stdin.write(`${JSON.stringify(row)}\n`);
  await until('all told', () => told >= rows.length);
  node.stdout.off('data', count);
}

const task = (pid, gpu, ago, took, deadline) => ({ pid, gpus: [ids[gpu]], ago, took, deadline, container: TRAIN, name: 'train-resnet' });

before(async () => {
  ({ gpumgr, browser, context, troubles, ids } = await lab4.begin('--sim', '4'));
  node = spawn('/usr/bin/python3', ['-B', join(here, '../system/hand_node.py'), join(gpumgr.dir, 'run/server/link.sock')], { stdio: ['pipe', 'pipe', 'inherit'] });
  await tell(
    task(901, 3, 20, null, 60), task(902, 3, 90, null, 45), task(903, 3, 200, 40, 60), task(904, 3, 150, 80, 60),
    { id: TRAIN, name: 'train-resnet', deadline: 60, running: 2, hits: 1, misses: 2, float_s: 0, least_s: -20 },
  );
});
after(() => node?.stdin.end());

test('tasks: hit, overdue and miss are unmistakable, also without colour', async () => {
  const page = await open('tasks');
  const want = { 901: ['running', '▶', /has run for .* left$/], 902: ['overdue', '!', /overdue by /], 903: ['hit', '✓', /took 40.0\ss of .* to spare$/], 904: ['miss', '✕', /missed by 20.0\ss$/] };
  for (const [pid, [verdict, sign, words]] of Object.entries(want)) {
    const bar = page.locator(`.lanes .task[data-pid="${pid}"]`);
    assert.equal(await bar.getAttribute('data-verdict'), verdict, pid);
    assert.match(await bar.getAttribute('aria-label'), words);
    assert.ok((await bar.textContent()).includes(sign));
    assert.equal(await bar.locator('.late').count(), verdict === 'overdue' || verdict === 'miss' ? 1 : 0, `${pid}: hatched beyond its deadline`);
  }
  for (const pid of [902, 904]) assert.match(await page.locator(`.lanes .task[data-pid="${pid}"] em`).evaluate((e) => getComputedStyle(e).textTransform + e.textContent), /^uppercase(overdue|missed)$/);
  assert.match(await page.textContent('.bar .crumb'), /1 overdue/);
  assert.deepEqual(troubles.splice(0), []);
});

test('tasks: the bar lies where its times are, and its end is drawn against its deadline', async () => {
  const page = await open('tasks?window=300');
  const box = await page.locator('.lanes .task[data-pid="904"]').evaluate((e) => {
    const lane = e.closest('.lanes').getBoundingClientRect();
    const late = e.querySelector('.late').getBoundingClientRect();
    const own = e.getBoundingClientRect();
    return { width: own.width / lane.width, late: late.width / own.width };
  });
  assert.ok(Math.abs(box.width - 80 / 345) < 0.01, `a width of ${box.width}`);
  assert.ok(Math.abs(box.late - 20 / 80) < 0.06, `late for ${box.late} of it`);
});

test('tasks: a new task and its end appear by themselves', async () => {
  const page = await open('tasks');
  await tell(task(950, 3, 0, null, 60));
  await page.waitForSelector('.lanes .task[data-pid="950"][data-verdict="running"]');
  await tell(task(950, 3, 2, 2, 60));
  await page.waitForSelector('.lanes .task[data-pid="950"][data-verdict="hit"]');
});

test('tasks: a running task turns overdue on the page at its deadline', async () => {
  const page = await open('tasks');
  await tell(task(960, 3, 0, null, 8));
  await page.waitForSelector('.lanes .task[data-pid="960"][data-verdict="running"]');
  await page.waitForSelector('.lanes .task[data-pid="960"][data-verdict="overdue"]');
});

test('tasks: arrow keys go from bar to bar, enter opens the container', async () => {
  const page = await open('tasks');
  await page.locator('.lanes .task[data-pid="903"]').focus();
  await page.keyboard.press('ArrowRight');
  const second = await page.evaluate(() => document.activeElement.dataset.pid);
  assert.ok(second && second !== '903', 'the focus went on');
  await page.locator('.lanes .task[data-pid="903"]').focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("train-resnet")');
  assert.ok(page.url().includes(TRAIN));
});

test('container: what the API says, its slack over time and its tasks', async () => {
  const page = await open(`containers/${TRAIN}`);
  const api = await page.evaluate(async (id) => (await fetch(new URL(`api/v1/containers/${id}`, document.baseURI))).json(), TRAIN);
  assert.match(await page.textContent('.facts'), /33\s%/);
  assert.match(await page.textContent('.facts'), /1 kept, 2 missed/);
  const ended = api.tasks.filter((t) => t.end !== null);
  assert.equal(await page.locator('.slack .point').count(), ended.length);
  assert.equal(await page.locator('.slack .point.miss').count(), ended.filter((t) => t.hit === false).length);
  const below = await page.evaluate(() => {
    const zero = document.querySelector('.slack .zero').getBoundingClientRect().top;
    return [...document.querySelectorAll('.slack .point')].every((p) => { const b = p.getBoundingClientRect(); return (b.top + b.height / 2 > zero) === p.classList.contains('miss'); });
  });
  assert.ok(below, 'misses lie below the line of the deadline, all others above');
  assert.equal(await page.locator('table.tasks tbody tr').count(), api.tasks.length);
  assert.deepEqual(troubles.splice(0), []);
});

test('container: one that nobody knows is a sentence, not a blank page', async () => {
  const { context: other } = await signedIn(browser, gpumgr, { expect: [/404/] });
  const page = await other.newPage();
  await page.goto(`${gpumgr.url}containers/nobody`);
  await page.waitForSelector('[role=alert]:has-text("no container of this id or name")');
  await other.close();
});

test('tasks and container: nothing is wider than a phone', async () => {
  const page = await open('tasks');
  for (const path of ['tasks', `containers/${TRAIN}`]) {
    await page.setViewportSize({ width: 375, height: 800 });
    await page.goto(gpumgr.url + path);
    await settled(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375, path);
  }
});
