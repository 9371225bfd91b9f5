/* Names in a converted file.
 *
 * A released name is a place ("layers.7.", "mtp.0.", or nothing) and a stem, and so is its new one;
 * the tables below pair the stems.  Names that begin with "vision.", "aligner." or "image_" stay as
 * they are: no convention has others for them inside a model's own file. */
#include "format/gguf_names.h"

#include "format/gguf.h"
#include "format/tensor_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum naming_kind {
    WHOLE,   /* both stems with their endings */
    MATRIX,  /* a quantised matrix: .weight, and .scale under "plumb." */
    STACKED, /* one of a layer's experts: slices of one tensor, .weight and .scale alike */
    ROWS     /* an Engram table: .weight and .scale in one tensor */
} naming_kind;

typedef struct naming {
    const char *released, *stem;
    naming_kind kind;
} naming;

static const naming top_names[] = {
    {"embed.weight", "token_embd.weight", WHOLE},
    {"norm.weight", "output_norm.weight", WHOLE},
    {"head.weight", "output.weight", WHOLE},
    {0},
};

static const naming block_names[] = {
    {"hc_attn_fn", "hc_attn_fn.weight", WHOLE},
    {"hc_attn_base", "hc_attn_base.weight", WHOLE},
    {"hc_attn_scale", "hc_attn_scale.weight", WHOLE},
    {"hc_ffn_fn", "hc_ffn_fn.weight", WHOLE},
    {"hc_ffn_base", "hc_ffn_base.weight", WHOLE},
    {"hc_ffn_scale", "hc_ffn_scale.weight", WHOLE},
    {"attn_norm.weight", "attn_norm.weight", WHOLE},
    {"attn.attn_sink", "attn_sinks.weight", WHOLE},
    {"attn.wq_a", "attn_q_a", MATRIX},
    {"attn.q_norm.weight", "attn_q_a_norm.weight", WHOLE},
    {"attn.wq_b", "attn_q_b", MATRIX},
    {"attn.wkv", "attn_kv", MATRIX},
    {"attn.kv_norm.weight", "attn_kv_a_norm.weight", WHOLE},
    {"attn.wo_a", "attn_output_a", MATRIX},
    {"attn.wo_b", "attn_output_b", MATRIX},
    {"attn.compressor.wkv.weight", "attn_compressor_kv.weight", WHOLE},
    {"attn.compressor.wgate.weight", "attn_compressor_gate.weight", WHOLE},
    {"attn.compressor.norm.weight", "attn_compressor_norm.weight", WHOLE},
    {"attn.indexer.wk.weight", "indexer.attn_k.weight", WHOLE},
    {"attn.indexer.k_norm.weight", "indexer.k_norm.weight", WHOLE},
    {"attn.indexer.wq_b", "indexer.attn_q_b", MATRIX},
    {"attn.indexer.weights_proj.weight", "indexer.proj.weight", WHOLE},
    {"ffn_norm.weight", "ffn_norm.weight", WHOLE},
    {"ffn.gate.weight", "ffn_gate_inp.weight", WHOLE},
    {"ffn.gate.bias", "exp_probs_b.bias", WHOLE},
    {"ffn.gate.bias_vl", "exp_probs_b_vl.bias", WHOLE},
    {"ffn.shared_experts.w1", "ffn_gate_shexp", MATRIX},
    {"ffn.shared_experts.w2", "ffn_down_shexp", MATRIX},
    {"ffn.shared_experts.w3", "ffn_up_shexp", MATRIX},
    {"engram.embed", "engram_embd", ROWS},
    {"engram.wkv", "engram_kv", MATRIX},
    {"engram.q_weight", "engram_q_norm.weight", WHOLE},
    {"engram.k_weight", "engram_k_norm.weight", WHOLE},
    {0},
};

/* The draft's own. */
static const naming draft_names[] = {
    {"main_proj", "main_proj", MATRIX},
    {"main_norm.weight", "main_norm.weight", WHOLE},
    {"norm.weight", "norm.weight", WHOLE},
    {"markov_head.embed.weight", "markov_head.embed.weight", WHOLE},
    {"markov_head.head.weight", "markov_head.head.weight", WHOLE},
    {"confidence_head.proj.weight", "confidence_head.proj.weight", WHOLE},
    {0},
};

/* After "ffn.experts.E.". */
static const naming expert_names[] = {
    {"w1", "ffn_gate_exps", STACKED},
    {"w2", "ffn_down_exps", STACKED},
    {"w3", "ffn_up_exps", STACKED},
    {0},
};

/* False when it does not fit. */
static bool set_name(plumb_gguf_name *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool set_name(plumb_gguf_name *name, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(name->name, sizeof name->name, format, list);
    va_end(list);
    return length > 0 && length <= PLUMB_GGUF_MOST_NAME;
}

/* The row whose stem and ending make up `rest`. */
static bool name_by(const naming *rows, const char *place, const char *rest,
                    plumb_gguf_name *name) {
    for (; rows->released; rows++) {
        size_t length = strlen(rows->released);
        if (strncmp(rest, rows->released, length) != 0) continue;
        const char *ending = rest + length;
        bool scale = !strcmp(ending, ".scale");
        bool fits = rows->kind == WHOLE ? !*ending : scale || !strcmp(ending, ".weight");
        if (!fits) continue;
        name->in_rows = rows->kind == ROWS;
        if (rows->kind == WHOLE) return set_name(name, "%s%s", place, rows->stem);
        if (rows->kind == MATRIX && scale)
            return set_name(name, "plumb.%s%s.scale", place, rows->stem);
        return set_name(name, "%s%s.weight", place, rows->stem);
    }
    return false;
}

/* Of layer or draft stage `block`. */
static bool name_in_block(bool draft, int64_t block, const char *rest, plumb_gguf_name *name) {
    char place[32];
    (void)snprintf(place, sizeof place, "%s.%lld.", draft ? "mtp" : "blk", (long long)block);
    int64_t expert;
    const char *in_expert = plumb__take_number(rest, "ffn.experts.", &expert);
    if (in_expert) {
        name->expert = expert;
        return name_by(expert_names, place, in_expert, name);
    }
    return name_by(block_names, place, rest, name) ||
           (draft && name_by(draft_names, place, rest, name));
}

static bool keeps_its_name(const char *released) {
    return !strncmp(released, "vision.", 7) || !strncmp(released, "aligner.", 8) ||
           !strncmp(released, "image_", 6);
}

bool plumb__gguf_name_of(const char *released, plumb_gguf_name *name) {
    *name = (plumb_gguf_name){.expert = -1};
    int64_t block;
    const char *rest = plumb__take_number(released, "layers.", &block);
    if (rest) return name_in_block(false, block, rest, name);
    rest = plumb__take_number(released, "mtp.", &block);
    if (rest) return name_in_block(true, block, rest, name);
    if (keeps_its_name(released)) return set_name(name, "%s", released);
    return name_by(top_names, "", released, name);
}
