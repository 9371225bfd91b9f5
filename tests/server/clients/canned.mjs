// Answers that were written before, read by the official clients: canned.mjs MODULES FOLDER KEY.
//
// What a client gathers from a stream must be what it gets whole, and its own checks of the order of events are
// the judge of that.  FOLDER has API-NAME.sse and API-NAME.json; a server here hands out the one that a request
// names as its model.
import { createServer } from "node:http";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { assert, base as folder, load, refusal, run } from "./harness.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { default: OpenAI } = await load("openai");

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const { model, stream } = JSON.parse(body);
    response.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    response.end(readFileSync(join(folder, `${model}.${stream ? "sse" : "json"}`)));
  });
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const address = `http://127.0.0.1:${server.address().port}`;
const anthropic = new Anthropic({ baseURL: address, apiKey: "k", maxRetries: 0 });
const openai = new OpenAI({ baseURL: address, apiKey: "k", maxRetries: 0 });
const plain = (value) => JSON.parse(JSON.stringify(value));

/** Whether an answer ends as it should; the others end a stream with an error. */
const ends = (name) => !/-(broken-call|failed)$/.test(name);

async function message(model) {
  const asked = { model, max_tokens: 9, messages: [{ role: "user", content: "Q" }] };
  const stream = anthropic.messages.stream(asked);
  if (!ends(model)) {
    const fault = await refusal(() => stream.finalMessage());
    assert.match(fault.message, /broke off|NaN/);
    return;
  }
  const pieces = [];
  for await (const event of stream) pieces.push(event.type);
  assert.equal(pieces[0], "message_start");
  assert.equal(pieces.at(-1), "message_stop");
  const whole = await anthropic.messages.create(asked);
  const final = await stream.finalMessage();
  assert.deepEqual(plain(final), { ...plain(whole), ...("parsed_output" in final && { parsed_output: null }) });
}

async function response(model) {
  const asked = { model, input: "Q" };
  const stream = openai.responses.stream(asked);
  let number = 0;
  const last = { type: "" };
  for await (const event of stream) {
    assert.equal(event.sequence_number, number++);
    last.type = event.type;
  }
  const final = await stream.finalResponse();
  if (!ends(model)) {
    assert.equal(last.type, "response.failed");
    assert.equal(final.status, "failed");
    assert.match(final.error.message, /broke off|NaN/);
    return;
  }
  const whole = await openai.responses.create(asked);
  assert.equal(final.output_text, whole.output_text);
  assert.equal(final.status, whole.status);
  assert.deepEqual(plain(final.usage), plain(whole.usage));
  // The client adds what it parsed of each item.
  const bare = (item) => ({
    ...item,
    parsed_arguments: undefined,
    content: item.content?.map((part) => ({ ...part, parsed: undefined })),
  });
  assert.deepEqual(plain(final.output.map(bare)), plain(whole.output.map(bare)));
}

const names = readdirSync(folder).filter((file) => file.endsWith(".sse")).map((file) => file.slice(0, -4));
await run(Object.fromEntries(names.sort().map((name) => [
  name, () => (name.startsWith("messages-") ? message(name) : response(name)),
])));
server.close();
