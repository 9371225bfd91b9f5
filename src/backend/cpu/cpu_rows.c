/* Operations that treat one row at a time: rows are split over threads. */
#include "backend/cpu/cpu_backend.h"

/* One job type for them all: each operation uses the members it needs. */
typedef struct rows_job {
    plumb_cpu_backend *cpu;
    const plumb_act *x;
    plumb_act *y;
    const float *a, *b;
    float *out;
    const uint8_t *live;
    int32_t *ids;
    int64_t width, heads, pairs, k;
    float eps, factor;
    bool flag;
} rows_job;

static void run_rms_norm(void *arg, int64_t begin, int64_t end, int thread) {
    rows_job *job = arg;
    float *scratch = plumb__cpu_scratch(job->cpu, thread, job->width * 4);
    if (!scratch) return;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->rms_norm(job->x + i * job->width, job->width, job->a, job->eps,
                                    job->y + i * job->width, scratch);
}

void plumb__cpu_rms_norm(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t width,
                         const float *w, float eps, plumb_act *y) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .x = x, .y = y, .a = w, .width = width,
                    .eps = eps};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(4 * width), run_rms_norm, &job);
}

static void run_rotate(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    rows_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->rotate(job->y + i * job->heads * job->width, job->heads, job->width,
                                  job->pairs, job->a + i * job->pairs, job->b + i * job->pairs,
                                  job->flag);
}

void plumb__cpu_rotate(plumb_backend *b, plumb_act *x, int64_t rows, int64_t heads, int64_t dim,
                       int64_t pairs, const float *cosine, const float *sine, bool inverse) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .y = x, .a = cosine, .b = sine, .width = dim,
                    .heads = heads, .pairs = pairs, .flag = inverse};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(8 * heads * pairs), run_rotate, &job);
}

/* ---- Hyper-connections --------------------------------------------------------------------- */

enum { MIX = 24, MIX_ROWS = 4 }; /* coefficients of a row; rows at a time */

typedef struct mix_job {
    plumb_cpu_backend *cpu;
    const plumb_act *h;
    int64_t width; /* 4 * hidden */
    const float *fn, *base, *scale;
    float norm_eps, hc_eps;
    int64_t iterations;
    float *pre, *post, *comb;
} mix_job;

/* The coefficients of a row from its floats and its products. */
static void finish_mix(const mix_job *job, int64_t row, const float *wide, const float *m) {
    const plumb_cpu_kernels *kernels = job->cpu->kernels;
    float r = 1.0f / plumb__sqrt(kernels->mean_square(wide, job->width) + job->norm_eps);
    bool finite = true;
    for (int i = 0; i < MIX; i++) finite &= (plumb__bits_of(m[i]) & 0x7F800000u) != 0x7F800000u;
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
    kernels->hc_coefficients(m, r, job->base, job->scale, job->hc_eps, job->iterations,
                             job->pre + row * 4, job->post + row * 4, job->comb + row * 16);
}

/* A row is not split: one thread is done with it before another would be awake. */
static void mix_rows(void *arg, int64_t begin, int64_t end, int thread) {
    const mix_job *job = arg;
    const plumb_cpu_kernels *kernels = job->cpu->kernels;
    float *wide = plumb__cpu_scratch(job->cpu, thread, MIX_ROWS * (job->width + MIX) * 4);
    if (!wide) return;
    float *m = wide + MIX_ROWS * job->width;
    for (int64_t first = begin; first < end; first += MIX_ROWS) {
        int64_t n = end - first < MIX_ROWS ? end - first : MIX_ROWS;
        kernels->widen(job->h + first * job->width, n * job->width, wide);
        kernels->lane_products(wide, n, job->fn, MIX, job->width, m, MIX);
        for (int64_t i = 0; i < n; i++)
            finish_mix(job, first + i, wide + i * job->width, m + i * MIX);
    }
}

void plumb__cpu_hc_mix(plumb_backend *b, const plumb_act *h, int64_t rows, int64_t hidden,
                       const plumb_matrix *fn, const float *base, const float *scale,
                       float norm_eps, float hc_eps, int64_t iterations, float *pre, float *post,
                       float *comb) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    mix_job job = {.cpu = cpu, .h = h, .width = 4 * hidden, .fn = fn->codes, .base = base,
                   .scale = scale, .norm_eps = norm_eps, .hc_eps = hc_eps,
                   .iterations = iterations, .pre = pre, .post = post, .comb = comb};
    plumb__pool_run(cpu->pool, rows, plumb__cpu_grain(MIX * job.width), mix_rows, &job);
}

static void run_hc_collapse(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    rows_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->hc_collapse(job->x + i * 4 * job->width, job->a + i * 4, job->width,
                                       job->y + i * job->width);
}

void plumb__cpu_hc_collapse(plumb_backend *b, const plumb_act *h, const float *pre, int64_t rows,
                            int64_t hidden, plumb_act *x) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .x = h, .a = pre, .width = hidden, .y = x};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(8 * hidden), run_hc_collapse, &job);
}

static void run_hc_update(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    rows_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->hc_update(job->y + i * 4 * job->width, job->x + i * job->width,
                                     job->a + i * 4, job->b + i * 16, job->width);
}

void plumb__cpu_hc_update(plumb_backend *b, plumb_act *h, const plumb_act *a, const float *post,
                          const float *comb, int64_t rows, int64_t hidden) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .y = h, .x = a, .a = post, .b = comb,
                    .width = hidden};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(20 * hidden), run_hc_update, &job);
}

/* ---- Cache rows ---------------------------------------------------------------------------- */

typedef void (*pack_fn)(const float *x, int64_t dim, uint8_t *row);

static void pack(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim, uint8_t *packed,
                 int64_t row_bytes, pack_fn pack_row) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    float *wide = plumb__cpu_scratch(cpu, 0, dim * 4);
    if (!wide) return;
    for (int64_t i = 0; i < rows; i++) {
        cpu->kernels->widen(x + i * dim, dim, wide);
        pack_row(wide, dim, packed + i * row_bytes);
    }
}

void plumb__cpu_pack_window(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                            uint8_t *packed) {
    pack(b, x, rows, dim, packed, plumb__window_row_bytes(dim),
         ((plumb_cpu_backend *)b)->kernels->pack_window);
}

void plumb__cpu_pack_compressed(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                                uint8_t *packed) {
    pack(b, x, rows, dim, packed, plumb__compressed_row_bytes(dim),
         ((plumb_cpu_backend *)b)->kernels->pack_compressed);
}

void plumb__cpu_pack_index(plumb_backend *b, const plumb_act *x, int64_t rows, int64_t dim,
                           uint8_t *packed) {
    pack(b, x, rows, dim, packed, plumb__index_row_bytes(dim),
         ((plumb_cpu_backend *)b)->kernels->pack_index);
}

static void run_compress(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    rows_job *job = arg;
    for (int64_t i = begin; i < end; i++)
        job->cpu->kernels->compress_pair(job->a + 2 * i * job->width, job->b + 2 * i * job->width,
                                         job->width, job->y + i * job->width);
}

void plumb__cpu_compress_pairs(plumb_backend *b, const float *value, const float *gate,
                               int64_t pairs, int64_t dim, plumb_act *latent) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .a = value, .b = gate, .width = dim,
                    .y = latent};
    plumb__pool_run(job.cpu->pool, pairs, plumb__cpu_grain(40 * dim), run_compress, &job);
}

/* ---- Router and Engram ------------------------------------------------------------------------ */

static void run_route(void *arg, int64_t begin, int64_t end, int thread) {
    rows_job *job = arg;
    float *scratch = plumb__cpu_scratch(job->cpu, thread, 2 * job->width * 4);
    if (!scratch) return;
    bool finite = true;
    for (int64_t i = begin; i < end; i++)
        finite &= job->cpu->kernels->route(job->a + i * job->width, job->b, job->width, job->k,
                                           job->factor, job->ids + i * job->k,
                                           job->out + i * job->k, scratch);
    if (!finite) plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

void plumb__cpu_route(plumb_backend *b, const float *logits, const float *bias, int64_t rows,
                      int64_t experts, int64_t k, float route_scale, int32_t *ids,
                      float *weights) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .a = logits, .b = bias, .width = experts,
                    .k = k, .factor = route_scale, .ids = ids, .out = weights};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(40 * experts), run_route, &job);
}

static void run_engram(void *arg, int64_t begin, int64_t end, int thread) {
    rows_job *job = arg;
    float *scratch = plumb__cpu_scratch(job->cpu, thread, 3 * job->width * 4);
    if (!scratch) return;
    for (int64_t i = begin; i < end; i++)
        if (job->live[i])
            job->cpu->kernels->engram_gate(job->y + i * 4 * job->width, job->x + i * 5 * job->width,
                                           job->a, job->b, job->width, job->eps, job->factor,
                                           scratch);
}

void plumb__cpu_engram_gate(plumb_backend *b, plumb_act *h, const plumb_act *kv,
                            const float *query_w, const float *key_w, const uint8_t *live,
                            int64_t rows, int64_t hidden, float eps, float factor) {
    rows_job job = {.cpu = (plumb_cpu_backend *)b, .y = h, .x = kv, .a = query_w, .b = key_w,
                    .live = live, .width = hidden, .eps = eps, .factor = factor};
    plumb__pool_run(job.cpu->pool, rows, plumb__cpu_grain(40 * hidden), run_engram, &job);
}
