#!/usr/bin/env python3
"""scripts/metal-check without a Mac: the program is that of the emulated backend, the test programs, which take
minutes there, are stand-ins.

    metal_check.py PLUMB MODEL

The report has every step's output and result whatever failed before, says what ran it, and tells no names of
folders at home."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "metal-check"
PLUMB, MODEL = (Path(p).resolve() for p in sys.argv[1:3])
PREPARED = ["requirements", "dependencies", "build", "build of the tests"]
STEPS = ["self test", "equality suite", "under the debug layer", "leak test",
         "bench, CPU", "bench, Metal", "bench, Metal, streaming"]
STAND_IN = '#!/bin/sh\necho "$0 ran with arguments ($*), debug layer (${MTL_DEBUG_LAYER:-})"\nexit %d\n'

passed, failed = 0, 0


def check(condition, what, seen=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print(f"FAIL {what}\n{seen}", file=sys.stderr)


def run(command, **environment):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def programs(folder, equality=0, leak=0):
    """A folder for --emulated; exit statuses of the stand-ins, None for one that is not there."""
    folder.mkdir()
    (folder / "plumb").symlink_to(PLUMB)
    (folder / "model").symlink_to(MODEL)
    for name, status in [("metal_equality_test", equality), ("metal_leak_test", leak)]:
        if status is not None:
            (folder / name).write_text(STAND_IN % status)
            (folder / name).chmod(0o755)
    return folder


def results(report):
    """{step: result} of the summary."""
    summary = report.partition("== summary\n")[2].partition("\n\n")[0]
    return {line[:28].strip(): line[29:] for line in summary.splitlines()}


def check_run(home, what, folder, failures, **environment):
    """Runs all steps; `failures` are those that fail, with their exit status. Returns the report."""
    path = home / f"{what}.txt"
    ran = run([SCRIPT, "--emulated", folder, path], HOME=str(home), **environment)
    report = path.read_text()
    check(ran.returncode == (1 if failures else 0), f"{what}: exit status {ran.returncode}", ran.stderr)
    check(ran.stdout.startswith(report), f"{what}: the report is what was printed", ran.stdout)
    check(str(home) not in report, f"{what}: no names of folders", report)
    check("EMULATED" in report and "macOS" not in report, f"{what}: no Mac is pretended", report)
    found = results(report)
    check(list(found) == PREPARED + STEPS, f"{what}: steps", report)
    for step in PREPARED:
        check(found.get(step) == "skipped: emulated", f"{what}: {step}", report)
    for step in STEPS:
        wanted = f"FAILED, exit status {failures[step]}," if step in failures else "ok,"
        check(found.get(step, "").startswith(wanted), f"{what}: {step}", report)
        check(f"\n== {step}\n" in report, f"{what}: output of {step}", report)
    check(report.endswith(f"\n{len(failures)} of {len(PREPARED + STEPS)} steps failed\n"), f"{what}: count", report)
    return report


def all_well(home):
    report = check_run(home, "well", programs(home / "a folder"), {})
    hashes = re.findall(r"logits on (?:the CPU|Metal): +([0-9a-f]{16})\n", report)
    check(len(hashes) == 2 and hashes[0] == hashes[1], "both hashes", report)
    check("metal_equality_test ran with arguments (), debug layer ()" in report, "the whole suite", report)
    check("metal_equality_test ran with arguments (rewind_and_on), debug layer (1)" in report, "debug layer", report)
    rows = re.findall(r"^(8|16),8,", report, re.M)
    check(rows == ["8", "16"] * 3, "rows of three benchmarks", report)


def refused(home):
    metal = ["self test", "bench, Metal", "bench, Metal, streaming"]
    report = check_run(home, "refused", programs(home / "refused"), dict.fromkeys(metal, 1),
                       PLUMB_FAKE_METAL="wrong_kernel=route")
    check("operation route, kernel route" in report, "the self test names what failed", report)


def other_bits(home):
    folder = programs(home / "other bits")
    (folder / "plumb").unlink()
    (folder / "plumb").write_text('#!/bin/sh\necho "hash$4"\n')
    (folder / "plumb").chmod(0o755)
    report = check_run(home, "other bits", folder, {"self test": 1})
    check("\nthese differ\n" in report, "other bits are told", report)


def failing_steps(home):
    check_run(home, "failing", programs(home / "failing", equality=3, leak=None),
              {"equality suite": 3, "under the debug layer": 3, "leak test": 127})


def refusals(home):
    for command, status, said in [
            ([SCRIPT], 1, "scripts/metal-check: Metal is macOS's; this is Linux\n"),
            (["make", "-s", "-C", ROOT, "metal"], 2, "make metal: Metal is macOS's; this is Linux\n"),
            ([SCRIPT, "--elsewhere"], 2, "usage: scripts/metal-check [--emulated FOLDER] [REPORT]\n"),
            ([SCRIPT, "--emulated", home, "/dev/null/report"], 1,
             "scripts/metal-check: cannot write /dev/null/report\n")]:
        ran = run(command)
        check(ran.returncode == status and said in ran.stderr and not ran.stdout, said, ran.stderr)


with tempfile.TemporaryDirectory() as temporary:
    for test in [all_well, refused, other_bits, failing_steps, refusals]:
        test(Path(temporary))
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
