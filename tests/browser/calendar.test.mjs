// The calendar from the browser: a time is drawn and typed, refused and taken back; a week and a day; phones; who may not.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { audit, lab, settled, until } from './harness.mjs';

const here = lab();
const { open } = here;
let gpumgr, context, troubles;

before(async () => {
  ({ gpumgr, context, troubles } = await here.begin('--engines.docker', '', '--engines.podman', ''));
});

const all = async () => JSON.parse(await gpumgr.command('reserve', 'list', '--json', '--dir', gpumgr.dir)).reservations.filter((r) => r.state !== 'over');
const takeAllBack = async () => {
  for (const r of await all()) await gpumgr.command('reserve', 'cancel', String(r.id), '--dir', gpumgr.dir);
};

test('calendar: a time is drawn over two GPUs, reserved, shown and taken back', async () => {
  const page = await open('calendar?step=1');
  const first = await page.locator('.calendar ul.lanes').nth(2).boundingBox();
  const last = await page.locator('.calendar ul.lanes').nth(3).boundingBox();
  await page.mouse.move(first.x + first.width * 0.3, first.y + first.height / 2);
  await page.mouse.down();
  await page.mouse.move(first.x + first.width * 0.4, last.y + last.height / 2, { steps: 4 });
  await page.waitForSelector('.calendar li.drawing');
  assert.equal(await page.locator('.calendar li.drawing').count(), 2);
  await page.mouse.up();
  await page.waitForSelector('form.booking');
  assert.deepEqual(await page.locator('form.booking .member:has(input:checked)').allTextContents(), ['GPU 2', 'GPU 3']);
  await page.fill('#book-who', 'ada');
  await page.fill('#book-note', 'thesis');
  await page.click('form.booking button:has-text("Reserve")');
  await page.waitForSelector('button.booked');
  assert.equal(await page.locator('button.booked').count(), 2);
  assert.match(await page.locator('button.booked').first().getAttribute('aria-label'), /^GPU 2 is reserved for ada, .* thesis$/);
  const [made] = await all();
  assert.deepEqual([made.user, made.gpu_indices, made.note, made.every], ['ada', [2, 3], 'thesis', null]);
  assert.ok(made.for_s >= 16 * 3600 && made.for_s <= 18 * 3600, `${made.for_s}`); // a tenth of a week, in whole hours
  await page.locator('button.booked').first().click();
  await page.waitForSelector(`tr.picked[data-reservation="${made.id}"]`);
  await page.click(`[aria-label="Take back reservation ${made.id}"]`);
  await page.click('button.danger');
  await until('it is gone', async () => (await all()).length === 0 && (await page.locator('button.booked').count()) === 0);
  assert.deepEqual(troubles.splice(0), []);
});

test('calendar: the form repeats, and says what is in the way', async () => {
  const page = await open('calendar');
  const reserve = async (who, often) => {
    await page.click('button.main:has-text("Reserve")');
    await page.waitForSelector('form.booking');
    await page.fill('#book-from', '2030-01-07T09:00');
    await page.fill('#book-to', '2030-01-07T11:00');
    await page.selectOption('#book-often', often);
    await page.fill('#book-who', who);
    await page.click('form.booking button:has-text("Reserve")');
  };
  await reserve('ada', 'once');
  await page.waitForSelector('form.booking .problem:has-text("more than a year ahead")');
  const soon = new Date(Date.now() + 36 * 3600e3);
  const day = `${soon.getFullYear()}-${String(soon.getMonth() + 1).padStart(2, '0')}-${String(soon.getDate()).padStart(2, '0')}`;
  await page.fill('#book-from', `${day}T09:00`);
  await page.fill('#book-to', `${day}T08:00`);
  await page.click('form.booking button:has-text("Reserve")');
  await page.waitForSelector('form.booking .problem:has-text("ends before it begins")');
  await page.fill('#book-to', `${day}T11:00`);
  await page.selectOption('#book-often', 'daily');
  await page.click('form.booking button:has-text("Reserve")');
  await page.waitForSelector('section[aria-label="Reservations"] td:has-text("every day at 09:00")');
  const [made] = await all();
  assert.match(made.every, /^0 9 \* \* \*$/);
  await page.click('button.main:has-text("Reserve")');
  await page.fill('#book-from', `${day}T10:00`);
  await page.fill('#book-to', `${day}T12:00`);
  await page.fill('#book-who', 'bob');
  await page.click('form.booking button:has-text("Reserve")');
  await page.waitForSelector(`form.booking .problem:has-text("is reserved for ada by reservation ${made.id}")`);
  await page.click('form.booking button:has-text("Cancel")');
  troubles.splice(0); // refusals are told in the console by the browser itself
  await takeAllBack();
});

test('calendar: in both themes and on a phone nothing is hidden, cut or unreadable', async () => {
  await gpumgr.command('reserve', '--gpus', '2', '--from', 'tomorrow 09:00', '--for', '4h', '--user', 'ada', '--note', 'course', '--dir', gpumgr.dir);
  for (const scheme of ['light', 'dark'])
    for (const width of [1280, 375]) {
      const page = await context.newPage();
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${gpumgr.url}calendar${width === 375 ? '?step=1' : ''}`);
      await settled(page);
      if (width === 375) await page.waitForSelector('.calendar.oneday button.booked');
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${scheme} ${width}: no wider than the window`);
      assert.deepEqual(await audit(page), []);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/calendar-${scheme}-${width}.png` });
      await page.close();
    }
  await takeAllBack();
  assert.deepEqual(troubles.splice(0), []);
});

test('calendar: a reservation is edited, and what is in the way is said', async () => {
  await gpumgr.command('reserve', '--gpu', '0', '--from', 'tomorrow 09:00', '--for', '2h', '--user', 'ada', '--note', 'course', '--dir', gpumgr.dir);
  await gpumgr.command('reserve', '--gpu', '1', '--from', 'tomorrow 10:00', '--for', '2h', '--user', 'bob', '--dir', gpumgr.dir);
  const [made, other] = await all();
  const page = await open('calendar');
  const edit = `[aria-label="Edit reservation ${made.id}"]`;
  await page.click(edit);
  await page.waitForSelector(`form.booking h2:has-text("Edit reservation ${made.id}")`);
  assert.deepEqual([await page.inputValue('#book-who'), await page.inputValue('#book-note'), await page.inputValue('#book-often')], ['ada', 'course', 'once']);
  assert.match(await page.inputValue('#book-from'), /T09:00$/);
  assert.deepEqual(await page.locator('form.booking .member:has(input:checked)').allTextContents(), ['GPU 0']);
  await page.locator('form.booking .member:has-text("GPU 1") input').check();
  await page.click('form.booking button:has-text("Show what changes")');
  await page.waitForSelector(`form.booking .problem:has-text("GPU 1 of"):has-text("is reserved for bob by reservation ${other.id}")`);
  troubles.splice(0); // refusals are told in the console by the browser itself
  await page.locator('form.booking .member:has-text("GPU 1") input').uncheck();
  await page.locator('form.booking .member:has-text("GPU 2") input').check();
  await page.fill('#book-to', (await page.inputValue('#book-from')).replace('09:00', '13:00'));
  await page.fill('#book-note', '');
  await page.click('form.booking button:has-text("Show what changes")');
  await page.waitForSelector('table.changes');
  assert.deepEqual(await page.locator('table.changes tbody tr').evaluateAll((rows) => rows.map((r) => [...r.cells].map((c) => c.textContent.replace(/\s/g, ' ')))),
    [['GPUs', 'GPU 0', 'GPU 0, GPU 2'], ['how long', '2 h', '4 h'], ['note', 'course', 'none']]);
  assert.equal((await all()).find((r) => r.id === made.id).for_s, 7200); // only shown
  assert.deepEqual(await audit(page), []);
  await page.click(`form.booking button:has-text("Change reservation ${made.id}")`);
  await page.waitForSelector('form.booking', { state: 'detached' });
  const now = (await all()).find((r) => r.id === made.id);
  assert.deepEqual([now.gpu_indices, now.for_s, now.note, now.begins], [[0, 2], 4 * 3600, null, made.begins]);
  await page.click(edit);
  await page.click('form.booking button:has-text("Show what changes")');
  await page.waitForSelector('text=nothing: it is so already');
  assert.equal(await page.isDisabled('form.booking button[type="submit"]'), true);
  await page.click('form.booking button:has-text("Cancel")');
  for (const scheme of ['light', 'dark'])
    for (const width of [1280, 375]) {
      const narrow = await context.newPage();
      await narrow.emulateMedia({ colorScheme: scheme });
      await narrow.setViewportSize({ width, height: 800 });
      await narrow.goto(`${gpumgr.url}calendar?step=1&span=day`);
      await narrow.click(edit);
      await narrow.selectOption('#book-often', 'weekdays');
      await narrow.fill('#book-note', 'a course with a rather long name that goes on and on');
      await narrow.click('form.booking button:has-text("Show what changes")');
      await narrow.waitForSelector('table.changes');
      await settled(narrow);
      assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${scheme} ${width}: no wider than the window`);
      assert.deepEqual(await audit(narrow), []);
      if (process.env.SHOTS) await narrow.screenshot({ path: `${process.env.SHOTS}/calendar-edit-${scheme}-${width}.png`, fullPage: true });
      await narrow.close();
    }
  await takeAllBack();
  assert.deepEqual(troubles.splice(0), []);
});
