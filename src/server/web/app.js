/* The page: what is open, what runs, and what the reader does to it.
 *
 * Conversations are the truth; views are made to show them.  Answers go on while another conversation is
 * looked at; each conversation has at most one. */
import { getJson } from './api.js';
import { Answering } from './answering.js';
import * as tree from './conversation.js';
import { KeyDialog, SettingsDialog } from './dialogs.js';
import { element, growWithText, isComposing } from './dom.js';
import { contextTokens, count } from './figures.js';
import { ListView, placePanel } from './list_view.js';
import { ConversationStore, loadDraft, loadSettings, NUMBERS, saveDraft, saveSettings } from './store.js';
import { Transcript } from './transcript.js';

const SAVE_EVERY = 1000; // milliseconds, while an answer grows
const STARTERS = [
  'Explain this error message to me: ',
  'Write a shell script that ',
  'Check this argument for holes: ',
];
const byId = (id) => document.getElementById(id);

class App {
  constructor(store) {
    this.store = store;
    this.settings = loadSettings({
      ...Object.fromEntries(NUMBERS.map((name) => [name, ''])), thinking: null, system: '',
    });
    this.conversations = new Map();
    this.current = null;
    this.running = new Map(); // conversation -> Answering
    this.written = new WeakSet(); // answers that this window made; other windows have copies at most
    this.model = '';
    this.context = 0; // tokens; 0: not known
    this.thinking = 75; // the server's own level
    this.keys = new KeyDialog();
    this.dialog = new SettingsDialog(this.settings, this.keys, (conversation) => this.save(conversation));
    this.list = new ListView({
      open: (conversation) => this.open(conversation),
      rename: (conversation, title) => this.rename(conversation, title),
      exportOne: (conversation) => this.exportFile([conversation], conversation.title),
      remove: (conversation) => this.remove(conversation),
    });
    this.transcript = new Transcript({
      edit: (message, text) => this.send(text, message.parent),
      again: (message) => this.again(message),
      show: (message, label) => this.showBranch(message, label),
    });
  }

  async start() {
    for (const conversation of await this.store.all()) {
      this.conversations.set(conversation.id, tree.settle(conversation));
    }
    this.listen();
    this.openAddressed();
    this.showThinking();
    if (!this.store.lasting) {
      byId('welcome-note').textContent = 'This browser keeps nothing: conversations last as long as this window.';
    }
    await this.findServer();
  }

  /* ---- The server ---- */

  async findServer() {
    try {
      const models = await this.asking('v1/models');
      this.model = String(models?.data?.[0]?.id ?? '');
      byId('model').textContent = this.model;
      byId('model').classList.remove('bad');
    } catch (error) {
      byId('model').textContent = error.status === 401 ? 'needs a key' : 'no server';
      byId('model').classList.add('bad');
      return;
    }
    // A server that tells nothing of itself is fine.
    const props = await this.asking('props').catch(() => null);
    this.context = Number(props?.context) || 0;
    if (Number.isFinite(props?.effort)) this.thinking = props.thinking ? props.effort : 0;
    this.dialog.showDefaults(props?.sampling ?? {});
    this.showThinking();
    this.showContext();
  }

  async asking(path) {
    for (;;) {
      try {
        return await getJson(path, this.keys.key);
      } catch (error) {
        if (error.status !== 401 || !(await this.keys.ask(this.keys.key !== ''))) throw error;
      }
    }
  }

  /* ---- Conversations ---- */

  /* The one that the address names; a new one otherwise. */
  openAddressed() {
    const named = this.conversations.get(location.hash.slice(1));
    if (!named || named !== this.current) this.show(named ?? tree.newConversation(this.settings.system));
  }

  /* At once: what is typed next is for what is shown next.  Going back in the browser is openAddressed. */
  open(conversation) {
    if (location.hash.slice(1) === conversation.id) {
      this.closeList();
      return;
    }
    history.pushState(null, '', `#${conversation.id}`);
    this.show(conversation);
  }

  openNew() {
    if (location.hash) history.pushState(null, '', location.pathname);
    this.show(tree.newConversation(this.settings.system));
  }

  show(conversation) {
    this.current = conversation;
    this.closeList();
    this.render();
    this.transcript.toEnd();
    this.focusInput();
  }

  /* Where there is a keyboard; elsewhere the one on the screen would come up. */
  focusInput() {
    if (matchMedia('(hover: hover)').matches) byId('input').focus();
  }

  render() {
    const { current } = this;
    const path = tree.shownPath(current);
    const answering = this.running.get(current);
    document.title = path.length > 0 ? `${current.title} · plumb` : 'plumb';
    byId('title').textContent = path.length > 0 ? current.title : 'New chat';
    byId('welcome').hidden = path.length > 0;
    byId('stop').hidden = !answering;
    byId('send').hidden = Boolean(answering);
    this.transcript.show(current, path, answering);
    this.showContext();
    this.showAltered();
    this.showList();
    this.showSend();
  }

  showList() {
    const newest = [...this.conversations.values()].sort((a, b) => b.updated - a.updated);
    this.list.update(newest, this.current, (conversation) => this.running.has(conversation));
  }

  async save(conversation) {
    if (!this.conversations.has(conversation.id)) return; // not begun, or removed
    await this.store.save(conversation, (kept) => this.merge(conversation, kept)).catch((error) => {
      this.toast(`This conversation could not be kept: ${error.message}`);
    });
  }

  merge(conversation, other) {
    tree.merge(conversation, other, (message) => this.written.has(message));
  }

  /* Another window saved or removed a conversation. */
  async changedElsewhere(id) {
    const theirs = await this.store.get(id);
    const mine = this.conversations.get(id);
    if (mine && theirs) {
      this.merge(mine, theirs);
      const { title, named, system, updated } = theirs;
      Object.assign(mine, { title, named, system, updated });
    } else if (theirs) {
      this.conversations.set(id, theirs);
    } else if (mine) {
      this.running.get(mine)?.stop();
      this.conversations.delete(id);
      if (this.current === mine) this.current = tree.newConversation(this.settings.system);
    }
    this.render();
  }

  rename(conversation, title) {
    conversation.named ||= title !== conversation.title;
    conversation.title = title;
    this.save(conversation);
    this.render();
  }

  async remove(conversation) {
    this.running.get(conversation)?.stop();
    this.conversations.delete(conversation.id);
    await this.store.remove(conversation.id);
    if (this.current === conversation) this.openNew();
    this.showList();
    this.focusInput();
    this.toast('Conversation deleted', 'Undo', () => {
      this.conversations.set(conversation.id, conversation);
      this.save(conversation);
      this.open(conversation);
      this.showList();
    });
  }

  /* ---- Asking and answering ---- */

  /* A message of the reader's below `parent`, and the answer to it. */
  send(text, parent) {
    const conversation = this.current;
    if (this.running.has(conversation) || text.trim() === '') return;
    this.closeToast();
    this.conversations.set(conversation.id, conversation);
    const question = tree.addMessage(conversation, parent, 'user', text);
    if (location.hash.slice(1) !== conversation.id) history.replaceState(null, '', `#${conversation.id}`);
    this.answer(conversation, tree.addMessage(conversation, question.id, 'assistant', ''));
  }

  again(message) {
    const conversation = this.current;
    if (this.running.has(conversation)) return;
    this.answer(conversation, tree.failedEmpty(message)
      ? tree.beginAgain(message) : tree.addMessage(conversation, message.parent, 'assistant', ''));
  }

  async answer(conversation, message) {
    const answering = new Answering(conversation, message);
    this.running.set(conversation, answering);
    this.written.add(message);
    this.render();
    this.transcript.toEnd();
    this.announce('Answering');
    this.focusInput();
    await this.save(conversation);
    let saved = performance.now();
    await answering.run({
      model: this.model, settings: this.settings,
      key: () => this.keys.key,
      askKey: (refused) => this.keys.ask(refused),
      changed: () => {
        if (this.current === conversation) this.transcript.updateSoon(message);
        if (performance.now() - saved < SAVE_EVERY) return;
        saved = performance.now();
        this.save(conversation);
      },
    });
    this.running.delete(conversation);
    if (tree.failedEmpty(message)) this.written.delete(message); // any window may try again
    this.announce({ done: 'Answer complete', stopped: 'Stopped', failed: 'The answer failed' }[message.state]);
    this.render();
    await this.save(conversation);
    if (this.model === '' && message.state === 'done') this.findServer();
  }

  showBranch(message, label) {
    if (this.running.has(this.current)) return;
    tree.choose(this.current, message);
    this.save(this.current);
    this.render();
    this.transcript.focusBranch(message, label);
  }

  /* ---- Files ---- */

  exportFile(conversations, name) {
    const file = new Blob([tree.toExport(conversations)], { type: 'application/json' });
    const link = element('a', {
      href: URL.createObjectURL(file), download: `${name.replace(/[^\p{L}\p{N} ._-]+/gu, '').trim() || 'plumb'}.json`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  /* Nothing here is replaced: what is here already stays, of two versions both do. */
  async importFile(file) {
    let found;
    try {
      found = tree.fromExport(await file.text());
    } catch (error) {
      this.toast(error.message);
      return;
    }
    let added = 0;
    for (let conversation of found) {
      const present = this.conversations.get(conversation.id);
      if (present && tree.toExport([present]) === tree.toExport([conversation])) continue;
      if (present) conversation = { ...conversation, id: tree.newConversation().id };
      this.conversations.set(conversation.id, conversation);
      await this.save(conversation);
      added += 1;
    }
    this.showList();
    const known = found.length - added;
    this.toast(known === 0 ? `${added} imported` : `${added} imported, ${known} were here already`);
  }

  /* ---- The page around it ---- */

  listen() {
    const input = byId('input');
    growWithText(input);
    const send = () => {
      if (this.running.has(this.current) || input.value.trim() === '') return;
      const path = tree.shownPath(this.current);
      const text = input.value;
      this.type('');
      this.send(text, path.at(-1)?.id ?? null);
    };
    input.addEventListener('input', () => this.showSend());
    this.type(loadDraft());
    input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return;
      event.preventDefault();
      send();
    });
    byId('send').addEventListener('click', send);
    byId('stop').addEventListener('click', () => this.stop());
    byId('new-chat').addEventListener('click', () => this.openNew());
    for (const id of ['open-settings', 'altered']) {
      byId(id).addEventListener('click', () => this.dialog.open(this.current));
    }
    byId('settings').addEventListener('close', () => this.showAltered());
    byId('toast-close').addEventListener('click', () => this.closeToast());
    byId('switch-theme').addEventListener('click', globalThis.plumbSwitchTheme);
    byId('export').addEventListener('click', () => {
      this.exportFile([...this.conversations.values()], 'plumb conversations');
    });
    byId('import').addEventListener('click', () => byId('import-file').click());
    byId('import-file').addEventListener('change', async ({ target }) => {
      if (target.files[0]) await this.importFile(target.files[0]);
      target.value = '';
    });
    byId('open-sidebar').addEventListener('click', () => this.openList());
    byId('close-sidebar').addEventListener('click', () => this.closeList(true));
    byId('backdrop').addEventListener('click', () => this.closeList(true));
    byId('thinking-panel').addEventListener('toggle', ({ newState }) => {
      if (newState === 'open') placePanel(byId('thinking-panel'), byId('thinking'));
    });
    byId('thinking-level').addEventListener('input', ({ target }) => {
      this.settings.thinking = Number(target.value);
      saveSettings(this.settings);
      this.showThinking();
    });
    const starters = STARTERS.map((text) => element('button', {
      type: 'button',
      onclick: () => {
        this.type(text);
        input.focus();
      },
    }, `${text.trim().replace(/:$/, '')}…`));
    byId('starters').append(...starters);
    if (/Mac|iPhone|iPad/.test(navigator.platform)) byId('new-chat-key').textContent = '⌘ K';
    document.addEventListener('keydown', (event) => this.key(event));
    addEventListener('hashchange', () => this.openAddressed());
    document.addEventListener('visibilitychange', () => saveDraft(input.value)); // a phone may end the page then
    addEventListener('pagehide', () => {
      saveDraft(input.value);
      this.running.forEach(({ message }, conversation) => {
        message.state = 'stopped';
        this.save(conversation);
      });
    });
  }

  /* Puts a text where messages are written, as if it were typed. */
  type(text) {
    byId('input').value = text;
    byId('input').dispatchEvent(new Event('input'));
  }

  key(event) {
    if (document.querySelector('dialog[open]')) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      this.openNew();
    } else if (event.key === 'Escape' && !document.querySelector(':popover-open')) {
      if (document.body.classList.contains('listing')) this.closeList(true);
      else this.stop();
    }
  }

  stop() {
    const answering = this.running.get(this.current);
    if (!answering) return;
    answering.stop();
    this.focusInput();
  }

  openList() {
    document.body.classList.add('listing');
    byId('main').inert = true;
    byId('open-sidebar').setAttribute('aria-expanded', 'true');
    byId('close-sidebar').focus();
  }

  closeList(focus = false) {
    if (!document.body.classList.contains('listing')) return;
    document.body.classList.remove('listing');
    byId('main').inert = false;
    byId('open-sidebar').setAttribute('aria-expanded', 'false');
    if (focus) byId('open-sidebar').focus();
  }

  showSend() {
    byId('send').disabled = byId('input').value.trim() === '';
  }

  showThinking() {
    const level = this.settings.thinking ?? this.thinking;
    byId('thinking-level').value = level;
    byId('thinking-level').setAttribute('aria-valuetext', level > 0 ? String(level) : 'off');
    byId('thinking-label').textContent = level > 0 ? `Thinking ${level}` : 'No thinking';
    byId('thinking').classList.toggle('on', level > 0);
  }

  showContext() {
    const used = contextTokens(tree.shownPath(this.current));
    const { context } = this;
    byId('context').textContent = used === 0 ? '' : context ? `${count(used)} of ${count(context)}` : count(used);
    byId('context').classList.toggle('tight', context > 0 && used > 0.9 * context);
  }

  /* What was set once applies to each answer, and is easily forgotten. */
  showAltered() {
    const numbers = NUMBERS.filter((name) => this.settings[name] !== '');
    const parts = numbers.map((name) => `${name.replace('_', ' ')} ${this.settings[name]}`);
    if (this.current.system.trim() !== '') parts.unshift('system prompt');
    byId('altered').textContent = parts.join(' · ');
    byId('altered').hidden = parts.length === 0;
  }

  announce(text) {
    byId('announce').textContent = text;
  }

  /* What was done stays to be read, and to be undone, until something else is. */
  toast(text, label = '', action = null) {
    byId('toast-text').textContent = text;
    byId('toast-action').textContent = label;
    byId('toast-action').hidden = !action;
    byId('toast-action').onclick = () => {
      this.closeToast();
      action();
    };
    byId('toast').hidden = false;
  }

  closeToast() {
    byId('toast').hidden = true;
  }
}

let app = null;
app = new App(await ConversationStore.open((id) => app?.changedElsewhere(id)));
await app.start();
