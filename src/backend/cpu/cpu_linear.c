/* Linear operations and experts on threads: output columns are split, rows are not, so that every
 * thread reads its own share of the weights once. */
#include "backend/cpu/cpu_backend.h"

int64_t plumb__cpu_quantized_bytes(const plumb_cpu_backend *cpu, int64_t rows, int64_t k) {
    return rows * cpu->kernels->quantized_row_bytes(k);
}

static void *quantized_row(const plumb_cpu_backend *cpu, const plumb_quantized *q, int64_t k,
                           int64_t i) {
    return (char *)(uintptr_t)q + i * cpu->kernels->quantized_row_bytes(k);
}

typedef struct quantize_job {
    plumb_cpu_backend *cpu;
    const plumb_act *x;
    int64_t k;
    plumb_quantized *out;
} quantize_job;

static void quantize_rows(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    quantize_job *job = arg;
    bool finite = true;
    for (int64_t i = begin; i < end; i++)
        finite &= job->cpu->kernels->quantize_row(job->x + i * job->k, job->k,
                                                  quantized_row(job->cpu, job->out, job->k, i));
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

void plumb__cpu_quantize(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t k,
                         plumb_quantized *out) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    quantize_job job = {cpu, x, k, out};
    plumb__pool_run(cpu->pool, rows, plumb__cpu_grain(8 * k), quantize_rows, &job);
}

/* ---- Quantised weights ------------------------------------------------------------------- */

typedef struct quantized_job {
    plumb_cpu_backend *cpu;
    const void *const *x;
    int64_t rows;
    const plumb_matrix *w;
    plumb_act *y;
} quantized_job;

/* Threads share columns in units that panels of weight rows are made of. */
enum { UNIT = 16 };
static int64_t units(int64_t columns) { return (columns + UNIT - 1) / UNIT; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void quantized_columns(void *arg, int64_t begin, int64_t end, int thread) {
    quantized_job *job = arg;
    void *scratch = plumb__cpu_scratch(job->cpu, thread,
                                       job->cpu->kernels->linear_quantized_scratch(job->w->k, job->rows));
    if (!scratch) return;
    if (!job->cpu->kernels->linear_quantized(job->x, job->rows, job->w, begin * UNIT,
                                             least(end * UNIT, job->w->n), job->y, job->w->n,
                                             scratch))
        plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

void plumb__cpu_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                 const plumb_matrix *w, plumb_act *y) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    const void **row =
        plumb__cpu_work_buffer(cpu, PLUMB_WORK_ROWS, rows * (int64_t)sizeof *row);
    if (!row) return;
    for (int64_t i = 0; i < rows; i++) row[i] = quantized_row(cpu, x, w->k, i);
    quantized_job job = {cpu, row, rows, w, y};
    plumb__pool_run(cpu->pool, units(w->n), plumb__cpu_grain(UNIT * rows * w->k), quantized_columns,
                    &job);
}

/* ---- Lanes --------------------------------------------------------------------------------- */

typedef struct lanes_job {
    plumb_cpu_backend *cpu;
    const plumb_act *x;
    float *wide; /* [rows][k] */
    int64_t x_stride, rows;
    const plumb_matrix *w;
    plumb_act *y;
    float *y_float;
    int64_t y_stride;
} lanes_job;

static void widen_rows(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    lanes_job *job = arg;
    int64_t k = job->w->k;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->widen(job->x + i * job->x_stride, k, job->wide + i * k);
}

static void lanes_columns(void *arg, int64_t begin, int64_t end, int thread) {
    lanes_job *job = arg;
    int64_t k = job->w->k;
    void *scratch = plumb__cpu_scratch(job->cpu, thread, plumb__linear_scratch_bytes(k));
    if (!scratch) return;
    if (!job->cpu->kernels->linear(job->wide, k, job->rows, job->w, begin, end, job->y,
                                   job->y_float, job->y_stride, scratch))
        plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

void plumb__cpu_linear(plumb_backend *b, const plumb_act *x, int64_t x_stride, int64_t rows,
                       const plumb_matrix *w, plumb_act *y, float *y_float, int64_t y_stride) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    float *wide = plumb__cpu_work_buffer(cpu, PLUMB_WORK_WIDE, rows * w->k * (int64_t)sizeof *wide);
    if (!wide) return;
    lanes_job job = {cpu, x, wide, x_stride, rows, w, y, y_float, y_stride};
    plumb__pool_run(cpu->pool, rows, plumb__cpu_grain(w->k), widen_rows, &job);
    plumb__pool_run(cpu->pool, w->n, plumb__cpu_grain(rows * w->k), lanes_columns, &job);
}

/* ---- Experts ---------------------------------------------------------------------------------
 * Slots are visited group by group; `place` is a slot's number in that order.  Four passes, each
 * over all groups at once, so that threads wait for each other four times and not for every
 * expert. */

typedef struct experts_job {
    plumb_cpu_backend *cpu;
    const plumb_expert_group *groups;
    int64_t n_groups, slots_per_row, hidden, inter;
    int64_t most_rows;            /* of any group */
    const float *weights;
    float limit;
    const void **x;               /* [places] the quantised row of each slot */
    plumb_act *gate, *up;         /* [places][inter]; gate becomes t */
    plumb_quantized *t;           /* [places][inter] */
    const void **t_rows;          /* [places] rows of t */
    plumb_act *y;                 /* [places][hidden] */
    int64_t *first;               /* [n_groups] first place of the group */
    int64_t *slot;                /* [places] */
    const plumb_act **output;     /* [slots] where the slot's output lies */
    plumb_act *out;
} experts_job;

typedef void (*group_part)(experts_job *job, int64_t group, int64_t begin, int64_t end,
                           void *scratch);

/* Calls part for columns of units [begin, end) of every group: groups differ in rows and bytes, so a
 * thread takes its share of each. */
static void for_groups(experts_job *job, int64_t begin, int64_t end, int64_t columns, int64_t k,
                       int thread, group_part part) {
    const plumb_cpu_kernels *kernels = job->cpu->kernels;
    void *scratch = plumb__cpu_scratch(job->cpu, thread,
                                       kernels->linear_quantized_scratch(k, job->most_rows));
    if (!scratch) return;
    for (int64_t group = 0; group < job->n_groups; group++)
        part(job, group, begin * UNIT, least(end * UNIT, columns), scratch);
}

static void gate_up_part(experts_job *job, int64_t group, int64_t begin, int64_t end,
                         void *scratch) {
    const plumb_expert_group *g = &job->groups[group];
    int64_t place = job->first[group];
    const plumb_cpu_kernels *kernels = job->cpu->kernels;
    bool finite = kernels->linear_quantized(job->x + place, g->count, &g->expert.gate, begin, end,
                                            job->gate + place * job->inter, job->inter, scratch);
    finite &= kernels->linear_quantized(job->x + place, g->count, &g->expert.up, begin, end,
                                        job->up + place * job->inter, job->inter, scratch);
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

static void down_part(experts_job *job, int64_t group, int64_t begin, int64_t end, void *scratch) {
    const plumb_expert_group *g = &job->groups[group];
    int64_t place = job->first[group];
    if (!job->cpu->kernels->linear_quantized(job->t_rows + place, g->count, &g->expert.down, begin,
                                             end, job->y + place * job->hidden, job->hidden,
                                             scratch))
        plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

static void gate_up(void *arg, int64_t begin, int64_t end, int thread) {
    experts_job *job = arg;
    for_groups(job, begin, end, job->inter, job->hidden, thread, gate_up_part);
}

static void down(void *arg, int64_t begin, int64_t end, int thread) {
    experts_job *job = arg;
    for_groups(job, begin, end, job->hidden, job->inter, thread, down_part);
}

/* Places [begin, end): gated product times route weight, quantised for `down`. */
static void activate(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    experts_job *job = arg;
    bool finite = true;
    for (int64_t place = begin; place < end; place++) {
        plumb_act *t = job->gate + place * job->inter;
        job->cpu->kernels->swiglu(t, job->up + place * job->inter, job->weights[job->slot[place]],
                                  job->limit, job->inter, t);
        finite &= job->cpu->kernels->quantize_row(
            t, job->inter, quantized_row(job->cpu, job->t, job->inter, place));
    }
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

static void add_outputs(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    experts_job *job = arg;
    for (int64_t row = begin; row < end; row++)
        job->cpu->kernels->moe_sum(job->output + row * job->slots_per_row, job->slots_per_row,
                                   job->hidden, job->out + row * job->hidden);
}

/* Points every buffer of the job into the backend's work memory and lays out the places. */
static bool plan_experts(experts_job *job, const plumb_quantized *x, int64_t rows) {
    plumb_cpu_backend *cpu = job->cpu;
    int64_t slots = rows * job->slots_per_row, act = (int64_t)sizeof(plumb_act);
    job->x = plumb__cpu_work_buffer(cpu, PLUMB_WORK_ROWS, 2 * slots * (int64_t)sizeof *job->x);
    job->gate = plumb__cpu_work_buffer(cpu, PLUMB_WORK_GATE, slots * job->inter * act);
    job->up = plumb__cpu_work_buffer(cpu, PLUMB_WORK_UP, slots * job->inter * act);
    job->t = plumb__cpu_work_buffer(cpu, PLUMB_WORK_QUANTIZED,
                                    plumb__cpu_quantized_bytes(cpu, slots, job->inter));
    job->y = plumb__cpu_work_buffer(cpu, PLUMB_WORK_OUTPUT, slots * job->hidden * act);
    job->first = plumb__cpu_work_buffer(cpu, PLUMB_WORK_PLACES, (job->n_groups + 2 * slots) * 8);
    if (!job->x || !job->gate || !job->up || !job->t || !job->y || !job->first) return false;
    job->t_rows = job->x + slots;
    job->slot = job->first + job->n_groups;
    job->output = (const plumb_act **)(void *)(job->slot + slots);
    int64_t place = 0;
    for (int64_t g = 0; g < job->n_groups; g++) {
        job->first[g] = place;
        if (job->groups[g].count > job->most_rows) job->most_rows = job->groups[g].count;
        for (int64_t i = 0; i < job->groups[g].count; i++, place++) {
            int64_t slot = job->groups[g].slots[i];
            job->slot[place] = slot;
            job->x[place] = quantized_row(cpu, x, job->hidden, slot / job->slots_per_row);
            job->t_rows[place] = quantized_row(cpu, job->t, job->inter, place);
            job->output[slot] = job->y + place * job->hidden;
        }
    }
    return true;
}

void plumb__cpu_experts(plumb_backend *b, const plumb_quantized *x,
                        const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                        int64_t rows, int64_t slots_per_row, float limit, plumb_act *out) {
    experts_job job = {.cpu = (plumb_cpu_backend *)b, .groups = groups, .n_groups = n_groups,
                       .slots_per_row = slots_per_row, .hidden = groups[0].expert.gate.k,
                       .inter = groups[0].expert.gate.n, .weights = weights, .limit = limit,
                       .out = out};
    if (!plan_experts(&job, x, rows)) return;
    plumb_pool *pool = job.cpu->pool;
    int64_t slots = rows * slots_per_row, step = UNIT * slots;
    plumb__pool_run(pool, units(job.inter), plumb__cpu_grain(step * job.hidden), gate_up, &job);
    plumb__pool_run(pool, slots, plumb__cpu_grain(8 * job.inter), activate, &job);
    plumb__pool_run(pool, units(job.hidden), plumb__cpu_grain(step * job.inter), down, &job);
    plumb__pool_run(pool, rows, plumb__cpu_grain(slots_per_row * job.hidden), add_outputs, &job);
}
