/* The table of tensors.
 *
 * A full name is a place ("layers.7.", "mtp.0.ffn.experts.12.", "vision.blocks.3." or nothing), a
 * stem from the table and, for quantised matrices, ".weight" or ".scale".  Each row of the table
 * says in which places its stem occurs and how the matrix [rows, columns] is stored. */
#include "format/tensor_table.h"

#include <stdio.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------------------ */

typedef enum place_kind { TOP, BLOCK, EXPERT, VISION_TOP, VISION_BLOCK } place_kind;

/* In which blocks (layers and draft stages) a row occurs. */
typedef enum condition_kind {
    ALWAYS,
    KV_SOURCE,
    KV_SOURCE_PAIRED, /* ratio above 1: the compressor gates */
    INDEX_SOURCE,
    ENGRAM,
    FIRST_STAGE,
    LAST_STAGE
} condition_kind;

typedef enum storage_kind {
    BF16_VECTOR, /* [rows] */
    F32_VECTOR,
    BF16_MATRIX, /* [rows, columns] */
    F32_MATRIX,
    FP8_TILES,   /* .weight e4m3 [rows, columns], .scale ue8m0 a tile of 32 x 32 */
    FP8_ROWS,    /* the same, .scale a group of 32 along a row */
    FP4_ROWS     /* .weight e2m1 pairs [rows, columns/2], .scale a group of 32 along a row */
} storage_kind;

/* Sizes that shapes are made of. */
typedef enum extent_kind {
    ONE,
    VOCAB,
    HIDDEN,
    COPIES,          /* hyper-connection copies */
    COPIES_HIDDEN,
    MIX,             /* pre, post and comb coefficients of one mix */
    THREE,
    HEADS,
    HEAD_DIM,
    QUERY,           /* heads * head_dim */
    QUERY_RANK,
    GROUP_QUERY,     /* query elements of one output group */
    OUT_RANKS,       /* o_groups * o_rank */
    EXPERTS,         /* of the block: draft stages have fewer */
    INTER,
    INDEX_HEADS,
    INDEX_DIM,
    INDEX_QUERY,     /* index_heads * index_dim */
    ENGRAM_ROWS,     /* of the layer's table */
    ENGRAM_DIM,
    ENGRAM_LOOKUP,   /* all columns of one lookup, side by side */
    ENGRAM_KV,       /* a key for each copy and one value */
    TAPS_HIDDEN,
    DRAFT_RANK,
    DRAFT_CONFIDENCE,
    V_HIDDEN,
    V_QKV,
    V_INTER,
    V_GATE_UP,
    V_PATCH,
    V_CELLS          /* downsample^2 patches side by side */
} extent_kind;

typedef struct table_row {
    const char *stem;
    place_kind place;
    condition_kind condition;
    storage_kind storage;
    extent_kind rows, columns;
    plumb_tensor_class top_class; /* of TOP rows; elsewhere the place decides, but for the tables */
} table_row;

static const table_row table[] = {
    {"embed.weight", TOP, ALWAYS, BF16_MATRIX, VOCAB, HIDDEN, PLUMB_CLASS_EMBED},
    {"norm.weight", TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, PLUMB_CLASS_DENSE},
    {"head.weight", TOP, ALWAYS, BF16_MATRIX, VOCAB, HIDDEN, PLUMB_CLASS_HEAD},

    {"attn_norm.weight", BLOCK, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"attn.wq_a", BLOCK, ALWAYS, FP8_TILES, QUERY_RANK, HIDDEN, 0},
    {"attn.q_norm.weight", BLOCK, ALWAYS, BF16_VECTOR, QUERY_RANK, ONE, 0},
    {"attn.wq_b", BLOCK, ALWAYS, FP8_TILES, QUERY, QUERY_RANK, 0},
    {"attn.wkv", BLOCK, ALWAYS, FP8_TILES, HEAD_DIM, HIDDEN, 0},
    {"attn.kv_norm.weight", BLOCK, ALWAYS, BF16_VECTOR, HEAD_DIM, ONE, 0},
    {"attn.attn_sink", BLOCK, ALWAYS, F32_VECTOR, HEADS, ONE, 0},
    {"attn.wo_a", BLOCK, ALWAYS, FP8_TILES, OUT_RANKS, GROUP_QUERY, 0},
    {"attn.wo_b", BLOCK, ALWAYS, FP8_TILES, HIDDEN, OUT_RANKS, 0},
    {"attn.compressor.wkv.weight", BLOCK, KV_SOURCE, BF16_MATRIX, HEAD_DIM, HIDDEN, 0},
    {"attn.compressor.wgate.weight", BLOCK, KV_SOURCE_PAIRED, BF16_MATRIX, HEAD_DIM, HIDDEN, 0},
    {"attn.compressor.norm.weight", BLOCK, KV_SOURCE, BF16_VECTOR, HEAD_DIM, ONE, 0},
    {"attn.indexer.wk.weight", BLOCK, KV_SOURCE, BF16_MATRIX, INDEX_DIM, HEAD_DIM, 0},
    {"attn.indexer.k_norm.weight", BLOCK, KV_SOURCE, BF16_VECTOR, INDEX_DIM, ONE, 0},
    {"attn.indexer.wq_b", BLOCK, INDEX_SOURCE, FP8_TILES, INDEX_QUERY, QUERY_RANK, 0},
    {"attn.indexer.weights_proj.weight", BLOCK, INDEX_SOURCE, BF16_MATRIX, INDEX_HEADS, HIDDEN, 0},
    {"hc_attn_fn", BLOCK, ALWAYS, F32_MATRIX, MIX, COPIES_HIDDEN, 0},
    {"hc_attn_base", BLOCK, ALWAYS, F32_VECTOR, MIX, ONE, 0},
    {"hc_attn_scale", BLOCK, ALWAYS, F32_VECTOR, THREE, ONE, 0},
    {"hc_ffn_fn", BLOCK, ALWAYS, F32_MATRIX, MIX, COPIES_HIDDEN, 0},
    {"hc_ffn_base", BLOCK, ALWAYS, F32_VECTOR, MIX, ONE, 0},
    {"hc_ffn_scale", BLOCK, ALWAYS, F32_VECTOR, THREE, ONE, 0},
    {"ffn_norm.weight", BLOCK, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"ffn.gate.weight", BLOCK, ALWAYS, BF16_MATRIX, EXPERTS, HIDDEN, 0},
    {"ffn.gate.bias", BLOCK, ALWAYS, F32_VECTOR, EXPERTS, ONE, 0},
    {"ffn.gate.bias_vl", BLOCK, ALWAYS, F32_VECTOR, EXPERTS, ONE, 0},
    {"ffn.shared_experts.w1", BLOCK, ALWAYS, FP8_TILES, INTER, HIDDEN, 0},
    {"ffn.shared_experts.w2", BLOCK, ALWAYS, FP8_TILES, HIDDEN, INTER, 0},
    {"ffn.shared_experts.w3", BLOCK, ALWAYS, FP8_TILES, INTER, HIDDEN, 0},
    {"engram.embed", BLOCK, ENGRAM, FP8_ROWS, ENGRAM_ROWS, ENGRAM_DIM, 0},
    {"engram.wkv", BLOCK, ENGRAM, FP8_TILES, ENGRAM_KV, ENGRAM_LOOKUP, 0},
    {"engram.q_weight", BLOCK, ENGRAM, BF16_MATRIX, COPIES, HIDDEN, 0},
    {"engram.k_weight", BLOCK, ENGRAM, BF16_MATRIX, COPIES, HIDDEN, 0},
    {"main_proj", BLOCK, FIRST_STAGE, FP8_TILES, HIDDEN, TAPS_HIDDEN, 0},
    {"main_norm.weight", BLOCK, FIRST_STAGE, BF16_VECTOR, HIDDEN, ONE, 0},
    {"norm.weight", BLOCK, LAST_STAGE, BF16_VECTOR, HIDDEN, ONE, 0},
    {"markov_head.embed.weight", BLOCK, LAST_STAGE, BF16_MATRIX, VOCAB, DRAFT_RANK, 0},
    {"markov_head.head.weight", BLOCK, LAST_STAGE, BF16_MATRIX, VOCAB, DRAFT_RANK, 0},
    {"confidence_head.proj.weight", BLOCK, LAST_STAGE, BF16_MATRIX, ONE, DRAFT_CONFIDENCE, 0},

    {"w1", EXPERT, ALWAYS, FP4_ROWS, INTER, HIDDEN, 0},
    {"w2", EXPERT, ALWAYS, FP4_ROWS, HIDDEN, INTER, 0},
    {"w3", EXPERT, ALWAYS, FP4_ROWS, INTER, HIDDEN, 0},

    {"vision.patch_embed.proj.weight", VISION_TOP, ALWAYS, BF16_MATRIX, V_HIDDEN, V_PATCH, 0},
    {"vision.patch_embed.proj.bias", VISION_TOP, ALWAYS, BF16_VECTOR, V_HIDDEN, ONE, 0},
    {"norm1.weight", VISION_BLOCK, ALWAYS, BF16_VECTOR, V_HIDDEN, ONE, 0},
    {"attn.wqkv.weight", VISION_BLOCK, ALWAYS, BF16_MATRIX, V_QKV, V_HIDDEN, 0},
    {"attn.wqkv.bias", VISION_BLOCK, ALWAYS, BF16_VECTOR, V_QKV, ONE, 0},
    {"attn.wo.weight", VISION_BLOCK, ALWAYS, BF16_MATRIX, V_HIDDEN, V_HIDDEN, 0},
    {"attn.wo.bias", VISION_BLOCK, ALWAYS, BF16_VECTOR, V_HIDDEN, ONE, 0},
    {"norm2.weight", VISION_BLOCK, ALWAYS, BF16_VECTOR, V_HIDDEN, ONE, 0},
    {"mlp.w1.weight", VISION_BLOCK, ALWAYS, BF16_MATRIX, V_GATE_UP, V_HIDDEN, 0},
    {"mlp.w2.weight", VISION_BLOCK, ALWAYS, BF16_MATRIX, V_HIDDEN, V_INTER, 0},
    {"vision.norm.weight", VISION_TOP, ALWAYS, BF16_VECTOR, V_HIDDEN, ONE, 0},
    {"aligner.w1.weight", VISION_TOP, ALWAYS, BF16_MATRIX, HIDDEN, V_CELLS, 0},
    {"aligner.w1.bias", VISION_TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"aligner.w2.weight", VISION_TOP, ALWAYS, BF16_MATRIX, HIDDEN, HIDDEN, 0},
    {"aligner.w2.bias", VISION_TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"image_start", VISION_TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"image_end", VISION_TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
    {"image_newline", VISION_TOP, ALWAYS, BF16_VECTOR, HIDDEN, ONE, 0},
};
enum { TABLE_ROWS = sizeof table / sizeof table[0] };

/* ---- From a row and a place to a spec -------------------------------------------------------- */

typedef struct place {
    place_kind kind;
    int64_t block;  /* layer; draft stages follow the backbone's; or vision block; -1: none */
    int64_t expert; /* -1: none */
} place;

static bool is_draft(const plumb_model_config *config, place where) {
    return (where.kind == BLOCK || where.kind == EXPERT) && where.block >= config->layers;
}

static bool occurs(const plumb_model_config *config, const table_row *row, place where) {
    int64_t block = where.block;
    if (row->place != where.kind) return false;
    if (where.kind != BLOCK) return true; /* only blocks differ from each other */
    switch (row->condition) {
    case ALWAYS: return true;
    case KV_SOURCE: return config->is_kv_source[block];
    case KV_SOURCE_PAIRED: return config->is_kv_source[block] && config->ratio[block] > 1;
    case INDEX_SOURCE: return config->is_index_source[block];
    case ENGRAM: return plumb__config_engram_index(config, block) >= 0;
    case FIRST_STAGE: return block == config->layers;
    case LAST_STAGE:
        return is_draft(config, where) && block == config->layers + config->draft_stages - 1;
    }
    return false;
}

static int64_t extent_of(const plumb_model_config *c, extent_kind extent, place where) {
    const plumb_vision_config *v = &c->vision;
    switch (extent) {
    case ONE: return 1;
    case VOCAB: return c->vocab;
    case HIDDEN: return c->hidden;
    case COPIES: return PLUMB_HC;
    case COPIES_HIDDEN: return PLUMB_HC * c->hidden;
    case MIX: return (2 + PLUMB_HC) * PLUMB_HC;
    case THREE: return 3;
    case HEADS: return c->heads;
    case HEAD_DIM: return c->head_dim;
    case QUERY: return c->heads * c->head_dim;
    case QUERY_RANK: return c->q_rank;
    case GROUP_QUERY: return c->heads / c->o_groups * c->head_dim;
    case OUT_RANKS: return c->o_groups * c->o_rank;
    case EXPERTS: return is_draft(c, where) ? c->draft_experts : c->experts;
    case INTER: return c->inter;
    case INDEX_HEADS: return c->index_heads;
    case INDEX_DIM: return c->index_dim;
    case INDEX_QUERY: return c->index_heads * c->index_dim;
    case ENGRAM_ROWS: return c->engram_rows[plumb__config_engram_index(c, where.block)];
    case ENGRAM_DIM: return c->engram_dim;
    case ENGRAM_LOOKUP: return (c->engram_ngram - 1) * c->engram_heads * c->engram_dim;
    case ENGRAM_KV: return (PLUMB_HC + 1) * c->hidden;
    case TAPS_HIDDEN: return c->draft_taps * c->hidden;
    case DRAFT_RANK: return c->draft_rank;
    case DRAFT_CONFIDENCE: return c->hidden + c->draft_rank;
    case V_HIDDEN: return v->hidden;
    case V_QKV: return 3 * v->hidden;
    case V_INTER: return v->intermediate;
    case V_GATE_UP: return 2 * v->intermediate;
    case V_PATCH: return 3 * v->patch * v->patch;
    case V_CELLS: return v->downsample * v->downsample * v->hidden;
    }
    return 0;
}

static plumb_tensor_class class_of(const plumb_model_config *config, const table_row *row,
                                   place where) {
    bool draft = is_draft(config, where);
    switch (where.kind) {
    case TOP: return row->top_class;
    case EXPERT: return draft ? PLUMB_CLASS_DRAFT_EXPERT : PLUMB_CLASS_EXPERT;
    case BLOCK:
        if (row->storage == FP8_ROWS) return PLUMB_CLASS_ENGRAM_TABLE;
        return draft ? PLUMB_CLASS_DRAFT_DENSE : PLUMB_CLASS_DENSE;
    case VISION_TOP:
    case VISION_BLOCK: return PLUMB_CLASS_VISION;
    }
    return PLUMB_CLASS_DENSE;
}

static bool is_quantised(storage_kind storage) { return storage >= FP8_TILES; }

/* `scale`: the companion of a quantised matrix. */
static plumb_tensor_spec spec_of(const plumb_model_config *config, const table_row *row,
                                 place where, bool scale) {
    plumb_tensor_spec spec = {.rank = 2};
    int64_t rows = extent_of(config, row->rows, where);
    int64_t columns = extent_of(config, row->columns, where);
    int64_t groups = (columns + 31) / 32;
    switch (row->storage) {
    case BF16_VECTOR:
    case F32_VECTOR:
        spec.rank = 1;
        spec.dtype = row->storage == BF16_VECTOR ? PLUMB_DTYPE_BF16 : PLUMB_DTYPE_F32;
        break;
    case BF16_MATRIX: spec.dtype = PLUMB_DTYPE_BF16; break;
    case F32_MATRIX: spec.dtype = PLUMB_DTYPE_F32; break;
    case FP8_TILES:
        if (scale) rows = (rows + 31) / 32;
        spec.dtype = PLUMB_DTYPE_F8_E4M3;
        break;
    case FP8_ROWS: spec.dtype = PLUMB_DTYPE_F8_E4M3; break;
    case FP4_ROWS:
        columns /= 2;
        spec.dtype = PLUMB_DTYPE_I8;
        break;
    }
    if (scale) {
        columns = groups;
        spec.dtype = PLUMB_DTYPE_F8_E8M0;
    }
    spec.shape[0] = rows;
    spec.shape[1] = columns;
    spec.bytes = rows * columns * plumb__dtype_bytes(spec.dtype);
    spec.tensor_class = (uint8_t)class_of(config, row, where);
    return spec;
}

/* ---- Looking up a name ----------------------------------------------------------------------- */

const char *plumb__take_number(const char *name, const char *prefix, int64_t *number) {
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0) return NULL;
    const char *at = name + length;
    int64_t value = 0;
    int digits = 0;
    while (*at >= '0' && *at <= '9' && digits < 9) {
        value = value * 10 + (*at++ - '0');
        digits++;
    }
    bool leading_zero = digits > 1 && name[length] == '0';
    if (digits == 0 || leading_zero || *at != '.') return NULL;
    *number = value;
    return at + 1;
}

static bool starts_with(const char *name, const char *prefix) {
    return !strncmp(name, prefix, strlen(prefix));
}

/* The row of the place whose stem and ending make up `rest`. */
static bool match(const plumb_model_config *config, place where, const char *rest,
                  plumb_tensor_spec *spec) {
    for (int i = 0; i < TABLE_ROWS; i++) {
        const table_row *row = &table[i];
        size_t length = strlen(row->stem);
        if (row->place != where.kind || strncmp(row->stem, rest, length) != 0) continue;
        const char *ending = rest + length;
        bool scale = !strcmp(ending, ".scale");
        bool fits = is_quantised(row->storage) ? scale || !strcmp(ending, ".weight") : !*ending;
        if (!fits || !occurs(config, row, where)) continue;
        *spec = spec_of(config, row, where, scale && is_quantised(row->storage));
        return true;
    }
    return false;
}

static plumb_tensor_lookup find_in_block(const plumb_model_config *config, int64_t block,
                                         const char *rest, plumb_tensor_spec *spec) {
    place where = {BLOCK, block, -1};
    const char *in_expert = plumb__take_number(rest, "ffn.experts.", &where.expert);
    if (in_expert) {
        where.kind = EXPERT;
        if (where.expert >= extent_of(config, EXPERTS, where)) return PLUMB_TENSOR_UNKNOWN;
        rest = in_expert;
    }
    return match(config, where, rest, spec) ? PLUMB_TENSOR_NEEDED : PLUMB_TENSOR_UNKNOWN;
}

plumb_tensor_lookup plumb__tensor_table_find(const plumb_model_config *config, const char *name,
                                             plumb_tensor_spec *spec) {
    int64_t number;
    const char *rest = plumb__take_number(name, "layers.", &number);
    if (rest) {
        if (number >= config->layers) return PLUMB_TENSOR_UNKNOWN;
        return find_in_block(config, number, rest, spec);
    }
    rest = plumb__take_number(name, "mtp.", &number);
    if (rest) {
        if (config->draft_stages == 0) return PLUMB_TENSOR_IGNORED;
        if (number >= config->draft_stages) return PLUMB_TENSOR_UNKNOWN;
        if (!strcmp(rest, "embed.weight") || !strcmp(rest, "head.weight"))
            return PLUMB_TENSOR_IGNORED;
        return find_in_block(config, config->layers + number, rest, spec);
    }
    if (starts_with(name, "vision.") || starts_with(name, "aligner.") ||
        starts_with(name, "image_")) {
        if (config->vision.layers == 0) return PLUMB_TENSOR_IGNORED;
        place where = {VISION_TOP, -1, -1};
        rest = plumb__take_number(name, "vision.blocks.", &where.block);
        if (rest) {
            if (where.block >= config->vision.layers) return PLUMB_TENSOR_UNKNOWN;
            where.kind = VISION_BLOCK;
        }
        return match(config, where, rest ? rest : name, spec) ? PLUMB_TENSOR_NEEDED
                                                              : PLUMB_TENSOR_UNKNOWN;
    }
    place top = {TOP, -1, -1};
    return match(config, top, name, spec) ? PLUMB_TENSOR_NEEDED : PLUMB_TENSOR_UNKNOWN;
}

/* ---- Visiting all of them -------------------------------------------------------------------- */

typedef struct visit {
    const plumb_model_config *config;
    plumb_tensor_visitor visitor;
    void *user;
    int stopped;
} visit;

static void visit_row(visit *v, const table_row *row, place where, const char *prefix) {
    static const char *const endings[] = {".weight", ".scale"};
    bool quantised = is_quantised(row->storage);
    for (int part = 0; part < (quantised ? 2 : 1) && !v->stopped; part++) {
        char name[192]; /* the longest prefix and stem make 70 */
        (void)snprintf(name, sizeof name, "%s%s%s", prefix, row->stem,
                       quantised ? endings[part] : "");
        plumb_tensor_spec spec = spec_of(v->config, row, where, part == 1);
        v->stopped = v->visitor(v->user, name, &spec);
    }
}

/* All rows of one place. */
static void visit_place(visit *v, place where, const char *prefix) {
    for (int i = 0; i < TABLE_ROWS && !v->stopped; i++)
        if (occurs(v->config, &table[i], where)) visit_row(v, &table[i], where, prefix);
}

/* The embedding before the layers; the final norm and the head after them. */
static void visit_top(visit *v, bool embedding) {
    const place top = {TOP, -1, -1};
    for (int i = 0; i < TABLE_ROWS && !v->stopped; i++)
        if (table[i].place == TOP && (table[i].top_class == PLUMB_CLASS_EMBED) == embedding)
            visit_row(v, &table[i], top, "");
}

static void visit_block(visit *v, int64_t block) {
    int64_t layers = v->config->layers;
    place where = {BLOCK, block, -1};
    char prefix[64], expert[128];
    (void)snprintf(prefix, sizeof prefix, "%s.%lld.", block < layers ? "layers" : "mtp",
                   (long long)(block < layers ? block : block - layers));
    visit_place(v, where, prefix);
    int64_t experts = extent_of(v->config, EXPERTS, where);
    where.kind = EXPERT;
    for (where.expert = 0; where.expert < experts && !v->stopped; where.expert++) {
        (void)snprintf(expert, sizeof expert, "%sffn.experts.%lld.", prefix,
                       (long long)where.expert);
        visit_place(v, where, expert);
    }
}

static void visit_vision(visit *v) {
    place where = {VISION_BLOCK, 0, -1};
    char prefix[64];
    for (; where.block < v->config->vision.layers && !v->stopped; where.block++) {
        (void)snprintf(prefix, sizeof prefix, "vision.blocks.%lld.", (long long)where.block);
        visit_place(v, where, prefix);
    }
    const place top = {VISION_TOP, -1, -1};
    if (v->config->vision.layers > 0) visit_place(v, top, "");
}

int plumb__tensor_table_visit(const plumb_model_config *config, plumb_tensor_visitor visitor,
                              void *user) {
    visit v = {.config = config, .visitor = visitor, .user = user};
    visit_top(&v, true);
    for (int64_t i = 0; i < config->layers && !v.stopped; i++) visit_block(&v, i);
    visit_top(&v, false);
    for (int64_t i = 0; i < config->draft_stages && !v.stopped; i++)
        visit_block(&v, config->layers + i);
    visit_vision(&v);
    return v.stopped;
}
