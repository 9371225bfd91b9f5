#!/usr/bin/env python3
"""kill -9 at random times: killed.py PLUMB STEPS CHECKPOINTS.

Runs of converting and packing are killed, and so are those that go on from what was left.  After each
kill the final name is free or holds the whole file; what is left is no model; what was noted stays
noted; and whoever comes to the end has the bytes of a run that nobody disturbed.  STEPS is the same work
with notes after few bytes, without which small models would always begin anew."""
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from runs import HEAD_BYTES, MARK, Layout, check, digest, main, part_of, refuse, succeed

KILLS = 50  # of each kind of work
MOST_RUNS = 6 * KILLS
NOTES = 40  # in an undisturbed run


class Work:
    """One kind of work, how long it takes, and what it gives."""

    def __init__(self, plumb, steps, kind, source, folder):
        self.plumb, self.kind, self.source, self.folder = plumb, kind, source, folder
        reference = folder / "reference.gguf"
        succeed(plumb, kind, "-q", source, reference)
        self.layout, self.wanted = Layout(reference), digest(reference)
        self.target = folder / "target.gguf"
        self.command = [str(a) for a in (steps, kind, source, self.target,
                                         self.layout.bytes // NOTES)]
        begun = time.monotonic()
        succeed(*self.command)
        self.seconds = time.monotonic() - begun
        check(digest(self.target) == self.wanted, "notes change no byte")
        self.target.unlink()

    def seconds_left(self, noted):
        """About half of the time goes into writing."""
        return self.seconds * (1 - 0.5 * noted / self.layout.tensors)

    def kill_at_random(self, numbers, noted):
        """False if it came to its end before.  Then, if it had all to do, that is how long it takes: the
        first run may have had to wait for others on this machine."""
        begun = time.monotonic()
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            process.wait(numbers.random() * self.seconds_left(noted))
        except subprocess.TimeoutExpired:
            process.kill()
        status = process.wait()
        check(status in (0, -signal.SIGKILL), f"status {status}")
        if status == 0 and noted == 0:
            self.seconds = min(self.seconds, time.monotonic() - begun)
        return status != 0

    def look(self):
        """What was left: "named", or a part in one of its states; and how many payloads it notes."""
        part = part_of(self.target)
        if self.target.exists():
            check(digest(self.target) == self.wanted, "a file under the final name is whole")
            return "named", self.layout.tensors
        if not part.exists() or part.stat().st_size < self.layout.at:
            return "begun", 0
        with open(part, "rb") as f:
            head = f.read(HEAD_BYTES)
        if not head.startswith(MARK):
            check(head == self.layout.header[:HEAD_BYTES], f"{head}")
            check(digest(part) == self.wanted, "what looks finished is")
            return "finished", self.layout.tensors
        refuse(self.plumb, "inspect", part, says=[part, "an unfinished file"])
        noted = self.layout.noted(part)
        return "checking" if noted == self.layout.tensors else "writing", noted

    def finish(self, noted):
        if self.target.exists():
            refuse(self.plumb, self.kind, "-q", self.source, self.target, says=self.target)
        else:
            said = succeed(*self.command)
            check(not said.startswith("0 of") or noted == 0, f"{noted} were noted: {said}")
        check(digest(self.target) == self.wanted, "the bytes of an undisturbed run")
        self.target.unlink()
        part_of(self.target).unlink(missing_ok=True)


def kill_often(plumb, steps, kind, source, folder):
    numbers = random.Random(f"{kind} {source.name}")
    work, states, kills = Work(plumb, steps, kind, source, folder), {}, 0
    resumed_kills, resumed_ends = 0, 0
    for _ in range(MOST_RUNS):
        noted = 0
        for _ in range(numbers.randint(1, 4)):
            was = noted
            killed = work.kill_at_random(numbers, noted)
            state, noted = work.look()
            check(noted >= was or state == "begun" and was == 0,
                  f"{was} were noted, now {noted} ({state})")
            kills += killed
            resumed_kills += killed and was > 0
            if killed:
                states[state] = states.get(state, 0) + 1
            if state == "named":
                break
        resumed_ends += noted > 0
        work.finish(noted)
        if kills >= KILLS:
            break
    print(f"{kind} {source.name}: {work.seconds:.2f} s undisturbed; {kills} kills, {resumed_kills} of "
          f"runs that had resumed; states {dict(sorted(states.items()))}")
    check(kills >= KILLS, f"{kills} kills only")
    check("writing" in states and "checking" in states, f"kills in all phases: {states}")
    check(resumed_kills > 0 and resumed_ends > 0, f"{resumed_kills}, {resumed_ends} had resumed")


def test_convert(plumb, steps, checkpoints, folder):
    source = shutil.copytree(checkpoints / "deep40", folder / "deep40")
    kill_often(plumb, steps, "convert", source, folder)


def test_pack(plumb, steps, checkpoints, folder):
    source = folder / "source.gguf"
    succeed(plumb, "convert", "-q", checkpoints / "deep40", source)
    kill_often(plumb, steps, "pack", source, folder)


if __name__ == "__main__":
    main([test_convert, test_pack], sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
