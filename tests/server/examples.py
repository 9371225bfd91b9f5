#!/usr/bin/env python3
"""The curl commands of the documentation do as they say: examples.py PLUMB FILE..."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from serving import PATIENCE, serving  # noqa: E402


def commands_of(path):
    """Indented lines that begin with curl, up to the next empty line."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    found = []
    inside = False
    for line in lines:
        if line.startswith("    curl "):
            found.append("")
            inside = True
        inside = inside and line.startswith("    ")
        if inside:
            found[-1] += line[4:] + "\n"
    return found


def fault_of(command, port):
    command = command.replace("curl -", "curl --fail-with-body -S -", 1).replace(":8000", f":{port}")
    result = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=PATIENCE, check=False)
    if result.returncode != 0 or not result.stdout:
        return result.stdout + result.stderr or "nothing"
    if result.stdout.startswith("{") and "error" in json.loads(result.stdout) and json.loads(result.stdout)["error"]:
        return result.stdout
    return ""


def main():
    plumb, *files = sys.argv[1:]
    passed = failed = 0
    with serving(plumb) as server:
        for path in files:
            for command in commands_of(path):
                fault = fault_of(command, server.port)
                passed += not fault
                failed += bool(fault)
                print(f"{'FAIL' if fault else 'ok  '} {command.splitlines()[0]} {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
