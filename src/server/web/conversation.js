/* A conversation as a tree of messages, where each edit or new answer is one more branch, and the requests
 * that its branches make.  Plain data that is stored and exported as it is:
 *
 *   {id, title, named, created, updated, system, messages: {ID: message}, chosen: {ID or 'root': ID}}
 *   message: {id, parent: ID or null, role: 'user' or 'assistant', content, created, and of answers:
 *             reasoning, state: 'running' 'done' 'stopped' 'failed', error, finish, usage, timings,
 *             thinkingSeconds}
 *
 * `chosen` tells which child of a message is shown.  Times are milliseconds since 1970. */

const ROOT = 'root';
/* A UUID; crypto.randomUUID is kept from pages that came over plain HTTP from another machine. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const STATES = ['running', 'done', 'stopped', 'failed'];

export function newConversation(system = '') {
  const now = Date.now();
  return {
    id: newId(), title: 'New chat', named: false, created: now, updated: now, system,
    messages: {}, chosen: {},
  };
}

/* Adds a message below `parent` (null: at the top) and shows it. */
export function addMessage(conversation, parent, role, content) {
  const message = { id: newId(), parent, role, content, created: Date.now() };
  if (role === 'assistant') Object.assign(message, { reasoning: '', state: 'running' });
  conversation.messages[message.id] = message;
  choose(conversation, message);
  conversation.updated = message.created;
  if (role === 'user' && !conversation.named && parent === null) conversation.title = titleOf(content);
  return message;
}

const textLength = (message) => message.content.length + (message.reasoning ?? '').length;

/* Whether an answer failed with nothing to keep: another attempt takes its place. */
export const failedEmpty = (message) => message.state === 'failed' && textLength(message) === 0;

export function beginAgain(message) {
  return Object.assign(message, { state: 'running', error: undefined });
}

/* Takes over what another window has of the same conversation.  Messages are only ever added, and each is
 * written by one window: `isOwn` tells those of this one.  What is shown here stays. */
export function merge(conversation, other, isOwn) {
  for (const message of Object.values(other.messages)) {
    const present = conversation.messages[message.id];
    // An answer that does not grow may be of a window that ended in the middle of it: see settle.
    const stale = message.state === 'running' && present && textLength(message) <= textLength(present);
    if (!present) conversation.messages[message.id] = message;
    else if (!isOwn(present) && !stale) Object.assign(present, message);
  }
  conversation.chosen = { ...other.chosen, ...conversation.chosen };
}

export function choose(conversation, message) {
  conversation.chosen[message.parent ?? ROOT] = message.id;
}

/* The messages with the same parent, oldest first. */
export function siblings(conversation, message) {
  const all = Object.values(conversation.messages).filter((other) => other.parent === message.parent);
  return all.sort((a, b) => a.created - b.created); // merging appends older ones
}

/* The messages that are shown, from the first to the last. */
export function shownPath(conversation) {
  const path = [];
  for (let at = ROOT; ;) {
    const message = conversation.messages[conversation.chosen[at]];
    if (!message) return path;
    path.push(message);
    at = message.id;
  }
}

/* The messages of a request for an answer below `parent`. */
export function requestMessages(conversation, parent) {
  const messages = [];
  for (let at = conversation.messages[parent]; at; at = conversation.messages[at.parent]) {
    messages.unshift({ role: at.role, content: at.content });
  }
  if (conversation.system.trim() !== '') messages.unshift({ role: 'system', content: conversation.system });
  return messages;
}

/* Whether all words stand in the title or in messages, in any case. */
export function holdsWords(conversation, words) {
  const texts = [conversation.title, ...Object.values(conversation.messages).map((message) => message.content)];
  const lower = texts.map((text) => text.toLowerCase());
  return words.every((word) => lower.some((text) => text.includes(word)));
}

/* After a reload nothing runs any more. */
export function settle(conversation) {
  for (const message of Object.values(conversation.messages)) {
    if (message.state === 'running') message.state = 'stopped';
  }
  return conversation;
}

export function titleOf(text) {
  const line = text.trim().split('\n', 1)[0].replace(/\s+/g, ' ');
  const characters = [...line];
  if (characters.length === 0) return 'New chat';
  return characters.length <= 60 ? line : `${characters.slice(0, 59).join('').trimEnd()}…`;
}

/* ---- Files ---- */

export function toExport(conversations) {
  return JSON.stringify({ format: 'plumb-conversations', version: 1, conversations }, null, 1);
}

/* The conversations of an exported file, each checked member by member: nothing of a file is taken that the
 * page would not have written.  Throws an Error that says what is wrong. */
export function fromExport(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('This file is not JSON');
  }
  if (file?.format !== 'plumb-conversations' || !Array.isArray(file.conversations)) {
    throw new Error('This file holds no conversations of plumb');
  }
  if (file.version !== 1) throw new Error('This file is of a newer version of plumb');
  return file.conversations.map((conversation, index) => {
    try {
      return checkedConversation(conversation);
    } catch (error) {
      throw new Error(`Conversation ${index + 1} of the file is damaged: ${error.message}`);
    }
  });
}

function expect(condition, what) {
  if (!condition) throw new Error(what);
}

const isText = (value) => typeof value === 'string';
const isId = (value) => isText(value) && /^[0-9a-f-]{36}$/.test(value);
const isTime = (value) => Number.isFinite(value) && Math.abs(value) < 8.64e15;

function checkedConversation(from) {
  expect(isId(from?.id), 'no id');
  expect(isText(from.title) && isText(from.system), 'a title or system prompt that is no text');
  expect(isTime(from.created) && isTime(from.updated), 'no times');
  expect(from.messages && typeof from.messages === 'object', 'no messages');
  const conversation = {
    id: from.id, title: from.title, named: from.named === true, created: from.created, updated: from.updated,
    system: from.system, messages: {}, chosen: {},
  };
  for (const [id, message] of Object.entries(from.messages)) {
    expect(isId(id) && message?.id === id, 'a message without its id');
    conversation.messages[id] = checkedMessage(message, conversation.messages);
  }
  for (const [at, id] of Object.entries(from.chosen ?? {})) {
    const child = isId(id) && conversation.messages[id];
    expect(child && (child.parent ?? ROOT) === at, 'a branch that is not there');
    conversation.chosen[at] = id;
  }
  return settle(conversation);
}

/* Parents come before their children, as the page writes them: so there are no circles. */
function checkedMessage(from, before) {
  expect(from.parent === null || (isId(from.parent) && before[from.parent]), 'a message without its parent');
  expect(from.role === 'user' || from.role === 'assistant', 'a message of nobody');
  expect(isText(from.content), 'a message without text');
  expect(isTime(from.created), 'a message without its time');
  const message = { id: from.id, parent: from.parent, role: from.role, content: from.content, created: from.created };
  if (from.role === 'user') return message;
  expect(STATES.includes(from.state), 'an answer in no state');
  message.state = from.state;
  message.reasoning = isText(from.reasoning) ? from.reasoning : '';
  for (const name of ['error', 'finish']) if (isText(from[name])) message[name] = from[name];
  if (Number.isFinite(from.thinkingSeconds)) message.thinkingSeconds = from.thinkingSeconds;
  for (const name of ['usage', 'timings']) {
    const figures = numbersOf(from[name], 2);
    if (figures) message[name] = figures;
  }
  return message;
}

/* The members that are numbers, and those of its members. */
function numbersOf(from, depth) {
  if (!from || typeof from !== 'object' || depth === 0) return null;
  const numbers = {};
  for (const [name, value] of Object.entries(from)) {
    if (!/^[a-z][a-z_]*$/.test(name)) continue;
    if (Number.isFinite(value)) numbers[name] = value;
    else {
      const inner = numbersOf(value, depth - 1);
      if (inner) numbers[name] = inner;
    }
  }
  return numbers;
}
