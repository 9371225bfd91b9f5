/* The parts of the page that need no browser: Markdown, server-sent events, trees of messages, figures. */
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { runTests, test } from './check.mjs';
import { hostileAnswers } from './hostile.mjs';
import { SAMPLE } from './sample.mjs';

globalThis.crypto ??= webcrypto; // which Node.js 18 has not made global
const [folder, ...wanted] = process.argv.slice(2);
const web = (name) => import(new URL(name, pathToFileURL(`${folder}/`)));
const { parse, parseMore } = await web('markdown.js');
const { parseInline, safeAddress } = await web('markdown_inline.js');
const { SseParser } = await web('sse.js');
const tree = await web('conversation.js');
const figures = await web('figures.js');
const { requestBody } = await web('answering.js');

/* ---- Markdown ---- */

/* Nodes as terse text: em(…), strong(…), code(…), link(ADDRESS,…), / for a break. */
const terse = (nodes) => nodes.map((node) => {
  if (node.type === 'text') return node.text;
  if (node.type === 'break') return '/';
  if (node.type === 'link') return `link(${node.href},${terse(node.children)})`;
  return `${node.type}(${node.children ? terse(node.children) : node.text})`;
}).join('');

/* Expected values are those of the CommonMark specification's examples, where it has them. */
const inlineCases = [
  ['*foo bar*', 'em(foo bar)'],
  ['a * foo bar*', 'a * foo bar*'],
  ['a*"foo"*', 'a*"foo"*'],
  ['foo*bar*', 'fooem(bar)'],
  ['_foo bar_', 'em(foo bar)'],
  ['foo_bar_', 'foo_bar_'],
  ['snake_case_name', 'snake_case_name'],
  ['foo-_(bar)_', 'foo-em((bar))'],
  ['*(*foo*)*', 'em((em(foo)))'],
  ['**foo bar**', 'strong(foo bar)'],
  ['** foo bar**', '** foo bar**'],
  ['__foo, __bar__, baz__', 'strong(foo, strong(bar), baz)'],
  ['**foo*bar*foo**', 'strong(fooem(bar)foo)'],
  ['*foo**bar**baz*', 'em(foostrong(bar)baz)'],
  ['*foo**bar*', 'em(foo**bar)'],
  ['***foo** bar*', 'em(strong(foo) bar)'],
  ['*foo **bar***', 'em(foo strong(bar))'],
  ['***strong em***', 'em(strong(strong em))'],
  ['foo ***', 'foo ***'],
  ['**foo*', '*em(foo)'],
  ['*foo**', 'em(foo)*'],
  ['*foo __bar *baz bim__ bam*', 'em(foo strong(bar *baz bim) bam)'],
  ['**强调**。', 'strong(强调)。'],
  ['~~gone~~ ~not~', 'strike(gone) ~not~'],
  ['`foo`', 'code(foo)'],
  ['`` foo ` bar ``', 'code(foo ` bar)'],
  ['` `` `', 'code(``)'],
  ['`foo\\`bar`', 'code(foo\\)bar`'],
  ['*foo`*`', '*foocode(*)'],
  ['```foo``', '```foo``'],
  ['`foo``bar``', '`foocode(bar)'],
  ['\\*not em\\* \\[no](https://a.b)', '*not em* [no](link(https://a.b/,https://a.b))'],
  ['[link](https://a.b/c "title")', 'link(https://a.b/c,link)'],
  ['[link](<https://a.b/c d>)', 'link(https://a.b/c%20d,link)'],
  ['[link](https://a.b/(c)(d))', 'link(https://a.b/(c)(d),link)'],
  ['[a *b* `]`](https://a.b)', 'link(https://a.b/,a em(b) code(]))'],
  ['[a [b](https://b.c)](https://d.e)', 'link(https://d.e/,a [b](https://b.c))'],
  ['[x] [y]', '[x] [y]'],
  ['![picture](https://a.b/c.png)', 'link(https://a.b/c.png,picture)'],
  ['<https://a.b>', 'link(https://a.b/,https://a.b)'],
  ['see https://a.b/c_d_e. And (https://a.b/c)', 'see link(https://a.b/c_d_e,https://a.b/c_d_e). And (link(https://a.b/c,https://a.b/c))'],
  ['https://en.wikipedia.org/wiki/Plumb_(x)', 'link(https://en.wikipedia.org/wiki/Plumb_(x),https://en.wikipedia.org/wiki/Plumb_(x))'],
  ['xhttps://a.b', 'xhttps://a.b'],
  ['a  \nb\\\nc\nd<br>e', 'a  /b/c/d/e'],
  ['&lt;b&gt; &amp;lt; &nope; &constructor;', '<b> &lt; &nope; &constructor;'],
  ['\\(a_1 * b_2 * c\\) and $$x_1 * y$$', 'math(\\(a_1 * b_2 * c\\)) and math($$x_1 * y$$)'],
  ['costs $5 and $6', 'costs $5 and $6'],
  ['<b onclick=x>bold</b>', '<b onclick=x>bold</b>'],
  ['the hhttp http: h', 'the hhttp http: h'],
  ['', ''],
];

test('inline', () => {
  for (const [text, expected] of inlineCases) assert.equal(terse(parseInline(text)), expected, text);
});

test('addresses', () => {
  const good = { 'https://a.b': 'https://a.b/', 'http://a.b/?c#d': 'http://a.b/?c#d', 'mailto:a@b.c': 'mailto:a@b.c',
    'HTTPS://A.B': 'https://a.b/' };
  for (const [address, href] of Object.entries(good)) assert.equal(safeAddress(address), href);
  for (const address of ['javascript:alert(1)', ' javascript:alert(1)', 'java\nscript:alert(1)', '\u0001javascript:x',
    'JAVASCRIPT:x', 'data:text/html,x', 'vbscript:x', 'file:///x', 'blob:https://a.b/c', '//a.b', '/a', 'a', '', '#a', '?a',
    'about:blank', 'ftp://a.b', 'tel:1', 'view-source:https://a.b', `https://a.b/${'x'.repeat(5000)}`]) {
    assert.equal(safeAddress(address), null, address);
  }
});

const shape = (blocks) => blocks.map((block) => {
  switch (block.type) {
    case 'heading': return `h${block.level}[${block.text}]`;
    case 'code': return `code${block.closed ? '' : '?'}:${block.language}[${block.text}]`;
    case 'quote': return `quote(${shape(block.blocks)})`;
    case 'list': {
      const items = block.items.map((item) => `${item.checked === null ? '' : item.checked ? '+' : '-'}${shape(item.blocks)}`);
      return `${block.ordered ? `ol${block.start}` : 'ul'}(${items.join(' | ')})`;
    }
    case 'table': return `table{${block.align.map((align) => align ?? '-')}}(${[block.header, ...block.rows].map((row) => row.join('&')).join(' | ')})`;
    case 'rule': return 'hr';
    default: return `${block.type === 'math' ? 'math' : 'p'}[${block.text}]`;
  }
}).join(' ');

const blockCases = [
  ['one\ntwo\n\nthree', 'p[one\ntwo] p[three]'],
  ['# a\n## b ##\n####### c\n#d', 'h1[a] h2[b] p[####### c\n#d]'],
  ['text\n# a\ntext', 'p[text] h1[a] p[text]'],
  ['---\n***\n_ _ _\n--', 'hr hr hr p[--]'],
  ['```js\na\n\n  b\n```\nc', 'code:js[a\n\n  b] p[c]'],
  ['````\n```\n````', 'code:[```]'],
  ['~~~ x y\n```\n~~~', 'code:x[```]'],
  ['```\nopen <b>', 'code?:[open <b>]'],
  ['``` a ` b', 'p[``` a ` b]'],
  ['  ```\n  a\n   b\n  ```', 'code:[a\n b]'],
  ['> a\n> b\n>\n> > c\nd', 'quote(p[a\nb] quote(p[c])) p[d]'],
  ['- a\n- b\n  c\n- d', 'ul(p[a] | p[b\nc] | p[d])'],
  ['- a\n\n- b\n\n\n- c\n\nend', 'ul(p[a] | p[b] | p[c]) p[end]'],
  ['- a\n  - b\n    - c\n- d', 'ul(p[a] ul(p[b] ul(p[c])) | p[d])'],
  ['1. a\n   - b\n2. c', 'ol1(p[a] ul(p[b]) | p[c])'],
  ['1. a\n  - b\n2. c', 'ol1(p[a] ul(p[b]) | p[c])'],
  ['7) a\n8) b', 'ol7(p[a] | p[b])'],
  ['- a\n* b', 'ul(p[a]) ul(p[b])'],
  ['- a\nlazy\n\nb', 'ul(p[a\nlazy]) p[b]'],
  ['- a\n\n  b\n\n      c\n- d', 'ul(p[a] p[b] p[c] | p[d])'],
  ['- ```sh\n  a\n\n\n  b\n  ```\n- c', 'ul(code:sh[a\n\n\nb] | p[c])'],
  ['- [x] a\n- [ ] b\n- [y] c', 'ul(+p[a] | -p[b] | p[[y] c])'],
  ['in\n1986. A year', 'p[in\n1986. A year]'],
  ['in\n1. A list', 'p[in] ol1(p[A list])'],
  ['-\n- a', 'ul( | p[a])'],
  ['| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 |\nend', 'table{left,right}(a&b | 1&2 | 3) p[end]'],
  ['a | b\n:-: | -\n`x\\|y` | \\| z | d', 'table{center,-}(a&b | `x|y`&| z)'],
  ['| a | b |\n|---|', 'p[| a | b |\n|---|]'],
  ['| a |\n|---|\n| 1 | 2 | 3 |', 'table{-}(a | 1)'],
  ['text\n| a |\n|---|\n', 'p[text] table{-}(a)'],
  ['$$\nx_1\n$$\nb', 'math[$$\nx_1\n$$] p[b]'],
  ['\\[ x \\]', 'math[\\[ x \\]]'],
  ['\\[\nx\n\nb', 'math[\\[\nx] p[b]'],
  ['\\[1\\] a', 'p[\\[1\\] a]'],
  ['a\r\nb\r\rc', 'p[a\nb] p[c]'],
  ['', ''],
  ['\n \n', ''],
];

test('blocks', () => {
  for (const [text, expected] of blockCases) assert.equal(shape(parse(text)), expected, JSON.stringify(text));
});

/* An answer that grows shows at each moment what its text so far shows, and blocks that are done stay. */
test('growing', () => {
  const texts = [SAMPLE, ...blockCases.map(([text]) => text), ...Object.values(hostileAnswers).map((text) => text.slice(-700))];
  for (const text of texts) {
    for (const step of [1, 3, 17]) {
      let before = { text: '', blocks: [] };
      for (let end = step; end < text.length + step; end += step) {
        const now = parseMore(before, text.slice(0, end));
        assert.equal(shape(now.blocks), shape(parse(text.slice(0, end))), `${JSON.stringify(text.slice(0, end))}`);
        before.blocks.slice(0, -2).forEach((block, i) => assert.equal(now.blocks[i], block));
        before = now;
      }
    }
  }
});

test('other_text', () => {
  const before = parseMore({ text: '', blocks: [] }, 'a\n\nb\n\nc\n\nd');
  assert.equal(shape(parseMore(before, 'x\n\nb\n\nc\n\nd').blocks), 'p[x] p[b] p[c] p[d]');
});

/* Every node of an answer, however deep; also asserts how deep that is. */
function walk(blocks, visit, depth = 0) {
  assert.ok(depth <= 16, 'nested too deep');
  const inline = (nodes, level) => {
    assert.ok(level <= 16, 'nested too deep');
    for (const node of nodes) {
      visit(node);
      if (node.children) inline(node.children, level + 1);
    }
  };
  for (const block of blocks) {
    if (block.type === 'paragraph' || block.type === 'heading') inline(parseInline(block.text), 0);
    for (const row of block.type === 'table' ? [block.header, ...block.rows] : []) {
      for (const cell of row) inline(parseInline(cell), 0);
    }
    for (const inner of [block.blocks ?? [], ...(block.items ?? []).map((item) => item.blocks)]) walk(inner, visit, depth + 1);
  }
}

test('hostile_links', () => {
  let links = 0;
  for (const text of Object.values(hostileAnswers)) {
    walk(parse(text), (node) => {
      assert.ok(['text', 'code', 'math', 'break', 'strong', 'em', 'strike', 'link'].includes(node.type), node.type);
      if (node.type !== 'link') return;
      links += 1;
      assert.match(node.href, /^(https?:\/\/|mailto:)[^\s"<>]*$/);
    });
  }
  assert.ok(links >= 4);
});

/* Work is counted, not timed: each character of such a text may be looked at a few times, not a few thousand
 * times.  A quadratic parser would not end within the test's limit. */
test('hostile_sizes', () => {
  const n = 60000;
  const texts = ['['.repeat(n), '[a](x '.repeat(n), '*a '.repeat(n) + 'b* '.repeat(n), '*a **b '.repeat(n) + 'c** d* '.repeat(n),
    '_a'.repeat(n), '`'.repeat(n), Array.from({ length: 500 }, (_, i) => '`'.repeat(i + 1)).join('x'), '&'.repeat(n),
    'https://'.repeat(n), '$$ '.repeat(n), `# a${' '.repeat(n)}b`, `- a\n${'\n'.repeat(n)}  b`, '>'.repeat(n), '- '.repeat(n),
    `|${'a|'.repeat(2000)}\n|${'-|'.repeat(2000)}\n${'|\n'.repeat(n)}`, `|a|\n|-${' '.repeat(n)}x|`, '\\'.repeat(n), '<'.repeat(n),
    '~~a '.repeat(n), '![['.repeat(n), `${'x\n'.repeat(n)}`, '1. '.repeat(n)];
  for (const text of texts) walk(parse(text), () => {});
});

/* ---- Server-sent events ---- */

const STREAM = ': one\r\n: two\n\ndata: a\r\ndata:b\ndata:  c\r\r\nevent: x\nid: 1\nretry: 5\ndata\n\nnothing: x\n\ndata: {"é":"🙂"}\n\ndata: lost';
const EVENTS = [['comment', ' one'], ['comment', ' two'], ['event', 'a\nb\n c'], ['event', ''], ['event', '{"é":"🙂"}']];

function parsed(pieces) {
  const told = [];
  const parser = new SseParser({ event: (data) => told.push(['event', data]), comment: (text) => told.push(['comment', text]) });
  for (const piece of pieces) parser.push(piece);
  return told;
}

test('events_cut_anywhere', () => {
  assert.deepEqual(parsed([STREAM]), EVENTS);
  assert.deepEqual(parsed([`\uFEFF${STREAM}`]), EVENTS);
  assert.deepEqual(parsed([...STREAM]), EVENTS);
  for (let cut = 0; cut <= STREAM.length; cut += 1) {
    assert.deepEqual(parsed([STREAM.slice(0, cut), '', STREAM.slice(cut)]), EVENTS, `cut at ${cut}`);
  }
});

/* ---- Conversations ---- */

function branched() {
  const conversation = tree.newConversation('Be brief.');
  const ask = (parent, text) => tree.addMessage(conversation, parent, 'user', text);
  const answer = (parent, text) => Object.assign(tree.addMessage(conversation, parent, 'assistant', text), { state: 'done' });
  const first = ask(null, 'First?');
  const a = answer(first.id, 'A');
  const second = ask(a.id, 'Second?');
  const b = answer(second.id, 'B');
  return { conversation, ask, answer, first, a, second, b };
}

const contents = (messages) => messages.map((message) => message.content).join(' ');

test('branches', () => {
  const { conversation, ask, answer, first, a, second, b } = branched();
  assert.equal(contents(tree.shownPath(conversation)), 'First? A Second? B');
  const again = answer(first.id, 'A2');
  assert.equal(contents(tree.shownPath(conversation)), 'First? A2');
  assert.deepEqual(tree.siblings(conversation, again), [a, again]);
  tree.choose(conversation, a);
  assert.equal(contents(tree.shownPath(conversation)), 'First? A Second? B');
  const edited = ask(a.id, 'Other?');
  assert.deepEqual(tree.siblings(conversation, edited), [second, edited]);
  ask(null, 'Start over');
  assert.equal(contents(tree.shownPath(conversation)), 'Start over');
  tree.choose(conversation, first);
  assert.equal(contents(tree.shownPath(conversation)), 'First? A Other?');
  assert.deepEqual(tree.requestMessages(conversation, second.id), [
    { role: 'system', content: 'Be brief.' }, { role: 'user', content: 'First?' }, { role: 'assistant', content: 'A' },
    { role: 'user', content: 'Second?' }]);
  conversation.system = ' \n';
  assert.equal(tree.requestMessages(conversation, b.id)[0].role, 'user');
});

/* Two windows that have the same conversation, and what each learns of the other. */
test('merging', () => {
  const { conversation: mine, a, b } = branched();
  const theirs = structuredClone(mine);
  const none = () => false;
  const answer = tree.addMessage(theirs, b.id, 'user', 'Theirs?');
  tree.merge(mine, theirs, none);
  assert.equal(contents(tree.shownPath(mine)), 'First? A Second? B Theirs?');
  assert.deepEqual(tree.fromExport(tree.toExport([mine]))[0].messages[answer.id], answer);
  // What is shown here stays, and objects stay the same.
  tree.addMessage(mine, a.id, 'user', 'Mine?');
  tree.addMessage(theirs, a.id, 'user', 'Other?');
  tree.merge(mine, theirs, none);
  assert.equal(contents(tree.shownPath(mine)), 'First? A Mine?');
  assert.equal(tree.siblings(mine, mine.messages[tree.shownPath(mine)[2].id]).length, 3);
  assert.equal(mine.messages[a.id], a);
  // An answer is as the window has it that writes it.
  Object.assign(theirs.messages[a.id], { content: 'A!', state: 'running' });
  tree.merge(mine, theirs, (message) => message === a);
  assert.deepEqual([a.content, a.state], ['A', 'done']);
  tree.merge(mine, theirs, none);
  assert.deepEqual([a.content, a.state], ['A!', 'running']);
  // One that grows no more was given up, with its window.
  tree.settle(mine);
  tree.merge(mine, theirs, none);
  assert.equal(a.state, 'stopped');
});

test('beginning_again', () => {
  const { a } = branched();
  assert.ok(!tree.failedEmpty(Object.assign(a, { state: 'failed', error: 'x' })));
  assert.ok(tree.failedEmpty(Object.assign(a, { content: '' })));
  assert.ok(!tree.failedEmpty(Object.assign(a, { reasoning: 'hm' })));
  assert.deepEqual([tree.beginAgain(a).state, a.error], ['running', undefined]);
});

test('titles', () => {
  const { conversation } = branched();
  assert.equal(conversation.title, 'First?');
  assert.equal(tree.titleOf('  a\tb\nc'), 'a b');
  assert.equal(tree.titleOf(' \n '), 'New chat');
  assert.equal(tree.titleOf('🙂'.repeat(80)), `${'🙂'.repeat(59)}…`);
});

test('export_and_import', () => {
  const { conversation, a } = branched();
  Object.assign(a, { reasoning: 'hm', thinkingSeconds: 2, finish: 'stop', usage: { prompt_tokens: 3,
    prompt_tokens_details: { cached_tokens: 2 } }, timings: { prompt_seconds: 0.5 } });
  const file = tree.toExport([conversation]);
  assert.deepEqual(tree.fromExport(file), [conversation]);
  a.state = 'running';
  assert.equal(tree.fromExport(tree.toExport([conversation]))[0].messages[a.id].state, 'stopped');
});

test('damaged_files', () => {
  const { conversation, first, a } = branched();
  const refused = (change, why) => {
    const copy = JSON.parse(tree.toExport([conversation]));
    const changed = change(copy, copy.conversations[0]) ?? copy;
    assert.throws(() => tree.fromExport(typeof changed === 'string' ? changed : JSON.stringify(changed)), why);
  };
  refused(() => 'x', /not JSON/);
  refused(() => '[]', /no conversations of plumb/);
  refused(() => 'null', /no conversations of plumb/);
  refused((file) => { file.version = 2; }, /newer version/);
  refused((file) => { file.conversations[0] = null; }, /Conversation 1 .*no id/);
  refused((_, c) => { c.id = '../x'; }, /no id/);
  refused((_, c) => { c.title = 5; }, /title/);
  refused((_, c) => { c.updated = 'now'; }, /times/);
  refused((_, c) => { c.messages = null; }, /no messages/);
  refused((_, c) => { c.messages[first.id].id = a.id; }, /without its id/);
  refused((_, c) => { c.messages[first.id].parent = a.id; }, /without its parent/);
  refused((_, c) => { c.messages[a.id].role = 'system'; }, /of nobody/);
  refused((_, c) => { c.messages[a.id].content = {}; }, /without text/);
  refused((_, c) => { c.messages[a.id].created = null; }, /without its time/);
  refused((_, c) => { c.messages[a.id].state = 'x'; }, /no state/);
  refused((_, c) => { c.chosen.root = a.id; }, /branch that is not there/);
  refused((_, c) => { c.chosen.root = 'toString'; }, /branch that is not there/);
});

test('nothing_else_is_imported', () => {
  const { conversation, a } = branched();
  const file = JSON.parse(tree.toExport([conversation]));
  const [c] = file.conversations;
  Object.assign(c, { onload: 'x' });
  Object.assign(c.messages[a.id], { html: '<b>', usage: { prompt_tokens: '<b>', completion_tokens: 4, deep: { er: { x: 1 } } } });
  const text = JSON.stringify(file).replace('"completion_tokens"', '"__proto__":{"y":1},"completion_tokens"');
  const [imported] = tree.fromExport(text);
  assert.deepEqual(imported.messages[a.id].usage, { completion_tokens: 4, deep: {} });
  delete imported.messages[a.id].usage;
  assert.deepEqual(imported, conversation);
});

/* ---- Requests and figures ---- */

test('request_bodies', () => {
  const { conversation, second } = branched();
  const settings = { temperature: '0', top_p: '', top_k: '40', min_p: '0.05', seed: '7', max_tokens: 'x', thinking: 0, system: '' };
  const body = requestBody(conversation, second.id, 'm', settings);
  assert.equal(body.messages.length, 4);
  delete body.messages;
  assert.deepEqual(body, { model: 'm', temperature: 0, top_k: 40, min_p: 0.05, seed: 7, chat_template_kwargs: { thinking: false } });
  const asItIs = requestBody(conversation, second.id, 'm', { ...settings, thinking: null });
  assert.deepEqual([asItIs.chat_template_kwargs, asItIs.reasoning_effort], [undefined, undefined]);
  const thinking = requestBody(conversation, second.id, 'm', { ...settings, thinking: 40 });
  assert.deepEqual([thinking.chat_template_kwargs, thinking.reasoning_effort], [{ thinking: true }, 40]);
});

test('figures', () => {
  const usage = { prompt_tokens: 1234, completion_tokens: 56, prompt_tokens_details: { cached_tokens: 1000 } };
  assert.equal(figures.answerFigures({ usage, timings: { generation_tokens_per_second: 12.345, prompt_seconds: 70 } }),
    '12.3 tokens/s · 56 tokens · prompt of 1,234 (1,000 cached) in 1 min 10 s');
  assert.equal(figures.answerFigures({ usage: { prompt_tokens: 5, completion_tokens: 0 } }), '0 tokens · prompt of 5');
  assert.equal(figures.answerFigures({}), '');
  assert.equal(figures.liveFigures(101, 4), '≈ 25.0 tokens/s · 101 tokens');
  assert.equal(figures.liveFigures(101, 0), '');
  assert.equal(figures.answerFigures({ usage: { completion_tokens: 1 } }), '1 token');
  assert.deepEqual([0, 0.023, 0.44, 12.6, 3599].map(figures.duration), ['1 ms', '23 ms', '0.4 s', '13 s', '59 min 59 s']);
  assert.equal(figures.contextTokens([{ usage }, {}]), 1290);
});

await runTests(wanted);
