#!/usr/bin/env python3
"""Sends signals to commands at work: signals.py PLUMB.
Whatever ends them, the exit status says so and nothing half written stays behind."""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE = 120  # seconds; sanitizer builds are slow


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def start(arguments, **options):
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def wait_until(process, condition, what):
    end = time.time() + PATIENCE
    while not condition():
        check(process.poll() is None, f"ended before {what}: {process.stderr}")
        check(time.time() < end, f"no {what}")
        time.sleep(0.01)


def catches(process, number):
    """True once the program handles the signal (Linux tells; elsewhere time has to do)."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        time.sleep(2)
        return True
    caught = [line for line in status.read_text().splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught[0].split()[1], 16) >> (number - 1) & 1)


def end_with(process, number):
    """One signal must do, whenever it comes."""
    process.send_signal(number)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("it did not end") from None
    return process.stdout.read(), process.stderr.read().decode()


def test_fifo_without_a_writer(plumb, folder):
    fifo = f"{folder}/prompt"
    os.mkfifo(fifo)
    process = start([plumb, "chat", "-q", "--prompt-file", fifo])
    wait_until(process, lambda: catches(process, signal.SIGINT), "handler")
    _, said = end_with(process, signal.SIGINT)
    check((process.returncode, said) == (130, ""), f"{process.returncode} {said}")
    process = start([plumb, "chat", "-q", "--nothink", "-n", "1", "--prompt-file", fifo])
    with open(fifo, "wb") as writer:
        time.sleep(0.1)
        writer.write(b"hello")
    out, said = process.communicate(timeout=PATIENCE)
    check(process.returncode == 0 and out != b"", f"{process.returncode} {out} {said}")


def test_waiting_for_input(plumb, folder):
    logits = [plumb, "logits", "-q", "--tokens-file", "-", "--out", f"{folder}/out"]
    for command in (logits, [plumb, "chat", "-q"], [plumb, "chat", "-q", "--prompt-file", "-"]):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = start(command, stdin=subprocess.PIPE)
            process.stdin.write(b"1 2")
            process.stdin.flush()
            wait_until(process, lambda: catches(process, number), "handler")
            _, said = end_with(process, number)
            process.stdin.close()
            check(process.returncode == 130, f"{command[1:]} {number}: {process.returncode}")
            check(said == "", f"{command[1:]} {number}: {said}")
    check(os.listdir(folder) == [], "nothing is written")


def test_paste_is_interrupted(plumb, folder):
    process = start([plumb, "chat", "-q"], stdin=subprocess.PIPE)
    process.stdin.write(b"/paste\nhello\n")
    process.stdin.flush()
    wait_until(process, lambda: catches(process, signal.SIGINT), "handler")
    time.sleep(0.2)  # it has taken both lines
    out, said = end_with(process, signal.SIGINT)
    process.stdin.close()
    check((process.returncode, out, said) == (130, b"", ""), f"{process.returncode} {out} {said}")


def test_hangup_while_writing(plumb, folder):
    ids = Path(folder, "ids")
    ids.write_text(" ".join(str(i) for i in range(3, 4000)))
    process = start([plumb, "logits", "-q", "--tokens-file", ids, "--out", f"{folder}/out"])
    wait_until(process, lambda: len(os.listdir(folder)) > 1, "file")
    end_with(process, signal.SIGHUP)
    check(process.returncode == 130, f"status {process.returncode}")
    check(os.listdir(folder) == ["ids"], f"left behind: {os.listdir(folder)}")


def test_hangup_that_is_ignored(plumb, folder):
    process = start([plumb, "chat", "-q", "--nothink", "-n", "1"], stdin=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_until(process, lambda: catches(process, signal.SIGTERM), "handler")
    process.send_signal(signal.SIGHUP)
    out, said = process.communicate(b"hello\n", PATIENCE)
    check(process.returncode == 0 and out != b"", f"{process.returncode} {out} {said}")


def test_file_size_limit(plumb, folder):
    ids = Path(folder, "ids")
    ids.write_text("1 2 3 4 5 6 7 8 9")
    process = start([plumb, "logits", "-q", "--tokens-file", ids, "--out", f"{folder}/out"],
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
    _, said = process.communicate(timeout=PATIENCE)
    check(process.returncode == 1, f"status {process.returncode}")
    check(said.decode() == f"plumb logits: {folder}/out: found {os.strerror(27)}, expected a file "
          "that takes every byte\n", said)
    check(os.listdir(folder) == ["ids"], f"left behind: {os.listdir(folder)}")


def part_of(folder, name):
    """What is in the temporary file of `name` so far."""
    parts = [f for f in os.listdir(folder) if f.startswith(f"{name}.") and f.endswith(".part")]
    return Path(folder, parts[0]).read_text() if parts else ""


def test_bench_keeps_its_rows(plumb, folder):
    """Rows that were measured stay, complete ones only; logits, which are not all there, do not."""
    process = start([plumb, "bench", "-q", "--ctx-start", "8", "--ctx-max", "4000", "--step-incr", "8", "-n", "2",
                     "--csv", f"{folder}/csv", "--decode-logits-dump", f"{folder}/dump"])
    wait_until(process, lambda: part_of(folder, "csv").count("\n") > 2, "two rows")
    check("csv" not in os.listdir(folder), "the file has its name too early")
    out, said = end_with(process, signal.SIGINT)
    check((process.returncode, out, said) == (130, b"", ""), f"{process.returncode} {out} {said}")
    check(os.listdir(folder) == ["csv"], f"left behind: {os.listdir(folder)}")
    text = Path(folder, "csv").read_text()
    rows = text.splitlines()
    check(text.endswith("\n") and rows[0].startswith("ctx_tokens,"), text)
    check([int(row.split(",")[0]) for row in rows[1:]] == [8 * i for i in range(1, len(rows))], text)
    check(3 <= len(rows) < 501 and all(row.count(",") == 16 for row in rows), text)


def test_bench_without_rows(plumb, folder):
    process = start([plumb, "bench", "-q", "--ctx-start", "4000", "--ctx-max", "4000", "-n", "90", "--csv",
                     f"{folder}/csv"])
    wait_until(process, lambda: part_of(folder, "csv") != "", "header")
    _, said = end_with(process, signal.SIGTERM)
    check((process.returncode, said) == (130, ""), f"{process.returncode} {said}")
    check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")


def test_bench_file_size_limit(plumb, folder):
    for option, name in (("--decode-logits-dump", "dump"), ("--dump-frontier-logits-dir", "frontier-00000009.f32")):
        process = start([plumb, "bench", "-q", "--ctx-start", "9", "--ctx-max", "9", "-n", "1", "--csv",
                         f"{folder}/csv", option, f"{folder}/dump"],
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        _, said = process.communicate(timeout=PATIENCE)
        check(process.returncode == 1 and b"expected a file that takes every byte\n" in said and
              name.encode() in said, f"{process.returncode} {said}")
        left = [f for _, _, files in os.walk(folder) for f in files]
        check(left == [], f"left behind: {left}")


def test_synth(plumb, folder):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        model = Path(folder, "model")
        process = start([plumb, "synth", "-q", "release", model, "--layers", "1"])
        wait_until(process, lambda: model.exists() and os.listdir(model) != [], "file")
        _, said = end_with(process, number)
        check(process.returncode == 130, f"{number}: status {process.returncode}")
        check(said == "plumb synth: interrupted; what was written is removed\n", said)
        check(not model.exists() or os.listdir(model) == [], "the folder is empty")


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    for test in tests:
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(sys.argv[1], folder)
            print("ok  ", test.__name__)
        except AssertionError as fault:
            failed += 1
            print("FAIL", test.__name__, fault)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
