// For everyone: clean under axe in both themes, one column on a phone, all of it by keyboard.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { audit, Instance, openBrowser, openContext, pagesOf, settled, signedIn, until, uuids } from './harness.mjs';

let gpumgr, browser, state, ids;
before(async () => {
  gpumgr = await Instance.start();
  browser = await openBrowser();
  const { context } = await signedIn(browser, gpumgr);
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  ids = await uuids(page);
  state = await context.storageState();
  await context.close();
});
afterEach(async () => { for (const context of browser?.contexts() ?? []) await context.close(); });
after(async () => {
  await browser?.close();
  await gpumgr?.stop();
});

const NAMES = Object.keys(pagesOf(''));
for (const colorScheme of ['light', 'dark']) {
  for (const name of NAMES) {
    test(`${name}: clean under axe, ${colorScheme}`, async () => {
      const { context } = await openContext(browser, { storageState: state, colorScheme, reducedMotion: 'reduce' });
      const page = await context.newPage();
      await page.goto(gpumgr.url + pagesOf(ids[2])[name]);
      await settled(page);
      assert.deepEqual(await audit(page), []);
      await context.close();
    });
  }
  test(`sign-in: clean under axe, ${colorScheme}`, async () => {
    const { context } = await openContext(browser, { colorScheme });
    const page = await context.newPage();
    await page.goto(gpumgr.url);
    await page.waitForSelector('text=With a link');
    assert.deepEqual(await audit(page), []);
    await context.close();
  });
}

test('the theme follows the system, can be chosen, and is remembered', async () => {
  const { context } = await openContext(browser, { storageState: state, colorScheme: 'dark' });
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await page.click('button[aria-label="Switch to light colours"]');
  assert.equal(await theme(), 'light');
  await page.reload();
  await settled(page);
  assert.equal(await theme(), 'light');
  await context.close();
});

for (const name of NAMES) {
  test(`${name}: 375 px wide, nothing to scroll sideways`, async () => {
    const { context } = await openContext(browser, { storageState: state, viewport: { width: 375, height: 800 }, hasTouch: true });
    const page = await context.newPage();
    await page.goto(gpumgr.url + pagesOf(ids[2])[name]);
    await settled(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 375, `it is ${width} px wide`);
    const hidden = await page.$$eval('nav a', (all) => all.filter((e) => e.getBoundingClientRect().right > 375).map((e) => e.textContent));
    assert.deepEqual(hidden, [], 'pages that the menu does not show');
    if (name === 'overview') {
      const lefts = await page.$$eval('[data-gpu]', (all) => [...new Set(all.map((e) => Math.round(e.getBoundingClientRect().left)))]);
      assert.equal(lefts.length, 1, 'one column');
    }
    await context.close();
  });
}

const focused = (page) => page.evaluate(() => ({ text: document.activeElement?.textContent?.slice(0, 40) ?? '', gpu: document.activeElement?.getAttribute('data-gpu'), id: document.activeElement?.id, label: document.activeElement?.getAttribute('aria-label') ?? '' }));

test('keyboard only: past the menu, among the cards, into one, through its chart, and back', async () => {
  const { context } = await openContext(browser, { storageState: state });
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await settled(page);
  await page.evaluate(() => (document.activeElement instanceof HTMLElement ? document.activeElement.blur() : undefined));
  await page.keyboard.press('Tab');
  assert.match((await focused(page)).text, /Skip to the content/);
  const shown = await page.$eval('.skip', (e) => e.getBoundingClientRect().top >= 0);
  assert.ok(shown, 'the skip link is seen when it has the focus');
  await page.keyboard.press('Enter');
  assert.equal((await focused(page)).id, 'main');
  assert.equal(page.url(), gpumgr.url);

  for (let i = 0; i < 20 && (await focused(page)).gpu === null; i++) await page.keyboard.press('Tab');
  assert.equal((await focused(page)).gpu, '0');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, 'none', 'the focus is seen');
  await page.keyboard.press('ArrowRight');
  assert.equal((await focused(page)).gpu, '1');
  await page.keyboard.press('ArrowDown');
  assert.equal((await focused(page)).gpu, '5');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.waitForSelector('h1:has-text("GPU 2")');
  await settled(page);

  for (let i = 0; i < 40 && !/^Temperature of GPU 2/.test((await focused(page)).label); i++) await page.keyboard.press('Tab');
  assert.match((await focused(page)).label, /^Temperature of GPU 2/);
  await page.keyboard.press('ArrowLeft');
  const voice = () => page.textContent('.shell > [role=status].unseen');
  await until('a spoken value', async () => /core \d+\s?°C/.test(await voice()));
  const said = await voice();
  for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowLeft');
  assert.notEqual(await voice(), said);
  await page.keyboard.press('+');
  await page.waitForFunction(() => new URL(location.href).searchParams.has('from'));
  await page.goBack();
  await page.waitForFunction(() => !new URL(location.href).searchParams.has('from'));
  await context.close();
});

test('keyboard only: signing in', async () => {
  const { context } = await openContext(browser, { expect: [/401/] });
  const page = await context.newPage();
  await page.goto(gpumgr.url);
  await page.waitForSelector('text=With a password');
  await page.keyboard.press('Tab');
  await page.keyboard.type('nobody');
  await page.keyboard.press('Tab');
  await page.keyboard.type('not the password');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.problem');
  await until('the focus on the reason', () => page.evaluate(() => document.activeElement?.classList.contains('problem')));
  await context.close();
});
