/* What the runs of bench/stream are boiled down to: the speed of demanded reads beside a pure reader
 * of the same file just before and just after, and time beside its bound. */
#ifndef BENCH_STREAM_REPORT_H
#define BENCH_STREAM_REPORT_H

#include "streamed_model.h"

/* One streamed run between two pure reads of the same file. */
typedef struct bench_pair {
    double before, after; /* pure reads, bytes per second */
    double bytes;         /* read by the run */
    double rate;          /* of those, while a demanded read was unfinished; bytes per second */
    double seconds;       /* of the run */
    double waited;        /* of those, in which nothing was computed, for want of an expert */
    /* Least times for the same run: with reads at the run's own speed, at that of the pure reads. */
    double bound, drive_bound;
    double computed;      /* of operations alone, as in the bounds */
} bench_pair;

enum { BENCH_MAX_PAIRS = 64 };

typedef struct bench_stream_report {
    const char *mode;       /* "decode" or "prefill" */
    const char *peer;       /* who made the pure reads */
    const char *reader;
    int depth;
    int64_t block_bytes;
    int64_t tokens, slots;
    bool computed_apart;    /* by a run with every expert in memory as well */
    bench_pair pair[BENCH_MAX_PAIRS];
    int64_t pairs;
} bench_stream_report;

/* Mode A: for every token and layer, the operations before its router, then its reads or the
 * operations that may go on meanwhile, whichever takes longer.  Bytes are those of `run`, times those
 * of `compute` (tokens passes each; may be the same). */
double bench_decode_bound(const bench_pass *run, const bench_pass *compute, int64_t tokens,
                          int64_t layers, double rate);
/* Mode B: all reads or all operations, whichever takes longer. */
double bench_prefill_bound(const bench_pass *run, const bench_pass *compute, int64_t layers,
                           double rate);
double bench_pass_operations(const bench_pass *pass, int64_t layers); /* seconds */

void bench_stream_report_print(const bench_stream_report *report, bool csv);

#endif
