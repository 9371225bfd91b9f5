/* Logits as bytes that two machines can compare: little-endian float32, one row of vocab_size after
 * the other, with their XXH3-64 hash, in a file that appears whole or not at all, or hashed only.
 */
#ifndef PLUMB_CLI_LOGITS_ROWS_H
#define PLUMB_CLI_LOGITS_ROWS_H

#include "cli/files.h"

#include <xxhash.h>

typedef struct cli_logits_rows {
    const char *path; /* NULL: hash only */
    cli_new_file file;
    XXH3_state_t *hash;
    int64_t vocab_size;
    unsigned char *row; /* (vocab_size) little-endian float32 */
} cli_logits_rows;

/* `path` (may be NULL) is kept.  Give the rows to cli_logits_rows_close, also after a failure. */
PLUMB_MUST_CHECK plumb_status cli_logits_rows_open(cli_logits_rows *rows, const char *path,
                                                   int64_t vocab_size, plumb_error *err);
PLUMB_MUST_CHECK plumb_status cli_logits_rows_add(cli_logits_rows *rows, const float *logits,
                                                  plumb_error *err);
/* Of all rows so far. */
uint64_t cli_logits_rows_hash(const cli_logits_rows *rows);
/* Gives the file its name; without it, closing removes what was written. */
PLUMB_MUST_CHECK plumb_status cli_logits_rows_commit(cli_logits_rows *rows, plumb_error *err);
void cli_logits_rows_close(cli_logits_rows *rows);

#endif
