/* Experts on threads.  Slots are visited group by group; `place` is a slot's number in that order.
 * Three passes, each over all groups at once, so that threads wait for each other three times and
 * not for every expert. */
#include "backend/cpu/cpu_backend.h"

typedef struct experts_job {
    plumb_cpu_backend *cpu;
    const plumb_expert_group *groups;
    int64_t n_groups, slots_per_row, hidden, inter;
    int64_t places;               /* slots of all groups */
    int64_t most_rows;            /* of any group */
    const float *weights;
    float limit;
    const void **x;               /* [places] the quantised row of each slot */
    plumb_act *gate, *up;         /* [places][inter]; gate becomes t */
    plumb_quantized *t;           /* [places][inter] */
    const void **t_rows;          /* [places] rows of t */
    int64_t *first;               /* [n_groups] first place of the group */
    int64_t *slot;                /* [places] */
    plumb_act *outputs;           /* [][hidden], a group's from its `first` on */
} experts_job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

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
        part(job, group, begin * PLUMB_CPU_UNIT, least(end * PLUMB_CPU_UNIT, columns), scratch);
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
    if (!job->cpu->kernels->linear_quantized(job->t_rows + job->first[group], g->count,
                                             &g->expert.down, begin, end,
                                             job->outputs + g->first * job->hidden, job->hidden,
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
            t, job->inter, plumb__cpu_quantized_row(job->cpu, job->t, job->inter, place));
    }
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

/* Points every buffer of the job into the backend's work memory and lays out the places. */
static bool plan_experts(experts_job *job, const plumb_quantized *x) {
    plumb_cpu_backend *cpu = job->cpu;
    int64_t act = (int64_t)sizeof(plumb_act);
    for (int64_t g = 0; g < job->n_groups; g++) job->places += job->groups[g].count;
    int64_t places = job->places;
    job->x = plumb__cpu_work_buffer(cpu, PLUMB_WORK_ROWS, 2 * places * (int64_t)sizeof *job->x);
    job->gate = plumb__cpu_work_buffer(cpu, PLUMB_WORK_GATE, places * job->inter * act);
    job->up = plumb__cpu_work_buffer(cpu, PLUMB_WORK_UP, places * job->inter * act);
    job->t = plumb__cpu_work_buffer(cpu, PLUMB_WORK_QUANTIZED,
                                    plumb__cpu_quantized_bytes(cpu, places, job->inter));
    job->first = plumb__cpu_work_buffer(cpu, PLUMB_WORK_PLACES, (job->n_groups + places) * 8);
    if (!job->x || !job->gate || !job->up || !job->t || !job->first) return false;
    job->t_rows = job->x + places;
    job->slot = job->first + job->n_groups;
    int64_t place = 0;
    for (int64_t g = 0; g < job->n_groups; g++) {
        job->first[g] = place;
        if (job->groups[g].count > job->most_rows) job->most_rows = job->groups[g].count;
        for (int64_t i = 0; i < job->groups[g].count; i++, place++) {
            int64_t slot = job->groups[g].slots[i];
            job->slot[place] = slot;
            job->x[place] =
                plumb__cpu_quantized_row(cpu, x, job->hidden, slot / job->slots_per_row);
            job->t_rows[place] = plumb__cpu_quantized_row(cpu, job->t, job->inter, place);
        }
    }
    return true;
}

void plumb__cpu_experts(plumb_backend *b, const plumb_quantized *x,
                        const plumb_expert_group *groups, int64_t n_groups, const float *weights,
                        int64_t slots_per_row, float limit, plumb_act *outputs) {
    experts_job job = {.cpu = (plumb_cpu_backend *)b, .groups = groups, .n_groups = n_groups,
                       .slots_per_row = slots_per_row, .hidden = groups[0].expert.gate.k,
                       .inter = groups[0].expert.gate.n, .weights = weights, .limit = limit,
                       .outputs = outputs};
    if (!plan_experts(&job, x)) return;
    plumb_pool *pool = job.cpu->pool;
    int64_t step = PLUMB_CPU_UNIT * job.places;
    plumb__pool_run(pool, plumb__cpu_units(job.inter), plumb__cpu_grain(step * job.hidden), gate_up,
                    &job);
    plumb__pool_run(pool, job.places, plumb__cpu_grain(8 * job.inter), activate, &job);
    plumb__pool_run(pool, plumb__cpu_units(job.hidden), plumb__cpu_grain(step * job.inter), down,
                    &job);
}

/* ---- Their sum ------------------------------------------------------------------------------- */

typedef struct sum_job {
    plumb_cpu_backend *cpu;
    const plumb_act **output; /* [rows][slots_per_row] */
    int64_t slots_per_row, hidden;
    plumb_act *out;           /* [rows][hidden] */
} sum_job;

static void add_outputs(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    sum_job *job = arg;
    for (int64_t row = begin; row < end; row++)
        job->cpu->kernels->moe_sum(job->output + row * job->slots_per_row, job->slots_per_row,
                                   job->hidden, job->out + row * job->hidden);
}

void plumb__cpu_experts_sum(plumb_backend *b, const plumb_act *outputs, const int32_t *where,
                            int64_t rows, int64_t slots_per_row, int64_t hidden, plumb_act *out) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    int64_t slots = rows * slots_per_row;
    const plumb_act **output =
        plumb__cpu_work_buffer(cpu, PLUMB_WORK_PLACES, slots * (int64_t)sizeof *output);
    if (!output) return;
    for (int64_t s = 0; s < slots; s++) output[s] = outputs + where[s] * hidden;
    sum_job job = {cpu, output, slots_per_row, hidden, out};
    plumb__pool_run(cpu->pool, rows, plumb__cpu_grain(slots_per_row * hidden), add_outputs, &job);
}
