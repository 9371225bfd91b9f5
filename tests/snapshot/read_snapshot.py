#!/usr/bin/env python3
"""A second reader of snapshots, written from docs/snapshots.md: read_snapshot.py EXAMPLES CHECKPOINTS DATA.

Takes the files of example_test apart and requires that there is nothing in them but what the page says:
header, order, sizes and places of the sections, extras, tokens; checksums and the digest of the model, where
xxhsum is installed."""
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HEADER = struct.Struct("<8sII16sqqIIIIIIQQQ")
ENTRY = struct.Struct("<iiqqqQ")
TOKENS, SAMPLING, NOTE, RING, CARRY, COMPRESSED, INDEX_KEYS = range(1, 8)
PIECE = 4096
XXHSUM = shutil.which("xxhsum")
EXAMPLES = {"tiny": (5, 41), "deep40": (300, 517)}  # resume point, length


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def xxh(kind, data):
    """XXH3-64 (3) or XXH3-128 (2), in hexadecimal."""
    done = subprocess.run([XXHSUM, f"-H{kind}"], input=data, capture_output=True, check=True)
    return re.search(r"\b[0-9a-f]{16,32}\b", done.stdout.decode().replace("XXH3_", ""))[0]


class Config:
    """What of config.json decides the layout."""

    def __init__(self, folder):
        self.all = json.loads((folder / "config.json").read_text())
        self.text = text = self.all["text_config"]
        self.layers = text["num_hidden_layers"]
        self.ratio = text["compress_ratios"][:self.layers]
        self.sources = text["kv_source_layer_ids"]
        self.index_sources = text["index_source_layer_ids"]

    def latest(self, sources, layer):
        return max((s for s in sources if s <= layer), default=-1) if self.ratio[layer] else -1


def expected_sections(config, points, length):
    """(kind, layer, length, bytes) of all caches, in the order of the page."""
    text = config.text
    window, head, index = text["sliding_window"], text["head_dim"], text["index_head_dim"]
    for at in [length, *points]:
        for layer in range(config.layers):
            source = layer in config.sources
            yield RING, layer, at, min(at, window) * (head + head // 32)
            if source and config.ratio[layer] == 2:
                yield CARRY, layer, at, 8 * head
            if source and at == length:
                rows = at // config.ratio[layer]
                yield COMPRESSED, layer, at, rows * (head // 2 + head // 16)
                yield INDEX_KEYS, layer, at, rows * (index // 2 + index // 32)


# ---- Which model ----------------------------------------------------------------------------------


def tensors(folder):
    """Name -> (dtype, shape, payload), ascending."""
    found = {}
    for shard in sorted(folder.glob("*.safetensors")):
        data = shard.read_bytes()
        size, = struct.unpack_from("<Q", data)
        for name, t in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = t["data_offsets"]
                found[name] = t["dtype"], t["shape"], data[8 + size + begin:8 + size + end]
    return dict(sorted(found.items()))


def sample(payload, places):
    last = len(payload) - PIECE
    if last <= 0:
        return payload
    begins = [last // (places - 1) * i for i in range(places - 1)] + [last]
    return b"".join(payload[b:b + PIECE] for b in begins)


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def digest_of_model(folder, config):
    text, rope = config.text, config.text["rope_scaling"]
    whole = [config.all["image_token_id"]] + [text[key] for key in (
        "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim",
        "qk_rope_head_dim", "q_lora_rank", "o_lora_rank", "o_groups", "sliding_window",
        "index_n_heads", "index_head_dim", "index_topk", "candidate_source_layer_id",
        "candidate_topk_blocks", "candidate_block_size")]
    whole += [rope["original_max_position_embeddings"]]
    whole += [text[key] for key in ("moe_intermediate_size", "n_routed_experts",
                                    "num_experts_per_tok", "hc_sinkhorn_iters")]
    whole += [len(text["engram_layer_ids"])] + [text[key] for key in (
        "engram_max_ngram_size", "engram_n_heads", "engram_head_dim", "engram_vocab_size",
        "engram_compressed_vocab_size")]
    whole += [text.get("engram_pad_token_id", text.get("engram_pad_id"))]
    real = [text["rope_theta"], text["compress_rope_theta"], rope["factor"], rope["beta_fast"],
            rope["beta_slow"]]
    real += [float32(text[key]) for key in ("routed_scaling_factor", "swiglu_limit",
                                            "rms_norm_eps", "hc_eps")]
    data = struct.pack(f"<{len(whole)}q{len(real)}d", *whole, *real)
    for layer in range(config.layers):
        data += struct.pack("<5q", config.ratio[layer], config.latest(config.sources, layer),
                            config.latest(config.index_sources, layer), layer in config.sources,
                            layer in config.index_sources)
    for layer, rows in zip(text["engram_layer_ids"], text["engram_num_embeddings"]):
        data += struct.pack("<2q", layer, rows)
    data += (folder / "engram_token_map.i32").read_bytes()
    every = tensors(folder)
    for name, (dtype, shape, payload) in every.items():
        data += name.encode() + b"\0" + dtype.encode() + b"\0"
        data += struct.pack("<2q", *(shape + [1])[:2])
        if ".experts." not in name:
            table = ".engram.embed." in name
            data += sample(payload, 16 if table else 3)
    for layer in range(config.layers):
        expert = f"layers.{layer}.ffn.experts.{37 * layer % text['n_routed_experts']}."
        for matrix in ("w1", "w2", "w3"):
            for part in ("weight", "scale"):
                data += sample(every[f"{expert}{matrix}.{part}"][2], 3)
    return xxh(2, data)


# ---- The file ---------------------------------------------------------------------------------------


def prompt(data, name):
    raw = (data / f"oracle/{name}.prefill.safetensors").read_bytes()
    size, = struct.unpack_from("<Q", raw)
    ids = json.loads(raw[8:8 + size])["input_ids"]
    begin, end = ids["data_offsets"]
    payload = raw[8 + size + begin:8 + size + end]
    return struct.unpack(f"<{len(payload) // 4}i", payload)


def read(path, folder, data):
    name, config = path.name, Config(folder)
    point, length = EXAMPLES[name]
    raw = path.read_bytes()
    (magic, version, revision, model, size, tokens, layers, window, head, index, vocab, sections,
     flags, table_sum, header_sum) = HEADER.unpack_from(raw)
    text = config.text
    check(HEADER.size == 96 and ENTRY.size == 40, "sizes of the page")
    check((magic, version, revision) == (b"PLUMBSNP", 1, 1), f"{magic} {version} {revision}")
    check(size == len(raw) and tokens == length and flags == 0, f"{size}, {tokens}, {flags}")
    check((layers, window, head, index, vocab) ==
          (text["num_hidden_layers"], text["sliding_window"], text["head_dim"],
           text["index_head_dim"], text["vocab_size"]), "layout")
    table = raw[96:96 + 40 * sections]
    entries = list(ENTRY.iter_unpack(table))
    wanted = [(TOKENS, -1, length, 4 * length), (SAMPLING, -1, length, 24 + 2 * 8),
              (NOTE, -1, length, len(name)), *expected_sections(config, [point], length)]
    check([(k, l, at, n) for k, l, at, _, n, _ in entries] == wanted, "the table")
    place = 96 + 40 * sections
    for *_, offset, n, _ in entries:
        check(offset == place, f"a section at {offset} for {place}")
        place += n
    check(place == size, "the end")
    part = {entry[0]: raw[entry[3]:entry[3] + entry[4]] for entry in entries[:3]}
    check(struct.unpack(f"<{length}i", part[TOKENS]) == prompt(data, name)[:length], "tokens")
    check(part[SAMPLING] == struct.pack("<fiffQifif", 0.5, 40, 0.75, 0.125, 0x123456789abcdef0, 3,
                                        -1.5, 7, 2.25), "sampling")
    check(part[NOTE] == name.encode(), "note")
    if not XXHSUM:
        print(f"{name}: skipped: checksums, without xxhsum")
        return
    check(xxh(3, raw[:88]) == f"{header_sum:016x}", "header")
    check(xxh(3, table) == f"{table_sum:016x}", "table")
    for kind, layer, at, offset, n, told in entries:
        check(xxh(3, raw[offset:offset + n]) == f"{told:016x}", f"section {kind} {layer} {at}")
    check(digest_of_model(folder, config) == model.hex(), "the model's digest")
    print(f"{name}: {size} bytes, {sections} sections, model {model.hex()}")


if __name__ == "__main__":
    examples, checkpoints, test_data = map(Path, sys.argv[1:])
    for example in EXAMPLES:
        read(examples / example, checkpoints / example, test_data)
