/* The page in a browser:  browser_test.mjs [--base URL [--key KEY]] [NAME...]
 *
 * Without an address it is served by mock_server.mjs, whose answers are known; with that of a `plumb serve`, which
 * asks for KEY, the tests run whose answers may be any. */
import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { answers, ask, askAndWait, launch, overflowing, settled, transcript, until, untilText, withPage } from './browser.mjs';
import { runTests, test } from './check.mjs';
import { defineMockTests } from './browser_mock_tests.mjs';
import { MockServer } from './mock_server.mjs';

const { values: { base: given, key = null }, positionals: names } = parseArgs({
  options: { base: { type: 'string' }, key: { type: 'string' } }, allowPositionals: true,
});
const mock = given ? null : new MockServer();
const base = given ? new URL('/', given).href : await mock.start();
const browser = await launch();
// Answers of a real model are kept short.
const settings = given ? { max_tokens: '16', thinking: 0 } : null;

const onPage = (name, options, run) => test(name, () => withPage(browser, base, { settings, key, ...options }, run));
const button = (scope, name) => scope.getByRole('button', { name, exact: true });

onPage('send_and_reload', {}, async (page) => {
  await askAndWait(page, 'One?');
  await askAndWait(page, 'Two?');
  const before = await transcript(page);
  assert.deepEqual(before.map(([role]) => role), ['user', 'assistant', 'user', 'assistant']);
  assert.deepEqual([before[0][2], before[2][2]], ['One?', 'Two?']);
  assert.deepEqual([before[1][1], before[3][1]], ['done', 'done']);
  await untilText(answers(page).last().locator('.figures'), /\d+ tokens · prompt of \d+/);
  await page.reload();
  await until('the conversation after a reload', async () => (await transcript(page)).length === 4);
  assert.deepEqual(await transcript(page), before);
  assert.equal(await page.locator('.conversation').textContent(), 'One?');
  assert.equal(await page.title(), 'One? · plumb');
});

onPage('again_and_versions', {}, async (page) => {
  const answer = await askAndWait(page, 'One?');
  await button(answer, 'Answer again').click();
  await untilText(answers(page).locator('.branches'), '2/2');
  await settled(page);
  await button(answers(page).first(), 'Previous version').click();
  await untilText(answers(page).locator('.branches'), '1/2');
  assert.ok(await button(answers(page).first(), 'Previous version').isDisabled());
  assert.equal(await page.evaluate(() => document.activeElement.title), 'Next version');
  await page.reload();
  await untilText(answers(page).locator('.branches'), '1/2');
});

onPage('edit_and_branch', {}, async (page) => {
  await askAndWait(page, 'One?');
  await askAndWait(page, 'Two?');
  const first = page.locator('.message').first();
  await first.hover();
  await button(first, 'Edit').click();
  await page.getByLabel('Edit the message').fill('Three?');
  await page.getByLabel('Edit the message').press('Enter');
  await until('the new branch', async () => (await transcript(page)).length === 2);
  await settled(page);
  assert.equal((await transcript(page))[0][2], 'Three?');
  await button(page.locator('.message').first(), 'Previous version').click();
  await until('the old branch', async () => (await transcript(page)).length === 4);
  assert.deepEqual((await transcript(page)).map((message) => message[2])[2], 'Two?');
  // An edit that is given up changes nothing.
  await page.locator('.message').first().hover();
  await button(page.locator('.message').first(), 'Edit').click();
  await page.getByLabel('Edit the message').fill('Never');
  await page.getByLabel('Edit the message').press('Escape');
  assert.equal((await transcript(page))[0][2], 'One?');
  assert.equal(await page.locator('.message').count(), 4);
});

onPage('stop', { settings: given ? { thinking: 0 } : null }, async (page) => {
  await ask(page, mock ? 'mock:hold' : 'Write about everything.');
  if (mock) await untilText(answers(page).locator('.content'), 'The first half');
  // A real answer may end before it can be stopped.
  await page.keyboard.press('Escape');
  await settled(page);
  const state = (await transcript(page))[1][1];
  assert.ok(state === 'stopped' || (given && state === 'done'), state);
  await askAndWait(page, 'And now?');
  assert.equal((await transcript(page))[3][1], 'done');
});

onPage('conversations', {}, async (page) => {
  await askAndWait(page, 'First');
  await page.keyboard.press('Control+k');
  await page.locator('#welcome').waitFor();
  await askAndWait(page, 'Second');
  assert.deepEqual(await page.locator('.conversation').allTextContents(), ['Second', 'First']);
  await button(page, 'First').click();
  await until('the first', async () => (await transcript(page))[0]?.[2] === 'First');
  await page.goBack();
  await until('the second', async () => (await transcript(page))[0]?.[2] === 'Second');
  await button(page, 'More about Second').click();
  await button(page.locator('#item-menu'), 'Rename').click();
  await page.getByLabel('New title').fill('Renamed');
  await page.getByLabel('New title').press('Enter');
  await untilText(page.locator('#title'), 'Renamed');
  await button(page, 'More about First').click();
  await button(page.locator('#item-menu'), 'Delete').click();
  await until('one less', async () => (await page.locator('.conversation').count()) === 1);
  await button(page.locator('#toast'), 'Undo').click();
  await until('the first again', async () => (await transcript(page))[0]?.[2] === 'First');
  await button(page, 'More about Renamed').click();
  await button(page.locator('#item-menu'), 'Delete').click();
  await until('one less', async () => (await page.locator('.conversation').count()) === 1);
  await page.reload();
  await until('what is left', async () => (await page.locator('.conversation').allTextContents()).join() === 'First');
});

onPage('export_and_import', {}, async (page, context) => {
  await askAndWait(page, 'Keep this');
  const before = await transcript(page);
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Export all conversations').click()]);
  const file = await download.path();
  await button(page, 'More about Keep this').click();
  await button(page.locator('#item-menu'), 'Delete').click();
  await page.locator('#welcome').waitFor();
  await page.locator('#import-file').setInputFiles(file);
  await untilText(page.locator('#toast'), '1 imported');
  await button(page, 'Keep this').click();
  await until('the conversation', async () => (await transcript(page)).length === 2);
  assert.deepEqual(await transcript(page), before);
  await page.locator('#import-file').setInputFiles(file);
  await untilText(page.locator('#toast'), '0 imported, 1 were here already');
  await page.locator('#import-file').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{}') });
  await untilText(page.locator('#toast'), 'no conversations of plumb');
  assert.equal(await page.locator('.conversation').count(), 1);
  // Another window of the page hears of it.
  const other = await context.newPage();
  await other.goto(base);
  await untilText(other.locator('#conversations'), 'Keep this');
  await page.keyboard.press('Control+k');
  await askAndWait(page, 'New one');
  await untilText(other.locator('#conversations'), 'New one');
});

for (const scheme of ['light', 'dark']) {
  onPage(`phone_${scheme}`, { scheme, width: 375, height: 700, touch: true }, async (page) => {
    assert.deepEqual(await overflowing(page), []);
    const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(/^rgb\((\d\d?), /.test(dark), scheme === 'dark', dark);
    await askAndWait(page, `A word without any end: ${'endless'.repeat(60)}`);
    await askAndWait(page, mock ? 'mock:sample' : 'Two?');
    assert.deepEqual(await overflowing(page), []);
    assert.ok(!(await page.locator('#sidebar').isVisible()));
    await button(page, 'Conversations').click();
    await page.locator('#sidebar').waitFor();
    await until('the list within the window', () => page.evaluate(() => {
      const { left, right } = document.querySelector('#sidebar').getBoundingClientRect();
      return left === 0 && right < innerWidth;
    }));
    await button(page, 'Settings').click();
    const dialog = await page.locator('#settings').boundingBox();
    assert.ok(dialog.x >= 0 && dialog.x + dialog.width <= 375);
    await button(page.locator('#settings'), 'Done').click();
    await button(page, 'New chat').click();
    await page.locator('#sidebar').waitFor({ state: 'hidden' });
    assert.equal(await page.locator('.message').count(), 0);
  });
}

onPage('theme', { scheme: 'dark' }, async (page) => {
  const theme = () => page.locator('html').getAttribute('data-theme');
  assert.equal(await theme(), 'dark');
  await button(page, 'Switch between light and dark').click();
  assert.equal(await theme(), 'light');
  await page.reload();
  assert.equal(await theme(), 'light');
  await page.emulateMedia({ colorScheme: 'light' });
  assert.equal(await theme(), 'light');
  await button(page, 'Switch between light and dark').click();
  await button(page, 'Switch between light and dark').click();
  await page.emulateMedia({ colorScheme: 'dark' }); // followed again
  await until('the system\'s theme', async () => (await theme()) === 'dark');
});

/* Everything by keys alone, with the focus always to be seen. */
onPage('keyboard', {}, async (page) => {
  const focused = () => page.evaluate(() => {
    const { activeElement } = document;
    const style = getComputedStyle(activeElement);
    const ring = style.outlineStyle !== 'none' || activeElement.matches('#input');
    return { label: activeElement.getAttribute('aria-label') ?? activeElement.textContent, ring };
  });
  const go = async (key, label) => {
    for (let i = 0; i < 60; i += 1) {
      await page.keyboard.press(key);
      const now = await focused();
      assert.ok(now.ring, `no focus ring on ${now.label}`);
      if (now.label === label) return;
    }
    assert.fail(`${key} does not lead to ${label}`);
  };
  assert.equal((await focused()).label, 'Message');
  await page.keyboard.type('First line');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('second line');
  await page.keyboard.press('Enter');
  await answers(page).first().waitFor({ state: 'attached' });
  await settled(page);
  assert.equal((await transcript(page))[0][2], 'First line\nsecond line');
  assert.equal((await focused()).label, 'Message');

  await go('Shift+Tab', 'Answer again');
  await page.keyboard.press('Enter');
  await untilText(answers(page).locator('.branches'), '2/2');
  await settled(page);
  await go('Shift+Tab', 'Previous version');
  await page.keyboard.press('Space');
  await untilText(answers(page).locator('.branches'), '1/2');

  await go('Shift+Tab', 'Edit');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('Changed');
  await page.keyboard.press('Enter');
  await until('the new branch', async () => (await transcript(page))[0][2] === 'Changed');
  await settled(page);

  await go('Shift+Tab', 'Settings');
  await page.keyboard.press('Enter');
  await page.locator('#settings').waitFor();
  await go('Tab', ''); // the system prompt
  await page.keyboard.type('Be brief.');
  await page.keyboard.press('Escape');
  await page.locator('#settings').waitFor({ state: 'hidden' });
  assert.equal((await focused()).label, 'Settings');

  await go('Shift+Tab', 'More about Changed');
  await page.keyboard.press('Enter');
  await until('the menu', async () => (await focused()).label === 'Rename');
  await page.keyboard.press('ArrowUp');
  assert.equal((await focused()).label, 'Delete');
  await page.keyboard.press('ArrowDown');
  assert.equal((await focused()).label, 'Rename');
  await page.keyboard.press('Enter');
  await page.keyboard.type('Named');
  await page.keyboard.press('Enter');
  assert.equal((await focused()).label, 'Named');

  await page.keyboard.press('Control+k');
  await page.locator('#welcome').waitFor();
  assert.equal((await focused()).label, 'Message');
});

if (key) {
  onPage('key_of_a_server', { key: null, errors: /401/, waitFor: '#key-dialog[open]' }, async (page) => {
    await page.getByLabel('Key', { exact: true }).fill('wrong');
    await page.keyboard.press('Enter');
    await untilText(page.locator('#key-text'), 'does not take this key');
    await page.getByLabel('Key', { exact: true }).fill(key);
    await page.keyboard.press('Enter');
    await page.locator('#model:not(.bad):not(:empty)').waitFor();
    await askAndWait(page, 'One?');
    assert.equal((await transcript(page))[1][1], 'done');
  });
}

if (mock) defineMockTests(browser, base, mock);
await runTests(names);
await browser.close();
mock?.stop();
