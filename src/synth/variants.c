/* Shapes are written down as differences: tiny first, the others from it.  The release has every
 * value of the published configuration; a cut keeps its first layers and what they refer to. */
#include "synth/variants.h"

#include <string.h>

static const char *const variant_names[PLUMB_SYNTH_VARIANTS] = {"tiny", "deep40", "dspark",
                                                                "vision", "release"};

const char *plumb__synth_variant_name(int variant) {
    return variant_names[variant];
}

int plumb__synth_variant_find(const char *name) {
    for (int i = 0; i < PLUMB_SYNTH_VARIANTS; i++)
        if (!strcmp(variant_names[i], name)) return i;
    return -1;
}

enum { RELEASE_LAYERS = 40, DRAFT_STAGES = 3, CUT_ENGRAM_VOCAB = 100000 };

static void set_ratios(plumb_model_config *shape, int64_t begin, int64_t end, int64_t ratio) {
    for (int64_t layer = begin; layer < end; layer++) shape->ratio[layer] = ratio;
}

static void mark_layers(bool *marks, const int *layers, int count) {
    memset(marks, 0, PLUMB_MAX_LAYERS * sizeof *marks);
    for (int i = 0; i < count; i++) marks[layers[i]] = true;
}

static plumb_model_config tiny_shape(void) {
    plumb_model_config shape = {
        .bos_id = 0,
        .eos_id = 1,
        .pad_id = 2,
        .image_id = 505,
        .vocab = 512,
        .hidden = 96,
        .layers = 6,
        .heads = 4,
        .head_dim = 96,
        .rope_dim = 32,
        .q_rank = 64,
        .o_rank = 32,
        .o_groups = 2,
        .window = 8,
        .index_heads = 4,
        .index_dim = 64,
        .index_topk = 8,
        .candidate_source = 3,
        .candidate_blocks = 5,
        .candidate_block_size = 4,
        .rope_theta = 10000,
        .compress_rope_theta = 160000,
        .yarn = {.factor = 16, .beta_fast = 32, .beta_slow = 1, .original_positions = 256},
        .max_positions = 4096,
        .inter = 96,
        .experts = 8,
        .experts_per_token = 2,
        .route_scale = 1.5F,
        .swiglu_limit = 1.5F,
        .norm_eps = 1e-20F,
        .hc_eps = 1e-6F,
        .sinkhorn_iterations = 20,
        .engram_layers = 1,
        .engram_layer = {1},
        .engram_ngram = 4,
        .engram_heads = 2,
        .engram_dim = 64,
        .engram_vocab = 200,
        .engram_pad_id = 2,
        .draft_noise_id = 500,
        .draft_rank = 32,
        .draft_experts = 4,
        .draft_experts_per_token = 2,
        .vision = {.layers = 0,
                   .hidden = 64,
                   .heads = 2,
                   .intermediate = 96,
                   .patch = 4,
                   .downsample = 3,
                   .max_tokens = 64,
                   .min_pixels = 400,
                   .rope_theta = 10000},
    };
    set_ratios(&shape, 1, 3, 2);
    set_ratios(&shape, 3, 6, 1);
    mark_layers(shape.is_kv_source, (const int[]){1, 3}, 2);
    mark_layers(shape.is_index_source, (const int[]){1, 3, 5}, 3);
    return shape;
}

static void add_draft_stages(plumb_model_config *shape) {
    shape->draft_stages = DRAFT_STAGES;
    shape->draft_block = 5;
    shape->draft_taps = DRAFT_STAGES;
    for (int i = 0; i < DRAFT_STAGES; i++)
        shape->draft_tap[i] = shape->layers - DRAFT_STAGES + i; /* the last layers */
    set_ratios(shape, shape->layers, shape->layers + DRAFT_STAGES, 0);
}

/* Which layers do what in the release; everything else is the caller's. */
static void set_release_topology(plumb_model_config *shape) {
    shape->layers = RELEASE_LAYERS;
    set_ratios(shape, 0, 2, 0);
    set_ratios(shape, 2, 20, 2);
    set_ratios(shape, 20, RELEASE_LAYERS, 1);
    mark_layers(shape->is_kv_source, (const int[]){2, 8, 14, 20}, 4);
    mark_layers(shape->is_index_source, (const int[]){2, 8, 14, 20, 24, 28, 32, 36}, 8);
    shape->candidate_source = 20;
    shape->engram_layers = 2;
    shape->engram_layer[0] = 1;
    shape->engram_layer[1] = 14;
}

static plumb_model_config deep40_shape(void) {
    plumb_model_config shape = tiny_shape();
    set_release_topology(&shape);
    shape.image_id = 1005;
    shape.vocab = 1024, shape.hidden = 128, shape.inter = 64;
    shape.head_dim = 64, shape.rope_dim = 16;
    shape.experts = 12, shape.experts_per_token = 3;
    shape.swiglu_limit = 10.0F;
    shape.window = 16;
    shape.index_dim = 32, shape.index_topk = 24;
    shape.candidate_blocks = 8, shape.candidate_block_size = 8;
    shape.engram_vocab = 300, shape.engram_heads = 3, shape.engram_dim = 32;
    shape.draft_noise_id = 1000;
    return shape;
}

static plumb_model_config release_shape(void) {
    plumb_model_config shape = tiny_shape();
    set_release_topology(&shape);
    shape.image_id = 129264;
    shape.vocab = 129280, shape.hidden = 5120, shape.inter = 2304;
    shape.heads = 64, shape.head_dim = 512, shape.rope_dim = 64;
    shape.q_rank = 1280, shape.o_rank = 1024, shape.o_groups = 8;
    shape.experts = 384, shape.experts_per_token = 6;
    shape.swiglu_limit = 10.0F;
    shape.window = 128;
    shape.index_heads = 32, shape.index_dim = 128, shape.index_topk = 512;
    shape.candidate_blocks = 2048, shape.candidate_block_size = 8;
    shape.max_positions = 1048576, shape.yarn.original_positions = 65536;
    shape.engram_vocab = 16000000, shape.engram_heads = 8, shape.engram_dim = 256;
    shape.draft_noise_id = 128799, shape.draft_rank = 256;
    shape.draft_experts = 128, shape.draft_experts_per_token = 3;
    shape.vision = (plumb_vision_config){.layers = 32,
                                         .hidden = 1024,
                                         .heads = 16,
                                         .intermediate = 2816,
                                         .patch = 14,
                                         .downsample = 3,
                                         .max_tokens = 1024,
                                         .min_pixels = 295936,
                                         .rope_theta = 10000};
    add_draft_stages(&shape);
    return shape;
}

/* Keeps the first layers and the parts that they refer to. */
static void cut_layers(plumb_model_config *shape, int64_t layers) {
    for (int64_t layer = layers; layer < PLUMB_MAX_LAYERS; layer++) {
        shape->ratio[layer] = 0;
        shape->is_kv_source[layer] = shape->is_index_source[layer] = false;
    }
    shape->layers = layers;
    if (shape->candidate_source >= layers) shape->candidate_source = -1;
    int64_t kept = 0;
    while (kept < shape->engram_layers && shape->engram_layer[kept] < layers) kept++;
    shape->engram_layers = kept;
    shape->draft_stages = shape->draft_block = shape->draft_taps = 0;
    shape->vision.layers = 0;
}

/* Rows of each Engram table: the sum of its buckets' sizes (model.md section 5.3). */
static void set_engram_rows(plumb_model_config *shape) {
    int64_t primes[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_ENGRAM_COLUMNS];
    plumb__config_engram_primes(shape, primes);
    int64_t columns = (shape->engram_ngram - 1) * shape->engram_heads;
    for (int64_t i = 0; i < shape->engram_layers; i++) {
        shape->engram_rows[i] = 0;
        for (int64_t c = 0; c < columns; c++) shape->engram_rows[i] += primes[i * columns + c];
    }
}

void plumb__variant_shape(const plumb_synth_options *options, plumb_model_config *shape) {
    switch (options->variant) {
    case PLUMB_SYNTH_DEEP40: *shape = deep40_shape(); break;
    case PLUMB_SYNTH_RELEASE: *shape = release_shape(); break;
    default: *shape = tiny_shape(); break;
    }
    if (options->variant == PLUMB_SYNTH_DSPARK) add_draft_stages(shape);
    if (options->variant == PLUMB_SYNTH_VISION) shape->vision.layers = 2;
    if (options->layers > 0) {
        cut_layers(shape, options->layers);
        if (options->payload == PLUMB_SYNTH_FULL) shape->engram_vocab = CUT_ENGRAM_VOCAB;
    }
    set_engram_rows(shape);
}

int64_t plumb__variant_depth(const plumb_synth_options *options) {
    plumb_synth_options whole = *options;
    whole.layers = 0;
    plumb_model_config shape;
    plumb__variant_shape(&whole, &shape);
    return shape.layers;
}
