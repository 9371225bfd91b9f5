#include "cli/logits_rows.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

plumb_status cli_logits_rows_open(cli_logits_rows *rows, const char *path, int64_t vocab_size,
                                  plumb_error *err) {
    *rows = (cli_logits_rows){.path = path, .vocab_size = vocab_size};
    rows->row = malloc((size_t)vocab_size * 4);
    rows->hash = XXH3_createState();
    if (rows->row == NULL || rows->hash == NULL)
        return plumb__fail_memory(err, "one row of logits", (size_t)vocab_size * 4);
    XXH3_64bits_reset(rows->hash);
    return path != NULL ? cli_new_file_open(path, &rows->file, err) : PLUMB_OK;
}

plumb_status cli_logits_rows_add(cli_logits_rows *rows, const float *logits, plumb_error *err) {
    for (int64_t i = 0; i < rows->vocab_size; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        for (int b = 0; b < 4; b++) rows->row[4 * i + b] = (unsigned char)(bits >> (8 * b));
    }
    size_t size = (size_t)rows->vocab_size * 4;
    XXH3_64bits_update(rows->hash, rows->row, size);
    if (rows->path == NULL || fwrite(rows->row, 1, size, rows->file.stream) == size)
        return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, rows->path, NULL, -1, strerror(errno),
                       "a file that takes every byte");
}

uint64_t cli_logits_rows_hash(const cli_logits_rows *rows) {
    return XXH3_64bits_digest(rows->hash);
}

plumb_status cli_logits_rows_commit(cli_logits_rows *rows, plumb_error *err) {
    return rows->path != NULL ? cli_new_file_commit(&rows->file, err) : PLUMB_OK;
}

void cli_logits_rows_close(cli_logits_rows *rows) {
    cli_new_file_abandon(&rows->file);
    XXH3_freeState(rows->hash);
    free(rows->row);
    *rows = (cli_logits_rows){0};
}
