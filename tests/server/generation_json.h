/* A generation as JSON: the members that are not as plumb__generation_create leaves them. */
#ifndef PLUMB_TESTS_SERVER_GENERATION_JSON_H
#define PLUMB_TESTS_SERVER_GENERATION_JSON_H

#include "server/generation.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void describe_int(json_t *to, const char *key, int64_t value, int64_t usual) {
    if (value != usual) json_object_set_new(to, key, json_integer(value));
}

static inline void describe_real(json_t *to, const char *key, float value, float usual) {
    if (value != usual) json_object_set_new(to, key, json_real((double)value));
}

static inline void describe_sampling(json_t *to, const plumb_generation *g) {
    const plumb_sampling usual = plumb_sampling_default(), *s = &g->sampling;
    describe_real(to, "temperature", s->temperature, usual.temperature);
    describe_real(to, "top_p", s->top_p, usual.top_p);
    describe_real(to, "min_p", s->min_p, usual.min_p);
    describe_int(to, "top_k", s->top_k, usual.top_k);
    if (g->seed_given) json_object_set_new(to, "seed", json_integer((json_int_t)s->seed));
    json_t *bias = json_array();
    for (int32_t i = 0; i < g->n_bias; i++) {
        json_t *value = isinf(g->bias[i].bias) ? json_string("never") : json_real((double)g->bias[i].bias);
        json_array_append_new(bias, json_pack("[i, o]", g->bias[i].token, value));
    }
    if (g->n_bias > 0) json_object_set(to, "bias", bias);
    json_decref(bias);
}

static inline void describe_stops(json_t *to, const plumb_generation *g) {
    json_t *stops = json_array();
    for (int i = 0; i < g->n_stop; i++)
        json_array_append_new(stops, json_stringn(g->stop[i].bytes, g->stop[i].size));
    if (g->n_stop > 0) json_object_set(to, "stop", stops);
    json_decref(stops);
}

static inline void describe_prompt(json_t *to, const plumb_generation *g) {
    if (g->messages) json_object_set_new(to, "messages", json_loads(g->messages, JSON_ALLOW_NUL, NULL));
    if (g->prompt) json_object_set_new(to, "prompt", json_stringn(g->prompt, g->prompt_size));
    json_t *ids = json_array();
    for (int64_t i = 0; i < g->ids.count; i++) json_array_append_new(ids, json_integer(g->ids.ids[i]));
    if (g->ids.count > 0) json_object_set(to, "ids", ids);
    json_decref(ids);
}

static inline json_t *describe_generation(const plumb_generation *g) {
    json_t *to = json_object();
    describe_prompt(to, g);
    describe_int(to, "thinking", g->thinking, 0);
    describe_int(to, "effort", g->effort, 75);
    describe_int(to, "keep_reasoning", g->keep_reasoning, 0);
    describe_int(to, "tools_offered", g->tools_offered, 0);
    if (strcmp(g->call_prefix, "call_") != 0) json_object_set_new(to, "call_prefix", json_string(g->call_prefix));
    describe_sampling(to, g);
    describe_int(to, "grammar", g->grammar != NULL, 0);
    describe_int(to, "most_tokens", g->most_tokens, -1);
    describe_stops(to, g);
    describe_int(to, "runs", g->runs, 1);
    describe_int(to, "logprobs", g->logprobs, 0);
    describe_int(to, "top_logprobs", g->top_logprobs, 0);
    describe_int(to, "echo", g->echo, 0);
    return to;
}

#endif
