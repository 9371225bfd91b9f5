/* One answer while it is made: the request, what comes of it, and its end.  All that is to be kept goes into
 * the message; `live` is what is shown meanwhile. */
import { ApiError, streamChat } from './api.js';
import { requestMessages } from './conversation.js';
import { NUMBERS } from './store.js';

/* The body of a request, from settings where an empty string or null leaves a choice to the server. */
export function requestBody(conversation, parent, model, settings) {
  const body = { model, messages: requestMessages(conversation, parent) };
  for (const name of NUMBERS) {
    if (settings[name] !== '' && Number.isFinite(Number(settings[name]))) body[name] = Number(settings[name]);
  }
  if (settings.thinking === null) return body;
  body.chat_template_kwargs = { thinking: settings.thinking > 0 };
  if (settings.thinking > 0) body.reasoning_effort = settings.thinking;
  return body;
}

export class Answering {
  #abort = new AbortController();
  #thinkingSince = 0;
  /* phase: 'waiting', 'prompt', 'thinking' or 'writing' */
  live = { phase: 'waiting', done: 0, total: 0, pieces: 0, since: 0, seconds: 0 };

  constructor(conversation, message) {
    this.conversation = conversation;
    this.message = message;
  }

  stop() {
    this.#abort.abort();
  }

  /* Runs to the end and never throws.  `key()` gives the key to use, `askKey()` asks for another and gives
   * null when there is none; `changed()` is told of each change. */
  async run({ model, settings, key, askKey, changed }) {
    const { message, conversation } = this;
    const request = requestBody(conversation, message.parent, model, settings);
    try {
      for (;;) {
        try {
          for await (const event of streamChat(request, { key: key(), signal: this.#abort.signal })) {
            this.#take(event);
            changed();
          }
          break;
        } catch (error) {
          if (error.status !== 401 || this.#abort.signal.aborted || !(await askKey(key() !== ''))) throw error;
        }
      }
      message.state = 'done';
    } catch (error) {
      if (this.#abort.signal.aborted) {
        message.state = 'stopped';
      } else {
        message.state = 'failed';
        message.error = error instanceof ApiError ? error.message : `The page failed: ${error.message}`;
      }
    }
    this.#thinkingEnded();
    conversation.updated = Date.now();
  }

  #take(event) {
    const { live, message } = this;
    const now = performance.now();
    switch (event.kind) {
      case 'prompt':
        Object.assign(live, { phase: 'prompt', done: event.done, total: event.total });
        break;
      case 'reasoning':
        message.reasoning += event.text;
        live.phase = 'thinking';
        this.#thinkingSince ||= now;
        this.#count(now);
        break;
      case 'content':
        message.content += event.text;
        live.phase = 'writing';
        this.#thinkingEnded();
        this.#count(now);
        break;
      case 'finish':
        message.finish = event.reason;
        break;
      case 'usage':
        if (event.usage) message.usage = event.usage;
        if (event.timings) message.timings = event.timings;
        break;
    }
  }

  #count(now) {
    this.live.since ||= now;
    this.live.pieces += 1;
    this.live.seconds = (now - this.live.since) / 1000;
  }

  #thinkingEnded() {
    if (this.#thinkingSince === 0 || this.message.thinkingSeconds !== undefined) return;
    this.message.thinkingSeconds = (performance.now() - this.#thinkingSince) / 1000;
  }
}
