/* The dialogs: settings, and the server's key. */
import { loadKey, NUMBERS, saveKey, saveSettings } from './store.js';

const byId = (id) => document.getElementById(id);

export class KeyDialog {
  #dialog = byId('key-dialog');
  #pending = null; // the promise of an open dialog, and what settles it
  #settle = null;
  key = loadKey();

  constructor() {
    byId('key-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.key = byId('key-input').value.trim();
      saveKey(this.key, byId('key-keep').checked);
      this.#close(true);
    });
    byId('key-cancel').addEventListener('click', () => this.#close(false));
    this.#dialog.addEventListener('close', () => {
      if (!this.#dialog.open) this.#close(false); // not when it was opened again
    });
  }

  /* Asks; gives whether there is a key now.  Who asks meanwhile waits for the same answer. */
  ask(refused) {
    byId('key-text').textContent = refused
      ? 'The server does not take this key.' : 'This server answers only with its key.';
    if (!this.#pending) {
      this.#pending = new Promise((resolve) => { this.#settle = resolve; });
      byId('key-input').value = '';
      this.#dialog.showModal();
    }
    return this.#pending;
  }

  forget() {
    this.key = '';
    saveKey('', false);
  }

  #close(given) {
    const settle = this.#settle;
    this.#pending = null;
    this.#settle = null;
    settle?.(given);
    if (this.#dialog.open) this.#dialog.close();
  }
}

/* What was typed applies at once, where it is valid; nothing has to be saved. */
export class SettingsDialog {
  #dialog = byId('settings');
  #form = byId('settings-form');
  #conversation = null;

  /* `systemChanged` is told of a conversation whose system prompt changed. */
  constructor(settings, keys, systemChanged) {
    this.settings = settings;
    this.keys = keys;
    byId('close-settings').addEventListener('click', () => this.#dialog.close());
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#dialog.close();
    });
    for (const name of NUMBERS) {
      const field = this.#form.elements[name];
      field.addEventListener('input', () => {
        if (!field.validity.valid) return;
        settings[name] = field.value;
        saveSettings(settings);
      });
    }
    const system = byId('set-system');
    const byDefault = byId('set-system-default');
    system.addEventListener('input', () => {
      this.#conversation.system = system.value;
      if (byDefault.checked) this.#keepSystem(system.value);
      systemChanged(this.#conversation);
    });
    byDefault.addEventListener('change', () => this.#keepSystem(byDefault.checked ? system.value : ''));
    byId('change-key').addEventListener('click', async () => {
      await keys.ask(false);
      this.#showKey();
    });
    byId('forget-key').addEventListener('click', () => {
      keys.forget();
      this.#showKey();
    });
  }

  open(conversation) {
    this.#conversation = conversation;
    for (const name of NUMBERS) this.#form.elements[name].value = this.settings[name];
    byId('set-system').value = conversation.system;
    byId('set-system-default').checked = conversation.system !== '' && conversation.system === this.settings.system;
    this.#showKey();
    this.#dialog.showModal();
  }

  /* What the server takes where a field is empty. */
  showDefaults(values) {
    for (const name of NUMBERS) {
      const value = values[name];
      this.#form.elements[name].placeholder = Number.isFinite(value) ? String(Number(value.toPrecision(6))) : '';
    }
  }

  #keepSystem(text) {
    this.settings.system = text;
    saveSettings(this.settings);
  }

  #showKey() {
    byId('key-state').textContent = this.keys.key ? 'A key is kept.' : 'No key is kept.';
    byId('forget-key').disabled = !this.keys.key;
  }
}
