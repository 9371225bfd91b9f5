/* Linear operations on threads: output columns are split, rows are not, so that every thread reads
 * its own share of the weights once. */
#include "backend/cpu/cpu_backend.h"

int64_t plumb__cpu_quantized_bytes(const plumb_cpu_backend *cpu, int64_t rows, int64_t k) {
    return rows * cpu->kernels->quantized_row_bytes(k);
}

void *plumb__cpu_quantized_row(const plumb_cpu_backend *cpu, const plumb_quantized *q, int64_t k,
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
                                                  plumb__cpu_quantized_row(job->cpu, job->out, job->k, i));
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

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void quantized_columns(void *arg, int64_t begin, int64_t end, int thread) {
    quantized_job *job = arg;
    void *scratch = plumb__cpu_scratch(job->cpu, thread,
                                       job->cpu->kernels->linear_quantized_scratch(job->w->k, job->rows));
    if (!scratch) return;
    if (!job->cpu->kernels->linear_quantized(job->x, job->rows, job->w, begin * PLUMB_CPU_UNIT,
                                             least(end * PLUMB_CPU_UNIT, job->w->n), job->y, job->w->n,
                                             scratch))
        plumb__cpu_fault(job->cpu, PLUMB_ERROR_VALUE);
}

void plumb__cpu_linear_quantized(plumb_backend *b, const plumb_quantized *x, int64_t rows,
                                 const plumb_matrix *w, plumb_act *y) {
    plumb_cpu_backend *cpu = (plumb_cpu_backend *)b;
    const void **row =
        plumb__cpu_work_buffer(cpu, PLUMB_WORK_ROWS, rows * (int64_t)sizeof *row);
    if (!row) return;
    for (int64_t i = 0; i < rows; i++) row[i] = plumb__cpu_quantized_row(cpu, x, w->k, i);
    quantized_job job = {cpu, row, rows, w, y};
    plumb__pool_run(cpu->pool, plumb__cpu_units(w->n),
                    plumb__cpu_grain(PLUMB_CPU_UNIT * rows * w->k), quantized_columns, &job);
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
