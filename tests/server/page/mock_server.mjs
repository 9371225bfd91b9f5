/* A server that serves the page's own files with the headers of src/server/page.c, and answers as a test tells
 * it to.  By hand, to look at the page:  node tests/server/page/mock_server.mjs [PORT] */
import { createServer } from 'node:http';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hostileAnswers } from './hostile.mjs';
import { SAMPLE } from './sample.mjs';

const SERVER = fileURLToPath(new URL('../../../src/server/', import.meta.url));
const TYPES = { html: 'text/html; charset=utf-8', css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml' };

/* The rows of plumb__page_headers, whose values may be several literals. */
function pageHeaders() {
  const source = readFileSync(`${SERVER}page.c`, 'utf8');
  const table = /plumb__page_headers\[\] = \{([^]*?)\n\};/.exec(source)[1];
  const rows = [...table.matchAll(/\{"([^"]+)",((?:\s*"[^"]*")+)\}/g)];
  return rows.map(([, name, value]) => [name, [...value.matchAll(/"([^"]*)"/g)].map((part) => part[1]).join('')]);
}

function pageFiles() {
  return new Map(readdirSync(`${SERVER}web`).map((name) => [
    name === 'index.html' ? '/' : `/page/${name}`,
    { type: TYPES[name.split('.').at(-1)], bytes: readFileSync(`${SERVER}web/${name}`) },
  ]));
}

export class MockServer {
  requests = []; // bodies of chat requests, in their order
  aborted = 0; // answers whose client went away
  model = 'mock-model';
  key = null; // the key that is asked for
  #held = []; // answers that wait for release()
  #http = null;

  async start(port = 0) {
    const files = pageFiles();
    const headers = pageHeaders();
    this.#http = createServer((request, response) => {
      const path = new URL(request.url, 'http://mock').pathname;
      const file = files.get(path);
      if (file && request.method === 'GET') {
        response.writeHead(200, [...headers, ['Content-Type', file.type]].flat());
        response.end(file.bytes);
      } else {
        this.#answer(path, request, response);
      }
    });
    await new Promise((resolve) => this.#http.listen(port, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.#http.address().port}/`;
  }

  stop() {
    this.#http.closeAllConnections();
    this.#http.close();
  }

  /* Lets the answers that were held go on. */
  release() {
    for (const goOn of this.#held.splice(0)) goOn();
  }

  get held() {
    return this.#held.length;
  }

  #answer(path, request, response) {
    const json = (status, value) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (this.key && request.headers.authorization !== `Bearer ${this.key}`) {
      json(401, { error: { message: 'the API key is missing or wrong', type: 'invalid_request_error' } });
    } else if (path === '/v1/models') {
      json(200, { object: 'list', data: [{ id: this.model, object: 'model' }] });
    } else if (path === '/props') {
      json(200, { context: 65536, thinking: true, effort: 75, sampling: { temperature: 1, top_p: 0.949999988079071 } });
    } else if (path === '/v1/chat/completions' && request.method === 'POST') {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (text) => { body += text; });
      request.on('end', () => this.#chat(JSON.parse(body), response));
    } else {
      json(404, { error: { message: 'there is nothing at this path' } });
    }
  }

  /* The last message says what to answer: "mock:NAME" one of these, anything else is given back. */
  async #chat(body, response) {
    this.requests.push(body);
    const said = body.messages.at(-1).content;
    const name = /^mock:([\w-]+)/.exec(said)?.[1];
    if (name === 'refused') {
      response.writeHead(400, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ error: { message: "'temperature' is 9, expected 0 to 2" } }));
      return;
    }
    const out = new Stream(response, this);
    const script = SCRIPTS[name] ?? ((stream) => (name in hostileAnswers
      ? stream.say(hostileAnswers[name]) : stream.say(`You said: ${said}`)));
    await script(out, this);
    if (!response.writableEnded && !response.destroyed) out.finish();
  }

  /* Resolves when the test releases it, or the client has gone. */
  hold(response) {
    return new Promise((resolve) => {
      const goOn = () => resolve();
      this.#held.push(goOn);
      response.on('close', () => {
        if (!this.#held.includes(goOn)) return;
        this.#held.splice(this.#held.indexOf(goOn), 1);
        this.aborted += 1;
        resolve();
      });
    });
  }
}

/* What is written as a stream of chat completion chunks. */
class Stream {
  #pieces = 0;
  #response;

  constructor(response, server) {
    this.#response = response;
    this.server = server;
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  }

  write(text) {
    this.#response.write(text);
  }

  chunk(delta, more = {}) {
    const choices = [{ index: 0, delta, finish_reason: null, ...more }];
    this.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', model: 'mock-model', choices })}\n\n`);
  }

  say(text, kind = 'content') {
    for (const [piece] of text.matchAll(/[^]{1,7}/gu)) {
      this.#pieces += 1;
      this.chunk({ [kind]: piece });
    }
  }

  think(text) {
    this.say(text, 'reasoning_content');
  }

  hold() {
    return this.server.hold(this.#response);
  }

  finish(reason = 'stop') {
    this.chunk({}, { finish_reason: reason });
    const usage = { prompt_tokens: 1234, completion_tokens: this.#pieces, total_tokens: 1234 + this.#pieces,
      prompt_tokens_details: { cached_tokens: 1024 } };
    const timings = { prompt_seconds: 0.42, generation_seconds: this.#pieces / 40, prompt_tokens_per_second: 500,
      generation_tokens_per_second: 40, cached_tokens: 1024 };
    this.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [], usage, timings })}\n\n`);
    this.write('data: [DONE]\n\n');
    this.#response.end();
  }

  end(text) {
    this.#response.end(text);
  }

  cut() {
    this.#response.destroy();
  }
}

const SCRIPTS = {
  async sample(stream) {
    stream.think('The reader wants to see everything.\n\n* First a **list**,\n* then a table.');
    stream.say(SAMPLE);
  },
  async progress(stream) {
    stream.write(': prompt: 4096 of 12000 tokens\n\n');
    await stream.hold();
    stream.write(': prompt: 12000 of 12000 tokens\n\n');
    stream.say('That was long.');
  },
  async thinking(stream) {
    stream.think('Two and two');
    await stream.hold();
    stream.think(' is four.');
    stream.say('Four.');
  },
  async hold(stream) {
    stream.say('The first half, ');
    await stream.hold();
    stream.say('and the second.');
  },
  async rtl(stream) {
    stream.say('# עברית\n\nEnglish\n\n- **אחת**\n\n  שתיים\n  1. שלוש\n\n> مرحبا\n\n| מים | water |\n|---|---|\n| a | b |\n\n- one\n- שתיים');
    stream.say('\n\n123 שלום');
  },
  async crowd(stream) {
    stream.chunk({ content: `${'*a* '.repeat(70000)}\n\n${'- b\n'.repeat(2000)}` });
  },
  async length(stream) {
    stream.say('This goes on and');
    stream.finish('length');
  },
  async failing(stream) {
    stream.say('Half an answer');
    stream.end('data: {"error":{"message":"a drive could not be read","type":"server_error"}}\n\n');
  },
  async unended(stream) {
    stream.say('Half an answer');
    stream.end();
  },
  async cut(stream) {
    stream.say('Half an answer');
    await stream.hold();
    stream.cut();
  },
  async garbage(stream) {
    stream.end('data: {"choices":[{"delta":\n\n');
  },
  async empty(stream) {
    stream.finish();
  },
  async long(stream) {
    stream.say(Array.from({ length: 120 }, (_, i) => `Paragraph ${i + 1} of a long answer.`).join('\n\n'));
    await stream.hold();
    stream.say('\n\nThe end.');
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = new MockServer();
  process.stdout.write(`${await server.start(Number(process.argv[2] ?? 8000))}\n`);
  setInterval(() => server.release(), 3000);
}
