/* Attention and index selection on threads.
 *
 * Attention: with several rows a thread takes whole rows; a single row is split by heads.  Index
 * selection takes whole rows: scores, candidate pool, top-k. */
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/select.h"

typedef struct attention_job {
    plumb_cpu_backend *cpu;
    const plumb_attention_args *a;
    int64_t parts; /* head ranges a row is split into */
} attention_job;

static void run_attention(void *arg, int64_t begin, int64_t end, int thread) {
    attention_job *job = arg;
    const plumb_attention_args *a = job->a;
    int64_t per_part = (a->heads + job->parts - 1) / job->parts;
    int64_t floats =
        plumb__attention_scratch(a->dim, per_part, a->window + a->selected_stride);
    float *scratch = plumb__cpu_scratch(job->cpu, thread, floats * 4);
    if (!scratch) return;
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % job->parts * per_part;
        int64_t last = first + per_part < a->heads ? first + per_part : a->heads;
        if (first < last) job->cpu->kernels->attention(a, item / job->parts, first, last, scratch);
    }
}

void plumb__cpu_attention(plumb_backend *b, const plumb_attention_args *args, int64_t rows) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    int threads = plumb__pool_threads(cpu->pool);
    attention_job job = {cpu, args, rows >= threads ? 1 : threads};
    int64_t cost = 2 * args->heads * args->dim * args->window;
    plumb__pool_run(cpu->pool, rows * job.parts, plumb__cpu_grain(cost / job.parts), run_attention,
                    &job);
}

void plumb__cpu_index_weights(plumb_backend *b, const plumb_act *proj, int64_t count, float factor,
                              float *weight) {
    (void)b;
    for (int64_t i = 0; i < count; i++)
        weight[i] = plumb__load(plumb__store(plumb__load(proj[i]) * factor));
}

typedef struct index_job {
    plumb_cpu_backend *cpu;
    const plumb_index_args *a;
} index_job;

/* The best blocks of the visible positions; the newest one is always in. */
static void build_pool(const plumb_index_args *a, int64_t row, const float *score, int64_t visible,
                       float *block_score) {
    int64_t blocks = (visible + a->block_size - 1) / a->block_size;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t last = (i + 1) * a->block_size < visible ? (i + 1) * a->block_size : visible;
        float most = score[i * a->block_size];
        for (int64_t j = i * a->block_size + 1; j < last; j++)
            most = score[j] > most ? score[j] : most;
        block_score[i] = most;
    }
    if (blocks > 0) block_score[blocks - 1] = plumb__float_of(0x7F800000u);
    a->pool_count[row] = (int32_t)plumb__select_top(block_score, blocks, a->pool_blocks,
                                                    a->pool + row * a->pool_blocks);
}

/* Positions of the row's pool, ascending; returns how many. */
static int64_t pool_positions(const plumb_index_args *a, int64_t row, int64_t visible,
                              int32_t *positions) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->pool_count[row]; i++) {
        int64_t first = a->pool[row * a->pool_blocks + i] * a->block_size;
        int64_t last = first + a->block_size < visible ? first + a->block_size : visible;
        for (int64_t j = first; j < last; j++) positions[n++] = (int32_t)j;
    }
    return n;
}

static void select_row(plumb_cpu_backend *cpu, const plumb_index_args *a, int64_t row,
                       float *scratch) {
    int64_t visible = (a->position + row + 1) / a->ratio;
    float *score = scratch, *kernel_scratch = score + visible;
    float *block_score = kernel_scratch + plumb__index_scratch(a->heads, a->dim);
    int32_t *positions = (int32_t *)(void *)(block_score + visible);
    int32_t *selected = a->selected + row * a->top_k;
    const int32_t *searched = NULL;
    int64_t count = visible;
    if (a->use_pool) {
        count = pool_positions(a, row, visible, positions);
        searched = positions;
    }
    if (!cpu->kernels->index_scores(a, row, searched, count, score, kernel_scratch))
        plumb__cpu_fault(cpu, PLUMB_ERROR_VALUE);
    if (a->build_pool) build_pool(a, row, score, visible, block_score);
    int64_t n = plumb__select_top(score, count, a->top_k, selected);
    if (searched)
        for (int64_t i = 0; i < n; i++) selected[i] = searched[selected[i]];
    a->selected_count[row] = (int32_t)n;
}

static void run_select(void *arg, int64_t begin, int64_t end, int thread) {
    index_job *job = arg;
    const plumb_index_args *a = job->a;
    int64_t visible = (a->position + end) / a->ratio; /* of the last row */
    int64_t floats = 3 * visible + plumb__index_scratch(a->heads, a->dim);
    float *scratch = plumb__cpu_scratch(job->cpu, thread, floats * 4);
    if (!scratch) return;
    for (int64_t row = begin; row < end; row++) select_row(job->cpu, a, row, scratch);
}

void plumb__cpu_index_select(plumb_backend *b, const plumb_index_args *args, int64_t rows) {
    index_job job = {(plumb_cpu_backend *)b, args};
    int64_t cost = args->heads * args->dim * (args->position / args->ratio + 1);
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(cost), run_select, &job);
}
