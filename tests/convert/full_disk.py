#!/usr/bin/env python3
"""Disks that are full, or fill up during a run: full_disk.py PLUMB STEPS CHECKPOINTS.
The disk is a small file system in memory, which takes the right to mount one."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from runs import (PATIENCE, Skip, allocated, check, digest, main, part_of, refuse, run, start_and_stop,
                  succeed)

SPARE = 4 << 20  # for the file system itself


@contextlib.contextmanager
def disk(folder, size):
    place = folder / "disk"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "plumb-test", str(place)]
    try:
        done = subprocess.run(["mount", *options], capture_output=True, text=True)
    except OSError as fault:
        raise Skip(fault) from None
    if done.returncode != 0:
        raise Skip(done.stderr.strip())
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(path):
    """Takes all that is free."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as f:
        for size in 1 << 20, 4096:
            with contextlib.suppress(OSError):
                while f.write(bytes(size)) == size:
                    pass


def prepare(plumb, checkpoints, folder, command):
    """Source, and a finished file elsewhere."""
    source, reference = folder / "source", folder / "reference"
    shutil.copytree(checkpoints / "deep40", source)
    if command == "pack":
        succeed(plumb, "convert", "-q", source, folder / "unpacked")
        source = folder / "unpacked"
    succeed(plumb, command, "-q", source, reference)
    return source, reference


def refuse_for_room(plumb, checkpoints, folder, command):
    source, reference = prepare(plumb, checkpoints, folder, command)
    needed = reference.stat().st_size
    if command == "pack":  # holes of the source will be holes again
        unpacked = source.stat()
        needed -= unpacked.st_size - unpacked.st_blocks * 512
    with disk(folder, needed - (64 << 10)) as place:
        target = place / "target"
        free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
        refuse(plumb, command, "-q", source, target,
               says=[f"{target}: free disk space: found {free / 1e9:.3f} GB, expected at least "
                     f"{needed / 1e9:.3f} GB"])
        check(os.listdir(place) == [], "nothing is written")


def fill_up(plumb, checkpoints, folder, command):
    source, reference = prepare(plumb, checkpoints, folder, command)
    before = digest(source)
    with disk(folder, reference.stat().st_size + SPARE) as place:
        target, eater, part = place / "target", place / "eater", part_of(place / "target")
        process = start_and_stop([plumb, command, "-j", "1", "-q", source, target],
                                 begun=lambda _: allocated(part) > 0,
                                 in_time=lambda: 0 < allocated(part) < allocated(reference) // 2,
                                 begin_anew=lambda: [f.unlink(missing_ok=True) for f in (part, target)])
        fill(eater)
        process.send_signal(signal.SIGCONT)
        _, said = process.communicate(timeout=PATIENCE)
        wanted = (f"plumb {command}: {re.escape(str(part))}: (write|header) at [0-9]+: found "
                  f"{os.strerror(28)}, expected room for [0-9]+ more bytes\n"
                  f"plumb {command}: what is written stays in {re.escape(str(part))}; the same "
                  "command goes on from there\n")
        check(process.returncode == 1 and re.fullmatch(wanted, said), f"{process.returncode} {said!r}")
        check(part.exists() and not target.exists(), "the part stays")
        refuse(plumb, command, "-q", source, target, says="free disk space: found 0.000 GB, expected")
        check(part.exists(), "and is not given up for want of room")
        eater.unlink()
        succeed(plumb, command, "-q", source, target)
        check(digest(target) == digest(reference), "the bytes of an undisturbed run")
    check(digest(source) == before, "the source is as it was")


def test_no_room_to_convert(plumb, _, checkpoints, folder):
    refuse_for_room(plumb, checkpoints, folder, "convert")


def test_no_room_to_pack(plumb, _, checkpoints, folder):
    refuse_for_room(plumb, checkpoints, folder, "pack")


def test_filling_up_while_converting(plumb, _, checkpoints, folder):
    fill_up(plumb, checkpoints, folder, "convert")


def test_filling_up_while_packing(plumb, _, checkpoints, folder):
    fill_up(plumb, checkpoints, folder, "pack")


def test_file_size_limit(plumb, _, checkpoints, folder):
    """`ulimit -f`: told before anything is written."""
    import resource
    target = folder / "target"
    done = run(plumb, "convert", checkpoints / "tiny", target,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
    check(done.returncode == 1 and f"{part_of(target)}: " in done.stderr
          and os.strerror(27) in done.stderr, done.stderr)
    succeed(plumb, "convert", "-q", checkpoints / "tiny", target)


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")],
         sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
