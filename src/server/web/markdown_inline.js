/* What stands within a block of Markdown: {type: 'text' | 'code' | 'math', text}, {type: 'break'},
 * {type: 'strong' | 'em' | 'strike', children}, {type: 'link', href, children}.  HTML is text.  Time is linear
 * in the text's length: each bracket and each delimiter is looked at a bounded number of times. */

const DEPTH = 12;
const NEAR = 64; // delimiters that one may stand apart from its own
const ADDRESS_LENGTH = 4096;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#39': "'", nbsp: '\u00A0' };
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
/* What an address may follow, and what ends one. */
const BARE_ADDRESS = /https?:\/\/[^\s<>"'`|\\^{}[\]]+/y;

/* The address as a browser takes it, if it leads to a page or to mail; else null. */
export function safeAddress(address) {
  if (address.length > ADDRESS_LENGTH) return null;
  let url;
  try {
    url = new URL(address); // without a base: relative addresses are refused too
  } catch {
    return null;
  }
  return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
}

export function parseInline(text, inLink = false) {
  return new Inline(text, inLink).read();
}

class Inline {
  constructor(text, inLink) {
    this.text = text;
    this.inLink = inLink;
    this.at = 0;
    this.nodes = [];
    this.delimiters = []; // those that may open: {kind, count, length, closes, node, index}
    this.full = false; // nested as deep as may be: further delimiters are text
    this.noCode = new Set(); // lengths of runs of backticks that nothing closes
    this.noMath = new Set();
    this.brackets = inLink ? new Map() : matchBrackets(text);
  }

  read() {
    const plain = /(?:[^\\`*_~[!<&\n$h]|h(?!ttps?:\/\/))+/y;
    while (this.at < this.text.length) {
      plain.lastIndex = this.at;
      const match = plain.exec(this.text);
      if (match) this.take(match[0].length, match[0]);
      else this.special(this.text[this.at]);
    }
    return this.nodes.filter((node) => node.type !== 'text' || node.text !== '');
  }

  /* Goes on by `length` and adds text, joined with that before it. */
  take(length, text) {
    this.at += length;
    const last = this.nodes.at(-1);
    if (last?.type === 'text' && !last.delimiter) last.text += text;
    else this.nodes.push({ type: 'text', text });
  }

  push(length, node) {
    this.at += length;
    this.nodes.push(node);
  }

  special(character) {
    if (this.construct(character) === false) this.take(1, character);
  }

  /* Reads what begins here; false: nothing, the character stands for itself. */
  construct(character) {
    switch (character) {
      case '\\': return this.escape();
      case '`': return this.code();
      case '[': return this.link(this.at);
      case '!': return this.text[this.at + 1] === '[' && this.link(this.at + 1);
      case '<': return this.angle();
      case '&': return this.entity();
      case 'h': return this.bareAddress();
      case '$': return this.math('$$', '$$');
      case '\n': return this.push(1, { type: 'break' });
      default: return this.delimiter(character);
    }
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '(' && this.math('\\(', '\\)')) return true;
    if (next === '[' && this.math('\\[', '\\]')) return true;
    if (next === '\n') return this.push(2, { type: 'break' });
    if (next === undefined || !/[!-/:-@[-`{-~]/.test(next)) return false;
    return this.take(2, next);
  }

  code() {
    const run = /`+/y;
    run.lastIndex = this.at;
    const length = run.exec(this.text)[0].length;
    if (!this.noCode.has(length)) {
      const runs = /`+/g;
      runs.lastIndex = this.at + length;
      for (let match; (match = runs.exec(this.text));) {
        if (match[0].length !== length) continue;
        let text = this.text.slice(this.at + length, match.index).replace(/\n/g, ' ');
        if (/^ .* $/.test(text) && text.trim() !== '') text = text.slice(1, -1);
        return this.push(match.index + length - this.at, { type: 'code', text });
      }
      this.noCode.add(length);
    }
    return this.take(length, '`'.repeat(length));
  }

  /* A formula stays as it was written. */
  math(open, close) {
    if (!this.text.startsWith(open, this.at) || this.noMath.has(open)) return false;
    const end = this.text.indexOf(close, this.at + open.length);
    if (end < 0) {
      this.noMath.add(open);
      return false;
    }
    const text = this.text.slice(this.at, end + close.length);
    this.push(text.length, { type: 'math', text });
    return true;
  }

  /* Emphasis by CommonMark's rules for runs of delimiters. */
  delimiter(kind) {
    let end = this.at + 1;
    while (this.text[end] === kind) end += 1;
    const length = end - this.at;
    if (kind === '~' && length !== 2) return this.take(length, kind.repeat(length));
    const before = characterBefore(this.text, this.at);
    const after = String.fromCodePoint(this.text.codePointAt(end) ?? 32);
    const left = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const right = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    const opens = left && (kind !== '_' || !right || PUNCTUATION.test(before));
    const closes = right && (kind !== '_' || !left || PUNCTUATION.test(after));
    this.at = end;
    const rest = closes ? this.close(kind, length, opens) : length;
    if (rest === 0) return true;
    const node = { type: 'text', text: kind.repeat(rest), delimiter: true };
    this.nodes.push(node);
    if (opens) this.delimiters.push({ kind, count: rest, length, closes, node, index: this.nodes.length - 1 });
    return true;
  }

  /* Wraps what stands since the delimiters that this run closes; returns how much of the run is left. */
  close(kind, length, opens) {
    let rest = length;
    while (rest > 0 && !this.full) {
      const at = this.openerOf(kind, length, opens);
      if (at < 0) break;
      this.delimiters.length = at + 1; // those behind it are text
      const opener = this.delimiters[at];
      const count = Math.min(2, opener.count, rest);
      const children = this.nodes.splice(opener.index + 1);
      const depth = children.reduce((most, child) => Math.max(most, child.depth ?? 0), 0) + 1;
      const type = kind === '~' ? 'strike' : count === 2 ? 'strong' : 'em';
      this.nodes.push({ type, children: children.filter((node) => node.text !== ''), depth });
      this.full ||= depth === DEPTH;
      opener.count -= count;
      opener.node.text = kind.repeat(opener.count);
      rest -= count;
      if (opener.count === 0) this.delimiters.pop();
    }
    return rest;
  }

  /* The nearest delimiters that a run closes, if they are near; -1: none. */
  openerOf(kind, length, opens) {
    const farthest = Math.max(0, this.delimiters.length - NEAR);
    for (let at = this.delimiters.length - 1; at >= farthest; at -= 1) {
      const opener = this.delimiters[at];
      const both = (opens || opener.closes) && (opener.length + length) % 3 === 0 && length % 3 !== 0;
      if (opener.kind === kind && !both) return at;
    }
    return -1;
  }

  /* [text](address "title"), at a bracket; pictures become links, since nothing is fetched. */
  link(bracket) {
    const close = this.brackets.get(bracket);
    if (this.inLink || close === undefined || this.text[close + 1] !== '(') return false;
    const target = /\(\s*(?:<([^<>\n]*)>|([^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
    target.lastIndex = close + 1;
    const match = target.exec(this.text.slice(0, close + ADDRESS_LENGTH));
    const href = match && safeAddress(match[1] ?? match[2]);
    if (!href) return false;
    const children = parseInline(this.text.slice(bracket + 1, close), true);
    if (children.length === 0) children.push({ type: 'text', text: href });
    return this.push(target.lastIndex - this.at, { type: 'link', href, children });
  }

  angle() {
    const address = /<((?:https?:\/\/|mailto:)[^\s<>]*)>/y;
    const end = /<br[ ]?\/?>\n?/iy;
    address.lastIndex = this.at;
    end.lastIndex = this.at;
    const lineEnd = end.exec(this.text);
    if (lineEnd) return this.push(lineEnd[0].length, { type: 'break' });
    const match = this.inLink ? null : address.exec(this.text);
    const href = match && safeAddress(match[1]);
    if (!href) return false;
    return this.push(match[0].length, { type: 'link', href, children: [{ type: 'text', text: match[1] }] });
  }

  entity() {
    const match = /^&(#39|[a-z]{2,4});/.exec(this.text.slice(this.at, this.at + 6));
    if (!match || !Object.hasOwn(ENTITIES, match[1])) return false;
    return this.take(match[0].length, ENTITIES[match[1]]);
  }

  bareAddress() {
    if (this.inLink || /[A-Za-z0-9]/.test(characterBefore(this.text, this.at))) return false;
    BARE_ADDRESS.lastIndex = this.at;
    const found = BARE_ADDRESS.exec(this.text);
    if (!found) return false;
    let address = found[0].replace(/[.,:;!?*_~]+$/, '');
    if (address.endsWith(')') && !address.includes('(')) address = address.replace(/[).,:;!?*_~]+$/, '');
    const href = safeAddress(address);
    if (!href) return this.take(found[0].length, found[0]);
    return this.push(address.length, { type: 'link', href, children: [{ type: 'text', text: address }] });
  }
}

/* The character before a place; a space before the first. */
function characterBefore(text, at) {
  if (at === 0) return ' ';
  const low = text.charCodeAt(at - 1);
  const pair = low >= 0xdc00 && low < 0xe000 && at > 1;
  return pair ? text.slice(at - 2, at) : text[at - 1];
}

/* Which ] belongs to which [, outside of code spans and escapes. */
function matchBrackets(text) {
  const matches = new Map();
  const open = [];
  const parts = /\\[^]|`+|[[\]]/g;
  const noClose = new Set();
  for (let match; (match = parts.exec(text));) {
    const [part] = match;
    if (part === '[') {
      open.push(match.index);
    } else if (part === ']') {
      if (open.length > 0) matches.set(open.pop(), match.index);
    } else if (part[0] === '`' && !noClose.has(part.length)) {
      const close = closingRun(text, parts.lastIndex, part.length);
      if (close < 0) noClose.add(part.length);
      else parts.lastIndex = close;
    }
  }
  return matches;
}

/* The end of the next run of exactly `length` backticks; -1: none. */
function closingRun(text, from, length) {
  const runs = /`+/g;
  runs.lastIndex = from;
  for (let match; (match = runs.exec(text));) {
    if (match[0].length === length) return runs.lastIndex;
  }
  return -1;
}
