#!/usr/bin/env python3
"""Writes the C++ source that compiles a text of Metal kernels: the text itself, a launcher and a table of
parameters for each kernel, and the text as a string.

    make_kernels.py CLANGXX TEXT.metal OUTPUT.cpp

The preprocessor runs first, so that macros may make kernels; types are left to the C++ compiler.  An
attribute that is unknown or missing, an index used twice and storage that is declared `threadgroup` end
the run with a line on the standard error and status 1."""
import re
import subprocess
import sys
from pathlib import Path

SIGNATURES = Path(__file__).resolve().parent / "signatures"
KERNEL = re.compile(r"\bkernel\s+void\s+(\w+)\s*\(")
ATTRIBUTE = re.compile(r"\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\]")
BUILTINS = {
    "thread_position_in_grid", "thread_position_in_threadgroup", "thread_index_in_threadgroup",
    "threadgroup_position_in_grid", "threads_per_threadgroup", "threadgroups_per_grid",
    "threads_per_grid", "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup",
    "threads_per_simdgroup", "simdgroups_per_threadgroup",
}
# `threadgroup float sums[32];`: one is meant for all threads, C++ would make one for each.
STORAGE = re.compile(r"\bthreadgroup\s+(?:const\s+)?[\w:]+\s+(\w+)\s*(?:\[[^\[]|;|=)")
MAX_INDEX = 30


class Fault(Exception):
    pass


def preprocessed(compiler, path):
    """The text as Metal's compiler sees it, without its own standard library and comments."""
    command = [compiler, "-E", "-P", "-x", "c++", "-std=c++17", "-D__METAL_VERSION__=310",
               "-Wno-everything", "-isystem", str(SIGNATURES), str(path)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def split_parameters(text, start):
    """The parameters from behind an opening parenthesis on, split at commas of their own level."""
    depth, begin, parts = 1, start, []
    for at in range(start, len(text)):
        if text[at] in "([<{":
            depth += 1
        elif text[at] in ")]>}":
            depth -= 1
        if depth == 0 or depth == 1 and text[at] == ",":
            parts.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            return parts
    raise Fault("a parameter list without an end")


class Parameter:
    def __init__(self, kernel, number, text):
        self.number = number
        attributes = ATTRIBUTE.findall(text)
        if len(attributes) != 1:
            raise Fault(f"kernel {kernel}: {text!r} has {len(attributes)} attributes, expected 1")
        self.attribute, index = attributes[0]
        self.name = re.findall(r"\w+", text[:text.index("[[")])[-1]
        self.index = int(index) if index else None
        is_memory = self.attribute in ("buffer", "threadgroup")
        if not is_memory and self.attribute not in BUILTINS:
            raise Fault(f"kernel {kernel}: [[{self.attribute}]] is not known")
        if is_memory and (self.index is None or self.index > MAX_INDEX):
            raise Fault(f"kernel {kernel}: {self.name} has index {index}, expected 0 to {MAX_INDEX}")
        if self.attribute == "buffer" and not re.search(r"\b(device|constant)\b", text):
            raise Fault(f"kernel {kernel}: {self.name} is neither device nor constant")
        if self.attribute == "threadgroup" and not re.search(r"\bthreadgroup\b", text[:text.index("[[")]):
            raise Fault(f"kernel {kernel}: {self.name} is not threadgroup memory")
        self.space = "EMULATED_THREADGROUP" if self.attribute == "threadgroup" else (
            "EMULATED_CONSTANT" if re.search(r"\bconstant\b", text) else "EMULATED_DEVICE")

    def is_memory(self):
        return self.index is not None

    def type(self, kernel):
        return f"emulated::arguments_of<decltype({kernel})>::at<{self.number}>"

    def argument(self, kernel):
        if not self.is_memory():
            return f"emulated::builtin<{self.type(kernel)}>(emulated::{self.attribute}(l, p))"
        memory = "threadgroup_memory" if self.attribute == "threadgroup" else "buffer"
        return f"emulated::memory<{self.type(kernel)}>(l.{memory}[{self.index}])"

    def row(self, kernel):
        return f'emulated::parameter<{self.type(kernel)}>("{self.name}", {self.space}, {self.index})'


def kernels(text):
    """(name, parameters) of each kernel, in order."""
    found = {}
    for match in KERNEL.finditer(text):
        name = match[1]
        parameters = [Parameter(name, n, p) for n, p in enumerate(split_parameters(text, match.end()))]
        used = [(p.attribute, p.index) for p in parameters]
        for use in used:
            if used.count(use) > 1:
                raise Fault(f"kernel {name}: [[{use[0]}]] with index {use[1]} twice")
        if name in found:
            raise Fault(f"kernel {name}: defined twice")
        found[name] = parameters
    if not found:
        raise Fault("no kernel in the text")
    storage = STORAGE.search(text)
    if storage:
        raise Fault(f"{storage[1]}: threadgroup memory must be an argument of the kernel")
    return found


def launcher(name, parameters):
    arguments = ",\n        ".join(p.argument(name) for p in parameters)
    rows = ",\n    ".join(p.row(name) for p in parameters if p.is_memory())
    return f"""
static void run_{name}(const void *launch, const void *place) {{
    const emulated::launch &l = *static_cast<const emulated::launch *>(launch);
    [[maybe_unused]] const emulated::place &p = *static_cast<const emulated::place *>(place);
    l.frame = __builtin_frame_address(0);
    {name}(
        {arguments});
}}
static constexpr emulated_parameter parameters_{name}[] = {{
    {rows}}};
"""


def without_attributes(text):
    """C++ knows neither the attributes nor, inside them, that `threadgroup` is not the address space."""
    return ATTRIBUTE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def string_literal(text):
    """Line by line; in octal what C would read otherwise."""
    def escaped(line):
        return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
                       for b in line.encode())
    return "\n".join(f'    "{escaped(line)}"' for line in text.splitlines(keepends=True))


def source(path, found, text):
    table = ",\n    ".join(f'{{"{name}", parameters_{name}, {sum(p.is_memory() for p in parameters)}, IS_WATCHED, '
                          f"run_{name}}}" for name, parameters in found.items())
    return f"""// Written by make_kernels.py.
#include <metal_stdlib>
#pragma GCC poison double std
// Any function may meet other threads: calls at two places must stay two.
#pragma clang attribute push(__attribute__((convergent)), apply_to = function)
#pragma clang attribute push(__attribute__((nomerge)), apply_to = function)
#line 1 "{path}"
{without_attributes(text)}
#line 1 "launchers"
#pragma clang attribute pop
#pragma clang attribute pop
// What follows is no kernel: nobody watches what it reads.
#pragma clang attribute push(__attribute__((no_sanitize("thread"))), apply_to = function)
#undef kernel
#undef device
#undef threadgroup
#undef thread
#undef constant
{"".join(launcher(name, parameters) for name, parameters in found.items())}
static constexpr bool IS_WATCHED = __has_feature(thread_sanitizer);
static const emulated_kernel table[] = {{
    {table}}};

extern "C" int emulated_kernel_list(const emulated_kernel **kernels) {{
    *kernels = table;
    return {len(found)};
}}

extern "C" const emulated_kernel *emulated_kernel_find(const char *name) {{
    for (const emulated_kernel &k : table)
        if (!__builtin_strcmp(k.name, name)) return &k;
    return nullptr;
}}

extern "C" const char *emulated_source_text(void) {{
    return
{string_literal(text)};
}}
#pragma clang attribute pop
"""


def main():
    compiler, path, output = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    try:
        found = kernels(preprocessed(compiler, path))
    except (Fault, subprocess.CalledProcessError) as fault:
        print(f"{path}: {fault}", file=sys.stderr)
        return 1
    output.write_text(source(path, found, path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
