/* What the runs of bench/step are boiled down to, and their printing. */
#ifndef BENCH_STEP_REPORT_H
#define BENCH_STEP_REPORT_H

#include "model/network.h"
#include "timed_backend.h"

/* Layers that do the same work. */
typedef enum bench_layer_kind {
    BENCH_WINDOW_ONLY,
    BENCH_SOURCE_2, /* makes compressed keys at ratio 2 and selects */
    BENCH_REUSE_2,
    BENCH_SOURCE_1, /* the same at ratio 1; builds the candidate pool */
    BENCH_INDEX_1,  /* selects among another layer's keys */
    BENCH_REUSE_1,
    BENCH_ENGRAM,   /* the lookup before a layer, counted apart from it */
    BENCH_HEAD,     /* embedding before the layers, head after them */
    BENCH_LAYER_KINDS
} bench_layer_kind;

bench_layer_kind bench_kind_of(const plumb_model_config *config, int64_t layer);

/* One forward pass. */
typedef struct bench_run {
    double seconds, bytes;
    double read_rate; /* bytes per second of a pure read just before it */
    double kind_seconds[BENCH_LAYER_KINDS], kind_bytes[BENCH_LAYER_KINDS];
    double kind_flops[BENCH_LAYER_KINDS][BENCH_WORK_KINDS];
    bench_op op[BENCH_MAX_OPS];
    int ops;
} bench_run;

typedef struct bench_report {
    const plumb_model_config *config; /* what ran */
    const plumb_model_config *whole;  /* the model that it is a part of */
    bench_run *run;
    int64_t runs;
    int64_t rows;
    /* Bound by arithmetic rather than by memory: floating point operations per second of each kind of
     * product alone; NULL: bound by memory. */
    const double *work_rate;
    bool csv;
    int threads;
} bench_report;

/* Layers by kind; then, for the run of median time, what each operation took beyond its bound.  Sorts
 * the runs. */
void bench_report_print(bench_report *report);

#endif
