"""What the tests of whole runs of `plumb convert` and `plumb pack` share."""
import hashlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

PATIENCE = 120  # seconds; sanitizer builds are slow
SKIPPED = 77  # exit status; CMakeLists.txt tells CTest
MARK = b"PLUMBPRT"
HEAD_BYTES = 24  # mark and origin, in place of magic, version and counts
KEY = b"plumb.digest.stored"


class Skip(Exception):
    """What this machine lacks."""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def run(*arguments, **options):
    """Ends with a status, and says at most one line of complaint."""
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                          timeout=PATIENCE, **options)
    check(done.returncode in (0, 1), f"{arguments[1:]}: status {done.returncode}: {done.stderr}")
    return done


def succeed(*arguments, **options):
    done = run(*arguments, **options)
    check(done.returncode == 0, f"{arguments[1:]}: {done.stderr}")
    return done.stdout


def refuse(*arguments, says, **options):
    """Ends with status 1 and one line that holds each of the texts `says`."""
    done = run(*arguments, **options)
    line = done.stderr
    check(done.returncode == 1, f"{arguments[1:]}: not refused")
    check(line.count("\n") == 1 and line.endswith("\n"), f"one line: {line!r}")
    for text in says if isinstance(says, (list, tuple)) else [says]:
        check(str(text) in line, f"{text!r} is not in {line!r}")


def digest(path):
    """Of a file, or of all files of a folder with their names."""
    path, total = Path(path), hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        total.update(file.name.encode() + b"\0")
        with open(file, "rb") as f:
            while block := f.read(1 << 20):
                total.update(block)
    return total.hexdigest() if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()


def part_of(target):
    return Path(f"{target}.part")


def allocated(path):
    """Bytes that the file takes of the disk; 0 without one."""
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


def start_and_stop(command, begun, in_time, begin_anew):
    """A run that stands still, once it had `begun` and while it is `in_time`.  It may be past that before
    it can be stopped, on a busy machine now and then: then `begin_anew` clears what it left, for another."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        process = subprocess.Popen([str(a) for a in command], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while not begun(process) and process.poll() is None:
            pass
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status) and in_time():
                return process
            if not os.WIFSTOPPED(status):
                process.returncode = os.waitstatus_to_exitcode(status)
        process.kill()
        _, said = process.communicate()
        check(process.returncode in (0, -signal.SIGKILL), f"{process.returncode}: {said}")
        begin_anew()
    raise AssertionError("no run could be stopped in time")


class Layout:
    """Where a finished file has the digests of its payloads, and where its header ends."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.header = f.read(1 << 20)
        found = self.header.index(KEY) + len(KEY)
        kind, item, numbers = struct.unpack_from("<IIQ", self.header, found)
        check((kind, item) == (9, 10), "an array of u64")
        self.at, self.tensors = found + 16, numbers // 2
        self.bytes = os.path.getsize(path)

    def noted(self, part):
        """How many payloads a part says it has."""
        with open(part, "rb") as f:
            f.seek(self.at)
            digests = f.read(16 * self.tensors)
        return sum(any(digests[i:i + 16]) for i in range(0, len(digests), 16))

    def lacks(self, part):
        """Some payloads are not noted yet, so that there is work left."""
        return not part.exists() or self.noted(part) < self.tensors


def memory_disk():
    """In memory, whoever else uses the disk neither slows a test down nor decides what it meets; with
    TMPDIR any disk can be tested."""
    shared = "/dev/shm"
    return None if "TMPDIR" in os.environ or not os.access(shared, os.W_OK) else shared


def main(tests, *arguments):
    """Runs them, each in a folder of its own; the last line is of totals."""
    failed, skipped = 0, 0
    for test in tests:
        with tempfile.TemporaryDirectory(dir=memory_disk()) as folder:
            try:
                test(*arguments, Path(folder))
                print("ok  ", test.__name__, flush=True)
            except Skip as lack:
                skipped += 1
                print("skipped:", test.__name__, lack, flush=True)
            except Exception:  # whatever it is, the others still run
                failed += 1
                print("FAIL", test.__name__, traceback.format_exc(), flush=True)
    print(f"{len(tests) - failed - skipped} passed, {failed} failed")
    sys.exit(1 if failed else SKIPPED if skipped == len(tests) else 0)
