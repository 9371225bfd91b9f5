/* config.json.  Keys are in the order of the published file, whose bytes the release has. */
#include "synth/variants.h"

static void put_named_string(plumb__json_text *text, const char *key, const char *value) {
    plumb__put_key(text, key);
    plumb__put_string(text, value);
}

static void put_named_integer(plumb__json_text *text, const char *key, int64_t value) {
    plumb__put_key(text, key);
    plumb__put_integer(text, value);
}

static void put_named_real(plumb__json_text *text, const char *key, float value) {
    plumb__put_key(text, key);
    plumb__put_real(text, value);
}

static void put_named_word(plumb__json_text *text, const char *key, const char *word) {
    plumb__put_key(text, key);
    plumb__put_word(text, word);
}

static void put_named_integers(plumb__json_text *text, const char *key, const int64_t *values,
                               int64_t count) {
    plumb__put_key(text, key);
    plumb__put_begin(text, '[');
    for (int64_t i = 0; i < count; i++) plumb__put_integer(text, values[i]);
    plumb__put_end(text, ']');
}

static void put_marked_layers(plumb__json_text *text, const char *key, const bool *marks,
                              int64_t layers) {
    plumb__put_key(text, key);
    plumb__put_begin(text, '[');
    for (int64_t layer = 0; layer < layers; layer++)
        if (marks[layer]) plumb__put_integer(text, layer);
    plumb__put_end(text, ']');
}

static void put_quantization(plumb__json_text *text) {
    plumb__put_key(text, "quantization_config");
    plumb__put_begin(text, '{');
    put_named_string(text, "quant_method", "fp8");
    put_named_string(text, "activation_scheme", "dynamic");
    put_named_integers(text, "weight_block_size", (const int64_t[]){32, 32}, 2);
    put_named_string(text, "scale_fmt", "ue8m0");
    put_named_string(text, "expert_dtype", "fp4");
    plumb__put_end(text, '}');
}

static void put_rope_scaling(plumb__json_text *text, const plumb_yarn *yarn) {
    plumb__put_key(text, "rope_scaling");
    plumb__put_begin(text, '{');
    put_named_string(text, "rope_type", "yarn");
    put_named_integer(text, "factor", (int64_t)yarn->factor);
    put_named_integer(text, "beta_fast", (int64_t)yarn->beta_fast);
    put_named_integer(text, "beta_slow", (int64_t)yarn->beta_slow);
    put_named_integer(text, "original_max_position_embeddings", yarn->original_positions);
    plumb__put_end(text, '}');
}

static void put_network(plumb__json_text *text, const plumb_model_config *c) {
    put_named_string(text, "model_type", "deepseek_v41_text");
    put_named_integer(text, "vocab_size", c->vocab);
    put_named_integer(text, "hidden_size", c->hidden);
    put_named_integer(text, "moe_intermediate_size", c->inter);
    put_named_integer(text, "num_hidden_layers", c->layers);
    put_named_integer(text, "num_attention_heads", c->heads);
    put_named_integer(text, "num_key_value_heads", 1);
    put_named_integer(text, "head_dim", c->head_dim);
    put_named_integer(text, "qk_rope_head_dim", c->rope_dim);
    put_named_integer(text, "q_lora_rank", c->q_rank);
    put_named_integer(text, "o_lora_rank", c->o_rank);
    put_named_integer(text, "o_groups", c->o_groups);
    put_named_string(text, "hidden_act", "silu");
    put_named_real(text, "swiglu_limit", c->swiglu_limit);
    put_named_real(text, "rms_norm_eps", c->norm_eps);
    put_named_word(text, "attention_bias", "false");
    put_named_real(text, "attention_dropout", 0.0F);
    put_named_real(text, "initializer_range", 0.02F);
    put_named_word(text, "use_cache", "true");
    put_named_word(text, "tie_word_embeddings", "false");
    put_named_integer(text, "max_position_embeddings", c->max_positions);
    put_named_integer(text, "rope_theta", (int64_t)c->rope_theta);
    put_rope_scaling(text, &c->yarn);
    put_named_integer(text, "n_routed_experts", c->experts);
    put_named_integer(text, "n_shared_experts", 1);
    put_named_integer(text, "num_experts_per_tok", c->experts_per_token);
    put_named_string(text, "scoring_func", "sqrtsoftplus");
    put_named_string(text, "topk_method", "noaux_tc");
    put_named_word(text, "norm_topk_prob", "true");
    put_named_real(text, "routed_scaling_factor", c->route_scale);
}

static void put_sparse_attention(plumb__json_text *text, const plumb_model_config *c) {
    put_named_integer(text, "sliding_window", c->window);
    put_named_integers(text, "compress_ratios", c->ratio, c->layers + c->draft_stages);
    put_named_integer(text, "compress_rope_theta", (int64_t)c->compress_rope_theta);
    put_marked_layers(text, "kv_source_layer_ids", c->is_kv_source, c->layers);
    put_marked_layers(text, "index_source_layer_ids", c->is_index_source, c->layers);
    put_named_integer(text, "index_n_heads", c->index_heads);
    put_named_integer(text, "index_head_dim", c->index_dim);
    put_named_integer(text, "index_topk", c->index_topk);
    put_named_integer(text, "candidate_source_layer_id", c->candidate_source);
    put_named_integer(text, "candidate_topk_blocks", c->candidate_blocks);
    put_named_integer(text, "candidate_block_size", c->candidate_block_size);
    put_named_integer(text, "hc_mult", PLUMB_HC);
    put_named_integer(text, "hc_sinkhorn_iters", c->sinkhorn_iterations);
    put_named_real(text, "hc_eps", c->hc_eps);
}

static void put_engram_and_draft(plumb__json_text *text, const plumb_model_config *c) {
    put_named_integers(text, "engram_layer_ids", c->engram_layer, c->engram_layers);
    put_named_integers(text, "engram_num_embeddings", c->engram_rows, c->engram_layers);
    put_named_integer(text, "engram_max_ngram_size", c->engram_ngram);
    put_named_integer(text, "engram_vocab_size", c->engram_vocab);
    put_named_integer(text, "engram_n_heads", c->engram_heads);
    put_named_integer(text, "engram_head_dim", c->engram_dim);
    put_named_integer(text, "engram_pad_token_id", c->engram_pad_id);
    put_named_integer(text, "engram_compressed_vocab_size", c->engram_folded_vocab);
    put_named_integer(text, "num_nextn_predict_layers", c->draft_stages);
    put_named_integer(text, "dspark_block_size", c->draft_block);
    put_named_integer(text, "dspark_noise_token_id", c->draft_noise_id);
    put_named_integers(text, "dspark_target_layer_ids", c->draft_tap, c->draft_taps);
    put_named_integer(text, "dspark_markov_rank", c->draft_rank);
    put_named_integer(text, "dspark_n_routed_experts", c->draft_experts);
    put_named_integer(text, "dspark_num_experts_per_tok", c->draft_experts_per_token);
}

static void put_vision(plumb__json_text *text, const plumb_vision_config *v) {
    plumb__put_key(text, "vision_config");
    plumb__put_begin(text, '{');
    put_named_string(text, "model_type", "deepseek_v41_vision");
    put_named_integer(text, "num_hidden_layers", v->layers);
    put_named_integer(text, "hidden_size", v->hidden);
    put_named_integer(text, "num_attention_heads", v->heads);
    put_named_integer(text, "intermediate_size", v->intermediate);
    put_named_integer(text, "patch_size", v->patch);
    put_named_integer(text, "rope_theta", (int64_t)v->rope_theta);
    put_named_integer(text, "downsample_ratio", v->downsample);
    put_named_integer(text, "max_image_tokens", v->max_tokens);
    put_named_integer(text, "min_pixels", v->min_pixels);
    put_named_word(text, "max_wh_ratio", "null");
    plumb__put_end(text, '}');
}

void plumb__write_config(const plumb_model_config *shape, plumb__json_text *text) {
    plumb__put_begin(text, '{');
    plumb__put_key(text, "architectures");
    plumb__put_begin(text, '[');
    plumb__put_string(text, "DeepseekV41ForCausalLM");
    plumb__put_end(text, ']');
    put_named_string(text, "model_type", "deepseek_v41");
    put_named_string(text, "dtype", "bfloat16");
    put_named_string(text, "transformers_version", "5.6.0");
    put_named_integer(text, "bos_token_id", shape->bos_id);
    put_named_integer(text, "eos_token_id", shape->eos_id);
    put_named_integer(text, "pad_token_id", shape->pad_id);
    put_named_integer(text, "image_token_id", shape->image_id);
    put_quantization(text);
    plumb__put_key(text, "text_config");
    plumb__put_begin(text, '{');
    put_network(text, shape);
    put_sparse_attention(text, shape);
    put_engram_and_draft(text, shape);
    plumb__put_end(text, '}');
    put_vision(text, &shape->vision);
    plumb__put_end(text, '}');
    plumb__put_raw(text, "\n", 1);
}
