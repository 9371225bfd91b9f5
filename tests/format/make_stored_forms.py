#!/usr/bin/env python3
"""Writes tests/data/stored_forms/forms.safetensors: stored forms worked out with exact fractions
from the formats' definitions.  Usage: make_stored_forms.py FILE

fp8.bits [scales, 256]     float32 bits of code * 2^(scale - 127), ABSENT where float32 has no such number
mxfp4.*                    blocks as ggml defines them: a scale byte e, then bytes whose low and high
                           nibbles are elements j and j + 16; value = VALUES[nibble] * 2^(e - 128).
                           They are built from the values that the released pairs stand for."""
import json
import random
import struct
import sys
from fractions import Fraction

ABSENT = 0x7FFFFFFF
SCALES = [0, 1, 8, 9, 10, 11, 100, 126, 127, 128, 200, 245, 246, 247, 248, 250, 254, 255]
VALUES = [0, 1, 2, 3, 4, 6, 8, 12, -0.0, -1, -2, -3, -4, -6, -8, -12]  # twice those of e2m1


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 127 == 127:
        return None
    if exponent == 0:
        return Fraction(mantissa, 8) * Fraction(2) ** -6
    return (1 + Fraction(mantissa, 8)) * Fraction(2) ** (exponent - 7)


def float32_bits(magnitude, negative):
    sign = negative << 31
    if magnitude == 0:
        return sign
    exponent = -126
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    units = magnitude / Fraction(2) ** (exponent - 23)  # of the last place
    assert units.denominator == 1
    if exponent > 127:
        return ABSENT
    if units < 1 << 23:  # subnormal
        return sign | int(units)
    return sign | exponent + 127 << 23 | int(units) - (1 << 23)


def product_bits(code, scale):
    magnitude = e4m3(code)
    if magnitude is None or scale == 255:
        return ABSENT
    return float32_bits(magnitude * Fraction(2) ** (scale - 127), code >> 7)


def e2m1(code):
    exponent, mantissa = code >> 1 & 3, code & 1
    value = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return -value if code & 8 else value


def nibble_of(value, scale):
    """The one whose VALUES[nibble] * 2^(scale - 128) is this, with its sign of zero."""
    found = [n for n, v in enumerate(VALUES) if struct.pack("<d", v * 2.0 ** (scale - 128)) == struct.pack("<d", value)]
    assert len(found) == 1
    return found[0]


def mxfp4(n):
    draw = random.Random(32)
    released, scales, blocks, values = b"", b"", b"", []
    for b in range(n):
        pairs = bytes(draw.randrange(256) for _ in range(16)) if b else bytes(range(0, 256, 17))
        scale = draw.randrange(255) if b > 2 else [127, 0, 254][b]
        element = [e2m1(pairs[i // 2] >> 4 * (i % 2) & 15) * 2.0 ** (scale - 127) for i in range(32)]
        nibble = [nibble_of(v, scale) for v in element]
        released += pairs
        scales += bytes([scale])
        blocks += bytes([scale]) + bytes(nibble[j] | nibble[j + 16] << 4 for j in range(16))
        values += element
    return released, scales, blocks, struct.pack(f"<{32 * n}d", *values)


def main():
    bits = [product_bits(code, scale) for scale in SCALES for code in range(256)]
    n = 37
    released, scales, blocks, values = mxfp4(n)
    tensors = {
        "fp8.scales": ("U8", [len(SCALES)], bytes(SCALES)),
        "fp8.bits": ("I32", [len(SCALES), 256], struct.pack(f"<{len(bits)}I", *bits)),
        "mxfp4.codes": ("U8", [n, 16], released),
        "mxfp4.scales": ("U8", [n], scales),
        "mxfp4.blocks": ("U8", [n, 17], blocks),
        "mxfp4.values": ("F64", [n, 32], values),
    }
    header, begin = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    text = json.dumps(header).encode()
    with open(sys.argv[1], "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


if __name__ == "__main__":
    main()
