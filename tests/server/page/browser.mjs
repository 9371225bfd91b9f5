/* A browser that is watched: whatever a page logs as an error, asks of another server, opens or refuses by its
 * policy fails the test that had it open. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT ?? 'playwright-core');
const PATIENCE = 60000; // milliseconds; for conditions, which are met at once on an idle machine

export async function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // No name is resolved: were a request to leave, it would not get far.
    args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
  });
}

/* Calls `run(page, watch)` with a fresh profile.  `options`: scheme, width, height, touch, settings and key (of the page),
 * errors (a pattern of console errors that belong to the test), waitFor (what is there when the page is). */
export async function withPage(browser, base, options, run) {
  const { scheme = 'light', width = 1200, height = 800, touch = false, settings = null, key = null, errors = null,
    waitFor = '#model:not(:empty)' } = options;
  const context = await browser.newContext({
    colorScheme: scheme, viewport: { width, height }, hasTouch: touch, isMobile: touch, reducedMotion: 'reduce',
  });
  context.setDefaultTimeout(PATIENCE);
  const seen = [];
  const watch = (page) => {
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !errors?.test(message.text())) {
        seen.push(`console: ${message.text()}`);
      }
    });
    page.on('pageerror', (error) => seen.push(`uncaught: ${error.message}`));
    page.on('dialog', (dialog) => {
      seen.push(`dialog: ${dialog.message()}`);
      dialog.dismiss().catch(() => {});
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(base) && !url.startsWith('blob:')) seen.push(`request: ${url}`);
    });
    page.on('popup', (popup) => seen.push(`window: ${popup.url()}`));
    page.on('framenavigated', (frame) => {
      if (frame !== page.mainFrame() || !frame.url().startsWith(base)) seen.push(`navigation: ${frame.url()}`);
    });
  };
  await context.addInitScript((kept) => {
    for (const [name, value] of Object.entries(kept)) {
      if (value !== null && localStorage.getItem(name) === null) localStorage.setItem(name, value);
    }
    document.addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  }, { 'plumb-settings': settings && JSON.stringify(settings), 'plumb-api-key': key });
  try {
    const page = await context.newPage();
    watch(page);
    await page.goto(base);
    await page.locator(waitFor).waitFor();
    await run(page, context);
    assert.deepEqual(seen, []);
  } finally {
    await context.close();
  }
}

/* Waits until `condition()` gives something true, and returns that. */
export async function until(what, condition) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`this never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export async function untilText(locator, text) {
  await until(`"${text}" in ${locator}`, async () => {
    const found = (await locator.allTextContents()).join('\n');
    return typeof text === 'string' ? found.includes(text) : text.test(found);
  });
}

/* The messages that are shown, each [role, state, text as it can be read]. */
export async function transcript(page) {
  return page.locator('.message').evaluateAll((messages) => messages.map((message) => [
    message.dataset.role, message.dataset.state ?? '', message.querySelector('.bubble, .content')?.textContent ?? '']));
}

export const answers = (page) => page.locator('.message[data-role="assistant"]');

/* Types a message and sends it; returns its answer's locator, which has begun. */
export async function ask(page, text) {
  const before = await answers(page).count();
  await page.locator('#input').fill(text);
  await page.locator('#input').press('Enter');
  await answers(page).nth(before).waitFor({ state: 'attached' });
  return answers(page).nth(before);
}

/* Until nothing runs in the conversation that is shown. */
export async function settled(page) {
  await page.locator('#messages:not([data-running])').waitFor({ state: 'attached' });
}

export async function askAndWait(page, text) {
  const answer = await ask(page, text);
  await settled(page);
  return answer;
}

/* Whether something is wider than the window, by its selector. */
export async function overflowing(page) {
  return page.evaluate(() => {
    const wide = [document.documentElement, document.body, document.querySelector('#main'), document.querySelector('#scroller'),
      document.querySelector('#composer'), ...document.querySelectorAll('.message')];
    return wide.filter((element) => element.scrollWidth > element.clientWidth || element.getBoundingClientRect().right > innerWidth + 0.5)
      .map((element) => element.id || element.className || element.tagName);
  });
}
