/* Reading dumps of logits; see logits_file.h. */
#include "cli/logits_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 20 };

plumb_status cli_logits_file_open(const char *path, cli_logits_file *file, plumb_error *err) {
    *file = (cli_logits_file){.fd = -1, .path = strdup(path)};
    if (file->path == NULL) return plumb__fail_memory(err, path, strlen(path) + 1);
    struct stat info;
    plumb_status status = plumb__file_open(path, &file->fd, &info, err);
    if (status == PLUMB_OK) file->bytes = info.st_size;
    return status;
}

void cli_logits_file_close(cli_logits_file *file) {
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    free(file->block);
    *file = (cli_logits_file){.fd = -1};
}

plumb_status cli_logits_file_shape(cli_logits_file *file, int64_t vocab, plumb_error *err) {
    int64_t row_bytes = vocab * (int64_t)sizeof(float);
    if (file->bytes == 0 || file->bytes % row_bytes != 0)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file->path, NULL, -1,
                           plumb__format("%lld bytes", (long long)file->bytes).s,
                           "rows of %lld float32, %lld bytes each", (long long)vocab,
                           (long long)row_bytes);
    int64_t block_rows = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1;
    float *block = realloc(file->block, (size_t)(block_rows * row_bytes));
    if (block == NULL)
        return plumb__fail_memory(err, file->path, (size_t)(block_rows * row_bytes));
    file->block = block;
    file->block_rows = block_rows;
    file->vocab = vocab;
    file->rows = file->bytes / row_bytes;
    file->first = file->held = 0;
    return PLUMB_OK;
}

/* From the file's byte order to this machine's, in place. */
static void take_little_endian(float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        unsigned char b[4];
        memcpy(b, &values[i], sizeof b);
        uint32_t bits = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                        (uint32_t)b[3] << 24;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static plumb_status load_block(cli_logits_file *file, int64_t first, plumb_error *err) {
    int64_t row_bytes = file->vocab * (int64_t)sizeof(float);
    int64_t held = file->rows - first < file->block_rows ? file->rows - first : file->block_rows;
    file->held = 0;
    plumb_status status = plumb__file_read_at(file->fd, file->path, "logits", first * row_bytes,
                                              held * row_bytes, file->block, err);
    if (status != PLUMB_OK) return status;
    take_little_endian(file->block, held * file->vocab);
    file->first = first;
    file->held = held;
    return PLUMB_OK;
}

plumb_status cli_logits_file_row(cli_logits_file *file, int64_t i, const float **row,
                                 plumb_error *err) {
    if (i < file->first || i >= file->first + file->held) {
        plumb_status status = load_block(file, i, err);
        if (status != PLUMB_OK) return status;
    }
    const float *values = file->block + (i - file->first) * file->vocab;
    for (int64_t token = 0; token < file->vocab; token++) {
        if (isfinite(values[token])) continue;
        uint32_t bits;
        memcpy(&bits, &values[token], sizeof bits);
        return plumb__fail(
            err, PLUMB_ERROR_VALUE, file->path,
            plumb__format("row %lld, token %lld (byte %lld)", (long long)i, (long long)token,
                          (long long)(i * file->vocab + token) * (long long)sizeof(float)).s,
            -1,
            plumb__format("%s (0x%08x)", isnan(values[token]) ? "NaN" : "an infinity", bits).s,
            "finite numbers");
    }
    *row = values;
    return PLUMB_OK;
}
