/* How tokens are chosen and how answers are sent: members that chat completions and completions share. */
#include "server/openai.h"

#include <stdlib.h>
#include <string.h>

bool plumb__openai_add_bias(const plumb_fields *fields, int32_t token, float bias, plumb_generation *g) {
    plumb_logit_bias *grown = realloc(g->bias, ((size_t)g->n_bias + 1) * sizeof *grown);
    if (!grown) return plumb__field_no_memory(fields);
    g->bias = grown;
    grown[g->n_bias++] = (plumb_logit_bias){token, bias};
    return true;
}

/* -1: not the id of a token, in the one way to write it. */
static int64_t id_of(const char *digits, int64_t vocabulary) {
    size_t length = strlen(digits);
    if (length == 0 || length > 9 || strspn(digits, "0123456789") != length || (digits[0] == '0' && length > 1))
        return -1;
    int64_t id = strtol(digits, NULL, 10);
    return id < vocabulary ? id : -1;
}

/* {"1234": -100, ...} */
static bool read_bias(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g) {
    const int64_t vocabulary = plumb_text_vocab_size(context->text);
    plumb_fields map = {0};
    bool present;
    if (!plumb__fields_of(fields, "logit_bias", &map, &present)) return false;
    void *entry = present ? json_object_iter((json_t *)map.object) : NULL;
    for (; entry; entry = json_object_iter_next((json_t *)map.object, entry)) {
        const char *key = json_object_iter_key(entry);
        int64_t id = id_of(key, vocabulary);
        float bias = 0.0f;
        if (id < 0)
            return plumb__field_fault(fields, "logit_bias", "'%.40s' in 'logit_bias' is not a token id below %lld", key,
                                      (long long)vocabulary);
        if (!plumb__field_float(&map, key, -100, 100, &bias) ||
            !plumb__openai_add_bias(fields, (int32_t)id, bias, g))
            return false;
    }
    return true;
}

bool plumb__openai_sampling(const plumb_api_context *context, const plumb_fields *fields, plumb_generation *g) {
    int64_t top_k, seed = 0, runs = 1;
    g->sampling = *context->sampling;
    g->sampling.bias = NULL;
    g->sampling.n_bias = 0;
    g->sampling.allowed = NULL;
    top_k = g->sampling.top_k;
    const json_t *given_seed = json_object_get(fields->object, "seed");
    if (!plumb__field_float(fields, "temperature", 0, 2, &g->sampling.temperature) ||
        !plumb__field_float(fields, "top_p", 0, 1, &g->sampling.top_p) ||
        !plumb__field_float(fields, "min_p", 0, 1, &g->sampling.min_p) ||
        !plumb__field_int(fields, "top_k", -1, INT32_MAX, &top_k) || /* -1 and 0: off */
        !plumb__field_int(fields, "seed", INT64_MIN, INT64_MAX, &seed) ||
        !plumb__field_int(fields, "n", 1, context->most_runs, &runs) || !read_bias(context, fields, g))
        return false;
    g->sampling.top_k = top_k < 0 ? 0 : (int32_t)top_k;
    g->seed_given = given_seed && !json_is_null(given_seed);
    if (g->seed_given) g->sampling.seed = (uint64_t)seed;
    g->runs = (int)runs;
    return true;
}

bool plumb__openai_streaming(const plumb_fields *fields, bool *stream, bool *include_usage) {
    plumb_fields options;
    bool present;
    return plumb__field_bool(fields, "stream", stream) &&
           plumb__fields_of(fields, "stream_options", &options, &present) &&
           (!present || plumb__field_bool(&options, "include_usage", include_usage));
}
