#!/usr/bin/env python3
"""The official clients read answers from a folder: canned.py DIALECT_STREAMS PACKAGES."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

from npm_packages import install  # noqa: E402
from serving import PATIENCE  # noqa: E402


def main():
    streams, packages = sys.argv[1:]
    modules = install(HERE, packages)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([streams, folder], check=True)
        script = subprocess.run(["node", os.path.join(HERE, "canned.mjs"), modules, folder, ""],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                                check=False)
    print(script.stdout, end="")
    passed = sum(line.startswith("ok ") for line in script.stdout.splitlines())
    failed = sum(line.startswith("FAIL ") for line in script.stdout.splitlines()) or int(script.returncode != 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
