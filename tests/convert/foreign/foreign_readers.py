#!/usr/bin/env python3
"""Converted files are ordinary GGUF: readers that others wrote see in them what plumb sees.

  * Hugging Face's reader (@huggingface/gguf): all metadata and the list of tensors, against show_gguf;
  * ggml itself (libggml-base, from @node-llama-cpp/linux-x64): opens each file, and its own decoders
    give the released numbers bit for bit, against the released folder (ggml_reader).

First both, and plumb, read a file that gguf_sample.py wrote from the format's description alone.

The packages are installed from package-lock.json, which pins their contents by SHA-512, into the build
folder.  Without Node.js or a network the test is skipped (exit status 77), and where ggml's library
does not run its cases are; with PLUMB_CI=1 in the environment nothing may be skipped for want of
Node.js or a network."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

import gguf_sample
from gguf_sample import GGML_BF16 as BF16, GGML_F32 as F32, GGML_I8 as I8

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

from npm_packages import install  # noqa: E402

FLAVOURS = ["f32", "bf16", "fp8"]


def call(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          encoding="utf-8", check=False, **options)


def first_difference(seen, expected):
    for part in ("metadata", "tensors"):
        a, b = seen[part], expected[part]
        for i in range(max(len(a), len(b))):
            left, right = (x[i] if i < len(x) else None for x in (a, b))
            if left != right:
                return f"{part} {i}: {str(left)[:300]}, expected {str(right)[:300]}"
    return ""


class Readers:
    """The three readers, and a count of what passed."""

    def __init__(self, arguments, modules):
        self.modules = modules
        self.show_gguf, self.ggml_reader = arguments.show_gguf, arguments.ggml_reader
        self.has_ggml = (platform.system(), platform.machine()) == ("Linux", "x86_64")
        self.library = os.path.join(modules, "@node-llama-cpp", "linux-x64", "bins", "linux-x64",
                                    "libggml-base.so")
        self.passed = self.failed = 0

    def check(self, name, fault, detail=""):
        self.passed += not fault
        self.failed += bool(fault)
        print(f"{'FAIL' if fault else 'ok  '} {name}{': ' if fault or detail else ''}{fault or detail}",
              flush=True)

    def listing(self, name, command, expected):
        """Does the command print the JSON that is expected?"""
        result = call(*command)
        if result.returncode != 0:
            self.check(name, result.stderr.strip()[-1000:] or f"status {result.returncode}")
            return None
        seen = json.loads(result.stdout)
        if expected is not None:
            counts = f"{len(seen['metadata'])} keys, {len(seen['tensors'])} tensors"
            self.check(name, first_difference(seen, expected), counts)
        return seen

    def plumb(self, name, path, expected=None):
        return self.listing(f"{name}, plumb", [self.show_gguf, path], expected)

    def hugging_face(self, name, path, expected):
        script = os.path.join(HERE, "read_gguf.mjs")
        self.listing(f"{name}, @huggingface/gguf", ["node", script, self.modules, path], expected)

    def ggml(self, name, path, *known, differs=""):
        """`differs`: where ggml must find other numbers than the known ones."""
        if not self.has_ggml:
            print(f"skipped: {name}, ggml: its library is for x86-64 Linux")
            return
        result = call(self.ggml_reader, self.library, path, *known)
        fault = ""
        if differs and not (result.returncode == 1 and result.stderr.startswith(differs)):
            fault = f"not noticed: {result.stderr.strip()}"
        elif not differs and result.returncode != 0:
            fault = result.stderr.strip()[-1000:] or f"status {result.returncode}"
        self.check(f"{name}, ggml", fault, (result.stderr if differs else result.stdout).strip())


def read_sample(readers, folder):
    path, values = os.path.join(folder, "sample.gguf"), os.path.join(folder, "sample.values")
    truth = gguf_sample.write(path, values)
    readers.plumb("sample", path, truth)
    readers.hugging_face("sample", path, truth)
    readers.ggml("sample", path, "--values", values)
    gguf_sample.write(path, values, swap_halves=True)
    readers.ggml("sample with exchanged nibbles", path, "--values", values,
                 differs="sample.fp4_exps.weight: row 0, column 0:")


def read_header(readers, path):
    """A file without tensors."""
    name = os.path.basename(path)
    expected = readers.plumb(name, path)
    if expected is not None:
        readers.hugging_face(name, path, expected)
    readers.ggml(name, path, "--values", os.devnull)


def check_types(readers, name, flavour, seen):
    """The types of FP8 matrices, told by their scales beside them, are those asked for."""
    types = {t["name"]: t["type"] for t in seen["tensors"]}
    found = {types.get(scale[len("plumb."):-len("scale")] + "weight") for scale in types
             if scale.startswith("plumb.") and scale.endswith(".scale")}
    wanted = {"f32": [{F32}], "fp8": [{I8}]}.get(flavour, [{BF16}, {BF16, F32}])
    readers.check(f"{name}, types of dense matrices", "" if found in wanted else f"found {found}")


def read_converted(readers, model, flavour, path, *command):
    """The file that the command is to write."""
    name = f"{os.path.basename(model)} {flavour}"
    made = call(*command)
    if made.returncode != 0:
        readers.check(f"{name}, {command[1]}", made.stderr.strip()[-1000:] or "failed")
        return
    expected = readers.plumb(name, path)
    if expected is not None:
        check_types(readers, name, flavour, expected)
        readers.hugging_face(name, path, expected)
    readers.ggml(name, path, "--released", model)


def read_model(readers, plumb, model, folder):
    for flavour in FLAVOURS:
        path = os.path.join(folder, flavour + ".gguf")
        read_converted(readers, model, flavour, path,
                       plumb, "convert", model, path, "--dense", flavour, "--force")
    path = os.path.join(folder, "packed.gguf")
    read_converted(readers, model, "packed", path,
                   plumb, "pack", os.path.join(folder, "f32.gguf"), path, "--force")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--packages", required=True, help="folder to install them in")
    for program in ("plumb", "show-gguf", "ggml-reader"):
        parser.add_argument(f"--{program}", required=True)
    parser.add_argument("--header", help="a file without tensors, to be read too")
    parser.add_argument("models", nargs="*", help="released folders")
    arguments = parser.parse_args()
    readers = Readers(arguments, install(HERE, os.path.abspath(arguments.packages)))
    with tempfile.TemporaryDirectory(dir=arguments.packages) as folder:
        read_sample(readers, folder)
        if arguments.header:
            read_header(readers, arguments.header)
        for model in arguments.models:
            read_model(readers, arguments.plumb, model, folder)
    print(f"{readers.passed} passed, {readers.failed} failed")
    return 1 if readers.failed else 0


if __name__ == "__main__":
    sys.exit(main())
