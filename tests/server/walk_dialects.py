"""What the clients of walk.py ask, in four dialects, and what of the answers has to be equal.

A conversation is a scene (system prompt, tools, how much is thought) and a history: items as its dialect has them,
or pieces of text.  A manner is how the next answer is wanted.  Both are JSON, so that a request can be told."""

import json
import re

LOOKUP = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 6},
                                           "limit": {"type": "integer", "minimum": 0, "maximum": 9}},
          "required": ["query", "limit"], "additionalProperties": False}
FORM = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "old": {"type": "boolean"}},
        "required": ["name", "old"], "additionalProperties": False}
# Anything that a server makes up to name something.
ID = re.compile(r"\b(?:call|toolu|msg|chatcmpl|cmpl|resp|rs|fc)[_-][a-z0-9]{24,32}(?:_\d+)?\b")
CALL = re.compile(r"\b(?:call|toolu)_[a-z0-9]{24}\b")


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def data_of(text):
    """The objects of a stream, or the one that the whole is."""
    if not text.startswith(("data:", "event:", ":")):
        return [json.loads(text)]
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ") and line != "data: [DONE]"]


# ---- Chat completions ----

def put_together(delta, message):
    for key in ("content", "reasoning_content"):
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for part in delta.get("tool_calls") or []:
        calls = message.setdefault("tool_calls", [])
        if part["index"] == len(calls):
            calls.append({"id": part["id"], "type": "function", "function": {"name": part["function"]["name"],
                                                                            "arguments": ""}})
        calls[part["index"]]["function"]["arguments"] += part["function"].get("arguments") or ""


def common(manner):
    """What chat and other completions have in common."""
    body = {"stream": True, "stream_options": {"include_usage": True}} if manner["stream"] else {}
    if manner["stop"]:
        body["stop"] = manner["stop"]
    if manner["runs"] > 1:
        body["n"] = manner["runs"]
    return body


class Chat:
    path = "/v1/chat/completions"

    @staticmethod
    def body(scene, history, manner):
        body = {"messages": [{"role": "system", "content": scene["system"]}] + history, "max_tokens": manner["most"],
                "reasoning_effort": scene["effort"], **manner["sampling"]}
        if scene["tools"]:
            body |= {"tools": [{"type": "function", "function": {"name": "lookup", "parameters": LOOKUP}}],
                     "tool_choice": "required" if manner["form"] == "calls" else "auto"}
        if manner["form"] == "schema":
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "person", "schema": FORM}}
        if manner["logprobs"] is not None:
            body |= {"logprobs": True, "top_logprobs": manner["logprobs"]}
        return body | common(manner)

    @staticmethod
    def items(text):
        """The answer as the next request has it."""
        data = data_of(text)
        message = {"role": "assistant", "content": None}
        for choice in (c for d in data for c in d["choices"] if c["index"] == 0):
            put_together(choice.get("delta", {}), message)
            message = choice.get("message", message)
        # Of a stream: what did not end is no call.
        calls = [c for c in message.pop("tool_calls", None) or [] if is_object(c["function"]["arguments"])]
        if calls:
            message["tool_calls"] = calls
        return [{key: value for key, value in message.items() if key != "refusal"}]

    @staticmethod
    def calls(items):
        return [call["id"] for item in items for call in item.get("tool_calls", [])]

    @staticmethod
    def reply(calls, text):
        return [{"role": "tool", "tool_call_id": call, "content": text} for call in calls] or \
            [{"role": "user", "content": text}]


# ---- Completions ----

class Completions:
    path = "/v1/completions"

    @staticmethod
    def body(scene, history, manner):
        body = {"prompt": scene["system"] + "".join(history), "max_tokens": manner["most"], **manner["sampling"]}
        if manner["logprobs"] is not None:
            body["logprobs"] = manner["logprobs"]
        if manner["echo"]:
            body["echo"] = True
        return body | common(manner)

    @staticmethod
    def items(text):
        return ["".join(c["text"] for d in data_of(text) for c in d["choices"] if c["index"] == 0)]

    @staticmethod
    def calls(_items):
        return []

    @staticmethod
    def reply(_calls, text):
        return [text]


# ---- Responses ----

class Responses:
    path = "/v1/responses"

    @staticmethod
    def body(scene, history, manner):
        """`previous`: the id of the response that stands for all of the history but its end."""
        new = history if not manner["previous"] else history[manner["known"]:]
        body = {"instructions": scene["system"], "input": new, "max_output_tokens": manner["most"], "temperature": 0,
                "reasoning": {"effort": scene["effort"]}, "stream": manner["stream"]}
        if manner["previous"]:
            body["previous_response_id"] = manner["previous"]
        if scene["tools"]:
            body |= {"tools": [{"type": "function", "name": "lookup", "parameters": LOOKUP}],
                     "tool_choice": "required" if manner["form"] == "calls" else "auto"}
        if manner["form"] == "schema":
            body["text"] = {"format": {"type": "json_schema", "name": "person", "schema": FORM}}
        return body

    @staticmethod
    def items(text):
        last = data_of(text)[-1]
        return last.get("response", last)["output"]

    @staticmethod
    def calls(items):
        return [item["call_id"] for item in items if item["type"] == "function_call"]

    @staticmethod
    def reply(calls, text):
        return [{"type": "function_call_output", "call_id": call, "output": text} for call in calls] or \
            [{"type": "message", "role": "user", "content": text}]


# ---- Messages ----

class Messages:
    path = "/v1/messages"

    @staticmethod
    def body(scene, history, manner):
        body = {"system": scene["system"], "messages": history, "max_tokens": manner["most"], "temperature": 0,
                "stream": manner["stream"], "thinking": {"type": "disabled"}}
        if scene["tools"]:
            body |= {"tools": [{"name": "lookup", "input_schema": LOOKUP}],
                     "tool_choice": {"type": "any" if manner["form"] == "calls" else "auto"}}
        if manner["stop"]:
            body["stop_sequences"] = manner["stop"]
        return body

    @staticmethod
    def items(text):
        content, written = [], ""
        for data in data_of(text):
            content = data.get("content", content)
            if data["type"] == "content_block_start":
                content.append(data["content_block"])
                written = ""
            elif data["type"] == "content_block_delta":
                delta = {key: value for key, value in data["delta"].items() if key != "type"}
                written += delta.pop("partial_json", "")
                for key, value in delta.items():
                    content[-1][key] = content[-1].get(key, "") + value
            elif data["type"] == "content_block_stop" and content[-1]["type"] == "tool_use":
                content[-1]["input"] = json.loads(written) if is_object(written) else None
        content = [block for block in content if block.get("input", {}) is not None]
        return [{"role": "assistant", "content": content}]

    @staticmethod
    def calls(items):
        return [block["id"] for item in items for block in item["content"] if block["type"] == "tool_use"]

    @staticmethod
    def reply(calls, text):
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}
                                             for call in calls] or text}]


DIALECTS = {"chat": Chat, "completions": Completions, "responses": Responses, "messages": Messages}

# ---- Comparing ----

# What may differ: when, how long it took, and what was known already.
DIFFERENT = [(re.compile(r'"(created|created_at|completed_at)":\s*\d+'), r'"\1":0'),
             (re.compile(r'"timings":\s*\{[^}]*\}'), '"timings":{}'),
             (re.compile(r'"cached_tokens":\s*\d+'), '"cached_tokens":0'),
             (re.compile(r'"input_tokens":\s*(\d+),\s*"cache_creation_input_tokens":\s*0,'
                         r'\s*"cache_read_input_tokens":\s*(\d+)'),
              lambda found: f'"input_tokens":{int(found[1]) + int(found[2])}')]
PING = ("event: ping", 'data: {"type":"ping"}')


def run_of(line):
    """Which of several answers a chunk is of: they are written side by side."""
    choices = json.loads(line[6:]).get("choices") if line.startswith("data: {") else None
    return choices[0]["index"] if choices else 0 if choices is None and line != "data: [DONE]" else 1000


def same_of(text):
    """What two answers to one request share, and the ids that stand in it, each once and in order."""
    lines = [line for line in text.split("\n") if not line.startswith(":") and line not in ("", *PING)]
    rest = "\n".join(sorted(lines, key=run_of))
    for pattern, replacement in DIFFERENT:
        rest = pattern.sub(replacement, rest)
    ids = list(dict.fromkeys(ID.findall(rest)))
    return ID.sub(lambda found: f"ID{ids.index(found[0])}", rest), ids


def usages(data):
    """All that is told of tokens: (prompt, cached, completion, reasoning)."""
    if isinstance(data, list):
        for each in data:
            yield from usages(each)
    if not isinstance(data, dict):
        return
    for key, value in data.items():
        if key != "usage" or not value:
            yield from usages(value)
        elif "prompt_tokens" in value:
            assert value["total_tokens"] == value["prompt_tokens"] + value["completion_tokens"], value
            yield (value["prompt_tokens"], value["prompt_tokens_details"]["cached_tokens"], value["completion_tokens"],
                   value["completion_tokens_details"]["reasoning_tokens"])
        elif "cache_read_input_tokens" in value:
            cached = value["cache_read_input_tokens"]
            yield (value["input_tokens"] + cached, cached, value["output_tokens"],
                   value["output_tokens_details"]["thinking_tokens"])
        else:
            assert value["total_tokens"] == value["input_tokens"] + value["output_tokens"], value
            yield (value["input_tokens"], value["input_tokens_details"]["cached_tokens"], value["output_tokens"],
                   value["output_tokens_details"]["reasoning_tokens"])


def usage_of(text):
    """The usage of an answer, whose parts must agree: while it waits, others may read what it has in common with them."""
    told = list(usages(data_of(text)))
    assert told, f"no usage in {text}"
    known = 0
    for prompt, cached, completion, reasoning in told:
        assert 0 <= cached < prompt and 0 <= reasoning <= completion, told
        assert prompt == told[0][0] and cached >= known, told
        known = cached
    return told[-1]
