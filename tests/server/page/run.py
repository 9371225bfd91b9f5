#!/usr/bin/env python3
"""Runs the page's tests in Node.js:  run.py [--packages FOLDER] [--plumb PLUMB] PART [NAME...]

  * `units`: what needs no browser;
  * `browser`: the whole page over a server whose answers are known;
  * `served`: over `PLUMB serve` with a key.

A browser is the Chromium that CHROMIUM names or the system has, driven by playwright-core, which is installed
into FOLDER.  What lacks Node.js 18, npm, a network or Chromium is skipped (exit status 77), but with PLUMB_CI=1
in the environment it fails."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

from npm_packages import install, skip  # noqa: E402
from serving import serving  # noqa: E402

WEB = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "src", "server", "web")
LEAST_NODE = 18
CHROMIUM = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
KEY = "the key of the tests"


def check_node():
    node = shutil.which("node")
    told = subprocess.run([node, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout if node else ""
    version = re.match(r"v(\d+)", told)
    if not version or int(version[1]) < LEAST_NODE:
        skip(f"no Node.js {LEAST_NODE} or later here")


def find_chromium():
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, CHROMIUM) if path]
    if not found:
        skip("no Chromium here")
    return found[0]


def run(script, *arguments):
    return subprocess.run(["node", os.path.join(HERE, script), *arguments], check=False).returncode


def run_units(names):
    """On a copy of the page's files that is called a package of modules: elsewhere .js files need not be any."""
    with tempfile.TemporaryDirectory() as folder:
        web = shutil.copytree(WEB, os.path.join(folder, "web"))
        with open(os.path.join(web, "package.json"), "w", encoding="utf-8") as file:
            file.write('{"type": "module"}')
        return run("units_test.mjs", web, *names)


def run_served(plumb, names):
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        with open(keys, "w", encoding="utf-8") as file:
            file.write(f"{KEY}\n")
        with serving(plumb, "--api-key", keys) as server:
            return run("browser_test.mjs", "--base", f"http://127.0.0.1:{server.port}/", "--key", KEY, *names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", default=os.path.join(HERE, "packages"))
    parser.add_argument("--plumb", default="plumb")
    parser.add_argument("part", choices=["units", "browser", "served"])
    parser.add_argument("names", nargs="*", help="of tests; all if none is named")
    arguments = parser.parse_args()
    check_node()
    if arguments.part == "units":
        return run_units(arguments.names)
    os.environ["CHROMIUM"] = find_chromium()
    os.environ["PLAYWRIGHT"] = os.path.join(install(HERE, os.path.abspath(arguments.packages)), "playwright-core")
    if arguments.part == "browser":
        return run("browser_test.mjs", *arguments.names)
    return run_served(arguments.plumb, arguments.names)


if __name__ == "__main__":
    sys.exit(main())
