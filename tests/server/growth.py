#!/usr/bin/env python3
"""Thousands of requests to one server, whose memory, files and threads are counted: growth.py PLUMB [--requests N]
[--session-dir].  What it takes after a warm-up must not grow with the number of requests."""

import argparse
import concurrent.futures
import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import serving  # noqa: E402
from walk_dialects import LOOKUP  # noqa: E402

AT_A_TIME, BETWEEN = 6, 60  # clients; requests between two looks
PEOPLE = 300                # conversations that come back: more than a server has slots
WARM = 0.25                 # of the requests, until memory has what it needs


def draw(rng):
    """A short request of any kind: many are known in part, some in whole, few not at all."""
    person = rng.randrange(PEOPLE)
    text = f"My name is Emma{person}, and I am {person % 90} years old. " * 2
    text += rng.choice(["Who am I?", "How old am I?"])
    messages, stream = [{"role": "user", "content": text}], rng.random() < 0.5
    if rng.random() < 0.05:
        tools = [{"type": "function", "function": {"name": "lookup", "parameters": LOOKUP}}]
        return "/v1/chat/completions", {"messages": messages, "max_tokens": 60, "stream": stream, "tools": tools,
                                        "tool_choice": "required"}
    return rng.choice([
        ("/v1/chat/completions", {"messages": messages, "max_tokens": 2, "stream": stream, "logprobs": stream}),
        ("/v1/completions", {"prompt": text, "max_tokens": 2, "stream": stream, "echo": rng.random() < 0.1}),
        ("/v1/responses", {"input": text, "max_output_tokens": 2, "stream": stream}),
        ("/v1/messages", {"messages": messages, "max_tokens": 2, "stream": stream}),
        ("/v1/messages", {"messages": []}), ("/tokenize", {"content": text})])


def ask(server, path, body, leaves):
    connection = server.connect()
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        if leaves:
            return
        answer = connection.getresponse()
        answer.read()
        assert answer.status == (400 if body.get("messages") == [] else 200), (answer.status, path, body)
    finally:
        connection.close()


def look(process):
    """KiB in memory, files that are open, threads."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        told = dict(line.split(":", 1) for line in status)
    return int(told["VmRSS"].split()[0]), len(os.listdir(f"/proc/{process.pid}/fd")), int(told["Threads"])


def slope(points):
    """Of the line of least squares."""
    n = len(points)
    x0, y0 = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    return sum((x - x0) * (y - y0) for x, y in points) / sum((x - x0) ** 2 for x, _ in points)


def run(arguments, options):
    rng = random.Random(7)
    looks = []
    with serving(arguments.plumb, "--parallel", "4", "-t", "1", "-c", "1024", "--nothink", *options) as server, \
            concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        while not looks or looks[-1][0] < arguments.requests:
            done = looks[-1][0] if looks else 0
            list(pool.map(lambda drawn: ask(server, *drawn[0], drawn[1]),
                          [(draw(rng), rng.random() < 0.05) for _ in range(BETWEEN)]))
            server.until(lambda: all(s["state"] == "idle" for s in server.slots()), "idle slots")
            looks.append((done + BETWEEN, *look(server.process)))
            if arguments.report and len(looks) % 10 == 1:
                print("  %d requests: %d KiB, %d files, %d threads" % looks[-1], flush=True)
    return looks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plumb")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--session-dir", action="store_true")
    parser.add_argument("--bound", type=float, default=256, help="KiB of growth per 100 requests")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not os.path.exists("/proc/self/status"):
        print("skipped: no /proc")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        looks = run(arguments, ("--session-dir", os.path.join(folder, "sessions")) if arguments.session_dir else ())
    warm = [seen for seen in looks if seen[0] >= WARM * arguments.requests]
    grown = 100 * slope([seen[:2] for seen in warm])
    files, threads = [seen[2] for seen in warm], {seen[3] for seen in warm}
    print(f"{looks[-1][0]} requests: {warm[0][1]} KiB when warm, {warm[-1][1]} at the end, {grown:.1f} KiB per 100 "
          f"requests; {min(files)} to {max(files)} files, {min(threads)} to {max(threads)} threads")
    assert grown < arguments.bound, f"{grown:.1f} KiB per 100 requests, expected less than {arguments.bound}"
    assert max(files) - min(files) <= AT_A_TIME, f"{min(files)} to {max(files)} files"
    assert len(threads) == 1, f"{threads} threads"
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
