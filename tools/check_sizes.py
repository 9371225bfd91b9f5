#!/usr/bin/env python3
"""Checks that files, headers, functions and lines stay small enough to read.
Run from anywhere: tools/check_sizes.py [ROOT].  Generated tables (*_tab.c) are exempt, and tests may
have long lines of data."""
import re
import sys
from pathlib import Path

FILE_LINES, HEADER_LINES, FUNCTION_LINES, COLUMNS = 600, 200, 100, 120
FOLDERS = ["src", "include", "tests", "bench"]
PUBLIC = {"include/plumb.h"}
# A definition starts at column 0, names something with arguments and opens a brace.
STARTS = re.compile(r"^[A-Za-z_][^;={}#]*\(.*$")


def functions(lines):
    """(first line, length, signature) of each function definition, in clang-format's layout."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and STARTS.match(line):
            start = number
        if start is not None and line.rstrip().endswith(";") and "{" not in "".join(lines[start - 1:number]):
            start = None  # a declaration
        elif start is not None and line.startswith("}"):
            yield start, number - start + 1, lines[start - 1].strip()
            start = None
        elif start is not None and number == start and line.rstrip().endswith("}"):
            start = None  # on one line


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    faults, count, longest = [], 0, (0, "")
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[chm]")):
            name = path.relative_to(root).as_posix()
            if name.endswith("_tab.c"):
                continue
            lines = path.read_text(encoding="utf-8").split("\n")
            count += 1
            limit = HEADER_LINES if name.endswith(".h") and name not in PUBLIC else FILE_LINES
            if len(lines) - 1 > limit:
                faults.append(f"{name}: {len(lines) - 1} lines, at most {limit}")
            for start, length, signature in functions(lines):
                longest = max(longest, (length, f"{name}:{start}"))
                if length > FUNCTION_LINES:
                    faults.append(f"{name}:{start}: {length} lines, at most {FUNCTION_LINES}: {signature}")
            for number, line in enumerate(lines, 1):
                if len(line) > COLUMNS and folder in ("src", "include"):
                    faults.append(f"{name}:{number}: {len(line)} columns, at most {COLUMNS}")
    print("\n".join(faults))
    print(f"{count} files, longest function {longest[0]} lines ({longest[1]}), {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
