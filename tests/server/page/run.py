#!/usr/bin/env python3
"""Runs the page's tests in Node.js:  run.py [--packages FOLDER] units | browser [ARGUMENT...]

`browser` installs playwright-core into FOLDER, from package-lock.json, which pins its contents, and drives the
Chromium that CHROMIUM names or the system has.  What lacks Node.js 20, npm, a network or Chromium is skipped
(exit status 77), but with PLUMB_CI=1 in the environment it fails."""

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
LEAST_NODE = (20, 19)  # takes .js files that are modules for modules
CHROMIUM = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]


def skip(why):
    if os.environ.get("PLUMB_CI") == "1":
        print(f"FAIL {why}, and nothing may be skipped here\n0 passed, 1 failed")
        sys.exit(1)
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def call(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                          check=False, **options)


def find_node():
    node = shutil.which("node")
    version = re.match(r"v(\d+)\.(\d+)", call(node, "--version").stdout) if node else None
    if not version or tuple(int(part) for part in version.groups()) < LEAST_NODE:
        skip(f"no Node.js {LEAST_NODE[0]}.{LEAST_NODE[1]} or later here")
    return node


def find_chromium():
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, CHROMIUM) if path]
    if not found:
        skip("no Chromium here")
    return found[0]


def install(folder):
    """Puts the packages below `folder`/node_modules, unless they are there; that is returned."""
    modules = os.path.join(folder, "node_modules")
    lock = os.path.join(HERE, "package-lock.json")
    done = os.path.join(folder, "installed.json")  # the lock file that was installed last
    if os.path.exists(done) and filecmp.cmp(lock, done, shallow=False):
        return modules
    if not shutil.which("npm"):
        skip("no npm here")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, name), folder)
    npm = call("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline",
               "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000", "--loglevel=error", cwd=folder)
    if npm.returncode != 0 and "EINTEGRITY" in npm.stderr:
        print(f"FAIL other packages than package-lock.json names:\n{npm.stderr}\n0 passed, 1 failed")
        sys.exit(1)
    if npm.returncode != 0:
        skip(f"npm installs nothing: {(npm.stderr.strip().splitlines() or ['no reason'])[0]}")
    shutil.copy(lock, done)
    return modules


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(HERE, "packages"))
    parser.add_argument("part", choices=["units", "browser"])
    parser.add_argument("arguments", nargs="*", help="of the part's script")
    arguments = parser.parse_args()
    node = find_node()
    environment = dict(os.environ)
    if arguments.part == "browser":
        environment["CHROMIUM"] = find_chromium()
        environment["PLAYWRIGHT"] = os.path.join(install(arguments.packages), "playwright-core")
    script = os.path.join(HERE, f"{arguments.part}_test.mjs")
    return subprocess.run([node, script, *arguments.arguments], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
