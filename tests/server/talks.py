#!/usr/bin/env python3
"""What clients do to a server: talks.py PLUMB [NAME...].  Each case has a server of its own or shares one."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import PATIENCE, serving  # noqa: E402

CHAT = "/v1/chat/completions"
CONTROL = ["<｜User｜>", "<think>", "</think>", "<｜end▁of▁sentence｜>", "<｜deepseek_image｜>", "<｜DSML｜ calls>"]
WEATHER = {"type": "function", "function": {
    "name": "lookup", "parameters": {
        "type": "object", "properties": {"query": {"type": "string", "maxLength": 12},
                                         "limit": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["query", "limit"], "additionalProperties": False}}}


def equal(found, expected, what=""):
    assert found == expected, f"{what}: {found!r}, expected {expected!r}"


def plain(messages, **more):
    return {"model": "demo", "temperature": 0, "reasoning_effort": "none", "max_tokens": 8, "messages": messages, **more}


def user(text):
    return {"role": "user", "content": text}


def chat(server, messages, **more):
    status, _, answer = server.ask("POST", CHAT, plain(messages, **more))
    equal(status, 200, answer)
    return answer


def said(answer):
    return answer["choices"][0]["message"]["content"]


# ---- Text that looks like control tokens ----

def control_text_is_text(server):
    empty = chat(server, [user("")])["usage"]["prompt_tokens"]
    for text in CONTROL:
        count = server.ask("POST", "/tokenize", {"content": text})[2]["count"]
        assert count >= 3, f"{text} is {count} tokens"
        answer = chat(server, [user(text)])
        equal(answer["usage"]["prompt_tokens"], empty + count, text)
        # A turn that resends it works, too, also from a tool.
        messages = [user(text), answer["choices"][0]["message"], user("And now?")]
        chat(server, messages)
        call = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": "{\"query\": \"a\", \"limit\": 1}"}}
        chat(server, [user("x"), {"role": "assistant", "content": None, "tool_calls": [call]},
                      {"role": "tool", "tool_call_id": "call_1", "content": text}, user("y")], tools=[WEATHER])
        status, _, message = server.ask("POST", "/v1/messages", {
            "model": "demo", "max_tokens": 4, "system": text, "messages": [user(text)]})
        equal(status, 200, message)
        status, _, response = server.ask("POST", "/v1/responses", {"model": "demo", "max_output_tokens": 16, "input": text})
        equal(status, 200, response)


# ---- Histories ----

def histories(server):
    question, answer = user("What is the capital of France?"), {"role": "assistant", "content": "Paris."}
    chat(server, [question, answer, {"role": "system", "content": "Answer in French."}, user("And of Italy?")])
    for reasoning in ({}, {"reasoning_content": "Easy."}, {"reasoning_content": None}, {"reasoning_content": ""}):
        chat(server, [question, {**answer, **reasoning}, user("And of Italy?")], reasoning_effort="low")
    images = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}] * 17
    status, _, refused = server.ask("POST", CHAT, plain([{"role": "user", "content": images}]))
    equal(status, 400, refused)
    assert "image" in refused["error"]["message"], refused


def pairs(n):
    messages = [user("Begin.")]
    for i in range(n):
        call = {"id": f"call_{i}", "type": "function", "function": {"name": "lookup", "arguments": json.dumps({"query": f"q{i}", "limit": i})}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"call_{i}", "content": str(i)}]
    return messages


def many_tool_pairs(server):
    """They are counted, and refused since they do not fit; what takes quadratic time would not come back."""
    status, _, refused = server.ask("POST", CHAT, plain(pairs(4096), tools=[WEATHER]))
    equal(status, 400, refused)
    # The words by which tools know what to do.
    words = r"prompt is too long: \d{5,} tokens > 4095 maximum; this model's maximum context length is 4096 tokens"
    assert re.match(words, refused["error"]["message"]) and refused["error"]["code"] == "context_length_exceeded", refused
    status, _, refused = server.ask("POST", "/v1/messages", {"max_tokens": 9, "messages": [user("word " * 5000)]})
    equal((status, refused["error"]["type"]), (400, "invalid_request_error"))
    assert re.match(words.replace("{5,}", "+"), refused["error"]["message"]), refused


def call_replayed(server):
    asked = {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 200}
    first = chat(server, [user("Look something up.")], **asked)
    message = first["choices"][0]["message"]
    call = message["tool_calls"][0]
    arguments = json.loads(call["function"]["arguments"])
    assert isinstance(arguments["query"], str) and isinstance(arguments["limit"], int)
    # Keys in another order and other white space: the ids say which turn it was.
    call["function"]["arguments"] = json.dumps(dict(reversed(arguments.items())), indent=3)
    history = [user("Look something up."), message, {"role": "tool", "tool_call_id": call["id"], "content": "nothing"}]
    known = first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"]
    return history, known


def call_replay(server):
    history, known = call_replayed(server)
    again = chat(server, history, tools=[WEATHER])
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= known - 1, again["usage"]
    # With ids that nobody knows it is written anew, and works.
    history[1]["tool_calls"][0]["id"] = history[2]["tool_call_id"] = "call_of_somebody_else"
    chat(server, history, tools=[WEATHER])


def calls_are_counted(server):
    """What count_tokens says of a conversation with sampled calls is what its prompt has then."""
    tools = [{"name": "lookup", "input_schema": WEATHER["function"]["parameters"]}]
    for question in ("What is 2+2?", "Look something up.", "My name is Emma."):
        body = {"model": "demo", "tools": tools, "temperature": 0, "thinking": {"type": "disabled"},
                "messages": [user(question)]}
        status, _, message = server.ask("POST", "/v1/messages", {**body, "tool_choice": {"type": "any"}, "max_tokens": 200})
        equal(status, 200, message)
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        assert calls, message
        body["messages"] += [{"role": "assistant", "content": message["content"]},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "nothing"}
                                                          for call in calls]}]
        counted = server.ask("POST", "/v1/messages/count_tokens", body)[2]["input_tokens"]
        usage = server.ask("POST", "/v1/messages", {**body, "max_tokens": 1})[2]["usage"]
        equal(counted, usage["input_tokens"] + usage["cache_read_input_tokens"], question)


# ---- Requests that are wrong ----

def refusals(server):
    for body, path in [
            ('{"messages": [{"role": "user", "content": "a"}], "messages": []}', CHAT),
            ('{"messages": [{"role": "user", "content": "a"}], "max_tokens": NaN}', CHAT),
            ('{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1e999}', CHAT),
            ('{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1.5}', CHAT),
            ('{"messages": ' + "[" * 5000 + "]" * 5000 + "}", CHAT), (b'{"messages": "\xff"}', CHAT),
            ("", CHAT), ("[]", "/v1/responses"), ("nonsense", "/v1/messages"), ("{}", "/v1/completions"),
            ('{"content": 5}', "/tokenize"), ('{"tokens": [4294967296]}', "/detokenize"), ('{"tokens": [-1]}', "/detokenize")]:
        status, _, answer = server.ask("POST", path, body)
        equal(status, 400, f"{path} {body[:60]}")
        assert answer["error"]["message"], answer
    for method, path, status in [("GET", "/nothing", 404), ("GET", "/healthy", 404), ("GET", CHAT, 405), ("PUT", CHAT, 405),
                                 ("HEAD", CHAT, 405), ("POST", "/health", 405), ("HEAD", "/health", 200),
                                 ("HEAD", "/tokenize", 405), ("DELETE", "/v1/models", 405)]:
        found, headers, _ = server.ask(method, path)
        allowed = "POST, OPTIONS" if path in (CHAT, "/tokenize") else "GET, HEAD, OPTIONS"
        equal((found, headers["Allow"]), (status, allowed if status == 405 else None), f"{method} {path}")
    assert server.ask("GET", "/../../etc/passwd")[0] in (400, 404)
    lost = server.ask("POST", "/v1/responses", {"model": "demo", "input": "x", "previous_response_id": "resp_lost"})
    assert lost[0] in (404, 409), lost


# ---- Addresses as tools write them, and what their clients read beside the body ----

def addresses(server):
    for method, path, status in [
            ("GET", "/v1/models/", 200), ("GET", "/v1/models?limit=20", 200), ("GET", "/v1/models/demo?beta=true", 200),
            ("HEAD", "/v1/models", 200), ("HEAD", "/", 200), ("GET", "/v1/models//", 404), ("GET", "//", 400),
            ("POST", "/v1/messages?beta=true", 400), ("POST", "/v1/messages/", 400), ("POST", f"{CHAT}/", 400),
            ("POST", "/v1/messages/count_tokens?beta=true", 400), ("POST", f"{CHAT}//", 404), ("GET", "/v1/modelsx", 404)]:
        equal(server.ask(method, path, "{}" if method == "POST" else None)[0], status, f"{method} {path}")
    for path, methods in ((CHAT, "POST, OPTIONS"), ("/v1/models", "GET, HEAD, OPTIONS"), ("/nothing", None)):
        status, headers, _ = server.ask("OPTIONS", path)
        equal((status, headers["Allow"]), (204, methods), path)


def answers_are_named(server):
    names = set()
    for method, path, body in (("GET", "/v1/models", None), ("POST", CHAT, plain([user("Hi")])), ("POST", CHAT, "{}"),
                               ("POST", CHAT, plain([user("Hi")], stream=True)), ("GET", "/nothing", None)):
        _, headers, _ = server.ask(method, path, body)
        assert headers["request-id"] == headers["x-request-id"] and re.fullmatch("req_[a-z0-9]{24}", headers["request-id"])
        names.add(headers["request-id"])
    equal(len(names), 5, names)


def own_figures(server):
    text = "What is 2+2? 北京 🙂"
    tokens = server.ask("POST", "/tokenize", {"content": text})[2]["tokens"]
    equal(server.ask("POST", "/detokenize", {"tokens": tokens})[2]["content"], text)
    with_bos = server.ask("POST", "/tokenize", {"content": text, "add_bos": True, "with_pieces": True})[2]
    equal([t["id"] for t in with_bos["tokens"]][1:], tokens)
    bos = server.ask("POST", "/tokenize", {"content": "<｜begin▁of▁sentence｜>", "match_control": True})[2]
    equal((bos["tokens"], bos["count"]), ([with_bos["tokens"][0]["id"]], 1))
    pieces = [t["piece"] for t in with_bos["tokens"][1:]]
    equal(b"".join(bytes(p) if isinstance(p, list) else p.encode() for p in pieces), text.encode())
    assert any(isinstance(p, list) for p in pieces), pieces
    equal(server.ask("POST", "/detokenize", {"tokens": tokens[:-1]})[2]["content"], text[:-1] + "\ufffd")
    equal(server.ask("GET", "/health")[2], {"status": "ok"})
    properties = server.ask("GET", "/props")[2]
    assert properties["context"] > 0 and properties["slots"] == len(server.slots()), properties
    equal(properties["sampling"], {"temperature": 1, "top_p": 0.95, "top_k": 0, "min_p": 0})
    before = metrics(server)
    answer = chat(server, [user("Hello there")], max_tokens=5)
    after = metrics(server)
    equal(after["plumb_jobs_finished_total"], before["plumb_jobs_finished_total"] + 1)
    equal(after["plumb_jobs_failed_total"], before["plumb_jobs_failed_total"])
    equal(after["plumb_http_requests_total"], before["plumb_http_requests_total"] + 2)
    equal(after["plumb_generated_tokens_total"] - before["plumb_generated_tokens_total"], answer["usage"]["completion_tokens"])
    equal(after["plumb_prompt_tokens_total"] - before["plumb_prompt_tokens_total"], answer["usage"]["prompt_tokens"])


def metrics(server):
    status, headers, text = server.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers
    found = {}
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.split(" ")
            found[name] = float(value)
    return found


def tokens_of_a_book(server):
    """Five megabytes are told piece by piece in the memory that their answer takes, not in a value for each."""
    before = metrics(server)["plumb_peak_memory_bytes"]
    connection = server.connect()
    connection.request("POST", "/tokenize", json.dumps({"content": "a b " * 1250000, "with_pieces": True}))
    answer = connection.getresponse()
    text = answer.read()  # not parsed: that would be gigabytes here
    connection.close()
    assert answer.status == 200 and text.endswith(b'"piece":" "}],"count":2500001}'), text[-100:]
    more = metrics(server)["plumb_peak_memory_bytes"] - before
    assert more < 800e6, f"{more / 1e6:.0f} MB more"


# ---- Time ----

def resend(server):
    for words in (1, 60, 127, 128, 129, 300):
        prompt = [user(" ".join(f"w{i}" for i in range(words)))]
        first, second = (chat(server, prompt, max_tokens=16, logprobs=True) for _ in range(2))
        usage = second["usage"]
        equal(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"] - 1, f"{words} words")
        equal(second["choices"], first["choices"], f"{words} words")


def hang_up(server):
    endless = plain([user("Tell me a story.")], stream=True, max_tokens=3500, temperature=1, logit_bias={"1": -100})
    body = json.dumps(endless).encode()
    for wanted in (0, 1, 2000):  # bytes of the answer before it leaves
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body)
            got = 0
            while got < wanted:
                got += len(client.recv(100))
            if wanted == 0:
                server.until(lambda: any(s["state"] != "idle" for s in server.slots()), "slot at work")
            elif wanted > 1000:
                slot = next(s for s in server.slots() if s["state"] == "decoding")
                assert slot["prompt_done"] == slot["prompt_tokens"] > 0 < slot["generated_tokens"], slot
        server.until(lambda: all(s["state"] == "idle" for s in server.slots()), "idle slots")
    assert metrics(server)["plumb_jobs_cancelled_total"] == 3


@contextlib.contextmanager
def stalled(server):
    """A client that has taken nothing of its long answer until that waits for it."""
    body = json.dumps(plain([user("Tell me a story.")], stream=True, max_tokens=2000, temperature=1, logprobs=True,
                            top_logprobs=20, logit_bias={"1": -100})).encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        before = metrics(server)
        client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                       b"Content-Length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body)
        count = -1
        while count != metrics(server)["plumb_generated_tokens_total"] or count < before["plumb_generated_tokens_total"] + 100:
            count = metrics(server)["plumb_generated_tokens_total"]
            time.sleep(0.3)
        equal(metrics(server)["plumb_jobs_finished_total"], before["plumb_jobs_finished_total"], "it did not wait")
        yield client


def slow_reader(server):
    """Who takes nothing for a while is waited for, and gets all of it."""
    before = metrics(server)
    with stalled(server) as client:
        got = b"".join(iter(lambda: client.recv(1 << 20), b""))
    assert got.count(b'"finish_reason":"length"') == 1 and b"data: [DONE]" in got, got[-300:]
    equal(metrics(server)["plumb_generated_tokens_total"], before["plumb_generated_tokens_total"] + 2000)


def progress_is_told(server):
    words = " ".join(f"word{i}" for i in range(700))
    body = json.dumps(plain([user(words)], stream=True, max_tokens=2)).encode()
    connection = server.connect()
    connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    equal((answer.headers["Content-Type"], answer.headers["Cache-Control"]), ("text/event-stream", "no-store"))
    lines = answer.read().decode().split("\n")
    connection.close()
    comments = [i for i, line in enumerate(lines) if line.startswith(":")]
    contents = [i for i, line in enumerate(lines) if '"content":"' in line and '"content":""' not in line]
    assert len(comments) >= 2 and comments[1] < contents[0], lines[:20]


# ---- Servers of their own ----

def graceful_stop(plumb):
    with serving(plumb, "-c", "2048") as server:
        events = server.events(CHAT, plain([user("Tell me a story.")], stream=True, max_tokens=60, temperature=1,
                                           logit_bias={"1": -100}))
        next(events)
        server.process.send_signal(signal.SIGTERM)
        last = list(events)[-1]
        equal(last["choices"][0]["finish_reason"], "length")
        equal(server.process.wait(60), 0)


def catches(process, number):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"SigCgt:\s*(\w+)", file.read()).group(1), 16) >> number - 1 & 1


def stopped_at_once(plumb):
    """Whoever has read where it listens may stop it: before it can say so, signals are caught."""
    if not os.path.exists("/proc/self/status"):
        return
    take, full = os.pipe()
    os.set_blocking(full, False)
    try:
        while True:
            os.write(full, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(full, True)
    process = subprocess.Popen([plumb, "serve", "--quiet", "--port", "0"], stderr=full)
    os.close(full)
    try:
        end = time.time() + PATIENCE
        while not catches(process, signal.SIGTERM):
            assert process.poll() is None and time.time() < end, "signals are not caught"
            time.sleep(0.02)
        process.terminate()
        with open(take, "rb") as rest:
            rest.read()
        equal(process.wait(PATIENCE), 0)
    finally:
        process.kill()


def stop_without_waiting(plumb):
    with serving(plumb, "-c", "4096") as server:
        events = server.events(CHAT, plain([user("Tell me a story.")], stream=True, max_tokens=4000, temperature=1,
                                           logit_bias={"1": -100}))
        next(events)
        server.process.send_signal(signal.SIGINT)
        server.until(lambda: any("stopping" in line for line in server.said), "word of stopping")
        server.process.send_signal(signal.SIGINT)
        assert "stopping" in list(events)[-1]["error"]["message"]
        equal(server.process.wait(60), 0)


def stop_despite_a_stalled_client(plumb):
    """Whoever takes nothing is taken for gone after a minute: the end does not wait for that."""
    with serving(plumb, "-c", "4096") as server, stalled(server):
        server.process.send_signal(signal.SIGINT)
        server.until(lambda: any("stopping" in line for line in server.said), "word of stopping")
        server.process.send_signal(signal.SIGINT)
        equal(server.process.wait(40), 0)


def keys(plumb):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "wb") as file:
            file.write(b"\xef\xbb\xbf first key\t\r\n\n \nsecond  ")  # as some editors leave it
        with serving(plumb, "--api-key", path) as server:
            for method, wanted in (("GET", ["/metrics", "/props", "/slots", "/v1/models", "/v1/models/x"]),
                                   ("POST", [CHAT, "/v1/completions", "/v1/responses", "/v1/messages",
                                             "/v1/messages/count_tokens", "/tokenize", "/detokenize"])):
                for target in wanted:
                    for given in ({}, {"Authorization": "Bearer first"}, {"Authorization": "Bearer first keyfirst key"},
                                  {"Authorization": "Bearer first kez"}, {"x-api-key": "tecond"}, {"x-api-key": ""},
                                  {"Authorization": "first key"}):
                        status, headers, answer = server.ask(method, target, "{}" if method == "POST" else None, given)
                        equal((status, headers["WWW-Authenticate"]), (401, "Bearer"), f"{target} {given}")
                        assert "error" in answer, answer
            for given in ({"Authorization": "Bearer first key"}, {"Authorization": "bearer second"}, {"x-api-key": "second"},
                          {"x-api-key": "for somebody else", "Authorization": "Bearer second"},
                          {"x-api-key": "second", "Authorization": "Bearer for somebody else"}):
                equal(server.ask("GET", "/v1/models", headers=given)[0], 200, given)
            for target in ("/health", "/", "/page/app.js"):
                equal(server.ask("GET", target)[0], 200, target)
        for text in (b"", b" \t\r\n\n", b"\xef\xbb\xbf\n", b"key\0\n"):
            with open(path, "wb") as file:
                file.write(text)
            refused = subprocess.run([plumb, "serve", "--port", "0", "--api-key", path], stderr=subprocess.PIPE, check=False)
            equal(refused.returncode, 1, text)
            assert b"expected a key on a line" in refused.stderr, refused.stderr


def origins(plumb):
    with serving(plumb, "--cors", "https://tools.example") as server:
        here = f"http://127.0.0.1:{server.port}"
        for origin, status in ((None, 200), (here, 200), ("https://tools.example", 200), ("https://evil.example", 403),
                               ("https://tools.example.evil.example", 403), ("http://127.0.0.1", 403),
                               (f"{here}0", 403), ("null", 403)):
            found = server.ask("GET", "/props", headers={"Origin": origin} if origin else {})
            equal(found[0], status, origin)
            allowed = found[1].get("Access-Control-Allow-Origin")
            equal(allowed, origin if origin == "https://tools.example" else None, origin)
        # Other names that lead here, and what this machine calls itself.
        for host, status in (("evil.example", 403), ("127.evil.example", 403), ("127.0.0.1.evil.example:80", 403),
                             ("localhost.evil.example", 403), ("127", 403), ("localhost", 200), ("LOCALHOST:80", 200),
                             ("127.0.0.2:80", 200), ("[::1]", 200), (f"[::1]:{server.port}", 200)):
            equal(server.ask("GET", "/props", headers={"Host": host})[0], status, host)
        found = server.ask("OPTIONS", CHAT, headers={
            "Origin": "https://tools.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, x-stainless-os"})
        equal((found[0], found[1]["Access-Control-Allow-Headers"]), (204, "authorization, x-stainless-os"))
        found = server.ask("POST", CHAT, "{}", headers={"Origin": "https://tools.example"})
        equal(found[1]["Access-Control-Expose-Headers"], "request-id, x-request-id, retry-after")


def full_queue(plumb):
    with serving(plumb, "--parallel", "1", "--queue", "1", "-c", "4096") as server:
        endless = plain([user("Tell me a story.")], stream=True, max_tokens=3900, temperature=1, logit_bias={"1": -100})
        running = server.events(CHAT, endless)
        next(running)
        waiting = threading.Thread(target=server.ask, args=("POST", CHAT, plain([user("Hi")])))
        waiting.start()
        server.until(lambda: metrics(server)["plumb_jobs_waiting"] == 1, "waiting job")
        status, headers, answer = server.ask("POST", CHAT, plain([user("Hi")]))
        equal((status, headers["Retry-After"]), (429, "1"), answer)
        running.close()
        waiting.join()


def model_names(plumb):
    model = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "demo-model")
    for options, name in (((), "plumb-demo"), (("-m", f"{model}/"), "demo-model"), (("--model-name", "my model"), "my model")):
        with serving(plumb, *options) as server:
            equal([m["id"] for m in server.ask("GET", "/v1/models")[2]["data"]], [name])
            equal(server.ask("GET", f"/v1/models/{name.replace(' ', '%20')}")[0], 200)
            equal(server.ask("POST", CHAT, plain([user("Hi")]))[2]["model"], name)


def waiting_streams_live(plumb):
    with serving(plumb, "--parallel", "1", "-c", "4096", "--keep-alive", "1") as server:
        endless = plain([user("Tell me a story.")], stream=True, max_tokens=3900, temperature=1, logit_bias={"1": -100})
        running = server.events(CHAT, endless)
        next(running)
        connection = server.connect()
        connection.request("POST", CHAT, json.dumps(plain([user("Hi")], stream=True)), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        equal((answer.status, answer.readline()), (200, b": working\n"))
        running.close()
        rest = answer.read().decode()
        assert rest.endswith("data: [DONE]\n\n") and '"finish_reason":' in rest, rest
        connection.close()


def ask_until_killed(server, number, answers):
    """Conversations that grow, so that there is always something to save."""
    messages = [user(f"My name is Emma{number}.")]
    try:
        for turn in range(1000):
            answer = chat(server, messages, max_tokens=12, temperature=1, seed=turn)
            messages += [answer["choices"][0]["message"], user(f"And what is {turn}+{number}?")]
            answers.append(1)
    except (OSError, http.client.HTTPException):
        pass


def restarted(plumb):
    """Killed at work; what was stored is found by the next one, and nothing is damaged."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--session-dir", folder, "-c", "2048")
        prompt = [user(" ".join(f"word{i}" for i in range(150)))]
        with serving(plumb, *options) as server:
            first = chat(server, prompt, max_tokens=20)
            history, known = call_replayed(server)
            server.until(lambda: metrics(server)["plumb_store_entries"] >= 2, "stored sessions")
            answers = []
            busy = [threading.Thread(target=ask_until_killed, args=(server, i, answers)) for i in range(6)]
            for thread in busy:
                thread.start()
            server.until(lambda: len(answers) >= 24, "answers")
            server.process.kill()
            server.process.wait()
            for thread in busy:
                thread.join()
        for _ in range(2):
            with serving(plumb, *options) as server:
                again = chat(server, prompt, max_tokens=20)
                equal(said(again), said(first))
                assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= 100, again["usage"]
                then = chat(server, history, tools=[WEATHER])
                assert then["usage"]["prompt_tokens_details"]["cached_tokens"] >= known - 1, (then["usage"], known)
                assert not any("damaged" in line for line in server.said), server.said


SHARED = [control_text_is_text, histories, many_tool_pairs, call_replay, calls_are_counted, refusals, addresses,
          answers_are_named, own_figures, tokens_of_a_book, resend, hang_up, slow_reader, progress_is_told]
OWN = [graceful_stop, stopped_at_once, stop_without_waiting, stop_despite_a_stalled_client, keys, origins, full_queue,
       model_names, waiting_streams_live, restarted]


def main():
    plumb, *names = sys.argv[1:]
    passed = failed = 0

    def run(case, subject):
        nonlocal passed, failed
        if names and case.__name__ not in names:
            return
        begun = time.time()
        try:
            case(subject)
            passed += 1
            print(f"ok   {case.__name__} ({time.time() - begun:.1f} s)", flush=True)
        except Exception as fault:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL {case.__name__}: {type(fault).__name__} {fault}", flush=True)

    with serving(plumb, "--model-name", "demo", "--prefill-chunk", "128") as server:
        for case in SHARED:
            run(case, server)
    for case in OWN:
        run(case, plumb)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
