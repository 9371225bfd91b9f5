/* Rows of a benchmark as CSV: the field's nine columns first, plumb's own after them. */
#ifndef PLUMB_CLI_BENCH_CSV_H
#define PLUMB_CLI_BENCH_CSV_H

#include "cli/files.h"

/* What was measured at one frontier. */
typedef struct cli_bench_row {
    int64_t ctx_tokens, prefill_tokens, gen_tokens;
    double prefill_seconds, gen_seconds, gen_first_seconds; /* the first is part of gen_seconds */
    int64_t kvcache_bytes;
    bool streaming;
    plumb_stream_stats stream; /* of the timed parts; peak_memory_bytes so far */
    int64_t repeat;            /* from 1 */
} cli_bench_row;

enum { CLI_BENCH_LINE_SIZE = 512 };
extern const char cli_bench_header[]; /* without a newline */
void cli_bench_line(const cli_bench_row *row, char line[CLI_BENCH_LINE_SIZE]); /* likewise */

/* Where rows go, each as soon as it is there: standard output, or a file under a temporary name. */
typedef struct cli_bench_csv {
    const char *path; /* NULL: standard output */
    cli_new_file file;
    int64_t rows;
    int64_t bytes; /* of whole lines in the file */
} cli_bench_csv;

/* Writes the header.  `path` is kept. */
PLUMB_MUST_CHECK plumb_status cli_bench_csv_open(cli_bench_csv *csv, const char *path,
                                                 plumb_error *err);
PLUMB_MUST_CHECK plumb_status cli_bench_csv_add(cli_bench_csv *csv, const cli_bench_row *row,
                                                plumb_error *err);
/* Gives a file with rows its name, whatever ended the walk: hours of measuring are not thrown away.
 * One without rows is removed.  To be called once, also after a failure. */
PLUMB_MUST_CHECK plumb_status cli_bench_csv_close(cli_bench_csv *csv, plumb_error *err);

#endif
