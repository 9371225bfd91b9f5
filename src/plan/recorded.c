#include "plan/recorded.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    int64_t x = ((const plumb_replay *)a)->slots, y = ((const plumb_replay *)b)->slots;
    return (x > y) - (x < y);
}

/* The sizes, ascending and each once. */
static int choose_sizes(const plumb_model_sizes *sizes, const plumb_budget *budget,
                        plumb_replay replays[PLUMB_RECORDED_SIZES]) {
    enum { EIGHTHS = 8 };
    int64_t pairs = plumb__model_pairs(sizes);
    int n = 0, kept = 1;
    replays[n++].slots = plumb__model_token_experts(sizes);
    replays[n++].slots = budget->slots;
    replays[n++].slots = budget->slots + budget->second_slots;
    for (int i = 1; i <= EIGHTHS; i++)
        replays[n++].slots = pairs * i / EIGHTHS > 0 ? pairs * i / EIGHTHS : 1;
    qsort(replays, (size_t)n, sizeof *replays, ascending);
    for (int i = 1; i < n; i++)
        if (replays[i].slots != replays[kept - 1].slots) replays[kept++] = replays[i];
    return kept;
}

static plumb_status check(const char *path, const plumb_model_sizes *sizes,
                          const plumb_route_shape *shape, int64_t decoded, plumb_error *err) {
    const plumb_model_config *c = &sizes->config;
    if (shape->layers != c->layers || shape->experts != c->experts ||
        shape->per_token != c->experts_per_token)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "routes", -1,
                           plumb__format("%" PRId64 " layers, %" PRId64 " of %" PRId64 " experts",
                                         shape->layers, shape->per_token, shape->experts)
                               .s,
                           "those of this model: %" PRId64 " layers, %" PRId64 " of %" PRId64
                           " experts",
                           c->layers, c->experts_per_token, c->experts);
    if (decoded == 0)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "routes", -1, "no decoded token",
                           "at least one batch of one row");
    return PLUMB_OK;
}

/* Of the first line, before caches of that shape are made. */
static plumb_status check_shape(const char *path, const plumb_model_sizes *sizes, plumb_error *err) {
    plumb_route_trace *trace;
    plumb_status status = plumb__route_trace_open(path, &trace, err);
    if (status != PLUMB_OK) return status;
    status = check(path, sizes, plumb__route_trace_shape(trace), 1, err);
    plumb__route_trace_close(trace);
    return status;
}

plumb_status plumb__recorded_open(const char *path, const plumb_model_sizes *sizes,
                                  const plumb_budget *budget, plumb_recorded *recorded,
                                  plumb_error *err) {
    plumb_replay replays[2 * PLUMB_RECORDED_SIZES] = {{.slots = 0}};
    int n = choose_sizes(sizes, budget, replays);
    for (int i = 0; i < n; i++) {
        replays[i].eviction = PLUMB_EVICT_LRU;
        replays[n + i] =
            (plumb_replay){.slots = replays[i].slots, .eviction = PLUMB_EVICT_AGE_OVER_USE};
    }
    plumb_route_shape shape;
    plumb_status status = check_shape(path, sizes, err);
    if (status == PLUMB_OK) status = plumb__route_replay(path, &shape, replays, 2 * n, err);
    if (status == PLUMB_OK) status = check(path, sizes, &shape, replays[0].decode.batches, err);
    if (status != PLUMB_OK) return status;
    plumb_recorded found = {.n = n, .better = PLUMB_EVICT_LRU};
    for (int i = 0; i < n; i++) {
        found.lru[i] = replays[i];
        found.age_over_use[i] = replays[n + i];
        if (replays[i].slots == budget->slots &&
            replays[n + i].decode.hits > replays[i].decode.hits)
            found.better = PLUMB_EVICT_AGE_OVER_USE;
    }
    found.curve =
        plumb__hit_curve_recorded(found.better == PLUMB_EVICT_LRU ? found.lru : found.age_over_use,
                                  n, plumb__model_pairs(sizes));
    *recorded = found;
    return PLUMB_OK;
}
