#!/usr/bin/env python3
"""A session store across processes: processes.py STORE_STEPS CHECKPOINTS

Restarted, killed at any time, and used by several processes at once."""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENTRY = re.compile(r"\d{9}-[0-9a-f]{32}\.plumb-session")
KILLS = 20
PATIENCE = 600  # seconds; sanitizer builds are slow
STORE_BYTES = 60000  # as store_steps has it


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Steps:
    def __init__(self, program, checkpoints):
        self.program, self.checkpoints = program, checkpoints

    def command(self, folder, *arguments):
        return [self.program, str(folder), self.checkpoints, *map(str, arguments)]

    def run(self, folder, *arguments):
        done = subprocess.run(self.command(folder, *arguments), capture_output=True, text=True, timeout=PATIENCE)
        check(done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def resend(self, folder, n):
        """shared, evaluated, hash, decision; the hash is the fresh one."""
        line = self.run(folder, "resend", n)
        found = re.fullmatch(r"shared (\d+) evaluated (\d+) replayed (\d+) hash (\w+): (.*)\n", line)
        check(found, line)
        fresh = self.run(folder, "fresh", n).split()[1]
        check(found[4] == fresh, f"{n} tokens: other bits: {line}")
        return int(found[1]), int(found[2]), found[5]


def test_restart(steps, folder):
    """A new process evaluates one token of a prompt that an earlier one had, and the new ones of another."""
    check(steps.resend(folder, 300) == (0, 300, "written"), "first")
    shared, evaluated, decision = steps.resend(folder, 300)
    check((shared, evaluated) == (300, 1) and decision.startswith("too few"), f"{shared} {evaluated} {decision}")
    check(steps.resend(folder, 400) == (300, 100, "written"), "longer")
    check(len([n for n in os.listdir(folder) if ENTRY.fullmatch(n)]) == 1, "one conversation, one entry")
    shared, evaluated, _ = steps.resend(folder, 150)
    check((shared, evaluated) == (150, 1), f"a beginning: {shared} {evaluated}")


def is_writing(folder):
    return any(name.endswith("session.part") for name in os.listdir(folder))


def stop_while_writing(process, folder):
    """It stands still, and an entry is half written."""
    end = time.monotonic() + PATIENCE
    while True:
        while not is_writing(folder):
            check(time.monotonic() < end and process.poll() is None, "it writes nothing")
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        if is_writing(folder):
            return
        process.send_signal(signal.SIGCONT)


def test_killed(steps, folder):
    """Whenever a writer dies, what is there is whole, and what it left over goes."""
    random.seed(5)
    parts = 0
    for i in range(KILLS):
        process = subprocess.Popen(steps.command(folder, "churn", i + 1), stdout=subprocess.PIPE)
        check(process.stdout.readline() == b"begun\n", "it did not begin")
        if i % 2:
            stop_while_writing(process, folder)
        else:
            time.sleep(random.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        parts += any(n.endswith("session.part") for n in os.listdir(folder))
    check(steps.run(folder, "churn", 99, 3) == "begun\ndone\n", "afterwards")
    for name in os.listdir(folder):
        check(ENTRY.fullmatch(name) or name in ("lock", "ledger"), f"left over: {name}")
    check(parts >= KILLS // 2, f"{parts} kills in the middle of a file")
    print(f"{KILLS} kills, {parts} in the middle of a file")


def test_several_at_once(steps, folder):
    """Entries come, go and are replaced under a reader: misses, and never other bits."""
    processes = [subprocess.Popen(steps.command(folder, "churn", seed, 60), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for seed in (11, 12, 13)]
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE)
        check(process.returncode == 0 and out == "begun\ndone\n" and err == "", f"{process.returncode} {out}{err}")
    size = sum(p.stat().st_size for p in folder.iterdir() if ENTRY.fullmatch(p.name))
    check(0 < size <= STORE_BYTES, f"{size} bytes")
    ledger = (folder / "ledger").read_text().splitlines()
    check(re.fullmatch(r"day \d+ bytes \d+ ever \d+", ledger[1]), ledger[1])


def main():
    steps = Steps(sys.argv[1], sys.argv[2])
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as folder:
                test(steps, Path(folder) / "store" if name == "test_restart" else Path(folder))
            print(f"ok   {name}")


if __name__ == "__main__":
    main()
