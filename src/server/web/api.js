/* The server's API as the page uses it.  Addresses are relative to the page, which may stand behind a
 * proxy's prefix. */
import { SseParser } from './sse.js';

/* A request that failed: `status` is HTTP's, 0 where no whole answer came. */
export class ApiError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
  }
}

const address = (path) => new URL(path, document.baseURI);
const authorization = (key) => (key ? { Authorization: `Bearer ${key}` } : {});

async function send(path, options) {
  let response;
  try {
    response = await fetch(address(path), { cache: 'no-store', redirect: 'error', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server cannot be reached. Is it running?');
  }
  if (!response.ok) throw new ApiError(await failure(response), response.status);
  return response;
}

/* What an answer that is an error says, in the shape of OpenAI's API or in none. */
async function failure(response) {
  const text = await response.text().catch(() => '');
  try {
    const { error } = JSON.parse(text);
    if (typeof error?.message === 'string') return error.message;
  } catch { /* not JSON: the status must do */ }
  return `The server answered ${response.status} ${response.statusText}`.trim();
}

export async function getJson(path, key) {
  const response = await send(path, { headers: authorization(key) });
  return response.json().catch(() => { throw new ApiError('The server sent something that is not JSON'); });
}

/* Streams one chat completion.  Yields what happens in its order:
 *   {kind: 'prompt', done, total}          tokens of the prompt evaluated so far
 *   {kind: 'reasoning' | 'content', text}
 *   {kind: 'finish', reason}
 *   {kind: 'usage', usage, timings}        either may be null
 * and throws an ApiError where the answer is one, or ends before its end; an AbortError after `signal`. */
export async function* streamChat(request, { key, signal }) {
  const response = await send('v1/chat/completions', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...authorization(key) },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  let happened = [];
  let whole = false;
  let failed = null;
  const parser = new SseParser({
    comment(text) {
      const match = /^ *prompt\b\D*(\d+)\D+(\d+)/.exec(text);
      if (match) happened.push({ kind: 'prompt', done: Number(match[1]), total: Number(match[2]) });
    },
    event(data) {
      if (whole || failed) return;
      if (data === '[DONE]') whole = true;
      else try { happened.push(...readChunk(data)); } catch (error) { failed = error; }
    },
  });
  for await (const text of texts(response.body, signal)) {
    parser.push(text);
    const now = happened;
    happened = [];
    yield* now;
    if (failed) throw failed;
    if (whole) return;
  }
  throw new ApiError('The connection ended before the answer did');
}

/* Whole characters from bytes that are cut anywhere. */
async function* texts(body, signal) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('The connection was lost');
  } finally {
    reader.cancel().catch(() => {});
  }
}

function readChunk(data) {
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ApiError('The server sent a piece of an answer that is not JSON');
  }
  if (chunk?.error) throw new ApiError(String(chunk.error.message ?? 'The server gave up on this answer'));
  const found = [];
  const choice = chunk?.choices?.[0];
  const add = (kind, text) => { if (typeof text === 'string' && text !== '') found.push({ kind, text }); };
  add('reasoning', choice?.delta?.reasoning_content);
  add('content', choice?.delta?.content);
  if (typeof choice?.finish_reason === 'string') found.push({ kind: 'finish', reason: choice.finish_reason });
  if (chunk?.usage || chunk?.timings) {
    found.push({ kind: 'usage', usage: chunk.usage ?? null, timings: chunk.timings ?? null });
  }
  return found;
}
