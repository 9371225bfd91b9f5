/* Dumps of logits: rows of little-endian float32, one number per token of the vocabulary, as
 * `plumb logits` and `plumb bench` write them.  Read a block at a time, since they may be many GB. */
#ifndef PLUMB_CLI_LOGITS_FILE_H
#define PLUMB_CLI_LOGITS_FILE_H

#include "plumb.h"

typedef struct cli_logits_file {
    char *path;
    int fd;
    int64_t bytes;
    int64_t vocab, rows;       /* 0 until cli_logits_file_shape */
    float *block;              /* (block_rows, vocab) */
    int64_t block_rows;
    int64_t first, held;       /* rows in the block; 0 held: none */
} cli_logits_file;

/* Regular files only: a comparison reads them twice.  Close it in any case. */
PLUMB_MUST_CHECK plumb_status cli_logits_file_open(const char *path, cli_logits_file *file,
                                                   plumb_error *err);
void cli_logits_file_close(cli_logits_file *file);

/* Takes the file as rows of `vocab` numbers.  An empty file and one that ends inside a row are
 * refused. */
PLUMB_MUST_CHECK plumb_status cli_logits_file_shape(cli_logits_file *file, int64_t vocab,
                                                    plumb_error *err);
/* Row i, valid until the next call.  NaN and infinities are errors that name row, token and offset. */
PLUMB_MUST_CHECK plumb_status cli_logits_file_row(cli_logits_file *file, int64_t i,
                                                  const float **row, plumb_error *err);

#endif
