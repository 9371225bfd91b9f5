/* The mixture of experts: the router, the sorting of slots, the three steps of the experts and their sum,
 * each by itself and one after the other, as a layer runs them without the host's help. */
#include "metal/kernels/harness.h"

#include "t.h"

/* ---- Router -------------------------------------------------------------------------------------- */

/* Logits that differ, or are few values, so that most are ties: zeros of both signs and subnormals too. */
static const float *router_values(int64_t n, arena_values family) {
    static const float few[] = {0.0f, -0.0f, 1e-40f, -1e-40f, 1.0f, -1.0f, 1.0f, 30.0f, -120.0f};
    float *x = arena_block(n, sizeof *x);
    arena_floats(x, n, family);
    if (family != ARENA_BROKEN && arena_random() % 2)
        for (int64_t i = 0; i < n; i++) x[i] = ARENA_PICK(few);
    arena_seal(x);
    return x;
}

/* Whatever the values are, later kernels take the ids for places in tables. */
static bool are_ids(const int32_t *ids, int64_t k, int64_t experts) {
    bool good = true;
    for (int64_t i = 0; i < k; i++)
        good &= ids[i] >= 0 && ids[i] < experts && (i == 0 || ids[i] > ids[i - 1]);
    return good;
}

static void route(void) {
    int64_t rows = arena_between(1, 3), experts = harness_width(300);
    int64_t most = experts < 9 ? experts : 9;
    int64_t k = arena_random() % 8 ? arena_between(1, most) : experts;
    arena_values family = arena_random() % 4 ? harness_tame() : harness_any();
    const float *logits = router_values(rows * experts, family);
    const float *bias = router_values(experts, arena_random() % 4 ? harness_tame() : harness_any());
    HARNESS_OUTPUTS(int32_t, ids, got_ids, rows * k);
    HARNESS_OUTPUTS(float, weights, got_weights, rows * k);
    harness_cpu->ops->route(harness_cpu, logits, bias, rows, experts, k, 1.5f, ids, weights);
    bool fault = harness_cpu_fault();
    plumb_metal_route args = {(uint32_t)experts, (uint32_t)k, 1.5f};
    harness_call call = harness_begin("route", &args, sizeof args);
    harness_bind(&call, 2, logits, rows * experts * 4);
    harness_bind(&call, 3, bias, experts * 4);
    harness_bind(&call, 4, got_ids, rows * k * 4);
    harness_bind(&call, 5, got_weights, rows * k * 4);
    harness_threadgroup(&call, 0, 2 * experts * 4);
    bool also = harness_run(&call, rows, 1, PLUMB_METAL_SIMD);
    T_CHECK(fault == also, "experts %" PRId64 ": flag %d", experts, fault);
    for (int64_t r = 0; r < rows; r++) T_CHECK(are_ids(got_ids + r * k, k, experts), "no ids");
    T_CHECK(fault || !memcmp(ids, got_ids, (size_t)(rows * k) * 4), "ids of %" PRId64, experts);
    T_CHECK(fault || !memcmp(weights, got_weights, (size_t)(rows * k) * 4), "weights of %" PRId64,
            experts);
}

/* ---- A layer's experts ---------------------------------------------------------------------------- */

enum { MOST_EXPERTS = 40 };

typedef struct layer {
    int64_t rows, k, experts, hidden, inter, slots, n_groups;
    bool shared_fp8;
    plumb_expert expert[MOST_EXPERTS + 1]; /* the last is the shared one */
    int32_t *ids;                          /* [rows][k] ascending within a row */
    float *weights;                        /* [rows][k] */
    plumb_metal_expert *table, *shared;
} layer;

static plumb_matrix quantised(bool fp8, int64_t n, int64_t k) {
    int64_t bytes = fp8 ? n * k : n * k / 2, scales = (fp8 ? n / PLUMB_BLOCK : n) * (k / PLUMB_BLOCK);
    uint8_t *codes = arena_block(bytes, 1), *scale = arena_block(scales, 1);
    for (int64_t i = 0; i < bytes; i++) {
        codes[i] = (uint8_t)arena_random();
        if (fp8 && (codes[i] & 0x7F) == 0x7F) codes[i] ^= 1;
    }
    for (int64_t i = 0; i < scales; i++) scale[i] = (uint8_t)arena_between(112, 124);
    arena_seal(codes);
    arena_seal(scale);
    plumb_matrix_type type = fp8 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = codes, .scales = scale};
}

static uint64_t address(const void *memory) { return (uint64_t)(uintptr_t)memory; }

static plumb_metal_expert addresses(const plumb_expert *e) {
    return (plumb_metal_expert){
        .gate_codes = address(e->gate.codes), .gate_scales = address(e->gate.scales),
        .down_codes = address(e->down.codes), .down_scales = address(e->down.scales),
        .up_codes = address(e->up.codes), .up_scales = address(e->up.scales)};
}

/* k different experts a row, from a few or from all. */
static void choose(layer *l) {
    int64_t from = arena_random() % 2 ? l->experts : arena_between(l->k, l->experts);
    for (int64_t r = 0; r < l->rows; r++)
        for (int64_t i = 0, e = 0; i < l->k; e++)
            if (arena_between(0, from - e - 1) < l->k - i) l->ids[r * l->k + i++] = (int32_t)e;
}

/* Experts that no row has chosen are not in memory. */
static layer make_layer(int64_t rows, int64_t experts, int64_t k, int64_t hidden, int64_t inter) {
    layer l = {.rows = rows, .k = k, .experts = experts, .hidden = hidden, .inter = inter,
               .slots = rows * (k + 1), .shared_fp8 = arena_random() % 4 != 0};
    l.n_groups = (experts < rows * k ? experts : rows * k) + 1;
    l.ids = arena_block(rows * k, sizeof *l.ids);
    l.weights = arena_block(rows * k, sizeof *l.weights);
    l.table = arena_block(experts, sizeof *l.table);
    l.shared = arena_block(1, sizeof *l.shared);
    choose(&l);
    arena_floats(l.weights, rows * k, ARENA_PLAIN);
    memset(l.table, 0, (size_t)experts * sizeof *l.table);
    for (int64_t e = 0; e <= experts; e++) {
        bool used = e == experts, fp8 = used && l.shared_fp8;
        for (int64_t i = 0; i < rows * k; i++) used |= l.ids[i] == e;
        if (!used) continue;
        l.expert[e] = (plumb_expert){quantised(fp8, inter, hidden), quantised(fp8, hidden, inter),
                                     quantised(fp8, inter, hidden)};
        *(e == experts ? l.shared : &l.table[e]) = addresses(&l.expert[e]);
    }
    return l;
}

/* What group_experts makes. */
typedef struct sorted {
    plumb_metal_group *groups;
    int32_t *slots, *where;
    float *weights;
} sorted;

static sorted make_sorted(const layer *l) {
    return (sorted){.groups = arena_block(l->n_groups, sizeof(plumb_metal_group)),
                    .slots = arena_block(l->slots, 4), .where = arena_block(l->slots, 4),
                    .weights = arena_block(l->slots, 4)};
}

static harness_call group(const layer *l, const sorted *s) {
    plumb_metal_group_experts args = {
        .rows = (uint32_t)l->rows, .k = (uint32_t)l->k, .experts = (uint32_t)l->experts,
        .n_groups = (uint32_t)l->n_groups, .layer = HARNESS_LAYER, .shared_fp8 = l->shared_fp8};
    harness_call call = harness_begin("group_experts", &args, sizeof args);
    harness_bind(&call, 2, l->ids, l->rows * l->k * 4);
    harness_bind(&call, 3, l->weights, l->rows * l->k * 4);
    harness_bind(&call, 4, l->table, l->experts * (int64_t)sizeof *l->table);
    harness_bind(&call, 5, l->shared, (int64_t)sizeof *l->shared);
    harness_bind(&call, 6, s->groups, l->n_groups * (int64_t)sizeof *s->groups);
    harness_bind(&call, 7, s->slots, l->slots * 4);
    harness_bind(&call, 8, s->where, l->slots * 4);
    harness_bind(&call, 9, s->weights, l->slots * 4);
    harness_threadgroup(&call, 0, l->experts * 4);
    T_CHECK(!harness_run(&call, 1, 1, PLUMB_METAL_SELECT), "a fault");
    return call;
}

/* Slots by expert, rows ascending within, the shared expert's last; by looking for each in turn. */
static void check_sorted(const layer *l, const sorted *s) {
    int64_t at = 0, g = 0;
    for (int64_t e = 0; e <= l->experts; e++) {
        int64_t begin = at;
        bool shared = e == l->experts;
        for (int64_t slot = 0; slot < l->slots; slot++) {
            int64_t row = slot / (l->k + 1), place = slot % (l->k + 1);
            if (shared ? place != l->k : place == l->k || l->ids[row * l->k + place] != e) continue;
            float weight = shared ? 1.0f : l->weights[row * l->k + place];
            T_CHECK(s->slots[at] == slot && s->where[slot] == at, "slot %" PRId64, slot);
            T_CHECK(s->weights[slot] == weight, "weight of slot %" PRId64, slot);
            at++;
        }
        if (at == begin) continue;
        if (shared)
            for (; g < l->n_groups - 1; g++) T_CHECK(s->groups[g].count == 0, "group %" PRId64, g);
        const plumb_metal_expert *expert = shared ? l->shared : &l->table[e];
        const plumb_metal_group *group = &s->groups[g++];
        T_CHECK(group->begin == begin && group->count == at - begin, "expert %" PRId64, e);
        T_CHECK(group->fp8 == (shared && l->shared_fp8), "expert %" PRId64, e);
        T_CHECK(!memcmp(&group->expert, expert, sizeof *expert), "expert %" PRId64, e);
    }
    T_CHECK(g == l->n_groups, "%" PRId64 " groups", g);
}

static void group_experts(void) {
    int64_t experts = arena_between(1, MOST_EXPERTS), k = arena_between(1, experts < 8 ? experts : 8);
    layer l = make_layer(arena_between(1, 40), experts, k, PLUMB_BLOCK, PLUMB_BLOCK);
    sorted s = make_sorted(&l);
    harness_call call = group(&l, &s);
    T_CHECK(call.control->halted == 0, "halted at %u", call.control->halted);
    check_sorted(&l, &s);
    l.table[l.ids[arena_between(0, l.rows * k - 1)]].gate_codes = 0;
    call = group(&l, &s);
    T_CHECK(call.control->halted == HARNESS_LAYER + 1, "halted at %u", call.control->halted);
}

/* More experts than the group has threads. */
static void many_experts(void) {
    enum { EXPERTS = 600, ROWS = 5, K = 3 };
    layer l = {.rows = ROWS, .k = K, .experts = EXPERTS, .slots = ROWS * (K + 1),
               .n_groups = ROWS * K + 1};
    int32_t ids[ROWS * K] = {0, 255, 256, 1, 256, 511, 255, 512, 599, 0, 1, 2, 597, 598, 599};
    l.ids = arena_copy(ids, ROWS * K, 4);
    l.weights = arena_block(ROWS * K, 4);
    arena_floats(l.weights, ROWS * K, ARENA_PLAIN);
    l.table = arena_block(EXPERTS, sizeof *l.table);
    l.shared = arena_block(1, sizeof *l.shared);
    sorted s = make_sorted(&l);
    (void)group(&l, &s); /* addresses are the arena's pattern: not 0, and not looked at */
    check_sorted(&l, &s);
}

/* ---- The three steps and the sum ------------------------------------------------------------------ */

/* Rows as the kernel `quantize` leaves them (linear_test). */
static uint8_t *metal_rows(const plumb_act *x, int64_t rows, int64_t k) {
    int64_t row_bytes = PLUMB_METAL_QUANTIZED_BYTES(k);
    uint8_t *out = arena_scratch(rows * row_bytes);
    float *wide = arena_block(k, sizeof *wide);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) wide[i] = plumb__load(x[r * k + i]);
        plumb__window_pack(wide, k, out + r * row_bytes);
    }
    arena_seal(out);
    return out;
}

static harness_call step(const char *kernel, const layer *l, float limit) {
    plumb_metal_experts args = {(uint32_t)l->hidden, (uint32_t)l->inter, (uint32_t)(l->k + 1), limit};
    return harness_begin(kernel, &args, sizeof args);
}

/* Returns whether there was a fault. */
static bool metal_experts(const layer *l, const sorted *s, const plumb_act *x, float limit,
                          plumb_act *outputs) {
    int64_t places = l->slots, inter = places * l->inter * 2;
    int64_t groups = l->n_groups * (int64_t)sizeof *s->groups, tiles = (l->rows + 3) / 4;
    int64_t t_bytes = places * PLUMB_METAL_QUANTIZED_BYTES(l->inter);
    plumb_act *gate = arena_scratch(inter), *up = arena_scratch(inter);
    uint8_t *t = arena_scratch(t_bytes);
    harness_call call = step("experts_gate_up", l, limit);
    harness_bind(&call, 2, metal_rows(x, l->rows, l->hidden),
                 l->rows * PLUMB_METAL_QUANTIZED_BYTES(l->hidden));
    harness_bind(&call, 3, s->groups, groups);
    harness_bind(&call, 4, s->slots, places * 4);
    harness_bind(&call, 5, gate, inter);
    harness_bind(&call, 6, up, inter);
    harness_threadgroup(&call, 0, PLUMB_METAL_BLOCK_BYTES);
    bool fault = harness_run_3(&call, l->inter / PLUMB_METAL_COLUMNS, tiles, l->n_groups,
                               PLUMB_METAL_THREADS);
    call = step("experts_activate", l, limit);
    harness_bind(&call, 2, gate, inter);
    harness_bind(&call, 3, up, inter);
    harness_bind(&call, 4, s->groups, groups);
    harness_bind(&call, 5, s->slots, places * 4);
    harness_bind(&call, 6, s->weights, places * 4);
    harness_bind(&call, 7, t, t_bytes);
    fault |= harness_run_3(&call, (l->inter / PLUMB_BLOCK + 31) / 32, l->rows, l->n_groups,
                           PLUMB_METAL_SIMD);
    call = step("experts_down", l, limit);
    harness_bind(&call, 2, t, t_bytes);
    harness_bind(&call, 3, s->groups, groups);
    harness_bind(&call, 4, outputs, places * l->hidden * 2);
    harness_threadgroup(&call, 0, PLUMB_METAL_BLOCK_BYTES);
    fault |= harness_run_3(&call, l->hidden / PLUMB_METAL_COLUMNS, tiles, l->n_groups,
                           PLUMB_METAL_THREADS);
    return fault;
}

static void cpu_experts(const layer *l, const sorted *s, const plumb_act *x, float limit,
                        plumb_act *outputs) {
    const plumb_backend_ops *ops = harness_cpu->ops;
    plumb_expert_group groups[MOST_EXPERTS + 1];
    int64_t n = 0;
    for (int64_t g = 0; g < l->n_groups; g++) {
        const plumb_metal_group *from = &s->groups[g];
        if (from->count == 0) continue;
        bool shared = g == l->n_groups - 1;
        int64_t e = l->experts;
        if (!shared) {
            int32_t slot = s->slots[from->begin];
            e = l->ids[slot / (l->k + 1) * l->k + slot % (l->k + 1)];
        }
        groups[n++] = (plumb_expert_group){l->expert[e], s->slots + from->begin, from->count,
                                           from->begin};
    }
    plumb_quantized *xq = arena_scratch(ops->quantized_bytes(harness_cpu, l->rows, l->hidden));
    ops->quantize(harness_cpu, x, l->rows, l->hidden, xq);
    ops->experts(harness_cpu, xq, groups, n, s->weights, l->k + 1, limit, outputs);
}

/* outputs [rows * slots_per_row][hidden] */
static void check_sum(const plumb_act *outputs, const int32_t *where, int64_t rows,
                      int64_t slots_per_row, int64_t hidden) {
    HARNESS_OUTPUTS(plumb_act, expected, got, rows * hidden);
    harness_cpu->ops->experts_sum(harness_cpu, outputs, where, rows, slots_per_row, hidden, expected);
    plumb_metal_experts_sum args = {(uint32_t)rows, (uint32_t)slots_per_row, (uint32_t)hidden};
    harness_call call = harness_begin("experts_sum", &args, sizeof args);
    harness_bind(&call, 2, outputs, rows * slots_per_row * hidden * 2);
    harness_bind(&call, 3, where, rows * slots_per_row * 4);
    harness_bind(&call, 4, got, rows * hidden * 2);
    harness_run_flat(&call, rows * hidden);
    T_CHECK(harness_same_acts(expected, got, rows * hidden), "sum of %" PRId64, slots_per_row);
}

/* Large terms that cancel leave what the order of the others was. */
static void experts_sum(void) {
    int64_t rows = arena_between(1, 5), slots_per_row = arena_between(1, 9), hidden = harness_width(90);
    int64_t slots = rows * slots_per_row;
    plumb_act *outputs = arena_block(slots * hidden, sizeof *outputs);
    arena_acts(outputs, slots * hidden, harness_finite());
    int32_t *where = arena_block(slots, sizeof *where);
    for (int64_t s = 0; s < slots; s++) where[s] = (int32_t)((s + 1) % slots);
    if (slots_per_row > 3)
        for (int64_t i = 0; i < hidden; i++)
            outputs[where[slots_per_row - 1] * hidden + i] = outputs[where[1] * hidden + i] ^ 0x8000;
    check_sum(outputs, where, rows, slots_per_row, hidden);
}

/* Gates, products and weights of all magnitudes: products that leave the range in another order. */
static void activate(void) {
    static const float limits[] = {0.5f, 10.0f, 1e30f};
    int64_t inter = PLUMB_BLOCK * arena_between(1, 40), places = arena_between(1, 3);
    plumb_act *gate = arena_scratch(places * inter * 2), *up = arena_scratch(places * inter * 2);
    arena_acts(gate, places * inter, harness_finite());
    arena_acts(up, places * inter, harness_finite());
    const float *weights = arena_float_block(places, harness_finite());
    float limit = ARENA_PICK(limits);
    int32_t *slots = arena_block(places, sizeof *slots);
    for (int64_t i = 0; i < places; i++) slots[i] = (int32_t)(places - 1 - i);
    int64_t row_bytes = PLUMB_METAL_QUANTIZED_BYTES(inter);
    uint8_t *expected = arena_scratch(places * row_bytes), *got = arena_scratch(places * row_bytes);
    plumb_act *t = arena_block(inter, sizeof *t);
    float *wide = arena_block(inter, sizeof *wide);
    bool finite = true;
    for (int64_t i = 0; i < places; i++) {
        plumb__cpu_kernels_portable.swiglu(gate + i * inter, up + i * inter, weights[slots[i]], limit,
                                           inter, t);
        for (int64_t j = 0; j < inter; j++) wide[j] = plumb__load(t[j]);
        finite &= plumb__bits_of(plumb__absolute_max(wide, (int)inter)) < 0x7F800000u;
        plumb__window_pack(wide, inter, expected + i * row_bytes);
    }
    plumb_metal_group *group = arena_block(1, sizeof *group);
    *group = (plumb_metal_group){.count = (int32_t)places};
    plumb_metal_experts args = {.inter = (uint32_t)inter, .slots_per_row = 1, .limit = limit};
    harness_call call = harness_begin("experts_activate", &args, sizeof args);
    harness_bind(&call, 2, gate, places * inter * 2);
    harness_bind(&call, 3, up, places * inter * 2);
    harness_bind(&call, 4, group, (int64_t)sizeof *group);
    harness_bind(&call, 5, slots, places * 4);
    harness_bind(&call, 6, weights, places * 4);
    harness_bind(&call, 7, got, places * row_bytes);
    bool fault = harness_run(&call, (inter / PLUMB_BLOCK + 31) / 32, places, PLUMB_METAL_SIMD);
    T_CHECK(fault == !finite, "inter %" PRId64 ": flag %d", inter, fault);
    T_CHECK(fault || !memcmp(expected, got, (size_t)(places * row_bytes)), "inter %" PRId64, inter);
}

/* Activations of one family; huge ones and small limits make gates that are clamped on either side, and
 * weights beyond all bounds make faults. */
static void run_layer(int64_t hidden, int64_t inter, int64_t rows) {
    static const float limits[] = {10.0f, 10.0f, 0.5f, 1e30f};
    int64_t experts = arena_between(1, 9), k = arena_between(1, experts < 4 ? experts : 4);
    layer l = make_layer(rows, experts, k, hidden, inter);
    if (arena_random() % 6 == 0) l.weights[arena_between(0, rows * k - 1)] = 3e38f;
    sorted s = make_sorted(&l);
    (void)group(&l, &s);
    float limit = ARENA_PICK(limits);
    const plumb_act *x = arena_act_block(rows * hidden, harness_finite());
    HARNESS_OUTPUTS(plumb_act, expected, got, l.slots * hidden);
    cpu_experts(&l, &s, x, limit, expected);
    bool fault = harness_cpu_fault(), also = metal_experts(&l, &s, x, limit, got);
    T_CHECK(fault == also, "flag %d", fault);
    T_CHECK(fault || !memcmp(expected, got, (size_t)(l.slots * hidden) * sizeof *got),
            "hidden %" PRId64 " inter %" PRId64 " rows %" PRId64, hidden, inter, rows);
    if (!fault) check_sum(got, s.where, rows, k + 1, hidden);
}

static void layers(void) {
    run_layer(PLUMB_BLOCK * arena_between(1, 6), PLUMB_BLOCK * arena_between(1, 6),
              arena_between(1, 11));
}

/* More than a segment, and more blocks than a simdgroup has threads. */
static void wide_layers(void) { run_layer(1024 + 96, 1024 + 32, arena_between(1, 2)); }

/* ---- All of them --------------------------------------------------------------------------------- */

static void repeat(void (*round)(void), int rounds) {
    arena_seed(41);
    for (int i = 0; i < rounds; i++) {
        round();
        T_CHECK(arena_free_all(), "wrote outside");
    }
}
#define REPEATED(name, rounds) \
    static void name##_rounds(void) { repeat(name, rounds); }
REPEATED(route, 150)
REPEATED(group_experts, 30)
REPEATED(many_experts, 1)
REPEATED(experts_sum, 60)
REPEATED(activate, 100)
REPEATED(layers, 30)
REPEATED(wide_layers, 2)

int main(int argc, char **argv) {
    static const t_test tests[] = {{"route", route_rounds},
                                   {"group_experts", group_experts_rounds},
                                   {"many_experts", many_experts_rounds},
                                   {"experts_sum", experts_sum_rounds},
                                   {"activate", activate_rounds},
                                   {"layers", layers_rounds},
                                   {"wide_layers", wide_layers_rounds}};
    return harness_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
