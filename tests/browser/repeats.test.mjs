// Repeating jobs from the browser: one is made while its next times are shown, run by hand, paused, let go on and removed; its times stand
// as a strip. Two quiet simulated GPUs, the real node and shim.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { audit, build, lab, settled, until } from './harness.mjs';

const here = lab();
const { open } = here;
let simDir, gpumgr, context, troubles;

const sim = (...words) => new Promise((done, fail) => execFile(join(build, 'gpumgr'), ['sim', ...words, '--sim-dir', simDir], (e, out, err) => (e ? fail(new Error(`${words.join(' ')}: ${err || e.message}`)) : done(out))));

before(async () => {
  simDir = mkdtempSync(join(tmpdir(), 'gpumgr-browser-sim-'));
  chmodSync(simDir, 0o755);
  await sim('start', '--gpus', '2');
  process.env.GPUSIM_DIR = simDir;
  ({ gpumgr, context, troubles } = await here.begin('--gpu-library', join(build, 'sim/libnvidia-ml.so.1'), '--gpu-devices', join(simDir, 'dev'),
    '--guard.lock-dir', simDir, '--jobs.run-as', 'nobody', '--engines.docker', '', '--engines.podman', ''));
});
after(async () => {
  await sim('stop');
  rmSync(simDir, { recursive: true, force: true });
});

test('repeats: the form shows the next five times, and what is wrong beside the field', async () => {
  const page = await open('repeats/new');
  await page.fill('#repeat-command', 'true');
  await page.fill('#repeat-zone', 'Asia/Kolkata');
  await page.waitForSelector('.foretold:has-text("by the clocks of Asia/Kolkata")');
  assert.equal(await page.locator('.foretold .times li').count(), 5);
  assert.match(await page.textContent('.foretold .times li'), /03:00 \+05:30/);
  troubles.length = 0;
  await page.fill('#repeat-when', '0 0 30 2 *');
  await page.waitForSelector('#repeat-when-wrong:has-text("never comes: no year has such a day")');
  assert.equal(await page.isDisabled('button:has-text("Repeat it")'), true);
  await page.fill('#repeat-when', '@daily');
  await page.fill('#repeat-zone', 'Europe/Nowhere');
  await page.waitForSelector('#repeat-zone-wrong:has-text("there is no zone Europe/Nowhere")');
  await page.fill('#repeat-zone', '');
  await page.click('button:has-text("ISO 8601")');
  await page.fill('#repeat-when', 'R3/2090-01-31T12:00:00Z/P1M');
  await page.waitForSelector('.foretold .times li:has-text("28 Feb 12:00 +00:00")');
  assert.equal(await page.locator('.foretold .times li').count(), 3);
  assert.deepEqual(troubles.splice(0).filter((t) => !/400 \(Bad Request\)/.test(t)), []);
});

test('repeats: made, run now, paused, let go on, removed', async () => {
  const page = await open('repeats/new');
  await page.fill('#repeat-command', 'echo evaluated');
  await page.fill('#repeat-name', 'nightly');
  await page.fill('#repeat-zone', 'Europe/Berlin');
  await page.waitForSelector('.foretold .times li');
  await page.click('button:has-text("Repeat it")');
  const one = page.locator('[data-repeat]:has(h2:text-is("nightly"))');
  await one.waitFor();
  assert.equal(await one.locator('.times li').count(), 5);
  assert.match(await one.textContent(), /0 3 \* \* \* · Europe\/Berlin/);
  await one.locator('button:has-text("Run now")').click();
  await one.locator('.slots [data-outcome="done"]').waitFor();
  const title = await one.locator('.slots li').getAttribute('title');
  assert.match(title, /done, by hand, job \d+$/);
  assert.deepEqual(await audit(page), []);
  await one.locator('.slots a').click();
  await page.waitForSelector('h1:has-text("nightly")');
  assert.match(await page.textContent('main'), /of repeat nightly/);
  await page.goto(`${gpumgr.url}repeats`);
  await one.locator('button:has-text("Pause")').click();
  await one.locator('[data-state="paused"]').waitFor();
  await one.locator('button:has-text("Resume")').click();
  await one.locator('[data-state="on"]').waitFor();
  await one.locator('button:has-text("Remove")').click();
  await one.locator('button:has-text("Really remove nightly")').click();
  await page.waitForSelector('text=Nothing repeats yet.');
  assert.deepEqual(troubles.splice(0), []);
});

test('repeats: a narrow page in both themes', async () => {
  const made = JSON.parse(await gpumgr.command('submit', '--json', '--dir', gpumgr.dir, '--name', 'narrow', '--cron', '*/15 1-3 * * mon-fri', '--zone', 'America/Argentina/Buenos_Aires', '--', 'true'));
  assert.equal(made.kind, 'repeat');
  for (const colorScheme of ['light', 'dark']) {
    const page = await context.newPage();
    await page.setViewportSize({ width: 375, height: 800 });
    await page.emulateMedia({ colorScheme });
    await page.goto(`${gpumgr.url}repeats`);
    await settled(page);
    await page.waitForSelector('[data-repeat]');
    assert.deepEqual(await audit(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= 375), true, 'it is wider than the screen');
    if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `repeats-${colorScheme}.png`), fullPage: true });
    await page.close();
  }
  await gpumgr.command('repeat', 'remove', 'narrow', '--dir', gpumgr.dir);
  await until('it is gone', async () => /Nothing repeats/.test(await gpumgr.command('repeat', '--dir', gpumgr.dir)));
  assert.deepEqual(troubles.splice(0), []);
});

test('repeats: one is edited: the form has what it is, the change is shown first, what is wrong stands beside its field', async () => {
  const page = await open('repeats/new');
  await page.fill('#repeat-command', 'echo before');
  await page.fill('#repeat-name', 'nightly');
  await page.fill('#repeat-zone', 'Europe/Berlin');
  await page.fill('#repeat-timeLimit', '1h');
  await page.waitForSelector('.foretold .times li');
  await page.click('button:has-text("Repeat it")');
  const one = page.locator('[data-repeat]:has(h2:text-is("nightly"))');
  await one.waitFor();
  const number = await one.getAttribute('data-repeat');
  const shown = async () => JSON.parse(await gpumgr.command('repeat', 'show', number, '--json', '--dir', gpumgr.dir));

  await one.locator('a:has-text("Edit")').click();
  await page.waitForSelector('h1:has-text("Edit nightly")');
  assert.deepEqual([await page.inputValue('#repeat-command'), await page.inputValue('#repeat-when'), await page.inputValue('#repeat-zone'), await page.inputValue('#repeat-timeLimit')],
    ['echo before', '0 3 * * *', 'Europe/Berlin', '1h']);
  await page.fill('#repeat-when', '0 4 * * *');
  await page.click('button:has-text("Show what changes")');
  const row = page.locator('table.changes tbody tr');
  await row.first().waitFor();
  assert.deepEqual(await row.locator('td').allTextContents(), ['cron', '0 3 * * *', '0 4 * * *']);
  assert.equal(await page.locator('.foretold .times li').count(), 5);
  assert.match(await page.textContent('.foretold .times li'), /04:00 \+/);
  assert.equal(await page.locator('.seals').count(), 0); // its times alone: what it runs stays as it was sealed
  assert.equal((await shown()).cron, '0 3 * * *'); // only shown
  await page.fill('#repeat-when', '0 5 * * *'); // another thought: what was shown is no longer what would be done
  assert.equal(await page.locator('table.changes').count(), 0);
  await page.click('button:has-text("Show what changes")');
  await page.waitForSelector('table.changes');
  await page.click('button:has-text("Change nightly")');
  await one.waitFor();
  await one.locator('text=0 5 * * *').first().waitFor();
  assert.equal((await shown()).cron, '0 5 * * *');

  await one.locator('a:has-text("Edit")').click();
  await page.waitForSelector('h1:has-text("Edit nightly")');
  await page.fill('#repeat-command', 'echo after');
  await page.fill('#repeat-timeLimit', '');
  await page.click('button:has-text("Show what changes")');
  await page.waitForSelector('.seals:has-text("with the environment of a fresh login")');
  assert.deepEqual(await audit(page), []);
  await page.click('button:has-text("Change nightly")');
  await one.locator('code:has-text("echo after")').waitFor();
  assert.deepEqual([(await shown()).time_limit_s, (await shown()).cron], [null, '0 5 * * *']);
  await one.locator('button:has-text("Run now")').click();
  await one.locator('.slots [data-outcome="done"]').waitFor(); // sealed for the one who changed it: it runs

  assert.deepEqual(troubles.splice(0), []);
  await one.locator('a:has-text("Edit")').click();
  await page.waitForSelector('h1:has-text("Edit nightly")');
  await page.fill('#repeat-gpus', '9');
  await page.click('button:has-text("Show what changes")');
  await page.waitForSelector('#repeat-gpus-wrong:has-text("9 are wanted")');
  await page.fill('#repeat-gpus', '1');
  await page.fill('#repeat-when', '0 0 30 2 *');
  await page.click('button:has-text("Show what changes")');
  await page.waitForSelector('#repeat-when-wrong:has-text("never comes")');
  await page.fill('#repeat-when', '0 5 * * *');
  await page.click('button:has-text("Show what changes")');
  await page.waitForSelector('text=nothing: it is so already');
  assert.equal(await page.locator('button:has-text("Change nightly")').count(), 0);
  await page.goto(`${gpumgr.url}repeats/999/edit`);
  await page.waitForSelector('.problem:has-text("there is no repeat 999")');
  assert.deepEqual(troubles.splice(0).filter((t) => !/40[04] \((Bad Request|Not Found)\)/.test(t)), []);

  for (const colorScheme of ['light', 'dark'])
    for (const width of [1280, 375]) {
      const narrow = await context.newPage();
      await narrow.setViewportSize({ width, height: 800 });
      await narrow.emulateMedia({ colorScheme });
      await narrow.goto(`${gpumgr.url}repeats/${number}/edit`);
      await narrow.waitForSelector('h1:has-text("Edit nightly")');
      await narrow.fill('#repeat-command', 'python evaluate.py --checkpoint runs/with-a-rather-long-name/latest.pt --split validation');
      await narrow.fill('#repeat-zone', 'America/Argentina/Buenos_Aires');
      await narrow.click('button:has-text("Show what changes")');
      await narrow.waitForSelector('table.changes');
      await settled(narrow);
      assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, `${colorScheme} ${width}: it is wider than the screen`);
      assert.deepEqual(await audit(narrow), []);
      if (process.env.SHOTS) await narrow.screenshot({ path: join(process.env.SHOTS, `repeat-edit-${colorScheme}-${width}.png`), fullPage: true });
      await narrow.close();
    }
  await gpumgr.command('repeat', 'remove', number, '--dir', gpumgr.dir);
  assert.deepEqual(troubles.splice(0), []);
});
