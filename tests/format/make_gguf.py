#!/usr/bin/env python3
"""The GGUF files of tests/data/gguf, written from the published layout with nothing but `struct`.

    make_gguf.py FOLDER          writes them
    make_gguf.py --check FOLDER  says whether they are what this program writes

`written.gguf` has what plumb's writer can write: test_gguf writes it again and compares.
`types.gguf` has a value of every type, alone and in an array."""
import struct
import sys
from pathlib import Path

TYPES = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"]
CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f", "bool": "?",
         "u64": "Q", "i64": "q", "f64": "d"}
# Tensor type -> number in the file, elements and bytes of a block.
TENSOR_TYPES = {"F32": (0, 1, 4), "I8": (24, 1, 1), "BF16": (30, 1, 2), "MXFP4": (39, 32, 17)}


def string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return string(value) if kind == "string" else struct.pack("<" + CODES[kind], value)


def key(name, kind, value):
    return string(name) + struct.pack("<I", TYPES.index(kind)) + scalar(kind, value)


def array(name, kind, values):
    head = struct.pack("<IIQ", TYPES.index("array"), TYPES.index(kind), len(values))
    return string(name) + head + b"".join(scalar(kind, value) for value in values)


def gguf(alignment, keys, tensors):
    """The whole file; payload bytes count 1, 2, 3... from each tensor's start, padding is zero."""
    table, payloads = b"", b""
    for name, kind, shape in tensors:
        number, block, block_bytes = TENSOR_TYPES[kind]
        size = block_bytes
        for extent in [shape[0] // block] + shape[1:]:
            size *= extent
        table += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        table += struct.pack("<IQ", number, len(payloads))
        payloads += bytes((i + 1) % 256 for i in range(size))
        payloads += bytes(-len(payloads) % alignment)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + table
    return header + bytes(-len(header) % alignment) + payloads


def written():
    keys = [
        key("general.alignment", "u32", 64),
        key("general.architecture", "string", "test"),
        key("u32", "u32", 2 ** 32 - 1),
        key("u64", "u64", 2 ** 63 + 5),
        key("f32", "f32", -0.15625),
        key("yes", "bool", True),
        key("no", "bool", False),
        key("empty", "string", ""),
        key("text", "string", "Gr\u00fc\u00dfe \u4f60\u597d \U0001f600\0behind a NUL"),
        array("bytes", "u8", [0, 1, 128, 255]),
        array("i8", "i8", [-128, -1, 127]),
        array("u16", "u16", [0, 65535]),
        array("i16", "i16", [-32768, 32767]),
        array("numbers", "i32", [-2 ** 31, 0, 2 ** 31 - 1]),
        array("u32s", "u32", [7]),
        array("floats", "f32", [0.5, -2.0]),
        array("truths", "bool", [True, False, True]),
        array("none", "f64", []),
        array("u64s", "u64", [2 ** 64 - 1]),
        array("i64s", "i64", [-2 ** 63]),
        array("f64s", "f64", [0.1]),
        array("tokens", "string", ["", "a", "\u00e9", "longer than eight bytes"]),
        array("no_tokens", "string", []),
    ]
    tensors = [
        ("blk.0.norm.weight", "F32", [5]),
        ("blk.0.gate.weight", "BF16", [3, 7]),
        ("blk.0.exps.weight", "MXFP4", [64, 3, 2]),
        ("codes", "I8", [1, 2, 3, 4]),
        ("n" * 63, "F32", [1, 1]),
    ]
    return gguf(64, keys, tensors)


def types():
    edges = {"u8": [0, 255], "i8": [-128, 127], "u16": [0, 65535], "i16": [-32768, 32767],
             "u32": [0, 2 ** 32 - 1], "i32": [-2 ** 31, 2 ** 31 - 1], "f32": [-1.5, 0.25], "bool": [False, True],
             "string": ["s", "\u00e9"], "u64": [0, 2 ** 64 - 1], "i64": [-2 ** 63, 2 ** 63 - 1], "f64": [-1.5, 0.1]}
    keys = []
    for kind, values in edges.items():
        keys += [key(f"{kind}.least", kind, values[0]), key(f"{kind}.most", kind, values[1]),
                 array(f"{kind}.both", kind, values)]
    return gguf(32, keys, [("only", "F32", [2])])


def main():
    files = {"written.gguf": written(), "types.gguf": types()}
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        wrong = [name for name, data in files.items() if (Path(sys.argv[2]) / name).read_bytes() != data]
        print("\n".join(f"{name} is not what this program writes" for name in wrong), file=sys.stderr)
        return 1 if wrong else 0
    for name, data in files.items():
        (Path(sys.argv[1]) / name).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
