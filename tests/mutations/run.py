#!/usr/bin/env python3
"""Proves that the tests can fail: applies the mutations of table.py one at a time to a copy of the
source tree, builds it, and requires a test to go red.

    run.py [--jobs N] [--folder FOLDER] [NAME...]

With names, only those mutations are tried.  FOLDER keeps the copy and its build for the next run.
Exit status 0: every mutation was noticed; 1: one survived; 2: a mutation no longer fits the source, or
the tests are red without any."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from table import MUTATIONS

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST_SECONDS = 600  # a test that hangs is red too
FIXTURES = ["test_synth_checkpoints", "test_gguf_metadata"]  # write what other tests read


def cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            return set(f.read().split())
    except OSError:
        return set()


def copy_sources(tree):
    """Copies what the build reads; files that did not change keep their old copy's time."""
    def ignored(folder, names):
        top = os.path.samefile(folder, PROJECT)
        return [n for n in names if n == ".git" or n == "__pycache__" or top and n.startswith("build")]

    def copy_changed(source, target):
        if os.path.exists(target):
            with open(source, "rb") as a, open(target, "rb") as b:
                if a.read() == b.read():
                    return target
        return shutil.copy(source, target)

    shutil.copytree(PROJECT, tree, ignore=ignored, copy_function=copy_changed, dirs_exist_ok=True)


class Copy:
    """A copy of the tree and its build."""

    def __init__(self, folder, jobs):
        self.tree = os.path.join(folder, "tree")
        self.build = os.path.join(folder, "build")
        self.jobs = jobs

    def call(self, *command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)

    def configure(self):
        return self.call("cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja",
                         "--log-level=ERROR", "-DCMAKE_BUILD_TYPE=Release")

    def has(self):
        """What a mutation may need, of what this machine has."""
        with open(os.path.join(self.build, "CMakeCache.txt"), encoding="utf-8") as f:
            cache = f.read()
        found = {"simde": "PLUMB_SIMDE:PATH", "clang++": "PLUMB_CLANGXX:FILEPATH",
                 "gnustep-config": "PLUMB_GNUSTEP_CONFIG:FILEPATH"}
        return cpu_flags() | {program for program in ("npm", "chromium") if shutil.which(program)} | {
            need for need, entry in found.items()
            if re.search(f"^{entry}=(?!.*NOTFOUND)", cache, re.MULTILINE)}

    def make(self, targets):
        return self.call("cmake", "--build", self.build, "-j", str(self.jobs), "--target", *targets)

    def is_red(self, test):
        """Without the fixtures: what they write is there already."""
        result = self.call("ctest", "--test-dir", self.build, "-R", f"^{test}$", "-FA", ".*",
                           "--no-tests=error", "--timeout", str(TEST_SECONDS))
        if "No tests were found" in result.stdout:
            raise SystemExit(f"{test}: no such test")
        return result.returncode != 0


def mutate(path, edits):
    """Writes the mutated file; returns the original text, or a fault."""
    with open(path, encoding="utf-8") as f:
        original = f.read()
    text = original
    for old, new in edits:
        if text.count(old) != 1:
            return None, f"occurs {text.count(old)} times: {old.strip()!r}"
        text = text.replace(old, new)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return original, ""


def try_mutation(copy, m):
    """Returns (noticed, what happened); noticed is None where the mutation does not fit."""
    path = os.path.join(copy.tree, m.file)
    original, fault = mutate(path, m.edits)
    if fault:
        return None, f"{m.file}: {fault}"
    try:
        for test in m.tests:
            result = copy.make([test])
            if result.returncode != 0:
                return None, f"does not compile:\n{result.stdout[-2000:]}"
            if copy.is_red(test):
                return True, test
        return False, ", ".join(m.tests)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(original)


def prove_green(copy, mutations):
    """Unchanged, everything must be green."""
    tests = []
    for step in (copy.configure, lambda: copy.make([*FIXTURES, *tests])):
        result = step()
        if result.returncode != 0:
            print(result.stdout[-4000:])
            return False
        has = copy.has()
        tests = sorted({t for m in mutations for t in m.tests if not m.needs or m.needs in has})
    red = [t for t in [*FIXTURES, *tests] if copy.is_red(t)]
    for t in red:
        print(f"red without any mutation: {t}")
    return not red


def run(copy, mutations):
    counts = {"noticed": 0, "SURVIVED": 0, "BROKEN": 0, "skipped": 0}
    has = copy.has()
    for m in mutations:
        start = time.monotonic()
        if m.needs and m.needs not in has:
            word, what = "skipped", f"this machine has no {m.needs}"
        else:
            noticed, what = try_mutation(copy, m)
            word = "BROKEN" if noticed is None else "noticed" if noticed else "SURVIVED"
        counts[word] += 1
        print(f"{word:8} {m.name:32} {what}  ({time.monotonic() - start:.0f} s)", flush=True)
        if word == "SURVIVED":
            print(f"         {m.why}")
    print(", ".join(f"{n} {word}" for word, n in counts.items() if n))
    print(f"{counts['noticed']} passed, {counts['SURVIVED'] + counts['BROKEN']} failed")
    return 2 if counts["BROKEN"] else 1 if counts["SURVIVED"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", help="keeps the copy and its build")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {m.name for m in MUTATIONS}
    if unknown:
        parser.error(f"no mutation named {', '.join(sorted(unknown))}")
    mutations = [m for m in MUTATIONS if not arguments.names or m.name in arguments.names]
    folder = arguments.folder or tempfile.mkdtemp(prefix="plumb-mutations-")
    try:
        copy_sources(os.path.join(folder, "tree"))
        copy = Copy(os.path.abspath(folder), arguments.jobs)
        return run(copy, mutations) if prove_green(copy, mutations) else 2
    finally:
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
