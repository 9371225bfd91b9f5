#!/usr/bin/env python3
"""Pictures of benchmarks, looked at with Python's XML parser: bench_pictures.py PLUMB.
Everything lies inside, no two texts touch, curves end where the numbers say."""
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 0.62  # widths over the size, of the widest usual monospaced font
FIELD = ("ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,"
         "gen_steady_tps,kvcache_bytes")
OURS = FIELD + ",hit_rate,bytes_read,miss_ms,engram_rows,peak_rss_bytes,prefill_seconds,gen_seconds,repeat"
RANDOM = random.Random(3)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def draw(plumb, folder, files):
    """files: pairs of a name and the text.  Returns the picture and what was printed."""
    for name, text in files:
        Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_bytes(text.encode())
    words = [plumb.encode(), b"bench", b"--plot", b"out.svg", *[name for name, _ in files]]
    done = subprocess.run(words, cwd=folder, capture_output=True, timeout=300)
    check(done.returncode == 0 and done.stderr == b"", done.stderr)
    return Path(folder, "out.svg").read_bytes(), done.stdout


def walk(contexts, speed, repeats=1, hit_rate="0.75", peak=50e9):
    rows = [OURS]
    for repeat in range(1, repeats + 1):
        for c in contexts:
            noise = RANDOM.gauss(1, 0.02)
            rows.append(f"{c},{c},{10 * speed * noise:.3f},128,{speed / 2:.3f},9.5,127,{speed * noise:.3f},"
                        f"{890 * c + 2700000},{hit_rate},0,0,0,{peak:.0f},1,1,{repeat}")
    return "\n".join(rows) + "\n"


def number(element, key):
    return float(element.get(key))


def columns(text):
    return sum(2 if ord(c) >= 0x1100 else 1 for c in text)


def text_box(element):
    width = columns(element.text) * LETTER * 12
    anchor = element.get("text-anchor", "start")
    left = number(element, "x") - {"start": 0, "middle": width / 2, "end": width}[anchor]
    base = number(element, "y")
    return left, base - 9, left + width, base + 3


def apart(a, b):
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def curves_of(root):
    return [[tuple(map(float, p.split(","))) for p in line.get("points").split()]
            for line in root.iter(f"{SVG}polyline")]


def look(picture, what):
    """Checks what must hold for every picture."""
    root = ElementTree.fromstring(picture)
    left, top, right, bottom = map(float, root.get("viewBox").split())
    check((left, top) == (0, 0), root.get("viewBox"))
    boxes = [(t.text, text_box(t)) for t in root.iter(f"{SVG}text")]
    for text, box in boxes:
        check(0 <= box[0] and 0 <= box[1] and box[2] <= right and box[3] <= bottom, f"{what}: {text} is outside")
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        check(apart(box_a, box_b), f"{what}: '{a}' and '{b}' touch")
    places = [p for curve in curves_of(root) for p in curve]
    places += [(number(u, "x"), number(u, "y")) for u in root.iter(f"{SVG}use")]
    for line in root.iter(f"{SVG}line"):
        places += [(number(line, f"x{i}"), number(line, f"y{i}")) for i in (1, 2)]
    check(all(0 <= x <= right and 0 <= y <= bottom for x, y in places), f"{what}: a curve is outside")
    used = {u.get("href") for u in root.iter(f"{SVG}use")}
    check(used <= {f"#{p.get('id')}" for p in root.iter(f"{SVG}path")}, used)
    return root


def test_ordinary(plumb, folder):
    contexts = [2048 << i for i in range(7)]
    picture, printed = draw(plumb, folder, [(b"before.csv", walk(contexts, 20, 3)), (b"after.csv", walk(contexts, 22, 3))])
    root = look(picture, "two files")
    texts = [t.text for t in root.iter(f"{SVG}text")]
    for wanted in ("before.csv", "after.csv", "prefill, tokens/s", "decode, tokens/s", "experts found in memory",
                   "2K", "128K", "100 MB", "100 %", "context, tokens (K = 1024)"):
        check(wanted in texts, f"no {wanted}")
    # Of each file prefill, decode, two of memory, hit rate; a mark for each repeat, and one in the legend.
    check(len(curves_of(root)) == 10 and all(len(c) == 7 for c in curves_of(root)), "curves")
    check(len(list(root.iter(f"{SVG}use"))) == 2 * (5 * 7 * 3 + 1), "marks")
    check(all(len(line) <= 80 for line in printed.decode().splitlines()), "a wide line")
    check(printed.decode().isascii(), "text is ASCII")


def test_medians(plumb, folder):
    """Five repeats around one curve, whose ends are known: 0 is at the bottom, 400 at the top."""
    rows = [FIELD]
    for prefill in (100, 300, 200, 390, 210):
        rows.append(f"1024,1024,{prefill},0,0,0,0,0,0")
    for prefill in (400, 50, 60, 100):
        rows.append(f"16384,1024,{prefill},0,0,0,0,0,0")
    root = look(draw(plumb, folder, [(b"x.csv", "\n".join(rows))])[0], "repeats")
    frame = [l for l in root.iter(f"{SVG}line") if l.get("stroke") is None]
    left, right = min(number(l, "x1") for l in frame), max(number(l, "x2") for l in frame if number(l, "x2") < 480)
    ticks = {t.text: number(t, "y") - 4 for t in root.iter(f"{SVG}text") if t.get("text-anchor") == "end"
             and number(t, "x") < 480}
    first, last = curves_of(root)[0]
    bottom, height = ticks["0"], ticks["0"] - ticks["400"]
    for place, x, median in ((first, left, statistics.median((100, 300, 200, 390, 210))),
                             (last, right, statistics.median((400, 50, 60, 100)))):
        wanted = bottom - height * median / 400
        check(abs(place[1] - wanted) < 0.11 and abs(place[0] - x) < 0.11, f"{place}, expected {x}, {wanted}")


def test_field_columns(plumb, folder):
    """The nine columns of others, in any order, with columns that nobody knows."""
    text = "mystery," + FIELD + "\n" + "".join(
        f"what?,{c},2048,{900 - c / 100},128,9,110,127,10.5,{c * 1000}\n" for c in (2048, 4096))
    names = FIELD.split(",")
    turned = ",".join(reversed(names)) + "\r\n" + "1,2,3,4,5,6,7,8,512\r\n\r\n"
    root = look(draw(plumb, folder, [(b"a.csv", text), (b"b.csv", "\ufeff" + turned)])[0], "the field's columns")
    check("not in these files" in [t.text for t in root.iter(f"{SVG}text")], "hit rate")
    check(len(curves_of(root)) == 6, "curves")


def test_names(plumb, folder):
    """Names that mean something to XML, to terminals, to nobody; long ones keep their end."""
    names = [b"a&b<c>d\"e'.csv", b"\xff\xfe bytes \xc3.csv", b"]]>&amp;<!--.csv", b"controls \x1b[31m\x07\n.csv",
             "wide 漢字かな, \ufffe\uffff\u202e.csv".encode(), ("long " * 45).encode() + b"end.csv"]
    text = walk((64, 128), 3)
    picture, printed = draw(plumb, folder, [(name, text) for name in names])
    root = look(picture, "names")
    texts = [t.text for t in root.iter(f"{SVG}text")]
    check(texts[0] == "a&b<c>d\"e'.csv", texts[0])
    check(texts[1] == "\ufffd\ufffd bytes \ufffd.csv", repr(texts[1]))
    check(texts[3] == "controls \ufffd[31m\ufffd\ufffd.csv", repr(texts[3]))
    check(texts[4].startswith("wide 漢字かな, \ufffd\ufffd"), repr(texts[4]))
    check(texts[5].startswith("...") and texts[5].endswith("long end.csv"), texts[5])
    check(b"\x1b" not in printed, "the terminal acts on it")


def test_hostile_numbers(plumb, folder):
    values = ["0", "1e-9", "0.0001", "1", "3", "1000000", "123456789", "1e18"]
    for low, high in itertools.combinations(values, 2):
        rows = [f"{c},1,{s},1,{t},1,1,{s},{t},,,,,{s},,," for c in (low, high) for s in (low, high) for t in (low, high)]
        look(draw(plumb, folder, [(b"x.csv", OURS + "\n" + "\n".join(rows))])[0], f"{low} to {high}")
    for only in values:
        look(draw(plumb, folder, [(b"x.csv", f"{OURS}\n{only},1,{only},1,1,1,1,1,{only},0.5,,,,,,,1\n")])[0], only)
    for contexts in ((1000, 1001), (4096, 8191), (5, 40), (2048, 2050, 131072), (99999, 799992)):
        look(draw(plumb, folder, [(b"x.csv", walk(contexts, 123.4, 2))])[0], str(contexts))


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear))


def test_colours(plumb, folder):
    """Curves and letters are seen on white and on nearly black."""
    text = walk((64, 128), 3)
    root = look(draw(plumb, folder, [(b"%d.csv" % i, text) for i in range(6)])[0], "six files")
    marks = [p.get("fill") for p in root.iter(f"{SVG}path")]
    check(len(set(marks)) == 6 and len({p.get("d") for p in root.iter(f"{SVG}path")}) == 6, "each its own")
    for colour, least in [(c, 3) for c in marks] + [(root.get("fill"), 4)]:
        for page in ("#ffffff", "#0d1117"):
            light, dark = sorted((luminance(colour), luminance(page)), reverse=True)
            check((light + 0.05) / (dark + 0.05) >= least, f"{colour} on {page}")


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
