/* What the files that make a checkpoint share: checkpoint.c checks and hands out, checkpoint_folder.c
 * opens a released folder, checkpoint_gguf.c a converted file. */
#ifndef PLUMB_FORMAT_CHECKPOINT_PARTS_H
#define PLUMB_FORMAT_CHECKPOINT_PARTS_H

#include "format/checkpoint.h"
#include "format/safetensors.h"
#include "format/shard_file.h"

struct plumb_checkpoint {
    char *path;               /* the folder or the converted file */
    plumb_model_config config;
    plumb_shard_file *shards; /* a converted file is one shard */
    int64_t n_shards;
    plumb_tensor_list tensors;
    plumb_gguf *gguf;         /* NULL: a folder */
    char *names;              /* of a converted file's released tensors */
    plumb_log_fn log;
    void *log_user;
};

/* Open the files and list what they hold, sorted by name, each name once; the set is not yet compared
 * with what the config needs, nor are folders' shapes. */
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_open_folder(plumb_checkpoint *checkpoint,
                                                            plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__checkpoint_open_gguf(plumb_checkpoint *checkpoint,
                                                          plumb_error *err);

void plumb__checkpoint_say(const plumb_checkpoint *checkpoint, plumb_log_level level,
                           const char *line);
int plumb__tensor_by_name(const void *a, const void *b); /* for qsort and bsearch */

#endif
