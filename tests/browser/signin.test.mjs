// Who may look: kept out without a session, in with a link or a password, out again.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { Instance, openBrowser, openContext, settled, signedIn } from './harness.mjs';

const REFUSED = [/Failed to load resource.*(401|403|429)/];
let gpumgr, browser;
before(async () => {
  gpumgr = await Instance.start();
  browser = await openBrowser();
});
afterEach(async () => { for (const context of browser?.contexts() ?? []) await context.close(); });
after(async () => {
  await browser?.close();
  await gpumgr?.stop();
});

test('without a session there is nothing but the door', async () => {
  const { context, troubles } = await openContext(browser, { expect: REFUSED });
  const page = await context.newPage();
  for (const path of ['', 'events', 'account', 'gpus/GPU-x']) {
    await page.goto(gpumgr.url + path);
    await page.waitForSelector('h1:has-text("gpumgr")');
    await page.waitForSelector('code:has-text("gpumgr web")');
    assert.equal(await page.$('[data-gpu]'), null);
  }
  for (const path of ['gpus', 'nodes', 'events', 'history?of=gpu:x&metric=y', 'sessions']) {
    const status = await page.evaluate(async (p) => (await fetch(new URL(`api/v1/${p}`, document.baseURI))).status, path);
    assert.equal(status, 401, path);
  }
  assert.deepEqual(troubles, []);
  await context.close();
});

test('a link signs in once, and leaves no secret in the address', async () => {
  const { context } = await openContext(browser, { expect: REFUSED });
  const page = await context.newPage();
  const link = await gpumgr.link();
  await page.goto(link);
  await page.waitForSelector('[data-gpu="7"]');
  assert.equal(page.url(), gpumgr.url);
  const cookie = (await context.cookies()).find((c) => c.name === `gpumgr_session_${gpumgr.port}`);
  assert.ok(cookie?.httpOnly && cookie.sameSite === 'Strict');
  await context.close();

  const again = await openContext(browser, { expect: REFUSED });
  const other = await again.context.newPage();
  await other.goto(link);
  await other.waitForSelector('.problem:has-text("A link works once")');
  assert.ok(!other.url().includes('#'));
  assert.equal(await other.$('[data-gpu]'), null);
  await again.context.close();
});

test('a password is set, a wrong one is refused, the right one lets in, signing out shuts the door', async () => {
  const { context } = await signedIn(browser, gpumgr, { expect: REFUSED });
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}account`);
  await settled(page);
  const name = await page.textContent('main h1');
  await page.fill('section[aria-label=Password] input[autocomplete=new-password] >> nth=0', 'correct horse battery');
  await page.fill('section[aria-label=Password] input[autocomplete=new-password] >> nth=1', 'correct horse batterx');
  await page.click('section[aria-label=Password] button[type=submit]');
  await page.waitForSelector('.problem:has-text("differ")');
  await page.fill('section[aria-label=Password] input[autocomplete=new-password] >> nth=1', 'correct horse battery');
  await page.click('section[aria-label=Password] button[type=submit]');
  await page.waitForSelector('text=The password was changed');

  await page.click('text=Sign out');
  await page.waitForSelector('text=With a password');
  await page.fill('input[name=username]', name);
  await page.fill('input[name=password]', 'wrong wrong wrong');
  await page.click('button[type=submit]');
  await page.waitForSelector('.problem');
  assert.equal(await page.$('.side'), null);
  await page.fill('input[name=password]', 'correct horse battery');
  await page.click('button[type=submit]');
  await page.waitForSelector('nav[aria-label=Pages]');
  await context.close();
});

test('a session that is ended elsewhere is kept out at once, and says so', async () => {
  const a = await signedIn(browser, gpumgr, { expect: REFUSED });
  const b = await signedIn(browser, gpumgr, { expect: REFUSED, userAgent: 'Mozilla/5.0 (X11; Linux) Firefox/140.0' });
  const page = await b.context.newPage();
  await page.goto(`${gpumgr.url}groups`);
  await settled(page);
  const admin = await a.context.newPage();
  await admin.goto(`${gpumgr.url}account`);
  await admin.click('.rows li:has-text("Firefox") button:has-text("End")');
  await admin.waitForFunction(() => ![...document.querySelectorAll('.rows li')].some((e) => /Firefox/.test(e.textContent)));
  await page.click('nav a:has-text("Account")');
  await page.waitForSelector('text=You were signed out');
  await a.context.close();
  await b.context.close();
});

test('a token is shown once, works, and can be removed', async () => {
  const { context } = await signedIn(browser, gpumgr);
  const page = await context.newPage();
  await page.goto(`${gpumgr.url}account`);
  await page.fill('section[aria-label="Tokens for programs"] input', 'prometheus');
  await page.click('text=Make a token');
  const token = await page.textContent('.made code');
  const asked = await fetch(`${gpumgr.url}api/v1/gpus`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(asked.status, 200);
  await page.reload();
  await page.waitForSelector('.rows li:has-text("prometheus")');
  assert.ok(!(await page.content()).includes(token));
  await page.click('[aria-label="Remove prometheus"]');
  await page.waitForSelector('text=No token yet');
  assert.equal((await fetch(`${gpumgr.url}api/v1/gpus`, { headers: { Authorization: `Bearer ${token}` } })).status, 401);
  await context.close();
});

test('below a base path everything is found', async () => {
  const lab = await Instance.start('--server.base_path', '/lab/gpus/');
  try {
    const { context, troubles } = await signedIn(browser, lab);
    const page = await context.newPage();
    await page.goto(lab.url);
    await settled(page);
    await page.click('[data-gpu="3"]');
    await page.waitForSelector('h1:has-text("GPU 3")');
    assert.ok(new URL(page.url()).pathname.startsWith('/lab/gpus/gpus/GPU-'));
    await page.reload();
    await page.waitForSelector('h1:has-text("GPU 3")');
    assert.deepEqual(troubles, []);
    await context.close();
  } finally {
    await lab.stop();
  }
});
