/* What a benchmark keeps of the logits it computes, never while a clock runs: files of frontiers,
 * the rows of generated tokens, and a digest of each row of the first walk, which those of later
 * walks must equal. */
#ifndef PLUMB_CLI_BENCH_LOGITS_H
#define PLUMB_CLI_BENCH_LOGITS_H

#include "cli/logits_rows.h"
#include "cli/options.h"

/* The likeliest token but `excluded`; of equals the lowest.  At least two tokens. */
int32_t cli_likeliest(const float *row, int64_t vocab_size, int64_t excluded);

typedef struct cli_bench_logits {
    const cli_options *options;
    int64_t vocab_size;
    int64_t repeat;    /* the walk at work, from 1 */
    bool wants_decode; /* rows of generated tokens are dumped or hashed */
    cli_logits_rows decode;
    XXH128_hash_t *digests; /* of all rows of the first walk, in order, if there are others */
    int64_t n_digests, capacity;
    int64_t next; /* the digest that the next row of a later walk must have */
} cli_bench_logits;

/* Makes the folder and begins the dump.  Give it to cli_bench_logits_close, also after a failure.
 */
PLUMB_MUST_CHECK plumb_status cli_bench_logits_open(cli_bench_logits *logits,
                                                    const cli_options *options, int64_t vocab_size,
                                                    plumb_error *err);
void cli_bench_logits_begin_walk(cli_bench_logits *logits, int64_t repeat);
/* The row of a frontier's last token. */
PLUMB_MUST_CHECK plumb_status cli_bench_logits_frontier(cli_bench_logits *logits, int64_t frontier,
                                                        const float *row, plumb_error *err);
/* The row of a generated token at `position`. */
PLUMB_MUST_CHECK plumb_status cli_bench_logits_decode(cli_bench_logits *logits, int64_t position,
                                                      const float *row, plumb_error *err);
/* All walks are done: the dump gets its name, and the hash is printed: on standard output, unless
 * the rows go there. */
PLUMB_MUST_CHECK plumb_status cli_bench_logits_commit(cli_bench_logits *logits, plumb_error *err);
void cli_bench_logits_close(cli_bench_logits *logits);

#endif
