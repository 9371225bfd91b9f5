#include "plan/budget.h"

#include "base/error.h"
#include "stream/reader.h"

#include <inttypes.h>

enum {
    MOST_CONTEXT = 1 << 16, /* when none is asked for */
    MOST_CHUNK = 1 << 13,
    LEAST_CHUNK = 1 << 8
};

static const int64_t giga = INT64_C(1000) * 1000 * 1000;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t plumb__budget_system_bytes(int64_t memory) {
    int64_t system = memory / 8 > 4 * giga ? memory / 8 : 4 * giga;
    return least(system, memory / 2);
}

/* Contexts and kernels of a device's driver: a sixteenth, at least 1 GB, at most half. */
static int64_t driver_bytes(int64_t memory) {
    int64_t system = memory / 16 > giga ? memory / 16 : giga;
    return least(system, memory / 2);
}

/* An expert and what reading it in whole pages adds: the ends of codes and of scales. */
static int64_t slot_bytes(const plumb_model_sizes *sizes) {
    enum { RUNS = 2 };
    int64_t page = PLUMB_READ_ALIGNMENT;
    return (sizes->expert_bytes + RUNS * page + page - 1) / page * page;
}

/* The largest chunk whose working memory takes at most an eighth of what the weights leave. */
static int64_t choose_chunk(const plumb_model_sizes *sizes, int64_t context, int64_t left) {
    int64_t chunk = MOST_CHUNK;
    while (chunk > LEAST_CHUNK && plumb__model_work_bytes(&sizes->config, chunk) > left / 8)
        chunk /= 2;
    return least(chunk, context);
}

/* Two tokens may want different experts of a layer, and none may give way to another. */
static int64_t least_slots(const plumb_model_sizes *sizes) {
    return least(2 * sizes->config.experts_per_token, sizes->config.experts);
}

static double gb(int64_t bytes) {
    return (double)bytes / (double)giga;
}

static plumb_status refuse(const plumb_model_sizes *sizes, const plumb_budget *b, int64_t budget,
                           plumb_error *err) {
    int64_t slots = least_slots(sizes);
    int64_t needed = b->dense + b->session + b->work + slots * b->slot_bytes;
    bool device = b->device_memory > 0;
    return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, device ? "device memory" : "memory", -1,
                       plumb__format("%.3f GB, %.3f of it usable",
                                     gb(device ? b->device_memory : b->memory), gb(budget))
                           .s,
                       "%.3f GB usable: dense weights %.3f, session of %" PRId64
                       " positions %.3f, a chunk of %" PRId64 " rows %.3f, %" PRId64
                       " expert slots %.3f",
                       gb(needed), gb(b->dense), b->context, gb(b->session), b->chunk, gb(b->work),
                       slots, gb(slots * b->slot_bytes));
}

plumb_status plumb__budget_split(const plumb_model_sizes *sizes,
                                 const plumb_budget_request *request, plumb_budget *budget,
                                 plumb_error *err) {
    plumb_budget b = {.memory = request->memory,
                      .device_memory = request->device_memory,
                      .system = plumb__budget_system_bytes(request->memory),
                      .dense = sizes->dense_bytes,
                      .slot_bytes = slot_bytes(sizes)};
    if (b.device_memory > 0) b.device_system = driver_bytes(b.device_memory);
    int64_t computing =
        b.device_memory > 0 ? b.device_memory - b.device_system : b.memory - b.system;
    b.context =
        request->context > 0 ? request->context : least(sizes->config.max_positions, MOST_CONTEXT);
    b.session = plumb__model_session_bytes(&sizes->config, b.context);
    b.chunk = request->chunk > 0 ? least(request->chunk, b.context)
                                 : choose_chunk(sizes, b.context, computing - b.dense - b.session);
    b.work = plumb__model_work_bytes(&sizes->config, b.chunk);
    int64_t left = computing - b.dense - b.session - b.work, pairs = plumb__model_pairs(sizes);
    if (left < least_slots(sizes) * b.slot_bytes) return refuse(sizes, &b, computing, err);
    b.slots = least(left / b.slot_bytes, pairs);
    b.unused = b.slots == pairs ? left - pairs * b.slot_bytes : 0;
    if (b.device_memory > 0)
        b.second_slots = least((b.memory - b.system) / b.slot_bytes, pairs - b.slots);
    *budget = b;
    return PLUMB_OK;
}
