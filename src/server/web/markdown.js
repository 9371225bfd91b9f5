/* Markdown as models write it, parsed into plain nodes: {type, ...}.  The text is not trusted, so nodes hold
 * text and addresses that were checked, never HTML, and no text takes more than time linear in its length
 * or deeper nesting than DEPTH.  `markdown_inline.js` parses what stands within a block, when it is shown.
 *
 * Blocks:  {type: 'paragraph' | 'heading', level, text}, {type: 'code', language, text, closed},
 *          {type: 'quote', blocks}, {type: 'list', ordered, start, items: [{checked, blocks}]},
 *          {type: 'table', align: [], header: [text], rows: [[text]]}, {type: 'rule'}, {type: 'math', text}
 *
 * An answer grows: parseMore parses only its end again. */

const DEPTH = 12;

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*(.*)$/;
const HEADING = /^ {0,3}(#{1,6})([ \t].*)?$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+•]|\d{1,9}[.)])(?:([ \t]+)(.*))?$/;
/* Alone on its line, and then until it is closed; or a whole formula on one line. */
const MATH = /^ {0,3}(?:(\$\$|\\\[)[ \t]*|\$\$.+\$\$[ \t]*|\\\[.+\\\][ \t]*)$/;
const BLANK = /^[ \t]*$/;

export function parse(text) {
  return parseMore({ text: '', blocks: [] }, text).blocks;
}

/* `before` is what an earlier call returned, for a text that `text` begins with; otherwise all is parsed.
 * What is added can change the last block and join the last two, and leaves those before as they are: the
 * same objects. */
export function parseMore(before, text) {
  let kept = [];
  if (before.blocks.length > 2 && text.startsWith(before.text)) kept = before.blocks.slice(0, -2);
  const from = kept.length > 0 ? kept.at(-1).end : 0;
  const lines = text.slice(from).split(/\r\n|\n|\r/);
  const offsets = lineOffsets(text, from, lines);
  const blocks = new Blocks(lines, 0).read();
  for (const block of blocks) block.end = offsets[block.end];
  return { text, blocks: kept.concat(blocks) };
}

/* Where each line begins in the text, and the end of the last. */
function lineOffsets(text, from, lines) {
  const offsets = [];
  for (const line of lines) {
    offsets.push(from);
    from += line.length;
    if (text[from] === '\r' && text[from + 1] === '\n') from += 2;
    else if (from < text.length) from += 1;
  }
  offsets.push(from);
  return offsets;
}

/* Reads the blocks of some lines; `end` of each is the index of the line behind it. */
class Blocks {
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
    this.at = 0;
  }

  read() {
    const blocks = [];
    while (this.at < this.lines.length) {
      if (BLANK.test(this.lines[this.at])) {
        this.at += 1;
        continue;
      }
      const block = this.block();
      block.end = this.at;
      blocks.push(block);
    }
    return blocks;
  }

  block() {
    const line = this.lines[this.at];
    let match;
    if ((match = FENCE.exec(line)) && isFence(match)) return this.code(match);
    if ((match = MATH.exec(line))) return this.math(match[1]);
    if ((match = HEADING.exec(line))) {
      this.at += 1;
      const text = (match[2] ?? '').trim().replace(/(^|[ \t])#+$/, '');
      return { type: 'heading', level: match[1].length, text: text.trimEnd() };
    }
    if (RULE.test(line)) {
      this.at += 1;
      return { type: 'rule' };
    }
    if (this.depth < DEPTH) {
      if (QUOTE.test(line)) return this.quote();
      if ((match = ITEM.exec(line)) && match[1].length < 4) return this.list(match);
    }
    if (this.beginsTable(this.at)) return this.table();
    return this.paragraph();
  }

  /* Whether a line ends the paragraph before it. */
  begins(at) {
    const line = this.lines[at];
    if (BLANK.test(line) || HEADING.test(line) || RULE.test(line) || MATH.test(line)) return true;
    const fence = FENCE.exec(line);
    if (fence && isFence(fence)) return true;
    if (this.depth < DEPTH) {
      if (QUOTE.test(line)) return true;
      // A number in running text may begin a line: only 1 begins a list there.
      const item = ITEM.exec(line);
      if (item && item[4] && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2]))) return true;
    }
    return this.beginsTable(at);
  }

  code([, indent, fence, info]) {
    const close = new RegExp(`^ {0,3}${fence[0] === '`' ? '`' : '~'}{${fence.length},}[ \\t]*$`);
    const strip = new RegExp(`^ {0,${indent.length}}`);
    const text = [];
    let closed = false;
    for (this.at += 1; this.at < this.lines.length && !closed; this.at += 1) {
      closed = close.test(this.lines[this.at]);
      if (!closed) text.push(this.lines[this.at].replace(strip, ''));
    }
    return { type: 'code', language: info.trim().split(/\s/, 1)[0], text: text.join('\n'), closed };
  }

  /* Formulas stay as they were written; one without an end goes to the next blank line. */
  math(open) {
    const from = this.at;
    this.at += 1;
    for (let closed = !open; !closed && this.at < this.lines.length; this.at += 1) {
      if (BLANK.test(this.lines[this.at])) break;
      closed = this.lines[this.at].trimEnd().endsWith(open === '$$' ? '$$' : '\\]');
    }
    return { type: 'math', text: this.lines.slice(from, this.at).join('\n') };
  }

  quote() {
    const inner = [];
    while (this.at < this.lines.length && QUOTE.test(this.lines[this.at])) {
      inner.push(this.lines[this.at].replace(QUOTE, ''));
      this.at += 1;
    }
    return { type: 'quote', blocks: new Blocks(inner, this.depth + 1).read() };
  }

  list([, , marker]) {
    const ordered = /\d/.test(marker);
    const list = { type: 'list', ordered, start: ordered ? parseInt(marker, 10) : 1, items: [] };
    const kind = marker.at(-1);
    const left = /^ */.exec(this.lines[this.at])[0].length;
    while (this.at < this.lines.length) {
      const match = ITEM.exec(this.lines[this.at]);
      const indent = match && match[1].length;
      if (!match || match[2].at(-1) !== kind || indent > left + 3 || RULE.test(this.lines[this.at])) break;
      list.items.push(this.item(match, left));
    }
    return list;
  }

  item([, indent, marker, space = ' ', rest = ''], left) {
    const width = indent.length + marker.length + (space.length > 4 ? 1 : space.length);
    const task = /^\[([ xX])\][ \t]+/.exec(rest);
    const inner = [task ? rest.slice(task[0].length) : rest];
    for (this.at += 1; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      const margin = /^ */.exec(line)[0].length;
      if (BLANK.test(line)) {
        const blanks = this.blanksWithin(left, width);
        if (blanks === 0) break;
        for (let i = 0; i < blanks; i += 1) inner.push('');
        this.at += blanks - 1;
      } else if (margin >= width || (margin > left + 1 && ITEM.test(line))) {
        inner.push(line.slice(Math.min(margin, width)));
      } else if (!this.begins(this.at) && !ITEM.test(line) && !BLANK.test(inner.at(-1))) {
        inner.push(line.trimStart()); // the paragraph goes on
      } else {
        break;
      }
    }
    return { checked: task ? task[1] !== ' ' : null, blocks: new Blocks(inner, this.depth + 1).read() };
  }

  /* How many blank lines stand here within an item; 0: they end it.  If the list's next item follows them,
   * the place is moved there. */
  blanksWithin(left, width) {
    let next = this.at;
    while (next < this.lines.length && BLANK.test(this.lines[next])) next += 1;
    if (next === this.lines.length) return 0;
    const line = this.lines[next];
    const margin = /^ */.exec(line)[0].length;
    if (margin >= width || (margin > left + 1 && ITEM.test(line))) return next - this.at;
    if (ITEM.test(line)) this.at = next;
    return 0;
  }

  beginsTable(at) {
    const [line, next] = [this.lines[at], this.lines[at + 1]];
    if (next === undefined || !line.includes('|') || !next.includes('|') || !/^[ \t|:-]+$/.test(next)) return false;
    const delimiters = cells(next);
    return delimiters.every((cell) => /^:?-+:?$/.test(cell)) && cells(line).length === delimiters.length;
  }

  table() {
    const header = cells(this.lines[this.at]);
    const align = cells(this.lines[this.at + 1]).map((cell) => {
      const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
      if (right) return left ? 'center' : 'right';
      return left ? 'left' : null;
    });
    const rows = [];
    for (this.at += 2; this.at < this.lines.length; this.at += 1) {
      const line = this.lines[this.at];
      if (!line.includes('|') || this.begins(this.at)) break;
      rows.push(cells(line).slice(0, header.length));
    }
    return { type: 'table', align, header, rows };
  }

  paragraph() {
    const text = [];
    do {
      text.push(this.lines[this.at].trimStart());
      this.at += 1;
    } while (this.at < this.lines.length && !this.begins(this.at));
    return { type: 'paragraph', text: text.join('\n').trimEnd() };
  }
}

/* A line of code spans may begin like a fence. */
const isFence = ([, , fence, info]) => fence[0] === '~' || !info.includes('`');

/* The cells of a table's row; \| is no border, even within a code span. */
function cells(line) {
  const found = [];
  const row = line.trim().replace(/^\|/, '');
  let cell = '';
  for (const [part] of row.matchAll(/\\[^]|[^\\|]+|[^]/g)) {
    if (part === '|') {
      found.push(cell.trim());
      cell = '';
    } else {
      cell += part === '\\|' ? '|' : part;
    }
  }
  if (cell.trim() !== '' || !row.endsWith('|')) found.push(cell.trim());
  return found;
}
