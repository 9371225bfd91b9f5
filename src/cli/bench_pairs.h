/* Two commands that write benchmarks, run in turns: A B B A, again and again, each run a whole process.
 * Both are given `--csv FILE`, and in their environment the file for their logits, by the name that other
 * programs of the field know, too; both files in a private folder that is removed at the end.  What is
 * read there: the CSV of every run, and whether its logits are those of the first run. */
#ifndef PLUMB_CLI_BENCH_PAIRS_H
#define PLUMB_CLI_BENCH_PAIRS_H

#include "cli/bench_table.h"

#define CLI_BENCH_DUMP_VARIABLE "DS4_BENCH_DECODE_LOGITS_DUMP"

/* The words of a command line: those before the options that each run gets, and those after them.  Lists
 * end with NULL; borrowed. */
typedef struct cli_bench_side {
    const char *const *before, *const *after;
} cli_bench_side;

typedef struct cli_bench_bits {
    bool differ;
    int64_t rows;     /* compared with those of the first run */
    char words[256];  /* where they begin to differ, or what lengths they have */
} cli_bench_bits;

typedef struct cli_bench_pairs {
    cli_bench_side a, b;
    int n_runs;          /* a multiple of 4 */
    int64_t vocab;       /* of the dumps; 0: as cli_comparison_run */
    const char *folder;  /* where the private one is made; borrowed */
    void (*begin)(void *user, int run); /* is told of each run, from 0, before it starts */
    void *user;
    /* Results, of each run: */
    cli_bench_table *tables;
    cli_bench_bits *bits;
} cli_bench_pairs;

/* Stops at the first failure: of a run, or of what it wrote.  All runs must have been measured at the
 * same contexts.  Different logits are a result, not a failure.  Give `pairs` to cli_bench_pairs_free
 * in any case. */
PLUMB_MUST_CHECK plumb_status cli_bench_pairs_run(cli_bench_pairs *pairs, plumb_error *err);
void cli_bench_pairs_free(cli_bench_pairs *pairs);

/* Speeds of A over those of B at a context, one of each pair: ratios[n_runs / 2].  False if one of the
 * runs measured nothing there. */
bool cli_bench_pairs_ratios(const cli_bench_pairs *pairs, double context, bool decode,
                            double *ratios);

#endif
