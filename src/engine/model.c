/* A loaded model: the public face of checkpoint, backend, weight source and network. */
#include "engine/engine.h"

#include "arith/float_env.h"
#include "base/error.h"
#include "base/machine.h"
#include "engine/device.h"
#include "engine/memory_budget.h"
#include "stream/hot_list.h"
#include "text/token_map.h"

#include <stdlib.h>
#include <unistd.h>

void plumb__model_log(const plumb_model_options *options, plumb_log_level level, const char *line) {
    if (options->log) options->log(options->log_user, level, line);
}

/* ---- Streaming or not ------------------------------------------------------------------------- */

/* Without streaming all experts end up in memory.  What leaves nothing to others is streamed. */
static bool fits(const plumb_model *model) {
    const plumb_checkpoint *checkpoint = model->checkpoint;
    int64_t needed = plumb__budget_dense_bytes(checkpoint);
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (t->tensor_class == PLUMB_CLASS_EXPERT) needed += t->bytes;
    }
    return plumb__machine_memory_bytes() == 0 || needed <= plumb__budget_default(model->backend);
}

static plumb_status choose_streaming(plumb_model *model, const plumb_model_options *options,
                                     plumb_error *err) {
    model->streaming = options->streaming || !fits(model);
    if (!model->streaming) return PLUMB_OK;
    int64_t memory = plumb__budget_limit(model->backend);
    model->memory_bytes =
        options->memory_bytes ? options->memory_bytes : plumb__budget_default(model->backend);
    if (memory > 0 && model->memory_bytes > memory) {
        /* A device may be allowed less than the machine has, which would look like a mistake. */
        bool is_machines = memory == plumb__machine_memory_bytes();
        plumb__model_log(options, PLUMB_LOG_WARNING,
                 plumb__format("a memory budget of %.1f GB is cut to %s %.1f GB",
                               (double)model->memory_bytes / 1e9,
                               is_machines ? "this machine's" : "what the system lets the GPU use,",
                               (double)memory / 1e9).s);
        model->memory_bytes = memory;
    }
    model->cache_experts = options->cache_experts;
    model->layer_buffers = options->layer_buffers;
    return plumb__budget_check_model(model, err);
}

static plumb_status open_source(plumb_model *model, const plumb_model_options *options,
                                const plumb_reading *reading, plumb_error *err) {
    const plumb_source_options source = {
        .slots = model->streaming ? 1 : 0, /* until the weights have their memory */
        .uncached = model->streaming, .eviction = PLUMB_EVICT_AGE_OVER_USE, .read_ahead = !options->no_read_ahead,
        .reader = reading->reader, .wrap = reading->wrap, .wrap_user = reading->wrap_user,
        .backend = model->backend, .log = options->log, .log_user = options->log_user};
    return plumb__source_open(model->checkpoint, &source, &model->source, err);
}

static bool uses_ring(plumb_model *model) {
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(plumb__source_cache(model->source), &stats);
    return plumb__budget_wants_ring(model, stats.slots);
}

static void log_streaming(plumb_model *model, const plumb_model_options *options) {
    plumb_expert_cache *cache = plumb__source_cache(model->source);
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(cache, &stats);
    const plumb_model_config *c = model->network.config;
    plumb__model_log(options, PLUMB_LOG_INFO,
             plumb__format("streaming: %.1f GB for dense weights, room for %lld of %lld experts "
                           "(%.1f GB), %s",
                           (double)model->network.weights.bytes / 1e9, (long long)stats.slots,
                           (long long)(c->layers * c->experts),
                           (double)(stats.slots * plumb__expert_cache_slot_bytes(cache)) / 1e9,
                           uses_ring(model) ? "as layer buffers" : "as a cache").s);
}

/* ---- Hot experts ------------------------------------------------------------------------------ */

/* A file that is there and is no hot list of this model is somebody's: it is left alone. */
static void read_hot_list(plumb_model *model, const plumb_model_options *options) {
    const plumb_model_config *c = model->network.config;
    size_t n = (size_t)(c->layers * c->experts);
    plumb_error err = {0};
    int32_t *keys = malloc(n * sizeof *keys);
    uint32_t *uses = calloc(n, sizeof *uses);
    char *path = strdup(options->hot_list);
    bool good = keys && uses && path;
    bool exists = access(options->hot_list, F_OK) == 0;
    if (good && exists && plumb__hot_list_read(path, c, uses, &err) != PLUMB_OK) {
        char line[1024];
        plumb_error_line(&err, line, sizeof line);
        plumb__model_log(options, PLUMB_LOG_WARNING, line);
        good = false;
    }
    plumb_expert_cache *cache = plumb__source_cache(model->source);
    if (good && !options->cold && !uses_ring(model))
        plumb__expert_cache_warm(cache, keys, plumb__hot_list_keys(c, uses, keys));
    free(keys);
    model->hot_list = good ? path : NULL;
    model->earlier_uses = good ? uses : NULL;
    if (good) return;
    free(path);
    free(uses);
}

/* A list that cannot be written is only missed by the next start. */
static void write_hot_list(plumb_model *model) {
    const plumb_model_config *c = model->network.config;
    int64_t n = c->layers * c->experts;
    uint32_t *uses = calloc((size_t)n, sizeof *uses);
    plumb_error ignored;
    if (!uses) return;
    plumb__expert_cache_uses(plumb__source_cache(model->source), uses);
    bool used = false; /* a run that asked for nothing has nothing to say */
    for (int64_t i = 0; i < n; i++) {
        uint64_t sum = (uint64_t)uses[i] + model->earlier_uses[i] / 2;
        used |= uses[i] > 0;
        uses[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    }
    if (used) (void)!plumb__hot_list_write(model->hot_list, c, uses, &ignored);
    free(uses);
}

/* ---- Life -------------------------------------------------------------------------------------- */

static plumb_status open_parts(plumb_model *model, const plumb_model_options *options,
                               const plumb_reading *reading, plumb_error *err) {
    plumb_status status = plumb__checkpoint_open(model->path, options->log, options->log_user,
                                                 &model->checkpoint, err);
    if (status != PLUMB_OK) return status;
    const plumb_model_config *config = plumb__checkpoint_config(model->checkpoint);
    status = plumb__device_open(model, options, err);
    if (status == PLUMB_OK) status = choose_streaming(model, options, err);
    if (status == PLUMB_OK)
        status = plumb__token_map_load(model->path, config->vocab, config->engram_folded_vocab,
                                       config->image_id, &model->token_map, err);
    if (status == PLUMB_OK) status = open_source(model, options, reading, err);
    if (status == PLUMB_OK)
        status = plumb__network_open(model->checkpoint, model->backend, model->source,
                                     model->token_map, &model->network, err);
    if (status != PLUMB_OK) return status;
    if (model->streaming) status = plumb__budget_check_model(model, err);
    if (status != PLUMB_OK) return status;
    model->network.routes = options->routes;
    model->network.routes_user = options->routes_user;
    plumb__budget_apply(model, 1);
    if (model->streaming && options->hot_list) read_hot_list(model, options);
    return PLUMB_OK;
}

plumb_status plumb_model_open(const char *path, const plumb_model_options *options,
                              plumb_model **out, plumb_error *err) {
    static const plumb_reading as_always = {0};
    return plumb__model_open_reading(path, options, &as_always, out, err);
}

static plumb_status check_options(const char *path, const plumb_model_options *o,
                                  plumb_error *err) {
    const struct {
        const char *field;
        int64_t value;
    } counts[] = {{"threads", o->threads}, {"memory_bytes", o->memory_bytes},
                  {"cache_experts", o->cache_experts}};
    if (!path) return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "path", -1, "NULL", "a folder");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < 0)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, counts[i].field, -1,
                               plumb__format("%lld", (long long)counts[i].value).s, "0 or more");
    return PLUMB_OK;
}

plumb_status plumb__model_open_reading(const char *path, const plumb_model_options *options,
                                       const plumb_reading *reading, plumb_model **out,
                                       plumb_error *err) {
    static const plumb_model_options defaults = {0};
    if (!options) options = &defaults;
    plumb_status status = check_options(path, options, err);
    if (status != PLUMB_OK) return status;
    plumb_model *model = calloc(1, sizeof *model);
    if (!model) return plumb__fail_memory(err, "model", sizeof *model);
    pthread_mutex_init(&model->lock, NULL);
    pthread_mutex_init(&model->digest_lock, NULL);
    model->available_memory = plumb__machine_available_bytes;
    model->threads = options->threads ? options->threads : plumb__machine_cores();
    model->path = strdup(path);
    /* Numbers of the config and rotary tables are rounded too: not in the caller's mode. */
    uint64_t modes;
    plumb__float_env_enter(&modes);
    status = model->path ? open_parts(model, options, reading, err)
                         : plumb__fail_memory(err, "path", strlen(path));
    plumb__float_env_leave(modes);
    if (status != PLUMB_OK) {
        plumb_model_close(model);
        return status;
    }
    if (model->streaming) log_streaming(model, options);
    *out = model;
    return PLUMB_OK;
}

void plumb_model_close(plumb_model *model) {
    if (!model) return;
    if (model->earlier_uses) write_hot_list(model);
    free(model->hot_list);
    free(model->earlier_uses);
    plumb__network_close(&model->network);
    plumb__source_close(model->source);
    if (model->backend) model->backend->ops->close(model->backend);
    free(model->token_map);
    plumb__checkpoint_close(model->checkpoint);
    free(model->path);
    pthread_mutex_destroy(&model->lock);
    pthread_mutex_destroy(&model->digest_lock);
    free(model);
}

void plumb_model_get_info(const plumb_model *model, plumb_model_info *info) {
    const plumb_model_config *c = model->network.config;
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(plumb__source_cache(model->source), &stats);
    *info = (plumb_model_info){
        .vocab_size = c->vocab, .hidden_size = c->hidden, .layers = c->layers,
        .experts = c->experts, .experts_per_token = c->experts_per_token,
        .max_positions = c->max_positions, .bos_id = c->bos_id, .eos_id = c->eos_id,
        .resident_bytes = model->network.weights.bytes + stats.bytes,
        .streaming = model->streaming, .threads = model->threads, .device = model->backend->ops->name,
        .cpu_level = model->cpu_level, .path = model->path};
}

/* ---- Streaming, while it runs ------------------------------------------------------------------ */

void plumb_model_get_stream_stats(plumb_model *model, plumb_stream_stats *stats) {
    plumb_expert_cache *cache = plumb__source_cache(model->source);
    plumb_expert_cache_stats experts;
    plumb__expert_cache_get_stats(cache, &experts);
    plumb_engram_row_stats rows;
    plumb__engram_rows_stats(plumb__source_engram_rows(model->source), &rows);
    *stats = (plumb_stream_stats){
        .expert_slots = experts.slots, .experts_held = experts.held,
        .expert_bytes = plumb__expert_cache_slot_bytes(cache),
        .hits = experts.hits, .misses = experts.misses,
        .bytes_read = experts.reads.bytes, .read_seconds = experts.reads.urgent_seconds,
        .read_bytes = experts.reads.urgent_bytes, .wait_seconds = experts.wait_seconds,
        .unpack_seconds = experts.unpack_seconds,
        .ahead_useful = experts.ahead_useful, .ahead_wasted = experts.ahead_wasted,
        .engram_rows = rows.asked, .engram_distinct = rows.distinct, .engram_cached = rows.cached,
        .engram_reads = rows.reads, .peak_memory_bytes = plumb__machine_peak_bytes()};
}

plumb_status plumb_model_set_cache(plumb_model *model, int64_t memory_bytes, int64_t cache_experts,
                                   plumb_error *err) {
    if (!model->streaming)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "cache", -1, "a model in memory",
                           "a streaming one");
    if (memory_bytes < 0 || cache_experts < 0 || (memory_bytes == 0 && cache_experts == 0))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "cache", -1,
                           plumb__format("%lld bytes, %lld experts", (long long)memory_bytes,
                                         (long long)cache_experts).s,
                           "one of them, above 0");
    int64_t bytes_before = model->memory_bytes, experts_before = model->cache_experts;
    if (memory_bytes > 0) model->memory_bytes = memory_bytes;
    model->cache_experts = cache_experts;
    plumb_status status = plumb__budget_check_model(model, err);
    if (status != PLUMB_OK) {
        model->memory_bytes = bytes_before;
        model->cache_experts = experts_before;
    } else if (pthread_mutex_trylock(&model->lock) == 0) {
        plumb__budget_apply(model, 1); /* else the next batch does */
        pthread_mutex_unlock(&model->lock);
    }
    return status;
}
