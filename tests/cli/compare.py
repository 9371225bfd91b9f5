#!/usr/bin/env python3
"""The numbers of plumb compare, worked out a second time: compare.py PLUMB.
Dumps are written with struct; medians, shares and divergences are Python's."""
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile

RANDOM = random.Random(20)


def as_float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def write(path, rows):
    with open(path, "wb") as file:
        for row in rows:
            file.write(struct.pack(f"<{len(row)}f", *row))


def random_rows(n, vocab):
    return [[as_float32(RANDOM.gauss(0, 3)) for _ in range(vocab)] for _ in range(n)]


def disturbed(rows, share, size):
    return [[as_float32(x + RANDOM.gauss(0, size)) if RANDOM.random() < share else x for x in row]
            for row in rows]


def best(row):
    return sorted(range(len(row)), key=lambda i: (-row[i], i))[:5]


def divergence(a, b):
    def log_probabilities(row):
        most = max(row)
        whole = most + math.log(math.fsum(math.exp(x - most) for x in row))
        return [x - whole for x in row]

    p, q = log_probabilities(a), log_probabilities(b)
    return math.fsum(math.exp(x) * (x - y) for x, y in zip(p, q))


def expected(a, b):
    differences = [[as_float32(abs(x - y)) for x, y in zip(r, s)] for r, s in zip(a, b)]
    kl = [divergence(r, s) for r, s in zip(a, b)]
    tops = [(best(r), best(s)) for r, s in zip(a, b)]
    everything = [d for row in differences for d in row]
    numbers = [struct.pack("<f", x) != struct.pack("<f", y) for r, s in zip(a, b) for x, y in zip(r, s)]
    return {
        "rows": len(differences),
        "identical_rows": sum(struct.pack(f"<{len(r)}f", *r) == struct.pack(f"<{len(s)}f", *s)
                              for r, s in zip(a, b)),
        "numbers": len(everything),
        "differing_numbers": sum(numbers),
        "largest_difference": max(abs(x - y) for r, s in zip(a, b) for x, y in zip(r, s)),
        "top1": statistics.fmean(r[0] == s[0] for r, s in tops),
        "top5": statistics.fmean(len(set(r) & set(s)) / len(r) for r, s in tops),
        "kl_mean": statistics.fmean(kl),
        "kl_max": max(kl),
    }, statistics.median_low(everything), statistics.median_low([max(row) for row in differences])


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def compare(plumb, *words):
    done = subprocess.run([plumb, "compare", "--json", *words], capture_output=True, timeout=300)
    check(done.stdout, done.stderr.decode())
    return json.loads(done.stdout), done.returncode


def check_report(found, wanted, name):
    total, median, row_median = wanted
    for key, value in total.items():
        near = math.isclose(found["total"][key], value, rel_tol=1e-9, abs_tol=1e-12)
        check(near, f"{name}: {key} {found['total'][key]!r}, expected {value!r}")
    check(found["median_difference"] == median, f"{name}: {found['median_difference']}, {median}")
    check(found["median_of_row_largest"] == row_median, f"{name}: {row_median}")


def test_random_dumps(plumb, folder):
    for n, vocab, share, size in ((1, 2, 1, 1), (4, 6, 0.5, 1e-3), (33, 40, 0.05, 1e-6), (50, 129, 1, 0.5),
                                  (7, 1000, 0.9, 1e-4), (300, 5, 0.3, 2), (3, 30000, 0.6, 1e-5)):
        a = random_rows(n, vocab)
        b = disturbed(a, share, size)
        write(f"{folder}/a", a)
        write(f"{folder}/b", b)
        found, status = compare(plumb, f"{folder}/a", f"{folder}/b", "--vocab", str(vocab))
        check_report(found, expected(a, b), f"{n} rows of {vocab}")
        check(status == 1 and not found["equal"] and found["vocabulary"] == vocab, f"{n}: {status}")
        row, token = next((i, t) for i in range(n) for t in range(vocab) if a[i][t] != b[i][t])
        first = found["first_difference"]
        check((first["row"], first["token"]) == (row, token), f"{first}, expected {row}, {token}")
        check(first["a"] == {"value": a[row][token],
                             "bits": "0x%08x" % struct.unpack("<I", struct.pack("<f", a[row][token]))}, first)
        largest = found["total"]["largest_difference"]
        for tolerance, wanted in ((largest, 0), (largest * 0.999, 1)):
            status = compare(plumb, f"{folder}/a", f"{folder}/b", "--vocab", str(vocab),
                             "--tolerance", repr(tolerance))[1]
            check(status == wanted, f"tolerance {tolerance}: {status}")


def test_folders(plumb, folder):
    """Several files are compared like one, in the order of their names."""
    rows_a, rows_b = [], []
    for side in "AB":
        os.mkdir(f"{folder}/{side}")
    for name in ("frontier-00004096.f32", "frontier-00000512.f32", "frontier-00002048.f32"):
        a = random_rows(RANDOM.randrange(1, 4), 24)
        b = a if "0512" in name else disturbed(a, 0.5, 0.1)
        write(f"{folder}/A/{name}", a)
        write(f"{folder}/B/{name}", b)
        rows_a += a
        rows_b += b
    found, status = compare(plumb, f"{folder}/A", f"{folder}/B", "--vocab", "24")
    check_report(found, expected(rows_a, rows_b), "folders")
    check([f["file"] for f in found["files"]] == sorted(os.listdir(f"{folder}/A")), found["files"])
    check(found["first_difference"]["file"] == "frontier-00002048.f32", found["first_difference"])
    check(status == 1 and found["without_partner"] == [], status)


def test_blocks(plumb, folder):
    """Files larger than what is read at once, alike but for the last number."""
    rows = [[float(i)] for i in range(700000)]
    write(f"{folder}/a", rows)
    rows[-1][0] += 1
    write(f"{folder}/b", rows)
    found, status = compare(plumb, f"{folder}/a", f"{folder}/b", "--vocab", "1")
    check(status == 1 and found["total"]["identical_rows"] == 699999, found["total"])
    check(found["first_difference"]["row"] == 699999 and found["median_difference"] == 0, found)
    check(compare(plumb, f"{folder}/a", f"{folder}/a", "--vocab", "1")[1] == 0, "a file and itself")


def main():
    plumb = os.path.abspath(sys.argv[1])
    tests = [(name, test) for name, test in sorted(globals().items()) if name.startswith("test_")]
    for name, test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(plumb, folder)
        print(f"ok   {name}")
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
