// Conversations through the `@anthropic-ai/sdk` package.
import { assert, base, key, load, refusal, run } from "./harness.mjs";
import { recorder } from "./types.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");
const recorded = recorder();
const client = new Anthropic({ baseURL: base, apiKey: key, maxRetries: 0, fetch: recorded.fetch });
const plain = { model: "demo", max_tokens: 60, temperature: 0, thinking: { type: "disabled" } };
const question = [{ role: "user", content: "What is the capital of France?" }];
const weather = {
  name: "get_weather",
  description: "Current weather",
  input_schema: {
    type: "object",
    properties: { city: { type: "string", maxLength: 20 }, days: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["city", "days"],
  },
};
const text = (message) => message.content.filter((b) => b.type === "text").map((b) => b.text).join("");

await run({
  async models() {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), ["demo"]);
    assert.equal(list.hasNextPage(), false);
    assert.ok(new Date((await client.models.retrieve("demo")).created_at) <= new Date());
    assert.equal((await refusal(() => client.models.retrieve("other"))).error.error.type, "not_found_error");
  },
  async answer() {
    const message = await client.messages.create({ ...plain, messages: question });
    assert.match(text(message), /Paris/);
    assert.equal(message.stop_reason, "end_turn");
    assert.equal(message.role, "assistant");
    assert.ok(message.usage.output_tokens > 0);
  },
  async counted() {
    const counted = await client.messages.countTokens({ model: "demo", messages: question, thinking: { type: "disabled" } });
    const message = await client.messages.create({ ...plain, messages: question });
    const { input_tokens, cache_read_input_tokens } = message.usage;
    assert.equal(counted.input_tokens, input_tokens + cache_read_input_tokens);
    assert.equal(input_tokens, 1); // it was asked before
  },
  async streamed() {
    const whole = await client.messages.create({ ...plain, messages: question });
    const stream = client.messages.stream({ ...plain, messages: question });
    let pieces = "";
    stream.on("text", (piece) => (pieces += piece));
    const final = await stream.finalMessage();
    assert.equal(pieces, text(whole));
    assert.equal(text(final), text(whole));
    assert.equal(final.stop_reason, "end_turn");
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  },
  async conversation() {
    const messages = [{ role: "user", content: "Hello, my name is Emma." }];
    const first = await client.messages.create({ ...plain, system: "You are terse.", messages });
    messages.push({ role: "assistant", content: first.content }, { role: "user", content: "What is my name?" });
    const second = await client.messages.create({ ...plain, system: "You are terse.", messages });
    assert.match(text(second), /Emma/);
    assert.ok(second.usage.cache_read_input_tokens > first.usage.input_tokens);
  },
  async thinking() {
    const asked = { ...plain, max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 }, messages: question };
    const message = await client.messages.create(asked);
    assert.equal(message.content[0].type, "thinking");
    assert.ok(message.content[0].thinking.length > 0);
    assert.ok(!text(message).includes("think>"));
    const final = await client.messages.stream(asked).finalMessage();
    assert.deepEqual(final.content.map((b) => b.type), message.content.map((b) => b.type));
    assert.equal(final.content[0].thinking, message.content[0].thinking);
    // The block goes back with the next turn.
    const next = [...question, { role: "assistant", content: message.content }, { role: "user", content: "And of Italy?" }];
    assert.ok((await client.messages.create({ ...asked, messages: next })).content.length > 0);
  },
  async tools() {
    const messages = [{ role: "user", content: "Weather in Paris?" }];
    const asked = { ...plain, max_tokens: 200, tools: [weather] };
    for (const tool_choice of [{ type: "any" }, { type: "tool", name: "get_weather" }]) {
      const message = await client.messages.create({ ...asked, tool_choice, messages });
      assert.equal(message.stop_reason, "tool_use", JSON.stringify(message));
      const use = message.content.find((b) => b.type === "tool_use");
      assert.equal(use.name, "get_weather");
      assert.ok(typeof use.input.city === "string" && Number.isInteger(use.input.days));
      const final = await client.messages.stream({ ...asked, tool_choice, messages }).finalMessage();
      assert.deepEqual(final.content.find((b) => b.type === "tool_use").input, use.input);
      const next = [...messages, { role: "assistant", content: message.content },
                    { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "sunny" }] }];
      const then = await client.messages.create({ ...asked, tool_choice: { type: "none" }, messages: next });
      assert.ok(then.usage.cache_read_input_tokens > message.usage.input_tokens, JSON.stringify(then.usage));
    }
  },
  async stops() {
    const message = await client.messages.create({ ...plain, stop_sequences: ["Par"], messages: question });
    assert.equal(message.stop_reason, "stop_sequence");
    assert.equal(message.stop_sequence, "Par");
    assert.ok(!text(message).includes("Par"));
    const cut = await client.messages.create({ ...plain, max_tokens: 2, messages: question });
    assert.equal(cut.stop_reason, "max_tokens");
    assert.equal(cut.usage.output_tokens, 2);
  },
  async refused() {
    const wrong = [
      { messages: [] }, { messages: question, temperature: 9 }, { messages: [{ role: "user", content: 5 }] },
      { messages: question, max_tokens: 0 },
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "" } }] }] },
    ];
    for (const body of wrong) {
      const fault = await refusal(() => client.messages.create({ ...plain, ...body }));
      assert.equal(fault.status, 400, JSON.stringify(body));
      assert.equal(fault.error.error.type, "invalid_request_error");
    }
    const stranger = new Anthropic({ baseURL: base, apiKey: "the key of a stranger", maxRetries: 0 });
    const fault = await refusal(() => stranger.messages.create({ ...plain, messages: question }));
    assert.equal(fault.status, 401);
    assert.equal(fault.error.error.type, "authentication_error");
    assert.equal((await refusal(() => stranger.models.list())).error.error.type, "authentication_error");
    assert.equal((await refusal(() => client.get("/v1/nothing"))).error.error.type, "not_found_error");
  },
  types: recorded.check,
});
