#include "plan/speed_plan.h"

enum { COLD_ROWS = 2048 };

const char *plumb__plan_mode_name(plumb_plan_mode mode) {
    static const char *const names[] = {"resident", "cache", "layers"};
    return names[mode];
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t positive(int64_t a) {
    return a > 0 ? a : 0;
}

/* Two layers' worth of slots are in motion during a sweep; the others may keep what they hold. */
static int64_t kept(const plumb_model_sizes *sizes, int64_t slots) {
    int64_t pairs = plumb__model_pairs(sizes);
    return slots == pairs ? pairs : positive(slots - 2 * sizes->config.experts);
}

/* `settled`: of a run that has read its tables, where they have room. */
static void bound_prefill(const plumb_model_sizes *sizes, const plumb_model_sizes *settled,
                          plumb_speed_plan *plan) {
    const plumb_budget *b = &plan->budget;
    plan->cold_rows = least(COLD_ROWS, b->context);
    plumb_prompt prompt = {.rows = plan->cold_rows,
                           .end = plan->cold_rows,
                           .chunk = b->chunk,
                           .kept_computing = kept(sizes, b->slots),
                           .kept_anywhere = kept(sizes, plan->slots)};
    plan->cold = plumb__bound_prefill(sizes, &plan->rates, &prompt);
    /* Far enough from the end for no layer to need rows of this chunk for its last windows. */
    prompt.rows = b->chunk;
    prompt.end = b->chunk + sizes->config.layers * sizes->config.window;
    plan->chunk = plumb__bound_prefill(sizes, &plan->rates, &prompt);
    prompt.warm = true;
    plan->kept = plumb__bound_prefill(settled, &plan->rates, &prompt);
}

/* Where memory is left for the tables too, the system keeps them once they were read. */
static plumb_model_sizes settle(const plumb_model_sizes *sizes, const plumb_budget *b) {
    plumb_model_sizes settled = *sizes;
    bool fit = b->device_memory == 0 && b->unused >= sizes->engram_bytes + sizes->embed_bytes;
    if (fit) settled.row_read_bytes = 0;
    return settled;
}

plumb_status plumb__speed_plan_make(const plumb_model_sizes *sizes,
                                    const plumb_budget_request *request, const plumb_rates *rates,
                                    const plumb_hit_curve *curve, plumb_speed_plan *out,
                                    plumb_error *err) {
    plumb_speed_plan plan = {.rates = *rates, .pairs = plumb__model_pairs(sizes)};
    plumb_status status = plumb__budget_split(sizes, request, &plan.budget, err);
    if (status != PLUMB_OK) return status;
    plan.slots = plan.budget.slots + plan.budget.second_slots;
    plan.mode = plan.slots == plan.pairs                          ? PLUMB_PLAN_RESIDENT
                : plan.slots >= plumb__model_token_experts(sizes) ? PLUMB_PLAN_CACHE
                                                                  : PLUMB_PLAN_LAYERS;
    if (plan.mode != PLUMB_PLAN_LAYERS)
        plan.hits = (plumb_hits){plumb__hit_rate(curve, plan.budget.slots, plan.pairs),
                                 plumb__hit_rate(curve, plan.slots, plan.pairs)};
    plumb_model_sizes settled = settle(sizes, &plan.budget);
    plan.decode = plumb__bound_decode(&settled, rates, plan.hits, plan.budget.context - 1);
    bound_prefill(sizes, &settled, &plan);
    *out = plan;
    return PLUMB_OK;
}

/* ---- Changes ------------------------------------------------------------------------------------
 */

static bool helps(const plumb_speed_plan *before, const plumb_speed_plan *after) {
    const double least_gain = 1.01;
    return after->decode.serial > least_gain * before->decode.serial ||
           after->decode.overlapped > least_gain * before->decode.overlapped ||
           after->chunk.overlapped > least_gain * before->chunk.overlapped ||
           after->kept.overlapped > least_gain * before->kept.overlapped;
}

/* The least memory of a machine that leaves `usable` of it. */
static int64_t memory_for(int64_t usable) {
    int64_t memory = usable;
    while (memory - plumb__budget_system_bytes(memory) < usable)
        memory = usable + plumb__budget_system_bytes(memory) + 1;
    return memory;
}

static int64_t cache_memory(const plumb_model_sizes *sizes, const plumb_budget *b) {
    int64_t slots = plumb__model_token_experts(sizes) * b->slot_bytes;
    return memory_for(b->dense + b->session + b->work + slots);
}

int plumb__speed_plan_changes(const plumb_model_sizes *sizes, const plumb_budget_request *request,
                              const plumb_rates *rates, const plumb_hit_curve *curve,
                              const plumb_speed_plan *plan, plumb_change changes[PLUMB_CHANGES]) {
    const plumb_budget *b = &plan->budget;
    bool ring = plan->mode == PLUMB_PLAN_LAYERS && b->device_memory == 0;
    const plumb_change wanted[PLUMB_CHANGES] = {
        {.kind = PLUMB_CHANGE_CACHE, .value = ring ? (double)cache_memory(sizes, b) : 0},
        {.kind = PLUMB_CHANGE_MEMORY, .value = 1.5 * (double)b->memory},
        {.kind = PLUMB_CHANGE_MEMORY, .value = 2.0 * (double)b->memory},
        {.kind = PLUMB_CHANGE_DISK, .value = 2.0 * rates->disk},
        {.kind = PLUMB_CHANGE_CHUNK, .value = (double)least(2 * b->chunk, b->context)},
    };
    int n = 0;
    for (int i = 0; i < PLUMB_CHANGES; i++) {
        plumb_change change = wanted[i];
        if (change.value <= 0 || change.value >= (double)INT64_MAX) continue;
        plumb_budget_request asked = *request;
        plumb_rates given = *rates;
        asked.context = b->context;
        asked.chunk = b->chunk;
        if (change.kind == PLUMB_CHANGE_DISK)
            given.disk = change.value;
        else if (change.kind == PLUMB_CHANGE_CHUNK)
            asked.chunk = (int64_t)change.value;
        else
            asked.memory = (int64_t)change.value;
        plumb_status status =
            plumb__speed_plan_make(sizes, &asked, &given, curve, &change.plan, NULL);
        if (status == PLUMB_OK && helps(plan, &change.plan)) changes[n++] = change;
    }
    return n;
}
