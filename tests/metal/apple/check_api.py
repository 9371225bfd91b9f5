#!/usr/bin/env python3
"""Checks the Metal host on machines without Metal.

    check_api.py [--clang CLANG --flags "FLAGS"] [FILE.m...]  the headers here, then every file with them
    check_api.py --table                                      prints the calls as docs/metal-api.md

Every declaration of the headers must name the page of Apple's documentation that states it, and exist on
the oldest macOS that we run on.  Files must compile without a warning, of which a selector that no header
declares is one; a table of wrong statements shows that they would be noticed."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
OLDEST_MACOS = (15, 0)
PAGE = re.compile(r"https://developer\.apple\.com/documentation/metal/(\S+)")
MACOS = re.compile(r"API_AVAILABLE\(macos\((\d+)\.(\d+)\)")
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wundeclared-selector", "-Werror=objc-method-access",
            "-Werror=objc-protocol-method-implementation", "-Wnullable-to-nonnull-conversion"]


class Declaration(NamedTuple):
    header: str
    line: int
    owner: str    # the protocol or class, "" outside of one
    name: str     # a selector, property, type or function
    kind: str
    macos: tuple  # first version that has it; the owner's when it says nothing itself
    page: str     # "" when there is none


# What a declaration looks like once its comment is gone; the last group or groups give its name.
SHAPES = [
    ("protocol", re.compile(r"@protocol (\w+) <.*")),
    ("class", re.compile(r"@interface (\w+) : .*")),
    ("property", re.compile(r"@property \(.*?\) .*?(\w+)(?: API_AVAILABLE.*)?;")),
    ("method", re.compile(r"[-+] \(.*?\)\s*(.*);")),
    ("enum", re.compile(r"typedef NS_(?:ENUM|OPTIONS)\(\w+, (\w+)\).*")),
    ("constant", re.compile(r"MTL_EXTERN \w+ const (\w+);")),
    ("function", re.compile(r"(?:MTL_EXTERN|MTL_INLINE) .*?(\w+)\(.*\).*")),
    ("type", re.compile(r"typedef .*?(\w+);")),
]
FORWARD = re.compile(r"@(protocol|class) \w+(, \w+)*;$")


def selector(text):
    """The selector of a method's declaration: `a:(T)b c:(U)d` is `a:c:`."""
    text = re.sub(r"(API_AVAILABLE|NS_RETURNS_INNER_POINTER).*", "", text, flags=re.S)
    parts = re.findall(r"(\w+):\s*\(", text)
    return "".join(part + ":" for part in parts) if parts else text.strip()


def statements(text):
    """(line, comment, code) of each declaration: the comment is the one that ends right before it."""
    comment, code, start, depth = "", "", 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not code and (stripped.startswith("/*") or comment and not comment.endswith("*/")):
            comment = stripped if stripped.startswith("/*") else comment + " " + stripped
            continue
        if not code and (not stripped or stripped.startswith("#") or stripped.startswith("NS_ASSUME")):
            comment = ""
            continue
        start = start if code else number
        code += ("\n" if code else "") + stripped
        depth += stripped.count("{") - stripped.count("}")
        whole = stripped.startswith(("@protocol", "@interface", "@end")) or stripped.endswith((";", "}"))
        if depth == 0 and whole:
            yield start, comment, code
            comment, code = "", ""


def declarations(path):
    owner, owner_macos, found = "", (0, 0), []
    for line, comment, code in statements(path.read_text(encoding="utf-8")):
        if code == "@end":
            owner, owner_macos = "", (0, 0)
            continue
        if FORWARD.match(code):
            continue
        said = MACOS.search(re.sub(r"\{.*\}", "", code, flags=re.S))
        macos = (int(said[1]), int(said[2])) if said else owner_macos
        text = re.sub(r"^(MTL_EXPORT )?API_AVAILABLE\(.*?\)\)\n", "", code)
        kind, match = next(((k, m) for k, s in SHAPES if (m := re.match(s, text.replace("\n", " ")))),
                           ("unknown", None))
        name = text if not match else selector(match[1]) if kind == "method" else match[1]
        if kind == "type" and text.startswith("typedef struct"):
            name = text.split()[-1].rstrip(";")
        page = PAGE.search(comment)
        found.append(Declaration(path.name, line, owner, name, kind, macos, page[1] if page else ""))
        if kind in ("protocol", "class"):
            owner, owner_macos = name, macos
    return found


def all_declarations():
    return [d for path in sorted((HERE / "Metal").glob("*.h")) if path.name != "MTLDefines.h"
            for d in declarations(path)]


def header_faults(found):
    for d in found:
        where = f"{d.header}:{d.line}: {d.name}"
        if d.kind == "unknown":
            yield f"{where}: not understood"
        elif not d.page:
            yield f"{where}: no page of Apple's documentation"
        elif d.owner and d.page.split("/")[0] != d.owner.lower():
            yield f"{where}: the page is of {d.page.split('/')[0]}, not of {d.owner}"
        if d.macos > OLDEST_MACOS:
            yield f"{where}: needs macOS {d.macos[0]}.{d.macos[1]}"


PROLOGUE = """#import <Metal/Metal.h>
void use(id<MTLDevice> device, id<MTLBuffer> buffer, id<MTLComputeCommandEncoder> encoder);
void use(id<MTLDevice> device, id<MTLBuffer> buffer, id<MTLComputeCommandEncoder> encoder) {
    NSError *error = nil;
    (void)device, (void)buffer, (void)encoder, (void)error;
"""
# Statements, and what the compiler must say about each ("": nothing).
PROBES = [
    ("[encoder setBuffer:buffer offset:0 atIndex:1];", ""),
    ("[encoder setBuffer:nil offset:0 atIndex:1];", ""),
    ("[encoder setBufer:buffer offset:0 atIndex:1];", "objc-method-access"),
    ("(void)[device newSharedEvents];", "objc-method-access"),
    ("(void)@selector(newSharedEvent);", ""),
    ("(void)@selector(newSharedEvents);", "undeclared-selector"),
    ("[encoder setComputePipelineState:buffer];", "incompatible type"),
    ("[encoder setComputePipelineState:nil];", "nonnull"),
    ("{ id<MTLSharedEvent> event = buffer; (void)event; }", "incompatible type"),
    ("{ void *memory = [buffer contents]; (void)memory; }", ""),
    ("{ int *length = buffer.length; (void)length; }", "int-conversion"),
    ("[[device newCommandQueue] addResidencySet:buffer];", "incompatible type"),
    ("(void)[device newLibraryWithSource:@\"\" options:nil error:&error];", ""),
    ("(void)[device newLibraryWithSource:@\"\" options:nil error:error];", "incompatible-pointer-types"),
    ("[buffer commit];", "objc-method-access"),
    ("(void)MTLResourceStorageModeSharde;", "undeclared"),
]


def compiler_says(clang, flags, name, source=None):
    """About a file, or about `source`; "" when it is content."""
    command = [clang, *flags, *WARNINGS, "-fsyntax-only", "-ferror-limit=0", f"-I{HERE}",
               f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}", "-x", "objective-c", "-" if source else name]
    return subprocess.run(command, input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False).stdout


def probe_faults(clang, flags):
    source = PROLOGUE + "".join(body + "\n" for body, _ in PROBES) + "}\n"
    said = re.findall(r"^<stdin>:(\d+):\d+: error: (.*)", compiler_says(clang, flags, "", source), re.M)
    for number, (body, wanted) in enumerate(PROBES, PROLOGUE.count("\n") + 1):
        errors = "; ".join(text for line, text in said if int(line) == number)
        if bool(errors) != bool(wanted) or wanted not in errors:
            yield f"probe `{body}`: expected {wanted or 'nothing'}, found {errors or 'nothing'}"


def version(macos):
    return f"{macos[0]}.{macos[1]}" if macos > (0, 0) else ""


def table(found):
    lines = ["# Metal, as the host calls it", "",
             "Generated by `tests/metal/apple/check_api.py --table` from the headers there. Pages are below",
             "<https://developer.apple.com/documentation/metal/>; they carry Swift's names and show Objective-C",
             "with `?language=objc`. Nothing needs a macOS later than "
             f"{version(OLDEST_MACOS)}.", "", "| call or type | macOS | page |", "| --- | --- | --- |"]
    for d in found:
        name = f"{d.owner} {d.name}" if d.owner else d.name
        lines.append(f"| `{name}` | {version(d.macos)} | {d.page} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--clang")
    parser.add_argument("--flags", default="")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    found = all_declarations()
    if options.table:
        print(table(found), end="")
        return 0
    faults = list(header_faults(found))
    if (ROOT / "docs/metal-api.md").read_text(encoding="utf-8") != table(found):
        faults.append("docs/metal-api.md: not what --table prints")
    if options.clang:
        flags = options.flags.split()
        faults += probe_faults(options.clang, flags)
        for name in options.files:
            faults += [said] if (said := compiler_says(options.clang, flags, name)) else []
    print("\n".join(faults))
    print(f"{len(found)} declarations, {len(PROBES)} probes, {len(options.files)} files, {len(faults)} faults")
    if faults or not found:
        return 1
    if not options.clang:
        print("skipped: compiling, which takes clang and GNUstep's Foundation")
        return 1 if os.environ.get("PLUMB_CI") == "1" else 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
