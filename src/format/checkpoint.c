/* A checkpoint: what it must hold, what it holds, and its released bytes. */
#include "format/checkpoint_parts.h"

#include "base/error.h"
#include "format/tensor_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void plumb__checkpoint_say(const plumb_checkpoint *checkpoint, plumb_log_level level, const char *line) {
    if (checkpoint->log) checkpoint->log(checkpoint->log_user, level, line);
}

int plumb__tensor_by_name(const void *a, const void *b) {
    const plumb_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* ---- The expected set ------------------------------------------------------------------------ */

static plumb__text192 shape_text(int dtype, int rank, const int64_t shape[2]) {
    if (rank == 1) return plumb__format("%s [%lld]", plumb__dtype_name(dtype), (long long)shape[0]);
    return plumb__format("%s [%lld, %lld]", plumb__dtype_name(dtype), (long long)shape[0],
                         (long long)shape[1]);
}

/* Every tensor found must be one that the config needs, with its dtype and shape.  Those of parts
 * switched off leave the list. */
static plumb_status check_found(plumb_checkpoint *checkpoint, plumb_error *err) {
    plumb_tensor *tensors = checkpoint->tensors.items;
    int64_t kept = 0, count = checkpoint->tensors.count;
    for (int64_t i = 0; i < count; i++) {
        plumb_tensor tensor = tensors[i];
        const char *path = checkpoint->shards[tensor.shard].path;
        plumb_tensor_spec spec;
        plumb_tensor_lookup lookup =
            plumb__tensor_table_find(&checkpoint->config, tensor.name, &spec);
        if (lookup == PLUMB_TENSOR_IGNORED) continue;
        if (lookup == PLUMB_TENSOR_UNKNOWN)
            return plumb__fail(err, PLUMB_ERROR_TENSOR, path, tensor.name, -1,
                               "a tensor that this config has no use for",
                               "only tensors of the released layout");
        if (tensor.dtype != spec.dtype || tensor.rank != spec.rank ||
            tensor.shape[0] != spec.shape[0] || tensor.shape[1] != spec.shape[1])
            return plumb__fail(err, PLUMB_ERROR_TENSOR, path, tensor.name, -1,
                               shape_text(tensor.dtype, tensor.rank, tensor.shape).s, "%s",
                               shape_text(spec.dtype, spec.rank, spec.shape).s);
        tensor.tensor_class = spec.tensor_class;
        tensors[kept++] = tensor;
    }
    checkpoint->tensors.count = kept;
    if (kept < count)
        plumb__checkpoint_say(checkpoint, PLUMB_LOG_INFO,
            plumb__format("%lld tensors of parts that are switched off: ignored",
                          (long long)(count - kept)).s);
    return PLUMB_OK;
}

static const plumb_tensor *find(const plumb_checkpoint *checkpoint, const char *name) {
    const plumb_tensor key = {.name = name};
    if (checkpoint->tensors.count == 0) return NULL;
    return bsearch(&key, checkpoint->tensors.items, (size_t)checkpoint->tensors.count, sizeof key,
                   plumb__tensor_by_name);
}

typedef struct missing {
    const plumb_checkpoint *checkpoint;
    int64_t draft_found, draft_missing;
    char name[128], draft_name[128]; /* the first of each */
} missing;

static int note_missing(void *user, const char *name, const plumb_tensor_spec *spec) {
    missing *m = user;
    bool present = find(m->checkpoint, name) != NULL;
    bool draft = spec->tensor_class == PLUMB_CLASS_DRAFT_DENSE ||
                 spec->tensor_class == PLUMB_CLASS_DRAFT_EXPERT;
    if (present) {
        m->draft_found += draft;
    } else if (draft) {
        if (m->draft_missing++ == 0)
            (void)snprintf(m->draft_name, sizeof m->draft_name, "%s", name);
    } else {
        (void)snprintf(m->name, sizeof m->name, "%s", name);
        return 1;
    }
    return 0;
}

/* Nothing that the config needs may be absent, except the draft as a whole. */
static plumb_status check_missing(const plumb_checkpoint *checkpoint, plumb_error *err) {
    missing m = {.checkpoint = checkpoint};
    bool stopped = plumb__tensor_table_visit(&checkpoint->config, note_missing, &m) != 0;
    const char *name = stopped ? m.name : m.draft_missing && m.draft_found ? m.draft_name : NULL;
    if (name)
        return plumb__fail(err, PLUMB_ERROR_TENSOR, checkpoint->path, name, -1, "no such tensor",
                           "every tensor that config.json calls for");
    if (m.draft_missing > 0)
        plumb__checkpoint_say(checkpoint, PLUMB_LOG_WARNING, "no mtp.* tensors: the draft model is not available");
    return PLUMB_OK;
}

/* ---- Open and close -------------------------------------------------------------------------- */

/* Only a converted file is a checkpoint in one file, whatever it begins with. */
static bool is_single_file(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

plumb_status plumb__checkpoint_open(const char *path, plumb_log_fn log, void *log_user,
                                    plumb_checkpoint **checkpoint, plumb_error *err) {
    plumb_checkpoint *opened = calloc(1, sizeof *opened);
    if (!opened) return plumb__fail_memory(err, "checkpoint", sizeof *opened);
    opened->log = log;
    opened->log_user = log_user;
    opened->path = strdup(path);
    plumb_status status = !opened->path ? plumb__fail_memory(err, "path", strlen(path))
                          : is_single_file(path) ? plumb__checkpoint_open_gguf(opened, err)
                                                 : plumb__checkpoint_open_folder(opened, err);
    if (status == PLUMB_OK) status = check_found(opened, err);
    if (status == PLUMB_OK) status = check_missing(opened, err);
    if (status == PLUMB_OK) *checkpoint = opened;
    else plumb__checkpoint_close(opened);
    return status;
}

void plumb__checkpoint_close(plumb_checkpoint *checkpoint) {
    if (!checkpoint) return;
    for (int64_t i = 0; i < checkpoint->n_shards; i++) {
        plumb_shard_file *shard = &checkpoint->shards[i];
        if (shard->fd >= 0) (void)close(shard->fd);
        free(shard->path);
        free(shard->header);
    }
    free(checkpoint->shards);
    free(checkpoint->tensors.items);
    free(checkpoint->names);
    if (checkpoint->gguf) plumb__gguf_free(checkpoint->gguf);
    free(checkpoint->gguf);
    free(checkpoint->path);
    free(checkpoint);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const plumb_model_config *plumb__checkpoint_config(const plumb_checkpoint *checkpoint) {
    return &checkpoint->config;
}

const plumb_gguf *plumb__checkpoint_gguf(const plumb_checkpoint *checkpoint) {
    return checkpoint->gguf;
}

const char *plumb__checkpoint_path(const plumb_checkpoint *checkpoint) {
    return checkpoint->path;
}

int64_t plumb__checkpoint_count(const plumb_checkpoint *checkpoint) {
    return checkpoint->tensors.count;
}

const plumb_tensor *plumb__checkpoint_tensor(const plumb_checkpoint *checkpoint, int64_t i) {
    return &checkpoint->tensors.items[i];
}

const plumb_tensor *plumb__checkpoint_find(const plumb_checkpoint *checkpoint, const char *format,
                                           ...) {
    char name[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < sizeof name ? find(checkpoint, name) : NULL;
}

const plumb_tensor *plumb__checkpoint_scales_of(const plumb_checkpoint *checkpoint,
                                                const plumb_tensor *codes, plumb_error *err) {
    int stem = (int)(strlen(codes->name) - strlen("weight"));
    const plumb_tensor *scales =
        plumb__checkpoint_find(checkpoint, "%.*sscale", stem, codes->name);
    if (!scales)
        (void)plumb__fail(err, PLUMB_ERROR_TENSOR, checkpoint->path, codes->name, -1,
                          "a matrix without scales", "its tiles' scales");
    return scales;
}

int64_t plumb__checkpoint_shards(const plumb_checkpoint *checkpoint) {
    return checkpoint->n_shards;
}

const char *plumb__checkpoint_shard_path(const plumb_checkpoint *checkpoint, int64_t shard) {
    return checkpoint->shards[shard].path;
}

const plumb_shard_file *plumb__checkpoint_shard(const plumb_checkpoint *checkpoint, int64_t shard) {
    return &checkpoint->shards[shard];
}

int plumb__checkpoint_shard_fd(const plumb_checkpoint *checkpoint, int64_t shard) {
    return checkpoint->shards[shard].fd;
}
