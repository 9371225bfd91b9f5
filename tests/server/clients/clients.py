#!/usr/bin/env python3
"""The official clients hold whole conversations with the server: clients.py PLUMB PACKAGES NAME...

Each NAME is a script of this folder that talks to a server of its own through a package of its maker."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

from npm_packages import install  # noqa: E402
from serving import PATIENCE, serving  # noqa: E402

KEY = "the key of the tests"


def main():
    plumb, packages, *names = sys.argv[1:]
    modules = install(HERE, packages)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        with open(keys, "w", encoding="utf-8") as file:
            file.write(f"another\n{KEY}\n")
        for name in names:
            with serving(plumb, "--api-key", keys, "--model-name", "demo") as server:
                script = subprocess.run(
                    ["node", os.path.join(HERE, f"{name}.mjs"), modules, f"http://127.0.0.1:{server.port}", KEY],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
            print(script.stdout, end="")
            passed += script.stdout.count("\nok ") + script.stdout.startswith("ok ")
            failed += max(script.stdout.count("FAIL "), script.returncode != 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
