#!/usr/bin/env python3
"""What tools send by default, first and with the results of calls, in the forms that their sources and manuals show:
tool_requests.py PLUMB.  Each must be served; what cannot be is listed with the status that the tool copes with."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import serving  # noqa: E402

SCHEMA = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False,
          "properties": {"command": {"type": "string", "description": "What to run"}, "timeout": {"type": "number"}},
          "required": ["command"]}
MARKED = {"cache_control": {"type": "ephemeral"}}
FUNCTION = {"type": "function", "function": {"name": "run_command", "description": "Runs it.", "parameters": SCHEMA}}
STRICT = {"type": "function", "function": {**FUNCTION["function"], "strict": True}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "run_command", "arguments": "{\"command\":\"ls\"}"}}
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages?beta=true"
BETAS = {"anthropic-version": "2023-06-01", "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
         "x-app": "cli", "x-stainless-lang": "js", "user-agent": "claude-cli/2.1 (external, cli)"}


def text(words, **more):
    return {"type": "text", "text": words, **more}


def user(content):
    return {"role": "user", "content": content}


# ---- Messages: Claude Code, and tools on Anthropic's packages ----

CLAUDE_TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": SCHEMA},
                {"name": "TodoWrite", "description": "Lists.", "eager_input_streaming": True, **MARKED,
                 "input_schema": {
                    "type": "object", "properties": {"todos": {"type": "array", "items": {"type": "object"}}}}}]
CLAUDE = {
    "model": "claude-sonnet-4-5", "max_tokens": 32000, "stream": True, "temperature": 1,
    "system": [text("x-anthropic-billing-header: cc_version=2.1"), text("You write programs.", **MARKED),
               text("Be brief.", cache_control={"type": "ephemeral", "ttl": "1h", "scope": "global"})],
    "messages": [user([text("<system-reminder>\nNone.\n</system-reminder>"), text("List the files.", **MARKED)])],
    "tools": CLAUDE_TOOLS, "metadata": {"user_id": "{\"device_id\":\"1\"}"},
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
CLAUDE_CALLS = [
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "cGx1bWI="}, text("I look."),
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}, "caller": {"type": "direct"}},
        {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "cat x"}}]},
    user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("a\nb")]},
          {"type": "tool_result", "tool_use_id": "toolu_2", "content": "No such file", "is_error": True, **MARKED},
          text("<system-reminder>One failed.</system-reminder>")]),
    {"role": "system", "content": [text("The user prefers short answers.")]}]
CLAUDE_NEXT = {**CLAUDE, "messages": CLAUDE["messages"] + CLAUDE_CALLS, "thinking": {"type": "adaptive"},
               "output_config": {"effort": "medium"}}
CLAUDE_TITLE = {"model": "claude-haiku-4-5", "max_tokens": 512, "system": [text("Write a title.")], "tools": [],
                "messages": [user("List the files.")], "temperature": 0, "stream": True,
                "output_config": {"format": {"type": "json_schema", "schema": {
                    "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"],
                    "additionalProperties": False}}}}
CLAUDE_PROBE = {"model": "claude-haiku-4-5", "max_tokens": 1, "messages": [user("quota")], "metadata": {"user_id": "u"}}
CLAUDE_COUNT = {key: CLAUDE[key] for key in ("model", "messages", "tools", "thinking")}
CLAUDE_SEARCH = {**CLAUDE_PROBE, "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}]}
CLINE_MESSAGES = {"model": "demo", "max_tokens": 8192, "temperature": 0, "stream": True, "tools": CLAUDE_TOOLS[:1],
                  "tool_choice": {"type": "any"}, "system": [text("You are Cline.", **MARKED)],
                  "messages": [user([text("<task>Hi</task>", **MARKED)])]}

# ---- Responses: Codex, and clients that rely on what is stored ----

CODEX_TOOLS = [
    {"type": "function", "name": "exec_command", "description": "Runs it.", "strict": False, "parameters": {
        "type": "object", "properties": {"cmd": {"type": "string"}, "workdir": {"type": "string"}}, "required": ["cmd"],
        "additionalProperties": False}},
    {"type": "function", "name": "view_image", "description": "Shows.", "strict": False,
     "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"type": "namespace", "name": "mcp__docs", "description": "Tools of docs.", "tools": [
        {"type": "function", "name": "find", "description": "Finds.", "strict": False, "parameters": SCHEMA}]},
    {"type": "web_search", "external_web_access": False}]
CODEX = {
    "model": "plumb", "instructions": "You are Codex.", "tools": CODEX_TOOLS, "tool_choice": "auto", "store": False,
    "parallel_tool_calls": False, "reasoning": {"effort": "medium", "summary": "auto"}, "stream": True,
    "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199", "service_tier": "auto",
    "text": {"verbosity": "medium"}, "client_metadata": {"x-codex-installation-id": "1"},
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]}]}
CODEX_CALLS = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAAA"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look."}],
     "content": [{"type": "reasoning_text", "text": "I look."}]},
    {"type": "message", "role": "assistant", "id": "msg_1", "phase": "commentary",
     "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "id": "fc_1", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}",
     "call_id": "call_1"},
    {"type": "function_call_output", "call_id": "call_1", "output": "a\nb"},
    {"type": "function_call", "name": "find", "namespace": "mcp__docs", "arguments": "{\"command\":\"x\"}",
     "call_id": "call_2"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "nothing"}]}]
CODEX_NEXT = {**CODEX, "input": CODEX["input"] + CODEX_CALLS, "reasoning": None, "text": None}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
CODEX_SCHEMA = {**CODEX, "text": {"format": {"type": "json_schema", "name": "codex_output_schema", "strict": True,
                                             "schema": OK}}}
UNSET = {"model": "demo", "instructions": "Help.", "input": [user("Hi")], "tools": [], "include": [], "store": None,
         "temperature": None, "top_p": None, "truncation": None, "max_output_tokens": 64, "metadata": None,
         "tool_choice": None, "parallel_tool_calls": None, "previous_response_id": None, "reasoning": None}

# ---- Chat completions ----

HISTORY = [user("List the files."), {"role": "assistant", "content": None, "tool_calls": [CALL]},
           {"role": "tool", "tool_call_id": "call_1", "content": "a\nb"}]
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
CHATS = {
    "aider": {"temperature": 0, "stream": True, "messages": [
        {"role": "system", "content": "Act as an expert."}, user("Hi"), {"role": "assistant", "content": "Ok."},
        user("Change x.")]},
    "cline": {"temperature": 0, **STREAM, "tools": [STRICT], "tool_choice": "auto", "parallel_tool_calls": False,
              "messages": [{"role": "system", "content": "You are Cline."},
                           user([text("<task>Hi</task>"), text("<environment_details/>")])]},
    "continue": {"max_tokens": 4096, "stream": True, "messages": HISTORY, "tools": [FUNCTION], "stop": None,
                 "parallel_tool_calls": False},
    "open webui": {**STREAM, "messages": [user("Hi")], "temperature": None},
    "open webui, title": {"stream": False, "max_completion_tokens": 1000, "messages": [user("### Task: title")]},
    "langchain": {"n": 1, "stream": False, "temperature": 0.7, "max_completion_tokens": 4, "tools": [STRICT],
                  "tool_choice": {"type": "function", "function": {"name": "run_command"}},
                  "response_format": {"type": "text"}, "messages": [
                      {"role": "system", "content": "Help."}, {**user("Hi"), "name": "emma"}, *HISTORY[1:]]},
    "llamaindex": {"temperature": 0.1, "max_tokens": 64, "tools": [STRICT], "tool_choice": "auto", "messages": [
        {"role": "developer", "content": "Help."}, *HISTORY]},
    "ai sdk": {"max_tokens": 64, "temperature": 0, "frequency_penalty": 0, "presence_penalty": 0, "seed": 1, **STREAM,
               "messages": [user([text("Hi")])], "tools": [FUNCTION], "tool_choice": "auto"},
    "ai sdk, object": {"messages": [user("Hi")], "max_completion_tokens": 64, "response_format": {
        "type": "json_schema", "json_schema": {"name": "response", "strict": True, "schema": {
            "$schema": "http://json-schema.org/draft-07/schema#", **OK}}}},
    "litellm": {"messages": [user("Hi")], "stream": True, "extra_body": {}, "user": "u", "max_tokens": 64, "top_p": 1,
                "metadata": {"a": "b"}, "logit_bias": {}, "n": 1, "store": False},
    "llm": {"messages": [user("Hi")], **STREAM},
    "opencode": {"max_tokens": 32000, "temperature": 0.55, "top_p": 1, **STREAM, "reasoning_effort": "medium",
                 "tools": [FUNCTION], "tool_choice": "auto", "messages": [
                     {"role": "system", "content": "You are opencode."}, *HISTORY]},
    "zed": {**STREAM, "temperature": 1.0, "max_completion_tokens": 4096, "parallel_tool_calls": False, "stop": [],
            "tools": [FUNCTION], "tool_choice": "auto", "prompt_cache_key": "k", "messages": [
                user([text("Hi")]), {"role": "assistant", "content": "A", "tool_calls": [CALL]},
                {"role": "tool", "content": [text("a")], "tool_call_id": "call_1"}]},
    "copilot": {"messages": [{"role": "system", "content": "Help."}, user("Hi")], "temperature": 0.1, "top_p": 1,
                "n": 1, **STREAM, "max_tokens": 16384, "tools": [FUNCTION]},
    "sillytavern": {"temperature": 1, "max_tokens": 300, "stream": True, "presence_penalty": 0, "frequency_penalty": 0,
                    "top_p": 1, "logit_bias": {}, "seed": 5, "stop": ["\nYou:"], "n": 1, "logprobs": False,
                    "messages": [
                        {"role": "system", "content": "You are Seraphina."}, user("Hi"),
                        {"role": "assistant", "content": "*smiles*", "name": "Seraphina"}, user("And?")]},
    "lm studio": {"messages": [user("Hi")], "temperature": 0.7, "max_tokens": -1, "stream": True},
}

# ---- Completions, and Anthropic's package in an editor ----

COMPLETIONS = {"model": "demo", "prompt": ["Once upon a time"], "temperature": 0.7, "max_tokens": 64, "top_p": 1,
               "n": 1, "best_of": 1, "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "stop": None,
               "echo": False}
ZED_MESSAGES = {"model": "demo", "max_tokens": 4096, "stream": True, "system": "You are Zed.", "stop_sequences": [],
                "tools": CLAUDE_TOOLS[:1], "tool_choice": {"type": "auto"}, "temperature": 1.0, "messages": [
                    user([text("Hi", **MARKED)]), {"role": "assistant", "content": [text("Hello.")]},
                    user([text("List the files.", **MARKED)])]}

REQUESTS = [
    ("claude code", MESSAGES, CLAUDE, 200), ("claude code, results", MESSAGES, CLAUDE_NEXT, 200),
    ("claude code, title", MESSAGES, CLAUDE_TITLE, 200), ("claude code, probe", MESSAGES, CLAUDE_PROBE, 200),
    ("claude code, count", "/v1/messages/count_tokens?beta=true", CLAUDE_COUNT, 200),
    ("claude code, search", MESSAGES, CLAUDE_SEARCH, 400),  # told to the model as an error of the tool
    ("cline", "/v1/messages", CLINE_MESSAGES, 200), ("zed", "/v1/messages", ZED_MESSAGES, 200),
    ("langchain, completions", "/v1/completions", COMPLETIONS, 200),
    ("codex", RESPONSES, CODEX, 200), ("codex, results", RESPONSES, CODEX_NEXT, 200),
    ("codex, schema", RESPONSES, CODEX_SCHEMA, 200), ("nothing set", RESPONSES, UNSET, 200),
    *((name, CHAT, {"model": "demo", **body}, 200) for name, body in CHATS.items()),
]


def send(server, path, body):
    """The status, and of a stream the first event; then the client hangs up."""
    headers = {"Content-Type": "application/json", **(BETAS if path.startswith("/v1/messages") else {})}
    lengths = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    small = {} if body.get("stream") else {key: min(body[key], 4) for key in lengths if key in body}
    connection = server.connect()
    try:
        connection.request("POST", path, json.dumps({**body, **small}), headers)
        answer = connection.getresponse()
        if answer.headers["Content-Type"] != "text/event-stream":
            return answer.status, answer.read().decode()
        return answer.status, next((line for line in answer if line.startswith(b"data: ")), b"").decode()
    finally:
        connection.close()


def main():
    passed = failed = 0
    with serving(sys.argv[1]) as server:
        for name, path, body, expected in REQUESTS:
            status, said = send(server, path, body)
            good = (status, "\"error\":{" in said) == (expected, expected != 200)
            print(f"ok   {name}" if good else f"FAIL {name}: {status} {said}", flush=True)
            passed += good
            failed += not good
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
