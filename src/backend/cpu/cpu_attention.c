/* Attention and index selection on threads.
 *
 * With as many rows as threads a thread takes whole rows.  With fewer, attention splits each row by
 * heads, and index selection splits the scores of each row by keys; what follows from them, candidate
 * pool and top-k, is little beside them. */
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

/* One row's search: the keys that it may select from, and memory for its scores. */
typedef struct index_search {
    plumb_cpu_backend *cpu;
    const plumb_index_args *a;
    int64_t row, visible, count;
    const int32_t *searched; /* positions, or NULL: all that are visible */
    float *score;            /* [visible] */
    float *block_score;      /* [visible] */
} index_search;

/* memory: search_floats(visible), never none. */
static int64_t search_floats(int64_t visible) { return 3 * visible + 1; }

static index_search begin_search(plumb_cpu_backend *cpu, const plumb_index_args *a, int64_t row,
                                 float *memory) {
    int64_t visible = (a->position + row + 1) / a->ratio;
    index_search search = {.cpu = cpu, .a = a, .row = row, .visible = visible, .count = visible,
                           .score = memory, .block_score = memory + visible};
    if (a->use_pool) {
        int32_t *positions = (int32_t *)(void *)(memory + 2 * visible);
        search.count = pool_positions(a, row, visible, positions);
        search.searched = positions;
    }
    return search;
}

/* Scores of keys [begin, end) of the search. */
static void score_keys(const index_search *s, int64_t begin, int64_t end, float *scratch) {
    plumb_index_args from = *s->a;
    if (!s->searched) from.keys += begin * plumb__index_row_bytes(from.dim);
    if (!s->cpu->kernels->index_scores(&from, s->row, s->searched ? s->searched + begin : NULL,
                                       end - begin, s->score + begin, scratch))
        plumb__cpu_fault(s->cpu, PLUMB_ERROR_VALUE);
}

static void end_search(const index_search *s) {
    const plumb_index_args *a = s->a;
    int32_t *selected = a->selected + s->row * a->top_k;
    if (a->build_pool) build_pool(a, s->row, s->score, s->visible, s->block_score);
    int64_t n = plumb__select_top(s->score, s->count, a->top_k, selected);
    if (s->searched)
        for (int64_t i = 0; i < n; i++) selected[i] = s->searched[selected[i]];
    a->selected_count[s->row] = (int32_t)n;
}

typedef struct index_job {
    plumb_cpu_backend *cpu;
    const plumb_index_args *a;
} index_job;

static void select_rows(void *arg, int64_t begin, int64_t end, int thread) {
    index_job *job = arg;
    const plumb_index_args *a = job->a;
    int64_t kernel_floats = plumb__index_scratch(a->heads, a->dim);
    int64_t visible = (a->position + end) / a->ratio; /* of the last row */
    float *scratch =
        plumb__cpu_scratch(job->cpu, thread, (kernel_floats + search_floats(visible)) * 4);
    if (!scratch) return;
    for (int64_t row = begin; row < end; row++) {
        index_search search = begin_search(job->cpu, a, row, scratch + kernel_floats);
        score_keys(&search, 0, search.count, scratch);
        end_search(&search);
    }
}

/* Tiles [begin, end) of one search: so many keys that none is split. */
static void score_tiles(void *arg, int64_t begin, int64_t end, int thread) {
    const index_search *s = arg;
    int64_t floats = plumb__index_scratch(s->a->heads, s->a->dim);
    int64_t last = end * PLUMB_INDEX_KEYS < s->count ? end * PLUMB_INDEX_KEYS : s->count;
    float *scratch = plumb__cpu_scratch(s->cpu, thread, floats * 4);
    if (scratch) score_keys(s, begin * PLUMB_INDEX_KEYS, last, scratch);
}

void plumb__cpu_index_select(plumb_backend *b, const plumb_index_args *args, int64_t rows) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    int64_t cost = args->heads * args->dim; /* of a key */
    int64_t visible = (args->position + rows) / args->ratio;
    if (rows >= plumb__pool_threads(cpu->pool)) {
        index_job job = {cpu, args};
        plumb__pool_run(cpu->pool, rows, plumb__cpu_grain(cost * visible), select_rows, &job);
        return;
    }
    float *memory =
        plumb__cpu_work_buffer(cpu, PLUMB_WORK_SCORES, search_floats(visible) * 4);
    if (!memory) return;
    for (int64_t row = 0; row < rows; row++) {
        index_search search = begin_search(cpu, args, row, memory);
        int64_t tiles = (search.count + PLUMB_INDEX_KEYS - 1) / PLUMB_INDEX_KEYS;
        plumb__pool_run(cpu->pool, tiles, plumb__cpu_grain(cost * PLUMB_INDEX_KEYS), score_tiles,
                        &search);
        end_search(&search);
    }
}
