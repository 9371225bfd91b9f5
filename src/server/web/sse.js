/* Server-sent events from text that arrives in pieces cut anywhere, as the HTML standard parses them:
 * lines end in CR, LF or CRLF, a blank line ends an event, a line that begins with a colon is a comment. */

export class SseParser {
  #event;
  #comment;
  #rest = ''; // a line without its end
  #lines = []; // those of `data` since the last event
  #started = false;

  /* `event` is told each event's data, `comment` each comment's text. */
  constructor({ event, comment = () => {} }) {
    this.#event = event;
    this.#comment = comment;
  }

  push(text) {
    if (!this.#started && text !== '') {
      this.#started = true;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    this.#rest += text;
    let from = 0;
    for (;;) {
      const end = this.#lineEnd(from);
      if (end === null) break;
      this.#line(this.#rest.slice(from, end.at));
      from = end.at + end.length;
    }
    this.#rest = this.#rest.slice(from);
  }

  /* The next line's end; null: not here yet.  A CR at the very end may be the first half of CRLF. */
  #lineEnd(from) {
    const ends = /\r\n|\n|\r(?=[^])/g;
    ends.lastIndex = from;
    const match = ends.exec(this.#rest);
    return match && { at: match.index, length: match[0].length };
  }

  #line(line) {
    if (line === '') {
      if (this.#lines.length > 0) this.#event(this.#lines.join('\n'));
      this.#lines = [];
    } else if (line.startsWith(':')) {
      this.#comment(line.slice(1));
    } else {
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'data') this.#lines.push(value);
    }
  }
}
