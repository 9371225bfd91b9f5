/* Tests of the page whose answers must be known: mock_server.mjs gives them. */
import assert from 'node:assert/strict';
import { answers, ask, askAndWait, overflowing, settled, transcript, until, untilText, withPage } from './browser.mjs';
import { test } from './check.mjs';
import { hostileAnswers } from './hostile.mjs';

/* All that an answer may become. */
const ELEMENTS = ['A', 'ARTICLE', 'BLOCKQUOTE', 'BR', 'BUTTON', 'CODE', 'DETAILS', 'DIV', 'EM', 'FIGCAPTION', 'FIGURE', 'H2', 'H3',
  'H4', 'H5', 'H6', 'HR', 'INPUT', 'LI', 'OL', 'P', 'PRE', 'PROGRESS', 'S', 'SPAN', 'STRONG', 'SUMMARY', 'TABLE', 'TBODY', 'TD', 'TH',
  'THEAD', 'TR', 'UL', 'svg', 'use'];
const ATTRIBUTES = ['aria-busy', 'aria-hidden', 'aria-label', 'checked', 'class', 'data-phase', 'data-role', 'data-state', 'dir',
  'disabled', 'hidden', 'href', 'open', 'rel', 'role', 'start', 'tabindex', 'target', 'title', 'type'];

/* What of a part of the page is none of the page's own. */
const foreign = (locator) => locator.evaluate((root, [elements, attributes]) => {
  const found = [];
  for (const element of [root, ...root.querySelectorAll('*')]) {
    if (!elements.includes(element.tagName)) found.push(element.tagName);
    for (const { name, value } of element.attributes) {
      if (!attributes.includes(name)) found.push(`${element.tagName} ${name}`);
      if (name !== 'href') continue;
      const good = element.tagName === 'A' ? /^(https?:\/\/|mailto:)/ : /^#icon-[a-z]+$/;
      if (!good.test(value)) found.push(`${name} ${value}`);
    }
    if (element.tagName === 'A' && !element.relList.contains('noopener')) found.push('a link that can reach back');
    if (element.tagName === 'INPUT' && !(element.type === 'checkbox' && element.disabled)) found.push('a field');
  }
  return [...new Set(found)];
}, [ELEMENTS, ATTRIBUTES]);

const button = (scope, name) => scope.getByRole('button', { name, exact: true });

/* The key as it is kept for good, and for the window. */
const keptKeys = (page) => page.evaluate(() => [localStorage, sessionStorage].map((storage) => storage.getItem('plumb-api-key')));

export function defineMockTests(browser, base, mock) {
  const onPage = (name, options, run) => test(name, async () => {
    const before = mock.requests.length;
    await withPage(browser, base, options, (page, context) => run(page, {
      context, requests: () => mock.requests.slice(before),
    }));
  });

  onPage('welcome', {}, async (page) => {
    await page.locator('#welcome').waitFor();
    assert.ok(await page.locator('#scroller').evaluate((scroller) => scroller.scrollHeight <= scroller.clientHeight),
      'a page without messages scrolls');
  });

  onPage('streaming', {}, async (page) => {
    const answer = await ask(page, 'mock:hold');
    await untilText(answer.locator('.content'), 'The first half,');
    assert.equal(await answer.getAttribute('aria-busy'), 'true');
    assert.ok(await page.locator('#stop').isVisible() && !(await page.locator('#send').isVisible()));
    await untilText(page.locator('#announce'), 'Answering');
    mock.release();
    await settled(page);
    assert.equal((await transcript(page))[1][2], 'The first half, and the second.');
    assert.equal(await answer.getAttribute('aria-busy'), 'false');
    assert.ok(await page.locator('#send').isVisible() && !(await page.locator('#stop').isVisible()));
    await untilText(page.locator('#announce'), 'Answer complete');
    await untilText(answer.locator('.figures'), '40.0 tokens/s · 6 tokens · prompt of 1,234 (1,024 cached) in 0.4 s');
    await untilText(page.locator('#context'), '1,240 of 65,536');
  });

  onPage('stop_closes_the_request', {}, async (page) => {
    const aborted = mock.aborted;
    await ask(page, 'mock:hold');
    await untilText(answers(page).locator('.content'), 'The first half,');
    await button(page, 'Stop').click();
    await settled(page);
    await until('the server noticing', () => mock.aborted === aborted + 1);
    assert.deepEqual((await transcript(page))[1], ['assistant', 'stopped', 'The first half,']);
    await untilText(answers(page).locator('.notice'), 'Stopped.');
    await untilText(page.locator('#announce'), 'Stopped');
    await page.reload();
    await until('the half that is kept', async () => (await transcript(page))[1]?.[2] === 'The first half,');
  });

  onPage('thinking', {}, async (page) => {
    const answer = await ask(page, 'mock:thinking');
    await untilText(answer.locator('summary'), 'Thinking');
    assert.equal(await answer.getAttribute('data-phase'), 'thinking');
    assert.ok(!(await answer.locator('.thinking .markdown').isVisible()));
    await answer.locator('summary').click();
    await untilText(answer.locator('.thinking .markdown'), 'Two and two');
    mock.release();
    await settled(page);
    await untilText(answer.locator('.thinking .markdown'), 'Two and two is four.');
    await untilText(answer.locator('summary'), 'Thought');
    assert.equal((await transcript(page))[1][2], 'Four.');
  });

  onPage('progress', {}, async (page) => {
    const answer = await ask(page, 'mock:progress');
    await untilText(answer.locator('.waiting'), 'Reading the prompt: 4,096 of 12,000 tokens');
    assert.equal(await answer.locator('progress').getAttribute('value'), '4096');
    mock.release();
    await settled(page);
    assert.ok(!(await answer.locator('.waiting').isVisible()));
  });

  onPage('reload_while_answering', {}, async (page) => {
    await ask(page, 'mock:hold');
    await untilText(answers(page).locator('.content'), 'The first half,');
    await page.reload();
    await until('the question', async () => (await transcript(page))[0]?.[2] === 'mock:hold');
    assert.equal((await transcript(page))[1][1], 'stopped');
  });

  /* Two windows talk in one conversation at the same time: nothing of either is lost. */
  onPage('two_windows', {}, async (page, { context }) => {
    await askAndWait(page, 'One?');
    const other = await context.newPage();
    await other.goto(page.url());
    await until('the conversation', async () => (await transcript(other)).length === 2);
    await other.locator('.message').first().hover();
    await button(other.locator('.message').first(), 'Edit').click();
    await other.getByLabel('Edit the message').fill('Not yet');
    await ask(page, 'mock:hold');
    await untilText(other.locator('.notice'), 'Another window writes this answer.');
    await askAndWait(other, 'Two?');
    mock.release();
    await settled(page);
    const whole = [['user', '', 'One?'], ['assistant', 'done', 'You said: One?'], ['user', '', 'mock:hold'],
      ['assistant', 'done', 'The first half, and the second.'], ['user', '', 'Two?'], ['assistant', 'done', 'You said: Two?']];
    const same = (expected, found) => JSON.stringify(expected) === JSON.stringify(found);
    await until('both in one window', async () => same(whole, await transcript(page)));
    // What is being edited stays; its text is not shown meanwhile.
    await until('and in the other', async () => same(whole.slice(1), (await transcript(other)).slice(1)));
    assert.equal(await other.getByLabel('Edit the message').inputValue(), 'Not yet');
    for (const window of [page, other]) {
      await window.reload();
      await until('both after a reload', async () => same(whole, await transcript(window)));
    }
    // A conversation that is removed in the middle of an answer does not come back.
    await ask(page, 'mock:hold');
    await untilText(answers(page).last().locator('.content'), 'The first half,');
    await button(other, 'More about One?').click();
    await button(other.locator('#item-menu'), 'Delete').click();
    await page.locator('#welcome').waitFor();
    await settled(page);
    await page.reload();
    await page.locator('#model:not(:empty)').waitFor();
    assert.equal(await page.locator('.conversation').count(), 0);
  });

  /* Nor where they save before they hear of each other. */
  onPage('deaf_window', {}, async (page, { context }) => {
    await askAndWait(page, 'One?');
    const other = await context.newPage();
    await other.addInitScript(() => { globalThis.BroadcastChannel = class { postMessage() {} }; });
    await other.goto(page.url());
    await until('the conversation', async () => (await transcript(other)).length === 2);
    await askAndWait(page, 'Two?');
    await askAndWait(other, 'Three?');
    await other.reload();
    await untilText(other.locator('.branches'), '2/2');
    assert.equal((await transcript(other))[3][2], 'You said: Three?');
    await button(other, 'Previous version').click();
    await until('the other branch', async () => (await transcript(other))[3]?.[2] === 'You said: Two?');
  });

  /* The list is made anew whenever an answer ends. */
  onPage('rename_while_answering', {}, async (page) => {
    await ask(page, 'mock:hold');
    await untilText(answers(page).locator('.content'), 'The first half,');
    await button(page, 'More about mock:hold').click();
    mock.release();
    await settled(page);
    await button(page.locator('#item-menu'), 'Rename').click();
    await page.getByLabel('New title').fill('Renamed');
    await page.keyboard.press('Enter');
    await untilText(page.locator('.conversation'), 'Renamed');
  });

  onPage('finding', {}, async (page) => {
    const find = page.getByLabel('Find conversations');
    for (const word of ['one', 'two', 'three', 'four', 'five', 'six', 'seven']) {
      await page.keyboard.press('Control+k');
      await askAndWait(page, `Number ${word}`);
    }
    assert.ok(!(await find.isVisible()), 'seven are seen at a glance');
    await page.keyboard.press('Control+k');
    await askAndWait(page, 'Another');
    await askAndWait(page, 'with the NEEDLE in it');
    const titles = () => page.locator('.conversation').allTextContents();
    await find.fill('need  You');
    assert.deepEqual(await titles(), ['Another']);
    await find.fill('number F');
    assert.deepEqual(await titles(), ['Number five', 'Number four']);
    await button(page, 'Number four').click();
    await until('that one', async () => (await transcript(page))[0][2] === 'Number four');
    assert.equal((await titles()).length, 2);
    await find.fill('nowhere');
    await untilText(page.locator('#conversations'), 'Nothing found');
    await ask(page, 'mock:hold'); // Esc clears what is looked for first, and then stops
    await find.press('Escape');
    assert.equal((await titles()).length, 8);
    assert.ok(await page.locator('#stop').isVisible());
    await find.press('Escape');
    await settled(page);
  });

  onPage('draft', {}, async (page) => {
    await page.locator('#input').fill('First line\nsecond line');
    await page.reload();
    await until('the draft', async () => (await page.locator('#input').inputValue()) === 'First line\nsecond line');
    assert.ok(await page.locator('#send').isEnabled());
    // Enter that ends a composition in Safari sends nothing.
    await page.locator('#input').evaluate((input) => {
      input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }));
    });
    assert.equal((await transcript(page)).length, 0);
    await page.locator('#input').press('Enter');
    await settled(page);
    assert.equal((await transcript(page)).length, 2);
    await page.reload();
    await page.locator('#model:not(:empty)').waitFor();
    assert.equal(await page.locator('#input').inputValue(), '');
  });

  onPage('no_storage', {}, async (page, { context }) => {
    await context.addInitScript(() => {
      for (const name of ['indexedDB', 'localStorage', 'sessionStorage']) {
        Object.defineProperty(globalThis, name, { get() { throw new DOMException('denied', 'SecurityError'); } });
      }
    });
    await page.reload();
    await untilText(page.locator('#welcome-note'), 'This browser keeps nothing');
    await askAndWait(page, 'One?');
    assert.equal((await transcript(page))[1][2], 'You said: One?');
  });

  onPage('answers_go_on_elsewhere', {}, async (page) => {
    await ask(page, 'mock:hold');
    await untilText(answers(page).locator('.content'), 'The first half,');
    await page.keyboard.press('Control+k');
    await askAndWait(page, 'Meanwhile');
    assert.equal((await transcript(page))[1][2], 'You said: Meanwhile');
    assert.equal(await page.locator('.conversation.busy').textContent(), 'mock:hold');
    mock.release();
    await page.locator('.conversation.busy').waitFor({ state: 'detached' });
    await button(page, 'mock:hold').click();
    await until('the whole answer', async () => (await transcript(page))[1][2] === 'The first half, and the second.');
  });

  /* What goes wrong, what is kept of it and what is said. */
  const faults = {
    refused: ['', "'temperature' is 9, expected 0 to 2"],
    failing: ['Half an answer', 'a drive could not be read'],
    unended: ['Half an answer', 'The connection ended before the answer did'],
    cut: ['Half an answer', 'The connection was lost'],
    garbage: ['', 'not JSON'],
  };
  for (const [name, [kept, said]] of Object.entries(faults)) {
    onPage(`fault_${name}`, { errors: /Failed to load resource/ }, async (page) => {
      const fails = async () => {
        if (name === 'cut') {
          await until('the part before the cut', async () => (await transcript(page))[1]?.[2] === kept);
          mock.release();
        }
        await settled(page);
        assert.deepEqual(await transcript(page), [['user', '', `mock:${name}`], ['assistant', 'failed', kept]]);
        await untilText(answers(page).locator('.notice.bad'), said);
      };
      const answer = await ask(page, `mock:${name}`);
      await fails();
      await button(answer, 'Try again').click();
      // What holds something stays, as another version.
      if (kept) await untilText(answers(page).locator('.branches'), '2/2');
      await fails();
      assert.equal(await answers(page).locator('.branches').isVisible(), kept !== '');
    });
  }

  onPage('length_and_empty', {}, async (page) => {
    const cut = await askAndWait(page, 'mock:length');
    await untilText(cut.locator('.notice'), 'the limit of tokens was reached');
    const empty = await askAndWait(page, 'mock:empty');
    await untilText(empty.locator('.notice'), 'The answer is empty.');
  });

  onPage('server_away', { errors: /ERR_CONNECTION_REFUSED|Failed to load/ }, async (page, { context }) => {
    await context.route('**/v1/chat/completions', (route) => route.abort('connectionrefused'));
    const answer = await askAndWait(page, 'Hello');
    await untilText(answer.locator('.notice.bad'), 'The server cannot be reached');
    await context.unroute('**/v1/chat/completions');
    await button(answer, 'Try again').click();
    await until('the answer', async () => (await transcript(page))[1]?.[2] === 'You said: Hello');
  });

  onPage('settings_reach_the_server', {}, async (page, { requests }) => {
    await button(page, 'Settings').click();
    await page.getByLabel('System prompt of this conversation').fill('Be brief.');
    await page.getByLabel('Begin new conversations with it').check();
    assert.equal(await page.getByLabel('Top p').getAttribute('placeholder'), '0.95');
    await page.getByLabel('Temperature').fill('0.5');
    await page.getByLabel('Top p').fill('7'); // out of range: not taken
    await page.getByLabel('Top k').fill('40');
    await page.getByLabel('Seed').fill('42');
    await page.getByLabel('Longest answer').fill('100');
    await page.keyboard.press('Escape');
    await button(page, 'Thinking 75').click();
    await page.getByLabel('How thoroughly to think').fill('40');
    await page.keyboard.press('Escape');
    await untilText(page.locator('#altered'), 'system prompt · temperature 0.5 · top k 40 · seed 42 · max tokens 100');
    await askAndWait(page, 'One?');
    await askAndWait(page, 'Two?');
    const { messages, ...rest } = requests().at(-1);
    assert.deepEqual(messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'One?' },
      { role: 'assistant', content: 'You said: One?' }, { role: 'user', content: 'Two?' }]);
    assert.deepEqual(rest, { model: mock.model, temperature: 0.5, top_k: 40, seed: 42, max_tokens: 100, chat_template_kwargs: { thinking: true },
      reasoning_effort: 40, stream: true, stream_options: { include_usage: true } });
    await page.reload();
    await page.keyboard.press('Control+k');
    await button(page, 'Thinking 40').click();
    await page.getByLabel('How thoroughly to think').fill('0');
    await page.keyboard.press('Escape');
    await askAndWait(page, 'Three?');
    const last = requests().at(-1);
    assert.deepEqual([last.chat_template_kwargs, last.reasoning_effort, last.messages[0].content],
      [{ thinking: false }, undefined, 'Be brief.']);
  });

  test('key_is_asked_for', async () => {
    mock.key = 'secret';
    try {
      const errors = /401/;
      await withPage(browser, base, { errors, waitFor: '#key-dialog[open]' }, async (page) => {
        await page.getByLabel('Key', { exact: true }).fill('wrong');
        await page.keyboard.press('Enter');
        await untilText(page.locator('#key-text'), 'does not take this key');
        await page.getByLabel('Key', { exact: true }).fill('secret');
        await page.keyboard.press('Enter');
        await untilText(page.locator('#model'), mock.model);
        await askAndWait(page, 'One?');
        assert.equal((await transcript(page))[1][2], 'You said: One?');
        // Kept for this window only; a reload has it still.
        assert.deepEqual(await keptKeys(page), [null, 'secret']);
        await page.reload();
        // The last that the page asks for by itself: it would be refused instead.
        await untilText(page.locator('#context'), ' of ');
        // The key changes: the request that is refused goes on with the new one.
        mock.key = 'other';
        await ask(page, 'Two?');
        await page.locator('#key-dialog[open]').waitFor();
        await page.getByLabel('Key', { exact: true }).fill('other');
        await page.getByLabel('Keep it in this browser').check();
        await button(page, 'Continue').click();
        await settled(page);
        assert.equal((await transcript(page))[3][2], 'You said: Two?');
        assert.deepEqual(await keptKeys(page), ['other', null]);
        // Without one the request has failed, and can be made again.
        mock.key = 'third';
        await ask(page, 'Three?');
        await page.locator('#key-dialog[open]').waitFor();
        await page.keyboard.press('Escape');
        await settled(page);
        await untilText(answers(page).last().locator('.notice.bad'), 'the API key is missing or wrong');
        await button(page, 'Settings').click();
        await button(page, 'Forget').click();
        await untilText(page.locator('#key-state'), 'No key is kept.');
        assert.deepEqual(await keptKeys(page), [null, null]);
      });
    } finally {
      mock.key = null;
    }
  });

  for (const [name, text] of Object.entries(hostileAnswers)) {
    onPage(name.replace('-', '_'), { width: 375 }, async (page) => {
      const answer = await askAndWait(page, `mock:${name}`);
      assert.equal((await transcript(page))[1][1], 'done');
      assert.deepEqual(await foreign(answer), []);
      assert.equal(await page.evaluate(() => globalThis.stolen), undefined);
      assert.deepEqual(await overflowing(page), []);
      const seen = await answer.locator('.content').textContent();
      if (text.startsWith('<script>')) assert.ok(seen.includes('<script>globalThis.stolen=1;alert(1)</script>'));
      if (name === 'hostile-links') {
        const links = await answer.locator('a').evaluateAll((all) => all.map((link) => link.href));
        assert.ok(links.includes('https://ok.example/path') && links.includes('https://ok.example/angle'));
        assert.ok(links.every((link) => /^(https:\/\/((ok|evil|x)\.example|x)\/|mailto:a@b\.example)/.test(link)), links.join(' '));
      }
      await answer.locator('.content').click({ position: { x: 5, y: 5 } });
      // It is as inert when it comes back, and as thoughts, titles and names.
      await page.reload();
      await until('the answer', async () => (await transcript(page))[1]?.[1] === 'done');
      assert.deepEqual(await foreign(answers(page).first()), []);
      assert.equal(await page.evaluate(() => globalThis.stolen), undefined);
    });
  }

  onPage('hostile_everywhere', { errors: /Failed to load resource/ }, async (page, { context }) => {
    const text = '<img src=x onerror="globalThis.stolen=1;alert(1)"> [x](javascript:alert(1))';
    await context.route('**/v1/models', (route) => route.fulfill({ json: { data: [{ id: text }] } }));
    await context.route('**/v1/chat/completions', (route) => route.fulfill({
      contentType: 'text/event-stream',
      body: `: prompt: <b> of <i>\n\ndata: ${JSON.stringify({ choices: [{ delta: { reasoning_content: text } }] })}\n\n`
        + `data: ${JSON.stringify({ error: { message: text } })}\n\n`,
    }));
    await page.reload();
    await untilText(page.locator('#model'), text);
    const answer = await askAndWait(page, text);
    await answer.locator('summary').click();
    await untilText(answer.locator('.thinking .markdown'), text);
    await untilText(answer.locator('.notice.bad'), text);
    await untilText(page.locator('.conversation'), '<img src=x');
    assert.deepEqual(await foreign(page.locator('.message').first()), []);
    assert.deepEqual(await foreign(answer), []);
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.evaluate(() => globalThis.stolen), undefined);
  });

  /* Code that grows keeps its element; who reads further up is left there. */
  onPage('long_answers', { height: 500 }, async (page) => {
    const answer = await ask(page, 'mock:long');
    await untilText(answer.locator('.content'), 'Paragraph 120');
    const place = () => page.locator('#scroller').evaluate((e) => [e.scrollTop, e.scrollHeight - e.clientHeight - e.scrollTop]);
    await until('the end in view', async () => (await place())[1] < 2);
    await page.locator('#scroller').evaluate((element) => { element.scrollTop = 300; });
    await page.locator('#to-end').waitFor();
    const first = await answer.locator('p').first().elementHandle();
    mock.release();
    await settled(page);
    await untilText(answer.locator('.content'), 'The end.');
    assert.ok(await first.evaluate((element) => element.isConnected), 'a finished paragraph was made again');
    assert.equal((await place())[0], 300);
    await page.locator('#to-end').click();
    await until('the end in view', async () => (await place())[1] < 2);
  });

  /* More of them than a call takes arguments. */
  onPage('crowd', {}, async (page) => {
    const answer = await askAndWait(page, 'mock:crowd');
    const count = (selector) => answer.locator('.content').evaluate((element, what) => element.querySelectorAll(what).length, selector);
    assert.deepEqual([await count('em'), await count('li')], [70000, 2000]);
  });

  /* What goes from right to left does so as a whole. */
  onPage('directions', {}, async (page) => {
    const answer = await askAndWait(page, 'mock:rtl');
    const directions = (selector) => answer.locator(`.content ${selector}`)
      .evaluateAll((all) => all.map((one) => getComputedStyle(one).direction));
    assert.deepEqual(await directions(':is(h2, p, ul, ol, blockquote, table)'),
      ['rtl', 'ltr', 'rtl', 'rtl', 'rtl', 'rtl', 'rtl', 'rtl', 'rtl', 'ltr', 'rtl']);
    const [list, item] = await answer.locator('.content > ul').first().evaluate((ul) => [ul, ul.querySelector('span')]
      .map((one) => one.getBoundingClientRect().right));
    assert.ok(item < list - 10, 'the markers have room at the right');
  });

  onPage('markdown', {}, async (page, { context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const answer = await askAndWait(page, 'mock:sample');
    const count = (selector) => answer.locator(`.content ${selector}`).count();
    assert.deepEqual(await Promise.all(['h2', 'h3', 'h4', 'ol', 'table', 'th', 'td', 'blockquote blockquote', 'hr', 'pre code', 'li.task input',
      'strong', 'em', 's', '.math', 'a'].map(count)), [1, 1, 1, 1, 1, 3, 6, 1, 1, 1, 2, 1, 1, 1, 2, 2]);
    await button(answer, 'Copy code').click();
    await until('the code in the clipboard', async () => {
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      return copied.startsWith('def deviation(x, y, length):\n    """');
    });
  });
}
