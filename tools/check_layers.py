#!/usr/bin/env python3
"""Checks that every file includes only what its folder may know, and that nothing below src/cli
prints, exits or reads the environment.  Run from anywhere: tools/check_layers.py [ROOT]."""
import re
import sys
from pathlib import Path

# Folder -> folders below it that it may include.  A folder may always include itself.
BELOW = {
    "base": [],
    "arith": ["base"],
    "format": ["base", "arith"],
    "text": ["base", "format"],
    "stream": ["base", "format", "backend"],
    "backend": ["base", "arith"],
    "model": ["base", "arith", "format", "stream", "text", "backend"],
    "plan": ["base", "arith", "format", "stream", "backend", "model"],
    "engine": ["base", "arith", "format", "stream", "text", "backend", "model"],
    "store": ["base", "format", "engine"],
    "grammar": ["base"],
    "server": ["base", "grammar"],
    "synth": ["base", "arith", "format"],
    "convert": ["base", "arith", "format", "text", "model"],
    "cli": ["base", "format", "stream", "plan", "synth", "convert", "server"],
}
# What one folder may include of another is sometimes a single header.
ONLY = {
    ("model", "backend"): ["backend/backend.h"],
    ("stream", "backend"): ["backend/backend.h"],
    ("plan", "backend"): ["backend/backend.h"],
    ("plan", "model"): ["model/network.h"],
    ("convert", "model"): ["model/engram_hash.h"],
    ("text", "format"): ["format/model_files.h"],
    ("store", "format"): ["format/snapshot.h"],
    ("store", "engine"): ["engine/model_digest.h"],
    ("cli", "stream"): ["stream/route_replay.h", "stream/route_trace.h"],
}
# Third-party and system headers that belong to few folders.
OWNERS = {
    "jansson.h": ["format", "text", "synth", "convert", "grammar", "server", "cli"],
    "pcre2.h": ["text"],
    "utf8proc.h": ["text"],
    "xxhash.h": ["format", "text", "stream", "engine", "store", "convert", "cli"],
    "histedit.h": ["cli"],
    "event2/event.h": ["server"],
    "event2/http.h": ["server"],
    "liburing.h": ["stream"],
    "openssl/evp.h": ["convert"],
    "pthread.h": ["base", "stream", "plan", "engine", "convert", "backend", "server"],
    "Metal/Metal.h": ["backend"],
    "Foundation/Foundation.h": ["backend"],
    "immintrin.h": ["arith", "backend"],
    "arm_neon.h": ["arith", "backend"],
}
CALLS = re.compile(r"\b(getenv|exit|_exit|abort|printf|puts|putchar|perror|vprintf)\s*\(")
PRINTS_TO = re.compile(r"\b(stdout|stderr)\b")
GETENV_OWNERS = {"cli/options.c", "base/machine.c"}
EXIT_OWNERS = {"cli"}
INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s+(["<])([^">]+)[">]')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)


def without_comments(text):
    """Blanks comments and strings, keeping line breaks."""
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def include_fault(folder, kind, target):
    if kind == "<":
        owners = OWNERS.get(target)
        if owners is not None and folder not in owners:
            return f"<{target}> belongs to {', '.join(owners)}"
        return None
    if target == "plumb.h":
        return None
    if "/" not in target:
        return f'"{target}": write the folder too'
    other = target.split("/")[0]
    if other == folder:
        return None
    if other not in BELOW[folder]:
        return f'{folder} may not include {other} ("{target}")'
    only = ONLY.get((folder, other))
    if only and target not in only:
        return f'of {other}, {folder} may include only {", ".join(only)}'
    return None


def check_file(path, name, faults):
    folder = name.split("/")[0]
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        fault = include_fault(folder, match[1], match[2]) if match else None
        if fault:
            faults.append(f"src/{name}:{number}: {fault}")
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        calls = {match[1] for match in CALLS.finditer(line)}
        if "getenv" in calls and name not in GETENV_OWNERS:
            owners = " and ".join(sorted(GETENV_OWNERS))
            faults.append(f"src/{name}:{number}: only {owners} read the environment")
        if folder in EXIT_OWNERS:
            continue
        for call in sorted(calls - {"getenv"}):
            faults.append(f"src/{name}:{number}: {call} below src/cli")
        if PRINTS_TO.search(line):
            faults.append(f"src/{name}:{number}: a standard stream below src/cli")


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    faults, count = [], 0
    for path in sorted((root / "src").rglob("*.[chm]")):
        name = path.relative_to(root / "src").as_posix()
        if name.split("/")[0] not in BELOW:
            faults.append(f"src/{name}: the folder has no rule")
            continue
        check_file(path, name, faults)
        count += 1
    print("\n".join(faults))
    print(f"{count} files, {len(faults)} faults")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
