#!/usr/bin/env python3
"""Runs plumb bench and works out again what it says: bench.py PLUMB.
Its logits are compared with those of `plumb logits`, which knows nothing of frontiers."""
import array
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "data/demo-model"
COLUMNS = ("ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,"
           "gen_steady_tps,kvcache_bytes,hit_rate,bytes_read,miss_ms,engram_rows,peak_rss_bytes,"
           "prefill_seconds,gen_seconds,repeat").split(",")
BOS, EOS = 0, 1  # of all models here


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Plumb:
    """The program in a folder of its own, with a tiny model in it."""

    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("DS4_")}
        self.environment["HOME"] = folder
        self.run("synth", "-q", "tiny", "tiny")

    def run(self, *arguments, **environment):
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, text=True,
                              env={**self.environment, **environment}, capture_output=True,
                              timeout=600)
        check(done.returncode == 0, f"{arguments}: {done.returncode} {done.stderr}")
        self.said = done.stderr
        return done.stdout

    def rows(self, *arguments, **environment):
        return read_rows(self.run("bench", "-q", *arguments, **environment))

    def write_ids(self, ids, name="ids"):
        (self.folder / name).write_text(" ".join(map(str, ids)))
        return name

    def logits(self, model, ids, begin):
        """Bytes and hash of the rows from `begin` on."""
        printed = self.run("logits", "-q", *model, "--tokens-file", self.write_ids(ids, "all"),
                           "--from", begin, "--out", "rows")
        return (self.folder / "rows").read_bytes(), printed.strip()


def read_rows(text):
    table = csv.DictReader(io.StringIO(text))
    check(table.fieldnames == COLUMNS, table.fieldnames)
    rows = list(table)
    check(text.count("\n") == len(rows) + 1 and text.endswith("\n"), text)
    return rows


def numbers(rows, column):
    return [int(row[column]) for row in rows]


def likeliest(row, excluded):
    """Index of the largest number, of equals the first."""
    return max((i for i in range(len(row)) if i != excluded), key=lambda i: row[i])


def floats(data, vocab):
    values = array.array("f")
    values.frombytes(data)
    if sys.byteorder == "big":
        values.byteswap()
    return [values[i:i + vocab] for i in range(0, len(values), vocab)]


TINY = ("-m", "tiny")
TINY_IMAGE = 505  # image_token_id
IDS = [BOS] + [3 + 7 * i % 490 for i in range(119)]


def test_columns(plumb):
    """Counts, rates and bytes of state by docs/model.md section 6: a key of 96 as e2m1 with e4m3 scales
    of 16, an index key of 64 as e2m1 with scales of 32, one for two tokens in layer 1 and one a token in
    layer 3; six rings of 8 rows of 96 e4m3 with scales of 32; one carry of two rows of 96 floats."""
    ids = plumb.write_ids(IDS)
    began = time.monotonic()
    rows = plumb.rows(*TINY, "--tokens-file", ids, "--ctx-start", 25, "--ctx-max", 100,
                      "--step-incr", 30, "-n", 6, "--repeat", 2)
    wall = time.monotonic() - began
    frontiers = [25, 55, 85, 100]
    check(numbers(rows, "ctx_tokens") == 2 * frontiers, rows)
    check(numbers(rows, "prefill_tokens") == 2 * [25, 30, 30, 15], rows)
    check(numbers(rows, "gen_tokens") == 8 * [6], rows)
    check(numbers(rows, "gen_steady_tokens") == 8 * [5], rows)
    check(numbers(rows, "repeat") == 4 * [1] + 4 * [2], rows)
    key, fixed = 48 + 6 + 32 + 2, 6 * 8 * (96 + 3) + 2 * 96 * 4
    check(numbers(rows, "kvcache_bytes") == 2 * [n // 2 * key + n * key + fixed for n in frontiers], rows)
    # One n-gram table of two heads and sizes 2 to 4: six rows a token.
    check(numbers(rows, "engram_rows") == 2 * [6 * (n + 6) for n in (25, 30, 30, 15)], rows)
    # Experts stay in memory: the second walk, of the same tokens, waits for none.
    check(numbers(rows, "bytes_read")[0] > 0 and numbers(rows, "bytes_read")[4:] == 4 * [0], rows)
    check([row["miss_ms"] for row in rows[4:]] == 4 * ["0.000"], rows)
    total = 0
    for row in rows:
        prefill, gen = float(row["prefill_seconds"]), float(row["gen_seconds"])
        total += prefill + gen
        check(row["hit_rate"] == "" and int(row["peak_rss_bytes"]) > 1e6, row)
        for tps, count, seconds in (("prefill_tps", row["prefill_tokens"], prefill),
                                    ("gen_tps", 6, gen),
                                    ("gen_steady_tps", 5, gen - float(row["gen_first_ms"]) / 1e3)):
            # Seconds are printed in millionths and milliseconds in thousandths.
            least, most = int(count) / (seconds + 3e-6), int(count) / max(seconds - 3e-6, 1e-9)
            check(least - 1e-3 <= float(row[tps]) <= most + 1e-3, f"{tps} {row}")
    check(0 < total <= wall, f"{total} s measured in {wall} s")


def test_teacher_forced(plumb):
    """Decode steps fed the prompt's own tokens are rows of one long evaluation."""
    ids = plumb.write_ids(IDS)
    out = plumb.run("bench", "-q", *TINY, "--tokens-file", ids, "--ctx-start", 40, "--ctx-max", 80,
                    "--step-incr", 40, "-n", 20, "--teacher-forced-decode", "--csv", "csv",
                    "--dump-frontier-logits-dir", "frontiers", "--decode-logits-dump", "dump",
                    "--decode-logits-hash")
    data, _ = plumb.logits(TINY, IDS[:100], 0)
    row = 512 * 4
    dump = (plumb.folder / "dump").read_bytes()
    check(dump == data[40 * row:60 * row] + data[80 * row:100 * row], "steps are other rows")
    check(sorted(os.listdir(plumb.folder / "frontiers")) ==
          ["frontier-00000040.f32", "frontier-00000080.f32"], "names of frontiers")
    for n in (40, 80):
        check((plumb.folder / f"frontiers/frontier-{n:08}.f32").read_bytes() ==
              data[(n - 1) * row:n * row], f"frontier {n} is another row")
    rows = read_rows((plumb.folder / "csv").read_text())
    check(numbers(rows, "ctx_tokens") == [40, 80] and numbers(rows, "gen_tokens") == [20, 20], rows)
    # The hash of one frontier's rows is what plumb logits prints of them.
    printed = plumb.run("bench", "-q", *TINY, "--tokens-file", ids, "--ctx-start", 80, "--ctx-max", 80,
                        "-n", 20, "--teacher-forced-decode", "--csv", "csv", "--decode-logits-hash")
    _, known = plumb.logits(TINY, IDS[:100], 80)
    check(printed == f"decode logits {known}\n", f"{printed} is not {known}")
    check(out.startswith("decode logits ") and out != printed, out)


def test_greedy(plumb):
    """The tokens follow from the rows, end-of-sentence skipped; the demo model ends its stories."""
    (plumb.folder / "prompt").write_text("The end.")
    ids = [BOS] + [int(i) for i in plumb.run("tokenize", "The end.").split()]
    n, steps, vocab = len(ids), 60, 4096
    rows = plumb.rows("--prompt-file", "prompt", "--ctx-start", n, "--ctx-max", n, "-n", steps,
                      "--dump-frontier-logits-dir", "frontiers", "--decode-logits-dump", "dump",
                      "--decode-logits-hash")
    check(numbers(rows, "gen_tokens") == [steps], rows)
    frontier = (plumb.folder / f"frontiers/frontier-{n:08}.f32").read_bytes()
    dump = (plumb.folder / "dump").read_bytes()
    before = floats(frontier + dump, vocab)
    check(len(before) == steps + 1, f"{len(before)} rows")
    tokens = [likeliest(row, EOS) for row in before[:steps]]
    ends = sum(likeliest(row, None) == EOS for row in before[:steps])
    check(ends >= 2, f"the model wants to end {ends} times: the prompt does not test this any more")
    data, known = plumb.logits((), ids + tokens, n)
    check(data == dump, "the rows are not those of the likeliest tokens")
    check(plumb.said == "" and known in plumb.run("bench", "-q", "--prompt-file", "prompt", "--ctx-start",
          n, "--ctx-max", n, "-n", steps, "--csv", "csv", "--decode-logits-hash"), "another hash")


def test_taken_back(plumb):
    """What is generated leaves no trace, and the way back costs no evaluation; in a trace of routes the
    first layer has a line for each evaluated token."""
    ids = plumb.write_ids(IDS)
    one = ("bench", "-q", *TINY, "--tokens-file", ids, "--ctx-start", 20, "--ctx-max", 80, "--step-incr",
           20, "--csv", "csv", "--decode-logits-hash", "--trace-routes", "routes")
    for more, evaluated in (((), 80 + 4 * 9), (("--repeat", 2), 2 * (80 + 4 * 9)),
                            (("--snapshot-max-bytes", 5519), 80 + 4 * 9 + 20 + 40 + 60)):
        hashes = plumb.run(*one, "-n", 9, *more)
        lines = (plumb.folder / "routes").read_text().splitlines()[1:]
        count = sum(line.split()[1] == "0" for line in lines)
        check(count == evaluated, f"{more}: {count} tokens evaluated, not {evaluated}")
        check(hashes == plumb.run(*one, "-n", 9), f"{more}: {hashes}")


def field_line(model, prompt):
    """The command line of the field's benchmark, but for the program's name."""
    return ["bench", "--cpu", "--ssd-streaming", "--ssd-streaming-cache-experts", "64GB", "-m", model,
            "--prompt-file", prompt, "--ctx-alloc", "262144", "--prefill-chunk", "8192", "--ctx-start",
            "2048", "--ctx-max", "4096", "--step-incr", "2048", "--gen-tokens", "128", "--csv",
            "OUT.csv", "--dump-frontier-logits-dir", "DIR", "--show-output"]


def write_small_tokenizer(tiny):
    """The demo model's, cut to the 512 ids of tiny: added tokens stand behind the others.  The Engram
    hashes of this one fold letters to 418 ids."""
    tokenizer = json.loads((DEMO / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = {text: i for text, i in tokenizer["model"]["vocab"].items() if i < 498}
    pairs = [m if isinstance(m, list) else m.split(" ") for m in tokenizer["model"]["merges"]]
    tokenizer["model"]["vocab"] = vocab
    tokenizer["model"]["merges"] = [p for p in pairs if p[0] in vocab and p[1] in vocab
                                    and p[0] + p[1] in vocab]
    free = [i for i in range(498, 512) if i != TINY_IMAGE]
    for token in tokenizer["added_tokens"][3:]:
        token["id"] = TINY_IMAGE if "image" in token["content"] else free.pop(0)
    (tiny / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    config = (tiny / "config.json").read_text(encoding="utf-8")
    config = re.sub('("engram_compressed_vocab_size"): *335', r"\1: 418", config)
    (tiny / "config.json").write_text(config, encoding="utf-8")


def test_field_command_line(plumb):
    write_small_tokenizer(plumb.folder / "tiny")
    (plumb.folder / "prompt").write_text("".join(f"Tom had {i} red balls and a dog. " for i in range(800)))
    for model in ("tiny", DEMO):
        plumb.run(*field_line(model, "prompt"))
        rows = read_rows((plumb.folder / "OUT.csv").read_text())
        check(numbers(rows, "ctx_tokens") == [2048, 4096], rows)
        check(numbers(rows, "prefill_tokens") == [2048, 2048], rows)
        check(numbers(rows, "gen_tokens") == [128, 0], rows)
        check(all(0 <= float(row["hit_rate"]) <= 1 for row in rows), rows)
        check(sorted(os.listdir(plumb.folder / "DIR")) ==
              ["frontier-00002048.f32", "frontier-00004096.f32"], "frontiers")
        for line in ("warning: a context of 262144 is cut to the model's 4096 positions\n",
                     "warning: from frontier 4096 on, the context of 4096 holds fewer than 128 generated "
                     "tokens\n", "\nafter 2048 tokens: "):
            check(line in plumb.said, f"{line} is not in {plumb.said}")
        check("after 4096 tokens" not in plumb.said, plumb.said)


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    for test in tests:
        try:
            with tempfile.TemporaryDirectory() as folder:
                test(Plumb(os.path.abspath(sys.argv[1]), folder))
            print("ok  ", test.__name__)
        except AssertionError as fault:
            failed += 1
            print("FAIL", test.__name__, fault)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
