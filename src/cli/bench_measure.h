/* The timed parts of a benchmark at one frontier: the newest tokens as one prompt, then tokens one
 * at a time.  All else (dumps, text, the way back) happens while no clock runs. */
#ifndef PLUMB_CLI_BENCH_MEASURE_H
#define PLUMB_CLI_BENCH_MEASURE_H

#include "cli/bench_csv.h"
#include "cli/bench_logits.h"
#include "cli/runtime.h"
#include "cli/shown_text.h"

typedef struct cli_bench {
    cli_runtime *runtime;
    const int32_t *tokens; /* the sequence; at least up to the last frontier */
    bool replays;          /* the way back is to evaluate the tokens before once more */
    cli_bench_logits logits;
    cli_shown_text shown; /* with --show-output */
} cli_bench;

/* Brings the session from an earlier frontier, or none, to `frontier` and generates.  Fills all of
 * the row but `repeat`. */
PLUMB_MUST_CHECK plumb_status cli_bench_measure(cli_bench *bench, int64_t frontier,
                                                int64_t gen_tokens, cli_bench_row *row,
                                                plumb_error *err);
/* Forgets what was generated after `frontier`: rings and carries, kept in memory, are put back, or
 * all tokens are evaluated again. */
PLUMB_MUST_CHECK plumb_status cli_bench_go_back(cli_bench *bench, int64_t frontier,
                                                plumb_error *err);

#endif
