/* Linear layers and experts. */
#import "backend/metal/metal_ops.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

/* ---- Linear layers ---------------------------------------------------------------------------- */

int64_t plumb__metal_quantized_bytes(plumb_backend *b, int64_t rows, int64_t k) {
    (void)b;
    return rows * PLUMB_METAL_QUANTIZED_BYTES(k);
}

void plumb__metal_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                   const plumb_matrix *w, plumb_act *y) {
    plumb_metal_linear_quantized arguments = {.rows = (uint32_t)rows, .n = (uint32_t)w->n,
                                              .k = (uint32_t)w->k};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = w->type == PLUMB_MATRIX_FP8 ? KERNEL_LINEAR_FP8 : KERNEL_LINEAR_FP4,
        PLUMB_METAL_GIVE(arguments),
        .memory = {x, w->codes, w->scales, y},
        .groups = {parts(w->n, PLUMB_METAL_COLUMNS), parts(rows, PLUMB_METAL_ROWS), 1},
        .threadgroup_bytes = {PLUMB_METAL_BLOCK_BYTES}});
}

void plumb__metal_linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                         const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride) {
    plumb_metal_linear arguments = {.n = (uint32_t)w->n, .k = (uint32_t)w->k,
                                    .x_stride = (uint32_t)x_stride,
                                    .y_stride = (uint32_t)y_stride, .to_float = y_float != NULL};
    plumb_metal_kernel kernel = w->type == PLUMB_MATRIX_FP8   ? KERNEL_LINEAR_DECODED
                                : w->type == PLUMB_MATRIX_F32 ? KERNEL_LINEAR_F32
                                                              : KERNEL_LINEAR_BF16;
    const void *out = y_float ? (const void *)y_float : y;
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = kernel,
        PLUMB_METAL_GIVE(arguments),
        .memory = {x, w->codes, w->scales ? (const void *)w->scales : w->codes, out},
        .groups = {parts(w->n, PLUMB_METAL_THREADS / PLUMB_METAL_SIMD), rows, 1}});
}

/* ---- Experts ---------------------------------------------------------------------------------- */

/* One run of the three steps: a list of groups and the memory it works in. */
typedef struct expert_run {
    plumb_metal_backend *m;
    plumb_metal_experts arguments;
    const void *groups;             /* memory of the backend, or NULL: `list` */
    const plumb_metal_group *list;
    int64_t n_groups, largest;      /* rows of the largest group, at most */
    const plumb_quantized *x;
    const int32_t *slots;
    const float *slot_weights;
    plumb_act *outputs;
} expert_run;

/* Work memory for `places` rows of an expert's inner width; false: none. */
static bool reserve_places(plumb_metal_backend *m, int64_t places, int64_t inter) {
    int64_t bytes = places * inter * (int64_t)sizeof(plumb_act);
    return plumb__metal_work_memory(m, WORK_GATE, bytes) &&
           plumb__metal_work_memory(m, WORK_UP, bytes) &&
           plumb__metal_work_memory(m, WORK_ACTIVATED, places * PLUMB_METAL_QUANTIZED_BYTES(inter));
}

static void run_experts(const expert_run *run) {
    plumb_metal_backend *m = run->m;
    const void *gate = m->work[WORK_GATE].memory, *up = m->work[WORK_UP].memory;
    const void *activated = m->work[WORK_ACTIVATED].memory;
    int64_t inter = run->arguments.inter, hidden = run->arguments.hidden;
    int64_t tiles = parts(run->largest, PLUMB_METAL_ROWS);
    size_t list_bytes = run->list ? (size_t)run->n_groups * sizeof *run->list : 0;
    plumb__metal_dispatch(m, &(plumb_metal_call){
        .kernel = KERNEL_EXPERTS_GATE_UP,
        PLUMB_METAL_GIVE(run->arguments),
        .memory = {run->x, run->groups, run->slots, gate, up},
        .list = run->list,
        .list_bytes = list_bytes,
        .groups = {parts(inter, PLUMB_METAL_COLUMNS), tiles, run->n_groups},
        .threadgroup_bytes = {PLUMB_METAL_BLOCK_BYTES}});
    plumb__metal_dispatch(m, &(plumb_metal_call){
        .kernel = KERNEL_EXPERTS_ACTIVATE,
        PLUMB_METAL_GIVE(run->arguments),
        .memory = {gate, up, run->groups, run->slots, run->slot_weights, activated},
        .list = run->list,
        .list_bytes = list_bytes,
        .groups = {parts(inter / PLUMB_BLOCK, PLUMB_METAL_SIMD), run->largest, run->n_groups}});
    plumb__metal_dispatch(m, &(plumb_metal_call){
        .kernel = KERNEL_EXPERTS_DOWN,
        PLUMB_METAL_GIVE(run->arguments),
        .memory = {activated, run->groups, run->outputs},
        .list = run->list,
        .list_bytes = list_bytes,
        .groups = {parts(hidden, PLUMB_METAL_COLUMNS), tiles, run->n_groups},
        .threadgroup_bytes = {PLUMB_METAL_BLOCK_BYTES}});
}

/* What kernels call an expert's payloads; false, which is a failure, when one is nowhere. */
static bool find_expert(plumb_metal_backend *m, const plumb_expert *e, plumb_metal_expert *found) {
    const void *memory[] = {e->gate.codes,  e->gate.scales, e->down.codes,
                            e->down.scales, e->up.codes,    e->up.scales};
    enum { PAYLOADS = sizeof memory / sizeof memory[0] };
    uint64_t address[PAYLOADS];
    for (int i = 0; i < PAYLOADS; i++) {
        address[i] = plumb__metal_address(&m->base, memory[i]);
        if (!address[i]) {
            plumb__metal_fail(m, PLUMB_ERROR_ARGUMENT);
            return false;
        }
    }
    *found = (plumb_metal_expert){address[0], address[1], address[2],
                                  address[3], address[4], address[5]};
    return true;
}

/* The next groups that one command takes by value, into `list`; false: not all are memory of ours. */
static bool list_groups(expert_run *run, const plumb_expert_group *groups, int64_t n_groups,
                        plumb_metal_group list[PLUMB_METAL_LISTED]) {
    run->list = list;
    run->n_groups = least(n_groups, PLUMB_METAL_LISTED);
    run->largest = 0;
    for (int64_t i = 0; i < run->n_groups; i++) {
        const plumb_expert_group *g = &groups[i];
        run->largest = g->count > run->largest ? g->count : run->largest;
        list[i] = (plumb_metal_group){.begin = (int32_t)g->first, .count = (int32_t)g->count,
                                      .fp8 = g->expert.gate.type == PLUMB_MATRIX_FP8};
        if (!find_expert(run->m, &g->expert, &list[i].expert)) return false;
    }
    return true;
}

/* Rows of outputs up to the last of the groups'; -1 when their slots are not parts of one list. */
static int64_t count_places(const plumb_expert_group *groups, int64_t n_groups) {
    int64_t places = 0;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t end = groups[g].first + groups[g].count;
        places = end > places ? end : places;
        if (groups[g].slots - groups[g].first != groups[0].slots - groups[0].first) return -1;
    }
    return places;
}

void plumb__metal_experts(plumb_backend *b, const plumb_quantized *x,
                          const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                          int64_t slots_per_row, float limit, plumb_act *outputs) {
    plumb_metal_backend *m = plumb__metal(b);
    if (n_groups <= 0) return;
    const plumb_matrix *shape = &groups[0].expert.gate;
    int64_t places = count_places(groups, n_groups);
    if (places < 0) plumb__metal_fail(m, PLUMB_ERROR_ARGUMENT);
    if (places < 0 || !reserve_places(m, places, shape->n)) return;
    expert_run run = {.m = m,
                      .arguments = {.hidden = (uint32_t)shape->k, .inter = (uint32_t)shape->n,
                                    .slots_per_row = (uint32_t)slots_per_row, .limit = limit},
                      .x = x, .slots = groups[0].slots - groups[0].first, .slot_weights = weights,
                      .outputs = outputs};
    for (int64_t first = 0; first < n_groups; first += run.n_groups) {
        plumb_metal_group list[PLUMB_METAL_LISTED];
        if (!list_groups(&run, groups + first, n_groups - first, list)) return;
        run_experts(&run);
    }
}

void plumb__metal_experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                              int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out) {
    plumb_metal_experts_sum arguments = {.rows = (uint32_t)rows,
                                         .slots_per_row = (uint32_t)slots_per_row,
                                         .hidden = (uint32_t)hidden};
    plumb__metal_dispatch(plumb__metal(b), &(plumb_metal_call){
        .kernel = KERNEL_EXPERTS_SUM,
        PLUMB_METAL_GIVE(arguments),
        .memory = {outputs, where, out},
        .groups = {plumb__metal_flat(rows * hidden), 1, 1}});
}

/* Groups that a layer's rows can make, the shared expert's counted. */
static int64_t most_groups(const plumb_held_experts *a, int64_t rows) {
    return least(a->experts, rows * a->k) + 1;
}

/* Makes the list of groups on the device. */
static void group_experts(plumb_metal_backend *m, const plumb_held_experts *a, int64_t rows,
                          const plumb_metal_expert *shared, const void *groups) {
    plumb_metal_group_experts arguments = {
        .rows = (uint32_t)rows, .k = (uint32_t)a->k, .experts = (uint32_t)a->experts,
        .n_groups = (uint32_t)most_groups(a, rows), .layer = (uint32_t)a->layer,
        .shared_fp8 = a->shared->gate.type == PLUMB_MATRIX_FP8};
    plumb__metal_dispatch(m, &(plumb_metal_call){
        .kernel = KERNEL_GROUP_EXPERTS,
        PLUMB_METAL_GIVE(arguments),
        .memory = {a->ids, a->weights, a->table, NULL, groups, a->slots, a->where, a->slot_weights},
        .list = shared,
        .list_bytes = sizeof *shared,
        .groups = {1, 1, 1},
        .threadgroup_bytes = {(a->experts + 3) / 4 * 4 * (int64_t)sizeof(uint32_t)}});
}

void plumb__metal_experts_held(plumb_backend *b, const plumb_held_experts *a, int64_t rows) {
    plumb_metal_backend *m = plumb__metal(b);
    if (rows <= 0) return;
    const plumb_matrix *shape = &a->shared->gate;
    int64_t n_groups = most_groups(a, rows);
    const void *groups = plumb__metal_work_memory(m, WORK_GROUPS,
                                                  n_groups * (int64_t)sizeof(plumb_metal_group));
    plumb_metal_expert shared;
    if (!groups || !reserve_places(m, rows * (a->k + 1), shape->n)) return;
    if (!find_expert(m, a->shared, &shared)) return;
    group_experts(m, a, rows, &shared, groups);
    /* Any expert may be that of all rows: what a group does not have is dropped by the kernels. */
    run_experts(&(expert_run){.m = m,
                              .arguments = {.hidden = (uint32_t)shape->k,
                                            .inter = (uint32_t)shape->n,
                                            .slots_per_row = (uint32_t)(a->k + 1),
                                            .limit = a->limit},
                              .groups = groups, .n_groups = n_groups, .largest = rows, .x = a->x,
                              .slots = a->slots, .slot_weights = a->slot_weights,
                              .outputs = a->outputs});
    plumb__metal_experts_sum(b, a->outputs, a->where, rows, a->k + 1, shape->k, a->out);
}

int64_t plumb__metal_working_bytes(plumb_backend *b, int64_t rows, int64_t widest, int64_t places,
                                   int64_t inter) {
    (void)rows, (void)widest; /* a kernel reads activations as they are */
    int64_t place = 2 * inter * (int64_t)sizeof(plumb_act) + PLUMB_METAL_QUANTIZED_BYTES(inter) +
                    (int64_t)sizeof(plumb_metal_group);
    return places * place + plumb__metal(b)->score_bytes;
}
