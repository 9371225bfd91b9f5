#!/usr/bin/env python3
"""Chats that are restarted, interrupted and killed while they keep sessions: sessions.py PLUMB"""
import fcntl
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 120  # seconds; sanitizer builds are slow
KILLS = 6
ENTRY = re.compile(r"\d{9}-[0-9a-f]{32}\.plumb-session")
STORY = ["Hello, my name is Emma. I live in a small town by the sea and I "
         "read long books about ships, storms and old harbours in the evening.",
         "What is my name?", "I have a brother, and his name is Tom. He lives in a large city in the north.",
         "Where does he live?"]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def chat(plumb, lines, *options):
    """What was answered, and of each turn its prompt's tokens and how many were reused."""
    done = subprocess.run([plumb, "chat", "--nothink", "--temp", "0", *options], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, f"{done.returncode}: {done.stderr}")
    turns = re.findall(r"prompt (\d+) tokens \((\d+) reused", done.stderr)
    check(len(turns) == len(lines), done.stderr)
    return done.stdout, [(int(n), int(reused)) for n, reused in turns]


def test_restarted_with_a_store(plumb, folder):
    """The same conversation again and again, each time by a new process that goes one turn further."""
    store = ("--session-dir", f"{folder}/store")
    plain, _ = chat(plumb, STORY)
    for n in range(1, len(STORY) + 1):
        answers, turns = chat(plumb, STORY[:n], *store)
        check(plain.startswith(answers), f"{n} turns: {answers}")
        # Evaluated anew: one token of what was there, or less than it is worth to keep (32).
        for prompt, reused in turns[:-1]:
            check(prompt - reused <= 32, f"{n} turns: {turns}")
        check(turns[-1][1] > 0 or n == 1, f"{n} turns: {turns}")
    again, turns = chat(plumb, STORY, *store)
    check(again == plain and all(prompt - reused <= 32 for prompt, reused in turns), f"{turns}")
    # A conversation that leaves it: what both begin with is reused.
    _, other = chat(plumb, [STORY[0], STORY[2]], *store)
    check(other[0][0] - other[0][1] == 1 and 0 < other[1][1] < other[1][0], f"{other}")


def start(plumb, *options):
    return subprocess.Popen([plumb, "chat", "-q", "--nothink", "--temp", "0", *options], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def saves(process, file, count):
    """Feeds a conversation that saves itself again and again; the pipe may break."""
    try:
        process.stdin.write(STORY[0] + "\n" + f"/save {file}\n" * count)
        process.stdin.flush()
    except BrokenPipeError:
        pass


def end(process, number):
    process.send_signal(number)
    process.stdin.close()
    process.stdin = None
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def test_stopped_while_saving(plumb, folder):
    """Whatever ends it, the file is a whole snapshot, the old one or the new one."""
    random.seed(3)
    file = f"{folder}/saved"
    process = start(plumb)
    saves(process, file, 1)
    _, said = process.communicate(timeout=PATIENCE)
    check(process.returncode == 0 and "saved" in said, said)
    for i in range(KILLS):
        number = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[i % 3]
        process = start(plumb)
        saves(process, file, 200)
        check(process.stdout.readline() != "", "no answer")
        time.sleep(random.random() * 0.2)
        status, said = end(process, number)
        check(status in (-number, 130), f"{number}: {status} {said[-300:]}")
        loaded = subprocess.run([plumb, "chat", "-q", "--nothink", "--temp", "0"], text=True, capture_output=True,
                                input=f"/load {file}\n{STORY[1]}\n", timeout=PATIENCE)
        check(loaded.returncode == 0 and loaded.stdout == "Your name is Emma.\n", f"{number}: {loaded.stderr}")
    names = {p.name for p in Path(folder).iterdir()}
    check(names <= {"saved", "saved.part"}, f"left over: {names}")


def test_killed_with_a_store(plumb, folder):
    """Turns are kept one by one; a killed run leaves what the next one can use."""
    random.seed(4)
    store = Path(folder) / "store"
    for _ in range(KILLS):
        process = start(plumb, "--session-dir", str(store))
        try:
            process.stdin.write("\n".join(STORY) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass
        time.sleep(random.random() * 0.6)
        end(process, signal.SIGKILL)
    plain, _ = chat(plumb, STORY)
    kept, _ = chat(plumb, STORY, "--session-dir", str(store))
    check(kept == plain, kept)
    for path in store.iterdir():
        check(ENTRY.fullmatch(path.name) or path.name in ("lock", "ledger"), f"left over: {path.name}")


def interrupt(process):
    """Ctrl-C until it ends: one that comes just before a wait is not seen by it."""
    finish = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < finish:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    process.kill()
    process.stdin.close()
    process.stdin = None
    process.communicate()
    return process.returncode


def test_interrupted_while_another_holds_the_folder(plumb, folder):
    """A process that was stopped in the middle of a write does not hold up the others for ever."""
    with open(f"{folder}/lock", "w", encoding="ascii") as lock:
        process = start(plumb, "--session-dir", folder)
        for turn, line in enumerate((STORY[1], STORY[0])):
            if turn == 1:
                fcntl.flock(lock, fcntl.LOCK_EX)
            process.stdin.write(line + "\n")
            process.stdin.flush()
            check(process.stdout.readline() != "", "no answer")
        check(interrupt(process) == 130, f"after a turn: {process.returncode}")
        process = subprocess.Popen([plumb, "chat", "--session-dir", folder], text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check("cpu" in process.stderr.readline(), "it did not start")
        # Before signals are caught it just ends.
        check(interrupt(process) in (130, -signal.SIGINT), f"at the start: {process.returncode}")


def main():
    plumb = str(Path(sys.argv[1]).resolve())
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as folder:
                test(plumb, folder)
            print(f"ok   {name}")


if __name__ == "__main__":
    main()
