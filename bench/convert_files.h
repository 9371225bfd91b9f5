/* The files of bench/convert: shards of the source, a copy of them, the converted file; and the page
 * cache without any of them. */
#ifndef BENCH_CONVERT_FILES_H
#define BENCH_CONVERT_FILES_H

#include "format/checkpoint.h"

typedef struct bench_files {
    const plumb_checkpoint *source;
    int64_t source_bytes;     /* of its shards */
    char folder[1024];        /* of our own, below --work */
    char target[1024 + 64];   /* converted file */
} bench_files;

/* Makes a folder in `work`.  The checkpoint is kept. */
PLUMB_MUST_CHECK plumb_status bench_files_open(const plumb_checkpoint *source, const char *work,
                                               bench_files *files, plumb_error *err);
/* Removes everything; fine for zeroed files. */
void bench_files_close(bench_files *files);

/* All shards with cp(1), which must really copy, and an fsync of each copy. */
PLUMB_MUST_CHECK plumb_status bench_files_copy(const bench_files *files, plumb_error *err);
void bench_files_remove_copy(const bench_files *files);
void bench_files_remove_target(const bench_files *files); /* under its name and as a part */

/* Everything written so far reaches the disk, and the cache gives up source and target.  Whether all of
 * the page cache was dropped too, which only root may do. */
bool bench_files_drop_caches(const bench_files *files);

#endif
