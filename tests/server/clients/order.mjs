// Streams of events against what each API says of their order, numbers, ids and sums.
import { assert } from "./harness.mjs";

/** Adds to what stands at `key`. */
const add = (sums, key, text) => (sums[key] = (sums[key] ?? "") + text);

function checkMessages(events) {
  const [start, ...rest] = events.filter(({ type }) => type !== "ping");
  const kinds = {
    text: ["text_delta"], thinking: ["thinking_delta", "signature_delta"], tool_use: ["input_json_delta"],
  };
  let index = 0;
  let open = null;
  let ended = null;
  const inputs = [];
  assert.equal(start.type, "message_start");
  assert.deepEqual(start.message.content, []);
  assert.equal(start.message.stop_reason, null);
  for (const event of rest) {
    assert.ok(!ended || event.type === "message_stop", `${event.type} after the end`);
    if ("index" in event) assert.equal(event.index, index);
    assert.equal(open !== null, ["content_block_delta", "content_block_stop"].includes(event.type), event.type);
    if (event.type === "content_block_start") open = event.content_block.type;
    if (event.content_block?.type === "tool_use") inputs.push("");
    if (event.type === "content_block_delta") {
      assert.ok(kinds[open].includes(event.delta.type), `${event.delta.type} in ${open}`);
      if (open === "tool_use") inputs.push(inputs.pop() + event.delta.partial_json);
    }
    if (event.type === "content_block_stop") [open, index] = [null, index + 1];
    if (event.type === "message_delta") ended = event.delta.stop_reason;
  }
  assert.equal(rest.at(-1).type, "message_stop");
  if (ended === "tool_use") inputs.forEach((json) => JSON.parse(json));
}

function checkResponses(events) {
  const last = events.at(-1);
  const done = [];
  let item = null;
  let sums = {};
  assert.deepEqual(events.slice(0, 2).map((e) => e.type), ["response.created", "response.in_progress"]);
  assert.ok(["response.completed", "response.incomplete", "response.failed"].includes(last.type), last.type);
  events.forEach((event, number) => {
    assert.equal(event.sequence_number, number);
    if (event.response) assert.equal(event.response.id, last.response.id);
    if ("output_index" in event) assert.equal(event.output_index, done.length);
    if ("item_id" in event) assert.equal(event.item_id, item.id);
    if ("content_index" in event) assert.equal(event.content_index, 0);
    if (event.type === "response.output_item.added") {
      assert.equal(item, null);
      assert.equal(event.item.status, "in_progress");
      [item, sums] = [event.item, {}];
    }
    if (event.type.endsWith(".delta")) add(sums, event.type.replace(/\.delta$/, ""), event.delta);
    if (/(text|arguments|input)\.done$/.test(event.type))
      assert.equal(event.text ?? event.arguments ?? event.input, sums[event.type.replace(/\.done$/, "")] ?? "");
    if (event.type === "response.output_item.done") {
      assert.deepEqual([event.item.id, event.item.type], [item.id, item.type]);
      for (const key of ["call_id", "name"]) assert.equal(event.item[key], item[key]);
      done.push(event.item);
      item = null;
    }
  });
  assert.equal(item, null);
  assert.equal(`response.${last.response.status}`, last.type);
  assert.deepEqual(last.response.output, done);
}

/** Chunks of chat completions and completions. */
function checkChunks(chunks, withUsage) {
  const finished = {};
  const calls = {};
  const begun = {};
  const same = ["id", "object", "created", "model", "system_fingerprint"];
  for (const [i, chunk] of chunks.entries()) {
    const isAccount = withUsage && i === chunks.length - 1;
    for (const key of same) assert.equal(chunk[key], chunks[0][key]);
    assert.equal("usage" in chunk, withUsage);
    if (withUsage) assert.equal(chunk.usage !== null, isAccount);
    assert.equal(chunk.choices.length, isAccount ? 0 : 1);
    for (const { index, delta, finish_reason } of chunk.choices) {
      assert.ok(!(index in finished), "more of a choice that has ended");
      if (delta) assert.equal(delta.role, begun[index] ? undefined : "assistant");
      begun[index] = true;
      for (const call of delta?.tool_calls ?? []) {
        const place = `${index}.${call.index}`;
        assert.equal("id" in call, !(place in calls), "an id is told once");
        const others = Object.keys(calls).filter((key) => key.startsWith(`${index}.`) && key !== place);
        assert.equal(call.index, others.length, "calls follow one another");
        add(calls, place, call.function.arguments);
      }
      if (finish_reason) finished[index] = finish_reason;
    }
  }
  assert.deepEqual(Object.keys(finished), Object.keys(begun));
  if (Object.values(finished).every((reason) => reason === "tool_calls"))
    Object.values(calls).forEach((text) => JSON.parse(text));
}

/** `text`: all of a stream that ended as it should. */
export function checkStream(path, text, withUsage) {
  const blocks = text.split("\n\n").filter((block) => block && !block.startsWith(":"));
  const named = path === "/v1/messages" || path === "/v1/responses";
  if (!named) assert.equal(blocks.pop(), "data: [DONE]");
  const events = blocks.map((block) => {
    const [, name, data] = block.match(/^(?:event: (.*)\n)?data: (.*)$/);
    const event = JSON.parse(data);
    assert.equal(name, named ? event.type : undefined);
    return event;
  });
  if (path === "/v1/messages") checkMessages(events);
  else if (path === "/v1/responses") checkResponses(events);
  else checkChunks(events, withUsage);
}
