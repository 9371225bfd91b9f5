/* Two dumps of logits, or two folders of dumps under the same names, compared.
 *
 * Folders are lined up by name; what only one of them has is listed, and the rest is compared.  So are
 * the rows that two files of different length share.  Files are read once, and those with differences
 * a second time for the exact medians, so memory stays small whatever their size. */
#ifndef PLUMB_CLI_COMPARISON_H
#define PLUMB_CLI_COMPARISON_H

#include "cli/logits_compare.h"
#include "plumb.h"

enum { CLI_RELEASED_VOCABULARY = 129280 };

typedef struct cli_dump_pair {
    char *name;           /* in its folder; the path of A for a pair of files */
    char *a, *b;          /* paths */
    int64_t rows_a, rows_b;
    cli_logits_tally tally;
} cli_dump_pair;

typedef struct cli_comparison {
    bool folders;
    cli_dump_pair *pairs; /* in ascending name order */
    int64_t n_pairs, room_pairs;
    char **only;          /* paths that have no partner */
    int64_t n_only, room_only;
    int64_t vocab;
    cli_logits_tally total;
    int64_t first_pair;   /* where total.first is */
    bool lengths_differ;
    double median;        /* of |a - b|, over all numbers */
    double row_median;    /* of each row's largest |a - b|, over all rows */
} cli_comparison;

/* Looks what is to be compared.  Give the result to cli_comparison_free in any case. */
PLUMB_MUST_CHECK plumb_status cli_comparison_open(const char *a, const char *b,
                                                  cli_comparison *comparison, plumb_error *err);
/* Compares.  vocab 0: the released one, if all sizes are multiples of its rows. */
PLUMB_MUST_CHECK plumb_status cli_comparison_run(cli_comparison *comparison, int64_t vocab,
                                                 plumb_error *err);
void cli_comparison_free(cli_comparison *comparison);

/* "row 3, token 17: 1.25 (0x3fa00000) and 1.5 (0x3fc00000)", after the file's name in folders. */
void cli_comparison_first(const cli_comparison *comparison, char *words, size_t size);

#endif
