// The queue from the browser: a job is handed in, watched, read and ended there, and the page says why others wait. Four quiet
// simulated GPUs, the real node and shim.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { audit, build, lab, settled, signedIn, until } from './harness.mjs';

const here = lab();
const { open } = here;
let simDir, gpumgr, browser, context, troubles;

const sim = (...words) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...words, '--sim-dir', simDir], (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));

before(async () => {
  simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-sim-'));
  chmodSync(simDir, 0o755);
  await sim('start', '--gpus', '4');
  process.env.GPUSIM_DIR = simDir;
  ({ gpumgr, browser, context, troubles } = await here.begin('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'),
    '--guard.lock-dir', simDir, '--jobs.run-as', 'nobody', '--engines.docker', '', '--engines.podman', ''));
});
after(async () => {
  await sim('stop');
  rmSync(simDir, { recursive: true, force: true });
});

/** Fills the form in, hands it in, and gives the number of the job. */
async function submit(page, command, fields = {}) {
  await page.goto(`${gpumgr.url}submit`);
  await page.fill('#wish-command', command);
  for (const [name, value] of Object.entries(fields)) await page.fill(`#wish-${name}`, value);
  await page.waitForSelector('.foretold .big');
  await page.click('button:has-text("Submit")');
  await page.waitForURL(/\/jobs\/\d+/);
  return Number(/jobs\/(\d+)/.exec(page.url())[1]);
}

const state = (page) => page.locator('.bar .jobstate').getAttribute('data-state');

test('jobs: one is handed in, watched and read, and its end is told', async () => {
  const page = await context.newPage();
  const id = await submit(page, 'echo one; sleep 2; echo two >&2; exit 3', { name: 'first', timeLimit: '10m' });
  await until('it runs', async () => (await state(page)) === 'running');
  await page.waitForSelector('.log:has-text("one")');
  await until('it has failed', async () => (await state(page)) === 'failed');
  await page.waitForSelector('.log:has-text("two")');
  assert.match(await page.textContent('.facts'), /exit 3/);
  await page.goto(`${gpumgr.url}queue`);
  await page.waitForSelector(`section[aria-label="Finished"] tr[data-job="${id}"] [data-state="failed"]`);
  assert.match(await page.textContent(`section[aria-label="Finished"] tr[data-job="${id}"]`), /first.*exit 3/s);
  assert.deepEqual(troubles.splice(0), []);
});

test('jobs: the form says what would come of it, and what is wrong beside the field', async () => {
  const page = await open('submit');
  await page.fill('#wish-command', 'true');
  await page.waitForSelector('.foretold .big:has-text("Starts now on GPU")');
  troubles.length = 0;
  await page.fill('#wish-gpus', '9');
  await page.waitForSelector('#wish-gpus-wrong:has-text("9 are wanted")');
  assert.equal(await page.getAttribute('#wish-gpus', 'aria-invalid'), 'true');
  assert.equal(await page.isDisabled('button:has-text("Submit")'), true);
  await page.fill('#wish-gpus', '1');
  await page.fill('#wish-timeLimit', 'soon');
  await page.waitForSelector('#wish-timeLimit-wrong:has-text("soon")');
  await page.fill('#wish-timeLimit', '1h');
  await page.waitForSelector('.foretold .big:has-text("Starts now")');
  assert.deepEqual(troubles.splice(0).filter((t) => !/400 \(Bad Request\)/.test(t)), []);
});

test('jobs: who waits sees why, when, and what would be sooner; cancelled jobs leave', async () => {
  const page = await context.newPage();
  const held = await submit(page, 'sleep 600', { name: 'holder', gpus: '3', timeLimit: '30m' });
  const waits = await submit(page, 'sleep 1', { name: 'patient', gpus: '2', timeLimit: '10m' });
  await page.goto(`${gpumgr.url}queue`);
  const row = page.locator(`section[aria-label="Waiting"] tr[data-job="${waits}"]`);
  await row.waitFor();
  await until('a reason', async () => /2 GPUs are needed and 1 of 4 is free/.test(await row.textContent()));
  assert.match(await row.textContent(), /Would start now with 1 GPU instead of 2/);
  assert.match(await row.textContent(), /(29|30).min/);
  await until('bars of what runs', async () => (await page.locator(`.plan a.slot.running[data-job="${held}"]`).count()) === 3);
  await until('bars of what is planned', async () => (await page.locator(`.plan a.slot.planned[data-job="${waits}"]`).count()) === 2);
  for (const id of [waits, held]) {
    await page.click(`tr[data-job="${id}"] button:has-text("Cancel")`);
    await page.click(`tr[data-job="${id}"] button.danger`);
    await page.waitForSelector(`section[aria-label="Finished"] tr[data-job="${id}"] [data-state="cancelled"]`);
  }
  await until('an empty queue', async () => /0 waiting · 0 running/.test(await page.textContent('.bar .crumb')));
  assert.deepEqual(troubles.splice(0), []);
});

test('jobs: a GPU that somebody uses outside the queue is named with him, and not given away', async () => {
  const [first] = (await gpumgr.command('status', '--json', '--dir', gpumgr.dir).then(JSON.parse)).gpus;
  const task = execFile(join(build, 'sim/gpusim-task'), ['--gpu', '0', '--forever', '--quiet', '--dir', simDir]);
  try {
    const page = await open('queue');
    await page.waitForSelector(`section[aria-label="Not to be given away"]:has-text("GPU 0 is used outside the queue by root (pid ${task.pid})")`);
    const id = await submit(page, 'true', { name: 'around' });
    await until('it is done', async () => (await state(page)) === 'done');
    const job = await page.evaluate(async (n) => (await fetch(new URL(`api/v1/jobs/${n}`, document.baseURI))).json(), id);
    assert.ok(!job.gpu_uuids.includes(first.uuid), 'it got another one');
  } finally {
    task.kill();
  }
});

test('jobs: one is run again with its own words', async () => {
  const page = await context.newPage();
  await submit(page, 'echo again', { name: 'twice' });
  await until('it is done', async () => (await state(page)) === 'done');
  await page.click('a:has-text("Run again")');
  await until('the form is filled', async () => (await page.inputValue('#wish-command')) === 'echo again');
  assert.equal(await page.inputValue('#wish-name'), 'twice');
  await page.waitForSelector('.foretold .big');
  await page.click('button:has-text("Submit")');
  await page.waitForURL(/\/jobs\/\d+$/);
  await until('it is done again', async () => (await state(page)) === 'done');
});

test('jobs: what one uses is told while it runs, with its own GPUs, CPU and disk over its run', async () => {
  const page = await context.newPage();
  const id = await submit(page, `${join(build, 'sim/gpusim-task')} --dir ${simDir} --quiet --gpu 0 --memory 4G --forever & echo busy; wait`, { name: 'works' });
  await until('it runs', async () => (await state(page)) === 'running');
  const fact = (name) => page.locator('.facts .fact', { has: page.locator(`dt:text-is("${name}")`) }).textContent();
  await until('its GPU to be busy', async () => /[1-9]\d*.%/.test(await fact('GPUs busy')), 60);
  assert.match(await fact('GPU memory'), /4\.\d+.GiB.*at most/);
  assert.match(await fact('Disk'), /read.*written/);
  const { gpu_indices: mine, gpu_seconds: before } = await page.evaluate(async (n) => (await fetch(new URL(`api/v1/jobs/${n}`, document.baseURI))).json(), id);
  for (const title of ['Utilisation', 'GPU memory', 'Power', 'Temperature']) {
    const panel = page.locator('.jobcharts > *', { has: page.locator(`h2:text-is("${title}")`) });
    await until(`${title} as a chart`, async () => (await panel.locator('canvas').count()) > 0, 30);
    assert.deepEqual((await panel.textContent()).match(/GPU \d+/g).filter((w, i, all) => all.indexOf(w) === i && title !== w).sort(), mine.map((i) => `GPU ${i}`), title);
  }
  const own = (title) => page.locator('.jobcharts > *', { has: page.locator(`h2:text-is("${title}")`) });
  for (const [title, lines] of [['CPU, in cores', /the machine.*the job/], ['Memory', /the job/], ['Disk', /the machine wrote.*the job wrote/]]) {
    await until(`${title} as a chart`, async () => (await own(title).locator('canvas').count()) > 0, 60);
    await until(`lines of ${title}`, async () => lines.test(await own(title).textContent()), 60);
  }
  await until('its own memory as a number', async () => /the job [\d.]+.(KiB|MiB|GiB)/.test(await own('Memory').locator('.legend').textContent()), 60);
  await until('more GPU time', async () => (await page.evaluate(async (n) => (await fetch(new URL(`api/v1/jobs/${n}`, document.baseURI))).json(), id)).gpu_seconds > before, 30);
  await gpumgr.command('cancel', String(id), '--dir', gpumgr.dir);
  await until('it is cancelled', async () => (await state(page)) === 'cancelled');
  assert.match(await fact('Energy'), /[1-9]/);
  await page.reload();
  await settled(page);
  await until('its own curves after its end', async () => /the job/.test(await own('Memory').textContent()) && (await own('Memory').locator('canvas').count()) > 0, 60);
});

test('jobs: a GPU\'s page shows who was on it over the time of its charts, and leads to the job', async () => {
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}submit`);
  const over = await gpumgr.command('submit', '--dir', gpumgr.dir, '--gpu', '1', '--name', 'earlier', '--', 'sleep', '0.5').then(Number);
  await gpumgr.command('wait', '--dir', gpumgr.dir, String(over));
  const on = await gpumgr.command('submit', '--dir', gpumgr.dir, '--gpu', '1', '--name', 'later', '--', 'sleep', '600').then(Number);
  let outside;
  try {
    await page.goto(gpumgr.url);
    await page.waitForSelector('[data-gpu="1"]');
    await until('the overview says whose it is', async () => /root · later/.test(await page.locator('[data-gpu="1"]').textContent()));
    assert.ok(!/free/.test(await page.locator('[data-gpu="1"]').textContent()));
    assert.match(await page.textContent('.facts'), /3.free · 1.held idle/);
    outside = execFile(join(build, 'sim/gpusim-task'), ['--gpu', '1', '--forever', '--quiet', '--dir', simDir]);
    await page.goto(`${gpumgr.url}gpus/${here.ids[1]}`);
    await settled(page);
    const band = page.locator('section[aria-label="Who was on it"]');
    const bar = (id) => band.locator(`a.stay.job[data-job="${id}"]`);
    await bar(on).waitFor();
    await bar(over).waitFor();
    assert.match(await bar(on).getAttribute('title'), new RegExp(`^later of root, job ${on}: runs since `));
    assert.match(await bar(over).getAttribute('title'), new RegExp(`^earlier of root, job ${over}: done, .* to `));
    await band.locator('a.stay.task').waitFor();
    assert.match(await band.locator('a.stay.task').getAttribute('title'), new RegExp(`of root, pid ${outside.pid}, outside the queue: since`));
    const [first, second] = [await bar(over).boundingBox(), await bar(on).boundingBox()];
    assert.ok(first.x + first.width <= second.x + 1, 'one after the other');
    await page.goto(`${gpumgr.url}gpus/${here.ids[2]}`);
    await settled(page);
    assert.equal(await bar(on).count(), 0, 'on its own GPU only');
    await page.goto(`${gpumgr.url}gpus/${here.ids[1]}`);
    await bar(over).click();
    await page.waitForURL(new RegExp(`/jobs/${over}$`));
  } finally {
    outside?.kill();
    await gpumgr.command('cancel', String(on), '--dir', gpumgr.dir);
  }
  assert.deepEqual(troubles.splice(0), []);
});

test('jobs: the plan shows what is reserved, and leads to the calendar', async () => {
  const made = JSON.parse(await gpumgr.command('reserve', '--dir', gpumgr.dir, '--gpu', '2,3', '--for', '2h', '--user', 'nobody', '--note', 'demo', '--json'));
  const page = await open('queue');
  const kept = page.locator(`.planrow a.kept[data-reservation="${made.id}"]`);
  await until('two bars', async () => (await kept.count()) === 2);
  assert.match(await kept.first().getAttribute('title'), /^GPU 2 is reserved for nobody, .*: demo/);
  await kept.first().click();
  await page.waitForURL(/\/calendar\?span=day$/);
  await page.waitForSelector('.booked');
  await gpumgr.command('reserve', 'cancel', String(made.id), '--dir', gpumgr.dir);
  assert.deepEqual(troubles.splice(0), []);
});

test('jobs: elements of an array, each with its log', async () => {
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}submit`);
  await page.click('summary:has-text("More")');
  const id = await (async () => {
    await page.fill('#wish-command', 'echo this is {index}');
    await page.fill('#wish-array', '3-5');
    await page.waitForSelector('.foretold .big');
    await page.click('button:has-text("Submit")');
    await page.waitForURL(/\/jobs\/\d+/);
    return /jobs\/(\d+)/.exec(page.url())[1];
  })();
  await until('all are done', async () => (await state(page)) === 'done');
  await page.click('section[aria-label="Elements"] a:has-text("4")');
  await page.waitForURL(new RegExp(`jobs/${id}\\?element=4`));
  await page.waitForSelector('.log:has-text("this is 4")');
});

test('jobs: a job that nobody has heard of is a sentence', async () => {
  const { context: other } = await signedIn(browser, gpumgr, { expect: [/404/] });
  const page = await other.newPage();
  await page.goto(`${gpumgr.url}jobs/4711`);
  await page.waitForSelector('[role=alert]:has-text("there is no job 4711")');
  await other.close();
});

test('jobs: queue and job fit a phone, and are clean under axe', async () => {
  const page = await context.newPage();
  const id = await submit(page, 'echo a long line without a single space: $(seq -s _ 1 200); sleep 60', { name: 'wide' });
  await until('it runs', async () => (await state(page)) === 'running');
  for (const path of ['queue', `jobs/${id}`, 'submit']) {
    for (const theme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width: 375, height: 800 });
      await page.goto(gpumgr.url + path);
      await settled(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375, path);
      assert.deepEqual(await audit(page), [], `${path} ${theme}`);
    }
  }
  await gpumgr.command('cancel', String(id), '--dir', gpumgr.dir);
});
