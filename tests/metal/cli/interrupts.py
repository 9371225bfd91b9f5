#!/usr/bin/env python3
"""Ctrl-C while Metal computes: interrupts.py PLUMB.
Status 130, at once; what was read and said is kept, what is half written is not."""
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PATIENCE = 120  # seconds; sanitizer builds are slow
CHAT = ["chat", "--nothink", "--temp", "0", "--session-dir", "kept", "-p",
        "a word " * 16 + ". Tell me a story about a little girl and her dog."]  # long enough to be kept


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def start(plumb, arguments, folder):
    return subprocess.Popen([plumb, *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def interrupt(process):
    process.send_signal(signal.SIGINT)
    try:
        out, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("it did not end") from None
    check(process.returncode == 130, f"status {process.returncode}: {said.decode()}")
    check(b"validation" not in said, said.decode())
    return out, said


def test_answer(plumb, folder):
    """The turn ends with the line that was begun, and another run, on the CPU, goes on from there."""
    process = start(plumb, CHAT + ["--metal", "-n", "2000"], folder)
    begun = process.stdout.read1(1)
    check(begun != b"", "no answer")
    rest, said = interrupt(process)
    answer = (begun + rest).decode()
    check(answer.endswith("\n") and len(answer) > 1, repr(answer))
    check(b"answer" in said, said.decode())
    again = subprocess.run([plumb, *CHAT, "--cpu", "-n", "2000"], cwd=folder, timeout=PATIENCE,
                           stdin=subprocess.DEVNULL, capture_output=True)
    check(again.returncode == 0 and b"(0 reused" not in again.stderr, again.stderr.decode())
    check(again.stdout.decode().startswith(answer.rstrip("\n")), f"{answer!r} {again.stdout!r}")


def test_files(plumb, folder):
    Path(folder, "ids").write_text(" ".join(str(i) for i in range(3, 2000)))
    process = start(plumb, ["logits", "-q", "--metal", "--tokens-file", "ids", "--decode-from", "0",
                            "--out", "out"], folder)
    while not any(name.endswith(".part") for name in os.listdir(folder)):
        check(process.poll() is None, "it ended by itself")
    out, said = interrupt(process)
    check((out, said) == (b"", b""), f"{out} {said}")
    check(os.listdir(folder) == ["ids"], f"left behind: {os.listdir(folder)}")


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    for test in tests:
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["HOME"] = folder
                test(str(Path(sys.argv[1]).resolve()), folder)
            print("ok  ", test.__name__)
        except AssertionError as fault:
            failed += 1
            print("FAIL", test.__name__, fault)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
