/* Rules between config fields (spec: model.md section 1, the validate columns), and what follows
 * from them for each layer. */
#include "format/model_config_fields.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

typedef struct check {
    plumb_config_reading *reading;
    const char *path;
    plumb_error *err;
} check;

/* "config.json: field [at index]: found N, expected ..." */
#define REFUSE(c, field, index, found, ...)                                                   \
    plumb__fail((c)->err, PLUMB_ERROR_CONFIG, (c)->path, field, index,                        \
                plumb__format("%lld", (long long)(found)).s, __VA_ARGS__)

static plumb_status check_tokens(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    const struct {
        const char *field;
        int64_t id;
    } ids[] = {
        {"bos_token_id", m->bos_id},
        {"eos_token_id", m->eos_id},
        {"pad_token_id", m->pad_id},
        {"image_token_id", m->image_id},
        {"text_config.engram_pad_token_id", m->engram_pad_id},
        {"text_config.dspark_noise_token_id", m->draft_noise_id},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (ids[i].id >= m->vocab)
            return REFUSE(c, ids[i].field, -1, ids[i].id, "an id below vocab_size %lld",
                          (long long)m->vocab);
    if (m->engram_folded_vocab > m->vocab)
        return REFUSE(c, "text_config.engram_compressed_vocab_size", -1, m->engram_folded_vocab,
                      "at most vocab_size %lld", (long long)m->vocab);
    return PLUMB_OK;
}

static plumb_status check_shapes(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    if (m->layers + m->draft_stages > PLUMB_MAX_LAYERS)
        return REFUSE(c, "text_config.num_nextn_predict_layers", -1, m->draft_stages,
                      "at most %d layers and stages together", PLUMB_MAX_LAYERS);
    if (m->rope_dim >= m->head_dim)
        return REFUSE(c, "text_config.qk_rope_head_dim", -1, m->rope_dim, "less than head_dim %lld",
                      (long long)m->head_dim);
    if (m->index_dim < m->rope_dim)
        return REFUSE(c, "text_config.index_head_dim", -1, m->index_dim,
                      "at least qk_rope_head_dim %lld", (long long)m->rope_dim);
    if (m->heads % m->o_groups != 0)
        return REFUSE(c, "text_config.o_groups", -1, m->o_groups,
                      "a divisor of num_attention_heads %lld", (long long)m->heads);
    /* wo_b's input is quantised in groups of 32, and a group must not be cut short. */
    if (m->o_groups * m->o_rank % 32 != 0)
        return REFUSE(c, "text_config.o_lora_rank", -1, m->o_rank,
                      "o_groups * o_lora_rank to be a multiple of 32");
    /* A session keeps a window of states for each layer: never more than it could have positions. */
    if (m->window > m->max_positions)
        return REFUSE(c, "text_config.sliding_window", -1, m->window,
                      "at most max_position_embeddings %lld", (long long)m->max_positions);
    if (m->experts_per_token > m->experts)
        return REFUSE(c, "text_config.num_experts_per_tok", -1, m->experts_per_token,
                      "at most n_routed_experts %lld", (long long)m->experts);
    return PLUMB_OK;
}

static plumb_status check_ratios(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    if (c->reading->ratios != m->layers + m->draft_stages)
        return REFUSE(c, "text_config.compress_ratios", -1, c->reading->ratios,
                      "num_hidden_layers + num_nextn_predict_layers = %lld entries",
                      (long long)(m->layers + m->draft_stages));
    for (int64_t i = m->layers; i < c->reading->ratios; i++)
        if (m->ratio[i] != 0)
            return REFUSE(c, "text_config.compress_ratios", i, m->ratio[i], "0 for a draft stage");
    return PLUMB_OK;
}

/* A list of layers: ascending, each of the backbone. */
static plumb_status check_layers(const check *c, const char *field, const int64_t *layers,
                                 int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (layers[i] >= c->reading->config.layers)
            return REFUSE(c, field, i, layers[i], "a layer below num_hidden_layers %lld",
                          (long long)c->reading->config.layers);
        if (i > 0 && layers[i] <= layers[i - 1])
            return REFUSE(c, field, i, layers[i], "layers in ascending order");
    }
    return PLUMB_OK;
}

/* Checks one list of sources and marks its layers. */
static plumb_status mark_sources(const check *c, const char *field, const int64_t *layers,
                                 int64_t count, bool *is_source) {
    plumb_status status = check_layers(c, field, layers, count);
    if (status != PLUMB_OK) return status;
    for (int64_t i = 0; i < count; i++) {
        if (c->reading->config.ratio[layers[i]] == 0)
            return REFUSE(c, field, i, layers[i], "a layer whose compress_ratio is above 0");
        is_source[layers[i]] = true;
    }
    return PLUMB_OK;
}

/* Fills kv_source and index_source: what each compressed layer reads. */
static plumb_status check_sources(const check *c) {
    plumb_config_reading *r = c->reading;
    plumb_model_config *m = &r->config;
    plumb_status status = mark_sources(c, "text_config.kv_source_layer_ids", r->kv_source_id,
                                       r->kv_sources, m->is_kv_source);
    if (status == PLUMB_OK)
        status = mark_sources(c, "text_config.index_source_layer_ids", r->index_source_id,
                              r->index_sources, m->is_index_source);
    if (status != PLUMB_OK) return status;
    int64_t kv = -1, index = -1;
    for (int64_t i = 0; i < m->layers + m->draft_stages; i++) {
        if (m->is_kv_source[i] && !m->is_index_source[i])
            return REFUSE(c, "text_config.index_source_layer_ids", -1, r->index_sources,
                          "to contain kv source layer %lld", (long long)i);
        if (m->is_kv_source[i]) kv = i;
        if (m->is_index_source[i]) index = i;
        bool reads = m->ratio[i] > 0;
        m->kv_source[i] = reads ? kv : -1;
        m->index_source[i] = reads ? index : -1;
        if (reads && (kv < 0 || m->ratio[kv] != m->ratio[i]))
            return REFUSE(c, "text_config.compress_ratios", i, m->ratio[i],
                          "the latest kv source at or before the layer to have the same ratio");
    }
    return PLUMB_OK;
}

static plumb_status check_candidates(const check *c) {
    static const char field[] = "text_config.candidate_source_layer_id";
    const plumb_model_config *m = &c->reading->config;
    int64_t source = m->candidate_source;
    if (source < 0) return PLUMB_OK;
    if (source >= m->layers || !m->is_index_source[source])
        return REFUSE(c, field, -1, source, "an index source layer, or -1");
    for (int64_t i = source + 1; i < m->layers; i++)
        if (m->is_index_source[i] && m->kv_source[i] != m->kv_source[source])
            return REFUSE(c, field, -1, source, "index source layer %lld to share its cache",
                          (long long)i);
    if ((m->candidate_blocks - 1) * m->candidate_block_size + 1 < m->index_topk)
        return REFUSE(c, "text_config.candidate_topk_blocks", -1, m->candidate_blocks,
                      "(blocks - 1) * candidate_block_size + 1 >= index_topk %lld",
                      (long long)m->index_topk);
    return PLUMB_OK;
}

/* The YaRN ramp runs between floor and ceiling of its two corners, computed with a logarithm whose
 * last bits differ between machines: a corner too close to an integer is refused (arithmetic.md
 * section 9), and so are corners outside the rotated dimensions, where nothing defines the ramp. */
static plumb_status check_yarn(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    const plumb_yarn *yarn = &m->yarn;
    bool used = false;
    for (int64_t i = 0; i < m->layers; i++) used |= m->ratio[i] > 0;
    if (!used) return PLUMB_OK;
    if (yarn->beta_fast <= yarn->beta_slow)
        return plumb__fail(c->err, PLUMB_ERROR_CONFIG, c->path,
                           "text_config.rope_scaling.beta_fast", -1,
                           plumb__format("%g", yarn->beta_fast).s, "more than beta_slow %g",
                           yarn->beta_slow);
    const struct {
        const char *field;
        double rotations;
    } corners[] = {{"text_config.rope_scaling.beta_fast", yarn->beta_fast},
                   {"text_config.rope_scaling.beta_slow", yarn->beta_slow}};
    const double two_pi = 6.283185307179586;
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        double turns = (double)yarn->original_positions / (two_pi * corners[i].rotations);
        double corner = (double)m->rope_dim * log(turns) / (2 * log(m->compress_rope_theta));
        if (fabs(corner - nearbyint(corner)) < 1e-9)
            return plumb__fail(c->err, PLUMB_ERROR_CONFIG, c->path, corners[i].field, -1,
                               plumb__format("a YaRN corner at %.12f", corner).s,
                               "a corner at least 1e-9 from an integer");
        if (corner < 0 || corner > (double)(m->rope_dim - 1))
            return plumb__fail(c->err, PLUMB_ERROR_CONFIG, c->path, corners[i].field, -1,
                               plumb__format("a YaRN corner at %g", corner).s,
                               "a corner from 0 to qk_rope_head_dim - 1 = %lld",
                               (long long)(m->rope_dim - 1));
    }
    return PLUMB_OK;
}

static plumb_status check_engram(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    int64_t columns = (m->engram_ngram - 1) * m->engram_heads;
    if (columns > PLUMB_MAX_ENGRAM_COLUMNS)
        return REFUSE(c, "text_config.engram_n_heads", -1, m->engram_heads,
                      "at most %d columns, (engram_max_ngram_size - 1) * engram_n_heads",
                      PLUMB_MAX_ENGRAM_COLUMNS);
    plumb_status status =
        check_layers(c, "text_config.engram_layer_ids", m->engram_layer, m->engram_layers);
    if (status != PLUMB_OK) return status;
    if (c->reading->engram_tables != m->engram_layers)
        return REFUSE(c, "text_config.engram_num_embeddings", -1, c->reading->engram_tables,
                      "one entry for each of %lld engram_layer_ids", (long long)m->engram_layers);
    int64_t primes[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_ENGRAM_COLUMNS];
    plumb__config_engram_primes(m, primes);
    for (int64_t i = 0; i < m->engram_layers; i++) {
        int64_t rows = 0;
        for (int64_t column = 0; column < columns; column++) rows += primes[i * columns + column];
        if (rows != m->engram_rows[i])
            return REFUSE(c, "text_config.engram_num_embeddings", i, m->engram_rows[i],
                          "%lld, the sum of the layer's %lld primes", (long long)rows,
                          (long long)columns);
    }
    return PLUMB_OK;
}

static plumb_status check_draft(const check *c) {
    const plumb_model_config *m = &c->reading->config;
    plumb_status status =
        check_layers(c, "text_config.dspark_target_layer_ids", m->draft_tap, m->draft_taps);
    if (status != PLUMB_OK || m->draft_stages == 0) return status;
    const struct {
        const char *field;
        int64_t value;
    } needed[] = {
        {"text_config.dspark_target_layer_ids", m->draft_taps},
        {"text_config.dspark_block_size", m->draft_block},
        {"text_config.dspark_markov_rank", m->draft_rank},
        {"text_config.dspark_n_routed_experts", m->draft_experts},
        {"text_config.dspark_num_experts_per_tok", m->draft_experts_per_token},
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].value < 1)
            return REFUSE(c, needed[i].field, -1, needed[i].value,
                          "at least 1, since num_nextn_predict_layers is %lld",
                          (long long)m->draft_stages);
    if (m->draft_experts_per_token > m->draft_experts)
        return REFUSE(c, "text_config.dspark_num_experts_per_tok", -1, m->draft_experts_per_token,
                      "at most dspark_n_routed_experts %lld", (long long)m->draft_experts);
    return PLUMB_OK;
}

static plumb_status check_vision(const check *c) {
    const plumb_vision_config *v = &c->reading->config.vision;
    /* Two-dimensional rope turns pairs by row and pairs by column: head_dim in quarters. */
    if (v->layers > 0 && v->hidden % (4 * v->heads) != 0)
        return REFUSE(c, "vision_config.num_attention_heads", -1, v->heads,
                      "hidden_size %lld to be a multiple of four times it", (long long)v->hidden);
    return PLUMB_OK;
}

plumb_status plumb__config_check(plumb_config_reading *reading, const char *path,
                                 plumb_error *err) {
    static plumb_status (*const rules[])(const check *) = {
        check_tokens,     check_shapes, check_ratios, check_sources,
        check_candidates, check_yarn,   check_engram, check_draft, check_vision,
    };
    const check c = {.reading = reading, .path = path, .err = err};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        plumb_status status = rules[i](&c);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

/* ---- Engram moduli --------------------------------------------------------------------------- */

static bool is_prime(int64_t n) {
    if (n < 4) return n > 1;
    if (n % 2 == 0) return false;
    for (int64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0) return false;
    return true;
}

void plumb__config_engram_primes(const plumb_model_config *config, int64_t *primes) {
    int64_t count = config->engram_layers * (config->engram_ngram - 1) * config->engram_heads;
    int64_t candidate = config->engram_vocab - 1;
    for (int64_t i = 0; i < count; i++) {
        do candidate++;
        while (!is_prime(candidate));
        primes[i] = candidate;
    }
}
