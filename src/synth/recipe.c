/* One table from a tensor's role, its name without layer and expert numbers, to its statistics. */
#include "synth/recipe.h"

#include <ctype.h>
#include <string.h>

#include "synth/number_stream.h"

typedef enum spread_unit {
    ABSOLUTE, /* as given: the default */
    FAN_IN,   /* times columns^(-1/2): a unit input gives an output of this size */
    BRANCH    /* the same, divided among the layers: ends a sublayer */
} spread_unit;

typedef enum common_rows { NO_ROWS, SALIENT_ROWS, ALL_ROWS } common_rows;
typedef enum diagonal_blocks { NO_BLOCKS, PER_HEAD, PER_INDEX_HEAD } diagonal_blocks;

typedef struct recipe_row {
    const char *role;
    spread_unit unit;
    double spread, offset;
    double salient; /* factor on the first rows' spread; 0: none */
    common_rows common_rows;
    double common;
    diagonal_blocks blocks;
    double diagonal;
} recipe_row;

static const recipe_row recipe_table[] = {
    {"embed.weight", .spread = 0.7, .common_rows = ALL_ROWS, .common = 0.7},
    {"head.weight", .unit = FAN_IN, .spread = 2.5},
    {"norm.weight", .spread = 0.1, .offset = 1.0},

    {"attn_norm.weight", .spread = 0.1, .offset = 1.0},
    {"ffn_norm.weight", .spread = 0.1, .offset = 1.0},
    {"hc_attn_fn", .unit = FAN_IN, .spread = 1.0},
    {"hc_ffn_fn", .unit = FAN_IN, .spread = 1.0},
    {"hc_attn_base", .spread = 0.8},
    {"hc_ffn_base", .spread = 0.8},
    {"hc_attn_scale", .spread = 0.1, .offset = 0.9},
    {"hc_ffn_scale", .spread = 0.1, .offset = 0.9},

    {"attn.attn_sink", .spread = 1.0, .offset = 2.5},
    {"attn.wq_a.weight", .unit = FAN_IN, .spread = 1.0, .common_rows = SALIENT_ROWS,
     .common = 0.35},
    {"attn.q_norm.weight", .spread = 0.1, .offset = 1.0},
    {"attn.wq_b.weight", .unit = FAN_IN, .spread = 1.2, .blocks = PER_HEAD, .diagonal = 2.0},
    {"attn.wkv.weight", .unit = FAN_IN, .spread = 1.0},
    {"attn.kv_norm.weight", .spread = 0.1, .offset = 1.0},
    {"attn.wo_a.weight", .unit = FAN_IN, .spread = 1.5},
    {"attn.wo_b.weight", .unit = BRANCH, .spread = 1.8},

    {"attn.compressor.wkv.weight", .unit = FAN_IN, .spread = 1.0, .salient = 2.0},
    {"attn.compressor.wgate.weight", .unit = FAN_IN, .spread = 1.0},
    {"attn.compressor.norm.weight", .spread = 0.1, .offset = 1.0},
    {"attn.indexer.wk.weight", .unit = FAN_IN, .spread = 1.0, .salient = 0.3,
     .blocks = PER_INDEX_HEAD, .diagonal = 1.0},
    {"attn.indexer.k_norm.weight", .spread = 0.1, .offset = 1.0},
    {"attn.indexer.wq_b.weight", .unit = FAN_IN, .spread = 1.0, .blocks = PER_INDEX_HEAD,
     .diagonal = 1.0},
    {"attn.indexer.weights_proj.weight", .unit = FAN_IN, .spread = 1.0, .common_rows = ALL_ROWS,
     .common = 0.25},

    /* Wide, mostly negative logits: the last expert chosen then carries little weight. */
    {"ffn.gate.weight", .unit = FAN_IN, .spread = 4.0, .common_rows = ALL_ROWS, .common = -0.5},
    {"ffn.gate.bias", .spread = 0.3},
    {"ffn.gate.bias_vl", .spread = 0.3},
    {"ffn.experts.*.w1.weight", .unit = FAN_IN, .spread = 1.5},
    {"ffn.experts.*.w2.weight", .unit = BRANCH, .spread = 1.8},
    {"ffn.experts.*.w3.weight", .unit = FAN_IN, .spread = 1.5},
    {"ffn.shared_experts.w1.weight", .unit = FAN_IN, .spread = 1.5},
    {"ffn.shared_experts.w2.weight", .unit = BRANCH, .spread = 1.8},
    {"ffn.shared_experts.w3.weight", .unit = FAN_IN, .spread = 1.5},

    {"engram.embed.weight", .spread = 1.0},
    {"engram.wkv.weight", .unit = FAN_IN, .spread = 1.0},
    {"engram.q_weight", .spread = 0.2, .offset = 1.0},
    {"engram.k_weight", .spread = 0.2, .offset = 1.0},

    {"main_proj.weight", .unit = FAN_IN, .spread = 1.0},
    {"main_norm.weight", .spread = 0.1, .offset = 1.0},
    {"markov_head.embed.weight", .spread = 1.0},
    {"markov_head.head.weight", .unit = FAN_IN, .spread = 1.5},
    {"confidence_head.proj.weight", .unit = FAN_IN, .spread = 1.0},

    {"vision.patch_embed.proj.weight", .unit = FAN_IN, .spread = 1.0},
    {"vision.patch_embed.proj.bias", .spread = 0.1},
    {"vision.blocks.*.norm1.weight", .spread = 0.1, .offset = 1.0},
    {"vision.blocks.*.norm2.weight", .spread = 0.1, .offset = 1.0},
    {"vision.blocks.*.attn.wqkv.weight", .unit = FAN_IN, .spread = 1.3},
    {"vision.blocks.*.attn.wqkv.bias", .spread = 0.1},
    {"vision.blocks.*.attn.wo.weight", .unit = FAN_IN, .spread = 1.0},
    {"vision.blocks.*.attn.wo.bias", .spread = 0.1},
    {"vision.blocks.*.mlp.w1.weight", .unit = FAN_IN, .spread = 1.3},
    {"vision.blocks.*.mlp.w2.weight", .unit = FAN_IN, .spread = 1.0},
    {"vision.norm.weight", .spread = 0.1, .offset = 1.0},
    {"aligner.w1.weight", .unit = FAN_IN, .spread = 1.0},
    {"aligner.w1.bias", .spread = 0.1},
    {"aligner.w2.weight", .unit = FAN_IN, .spread = 1.7},
    {"aligner.w2.bias", .spread = 0.1},
    {"image_start", .spread = 1.0},
    {"image_end", .spread = 1.0},
    {"image_newline", .spread = 1.0},
};

static const char *skip_number(const char *text) {
    while (isdigit((unsigned char)*text)) text++;
    return text;
}

/* "layers.3.ffn.experts.17.w1.weight" -> "ffn.experts.*.w1.weight".  False if it does not fit. */
static bool role_of(const char *name, char *role, size_t size) {
    static const char *const blocks[] = {"layers.", "mtp."};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        size_t length = strlen(blocks[i]);
        if (strncmp(name, blocks[i], length)) continue;
        name = skip_number(name + length);
        if (*name == '.') name++;
        break;
    }
    size_t n = 0;
    while (*name && n + 1 < size) {
        bool starts_component = n > 0 && role[n - 1] == '.';
        if (starts_component && isdigit((unsigned char)*name)) {
            role[n++] = '*';
            name = skip_number(name);
        } else {
            role[n++] = *name++;
        }
    }
    role[n] = 0;
    return *name == 0;
}

static const recipe_row *find_row(const char *name) {
    char role[96];
    if (!role_of(name, role, sizeof role)) return NULL;
    for (size_t i = 0; i < sizeof recipe_table / sizeof recipe_table[0]; i++)
        if (!strcmp(recipe_table[i].role, role)) return &recipe_table[i];
    return NULL;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

bool plumb__recipe_find(const plumb_model_config *config, const char *name, int64_t rows,
                        int64_t columns, int64_t depth, plumb__recipe *recipe) {
    const recipe_row *row = find_row(name);
    if (!row) return false;
    double unit = row->unit == ABSOLUTE ? 1.0 : plumb__inverse_sqrt(columns);
    double share = row->unit == BRANCH ? row->spread / (double)depth : row->spread;
    *recipe = (plumb__recipe){
        .spread = share * unit,
        .salient_spread = row->salient != 0.0 ? row->salient * unit : share * unit,
        .offset = row->offset,
        .common = row->common * unit,
        .common_rows = row->common_rows == ALL_ROWS       ? rows
                       : row->common_rows == SALIENT_ROWS ? PLUMB_SALIENT
                                                          : 0,
        .diagonal = row->diagonal,
        .diagonal_width = row->blocks == PER_HEAD         ? config->head_dim
                          : row->blocks == PER_INDEX_HEAD ? config->index_dim
                                                          : 0,
        .varied_tiles = !ends_with(name, ".engram.embed.weight"),
        .zero_corner =
            !strcmp(name, "layers.0.attn.wq_a.weight") || ends_with(name, ".experts.0.w1.weight"),
        .absolute = ends_with(name, "_scale"),
        .mixing_base = ends_with(name, "_base"),
    };
    return true;
}
