#!/usr/bin/env python3
"""Rebuilds the released shards from converted files and compares every byte with the originals.

    rebuild_released.py CONVERTED FOLDER...

CONVERTED holds NAME-{f32,bf16,fp8,packed}.gguf for each folder; NAME is the folder's, "demo" of
demo-model.  Nothing here is plumb's: GGUF and MXFP4 are read as ggml publishes them, names and number
formats as docs/checkpoint.md and docs/convert.md say.  The shards' own headers say only in which order
the tensors stand; dtypes and shapes are worked out from the converted file and compared with them."""

import array
import json
import os
import re
import struct
import sys

from gguf_reader import Header

FLAVOURS = ["f32", "bf16", "fp8", "packed"]
F32, I8, BF16, MXFP4 = 0, 24, 30, 39
TILE = 32
BLOCK_BYTES = {F32: (1, 4), I8: (1, 1), BF16: (1, 2), MXFP4: (32, 17)}

# Endings in the file -> as released; matrices without ".weight", which stands for ".scale" too.
MATRICES = {
    "attn_q_a": "attn.wq_a", "attn_q_b": "attn.wq_b", "attn_kv": "attn.wkv",
    "attn_output_a": "attn.wo_a", "attn_output_b": "attn.wo_b",
    "indexer.attn_q_b": "attn.indexer.wq_b", "engram_kv": "engram.wkv", "main_proj": "main_proj",
    "ffn_gate_shexp": "ffn.shared_experts.w1", "ffn_down_shexp": "ffn.shared_experts.w2",
    "ffn_up_shexp": "ffn.shared_experts.w3",
}
STACKS = {"ffn_gate_exps": "w1", "ffn_down_exps": "w2", "ffn_up_exps": "w3"}
OTHERS = {
    "hc_attn_fn.weight": "hc_attn_fn", "hc_attn_base.weight": "hc_attn_base",
    "hc_attn_scale.weight": "hc_attn_scale", "hc_ffn_fn.weight": "hc_ffn_fn",
    "hc_ffn_base.weight": "hc_ffn_base", "hc_ffn_scale.weight": "hc_ffn_scale",
    "attn_norm.weight": "attn_norm.weight", "ffn_norm.weight": "ffn_norm.weight",
    "attn_sinks.weight": "attn.attn_sink", "attn_q_a_norm.weight": "attn.q_norm.weight",
    "attn_kv_a_norm.weight": "attn.kv_norm.weight",
    "attn_compressor_kv.weight": "attn.compressor.wkv.weight",
    "attn_compressor_gate.weight": "attn.compressor.wgate.weight",
    "attn_compressor_norm.weight": "attn.compressor.norm.weight",
    "indexer.attn_k.weight": "attn.indexer.wk.weight",
    "indexer.k_norm.weight": "attn.indexer.k_norm.weight",
    "indexer.proj.weight": "attn.indexer.weights_proj.weight",
    "ffn_gate_inp.weight": "ffn.gate.weight", "exp_probs_b.bias": "ffn.gate.bias",
    "exp_probs_b_vl.bias": "ffn.gate.bias_vl",
    "engram_q_norm.weight": "engram.q_weight", "engram_k_norm.weight": "engram.k_weight",
}
DRAFT = ["main_norm.weight", "norm.weight", "markov_head.embed.weight", "markov_head.head.weight",
         "confidence_head.proj.weight"]
TOP = {"token_embd.weight": "embed.weight", "output_norm.weight": "norm.weight",
       "output.weight": "head.weight"}


class Converted(Header):
    """tensor: name -> (type, shape fastest first, payload)."""

    def __init__(self, path):
        super().__init__(path)
        table = []
        for _ in range(self.tensors):
            name = self.string().decode()
            dims, = self.take("<I")
            shape = self.take(f"<{dims}Q")
            table.append((name, shape, *self.take("<IQ")))
        alignment = self.values["general.alignment"][1]
        begin = (self.at + alignment - 1) // alignment * alignment
        self.tensor = {}
        for name, shape, kind, offset in table:
            elements, size = BLOCK_BYTES[kind]
            count = 1
            for extent in shape:
                count *= extent
            at = begin + offset
            assert at % 16384 == 0 and count % elements == 0, name
            payload = memoryview(self.bytes)[at:at + count // elements * size]
            assert len(payload) == count // elements * size, name
            self.tensor[name] = kind, shape, payload


# ---- FP8 matrices -------------------------------------------------------------------------------


def e4m3(code):
    """Exact; None for NaN."""
    exponent, mantissa = code >> 3 & 15, code & 7
    if code & 127 == 127:
        return None
    magnitude = (8 + mantissa) * 2.0 ** (exponent - 10) if exponent else mantissa * 2.0 ** -9
    return -magnitude if code & 128 else magnitude


def codes_by_bits(scale, kind, made={}):
    """The bits of code * 2^(scale - 127) -> code; of codes whose product the kind does not hold, none."""
    if (scale, kind) in made:
        return made[scale, kind]
    table = {}
    for code in range(256):
        value = e4m3(code)
        if value is None:
            continue
        try:
            bits, = struct.unpack("<I", struct.pack("<f", value * 2.0 ** (scale - 127)))
        except OverflowError:
            continue
        if kind == F32:
            table[bits] = code
        elif bits & 0xFFFF == 0:
            table[bits >> 16] = code
    return made.setdefault((scale, kind), table)


def narrow(kind, rows, columns, payload, scales):
    """The codes of a matrix that is stored as values."""
    values = array.array("I" if kind == F32 else "H", bytes(payload))
    assert values.itemsize == BLOCK_BYTES[kind][1] and sys.byteorder == "little"
    tiles = (columns + TILE - 1) // TILE
    codes, at = bytearray(), 0
    for row in range(rows):
        tables = [codes_by_bits(s, kind) for s in scales[row // TILE * tiles:][:tiles]]
        for tile, table in enumerate(tables):
            size = min(TILE, columns - tile * TILE)
            codes += bytes(map(table.__getitem__, values[at:at + size]))
            at += size
    return bytes(codes)


# ---- Experts and tables -------------------------------------------------------------------------

LOW = bytes(i & 15 for i in range(256))
HIGH = bytes(i >> 4 for i in range(256))
LOW_UP = bytes(i << 4 & 255 for i in range(256))
HIGH_UP = bytes(i & 240 for i in range(256))


def either(a, b):
    return (int.from_bytes(a, "little") | int.from_bytes(b, "little")).to_bytes(len(a), "little")


def unpack_blocks(payload):
    """MXFP4 blocks -> released pairs and scales.  Byte j of a block holds elements j and j + 16, byte i
    of the release elements 2i and 2i + 1."""
    data = bytes(payload)
    columns = [data[1 + j::17] for j in range(16)]
    codes = bytearray(len(data) // 17 * 16)
    for i in range(8):
        first, second = columns[2 * i], columns[2 * i + 1]
        codes[i::16] = either(first.translate(LOW), second.translate(LOW_UP))
        codes[i + 8::16] = either(first.translate(HIGH), second.translate(HIGH_UP))
    return bytes(codes), data[::17]


def split_rows(payload, rows, width):
    """Rows of codes and scales: of 33 bytes, 32 are codes."""
    code_bytes = width // 33 * 32
    data = bytes(payload)
    codes, scales = bytearray(rows * code_bytes), bytearray(rows * (width - code_bytes))
    for j in range(width):
        if j < code_bytes:
            codes[j::code_bytes] = data[j::width]
        else:
            scales[j - code_bytes::width - code_bytes] = data[j::width]
    return bytes(codes), bytes(scales), code_bytes


# ---- All tensors --------------------------------------------------------------------------------


def rebuild(converted):
    """Released name -> (dtype, shape, bytes)."""
    released = {}

    def put(name, dtype, shape, data):
        assert name not in released, name
        released[name] = dtype, list(shape), bytes(data)

    def put_matrix(place, ending, kind, shape, payload):
        columns, rows = shape
        tiles = [(rows + TILE - 1) // TILE, (columns + TILE - 1) // TILE]
        scale_kind, scale_shape, scales = converted.tensor[f"plumb.{ending}.scale"]
        assert scale_kind == I8 and list(scale_shape) == tiles[::-1], ending
        codes = payload if kind == I8 else narrow(kind, rows, columns, payload, scales)
        put(f"{place}.weight", "F8_E4M3", [rows, columns], codes)
        put(f"{place}.scale", "F8_E8M0", tiles, scales)

    def put_stack(place, matrix, kind, shape, payload):
        assert kind == MXFP4
        k, n, experts = shape
        codes, scales = unpack_blocks(payload)
        code_bytes, scale_bytes = n * k // 2, n * k // TILE
        for e in range(experts):
            name = f"{place}.ffn.experts.{e}.{matrix}"
            put(f"{name}.weight", "I8", [n, k // 2], codes[e * code_bytes:][:code_bytes])
            put(f"{name}.scale", "F8_E8M0", [n, k // TILE], scales[e * scale_bytes:][:scale_bytes])

    def put_table(place, kind, shape, payload):
        assert kind == I8
        width, rows = shape
        codes, scales, dim = split_rows(payload, rows, width)
        put(f"{place}.engram.embed.weight", "F8_E4M3", [rows, dim], codes)
        put(f"{place}.engram.embed.scale", "F8_E8M0", [rows, dim // TILE], scales)

    def put_plain(name, kind, shape, payload):
        is_f32 = re.search(r"hc_|attn_sink|gate\.bias", name) is not None
        if is_f32 and kind == BF16:  # the upper halves
            wide = bytearray(2 * len(payload))
            wide[2::4], wide[3::4] = bytes(payload)[::2], bytes(payload)[1::2]
            payload, kind = wide, F32
        assert kind == (F32 if is_f32 else BF16), name
        put(name, "F32" if is_f32 else "BF16", shape[::-1], payload)

    for name, (kind, shape, payload) in converted.tensor.items():
        block = re.fullmatch(r"(blk|mtp)\.(\d+)\.(.*)", name)
        if name.startswith("plumb."):
            continue  # with its matrix
        if not block:
            put_plain(TOP.get(name, name), kind, shape, payload)
            continue
        place = f"{'layers' if block[1] == 'blk' else 'mtp'}.{block[2]}"
        ending = block[3]
        stem = ending.removesuffix(".weight")
        if stem in MATRICES:
            put_matrix(f"{place}.{MATRICES[stem]}", f"{block[1]}.{block[2]}.{stem}", kind, shape, payload)
        elif stem in STACKS:
            put_stack(place, STACKS[stem], kind, shape, payload)
        elif stem == "engram_embd":
            put_table(place, kind, shape, payload)
        elif block[1] == "mtp" and ending in DRAFT:
            put_plain(f"{place}.{ending}", kind, shape, payload)
        else:
            put_plain(f"{place}.{OTHERS[ending]}", kind, shape, payload)
    return released


# ---- Comparing ----------------------------------------------------------------------------------


def first_difference(a, b):
    return next((i for i, pair in enumerate(zip(a, b)) if pair[0] != pair[1]), min(len(a), len(b)))


def compare_shard(path, released, used):
    """Every byte behind the header, and what the header says of it."""
    with open(path, "rb") as f:
        shard = f.read()
    size, = struct.unpack_from("<Q", shard)
    header = json.loads(shard[8:8 + size])
    header.pop("__metadata__", None)
    data = memoryview(shard)[8 + size:]
    rebuilt = bytearray(len(data))
    for name, entry in header.items():
        dtype, shape, payload = released[name]
        assert (dtype, shape) == (entry["dtype"], entry["shape"]), (name, dtype, shape, entry)
        begin, end = entry["data_offsets"]
        assert end - begin == len(payload), name
        rebuilt[begin:end] = payload
        used.add(name)
    if rebuilt != data:
        at = first_difference(rebuilt, data)
        name = next(n for n, e in header.items() if e["data_offsets"][0] <= at < e["data_offsets"][1])
        raise AssertionError(f"{path}: {name}: byte {at - header[name]['data_offsets'][0]} differs")
    return len(data)


def compare_folder(converted, folder):
    released = rebuild(Converted(converted))
    shards = sorted(f for f in os.listdir(folder) if f.endswith(".safetensors"))
    used, size = set(), 0
    for shard in shards:
        size += compare_shard(os.path.join(folder, shard), released, used)
    assert shards and used == set(released), sorted(set(released) - used)[:5]
    print(f"{os.path.basename(converted)}: {len(used)} tensors, {size} bytes as released")


def main():
    place, *folders = sys.argv[1:]
    if not folders:
        sys.exit(__doc__)
    for folder in folders:
        name = os.path.basename(folder).removesuffix("-model")
        for flavour in FLAVOURS:
            compare_folder(os.path.join(place, f"{name}-{flavour}.gguf"), folder)


if __name__ == "__main__":
    main()
