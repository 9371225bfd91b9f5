#!/usr/bin/env python3
"""Runs tools/check_msl.py over snippets.txt, whose first lines tell its format, and over whole texts.

    check_snippets.py [FILE.metal...]

Every rule must refuse something there and let a near miss pass; the files are the project's own kernels, of
which nothing is refused."""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent.parent / "tools"))
from check_msl import RULES, faults_of  # noqa: E402

PROLOGUE = "#include <metal_stdlib>\n#pragma METAL fp contract(off)\nusing namespace metal;\n"
HEAD = re.compile(r"--- (refuse|accept) ([\w-]+)(?: (\d+))?( raw)?\Z")


def cases(text):
    """(line of the file, refuse or accept, rule, line of the snippet, its text)."""
    for number, line in enumerate(lines := text.split("\n"), 1):
        if line.startswith("--- "):
            head = HEAD.match(line)
            if not head:
                raise SystemExit(f"snippets.txt:{number}: not understood")
            end = next((i for i in range(number, len(lines)) if lines[i].startswith(("--- ", "===="))), len(lines))
            body = "\n".join(lines[number:end]).rstrip() + "\n"
            shift = 0 if head[4] else PROLOGUE.count("\n")
            yield number, head[1], head[2], int(head[3] or 0) + shift, body if head[4] else PROLOGUE + body


def case_fault(kind, rule, line, text):
    """What is wrong with a case, or None."""
    found = faults_of(text, "snippet")
    if kind == "accept":
        return f"refused: {found[0]}" if found else None
    if [(f.rule, f.line) for f in found] != [(rule, line)]:
        said = "; ".join(f"{f.rule} at {f.line}" for f in found) or "nothing"
        return f"expected {rule} at {line}, found {said}"
    return None


def main():
    failures, seen = [], set()
    for number, kind, rule, line, text in cases((HERE / "snippets.txt").read_text(encoding="utf-8")):
        seen.add((kind, rule))
        if rule not in RULES:
            failures.append(f"snippets.txt:{number}: no rule {rule}")
        if fault := case_fault(kind, rule, line, text):
            failures.append(f"snippets.txt:{number}: {fault}")
    failures += [f"{rule}: nothing to {kind}" for rule in RULES for kind in ("refuse", "accept")
                 if (kind, rule) not in seen]
    for name in sys.argv[1:]:
        failures += [str(f) for f in faults_of(Path(name).read_text(encoding="utf-8"), name)]
    print("\n".join(failures))
    print(f"{len(RULES)} rules, {len(sys.argv) - 1} texts, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
