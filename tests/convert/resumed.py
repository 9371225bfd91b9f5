#!/usr/bin/env python3
"""Going on from a part: resumed.py PLUMB STEPS CHECKPOINTS.

STEPS makes a part that has everything but the check and the name.  From it any state can be made that a
run leaves when it is killed: a payload without its digest is zeros, or begun."""
import json
import math
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

from gguf_reader import Header
from runs import (HEAD_BYTES, MARK, PATIENCE, Layout, Skip, check, digest, main, part_of, refuse,
                  run, start_and_stop, succeed)

BYTES = {0: 4, 24: 1, 30: 2, 39: 17 / 32}  # of an element: F32, I8, BF16, MXFP4


class Begun:
    """A part that holds everything, and what it is to become."""

    def __init__(self, plumb, steps, checkpoints, folder, command="convert", model="tiny"):
        self.plumb, self.command = plumb, command
        self.source, self.target = folder / "source", folder / "target"
        if not self.source.exists():
            shutil.copytree(checkpoints / model, self.source)
        if command == "pack":
            succeed(plumb, "convert", "-q", self.source, folder / "unpacked")
            self.source = folder / "unpacked"
        reference = folder / "reference"
        succeed(plumb, command, "-q", self.source, reference)
        self.bytes, self.layout = reference.read_bytes(), Layout(reference)
        succeed(steps, command, self.source, self.target, 1, "unnamed")
        self.part = part_of(self.target)
        check(self.layout.noted(self.part) == self.layout.tensors, "all is noted")

    def rewrite(self, at, data):
        with open(self.part, "r+b") as f:
            f.seek(at)
            f.write(data)

    def forget(self, tensor):
        self.rewrite(self.layout.at + 16 * tensor, bytes(16))

    def go_on(self, *options):
        """What it says of an earlier run."""
        done = run(self.plumb, self.command, *options, self.source, self.target)
        check(done.returncode == 0, done.stderr)
        check(self.target.read_bytes() == self.bytes, "the bytes of an undisturbed run")
        check(not self.part.exists(), "the part is gone")
        return done.stderr

    def anew(self, *options, there=True):
        said = self.go_on(*options)
        check("goes on from" not in said, f"it begins anew: {said}")
        check(("of no use for this work: begun anew" in said) == there, f"and says so: {said}")


def payloads(path):
    """(offset, size without padding, end) of each payload, in the order of the file."""
    header = Header(path)
    offsets, sizes = [], []
    for _ in range(header.tensors):
        header.string()
        dims, = header.take("<I")
        elements = math.prod(header.take(f"<{dims}Q"))
        kind, offset = header.take("<IQ")
        offsets.append(offset)
        sizes.append(int(elements * BYTES[kind]))
    begin = (header.at + 16383) // 16384 * 16384
    ends = offsets[1:] + [os.path.getsize(path) - begin]
    return [(begin + a, size, begin + b) for a, size, b in zip(offsets, sizes, ends)]


def told(begun, places):
    there = sum(size for _, size, _ in places) / 1e9
    return f"goes on from {begun.part}: {there:.3f} GB of it are there"


def test_only_the_name_lacks(*about):
    for command in "convert", "pack":
        folder = about[-1] / command
        folder.mkdir()
        begun = Begun(*about[:-1], folder, command)
        was, places = begun.part.stat(), payloads(begun.target.with_name("reference"))
        said = begun.go_on()
        check(told(begun, places) in said, f"{told(begun, places)}: {said}")
        check(begun.target.stat().st_ino == was.st_ino, "it is the part")


def test_killed_before_the_name(*about):
    begun = Begun(*about)
    begun.rewrite(0, begun.bytes[:HEAD_BYTES])
    begun.anew()


def test_killed_between_two_names(*about):
    begun = Begun(*about)
    begun.rewrite(0, begun.bytes[:HEAD_BYTES])
    os.link(begun.part, begun.target)
    refuse(begun.plumb, "convert", begun.source, begun.target, says="permission to replace it")
    with open(begun.target, "rb") as finished:
        begun.anew("--force")
        check(finished.read() == begun.bytes, "the finished file stays what it was until replaced")


def test_some_payloads_are_there(*about):
    begun = Begun(*about)
    places = payloads(begun.target.with_name("reference"))
    for tensor, (begin, _, end) in enumerate(places):
        if tensor % 3 == 0:
            continue
        begun.forget(tensor)
        written = (end - begin) // 2 if tensor % 3 == 1 else 0
        begun.rewrite(begin + written, bytes(end - begin - written))
    said = begun.go_on()
    check(told(begun, places[::3]) in said, f"{told(begun, places[::3])}: {said}")


def zero_tensor(shard, name):
    with open(shard, "r+b") as f:
        size, = struct.unpack("<Q", f.read(8))
        begin, end = json.loads(f.read(size))[name]["data_offsets"]
        f.seek(8 + size + begin)
        f.write(bytes(end - begin))


def test_damaged_part(*about):
    """Found before it gets the name; and the next run takes nothing of it over."""
    for command in "convert", "pack":
        folder = about[-1] / command
        folder.mkdir()
        shutil.copytree(about[2] / "tiny", folder / "source")
        zero_tensor(folder / "source" / "model-00002-of-00004.safetensors",
                    "layers.0.attn.kv_norm.weight")
        begun = Begun(*about[:-1], folder, command)
        whole, places = begun.part.read_bytes(), payloads(begun.target.with_name("reference"))
        zeros = [begin for begin, size, _ in places if not any(begun.bytes[begin:begin + size])]
        check(zeros, "a payload of zeros, which is not written but left out")
        for at in places[5][0], zeros[0]:
            begun.part.write_bytes(whole)
            begun.rewrite(at, bytes([begun.bytes[at] ^ 4]))
            refuse(begun.plumb, command, "-q", begun.source, begun.target,
                   says=[begun.part, "expected"])
            check(not begun.target.exists(), "no file under the final name")
            begun.anew()
            begun.target.unlink()


def test_part_of_something_else(*about):
    def other_header(b): b.rewrite(HEAD_BYTES, bytes([b.bytes[HEAD_BYTES] ^ 1]))
    def other_origin(b): b.rewrite(len(MARK), bytes(16))
    def shorter(b): os.truncate(b.part, b.layout.bytes - 1)
    def longer(b): os.truncate(b.part, b.layout.bytes + 1)
    def head_only(b): os.truncate(b.part, HEAD_BYTES)
    def half_a_header(b): os.truncate(b.part, b.layout.at)
    def empty(b): os.truncate(b.part, 0)
    def gone(b): b.part.unlink()
    begun = Begun(*about)
    whole = begun.part.read_bytes()
    for change in (other_header, other_origin, shorter, longer, head_only, half_a_header, empty, gone):
        begun.part.write_bytes(whole)
        change(begun)
        begun.anew(there=change not in (empty, gone))
        begun.target.unlink()
    begun.part.write_bytes(whole)
    check("goes on from" in begun.go_on(), "without a change it goes on")


def test_other_form(plumb, steps, checkpoints, folder):
    begun = Begun(plumb, steps, checkpoints, folder)
    done = run(plumb, "convert", "--dense", "fp8", begun.source, begun.target)
    check(done.returncode == 0 and "goes on from" not in done.stderr, done.stderr)
    succeed(plumb, "convert", "-q", "--dense", "fp8", begun.source, folder / "fp8")
    check(digest(begun.target) == digest(folder / "fp8"), "what was asked for the second time")


def test_changed_source(*about):
    """Even where size and time are those of before."""
    begun = Begun(*about)
    shard = begun.source / "model-00001-of-00004.safetensors"
    whole, was = begun.part.read_bytes(), shard.stat()
    os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns + 1))
    begun.anew()
    begun.target.unlink()
    for other in [shard.read_bytes()[:-1] + b"\0", shard.read_bytes()[:-1] + b"\1"]:
        begun.part.unlink(missing_ok=True)
        os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns))
        succeed(about[1], "convert", begun.source, begun.target, 1, "unnamed")
        shard.write_bytes(other)
        os.utime(shard, ns=(was.st_atime_ns, was.st_mtime_ns))
        succeed(begun.plumb, "convert", "-q", "--force", begun.source, about[-1] / "other")
        begun.bytes = (about[-1] / "other").read_bytes()
        begun.anew()
        begun.target.unlink()
    check(len(whole) == len(begun.bytes) and whole != begun.bytes, "the change shows in the file")


def caught(process, part):
    """True once the program handles SIGINT (Linux tells; elsewhere its part does)."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return part.exists()
    line = [x for x in status.read_text().splitlines() if x.startswith("SigCgt:")]
    return bool(line and int(line[0].split()[1], 16) >> (signal.SIGINT - 1) & 1)


def test_interrupted(*about):
    """The signal comes before the work begins at the earliest, and before all is noted; SIGINT to a first
    run, the others to one that goes on."""
    begun = Begun(*about, model="deep40")
    plumb, source, target, part = begun.plumb, begun.source, begun.target, begun.part
    for tensor in range(10, begun.layout.tensors):
        begun.forget(tensor)
    half = part.read_bytes()

    def prepare(number):
        target.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
        if number != signal.SIGINT:
            part.write_bytes(half)

    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        for quiet in [], ["-q"]:
            prepare(number)
            process = start_and_stop([plumb, "convert", *quiet, source, target],
                                     begun=lambda running: caught(running, part),
                                     in_time=lambda: not target.exists() and begun.layout.lacks(part),
                                     begin_anew=lambda: prepare(number))
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            out, said = process.communicate(timeout=PATIENCE)
            check(process.returncode == 130 and out == "", f"{process.returncode} {out}")
            if not quiet and number != signal.SIGINT:
                resumed, said = said.split("\n", 1)
                check(f"goes on from {part}: " in resumed, resumed)
            check(said == f"plumb convert: interrupted; the same command goes on from {part}\n", said)
            check(part.exists() and not target.exists(), "the part is there")
    begun.go_on()


def on_terminal(*arguments):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(arguments[0], [str(a) for a in arguments])
    shown = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    check(os.waitpid(pid, 0)[1] == 0, f"status 0: {shown}")
    return shown.decode().replace("\r\n", "\n")


def test_progress(plumb, _, checkpoints, folder):
    target = folder / "target"
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as fault:
        raise Skip(f"no pseudo-terminal here: {fault}") from None
    result = succeed(plumb, "convert", checkpoints / "tiny", target)
    line = (r"\r\x1b\[K(looking at values|writing|checking what is on disk|comparing with the source): \d+\.\d\d of "
            r"\d+\.\d\d GB \(\d+ %\), \d+\.\d\d GB/s, (\?|\d+:\d\d(:\d\d)?) left")
    for command, source, phases in (("convert", checkpoints / "tiny", 2), ("pack", target, 4)):
        to = folder / f"{command}ed"
        shown = on_terminal(plumb, command, source, to)
        told = r"\r\x1b\[K(?:plumb pack: \S+ stays f32: [^\n]*\n)+"
        lines = re.search(f"^((?:{line})+(?:{told}(?:{line})+)?)\r\x1b\\[K{to}: ", shown, re.MULTILINE)
        check(lines, f"lines of progress, taken away at the end: {shown!r}")
        check(len(set(m[0] for m in re.findall(line, lines[1]))) == phases, f"phases: {shown!r}")
        check(shown.count("(100 %)") >= phases, f"each comes to its end: {shown!r}")
        to.unlink()
        shown = on_terminal(plumb, command, "-q", source, to)
        check(shown.startswith(f"{to}: ") and "\r" not in shown, f"quiet: {shown!r}")
    check(result.startswith(f"{target}: "), "the result")


if __name__ == "__main__":
    main([test for name, test in list(globals().items()) if name.startswith("test_")],
         sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
