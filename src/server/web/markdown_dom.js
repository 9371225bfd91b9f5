/* Shows Markdown as elements.  Text goes into text nodes and checked addresses into links, nothing else of an
 * answer reaches the document.  An answer that grows is shown again many times a second: blocks that did not
 * change keep their elements, and with them selections and scroll positions. */
import { parseMore } from './markdown.js';
import { parseInline } from './markdown_inline.js';
import { copyText, element, iconButton } from './dom.js';

const shown = new WeakMap(); // container -> what parseMore returned for it

/* Makes `container` show `text`; only this function may change what is in it. */
export function showMarkdown(container, text) {
  const before = shown.get(container) ?? { text: '', blocks: [] };
  if (before.text === text) return;
  const now = parseMore(before, text);
  shown.set(container, now);
  let index = 0;
  while (index < now.blocks.length && before.blocks[index] === now.blocks[index]) index += 1;
  let present = container.children[index]; // once: after each change the browser would count from the first
  for (; index < now.blocks.length; index += 1) {
    const [old, block] = [before.blocks[index], now.blocks[index]];
    const next = present?.nextElementSibling;
    if (present && old.type === 'code' && block.type === 'code' && old.language === block.language) {
      setCode(present, block.text);
    } else if (present) {
      present.replaceWith(blockElement(block));
    } else {
      container.append(blockElement(block));
    }
    present = next;
  }
  while (container.childElementCount > now.blocks.length) container.lastChild.remove();
}

function blockElement(block) {
  switch (block.type) {
    case 'heading':
      // Below the heading of the page itself.
      return element(`h${Math.min(6, block.level + 1)}`, { dir: 'auto', className: `level-${block.level}` },
        inline(block.text));
    case 'code': return codeElement(block);
    case 'math': return element('p', { className: 'math' }, block.text);
    case 'quote': return directed(element('blockquote', {}, block.blocks.map(blockElement)));
    case 'list': return listElement(block);
    case 'table': return tableElement(block);
    case 'rule': return element('hr');
    default: return element('p', { dir: 'auto' }, inline(block.text));
  }
}

/* Which way a block goes that holds others: as its first letter.  dir="auto" would not look into those. */
function directed(made) {
  const letter = /\p{L}/u.exec(made.textContent)?.[0] ?? '';
  made.dir = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u.test(letter) ? 'rtl' : 'ltr';
  return made;
}

function codeElement(block) {
  const code = element('code');
  const copy = iconButton('copy', 'Copy code', () => copyText(code.textContent, copy));
  const figure = element('figure', { className: 'code' },
    element('figcaption', {}, element('span', {}, block.language.slice(0, 40) || 'text'), copy),
    element('pre', { tabIndex: 0, role: 'group', 'aria-label': 'Code' }, code));
  setCode(figure, block.text);
  return figure;
}

function setCode(figure, text) {
  const code = figure.querySelector('code');
  const present = code.firstChild;
  if (present && text.startsWith(present.data)) present.appendData(text.slice(present.length));
  else code.textContent = text;
}

function listElement(list) {
  const items = list.items.map((item) => {
    const children = item.blocks.map(blockElement);
    // An item of a single paragraph needs no paragraph of its own.
    if (children[0]?.tagName === 'P' && item.blocks.every((block, i) => i === 0 || block.type === 'list')) {
      children[0] = element('span', { dir: 'auto' }, [...children[0].childNodes]);
    }
    if (item.checked === null) return element('li', {}, children);
    const box = element('input', {
      type: 'checkbox', checked: item.checked, disabled: true, 'aria-label': item.checked ? 'Done' : 'To be done',
    });
    return element('li', { className: 'task' }, box, children);
  });
  return directed(list.ordered ? element('ol', { start: list.start }, items) : element('ul', {}, items));
}

function tableElement({ align, header, rows }) {
  const cell = (name, text, column) => {
    const made = element(name, { dir: 'auto' }, inline(text));
    if (align[column]) made.className = `align-${align[column]}`;
    return made;
  };
  const row = (name, cells) => element('tr', {}, cells.map((text, column) => cell(name, text, column)));
  return element('div', { className: 'table', tabIndex: 0, role: 'region', 'aria-label': 'Table' },
    directed(element('table', {}, element('thead', {}, row('th', header)),
      element('tbody', {}, rows.map((cells) => row('td', cells))))));
}

const inline = (text) => parseInline(text).map(inlineNode);

function inlineNode(node) {
  const children = () => node.children.map(inlineNode);
  switch (node.type) {
    case 'code': return element('code', {}, node.text);
    case 'math': return element('span', { className: 'math' }, node.text);
    case 'break': return element('br');
    case 'strong': return element('strong', {}, children());
    case 'em': return element('em', {}, children());
    case 'strike': return element('s', {}, children());
    case 'link':
      return element('a', { href: node.href, title: node.href, rel: 'noopener noreferrer', target: '_blank' },
        children());
    default: return document.createTextNode(node.text);
  }
}
