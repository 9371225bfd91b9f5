// Conversations through the `openai` package: chat, completions and responses.
import { assert, base, key, load, refusal, run } from "./harness.mjs";
import { recorder } from "./types.mjs";

const { default: OpenAI } = await load("openai");
const recorded = recorder();
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, fetch: recorded.fetch });
const plain = { model: "demo", temperature: 0, reasoning_effort: "none", max_tokens: 60 };
const question = [{ role: "user", content: "What is the capital of France?" }];
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Current weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 20 }, days: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
};

async function collect(stream) {
  const all = { content: "", reasoning: "", finish: null, usage: null, chunks: 0 };
  for await (const chunk of stream) {
    all.chunks++;
    all.usage = chunk.usage ?? all.usage;
    for (const choice of chunk.choices) {
      all.content += choice.delta.content ?? "";
      all.reasoning += choice.delta.reasoning_content ?? "";
      all.finish = choice.finish_reason ?? all.finish;
    }
  }
  return all;
}

await run({
  async models() {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), ["demo"]);
    assert.equal((await client.models.retrieve("demo")).id, "demo");
    assert.equal((await refusal(() => client.models.retrieve("other"))).status, 404);
  },
  async answer() {
    const answer = await client.chat.completions.create({ ...plain, messages: question });
    assert.match(answer.choices[0].message.content, /Paris/);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.object, "chat.completion");
    assert.ok(answer.usage.prompt_tokens > 0 && answer.usage.completion_tokens > 0);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },
  async streamed() {
    const whole = await client.chat.completions.create({ ...plain, messages: question });
    const stream = await client.chat.completions.create({
      ...plain, messages: question, stream: true, stream_options: { include_usage: true },
    });
    const parts = await collect(stream);
    assert.equal(parts.content, whole.choices[0].message.content);
    assert.equal(parts.finish, "stop");
    assert.ok(parts.chunks > 2);
    assert.deepEqual(parts.usage.prompt_tokens, whole.usage.prompt_tokens);
    assert.equal(parts.usage.completion_tokens, whole.usage.completion_tokens);
    // The same again: all but one token of the prompt is known.
    assert.equal(parts.usage.prompt_tokens_details.cached_tokens, whole.usage.prompt_tokens - 1);
  },
  async conversation() {
    const messages = [{ role: "system", content: "You are terse." }, { role: "user", content: "Hello, my name is Emma." }];
    const first = await client.chat.completions.create({ ...plain, messages });
    messages.push(first.choices[0].message, { role: "user", content: "What is my name?" });
    const second = await client.chat.completions.create({ ...plain, messages });
    const known = first.usage.prompt_tokens + first.usage.completion_tokens;
    assert.ok(second.usage.prompt_tokens_details.cached_tokens >= known - 1, JSON.stringify(second.usage));
    assert.match(second.choices[0].message.content, /Emma/);
  },
  async thinking() {
    const asked = { model: "demo", temperature: 0, max_tokens: 400, messages: question };
    const answer = await client.chat.completions.create({ ...asked, reasoning_effort: "low" });
    const { reasoning_content: reasoning, content } = answer.choices[0].message;
    assert.ok(reasoning.length > 0, JSON.stringify(answer));
    assert.ok(answer.usage.completion_tokens_details.reasoning_tokens > 0);
    assert.ok(!`${content}${reasoning}`.includes("think>"));
    const parts = await collect(
      await client.chat.completions.create({ ...asked, reasoning_effort: "low", stream: true }));
    assert.equal(parts.reasoning, reasoning);
    assert.equal(parts.content, content ?? "");
  },
  async limits() {
    const cut = await client.chat.completions.create({ ...plain, max_tokens: 2, messages: question });
    assert.equal(cut.choices[0].finish_reason, "length");
    assert.equal(cut.usage.completion_tokens, 2);
    const stopped = await client.chat.completions.create({ ...plain, stop: ["Par"], messages: question });
    assert.equal(stopped.choices[0].finish_reason, "stop");
    assert.ok(!stopped.choices[0].message.content.includes("Par"));
  },
  async seeds() {
    const asked = { ...plain, temperature: 1, max_tokens: 24, messages: question };
    const texts = [];
    for (const seed of [7, 7, 8, 9, 10])
      texts.push((await client.chat.completions.create({ ...asked, seed })).choices[0].message.content);
    assert.equal(texts[0], texts[1]);
    const several = await client.chat.completions.create({ ...asked, seed: 7, n: 3 });
    assert.equal(several.choices.length, 3);
    assert.deepEqual(several.choices.map((c) => c.index), [0, 1, 2]);
    assert.equal(several.choices[0].message.content, texts[0]);
    const pieces = ["", "", ""];
    const stream = await client.chat.completions.create({ ...asked, seed: 7, n: 3, logprobs: true, stream: true });
    for await (const chunk of stream)
      for (const { index, delta } of chunk.choices) pieces[index] += delta.content ?? "";
    assert.deepEqual(pieces, several.choices.map((c) => c.message.content));
  },
  async logprobs() {
    const answer = await client.chat.completions.create({
      ...plain, messages: question, logprobs: true, top_logprobs: 3,
    });
    const { content } = answer.choices[0].logprobs;
    const bytes = Buffer.from(content.flatMap((t) => t.bytes));
    assert.equal(bytes.toString(), answer.choices[0].message.content);
    for (const token of content) {
      assert.ok(token.logprob <= 0 && token.top_logprobs.length === 3);
      assert.equal(token.top_logprobs[0].token, token.token); // greedy
    }
  },
  async bias() {
    const [id] = (await (await fetch(`${base}/tokenize`, {
      method: "POST", headers: { authorization: `Bearer ${key}` }, body: JSON.stringify({ content: "!" }),
    })).json()).tokens;
    const answer = await client.chat.completions.create({
      ...plain, max_tokens: 3, logit_bias: { [id]: 100 }, messages: question,
    });
    assert.equal(answer.choices[0].message.content, "!!!");
  },
  async tools() {
    const asked = { ...plain, max_tokens: 200, tools: [weather] };
    const messages = [{ role: "user", content: "Weather in Paris?" }];
    for (const tool_choice of ["required", { type: "function", function: { name: "get_weather" } }]) {
      const answer = await client.chat.completions.create({ ...asked, tool_choice, messages });
      const choice = answer.choices[0];
      assert.equal(choice.finish_reason, "tool_calls", JSON.stringify(answer));
      const [call] = choice.message.tool_calls;
      assert.equal(call.function.name, "get_weather");
      const given = JSON.parse(call.function.arguments);
      assert.ok(typeof given.city === "string" && Number.isInteger(given.days));
      const next = [...messages, choice.message, { role: "tool", tool_call_id: call.id, content: "sunny" }];
      const then = await client.chat.completions.create({ ...asked, tool_choice: "none", messages: next });
      assert.equal(typeof then.choices[0].message.content, "string");
      const known = answer.usage.prompt_tokens + answer.usage.completion_tokens;
      assert.ok(then.usage.prompt_tokens_details.cached_tokens >= known - 1, JSON.stringify(then.usage));
    }
  },
  async streamed_tools() {
    const stream = client.chat.completions.stream({
      ...plain, max_tokens: 200, tools: [weather], tool_choice: "required",
      messages: [{ role: "user", content: "Weather in Rome?" }],
    });
    const [call] = (await stream.finalChatCompletion()).choices[0].message.tool_calls;
    assert.equal(call.function.name, "get_weather");
    assert.ok(Number.isInteger(JSON.parse(call.function.arguments).days));
  },
  async structured() {
    const schema = {
      type: "object",
      properties: { city: { enum: ["Paris", "Rome"] }, count: { type: "integer", minimum: 0, maximum: 99 },
                    tags: { type: "array", items: { type: "string", maxLength: 8 }, maxItems: 2 } },
      required: ["city", "count", "tags"], additionalProperties: false,
    };
    for (const reasoning_effort of ["none", "low"]) {
      const answer = await client.chat.completions.create({
        ...plain, max_tokens: 1000, reasoning_effort, messages: question,
        response_format: { type: "json_schema", json_schema: { name: "place", strict: true, schema } },
      });
      assert.equal(answer.choices[0].finish_reason, "stop", JSON.stringify(answer));
      const value = JSON.parse(answer.choices[0].message.content);
      assert.deepEqual(Object.keys(value).sort(), ["city", "count", "tags"]);
      assert.ok(["Paris", "Rome"].includes(value.city) && Array.isArray(value.tags));
    }
    const refused = await refusal(() => client.chat.completions.create({
      ...plain, messages: question,
      response_format: { type: "json_schema", json_schema: { name: "x", schema: { not: {} } } },
    }));
    assert.equal(refused.status, 400);
  },
  async structured_or_tools() {
    const schema = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"],
                     additionalProperties: false };
    for (const seed of [1, 2, 3, 4]) {
      const answer = await client.chat.completions.create({
        ...plain, temperature: 1, seed, max_tokens: 400, messages: question, tools: [weather],
        response_format: { type: "json_schema", json_schema: { name: "place", schema } },
      });
      const { message, finish_reason } = answer.choices[0];
      if (message.tool_calls) assert.ok(Number.isInteger(JSON.parse(message.tool_calls[0].function.arguments).days));
      else assert.equal(typeof JSON.parse(message.content).city, "string");
      assert.equal(finish_reason, message.tool_calls ? "tool_calls" : "stop");
    }
  },
  async completions() {
    const answer = await client.completions.create({
      model: "demo", prompt: "Once upon a time", max_tokens: 12, temperature: 0, logprobs: 2, echo: true,
    });
    const { text, logprobs } = answer.choices[0];
    assert.ok(text.startsWith("Once upon a time") && text.length > 20);
    assert.equal(logprobs.tokens.join(""), text);
    assert.equal(logprobs.token_logprobs.length, logprobs.tokens.length);
    let joined = "";
    for await (const chunk of await client.completions.create({
      model: "demo", prompt: "Once upon a time", max_tokens: 12, temperature: 0, stream: true }))
      joined += chunk.choices[0]?.text ?? "";
    assert.equal(`Once upon a time${joined}`, text);
  },
  async responses() {
    const asked = { model: "demo", temperature: 0, reasoning: { effort: "none" }, max_output_tokens: 60 };
    const first = await client.responses.create({ ...asked, input: "Hello, my name is Emma." });
    assert.equal(first.status, "completed");
    const second = await client.responses.create({
      ...asked, input: "What is my name?", previous_response_id: first.id,
    });
    assert.match(second.output_text, /Emma/);
    assert.ok(second.usage.input_tokens_details.cached_tokens > 0);
    const lost = await refusal(() => client.responses.create({ ...asked, input: "x", previous_response_id: "resp_none" }));
    assert.ok([404, 409].includes(lost.status));
  },
  async streamed_responses() {
    const stream = client.responses.stream({
      model: "demo", temperature: 0, max_output_tokens: 400, input: "What is the capital of France?",
    });
    const kinds = [];
    let text = "";
    for await (const event of stream) {
      kinds.push(event.type);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    const final = await stream.finalResponse();
    assert.equal(text, final.output_text);
    assert.equal(kinds[0], "response.created");
    assert.ok(["response.completed", "response.incomplete"].includes(kinds.at(-1)));
  },
  async responses_tools() {
    const tool = { type: "function", name: "get_weather", parameters: weather.function.parameters, strict: true };
    const asked = { model: "demo", temperature: 0, reasoning: { effort: "none" }, max_output_tokens: 200, tools: [tool] };
    const input = [{ role: "user", content: "Weather in Paris?" }];
    const answer = await client.responses.create({ ...asked, tool_choice: "required", input });
    const call = answer.output.find((item) => item.type === "function_call");
    assert.equal(call.name, "get_weather");
    assert.equal(typeof JSON.parse(call.arguments).city, "string");
    const then = await client.responses.create({
      ...asked, tool_choice: "none",
      input: [...input, ...answer.output, { type: "function_call_output", call_id: call.call_id, output: "sunny" }],
    });
    assert.equal(then.status === "completed" || then.status === "incomplete", true);
  },
  async responses_of_what_is_stored() {
    const tools = [
      { type: "namespace", name: "mcp__sky", description: "Skies", tools: [
        { type: "function", name: "get_weather", parameters: weather.function.parameters },
      ] },
      { type: "web_search" },
    ];
    const asked = { model: "demo", temperature: 0, reasoning: { effort: "low" }, max_output_tokens: 1000, tools };
    const input = [{ role: "user", content: "Weather in Paris?" }];
    const final = await client.responses.stream({ ...asked, tool_choice: "required", input }).finalResponse();
    assert.deepEqual(final.tools.map((tool) => tool.type), ["namespace"]); // what was offered
    const call = final.output.find((item) => item.type === "function_call");
    assert.deepEqual([call.namespace, call.name], ["mcp__sky", "get_weather"]);
    // The items of the answer go back by their names, and stand in the prompt as they were sampled.
    const then = await client.responses.create({
      ...asked, tool_choice: "none",
      input: [...input, ...final.output.map(({ id }) => ({ type: "item_reference", id })),
              { type: "function_call_output", call_id: call.call_id, output: [{ type: "input_text", text: "sunny" }] }],
    });
    const known = final.usage.input_tokens + final.usage.output_tokens;
    assert.ok(then.usage.input_tokens_details.cached_tokens >= known - 1, JSON.stringify([then.usage, final.usage]));
    const lost = await refusal(() => client.responses.create({ ...asked, input: [{ type: "item_reference", id: "msg_1" }] }));
    assert.equal(lost.status, 404);
  },
  async abandoned() {
    const stream = await client.chat.completions.create({
      ...plain, max_tokens: 4000, temperature: 1, logit_bias: { 1: -100 }, messages: question, stream: true,
    });
    for await (const chunk of stream) if (chunk.choices.length) break;
    stream.controller.abort();
    for (;;) {
      const slots = await (await fetch(`${base}/slots`, { headers: { authorization: `Bearer ${key}` } })).json();
      if (slots.every((slot) => slot.state === "idle")) break;
    }
  },
  async refused() {
    const wrong = [
      [{ messages: [] }, 400], [{ messages: question, temperature: 9 }, 400], [{ messages: question, n: 0 }, 400],
      [{ messages: question, top_logprobs: 2 }, 400], [{ messages: [{ role: "user", content: 5 }] }, 400],
      [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }] }, 400],
    ];
    for (const [body, status] of wrong) {
      const fault = await refusal(() => client.chat.completions.create({ ...plain, ...body }));
      assert.equal(fault.status, status, JSON.stringify(body));
      assert.ok(fault.error.message.length > 0 && fault.type === "invalid_request_error");
    }
    const stranger = new OpenAI({ baseURL: `${base}/v1`, apiKey: "the key of a stranger", maxRetries: 0 });
    const fault = await refusal(() => stranger.models.list());
    assert.equal(fault.status, 401);
  },
  types: recorded.check,
});
