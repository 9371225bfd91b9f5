// Answers that were written before, read by the official clients: canned.mjs MODULES FOLDER KEY.
//
// What a client gathers from a stream must be what it gets whole, and its own checks of the order of events are
// the judge of that.  All of it must be of the types that the clients declare.  FOLDER has API-NAME.sse and
// API-NAME.json; a server here hands out the one that a request names as its model.
import { createServer } from "node:http";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { assert, base as folder, load, refusal, run } from "./harness.mjs";
import { checkStream } from "./order.mjs";
import { typeFaults, valuesOf } from "./types.mjs";

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
const messages = [{ role: "user", content: "Q" }];

/** Whether an answer ends as it should; the others end a stream with an error. */
const ends = (name) => !/-(broken-call|failed)$/.test(name);

async function message(model) {
  const asked = { model, max_tokens: 9, messages };
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
  const last = { type: "" };
  for await (const event of stream) last.type = event.type;
  const final = await stream.finalResponse();
  if (!ends(model)) {
    assert.equal(last.type, "response.failed");
    assert.equal(final.status, "failed");
    assert.match(final.error.message, /broke off|NaN/);
    return;
  }
  const whole = await openai.responses.create(asked);
  // The client adds what it parsed of each item.
  const bare = (item) => ({
    ...item,
    parsed_arguments: undefined,
    content: item.content?.map((part) => ({ ...part, parsed: undefined })),
  });
  const bared = (value) => plain({ ...value, output: value.output.map(bare), output_parsed: undefined });
  assert.deepEqual(bared(final), bared(whole));
}

async function chat(model) {
  const asked = { model, messages };
  const stream = openai.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
  if (/-failed$/.test(model)) {
    const fault = await refusal(() => stream.finalChatCompletion());
    assert.match(fault.message, /NaN/);
    return;
  }
  const [{ message: final, logprobs, finish_reason }] = (await stream.finalChatCompletion()).choices;
  const whole = (await openai.chat.completions.create(asked)).choices[0];
  assert.equal(finish_reason, whole.finish_reason);
  assert.equal(final.content ?? "", whole.message.content ?? "");
  // Without a stream a call that was cut short never was.
  const calls = (of) => plain(of.tool_calls ?? []).map(({ id, function: { name, arguments: a } }) => ({ id, name, a }));
  if (ends(model)) assert.deepEqual(calls(final), calls(whole.message));
  assert.deepEqual(plain(logprobs?.content ?? []), plain(whole.logprobs?.content ?? []));
}

async function completion(model) {
  const asked = { model, prompt: "Q" };
  let text = "";
  const read = async () => {
    for await (const chunk of await openai.completions.create({ ...asked, stream: true })) text += chunk.choices[0].text;
  };
  if (!ends(model)) assert.match((await refusal(read)).message, /NaN/);
  else await read();
  if (ends(model)) assert.equal(text, (await openai.completions.create(asked)).choices[0].text);
}

const apis = {
  messages: { path: "/v1/messages", read: message },
  responses: { path: "/v1/responses", read: response },
  chat: { path: "/v1/chat/completions", read: chat },
  completions: { path: "/v1/completions", read: completion },
};
const values = [];

async function check(name) {
  const { path, read } = apis[name.split("-")[0]];
  const [whole, stream] = ["json", "sse"].map((kind) => readFileSync(join(folder, `${name}.${kind}`), "utf8"));
  const failed = ends(name) ? false : "error" in JSON.parse(whole) && !JSON.parse(whole).object;
  values.push(...valuesOf({ path, ok: !failed, isStream: false, text: whole, where: `${name}.json` }));
  values.push(...valuesOf({ path, isStream: true, text: stream, where: `${name}.sse` }));
  if (ends(name) || path === "/v1/responses") checkStream(path, stream, path === "/v1/chat/completions");
  await read(name);
}

const names = readdirSync(folder).filter((file) => file.endsWith(".sse")).map((file) => file.slice(0, -4));
await run({
  ...Object.fromEntries(names.sort().map((name) => [name, () => check(name)])),
  types() {
    const wrong = { type: "OpenAI.ErrorObject", value: { message: null }, where: "what is wrong" };
    const faults = typeFaults([...values, wrong]);
    assert.ok(values.length > names.length);
    assert.deepEqual(faults.filter((fault) => !fault.startsWith(wrong.where)), []);
    assert.equal(faults.length, 1);
  },
});
server.close();
