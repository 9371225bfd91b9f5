/* Names in a converted file: the published ones pair by pair, and over all tensors of a config that
 * no two share a name but those that share a place. */
#include "fixture.h"
#include "format/gguf.h"
#include "format/gguf_names.h"
#include "format/tensor_table.h"
#include "t.h"

#include <stdlib.h>

static void pairs(void) {
    static const struct {
        const char *released, *name;
        int64_t expert;
        bool in_rows;
    } cases[] = {
        {"embed.weight", "token_embd.weight", -1, false},
        {"norm.weight", "output_norm.weight", -1, false},
        {"head.weight", "output.weight", -1, false},
        {"layers.0.hc_attn_fn", "blk.0.hc_attn_fn.weight", -1, false},
        {"layers.1.hc_attn_base", "blk.1.hc_attn_base.weight", -1, false},
        {"layers.2.hc_attn_scale", "blk.2.hc_attn_scale.weight", -1, false},
        {"layers.3.hc_ffn_fn", "blk.3.hc_ffn_fn.weight", -1, false},
        {"layers.4.hc_ffn_base", "blk.4.hc_ffn_base.weight", -1, false},
        {"layers.39.hc_ffn_scale", "blk.39.hc_ffn_scale.weight", -1, false},
        {"layers.5.attn_norm.weight", "blk.5.attn_norm.weight", -1, false},
        {"layers.6.ffn_norm.weight", "blk.6.ffn_norm.weight", -1, false},
        {"layers.7.attn.attn_sink", "blk.7.attn_sinks.weight", -1, false},
        {"layers.8.attn.wq_a.weight", "blk.8.attn_q_a.weight", -1, false},
        {"layers.8.attn.wq_a.scale", "plumb.blk.8.attn_q_a.scale", -1, false},
        {"layers.9.attn.wq_b.weight", "blk.9.attn_q_b.weight", -1, false},
        {"layers.9.attn.wq_b.scale", "plumb.blk.9.attn_q_b.scale", -1, false},
        {"layers.9.attn.q_norm.weight", "blk.9.attn_q_a_norm.weight", -1, false},
        {"layers.10.attn.wkv.weight", "blk.10.attn_kv.weight", -1, false},
        {"layers.10.attn.wkv.scale", "plumb.blk.10.attn_kv.scale", -1, false},
        {"layers.11.attn.kv_norm.weight", "blk.11.attn_kv_a_norm.weight", -1, false},
        {"layers.12.attn.wo_a.weight", "blk.12.attn_output_a.weight", -1, false},
        {"layers.12.attn.wo_b.scale", "plumb.blk.12.attn_output_b.scale", -1, false},
        {"layers.2.attn.compressor.wkv.weight", "blk.2.attn_compressor_kv.weight", -1, false},
        {"layers.8.attn.compressor.norm.weight", "blk.8.attn_compressor_norm.weight", -1, false},
        {"layers.14.attn.compressor.wgate.weight", "blk.14.attn_compressor_gate.weight", -1, false},
        {"layers.20.attn.indexer.wk.weight", "blk.20.indexer.attn_k.weight", -1, false},
        {"layers.20.attn.indexer.k_norm.weight", "blk.20.indexer.k_norm.weight", -1, false},
        {"layers.24.attn.indexer.wq_b.weight", "blk.24.indexer.attn_q_b.weight", -1, false},
        {"layers.24.attn.indexer.wq_b.scale", "plumb.blk.24.indexer.attn_q_b.scale", -1, false},
        {"layers.36.attn.indexer.weights_proj.weight", "blk.36.indexer.proj.weight", -1, false},
        {"layers.13.ffn.gate.weight", "blk.13.ffn_gate_inp.weight", -1, false},
        {"layers.13.ffn.gate.bias", "blk.13.exp_probs_b.bias", -1, false},
        {"layers.13.ffn.gate.bias_vl", "blk.13.exp_probs_b_vl.bias", -1, false},
        {"layers.15.ffn.shared_experts.w1.weight", "blk.15.ffn_gate_shexp.weight", -1, false},
        {"layers.15.ffn.shared_experts.w2.weight", "blk.15.ffn_down_shexp.weight", -1, false},
        {"layers.15.ffn.shared_experts.w3.weight", "blk.15.ffn_up_shexp.weight", -1, false},
        {"layers.15.ffn.shared_experts.w3.scale", "plumb.blk.15.ffn_up_shexp.scale", -1, false},
        {"layers.0.ffn.experts.0.w1.weight", "blk.0.ffn_gate_exps.weight", 0, false},
        {"layers.0.ffn.experts.0.w1.scale", "blk.0.ffn_gate_exps.weight", 0, false},
        {"layers.39.ffn.experts.383.w2.weight", "blk.39.ffn_down_exps.weight", 383, false},
        {"layers.39.ffn.experts.383.w3.scale", "blk.39.ffn_up_exps.weight", 383, false},
        {"layers.1.engram.embed.weight", "blk.1.engram_embd.weight", -1, true},
        {"layers.14.engram.embed.scale", "blk.14.engram_embd.weight", -1, true},
        {"layers.14.engram.wkv.weight", "blk.14.engram_kv.weight", -1, false},
        {"layers.14.engram.wkv.scale", "plumb.blk.14.engram_kv.scale", -1, false},
        {"layers.1.engram.q_weight", "blk.1.engram_q_norm.weight", -1, false},
        {"layers.1.engram.k_weight", "blk.1.engram_k_norm.weight", -1, false},
        {"mtp.0.attn.wq_a.weight", "mtp.0.attn_q_a.weight", -1, false},
        {"mtp.0.attn.wq_a.scale", "plumb.mtp.0.attn_q_a.scale", -1, false},
        {"mtp.1.ffn.gate.bias_vl", "mtp.1.exp_probs_b_vl.bias", -1, false},
        {"mtp.2.ffn.experts.127.w2.scale", "mtp.2.ffn_down_exps.weight", 127, false},
        {"mtp.2.hc_attn_fn", "mtp.2.hc_attn_fn.weight", -1, false},
        {"mtp.0.main_proj.weight", "mtp.0.main_proj.weight", -1, false},
        {"mtp.0.main_proj.scale", "plumb.mtp.0.main_proj.scale", -1, false},
        {"mtp.0.main_norm.weight", "mtp.0.main_norm.weight", -1, false},
        {"mtp.2.norm.weight", "mtp.2.norm.weight", -1, false},
        {"mtp.2.markov_head.embed.weight", "mtp.2.markov_head.embed.weight", -1, false},
        {"mtp.2.markov_head.head.weight", "mtp.2.markov_head.head.weight", -1, false},
        {"mtp.2.confidence_head.proj.weight", "mtp.2.confidence_head.proj.weight", -1, false},
        {"vision.patch_embed.proj.bias", "vision.patch_embed.proj.bias", -1, false},
        {"vision.blocks.31.attn.wqkv.weight", "vision.blocks.31.attn.wqkv.weight", -1, false},
        {"aligner.w2.weight", "aligner.w2.weight", -1, false},
        {"image_newline", "image_newline", -1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_gguf_name found;
        bool known = plumb__gguf_name_of(cases[i].released, &found);
        T_CHECK(known && !strcmp(found.name, cases[i].name), "%s: %s", cases[i].released,
                known ? found.name : "unknown");
        T_CHECK(found.expert == cases[i].expert && found.in_rows == cases[i].in_rows,
                "%s: expert %lld, in rows %d", cases[i].released, (long long)found.expert,
                found.in_rows);
    }
}

static void unknown_names(void) {
    static const char *const names[] = {
        "", "embed", "embed.scale", "norm", "head.weight.", "attn_norm.weight",
        "blk.0.attn_norm.weight",
        "layers.0.", "layers.00.attn_norm.weight", "layers.1000000000.attn_norm.weight",
        "layers.0.attn_norm", "layers.0.attn_norm.scale", "layers.0.hc_attn_fn.weight",
        "layers.0.attn.wq_a", "layers.0.attn.wq_a.bias", "layers.0.attn.wq_a.weight.weight",
        "layers.0.ffn.experts.w1.weight", "layers.0.ffn.experts.0.w4.weight",
        "layers.0.ffn.experts.01.w1.weight", "layers.0.ffn.experts.0.w1",
        "layers.0.ffn.experts.0.attn_norm.weight", "layers.0.w1.weight", "layers.0.main_proj.weight",
        "layers.39.norm.weight", "mtp.0.embed.weight", "mtp.2.head.weight", "mtp.attn_norm.weight",
        /* 64 bytes */
        "vision.blocks.0.a_name_that_has_just_one_byte_more_than_is_fine_",
    };
    plumb_gguf_name found;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        T_CHECK(!plumb__gguf_name_of(names[i], &found), "%s: %s", names[i], found.name);
}

/* ---- All tensors of a config ------------------------------------------------------------------ */

typedef struct named {
    plumb_gguf_name to;
    bool scale;
} named;

typedef struct list {
    named *items;
    int64_t count, capacity, unknown;
} list;

static int collect(void *user, const char *name, const plumb_tensor_spec *spec) {
    list *l = user;
    if (l->count == l->capacity) return 1;
    named *item = &l->items[l->count++];
    l->unknown += !plumb__gguf_name_of(name, &item->to);
    item->scale = spec->dtype == PLUMB_DTYPE_F8_E8M0;
    return 0;
}

/* By name, then expert, then codes before scales. */
static int in_order(const void *a, const void *b) {
    const named *left = a, *right = b;
    int order = strcmp(left->to.name, right->to.name);
    if (order) return order;
    if (left->to.expert != right->to.expert) return left->to.expert < right->to.expert ? -1 : 1;
    return left->scale - right->scale;
}

typedef struct shares {
    int64_t alone, stacked, in_rows;    /* distinct names of each kind */
    int64_t slices, halves;             /* tensors inside stacks and rows */
    int64_t longest, faults;            /* longest: bytes of a name */
} shares;

/* Names shared: a stack holds codes and scales of experts 0, 1, 2, ...; a table codes and scales. */
static shares count_shares(const list *l) {
    shares s = {0};
    for (int64_t first = 0, end; first < l->count; first = end) {
        const named *a = &l->items[first];
        for (end = first + 1; end < l->count && !strcmp(l->items[end].to.name, a->to.name);) end++;
        int64_t n = end - first;
        int64_t length = (int64_t)strlen(a->to.name);
        if (length > s.longest) s.longest = length;
        bool stacked = a->to.expert >= 0;
        s.alone += !stacked && !a->to.in_rows;
        s.stacked += stacked;
        s.in_rows += a->to.in_rows;
        if (stacked) s.slices += n;
        if (a->to.in_rows) s.halves += n;
        if (!stacked) s.faults += n != (a->to.in_rows ? 2 : 1);
        for (int64_t i = 0; i < n; i++) {
            const named *item = a + i;
            if (stacked) s.faults += item->to.expert != i / 2;
            if (n > 1) s.faults += item->scale != (i % 2 == 1);
        }
    }
    return s;
}

/* 43 blocks with three stacks each, 384 experts in 40 of them and 128 in the draft's; two tables;
 * 96085 - 92160 - 2304 - 4 tensors have a name for themselves. */
static void released_names(void) {
    enum { TENSORS = 96085 };
    static const shares expected = {.alone = 1617, .stacked = 129, .in_rows = 2,
                                    .slices = 6 * (40 * 384 + 3 * 128), .halves = 4,
                                    .longest = sizeof "plumb.blk.24.indexer.attn_q_b.scale" - 1};
    plumb_model_config config;
    plumb_error err = {0};
    T_CHECK(plumb__config_load(TEST_DATA "/config/released.json", NULL, NULL, &config, &err) ==
                PLUMB_OK, "%s", err.found);
    list l = {.items = calloc(TENSORS, sizeof *l.items), .capacity = TENSORS};
    T_TRUE(l.items && plumb__tensor_table_visit(&config, collect, &l) == 0);
    T_CHECK(l.count == TENSORS && l.unknown == 0, "%lld tensors, %lld unknown", (long long)l.count,
            (long long)l.unknown);
    qsort(l.items, (size_t)l.count, sizeof *l.items, in_order);
    shares s = count_shares(&l);
    T_CHECK(!memcmp(&s, &expected, sizeof s),
            "%lld alone, %lld stacks of %lld, %lld tables of %lld, %lld faults, longest %lld",
            (long long)s.alone, (long long)s.stacked, (long long)s.slices, (long long)s.in_rows,
            (long long)s.halves, (long long)s.faults, (long long)s.longest);
    free(l.items);
}

T_MAIN({"pairs", pairs}, {"unknown_names", unknown_names}, {"released_names", released_names})
