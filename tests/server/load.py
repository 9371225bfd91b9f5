#!/usr/bin/env python3
"""Many at once: load.py PLUMB [--streams N] [--rounds N] [--idle N] [--report]

N streams ask at the same time, each with a secret and a seed of its own; each answer must be, byte for byte, the
one that the same request got alone.  Beside them N connections do nothing, and somebody asks for /health all the
time.  --report prints how long that took, and the memory of the server: figures, not checks."""

import argparse
import asyncio
import json
import os
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import PATIENCE, serving  # noqa: E402


def request_of(number, tokens):
    return {"model": "demo", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": tokens,
            "temperature": 1, "seed": number, "reasoning_effort": "none", "logit_bias": {"1": -100},
            "messages": [{"role": "system", "content": f"The secret is {number * 7919}."},
                         {"role": "user", "content": f"My name is Emma{number}. What is the secret?"}]}


async def ask(port, number, tokens):
    """The text of a streamed answer; every chunk must be whole and of this answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(request_of(number, tokens)).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    chunked = b"chunked" in head.lower()
    raw = await reader.read()
    writer.close()
    if chunked:
        raw = unchunk(raw)
    text, ids, done, usage = "", set(), False, None
    for line in raw.decode().split("\n"):
        if line == "data: [DONE]":
            done = True
        elif line.startswith("data: "):
            assert not done, "something after the end"
            chunk = json.loads(line[6:])
            ids.add(chunk["id"])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text += choice["delta"].get("content") or ""
    assert done and len(ids) == 1 and usage["completion_tokens"] == tokens, (number, done, ids, usage)
    return text


def unchunk(raw):
    whole = b""
    while True:
        size, _, raw = raw.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            return whole
        assert raw[n:n + 2] == b"\r\n"
        whole += raw[:n]
        raw = raw[n + 2:]


async def watch_health(port, stop, times):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not stop.is_set():
        begun = time.perf_counter()
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.01)
    writer.close()


async def load(port, arguments, alone):
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(arguments.idle)]
    stop, times = asyncio.Event(), []
    watcher = asyncio.create_task(watch_health(port, stop, times))
    end = time.time() + arguments.seconds
    rounds = 0
    while rounds < arguments.rounds or time.time() < end:
        answers = await asyncio.wait_for(
            asyncio.gather(*(ask(port, i, arguments.tokens) for i in range(arguments.streams))), PATIENCE)
        for i, answer in enumerate(answers):
            assert answer == alone[i], f"stream {i}, round {rounds}: {answer!r}, alone {alone[i]!r}"
        rounds += 1
    stop.set()
    await watcher
    for _, writer in idle:
        writer.close()
    return rounds, times


def memory_of(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith(("VmHWM", "VmRSS"))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--parallel", default="8")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with serving(arguments.plumb, "--parallel", arguments.parallel, "--queue", "1000", "-c", "1024") as server:
        async def alone():
            return [await ask(server.port, i, arguments.tokens) for i in range(arguments.streams)]
        expected = asyncio.run(alone())
        assert len(set(expected)) > arguments.streams // 2, "answers too much alike to tell them apart"
        before = memory_of(server.process) if arguments.report else {}
        begun = time.time()
        rounds, times = asyncio.run(load(server.port, arguments, expected))
        seconds = time.time() - begun
        server.until(lambda: all(s["state"] == "idle" for s in server.slots()), "idle slots")
        if arguments.report:
            times.sort()
            after = memory_of(server.process)
            n = rounds * arguments.streams
            print(f"{n} answers of {arguments.tokens} tokens by {arguments.streams} streams in {seconds:.1f} s, "
                  f"{n * arguments.tokens / seconds:.0f} tokens/s; {arguments.idle} idle connections")
            print(f"/health: median {1e3 * times[len(times) // 2]:.1f} ms, p99 {1e3 * times[len(times) * 99 // 100]:.1f} ms, "
                  f"most {1e3 * times[-1]:.1f} ms of {len(times)}")
            print(f"memory: {before['VmRSS'] / 1e3:.0f} MB before, {after['VmRSS'] / 1e3:.0f} MB after, most {after['VmHWM'] / 1e3:.0f} MB")
    print(f"{arguments.streams} streams, {rounds} rounds: each as alone")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
