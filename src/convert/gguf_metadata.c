/* Metadata of a converted file, from the model's small files. */
#include "convert/gguf_metadata.h"

#include "base/error.h"
#include "base/utf8.h"
#include "convert/gguf_tokenizer.h"
#include "convert/model_origin.h"
#include "format/model_files.h"
#include "model/engram_hash.h"
#include "text/token_map.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARCHITECTURE "deepseek41"

enum { MOST_FILE_BYTES = 1 << 28, PIECE_BYTES = 65536 };

static void write_text(plumb_gguf_writer *writer, const char *key, const char *text) {
    plumb__gguf_write_string(writer, key, text, (int64_t)strlen(text));
}

/* ---- Fields of text_config --------------------------------------------------------------------- */

typedef enum value_kind {
    WHOLE,         /* u32 */
    WHOLE_OR_NONE, /* u32; negative: absent */
    WHOLE_OR_REAL, /* u32 where it is one, else f32 */
    REAL,          /* f32 */
    TEXT,
    FLAG,
    WHOLES /* u32 array */
} value_kind;

typedef struct field {
    const char *key;
    value_kind kind;
} field;

static const field text_fields[] = {
    {"vocab_size", WHOLE},
    {"hidden_size", WHOLE},
    {"moe_intermediate_size", WHOLE},
    {"num_hidden_layers", WHOLE},
    {"num_attention_heads", WHOLE},
    {"num_key_value_heads", WHOLE},
    {"head_dim", WHOLE},
    {"qk_rope_head_dim", WHOLE},
    {"q_lora_rank", WHOLE},
    {"o_lora_rank", WHOLE},
    {"o_groups", WHOLE},
    {"n_routed_experts", WHOLE},
    {"n_shared_experts", WHOLE},
    {"num_experts_per_tok", WHOLE},
    {"max_position_embeddings", WHOLE},
    {"sliding_window", WHOLE},
    {"index_n_heads", WHOLE},
    {"index_head_dim", WHOLE},
    {"index_topk", WHOLE},
    {"candidate_source_layer_id", WHOLE_OR_NONE},
    {"candidate_topk_blocks", WHOLE},
    {"candidate_block_size", WHOLE},
    {"hc_mult", WHOLE},
    {"hc_sinkhorn_iters", WHOLE},
    {"rope_theta", WHOLE_OR_REAL},
    {"compress_rope_theta", WHOLE_OR_REAL},
    {"rms_norm_eps", REAL},
    {"hc_eps", REAL},
    {"swiglu_limit", REAL},
    {"routed_scaling_factor", REAL},
    {"scoring_func", TEXT},
    {"hidden_act", TEXT},
    {"topk_method", TEXT},
    {"norm_topk_prob", FLAG},
    {"compress_ratios", WHOLES},
    {"kv_source_layer_ids", WHOLES},
    {"index_source_layer_ids", WHOLES},
    {0},
};

static const field rope_fields[] = {
    {"factor", REAL},
    {"beta_fast", REAL},
    {"beta_slow", REAL},
    {"original_max_position_embeddings", WHOLE},
    {0},
};

static bool as_u32(const json_t *value, uint32_t *number) {
    double x = json_number_value(value);
    if (!json_is_number(value) || x < 0 || x > UINT32_MAX || x != floor(x)) return false;
    *number = (uint32_t)x;
    return true;
}

static bool write_wholes(plumb_gguf_writer *writer, const char *key, const json_t *list) {
    uint32_t numbers[PLUMB_MAX_LAYERS];
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > PLUMB_MAX_LAYERS) return false;
    for (size_t i = 0; i < count; i++)
        if (!as_u32(json_array_get(list, i), &numbers[i])) return false;
    plumb__gguf_write_array(writer, key, PLUMB_GGUF_U32, numbers, (int64_t)count);
    return true;
}

/* False when the value is of another kind. */
static bool write_value(plumb_gguf_writer *writer, const char *key, value_kind kind,
                        const json_t *value) {
    uint32_t number = 0;
    bool whole = as_u32(value, &number), real = json_is_number(value);
    if (kind == WHOLE_OR_NONE && real && json_number_value(value) < 0) return true;
    if (kind == TEXT && json_is_string(value)) {
        write_text(writer, key, json_string_value(value));
        return true;
    }
    if (kind == FLAG && json_is_boolean(value)) {
        plumb__gguf_write_bool(writer, key, json_is_true(value));
        return true;
    }
    if (kind == WHOLES) return write_wholes(writer, key, value);
    if (kind <= WHOLE_OR_REAL && whole) {
        plumb__gguf_write_u32(writer, key, number);
        return true;
    }
    if ((kind == WHOLE_OR_REAL || kind == REAL) && real) {
        plumb__gguf_write_f32(writer, key, (float)json_number_value(value));
        return true;
    }
    return false;
}

/* The config was checked when the model was opened: a field that does not fit was changed since. */
static plumb_status write_fields(plumb_gguf_writer *writer, const field *fields, const char *prefix,
                                 const json_t *object, const char *path, plumb_error *err) {
    for (; fields->key; fields++) {
        plumb__text192 key = plumb__format(ARCHITECTURE ".%s%s", prefix, fields->key);
        if (!write_value(writer, key.s, fields->kind, json_object_get(object, fields->key)))
            return plumb__fail(err, PLUMB_ERROR_CONFIG, path, fields->key, -1, "another value",
                               "the one of the model that was opened");
    }
    return PLUMB_OK;
}

static plumb_status write_config(plumb_gguf_writer *writer, const char *model, plumb_error *err) {
    char *text;
    int64_t size;
    plumb_status status =
        plumb__model_file_load(model, "config.json", MOST_FILE_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    json_t *root = json_loadb(text, (size_t)size, 0, NULL);
    const json_t *fields = json_object_get(root, "text_config");
    plumb_model_origin origin;
    plumb__model_origin(model, json_string_value(json_object_get(root, "_name_or_path")), &origin);
    write_text(writer, "general.architecture", ARCHITECTURE);
    write_text(writer, "general.name", origin.name);
    if (*origin.url) write_text(writer, "general.source.url", origin.url);
    if (*origin.revision) write_text(writer, "general.source.revision", origin.revision);
    status = write_fields(writer, text_fields, "", fields, model, err);
    if (status == PLUMB_OK)
        status = write_fields(writer, rope_fields, "rope_scaling.",
                              json_object_get(fields, "rope_scaling"), model, err);
    plumb__gguf_write_string(writer, PLUMB_GGUF_CONFIG_KEY, text, size);
    json_decref(root);
    free(text);
    return status;
}

/* ---- Engram ------------------------------------------------------------------------------------ */

/* The constants of the hashes, layer after layer. */
typedef struct hash_constants {
    uint64_t multipliers[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_NGRAM];
    uint64_t primes[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_ENGRAM_COLUMNS];
    int64_t n_multipliers, n_primes;
} hash_constants;

static plumb_status collect_constants(const plumb_model_config *config, int32_t folded_pad,
                                      hash_constants *all, plumb_error *err) {
    plumb_engram_hash hash;
    for (int64_t i = 0; i < config->engram_layers; i++) {
        plumb_status status = plumb__engram_hash_init(config, i, folded_pad, &hash, err);
        if (status != PLUMB_OK) return status;
        for (int n = 0; n < hash.ngram; n++)
            all->multipliers[all->n_multipliers++] = hash.multiplier[n];
        for (int c = 0; c < hash.columns; c++) all->primes[all->n_primes++] = hash.prime[c];
    }
    return PLUMB_OK;
}

static void write_tables(plumb_gguf_writer *writer, const plumb_model_config *config,
                         const hash_constants *hashes, const int32_t *token_map) {
    uint32_t layers[PLUMB_MAX_ENGRAM_LAYERS];
    uint64_t rows[PLUMB_MAX_ENGRAM_LAYERS];
    for (int64_t i = 0; i < config->engram_layers; i++) {
        layers[i] = (uint32_t)config->engram_layer[i];
        rows[i] = (uint64_t)config->engram_rows[i];
    }
    int64_t row_bytes = config->engram_dim + config->engram_dim / 32;
    write_text(writer, ARCHITECTURE ".engram.encoding",
               plumb__format("e4m3_e8m0_32_row%lld", (long long)row_bytes).s);
    plumb__gguf_write_array(writer, ARCHITECTURE ".engram.layer_ids", PLUMB_GGUF_U32, layers,
                            config->engram_layers);
    plumb__gguf_write_array(writer, ARCHITECTURE ".engram.rows", PLUMB_GGUF_U64, rows,
                            config->engram_layers);
    plumb__gguf_write_u32(writer, ARCHITECTURE ".engram.compressed_vocab_size",
                          (uint32_t)config->engram_folded_vocab);
    plumb__gguf_write_u32(writer, ARCHITECTURE ".engram.pad_id", (uint32_t)config->engram_pad_id);
    plumb__gguf_write_array(writer, ARCHITECTURE ".engram.multipliers", PLUMB_GGUF_U64,
                            hashes->multipliers, hashes->n_multipliers);
    plumb__gguf_write_array(writer, ARCHITECTURE ".engram.primes", PLUMB_GGUF_U64, hashes->primes,
                            hashes->n_primes);
    plumb__gguf_write_array(writer, PLUMB_GGUF_TOKEN_MAP_KEY, PLUMB_GGUF_I32, token_map,
                            config->vocab);
}

static plumb_status write_engram(plumb_gguf_writer *writer, const char *model,
                                 const plumb_model_config *config, plumb_error *err) {
    int32_t *token_map = NULL;
    hash_constants hashes = {.n_primes = 0};
    plumb_status status = plumb__token_map_load(model, config->vocab, config->engram_folded_vocab,
                                                config->image_id, &token_map, err);
    if (status != PLUMB_OK) return status;
    status = collect_constants(config, token_map[config->engram_pad_id], &hashes, err);
    if (status == PLUMB_OK) write_tables(writer, config, &hashes, token_map);
    free(token_map);
    return status;
}

/* ---- Files ------------------------------------------------------------------------------------- */

/* The piece that begins there: whole characters, since it must be a string. */
static int64_t piece_bytes(const char *text, int64_t left) {
    if (left <= PIECE_BYTES) return left;
    int64_t whole = (int64_t)plumb__utf8_valid_prefix(text, PIECE_BYTES);
    return whole > 0 ? whole : PIECE_BYTES; /* no text: refused when the header is finished */
}

/* In pieces, for readers that take long strings for complete too early; what follows the last one,
 * an empty string, makes them fetch that one whole. */
static void write_pieces(plumb_gguf_writer *writer, const char *key, const char *text,
                         int64_t size) {
    int64_t count = 1;
    for (int64_t at = 0; at < size; at += piece_bytes(text + at, size - at)) count++;
    plumb__gguf_write_strings_begin(writer, key, count);
    for (int64_t at = 0, piece; at < size; at += piece) {
        piece = piece_bytes(text + at, size - at);
        plumb__gguf_write_strings_add(writer, text + at, piece);
    }
    plumb__gguf_write_strings_add(writer, "", 0);
}

static plumb_status write_file(plumb_gguf_writer *writer, const char *model, const char *name,
                               plumb_error *err) {
    if (!plumb__model_file_exists(model, name)) return PLUMB_OK;
    char *text;
    int64_t size;
    plumb_status status = plumb__model_file_load(model, name, MOST_FILE_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    write_pieces(writer, plumb__format("%s%s", PLUMB_GGUF_FILE_KEY, name).s, text, size);
    free(text);
    return PLUMB_OK;
}

plumb_status plumb__gguf_metadata_write(plumb_gguf_writer *writer, const char *model,
                                        const plumb_model_config *config, plumb_error *err) {
    static const char *const files[] = {"generation_config.json", "tokenizer_config.json",
                                        "tokenizer.json"};
    plumb_status status = write_config(writer, model, err);
    plumb__gguf_write_u32(writer, PLUMB_GGUF_FORMAT_KEY, PLUMB_GGUF_FORMAT);
    write_text(writer, "plumb.fp8.encoding", "e4m3_e8m0_32x32");
    if (status == PLUMB_OK) status = write_engram(writer, model, config, err);
    for (size_t i = 0; i < sizeof files / sizeof files[0] && status == PLUMB_OK; i++)
        status = write_file(writer, model, files[i], err);
    if (status == PLUMB_OK && plumb__model_file_exists(model, "tokenizer.json"))
        status = plumb__gguf_tokenizer_write(writer, model, config, err);
    return status;
}
