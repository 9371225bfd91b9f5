/* The list of conversations, newest first, under the days they were last used; when there are many, those that
 * hold what is looked for. */
import { holdsWords } from './conversation.js';
import { element, icon, iconButton, isComposing } from './dom.js';

const DAY = 24 * 60 * 60 * 1000;
const FEW = 8; // conversations that are seen at a glance

function period(time, today) {
  if (time >= today) return 'Today';
  if (time >= today - DAY) return 'Yesterday';
  if (time >= today - 7 * DAY) return 'Last seven days';
  return 'Earlier';
}

/* Puts a panel of the top layer below or above a button, within the window.  It has to be open. */
export function placePanel(panel, button) {
  const anchor = button.getBoundingClientRect();
  const { width, height } = panel.getBoundingClientRect();
  const below = anchor.bottom + 6 + height <= innerHeight;
  panel.style.left = `${Math.max(8, Math.min(anchor.left, innerWidth - width - 8))}px`;
  panel.style.top = `${Math.max(8, below ? anchor.bottom + 6 : anchor.top - 6 - height)}px`;
}

export class ListView {
  #list = document.getElementById('conversations');
  #menu = document.getElementById('item-menu');
  #find = document.getElementById('find');
  #latest = null; // what update was given

  /* `actions`: {open, rename(conversation, title), exportOne, remove}, each of a conversation. */
  constructor(actions) {
    this.actions = actions;
    this.#menu.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const entries = [...this.#menu.children];
      entries.at((entries.indexOf(document.activeElement) + step) % entries.length).focus();
    });
    this.#find.addEventListener('input', () => this.#show());
    this.#find.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || this.#find.value === '') return;
      event.stopPropagation();
      event.preventDefault();
      this.#find.value = '';
      this.#show();
    });
  }

  update(conversations, current, isRunning) {
    this.#latest = { conversations, current, isRunning };
    this.#show();
  }

  #show() {
    if (this.#list.querySelector('.rename')) return; // it would be lost
    const focused = document.activeElement?.closest?.('#conversations li')?.dataset.id;
    const today = new Date().setHours(0, 0, 0, 0);
    const { conversations, current, isRunning } = this.#latest;
    const words = this.#find.value.toLowerCase().split(/\s+/).filter((word) => word !== '');
    const found = words.length > 0 ? conversations.filter((one) => holdsWords(one, words)) : conversations;
    this.#find.hidden = conversations.length < FEW && this.#find.value === '';
    const items = [];
    let last = '';
    if (found.length === 0 && words.length > 0) items.push(element('li', { className: 'day' }, 'Nothing found'));
    for (const conversation of found) {
      const now = period(conversation.updated, today);
      if (now !== last) items.push(element('li', { className: 'day' }, now));
      last = now;
      items.push(this.#item(conversation, conversation === current, isRunning(conversation)));
    }
    this.#list.replaceChildren(...items);
    if (focused) this.#list.querySelector(`li[data-id="${focused}"] .conversation`)?.focus();
  }

  #item(conversation, isCurrent, running) {
    const name = element('button', {
      type: 'button', className: `conversation${running ? ' busy' : ''}`, title: conversation.title, dir: 'auto',
      onclick: () => this.actions.open(conversation),
    }, conversation.title);
    const more = iconButton('more', `More about ${conversation.title}`, () => {
      this.#openMenu(conversation, more);
    });
    const current = isCurrent ? 'page' : undefined;
    return element('li', { 'data-id': conversation.id, 'aria-current': current }, name, more);
  }

  #openMenu(conversation, button) {
    const entry = (name, label, action, className = '') => element('button', {
      type: 'button', className,
      onclick: () => {
        this.#menu.hidePopover();
        action();
      },
    }, icon(name), label);
    this.#menu.replaceChildren(
      entry('edit', 'Rename', () => this.#rename(conversation)),
      entry('export', 'Export', () => this.actions.exportOne(conversation)),
      entry('close', 'Delete', () => this.actions.remove(conversation), 'bad'));
    this.#menu.showPopover();
    placePanel(this.#menu, button);
    this.#menu.firstChild.focus();
  }

  #rename(conversation) {
    const item = this.#list.querySelector(`[data-id="${conversation.id}"]`); // the list may be another by now
    if (!item) return;
    const input = element('input', { className: 'rename', value: conversation.title, 'aria-label': 'New title' });
    let ended = false;
    const end = (keep, focus = true) => {
      if (ended) return;
      ended = true;
      const title = input.value.trim();
      input.remove();
      this.actions.rename(conversation, keep && title !== '' ? title : conversation.title);
      if (focus) this.#list.querySelector(`[data-id="${conversation.id}"] .conversation`)?.focus();
    };
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !isComposing(event)) end(true);
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      end(false);
    });
    input.addEventListener('blur', () => end(true, false));
    item.replaceChildren(input);
    input.focus();
    input.select();
  }
}
