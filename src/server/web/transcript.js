/* The shown messages of one conversation, and where the reader is in them: who is at the end stays there while
 * an answer grows, who reads further up is left alone. */
import { siblings } from './conversation.js';
import { messageView } from './message_view.js';

const NEAR = 48; // pixels from the end that count as the end
const SLOW = 50; // milliseconds of a frame that a reader feels

export class Transcript {
  #list = document.getElementById('messages');
  #scroller = document.getElementById('scroller');
  #toEnd = document.getElementById('to-end');
  #views = new Map(); // message -> its view
  #following = true;
  #due = new Set(); // messages to update with the next frame
  #pause = 0; // milliseconds before that
  #conversation = null;
  #answering = null;

  constructor(actions) {
    this.actions = actions;
    this.#scroller.addEventListener('scroll', () => this.#look(), { passive: true });
    new ResizeObserver(() => this.#settle()).observe(this.#list);
    new ResizeObserver(() => this.#settle()).observe(this.#scroller);
    this.#toEnd.addEventListener('click', () => {
      this.toEnd();
      document.getElementById('input').focus();
    });
  }

  show(conversation, path, answering) {
    if (conversation !== this.#conversation) this.#views.clear();
    this.#conversation = conversation;
    this.#answering = answering ?? null;
    this.#list.toggleAttribute('data-running', Boolean(answering));
    const views = new Map();
    for (const message of path) views.set(message, this.#views.get(message) ?? messageView(message, this.actions));
    this.#views = views;
    const elements = [...views.values()].map((view) => view.element);
    // Elements that stay where they are keep focus, selections and scroll positions.
    elements.forEach((shown, index) => {
      if (this.#list.children[index] !== shown) this.#list.insertBefore(shown, this.#list.children[index] ?? null);
    });
    while (this.#list.children.length > elements.length) this.#list.lastChild.remove();
    for (const message of path) this.#update(message);
  }

  /* With the next frame: many tokens may come before it. */
  updateSoon(message) {
    this.#due.add(message);
    if (this.#due.size === 1) setTimeout(() => requestAnimationFrame(() => this.#updateDue()), this.#pause);
  }

  /* What takes long, a paragraph of a megabyte, is done the less often: most of the time is the reader's. */
  #updateDue() {
    const began = performance.now();
    const due = [...this.#due];
    this.#due.clear();
    for (const one of due) if (this.#views.has(one)) this.#update(one);
    setTimeout(() => { // laid out by then
      const took = performance.now() - began;
      this.#pause = took > SLOW ? 4 * took : 0;
    });
  }

  toEnd() {
    this.#following = true;
    this.#settle();
  }

  focusBranch(message, label) {
    const element = this.#views.get(message)?.element;
    const buttons = [...element?.querySelectorAll('.branches button') ?? []];
    const usable = buttons.filter((button) => !button.disabled);
    (usable.find((button) => button.title === label) ?? usable[0])?.focus();
  }

  #update(message) {
    const live = this.#answering?.message === message ? this.#answering.live : null;
    this.#views.get(message).update({
      siblings: siblings(this.#conversation, message), running: this.#answering !== null, live,
    });
  }

  #distance() {
    return this.#scroller.scrollHeight - this.#scroller.clientHeight - this.#scroller.scrollTop;
  }

  #look() {
    this.#following = this.#distance() < NEAR;
    this.#toEnd.hidden = this.#following;
  }

  /* The sizes changed. */
  #settle() {
    if (this.#following) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#toEnd.hidden = this.#following || this.#distance() < NEAR;
  }
}
