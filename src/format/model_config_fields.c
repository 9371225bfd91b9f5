/* The table of config fields.
 *
 * The ranges are wide: what they promise is that no product of sizes leaves int64_t (the largest,
 * an Engram table of 2^41 rows of 2^16 bytes, stays below 2^58) and that nothing divides by zero.
 * Rules between fields are in model_config_check.c. */
#include "format/model_config_fields.h"

#include <float.h>

#define AT(member) offsetof(plumb_config_reading, member)
#define OF(member) offsetof(plumb_config_reading, config.member)

#define INTEGER(section, key, low, high, member) \
    {section, key, PLUMB_CONFIG_INTEGER, low, high, OF(member), 1, 0, 0, NULL, NULL}
#define MULTIPLE_OF_32(section, key, high, member) \
    {section, key, PLUMB_CONFIG_INTEGER, 32, high, OF(member), 32, 0, 0, NULL, NULL}
#define EITHER_NAME(section, key, alias, low, high, member) \
    {section, key, PLUMB_CONFIG_INTEGER, low, high, OF(member), 1, 0, 0, NULL, alias}
#define REAL(section, key, kind, low, high, member) \
    {section, key, kind, low, high, OF(member), 1, 0, 0, NULL, NULL}
#define LIST(key, low, high, max, member, count) \
    {PLUMB_CONFIG_TEXT, key, PLUMB_CONFIG_INTEGERS, low, high, member, 1, max, count, NULL, NULL}
#define IS_TEXT(section, key, text) \
    {section, key, PLUMB_CONFIG_IS_TEXT, 0, 0, 0, 1, 0, 0, text, NULL}
#define IS(section, key, kind, value, count) \
    {section, key, kind, value, 0, 0, 1, count, 0, NULL, NULL}
#define OBJECT(section, key) {section, key, PLUMB_CONFIG_OBJECT, 0, 0, 0, 1, 0, 0, NULL, NULL}
#define UNUSED(section, key) {section, key, PLUMB_CONFIG_UNUSED, 0, 0, 0, 1, 0, 0, NULL, NULL}

/* Bounds with a meaning elsewhere. */
#define MAX_IDS (1 << 24)     /* vocabulary */
#define MAX_WIDTH (1 << 16)   /* one dimension of a weight */
#define MAX_COUNT (1 << 12)   /* heads, groups, experts */
#define MAX_POSITION (1 << 30)
#define MAX_PRIME INT32_MAX   /* keeps the search for primes short */

const char *const plumb__config_section_names[PLUMB_CONFIG_SECTIONS] = {
    [PLUMB_CONFIG_ROOT] = "",
    [PLUMB_CONFIG_QUANTIZATION] = "quantization_config",
    [PLUMB_CONFIG_TEXT] = "text_config",
    [PLUMB_CONFIG_ROPE_SCALING] = "text_config.rope_scaling",
    [PLUMB_CONFIG_VISION] = "vision_config",
};

const plumb_config_field plumb__config_fields[] = {
    {PLUMB_CONFIG_ROOT, "architectures", PLUMB_CONFIG_IS_TEXTS, 0, 0, 0, 1, 1, 0,
     "DeepseekV41ForCausalLM", NULL},
    IS_TEXT(PLUMB_CONFIG_ROOT, "model_type", "deepseek_v41"),
    IS_TEXT(PLUMB_CONFIG_ROOT, "dtype", "bfloat16"),
    UNUSED(PLUMB_CONFIG_ROOT, "transformers_version"),
    INTEGER(PLUMB_CONFIG_ROOT, "bos_token_id", 0, MAX_IDS, bos_id),
    INTEGER(PLUMB_CONFIG_ROOT, "eos_token_id", 0, MAX_IDS, eos_id),
    INTEGER(PLUMB_CONFIG_ROOT, "pad_token_id", 0, MAX_IDS, pad_id),
    INTEGER(PLUMB_CONFIG_ROOT, "image_token_id", 0, MAX_IDS, image_id),
    OBJECT(PLUMB_CONFIG_ROOT, "quantization_config"),
    OBJECT(PLUMB_CONFIG_ROOT, "text_config"),
    OBJECT(PLUMB_CONFIG_ROOT, "vision_config"),

    IS_TEXT(PLUMB_CONFIG_QUANTIZATION, "quant_method", "fp8"),
    IS_TEXT(PLUMB_CONFIG_QUANTIZATION, "activation_scheme", "dynamic"),
    IS(PLUMB_CONFIG_QUANTIZATION, "weight_block_size", PLUMB_CONFIG_IS_NUMBERS, 32, 2),
    IS_TEXT(PLUMB_CONFIG_QUANTIZATION, "scale_fmt", "ue8m0"),
    IS_TEXT(PLUMB_CONFIG_QUANTIZATION, "expert_dtype", "fp4"),

    IS_TEXT(PLUMB_CONFIG_TEXT, "model_type", "deepseek_v41_text"),
    INTEGER(PLUMB_CONFIG_TEXT, "vocab_size", 1, MAX_IDS, vocab),
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "hidden_size", MAX_WIDTH, hidden),
    INTEGER(PLUMB_CONFIG_TEXT, "num_hidden_layers", 1, PLUMB_MAX_LAYERS, layers),
    INTEGER(PLUMB_CONFIG_TEXT, "num_nextn_predict_layers", 0, PLUMB_MAX_LAYERS, draft_stages),
    INTEGER(PLUMB_CONFIG_TEXT, "num_attention_heads", 1, MAX_COUNT, heads),
    IS(PLUMB_CONFIG_TEXT, "num_key_value_heads", PLUMB_CONFIG_IS_NUMBER, 1, 0),
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "head_dim", MAX_WIDTH, head_dim),
    {PLUMB_CONFIG_TEXT, "qk_rope_head_dim", PLUMB_CONFIG_INTEGER, 2, MAX_WIDTH, OF(rope_dim), 2, 0,
     0, NULL, NULL},
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "q_lora_rank", MAX_WIDTH, q_rank),
    INTEGER(PLUMB_CONFIG_TEXT, "o_lora_rank", 1, MAX_WIDTH, o_rank),
    INTEGER(PLUMB_CONFIG_TEXT, "o_groups", 1, MAX_COUNT, o_groups),
    IS(PLUMB_CONFIG_TEXT, "attention_bias", PLUMB_CONFIG_IS_FALSE, 0, 0),
    UNUSED(PLUMB_CONFIG_TEXT, "attention_dropout"),
    INTEGER(PLUMB_CONFIG_TEXT, "sliding_window", 1, 1 << 20, window),
    LIST("compress_ratios", 0, 2, PLUMB_MAX_LAYERS, OF(ratio), AT(ratios)),
    LIST("kv_source_layer_ids", 0, PLUMB_MAX_LAYERS, PLUMB_MAX_LAYERS, AT(kv_source_id),
         AT(kv_sources)),
    LIST("index_source_layer_ids", 0, PLUMB_MAX_LAYERS, PLUMB_MAX_LAYERS, AT(index_source_id),
         AT(index_sources)),
    INTEGER(PLUMB_CONFIG_TEXT, "index_n_heads", 1, MAX_COUNT, index_heads),
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "index_head_dim", MAX_WIDTH, index_dim),
    INTEGER(PLUMB_CONFIG_TEXT, "index_topk", 1, 1 << 20, index_topk),
    INTEGER(PLUMB_CONFIG_TEXT, "candidate_source_layer_id", -1, PLUMB_MAX_LAYERS, candidate_source),
    INTEGER(PLUMB_CONFIG_TEXT, "candidate_topk_blocks", 1, 1 << 24, candidate_blocks),
    INTEGER(PLUMB_CONFIG_TEXT, "candidate_block_size", 1, 1 << 16, candidate_block_size),
    REAL(PLUMB_CONFIG_TEXT, "compress_rope_theta", PLUMB_CONFIG_DOUBLE, 2, 1e12,
         compress_rope_theta),
    REAL(PLUMB_CONFIG_TEXT, "rope_theta", PLUMB_CONFIG_DOUBLE, 2, 1e12, rope_theta),
    OBJECT(PLUMB_CONFIG_TEXT, "rope_scaling"),
    INTEGER(PLUMB_CONFIG_TEXT, "max_position_embeddings", 1, MAX_POSITION, max_positions),
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "moe_intermediate_size", MAX_WIDTH, inter),
    INTEGER(PLUMB_CONFIG_TEXT, "n_routed_experts", 1, MAX_COUNT, experts),
    INTEGER(PLUMB_CONFIG_TEXT, "num_experts_per_tok", 1, MAX_COUNT, experts_per_token),
    IS(PLUMB_CONFIG_TEXT, "n_shared_experts", PLUMB_CONFIG_IS_NUMBER, 1, 0),
    IS_TEXT(PLUMB_CONFIG_TEXT, "scoring_func", "sqrtsoftplus"),
    IS_TEXT(PLUMB_CONFIG_TEXT, "topk_method", "noaux_tc"),
    IS(PLUMB_CONFIG_TEXT, "norm_topk_prob", PLUMB_CONFIG_IS_TRUE, 0, 0),
    REAL(PLUMB_CONFIG_TEXT, "routed_scaling_factor", PLUMB_CONFIG_FLOAT, FLT_MIN, 1e6, route_scale),
    IS(PLUMB_CONFIG_TEXT, "gate_temp", PLUMB_CONFIG_IS_NUMBER_OR_ABSENT, 1, 0),
    IS_TEXT(PLUMB_CONFIG_TEXT, "hidden_act", "silu"),
    REAL(PLUMB_CONFIG_TEXT, "swiglu_limit", PLUMB_CONFIG_FLOAT, FLT_MIN, FLT_MAX, swiglu_limit),
    REAL(PLUMB_CONFIG_TEXT, "rms_norm_eps", PLUMB_CONFIG_FLOAT, FLT_MIN, 1, norm_eps),
    IS(PLUMB_CONFIG_TEXT, "hc_mult", PLUMB_CONFIG_IS_NUMBER, PLUMB_HC, 0),
    INTEGER(PLUMB_CONFIG_TEXT, "hc_sinkhorn_iters", 1, 1000, sinkhorn_iterations),
    REAL(PLUMB_CONFIG_TEXT, "hc_eps", PLUMB_CONFIG_FLOAT, FLT_MIN, 1, hc_eps),
    LIST("engram_layer_ids", 0, PLUMB_MAX_LAYERS, PLUMB_MAX_ENGRAM_LAYERS, OF(engram_layer),
         OF(engram_layers)),
    LIST("engram_num_embeddings", 1, (double)MAX_PRIME * PLUMB_MAX_ENGRAM_COLUMNS,
         PLUMB_MAX_ENGRAM_LAYERS, OF(engram_rows), AT(engram_tables)),
    INTEGER(PLUMB_CONFIG_TEXT, "engram_max_ngram_size", 2, PLUMB_MAX_NGRAM, engram_ngram),
    INTEGER(PLUMB_CONFIG_TEXT, "engram_n_heads", 1, PLUMB_MAX_ENGRAM_COLUMNS, engram_heads),
    MULTIPLE_OF_32(PLUMB_CONFIG_TEXT, "engram_head_dim", MAX_WIDTH, engram_dim),
    INTEGER(PLUMB_CONFIG_TEXT, "engram_vocab_size", 1, 1 << 30, engram_vocab),
    INTEGER(PLUMB_CONFIG_TEXT, "engram_compressed_vocab_size", 1, MAX_IDS, engram_folded_vocab),
    EITHER_NAME(PLUMB_CONFIG_TEXT, "engram_pad_token_id", "engram_pad_id", 0, MAX_IDS,
                engram_pad_id),
    INTEGER(PLUMB_CONFIG_TEXT, "dspark_block_size", 0, 64, draft_block),
    INTEGER(PLUMB_CONFIG_TEXT, "dspark_noise_token_id", 0, MAX_IDS, draft_noise_id),
    LIST("dspark_target_layer_ids", 0, PLUMB_MAX_LAYERS, PLUMB_MAX_TAPS, OF(draft_tap),
         OF(draft_taps)),
    INTEGER(PLUMB_CONFIG_TEXT, "dspark_markov_rank", 0, MAX_WIDTH, draft_rank),
    INTEGER(PLUMB_CONFIG_TEXT, "dspark_n_routed_experts", 0, MAX_COUNT, draft_experts),
    INTEGER(PLUMB_CONFIG_TEXT, "dspark_num_experts_per_tok", 0, MAX_COUNT, draft_experts_per_token),
    IS(PLUMB_CONFIG_TEXT, "tie_word_embeddings", PLUMB_CONFIG_IS_FALSE, 0, 0),
    UNUSED(PLUMB_CONFIG_TEXT, "initializer_range"),
    UNUSED(PLUMB_CONFIG_TEXT, "use_cache"),

    IS_TEXT(PLUMB_CONFIG_ROPE_SCALING, "rope_type", "yarn"),
    REAL(PLUMB_CONFIG_ROPE_SCALING, "factor", PLUMB_CONFIG_DOUBLE, 1, 1e6, yarn.factor),
    REAL(PLUMB_CONFIG_ROPE_SCALING, "beta_fast", PLUMB_CONFIG_DOUBLE, 1e-3, 1e6, yarn.beta_fast),
    REAL(PLUMB_CONFIG_ROPE_SCALING, "beta_slow", PLUMB_CONFIG_DOUBLE, 1e-3, 1e6, yarn.beta_slow),
    INTEGER(PLUMB_CONFIG_ROPE_SCALING, "original_max_position_embeddings", 1, MAX_POSITION,
            yarn.original_positions),

    IS_TEXT(PLUMB_CONFIG_VISION, "model_type", "deepseek_v41_vision"),
    INTEGER(PLUMB_CONFIG_VISION, "num_hidden_layers", 0, PLUMB_MAX_LAYERS, vision.layers),
    INTEGER(PLUMB_CONFIG_VISION, "hidden_size", 1, MAX_WIDTH, vision.hidden),
    INTEGER(PLUMB_CONFIG_VISION, "num_attention_heads", 1, MAX_COUNT, vision.heads),
    INTEGER(PLUMB_CONFIG_VISION, "intermediate_size", 1, MAX_WIDTH, vision.intermediate),
    INTEGER(PLUMB_CONFIG_VISION, "patch_size", 1, 256, vision.patch),
    REAL(PLUMB_CONFIG_VISION, "rope_theta", PLUMB_CONFIG_DOUBLE, 2, 1e12, vision.rope_theta),
    INTEGER(PLUMB_CONFIG_VISION, "downsample_ratio", 1, 16, vision.downsample),
    INTEGER(PLUMB_CONFIG_VISION, "max_image_tokens", 4, 1 << 20, vision.max_tokens),
    INTEGER(PLUMB_CONFIG_VISION, "min_pixels", 1, 1 << 30, vision.min_pixels),
    REAL(PLUMB_CONFIG_VISION, "max_wh_ratio", PLUMB_CONFIG_OPTIONAL, 1, 1e6, vision.max_wh_ratio),
};

const int plumb__config_field_count = sizeof plumb__config_fields / sizeof plumb__config_fields[0];
