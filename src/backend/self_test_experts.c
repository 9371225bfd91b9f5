/* Vectors for the mixture of experts. */
#include "backend/self_test_trial.h"

enum { EXPERTS = 5, K = 2, SLOTS = K + 1, HIDDEN = 128, INTER = 192, ROWS = 5, LAYER = 7 };
static const float LIMIT = 8.0f;

/* A layer: routed experts in FP4, then the shared one in FP8; what its rows chose. */
typedef struct mixture {
    plumb_expert expert[EXPERTS + 1];
    plumb_quantized *x;
    int32_t *ids;   /* [ROWS][K] */
    float *weights; /* [ROWS][K] */
    int32_t *slots, *where;
    float *slot_weights;
    plumb_act *outputs, *out;
} mixture;

static plumb_expert expert(plumb_trial *t, plumb_matrix_type type) {
    return (plumb_expert){.gate = plumb__trial_matrix(t, type, INTER, HIDDEN),
                          .down = plumb__trial_matrix(t, type, HIDDEN, INTER),
                          .up = plumb__trial_matrix(t, type, INTER, HIDDEN)};
}

/* Expert 1 is that of all rows, expert 0 of none, the others of few. */
static mixture make_mixture(plumb_trial *t) {
    static const int32_t chosen[ROWS][K] = {{1, 2}, {1, 4}, {1, 2}, {1, 3}, {1, 2}};
    mixture m = {.x = plumb__trial_quantized(
                     t, plumb__trial_mirrored_rows(t, ROWS, HIDDEN, -2, 2), ROWS, HIDDEN)};
    for (int e = 0; e <= EXPERTS; e++)
        m.expert[e] = expert(t, e < EXPERTS ? PLUMB_MATRIX_FP4 : PLUMB_MATRIX_FP8);
    m.ids = plumb__trial_memory(t, ROWS * K, sizeof *m.ids);
    m.weights = plumb__trial_floats(t, ROWS * K, -2, 0);
    m.slots = plumb__trial_memory(t, ROWS * SLOTS, sizeof *m.slots);
    m.where = plumb__trial_memory(t, ROWS * SLOTS, sizeof *m.where);
    m.slot_weights = plumb__trial_memory(t, ROWS * SLOTS, sizeof *m.slot_weights);
    m.outputs = plumb__trial_memory(t, ROWS * SLOTS * HIDDEN, sizeof *m.outputs);
    m.out = plumb__trial_memory(t, ROWS * HIDDEN, sizeof *m.out);
    for (int i = 0; i < ROWS * K; i++) m.ids[i] = chosen[i / K][i % K];
    return m;
}

/* Slots by expert, the shared one last; returns the number of groups. */
static int64_t group(mixture *m, plumb_expert_group groups[EXPERTS + 1]) {
    int32_t n_groups = 0, placed = 0;
    for (int32_t e = 0; e <= EXPERTS; e++) {
        int32_t first = placed;
        for (int32_t slot = 0; slot < ROWS * SLOTS; slot++) {
            int32_t row = slot / SLOTS, place = slot % SLOTS;
            if ((place < K ? m->ids[row * K + place] : EXPERTS) != e) continue;
            m->slot_weights[slot] = place < K ? m->weights[row * K + place] : 1.0f;
            m->where[slot] = placed;
            m->slots[placed++] = slot;
        }
        if (placed == first) continue;
        groups[n_groups++] = (plumb_expert_group){m->expert[e], m->slots + first, placed - first, first};
    }
    return n_groups;
}

/* The last groups first, as when they were in memory and the others had to be read. */
static void experts(plumb_trial *t) {
    mixture m = make_mixture(t);
    plumb_expert_group groups[EXPERTS + 1];
    int64_t n = group(&m, groups), first = n / 2;
    t->b->ops->experts(t->b, m.x, groups + first, n - first, m.slot_weights, SLOTS, LIMIT,
                       m.outputs);
    t->b->ops->experts(t->b, m.x, groups, first, m.slot_weights, SLOTS, LIMIT, m.outputs);
    plumb__trial_result_is(t, m.outputs, ROWS * SLOTS * HIDDEN, sizeof *m.outputs);
}

/* Outputs of a row that cancel but for their roundings, if they are added in another order. */
static void experts_sum(plumb_trial *t) {
    enum { WIDTH = 90 };
    plumb_act *outputs = plumb__trial_acts(t, ROWS * SLOTS * WIDTH, -20, 10);
    int32_t *where = plumb__trial_memory(t, ROWS * SLOTS, sizeof *where);
    for (int32_t s = 0; s < ROWS * SLOTS; s++) where[s] = (7 * s + 3) % (ROWS * SLOTS);
    for (int32_t r = 0; r < ROWS; r++)
        for (int64_t i = 0; i < WIDTH; i++)
            outputs[where[r * SLOTS + 2] * WIDTH + i] =
                plumb__store(-plumb__load(outputs[where[r * SLOTS] * WIDTH + i]));
    plumb_act *out = plumb__trial_memory(t, ROWS * WIDTH, sizeof *out);
    t->b->ops->experts_sum(t->b, outputs, where, ROWS, SLOTS, WIDTH, out);
    plumb__trial_result_is(t, out, ROWS * WIDTH, sizeof *out);
}

/* ---- Experts that the backend finds by itself -------------------------------------------------- */

static plumb_expert_addresses addresses(plumb_backend *b, const plumb_expert *e) {
    uint64_t (*of)(plumb_backend *, const void *) = b->ops->address;
    return (plumb_expert_addresses){{of(b, e->gate.codes), of(b, e->gate.scales),
                                     of(b, e->down.codes), of(b, e->down.scales),
                                     of(b, e->up.codes), of(b, e->up.scales)}};
}

/* The same, by the caller, for a backend that does not offer it. */
static void experts_found(plumb_trial *t, mixture *m) {
    plumb_expert_group groups[EXPERTS + 1];
    int64_t n = group(m, groups);
    t->b->ops->experts(t->b, m->x, groups, n, m->slot_weights, SLOTS, LIMIT, m->outputs);
    t->b->ops->experts_sum(t->b, m->outputs, m->where, ROWS, SLOTS, HIDDEN, m->out);
}

/* With all experts at hand, then without one that is wanted: told by its layer, once, and nothing that
 * was asked for behind it has happened. */
static void experts_held(plumb_trial *t) {
    const plumb_backend_ops *ops = t->b->ops;
    mixture m = make_mixture(t);
    plumb_expert_addresses *table = plumb__trial_memory(t, EXPERTS, sizeof *table);
    int32_t *layers = plumb__trial_memory(t, 3, sizeof *layers);
    plumb_act *late = plumb__trial_memory(t, ROWS * HIDDEN, sizeof *late);
    plumb__trial_result_is(t, m.out, ROWS * HIDDEN, sizeof *m.out);
    plumb__trial_result_is(t, m.slot_weights, ROWS * SLOTS, sizeof *m.slot_weights);
    plumb__trial_result_is(t, layers, 3, sizeof *layers);
    plumb__trial_result_is(t, late, ROWS * HIDDEN, sizeof *late);
    if (!ops->experts_held) {
        experts_found(t, &m);
        layers[0] = layers[2] = -1;
        layers[1] = LAYER + 1;
        return;
    }
    plumb_held_experts held = {.layer = LAYER, .experts = EXPERTS, .k = K, .table = table,
                               .shared = &m.expert[EXPERTS], .x = m.x, .ids = m.ids,
                               .weights = m.weights, .limit = LIMIT, .slots = m.slots,
                               .where = m.where, .slot_weights = m.slot_weights,
                               .outputs = m.outputs, .out = m.out};
    for (int e = 1; e < EXPERTS; e++) table[e] = addresses(t->b, &m.expert[e]); /* 0 is not wanted */
    ops->experts_held(t->b, &held, ROWS);
    layers[0] = (int32_t)ops->missed(t->b);
    table[3] = (plumb_expert_addresses){0};
    held.layer = LAYER + 1;
    held.out = late;
    ops->experts_held(t->b, &held, ROWS);
    ops->copy(t->b, m.out, late, ROWS * HIDDEN * (int64_t)sizeof *late);
    layers[1] = (int32_t)ops->missed(t->b);
    layers[2] = (int32_t)ops->missed(t->b);
}

const plumb_trial_case plumb__trial_experts_cases[] = {
    {"experts", "experts_gate_up, experts_activate or experts_down", experts, false},
    {"experts_sum", "experts_sum", experts_sum, false},
    {"experts_held", "group_experts", experts_held, false},
    {0},
};
