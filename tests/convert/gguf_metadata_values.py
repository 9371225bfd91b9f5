#!/usr/bin/env python3
"""Compares every key of the converted headers in FOLDER (NAME.gguf, and NAME.model, a link to the model)
with the model's own files: nothing missing, nothing more, types included.  What no file of a model says
is compared with published values in DATA, the folder tests/data.

    gguf_metadata_values.py FOLDER DATA"""
import hashlib
import json
import os
import struct
import sys

from gguf_reader import Header

MODELS = ["demo", "deep40", "released", "tiny"]
U32 = """vocab_size hidden_size moe_intermediate_size num_hidden_layers num_attention_heads
num_key_value_heads head_dim qk_rope_head_dim q_lora_rank o_lora_rank o_groups n_routed_experts
n_shared_experts num_experts_per_tok max_position_embeddings sliding_window index_n_heads index_head_dim
index_topk candidate_source_layer_id candidate_topk_blocks candidate_block_size hc_mult hc_sinkhorn_iters
rope_theta compress_rope_theta""".split()
F32 = "rms_norm_eps hc_eps swiglu_limit routed_scaling_factor".split()
STRINGS = "scoring_func hidden_act topk_method".split()
ARRAYS = "compress_ratios kv_source_layer_ids index_source_layer_ids".split()
FILES = ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]
RELEASED_MAP_SHA256 = "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def golden(data, name):
    with open(os.path.join(data, "oracle/units.safetensors"), "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        entry = json.loads(f.read(size))[name]
        begin, end = entry["data_offsets"]
        f.seek(8 + size + begin)
        return list(struct.unpack(f"<{(end - begin) // 8}q", f.read(end - begin)))


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def primes_of(text):
    """Consecutive primes from engram_vocab_size on, for all layers, lengths and heads."""
    found, n = [], text["engram_vocab_size"]
    count = (len(text["engram_layer_ids"]) * (text["engram_max_ngram_size"] - 1)
             * text["engram_n_heads"])
    while len(found) < count:
        if is_prime(n):
            found.append(n)
        n += 1
    return found


def folds_in_order(ids, folded):
    """A new folded id is always the next one, and there are as many as the config says."""
    following = 0
    for i in ids:
        if i > following:
            return False
        following += i == following
    return following == folded


class Model:
    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.config = self.load("config.json")
        self.root = json.loads(self.config)
        self.text = self.root["text_config"]

    def load(self, name):
        path = os.path.join(self.folder, name)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as f:
            return f.read()


def origin(model):
    parts = model.folder.split("/")
    if parts[-2] != "snapshots":
        return {"general.name": ("string", parts[-1].encode())}
    _, org, name = parts[-3].split("--")
    return {"general.name": ("string", name.encode()),
            "general.source.url": ("string", f"https://huggingface.co/{org}/{name}".encode()),
            "general.source.revision": ("string", parts[-1].encode())}


def config_values(text):
    values = {key: ("u32", text[key]) for key in U32}
    values.update({key: ("f32", f32(text[key])) for key in F32})
    values.update({key: ("string", text[key].encode()) for key in STRINGS})
    values.update({key: ("[u32]", text[key]) for key in ARRAYS})
    values["norm_topk_prob"] = ("bool", text["norm_topk_prob"])
    rope = text["rope_scaling"]
    for key in ["factor", "beta_fast", "beta_slow"]:
        values["rope_scaling." + key] = ("f32", f32(rope[key]))
    key = "original_max_position_embeddings"
    values["rope_scaling." + key] = ("u32", rope[key])
    return values


def engram_values(text):
    dim = text["engram_head_dim"]
    return {"encoding": ("string", f"e4m3_e8m0_32_row{dim + dim // 32}".encode()),
            "layer_ids": ("[u32]", text["engram_layer_ids"]),
            "rows": ("[u64]", text["engram_num_embeddings"]),
            "compressed_vocab_size": ("u32", text["engram_compressed_vocab_size"]),
            "pad_id": ("u32", text["engram_pad_token_id"]),
            "primes": ("[u64]", primes_of(text))}


def tokenizer_values(model):
    source = model.load("tokenizer.json")
    if source is None:
        return {}
    tokenizer = json.loads(source)
    tokens = {i: (token, 1) for token, i in tokenizer["model"]["vocab"].items()}
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = (added["content"], 3 if added["special"] else 4)
    order = [tokens[i] for i in range(model.text["vocab_size"])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    values = {"model": ("string", b"gpt2"), "pre": ("string", b"joyai-llm"),
              "tokens": ("[string]", [token.encode() for token, _ in order]),
              "token_type": ("[i32]", [kind for _, kind in order]),
              "merges": ("[string]", [m.encode() for m in merges])}
    for key in ["bos_token_id", "eos_token_id"]:
        values[key] = ("u32", model.root[key])
    flags = json.loads(model.load("tokenizer_config.json"))
    for key in ["add_bos_token", "add_eos_token"]:
        values[key] = ("bool", flags[key])
    return values


def pieces(content):
    """Whole characters in at most 64 KiB, and an empty piece at the end."""
    found = []
    while content:
        size = min(65536, len(content))
        while size < len(content) and content[size] & 0xC0 == 0x80:
            size -= 1
        found.append(content[:size])
        content = content[size:]
    return found + [b""]


def expected_of(model):
    values = {"general.alignment": ("u32", 16384), "general.architecture": ("string", b"deepseek41"),
              "deepseek41.config": ("string", model.config), "plumb.format": ("u32", 1),
              "plumb.fp8.encoding": ("string", b"e4m3_e8m0_32x32")}
    values.update(origin(model))
    for prefix, part in [("deepseek41.", config_values(model.text)),
                         ("deepseek41.engram.", engram_values(model.text)),
                         ("tokenizer.ggml.", tokenizer_values(model))]:
        values.update({prefix + key: value for key, value in part.items()})
    for name in FILES:
        if (content := model.load(name)) is not None:
            values["plumb.file." + name] = ("[string]", pieces(content))
    return values


def check_token_map(name, model, kind, ids, data, faults):
    stored = model.load("engram_token_map.i32")
    packed = struct.pack(f"<{len(ids)}i", *ids)
    if kind != "[i32]" or len(ids) != model.text["vocab_size"]:
        faults.append(f"{name}: token_map is {kind} of {len(ids)}")
    if stored is not None and packed != stored:
        faults.append(f"{name}: token_map differs from engram_token_map.i32")
    if name == "released" and hashlib.sha256(packed).hexdigest() != RELEASED_MAP_SHA256:
        faults.append(f"{name}: token_map differs from the published")
    if name == "demo":
        with open(os.path.join(data, "demo-model/engram_token_map.json"), encoding="ascii") as f:
            if json.load(f)["map"] != ids:
                faults.append(f"{name}: token_map differs from {f.name}")
    if not folds_in_order(ids, model.text["engram_compressed_vocab_size"]):
        faults.append(f"{name}: token_map is no folding")


def check_engram(name, model, values, data, faults):
    """What no file of the model says; takes these values out."""
    text = model.text
    check_token_map(name, model, *values.pop("deepseek41.engram.token_map", (None, [])), data, faults)
    kind, found = values.pop("deepseek41.engram.multipliers", (None, []))
    known = {"released": "engram.multipliers", "deep40": "engram.multipliers.small694"}
    if name in known and found != golden(data, known[name]):
        faults.append(f"{name}: multipliers differ from the published")
    bound = (2**63 - 1) // text["engram_compressed_vocab_size"]
    count = len(text["engram_layer_ids"]) * text["engram_max_ngram_size"]
    if kind != "[u64]" or len(found) != count or not all(m % 2 and m < bound for m in found):
        faults.append(f"{name}: multipliers are {kind} of {len(found)}")
    per_layer = (text["engram_max_ngram_size"] - 1) * text["engram_n_heads"]
    for i, rows in enumerate(text["engram_num_embeddings"]):
        primes = values["deepseek41.engram.primes"][1][per_layer * i:per_layer * (i + 1)]
        if sum(primes) != rows:
            faults.append(f"{name}: primes of table {i} add up to {sum(primes)}, not {rows}")


def check(name, folder, data, faults):
    model = Model(os.path.join(folder, name + ".model"))
    header = Header(os.path.join(folder, name + ".gguf"))
    values, expected = header.values, expected_of(model)
    count = len(values)
    check_engram(name, model, values, data, faults)
    for key in sorted(values.keys() | expected.keys()):
        found, wanted = values.get(key), expected.get(key)
        if found != wanted:
            faults.append(f"{name}: {key}: found {str(found)[:80]}, expected {str(wanted)[:80]}")
    return count


def main():
    folder, data = sys.argv[1:]
    faults = []
    counts = [check(name, folder, data, faults) for name in MODELS]
    print("\n".join(faults))
    print(f"{sum(counts)} keys of {len(MODELS)} models, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
