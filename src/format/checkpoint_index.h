/* model.safetensors.index.json: which shard file holds which tensor. */
#ifndef PLUMB_FORMAT_CHECKPOINT_INDEX_H
#define PLUMB_FORMAT_CHECKPOINT_INDEX_H

#include "plumb.h"

typedef struct plumb_index_entry {
    const char *name, *file; /* inside plumb_index.text */
} plumb_index_entry;

typedef struct plumb_index {
    char *text;
    plumb_index_entry *entries; /* by ascending name, no name twice */
    int64_t count, capacity;
    const char **files; /* by ascending name, each once */
    int64_t n_files, files_capacity;
    int64_t total_size; /* what metadata says, or -1 */
} plumb_index;

/* File names must be plain names in the index's own folder. */
PLUMB_MUST_CHECK plumb_status plumb__index_load(const char *path, plumb_index *index,
                                                plumb_error *err);
/* The same from memory; takes over `text`, whose text[size] is a NUL. */
PLUMB_MUST_CHECK plumb_status plumb__index_parse(char *text, int64_t size, const char *path,
                                                 plumb_index *index, plumb_error *err);
void plumb__index_free(plumb_index *index);

#endif
