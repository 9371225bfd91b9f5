/* The CSV of a benchmark, plumb's or another program's, read by the names of its columns: their order
 * is free, unknown ones are passed over, and only those without which there is nothing to show must
 * be there. */
#ifndef PLUMB_CLI_BENCH_TABLE_H
#define PLUMB_CLI_BENCH_TABLE_H

#include "plumb.h"

typedef enum cli_bench_column {
    CLI_BENCH_CTX_TOKENS,
    CLI_BENCH_PREFILL_TPS,
    CLI_BENCH_GEN_TPS,
    CLI_BENCH_REQUIRED, /* the columns above; the others may be absent, and their cells empty */
    CLI_BENCH_STEADY_TOKENS = CLI_BENCH_REQUIRED,
    CLI_BENCH_STEADY_TPS,
    CLI_BENCH_KVCACHE_BYTES,
    CLI_BENCH_HIT_RATE,
    CLI_BENCH_PEAK_RSS_BYTES,
    CLI_BENCH_COLUMNS
} cli_bench_column;

const char *cli_bench_column_name(cli_bench_column column);

/* Of a file. */
enum { CLI_BENCH_MOST_BYTES = 1 << 24, CLI_BENCH_MOST_ROWS = 1 << 16 };

typedef struct cli_bench_record {
    double value[CLI_BENCH_COLUMNS]; /* 0 or more; -1: not there */
} cli_bench_record;

typedef struct cli_bench_table {
    char *path; /* as it was given */
    cli_bench_record *records; /* in file order */
    int64_t n_records, room;
} cli_bench_table;

/* At most CLI_BENCH_MOST_BYTES and CLI_BENCH_MOST_ROWS; at least one row.  Give the table to
 * cli_bench_table_free in any case. */
PLUMB_MUST_CHECK plumb_status cli_bench_table_read(const char *path, cli_bench_table *table,
                                                   plumb_error *err);
/* The same, of a text in memory; text[size] is NUL, `path` is what errors call it. */
PLUMB_MUST_CHECK plumb_status cli_bench_table_parse(const char *text, int64_t size,
                                                    const char *path, cli_bench_table *table,
                                                    plumb_error *err);
void cli_bench_table_free(cli_bench_table *table);

/* Speed of generation without what the first token has to wait for, where that is known: some
 * programs, and short runs, have no steady tokens. */
double cli_bench_decode_tps(const cli_bench_record *record);

#endif
