// Answers against the official clients' own declarations, by the TypeScript compiler.
//
// Each value becomes a constant of the type that the client's package promises to its users: a member that is missing,
// misspelt, of a wrong type, or null where the declaration has no null, is a fault of the server.  What the server
// adds to an API is taken away first, by name.
import { join } from "node:path";
import { assert, load, modules } from "./harness.mjs";
import { checkStream } from "./order.mjs";

const { default: ts } = await load("typescript");

const heads = [
  'import type OpenAI from "openai";',
  'import type Anthropic from "@anthropic-ai/sdk";',
  // The client itself puts the text together.
  'type Response = Omit<OpenAI.Responses.Response, "output_text">;',
  "type OfResponse = { response: OpenAI.Responses.Response };",
  "type Bare<E> = E extends OfResponse ? Omit<E, 'response'> & { response: Response } : E;",
  "type ResponseEvent = Bare<OpenAI.Responses.ResponseStreamEvent>;",
  // It reads chunks by the declaration of whole completions, in which no choice goes on.
  "type Choice = Omit<OpenAI.CompletionChoice, 'finish_reason'> & { finish_reason: 'stop' | 'length' | null };",
  "type CompletionChunk = Omit<OpenAI.Completion, 'choices'> & { choices: Choice[] };",
  "type OpenAIError = { error: OpenAI.ErrorObject };",
  "type Models = { object: 'list'; data: OpenAI.Model[] };",
  "type AnthropicModels = { data: Anthropic.ModelInfo[]; has_more: boolean; first_id: string; last_id: string };",
  "type MessageEvent = Anthropic.MessageStreamEvent | { type: 'ping' };",
];

/** What each path answers: whole, as an event, and when something is wrong. */
const promised = {
  "/v1/chat/completions": ["OpenAI.ChatCompletion", "OpenAI.ChatCompletionChunk", "OpenAIError"],
  "/v1/completions": ["OpenAI.Completion", "CompletionChunk", "OpenAIError"],
  "/v1/responses": ["Response", "ResponseEvent", "OpenAIError"],
  "/v1/messages": ["Anthropic.Message", "MessageEvent", "Anthropic.ErrorResponse"],
  "/v1/messages/count_tokens": ["Anthropic.MessageTokensCount", "never", "Anthropic.ErrorResponse"],
  "openai models": ["Models", "never", "OpenAIError"],
  "openai model": ["OpenAI.Model", "never", "OpenAIError"],
  "anthropic models": ["AnthropicModels", "never", "Anthropic.ErrorResponse"],
  "anthropic model": ["Anthropic.ModelInfo", "never", "Anthropic.ErrorResponse"],
  "/v1/nothing": ["never", "never", "Anthropic.ErrorResponse"],
};

/** The key above of what a request is for. */
function kindOf(url, headers) {
  const { pathname } = new URL(url);
  if (!pathname.startsWith("/v1/models")) return pathname;
  return `${headers.has("anthropic-version") ? "anthropic" : "openai"} model${pathname === "/v1/models" ? "s" : ""}`;
}

/** Members that are documented as this server's own: the path to each, "*" standing for every element. */
const extensions = {
  "OpenAI.ChatCompletion": ["timings", "choices.*.message.reasoning_content"],
  "OpenAI.ChatCompletionChunk": ["timings", "choices.*.delta.reasoning_content"],
  "OpenAI.Completion": ["timings"],
  CompletionChunk: ["timings"],
  Response: ["store"],
  ResponseEvent: ["response.store"],
  "OpenAI.Model": ["context_length", "max_model_len"],
  Models: ["data.*.context_length", "data.*.max_model_len"],
};

function without(value, [first, ...rest]) {
  if (!value || typeof value !== "object") return value;
  const copy = Array.isArray(value) ? [...value] : { ...value };
  for (const key of first === "*" ? Object.keys(copy) : [first]) {
    if (!(key in copy)) continue;
    if (rest.length) copy[key] = without(copy[key], rest);
    else delete copy[key];
  }
  return copy;
}

/** The values of one answer with their types: {type, value, where}.  An error may end a stream. */
export function valuesOf({ path, ok, isStream, text, where = path }) {
  const [whole, event, error] = promised[path];
  if (!isStream) return [{ type: ok ? whole : error, value: JSON.parse(text), where }];
  const data = [...text.matchAll(/^data: (.*)$/gm)].map((line) => line[1]).filter((line) => line !== "[DONE]");
  return data.map((line, i) => {
    const value = JSON.parse(line);
    const failed = value.type ? value.type === "error" : "error" in value;
    return { type: failed ? error : event, value, where: `${where}, event ${i}` };
  });
}

/** One of those that differ in nothing but words and numbers: the compiler has enough to read. */
function distinct(values) {
  const free = /^(delta|content|text|arguments|token|bytes|id|item_id|call_id|partial_json|thinking|reasoning_content)$/;
  const blank = (key, value) => {
    if (typeof value === "number") return 0;
    return free.test(key) && (typeof value === "string" || key === "bytes") ? "" : value;
  };
  return [...new Map(values.map((v) => [JSON.stringify([v.type, v.value], blank), v])).values()];
}

/** What does not fit, one line each. */
export function typeFaults(all) {
  const values = distinct(all);
  const lines = values.map(({ type, value }, i) => {
    const bare = (extensions[type] ?? []).reduce((v, path) => without(v, path.split(".")), value);
    return `export const v${i}: ${type} = ${JSON.stringify(bare)};`;
  });
  const name = join(modules, "..", "answers.mts");
  const options = {
    strict: true, noEmit: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  const text = [...heads, ...lines].join("\n");
  host.fileExists = (path) => path === name || fileExists(path);
  host.readFile = (path) => (path === name ? text : readFile(path));
  host.getSourceFile = (path, ...more) =>
    path === name ? ts.createSourceFile(path, text, ...more) : getSourceFile(path, ...more);
  const program = ts.createProgram([name], options, host);
  return ts.getPreEmitDiagnostics(program, program.getSourceFile(name)).map((fault) => {
    const { line, character } = ts.getLineAndCharacterOfPosition(fault.file, fault.start);
    const { where, type } = values[line - heads.length] ?? { where: "declarations", type: "" };
    const near = text.split("\n")[line].slice(Math.max(character - 20, 0), character + 100);
    return `${where}: ${type}: ${ts.flattenDiagnosticMessageText(fault.messageText, " ")} (at ${near})`;
  });
}

/** A fetch for clients, and a check of all that came through it. */
export function recorder() {
  const answers = [];
  return {
    async fetch(url, init) {
      const response = await fetch(url, init);
      const type = response.headers.get("content-type");
      const asked = init.body ? JSON.parse(init.body) : {};
      answers.push({
        path: kindOf(url, new Headers(init.headers)), ok: response.ok, isStream: type === "text/event-stream",
        withUsage: asked.stream_options?.include_usage ?? false,
        text: response.clone().text().catch(() => null),
        headers: response.headers,
      });
      return response;
    },
    async check() {
      const values = [];
      for (const answer of answers) {
        const text = await answer.text;
        if (text === null) continue; // the client hung up
        values.push(...valuesOf({ ...answer, text }));
        if (answer.isStream) checkStream(answer.path, text, answer.withUsage);
        else assert.equal(answer.headers.get("content-type"), "application/json");
        assert.match(answer.headers.get("request-id"), /^req_/);
      }
      assert.ok(values.length > answers.length);
      assert.deepEqual(typeFaults(values), []);
    },
  };
}
