#!/usr/bin/env python3
"""Two commands run in turns, played by scripts that write down when they are called and give the speeds
they are told to: bench_pairs.py RUN_PAIRS."""
import itertools
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PATIENCE = 300  # seconds; sanitizer builds are slow
HEADER = ("ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,"
          "gen_steady_tps,kvcache_bytes")

# Side, what each of its runs does ("speed" or a line of Python), the log, then what the pairs give it.
FAKE = """
import os, signal, struct, sys, time
side, log, plan, options = sys.argv[1], sys.argv[2], sys.argv[3].split(";"), sys.argv[4:]
assert options[0::2] == ["--csv"], options
csv, dump = options[1], os.environ["DS4_BENCH_DECODE_LOGITS_DUMP"]
HEADER = "%s"
assert not os.path.exists(csv) and not os.path.exists(dump)
with open(log + ".folder", "w") as file:
    file.write(os.path.dirname(csv))
with open(log, "a+") as file:
    file.seek(0)
    turn = file.read().count(side)
    file.write(side)
row = lambda context, speed: (
    f"{context},{context},{10 * speed},128,{speed / 2},9.5,127,{speed},1234\\n")
def write(speed, contexts=(2048, 4096), logits=(1, 2, 3, 4)):
    with open(csv, "w") as file:
        file.write(HEADER + "\\n" + "".join(row(c, speed) for c in contexts))
    with open(dump, "wb") as file:
        file.write(struct.pack(f"<{len(logits)}f", *logits))
action = plan[turn % len(plan)]
try:
    write(float(action))
except ValueError:
    exec(action)
"""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Fake:
    """Two scripts, and a place for them."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.log = f"{folder}/log"
        Path(f"{folder}/fake.py").write_text(FAKE.replace("%s", HEADER))
        os.mkdir(f"{folder}/private")

    def words(self, a, b, runs=4, threshold=0.03):
        quoted = [plan.replace("'", "'\\''") for plan in (a, b)]
        lines = [f"{sys.executable} -IS '{self.folder}/fake.py' {side} '{self.log}' '{plan}'"
                 for side, plan in zip("AB", quoted)]
        return [self.program, str(runs), str(threshold), "2", f"{self.folder}/private", *lines]

    def run(self, a, b, **options):
        Path(self.log).write_text("")
        done = subprocess.run(self.words(a, b, **options), capture_output=True, text=True, timeout=PATIENCE)
        self.check_gone()
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def calls(self):
        return Path(self.log).read_text()

    def check_gone(self):
        check(os.listdir(f"{self.folder}/private") == [], "files are left behind")


def test_order_and_ratios(fake):
    status, out, err = fake.run("100;110;100;90", "100;100;125;100", runs=8)
    check((status, err) == (0, []), f"{status} {err}")
    check(fake.calls() == "ABBAABBA", fake.calls())
    # Neighbours: 100/100, 110/100, 100/125, 90/100.
    wanted = "1.000000 1.100000 0.800000 0.900000: 0.950000 within noise"
    check(out == [f"{c} {kind} {wanted}" for c in (2048, 4096) for kind in ("prefill", "decode")], out)


def test_drift_is_no_regression(fake):
    """A machine that grows slower all the time, by a twentieth a run."""
    a = [f"write(100 * .95 ** {i})" for i in (0, 3, 4, 7)]
    b = [f"write(100 * .95 ** {i})" for i in (1, 2, 5, 6)]
    status, out, _ = fake.run(";".join(a), ";".join(b), runs=8)
    check(status == 0 and all(line.endswith(("same", "within noise")) for line in out), out)


def test_regression(fake):
    status, out, _ = fake.run("90;92", "100")
    check(status == 0 and len(out) == 4, out)
    check(all(line.endswith(": 0.910000 A is slower") for line in out), out)
    status, out, _ = fake.run("90;92", "100", threshold=0.1)
    check(all(line.endswith("same") for line in out), out)
    status, out, _ = fake.run("100", "90")
    check(all(line.endswith("A is faster") for line in out), out)


def test_no_steady_tokens(fake):
    """Without them, all generated tokens count; without those either, there is no ratio."""
    a = "write(50),open(csv, 'w').write(HEADER.replace('gen_steady', 'other') + '\\n' + row(64, 50))"
    status, out, err = fake.run(a, "write(25, (64,))")
    check((status, err) == (0, []), err)
    check([line.split(":")[0] for line in out] ==
          ["64 prefill 2.000000 2.000000", "64 decode 1.000000 1.000000"], out)
    status, out, err = fake.run("write(0)", "5")
    check((status, out, err) == (0, [], []), f"{out} {err}")


def test_bits(fake):
    """One bit in one run of eight."""
    turned = struct.unpack("<f", struct.pack("<I", 0x40400001))[0]
    status, out, _ = fake.run("5", f"5;5;write(5, logits=(1, 2, {turned!r}, 4));5", runs=8)
    check(status == 0, status)
    differing = [line for line in out if "differs" in line]
    check(differing == ["run 6 differs: row 1, token 0: 3 (0x40400000) and 3.00000024 (0x40400001)"],
          differing)
    status, out, _ = fake.run("5", "write(5, logits=(1, 2))", runs=4)
    check([line for line in out if "differs" in line] ==
          ["run 2 differs: 2 rows and 1 rows", "run 3 differs: 2 rows and 1 rows"], out)
    for a, b, words in (((1, 2), (), "8 bytes and 0 bytes"), ((), (1, 2), "0 bytes and 8 bytes")):
        status, out, _ = fake.run(f"write(5, logits={a})", f"write(5, logits={b})", runs=4)
        check([line for line in out if "differs" in line] ==
              [f"run 2 differs: {words}", f"run 3 differs: {words}"], out)
    status, out, _ = fake.run("write(5, logits=())", "write(5, logits=())", runs=4)
    check(status == 0 and not [line for line in out if "differs" in line], out)


# What a run does, which runs were made, and what is said.
FAULTS = [
    ("5", "sys.exit(3)", "AB", "run 2 (B): found exit status 3, expected exit status 0"),
    ("5;sys.exit('no luck')", "5", "ABBA", "run 4 (A): found exit status 1, expected exit status 0"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "5", "A",
     "run 1 (A): found (exit status 137|an end by signal 9), expected exit status 0"),
    ("5", "pass", "AB", "run 2 (B): its --csv: open: found No such file or directory, expected a readable file"),
    ("5", "write(5);os.unlink(dump)", "AB",
     "run 2 (B): its DS4_BENCH_DECODE_LOGITS_DUMP: found No such file or directory, expected a file of that name"),
    ("write(5);os.unlink(dump)", "5", "A",
     "run 1 (A): its DS4_BENCH_DECODE_LOGITS_DUMP: found No such file or directory, expected a file of that name"),
    ("5", "write(float('nan'))", "AB",
     "run 2 (B): its --csv: line 2, column prefill_tps: found 'nan', expected a number: 0, or from 1e-9 to 1e18"),
    ("5", "write(5, (2048,))", "AB", "run 2 (B): its --csv: contexts: found none of 4096, expected the 2 of run 1 (A)"),
    ("5", "write(5, (2048, 4096, 8192))", "AB",
     "run 2 (B): its --csv: contexts: found 8192, expected the 2 of run 1 (A)"),
    ("5", "write(5, (1024, 4096))", "AB", "run 2 (B): its --csv: contexts: found 1024, expected the 2 of run 1 (A)"),
    ("5", "write(5, logits=(1, float('nan')))", "AB",
     "run 2 (B): its DS4_BENCH_DECODE_LOGITS_DUMP: row 0, token 1 (byte 4): found NaN (0x7fc00000), expected finite numbers"),
    ("write(5, logits=(1, float('nan')))", "5", "AB",
     "run 1 (A): its DS4_BENCH_DECODE_LOGITS_DUMP: row 0, token 1 (byte 4): found NaN (0x7fc00000), expected finite numbers"),
    ("5", "write(5, logits=(1, 2, 3))", "AB",
     "run 2 (B): its DS4_BENCH_DECODE_LOGITS_DUMP: found 12 bytes, expected rows of 2 float32, 8 bytes each"),
]


def test_faults(fake):
    for a, b, calls, message in FAULTS:
        # Actions are separated by semicolons, what one does by commas.
        a, b = (plan.replace(";os.", ",os.") for plan in (a, b))
        status, out, err = fake.run(a, b)
        pattern = re.escape(message).replace(re.escape("(exit status 137|an end by signal 9)"),
                                             "(exit status 137|an end by signal 9)")
        check(status == 1 and out == [], f"{a}, {b}: {status} {out}")
        check(re.fullmatch(pattern, err[-1]), f"{err[-1]}, expected {message}")
        check(fake.calls() == calls, f"{a}, {b}: {fake.calls()}")
    check("no luck" in fake.run("sys.exit('no luck')", "5")[2], "what a run says is passed on")


def test_quiet_output(fake):
    status, out, err = fake.run("print('loud'),write(5)", "print('loud'),write(5)", runs=4)
    check(status == 0 and "loud" not in out and err == [], f"{out} {err}")
    status, out, err = fake.run("write(5 + len(sys.stdin.read()))", "5", runs=4)
    check(status == 0, err)


def running(marker):
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            pass  # it has ended meanwhile
    return found


def wait_until(condition, what):
    end = time.time() + PATIENCE
    while not condition():
        check(time.time() < end, f"no {what}")
        time.sleep(0.02)


HANGS = {
    "plain": "time.sleep(3600)",
    "that ignores signals": "[signal.signal(s, signal.SIG_IGN) for s in (2, 15, 1)],time.sleep(3600)",
    "of a child": "os.spawnl(os.P_WAIT, sys.executable, 'python', '-c', '__import__(\"time\").sleep(3600)', log)",
}


def interrupt(fake, name, number):
    folder = f"{fake.folder}/{name}, {number}"
    os.mkdir(folder)
    fake = Fake(fake.program, folder)
    Path(fake.log).write_text("")
    process = subprocess.Popen(fake.words("5", HANGS[name]), stdout=subprocess.DEVNULL)
    wait_until(lambda: fake.calls() == "AB", "second run")
    process.send_signal(number)
    status = process.wait(PATIENCE)
    wait_until(lambda: not running(fake.log), f"end of a run {name}")
    if number != signal.SIGKILL:
        check(status == 130, f"{name}: {status}")
        fake.check_gone()


def test_interrupted(fake):
    """Ctrl-C, a request to end, and SIGKILL, which nothing can be done about: nobody is left."""
    with ThreadPoolExecutor() as threads:
        places = itertools.product(HANGS, (signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
        for done in [threads.submit(interrupt, fake, name, number) for name, number in places]:
            done.result()


def test_private_folder(fake):
    check(fake.run("write(5 + os.stat(os.path.dirname(csv)).st_mode % 512 - 0o700)", "5", runs=4)[1][0]
          .startswith("2048 prefill 1.000000"), "the folder is for nobody else")
    words = fake.words("5", "5")
    words[4] = f"{fake.folder}/nowhere"
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 1 and done.stderr ==
          f"{words[4]}: found No such file or directory, expected a folder for temporary files "
          "(TMPDIR names another)\n", done.stderr)


def main():
    program = os.path.abspath(sys.argv[1])
    tests = [(name, test) for name, test in sorted(globals().items())
             if name.startswith("test_") and (len(sys.argv) < 3 or name in sys.argv[2:])]
    for name, test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(Fake(program, folder))
        print(f"ok   {name}")
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
