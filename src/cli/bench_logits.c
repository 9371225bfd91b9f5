#include "cli/bench_logits.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int32_t cli_likeliest(const float *row, int64_t vocab_size, int64_t excluded) {
    int32_t best = excluded == 0 ? 1 : 0;
    for (int32_t i = best + 1; i < vocab_size; i++)
        if (i != excluded && row[i] > row[best]) best = i;
    return best;
}

static plumb_status make_folder(const char *path, plumb_error *err) {
    if (mkdir(path, 0777) == 0) return PLUMB_OK;
    int error = errno;
    struct stat info;
    if (error == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        if (access(path, W_OK | X_OK) == 0) return PLUMB_OK;
        error = errno;
    }
    return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(error),
                       "a folder for new files, or a name for one");
}

plumb_status cli_bench_logits_open(cli_bench_logits *l, const cli_options *options,
                                   int64_t vocab_size, plumb_error *err) {
    *l = (cli_bench_logits){.options = options, .vocab_size = vocab_size, .repeat = 1};
    l->wants_decode = options->decode_logits_dump != NULL || options->decode_logits_hash;
    plumb_status status = PLUMB_OK;
    if (options->frontier_logits_dir != NULL)
        status = make_folder(options->frontier_logits_dir, err);
    if (status == PLUMB_OK && l->wants_decode)
        status = cli_logits_rows_open(&l->decode, options->decode_logits_dump, vocab_size, err);
    return status;
}

void cli_bench_logits_begin_walk(cli_bench_logits *l, int64_t repeat) {
    l->repeat = repeat;
    l->next = 0;
}

/* Notes the row's digest in the first walk and asks for it in the others. */
static plumb_status compare(cli_bench_logits *l, int64_t position, const float *row,
                            plumb_error *err) {
    if (l->options->repeat == 1) return PLUMB_OK;
    XXH128_hash_t digest = XXH3_128bits(row, (size_t)l->vocab_size * sizeof *row);
    if (l->repeat == 1) {
        void *grown = plumb__grow(l->digests, &l->capacity, l->n_digests + 1, sizeof *l->digests);
        if (grown == NULL)
            return plumb__fail_memory(err, "digests of logits",
                                      (size_t)l->n_digests * sizeof digest);
        l->digests = grown;
        l->digests[l->n_digests++] = digest;
        return PLUMB_OK;
    }
    if (XXH128_isEqual(digest, l->digests[l->next++])) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_VALUE, NULL, "logits", position,
                       plumb__format("other bits in walk %lld", (long long)l->repeat).s,
                       "those of the first");
}

static plumb_status write_frontier(const cli_bench_logits *l, int64_t frontier, const float *row,
                                   plumb_error *err) {
    const char *folder = l->options->frontier_logits_dir;
    size_t size = strlen(folder) + 48;
    char *path = malloc(size);
    if (path == NULL) return plumb__fail_memory(err, folder, size);
    snprintf(path, size, "%s/frontier-%08lld.f32", folder, (long long)frontier);
    cli_logits_rows rows;
    plumb_status status = cli_logits_rows_open(&rows, path, l->vocab_size, err);
    if (status == PLUMB_OK) status = cli_logits_rows_add(&rows, row, err);
    if (status == PLUMB_OK) status = cli_logits_rows_commit(&rows, err);
    cli_logits_rows_close(&rows);
    free(path);
    return status;
}

plumb_status cli_bench_logits_frontier(cli_bench_logits *l, int64_t frontier, const float *row,
                                       plumb_error *err) {
    plumb_status status = compare(l, frontier - 1, row, err);
    if (status == PLUMB_OK && l->repeat == 1 && l->options->frontier_logits_dir != NULL)
        status = write_frontier(l, frontier, row, err);
    return status;
}

plumb_status cli_bench_logits_decode(cli_bench_logits *l, int64_t position, const float *row,
                                     plumb_error *err) {
    plumb_status status = compare(l, position, row, err);
    if (status == PLUMB_OK && l->repeat == 1 && l->wants_decode)
        status = cli_logits_rows_add(&l->decode, row, err);
    return status;
}

plumb_status cli_bench_logits_commit(cli_bench_logits *l, plumb_error *err) {
    if (!l->wants_decode) return PLUMB_OK;
    plumb_status status = cli_logits_rows_commit(&l->decode, err);
    if (status != PLUMB_OK || !l->options->decode_logits_hash) return status;
    uint64_t hash = cli_logits_rows_hash(&l->decode);
    if (l->options->csv != NULL)
        cli_print("decode logits %016" PRIx64 "\n", hash);
    else
        fprintf(stderr, "decode logits %016" PRIx64 "\n", hash);
    return PLUMB_OK;
}

void cli_bench_logits_close(cli_bench_logits *l) {
    cli_logits_rows_close(&l->decode);
    free(l->digests);
    *l = (cli_bench_logits){0};
}
