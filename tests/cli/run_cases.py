#!/usr/bin/env python3
"""Runs command-line cases: run_cases.py PLUMB CASE-FILE...

A case file is text that anyone can add to:

    # a comment
    $ plumb chat --tempp 1
    2| plumb chat: unknown option --tempp; did you mean --temp?
    = 2

`$` starts a command, given to sh.  `1|` and `2|` are the lines of standard output and standard
error, exactly; `1~` and `2~` are regular expressions that match a whole line; `1*` and `2*` stand
for any lines from there on.  `=` is the exit status (0 if not given).  A stream without lines must
be empty.  The commands of one file share one empty folder, and $DATA is tests/data.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


class Case:
    def __init__(self, place, command):
        self.place, self.command, self.status = place, command, 0
        self.expected = {"1": [], "2": []}


def read_cases(path):
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        place = f"{path.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("$ "):
            cases.append(Case(place, line[2:]))
        elif cases and line.startswith("= "):
            cases[-1].status = int(line[2:])
        elif cases and line[0] in "12" and line[1:2] in ("|", "~", "*"):
            cases[-1].expected[line[0]].append((line[1], line[3:]))
        else:
            sys.exit(f"{place}: neither a command nor an expectation: {line}")
    return cases


def stream_fault(name, expected, text):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for i, (kind, wanted) in enumerate(expected):
        if kind == "*":
            return None
        if i >= len(lines):
            return f"{name} ends before line {i + 1}: {wanted}"
        same = lines[i] == wanted if kind == "|" else re.fullmatch(wanted, lines[i])
        if not same:
            return f"{name} line {i + 1}: {lines[i]!r}, expected {wanted!r}"
    if len(lines) > len(expected):
        return f"{name} line {len(expected) + 1}: {lines[len(expected)]!r}, expected the end"
    return None


def run(case, folder, environment):
    done = subprocess.run(["sh", "-c", case.command], cwd=folder, env=environment, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True)
    out, err = (b.decode("utf-8", "backslashreplace") for b in (done.stdout, done.stderr))
    faults = [stream_fault("stdout", case.expected["1"], out),
              stream_fault("stderr", case.expected["2"], err)]
    if done.returncode != case.status:
        faults.append(f"status {done.returncode}, expected {case.status}\n  stderr: {err[:400]}")
    return [f for f in faults if f]


def main():
    plumb = Path(sys.argv[1]).resolve()
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("NO_COLOR", "HF_HOME", "XDG_CACHE_HOME", "LC_ALL", "LANG")}
    environment["PATH"] = f"{plumb.parent}:{environment['PATH']}"
    environment["DATA"] = str(Path(__file__).resolve().parent.parent / "data")
    passed = failed = 0
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            environment["HOME"] = folder
            for case in read_cases(Path(name)):
                faults = run(case, folder, environment)
                passed, failed = passed + (not faults), failed + bool(faults)
                for fault in faults:
                    print(f"{case.place}: {case.command}\n  {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
