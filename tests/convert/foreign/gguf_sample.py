"""A GGUF file written from the published description of the format alone, and what it says: ground
truth for the readers of others and for plumb's own, before anything that plumb converted is shown to
them.

Its tensors hold every value of the four types that converted files use: each bfloat16, each pair of
an e2m1 code and a ue8m0 scale, each byte, and the float32 numbers at the edges."""

import math
import struct

ALIGNMENT = 16384
U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
GGML_F32, GGML_I8, GGML_BF16, GGML_MXFP4 = 0, 24, 30, 39
STRUCT = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q",
          I64: "q", F64: "d"}

METADATA = [
    ("general.alignment", U32, ALIGNMENT),
    ("general.architecture", STRING, "plumb-sample"),
    ("sample.u8", U8, 255), ("sample.i8", I8, -128),
    ("sample.u16", U16, 65535), ("sample.i16", I16, -32768),
    ("sample.u32", U32, 2**32 - 1), ("sample.i32", I32, -2**31),
    ("sample.u64", U64, 2**64 - 1), ("sample.i64", I64, -2**63),
    ("sample.f32", F32, -0.0), ("sample.f32.least", F32, 2.0**-149),
    ("sample.f64", F64, 0.1),
    ("sample.true", BOOL, True), ("sample.false", BOOL, False),
    ("sample.empty", STRING, ""),
    ("sample.text", STRING, "tab\t, quote \", \u00e9, \u4e2d, \U0001f600, two\nlines"),
    ("sample.u8s", (ARRAY, U8), [0, 1, 255]), ("sample.i32s", (ARRAY, I32), [-1, 0, 1]),
    ("sample.u64s", (ARRAY, U64), [2**53 + 1, 2**64 - 1]),
    ("sample.f32s", (ARRAY, F32), [0.5, -1e-40, math.inf]),
    ("sample.bools", (ARRAY, BOOL), [True, False, True]),
    ("sample.strings", (ARRAY, STRING), ["", "a", "\u2581the"]),
    ("sample.none", (ARRAY, I32), []),
]


def scaled(code, scale):
    """The float32 of an e2m1 code times 2^(scale - 127), as ggml defines MXFP4: its table of code
    values holds integers, so code 8 is +0; byte 255 is one more power of two, where the published
    number format has NaN."""
    magnitude = (0, 0.5, 1, 1.5, 2, 3, 4, 6)[code & 7]
    value = math.ldexp(-magnitude if code & 8 else magnitude, scale - 127) if magnitude else 0.0
    return struct.pack("<f", value if abs(value) < 2.0**128 else math.copysign(math.inf, value))


def mxfp4():
    """256 blocks, one per scale: each code once in each half, in two different orders."""
    data, values = bytearray(), bytearray()
    for scale in range(256):
        low = [(j + scale) % 16 for j in range(16)]
        high = [(7 * j + 3 * scale + 5) % 16 for j in range(16)]
        data += bytes([scale]) + bytes(a | b << 4 for a, b in zip(low, high))
        values += b"".join(scaled(code, scale) for code in low + high)
    return bytes(data), bytes(values)


def tensors():
    """(name, type, shape, payload, its values as float32 or as the bytes they are)."""
    patterns = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF,
                0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001]
    f32 = struct.pack("<12I", *patterns)
    bf16 = struct.pack("<65536H", *range(65536))
    wide = struct.pack("<65536I", *(b << 16 for b in range(65536)))
    fp4, fp4_values = mxfp4()
    every_byte = bytes(range(256))
    return [("sample.f32", GGML_F32, [4, 3], f32, f32),
            ("sample.fp4_exps.weight", GGML_MXFP4, [64, 8, 16], fp4, fp4_values),
            ("sample.i8", GGML_I8, [256], every_byte, every_byte),
            ("sample.bf16.weight", GGML_BF16, [256, 256], bf16, wide)]


def text(value):
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def encoded(kind, value):
    if isinstance(kind, tuple):
        items = b"".join(encoded(kind[1], item) for item in value)
        return struct.pack("<IQ", kind[1], len(value)) + items
    return text(value) if kind == STRING else struct.pack("<" + STRUCT[kind], value)


def padding(size):
    return bytes(-size % ALIGNMENT)


def write(gguf_path, values_path, metadata=None, swap_halves=False):
    """swap_halves spoils the MXFP4 payload as a packer with the nibbles exchanged would."""
    metadata = METADATA if metadata is None else metadata
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors()), len(metadata))
    for key, kind, value in metadata:
        header += text(key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind)
        header += encoded(kind, value)
    payloads, values = b"", b""
    for name, kind, shape, payload, decoded in tensors():
        if swap_halves and kind == GGML_MXFP4:
            payload = bytes(b if i % 17 == 0 else (b << 4 | b >> 4) & 255
                            for i, b in enumerate(payload))
        header += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        header += struct.pack("<IQ", kind, len(payloads))
        payloads += payload + padding(len(payload))
        values += decoded
    with open(gguf_path, "wb") as f:
        f.write(header + padding(len(header)) + payloads)
    with open(values_path, "wb") as f:
        f.write(values)
    return shown(metadata, len(header) + len(padding(len(header))))


def shown_item(kind, value):
    if kind in (STRING, BOOL):
        return value
    if kind in (F32, F64):
        return struct.pack(">" + STRUCT[kind], value).hex()
    return str(value)


def shown(metadata, data_offset):
    """What a reader must see, in the form of show_gguf.c."""
    keys, rows = [], []
    for key, kind, value in metadata:
        if isinstance(kind, tuple):
            keys.append({"key": key, "type": ARRAY, "item": kind[1],
                         "value": [shown_item(kind[1], item) for item in value]})
        else:
            keys.append({"key": key, "type": kind, "value": shown_item(kind, value)})
    for name, kind, shape, payload, _ in tensors():
        rows.append({"name": name, "type": kind, "shape": [str(n) for n in shape],
                     "offset": str(data_offset)})
        data_offset += len(payload) + len(padding(len(payload)))
    return {"metadata": keys, "tensors": rows}
