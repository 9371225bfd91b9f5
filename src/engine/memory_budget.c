#include "engine/memory_budget.h"

#include "base/error.h"
#include "base/machine.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t plumb__budget_limit(plumb_backend *backend) {
    int64_t memory = plumb__machine_memory_bytes(), limit = backend->ops->memory_limit(backend);
    if (memory == 0) return limit;
    return limit > 0 ? least(limit, memory) : memory;
}

int64_t plumb__budget_default(plumb_backend *backend) {
    enum { GB = 1000000000 };
    int64_t memory = plumb__machine_memory_bytes();
    int64_t spared = memory - least(most(memory / 8, 4LL * GB), memory / 2);
    return least(spared, plumb__budget_limit(backend));
}

int64_t plumb__budget_dense_bytes(const plumb_checkpoint *checkpoint) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (t->tensor_class == PLUMB_CLASS_HEAD || t->tensor_class == PLUMB_CLASS_DENSE)
            bytes += t->bytes;
    }
    return bytes;
}

int64_t plumb__budget_least_slots(const plumb_model_config *c) {
    return least(2 * c->experts_per_token, c->layers * c->experts);
}

/* ---- Refusals --------------------------------------------------------------------------------- */

static double gb(int64_t bytes) { return (double)bytes / 1e9; }

static int64_t slots_bytes(const plumb_model *model) {
    const plumb_model_config *c = plumb__checkpoint_config(model->checkpoint);
    int64_t all = c->layers * c->experts, slots = model->cache_experts;
    if (!model->streaming) slots = all;
    if (slots == 0) slots = plumb__budget_least_slots(c);
    return least(slots, all) * plumb__expert_layout_bytes(c, PLUMB_READ_ALIGNMENT);
}

/* What everything must fit into; 0: no limit.  A model in memory may use swap space, but a device gets no
 * more than its own. */
static int64_t session_limit(const plumb_model *model) {
    if (model->streaming) return model->memory_bytes;
    return model->backend->ops->memory_limit(model->backend);
}

plumb_status plumb__budget_check_model(const plumb_model *model, plumb_error *err) {
    int64_t experts = slots_bytes(model);
    int64_t dense = most(plumb__budget_dense_bytes(model->checkpoint), model->network.weights.bytes);
    if (model->memory_bytes == 0 || dense + experts <= model->memory_bytes) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_MEMORY, plumb__checkpoint_path(model->checkpoint),
                       "memory budget", -1, plumb__format("%.2f GB", gb(model->memory_bytes)).s,
                       "at least %.2f GB: dense weights %.2f, experts %.2f", gb(dense + experts),
                       gb(dense), gb(experts));
}

plumb_status plumb__budget_check_session(plumb_model *model, int64_t context, int64_t chunk,
                                         plumb_error *err) {
    int64_t limit = session_limit(model);
    if (limit == 0) return PLUMB_OK;
    int64_t dense = model->network.weights.bytes, experts = slots_bytes(model);
    int64_t caches = model->promised_bytes;
    int64_t work = plumb__workspace_bytes(&model->network, chunk);
    if (dense + experts + caches + work <= limit) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_MEMORY, plumb__checkpoint_path(model->checkpoint),
                       model->streaming ? "memory budget" : "memory for the GPU", -1,
                       plumb__format("%.2f GB", gb(limit)).s,
                       "at least %.2f GB: dense weights %.2f, experts %.2f%s, sessions with a context of "
                       "%lld %.2f, a chunk of %lld rows %.2f",
                       gb(dense + experts + caches + work), gb(dense), gb(experts),
                       model->streaming ? "" : " (less when streamed)", (long long)context,
                       gb(caches), (long long)chunk, gb(work));
}

int64_t plumb__budget_chunk(plumb_model *model, int64_t context) {
    enum { LARGEST = 8192, SMALLEST = 256 };
    int64_t left = model->memory_bytes - model->network.weights.bytes - slots_bytes(model) -
                   model->promised_bytes - plumb__state_bytes_at(model->network.config, context);
    int64_t chunk = LARGEST;
    while (chunk > SMALLEST && plumb__workspace_bytes(&model->network, chunk) > left / 8) chunk /= 2;
    return chunk;
}

/* ---- Shares ----------------------------------------------------------------------------------- */

/* Slots that the system's free memory allows, with some left over: it may be short of it because of
 * others. */
static int64_t slots_without_pressure(plumb_model *model, const plumb_expert_cache_stats *stats,
                                      int64_t slot_bytes) {
    int64_t available = model->available_memory();
    if (available < 0) return INT64_MAX;
    int64_t spare = available - plumb__machine_memory_bytes() / 32;
    return (stats->bytes + spare) / slot_bytes;
}

bool plumb__budget_wants_ring(const plumb_model *model, int64_t slots) {
    const plumb_model_config *c = plumb__checkpoint_config(model->checkpoint);
    return model->layer_buffers || slots < c->experts_per_token * c->layers;
}

void plumb__budget_apply(plumb_model *model, int64_t rows) {
    if (!model->streaming) return;
    const plumb_model_config *c = model->network.config;
    plumb_expert_cache *cache = plumb__source_cache(model->source);
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(cache, &stats);
    int64_t slot_bytes = plumb__expert_cache_slot_bytes(cache), slots = model->cache_experts;
    if (slots == 0) {
        int64_t held = most(rows, model->network.work.rows);
        int64_t others = model->network.weights.bytes + model->session_bytes +
                         plumb__workspace_bytes(&model->network, held);
        slots = (model->memory_bytes - others) / slot_bytes;
    }
    if (model->layer_buffers) slots = least(slots, 2 * c->experts);
    slots = least(slots, slots_without_pressure(model, &stats, slot_bytes));
    int64_t fewest = plumb__budget_least_slots(c);
    if (model->cache_experts > 0) fewest = least(fewest, model->cache_experts);
    slots = most(slots, fewest);
    bool ring = plumb__budget_wants_ring(model, slots);
    plumb__expert_cache_set_slots(cache, slots, ring ? PLUMB_EVICT_OLDEST : PLUMB_EVICT_AGE_OVER_USE);
}
