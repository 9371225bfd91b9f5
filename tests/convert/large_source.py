#!/usr/bin/env python3
"""Memory and holes at full width: large_source.py PLUMB FOLDER [LAYERS].

Run by hand: a skeleton of the released model with some of its layers (default 2: 111 GB that take 2.5 GB
on the disk, three minutes on two cores) is converted, packed and audited.  Each stays below 512 MB of
memory, and what is a hole in the source takes no space in the results.  FOLDER must be on a file system
with holes; what is made there is removed."""
import os
import shutil
import sys
import time
from pathlib import Path

MOST_MEMORY = 512 * 1000 * 1000


def measure(*arguments):
    """Runs it to its end; prints and returns its peak of memory, in bytes."""
    begun = time.monotonic()
    pid = os.spawnv(os.P_NOWAIT, arguments[0], [str(a) for a in arguments])
    _, status, usage = os.wait4(pid, 0)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"{arguments[1]}: {time.monotonic() - begun:.1f} s, {peak / 1e6:.0f} MB", flush=True)
    if status != 0:
        sys.exit(f"{arguments[1]}: status {os.waitstatus_to_exitcode(status)}")
    return peak


def sizes(path):
    """Apparent and real bytes of a file or of a folder's files."""
    files = [p.stat() for p in path.iterdir()] if path.is_dir() else [path.stat()]
    return sum(f.st_size for f in files), sum(f.st_blocks * 512 for f in files)


def main(plumb, folder, layers="2"):
    faults, source = [], folder / "large-source"
    converted, packed = folder / "large-converted", folder / "large-packed"
    try:
        measure(plumb, "synth", "release", source, "--layers", layers, "--sparse")
        for command in (["convert", source, converted, "-j", "16"], ["pack", converted, packed, "-j", "16"],
                        ["audit", converted, "--source", source], ["audit", packed]):
            peak = measure(plumb, *command)
            if peak > MOST_MEMORY:
                faults.append(f"{command[0]} takes {peak} bytes of memory")
        _, room = sizes(source)
        for path in converted, packed:
            apparent, real = sizes(path)
            print(f"{path.name}: {apparent / 1e9:.1f} GB, {real / 1e9:.3f} GB on the disk")
            # Dense matrices grow fourfold at most.
            if real > 4 * room:
                faults.append(f"{path} takes {real} bytes, the source {room}")
    finally:
        shutil.rmtree(source, ignore_errors=True)
        for path in converted, packed:
            path.unlink(missing_ok=True)
    print("\n".join(faults) or "as promised")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
