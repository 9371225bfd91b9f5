#!/usr/bin/env python3
"""Refuses what C++ compilers let through but Metal Shading Language 3.1 does not, and what our own kernels may
not do, each by file, line, rule and the section that states it.

    check_msl.py [-I FOLDER]... FILE.metal...    checks files; -I: where files that they include may be
    check_msl.py --rules                         lists the rules

Kernels are compiled by Metal when the program starts, on machines that we do not have; on others they are
compiled as C++, which knows no address spaces, has double and recursion, and calls what it likes."""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from msl.checker import Checker  # noqa: E402
from msl.preprocess import Preprocessor  # noqa: E402
from msl.rules import RULES, Refused  # noqa: E402


def faults_of(text, file, folders=()):
    """The faults of a text, in order."""
    preprocessor = Preprocessor(folders)
    try:
        checker = Checker(preprocessor.run(text, file))
    except Refused as refused:
        return preprocessor.faults + [refused.fault]
    return sorted(preprocessor.faults + checker.run(), key=lambda f: (f.file, f.line, f.rule))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("-I", dest="folders", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.rules:
        for name, rule in RULES.items():
            print(f"{name} ({rule.section}): {rule.text}")
        return 0
    faults = [f for name in options.files
              for f in faults_of(Path(name).read_text(encoding="utf-8"), name, options.folders)]
    print("\n".join(str(f) for f in faults))
    print(f"{len(options.files)} files, {len(RULES)} rules, {len(faults)} faults")
    return 1 if faults or not options.files else 0


if __name__ == "__main__":
    sys.exit(main())
