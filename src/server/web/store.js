/* Where conversations, settings and the key are kept: in this browser, nowhere else.
 *
 * Conversations lie in IndexedDB, whole, by their ids; where the browser refuses it (some private windows)
 * they live as long as the page.  Other windows of this page hear of changes, and none overwrites what another
 * saved since. */

const STORE = 'conversations';

const promised = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/* Asynchronous, so that where asking alone is forbidden it fails like where opening is. */
async function openDatabase() {
  const request = indexedDB.open('plumb', 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'id' });
  return promised(request);
}

export class ConversationStore {
  #database = null;
  #channel = new BroadcastChannel('plumb-conversations');

  /* `changed` is told the id of each conversation that another window saved or removed. */
  static async open(changed) {
    const store = new ConversationStore();
    store.#channel.onmessage = ({ data }) => changed(data);
    store.#database = await openDatabase().catch(() => null);
    return store;
  }

  get lasting() {
    return this.#database !== null;
  }

  #objects(mode) {
    // Relaxed: a power cut may lose the last second, and no write waits for the drive.
    return this.#database.transaction(STORE, mode, { durability: 'relaxed' }).objectStore(STORE);
  }

  async all() {
    return this.lasting ? promised(this.#objects('readonly').getAll()) : [];
  }

  async get(id) {
    return this.lasting ? promised(this.#objects('readonly').get(id)) : undefined;
  }

  /* `merge` is told what is kept of the conversation by now, within the transaction that replaces it. */
  async save(conversation, merge) {
    if (!this.lasting) return;
    const objects = this.#objects('readwrite');
    const kept = await promised(objects.get(conversation.id));
    if (kept) merge(kept);
    await promised(objects.put(conversation));
    this.#channel.postMessage(conversation.id);
  }

  async remove(id) {
    if (!this.lasting) return;
    await promised(this.#objects('readwrite').delete(id));
    this.#channel.postMessage(id);
  }
}

/* ---- Settings, the key and the draft ---- */

/* The settings that are numbers, as the server calls them; an empty string leaves one to the server. */
export const NUMBERS = ['temperature', 'top_p', 'top_k', 'min_p', 'seed', 'max_tokens'];

const SETTINGS = 'plumb-settings';
const KEY = 'plumb-api-key';
const DRAFT = 'plumb-draft';

/* Storage may be refused too. */
function stored(storage, name) {
  try {
    return storage().getItem(name);
  } catch {
    return null;
  }
}

function put(storage, name, value) {
  try {
    if (value === null) storage().removeItem(name);
    else storage().setItem(name, value);
  } catch { /* then it lasts as long as the page */ }
}

const local = () => localStorage;
const session = () => sessionStorage;

export function loadSettings(defaults) {
  try {
    return { ...defaults, ...JSON.parse(stored(local, SETTINGS) ?? '{}') };
  } catch {
    return { ...defaults };
  }
}

export function saveSettings(settings) {
  put(local, SETTINGS, JSON.stringify(settings));
}

/* What was typed and not sent, of this window. */
export function loadDraft() {
  return stored(session, DRAFT) ?? '';
}

export function saveDraft(text) {
  put(session, DRAFT, text === '' ? null : text);
}

export function loadKey() {
  return stored(session, KEY) ?? stored(local, KEY) ?? '';
}

/* `lasting`: beyond this window.  An empty key forgets. */
export function saveKey(key, lasting) {
  put(session, KEY, key && !lasting ? key : null);
  put(local, KEY, key && lasting ? key : null);
}
