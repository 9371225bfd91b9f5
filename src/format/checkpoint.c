/* Opening a checkpoint folder: config, index, shard headers, and the three-way agreement between
 * what the config needs, what the index says and what the shards hold.
 *
 * Names stay where they were read, in the text of the shard headers; the tensors are one array
 * sorted by name.  Descriptors stay open, so that a folder that is moved away keeps working until
 * the check after each read notices (shard_file.h). */
#include "format/checkpoint.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "format/checkpoint_index.h"
#include "format/safetensors.h"
#include "format/shard_file.h"
#include "format/tensor_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plumb_checkpoint {
    char *folder;
    plumb_model_config config;
    plumb_shard_file *shards;
    int64_t n_shards;
    plumb_tensor_list tensors;
    plumb_log_fn log;
    void *log_user;
};

static void say(const plumb_checkpoint *checkpoint, plumb_log_level level, const char *line) {
    if (checkpoint->log) checkpoint->log(checkpoint->log_user, level, line);
}

/* folder + "/" + file, or NULL; free() it. */
static char *join(const char *folder, const char *file) {
    size_t size = strlen(folder) + strlen(file) + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%s", folder, file);
    return path;
}

/* ---- Shards ---------------------------------------------------------------------------------- */

static plumb_status open_shard(plumb_checkpoint *checkpoint, const char *file, plumb_error *err) {
    plumb_shard_file *shard = &checkpoint->shards[checkpoint->n_shards];
    *shard = (plumb_shard_file){.fd = -1, .path = join(checkpoint->folder, file)};
    if (!shard->path) return plumb__fail_memory(err, file, strlen(file));
    shard->file = shard->path + strlen(checkpoint->folder) + 1;
    uint16_t number = (uint16_t)checkpoint->n_shards++;
    plumb_status status = plumb__file_open(shard->path, &shard->fd, &shard->opened, err);
    if (status != PLUMB_OK) return status;
    return plumb__safetensors_read(shard->fd, shard->opened.st_size, shard->path, number,
                                   &checkpoint->tensors, &shard->header, err);
}

static int by_name(const void *a, const void *b) {
    const plumb_tensor *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static plumb_status sort_tensors(plumb_checkpoint *checkpoint, plumb_error *err) {
    plumb_tensor *tensors = checkpoint->tensors.items;
    int64_t count = checkpoint->tensors.count;
    if (count > 0) qsort(tensors, (size_t)count, sizeof *tensors, by_name);
    for (int64_t i = 1; i < count; i++)
        if (!strcmp(tensors[i - 1].name, tensors[i].name))
            return plumb__fail(err, PLUMB_ERROR_FORMAT,
                               checkpoint->shards[tensors[i].shard].path, tensors[i].name,
                               tensors[i].offset,
                               plumb__format("the name again, also in %.150s",
                                             checkpoint->shards[tensors[i - 1].shard].file).s,
                               "each tensor once");
    return PLUMB_OK;
}

/* Both lists are sorted by name: every entry must meet its tensor, in the file it names. */
static plumb_status compare_with_index(const plumb_checkpoint *checkpoint, const plumb_index *index,
                                       const char *index_path, plumb_error *err) {
    const plumb_tensor *tensors = checkpoint->tensors.items;
    int64_t count = checkpoint->tensors.count, total = 0;
    for (int64_t i = 0, j = 0; i < count || j < index->count; i++, j++) {
        int order = i == count           ? 1
                    : j == index->count  ? -1
                                         : strcmp(tensors[i].name, index->entries[j].name);
        if (order > 0)
            return plumb__fail(err, PLUMB_ERROR_TENSOR, index_path, index->entries[j].name, -1,
                               plumb__format("no such tensor in %.150s", index->entries[j].file).s,
                               "every tensor of weight_map in its shard");
        const char *file = checkpoint->shards[tensors[i].shard].file;
        if (order < 0)
            return plumb__fail(err, PLUMB_ERROR_TENSOR, index_path, tensors[i].name, -1,
                               "no entry in weight_map", "%.150s, which holds it", file);
        if (strcmp(file, index->entries[j].file) != 0)
            return plumb__fail(err, PLUMB_ERROR_TENSOR, index_path, tensors[i].name, -1,
                               index->entries[j].file, "%.150s, which holds it", file);
        if (__builtin_add_overflow(total, tensors[i].bytes, &total)) total = INT64_MAX;
    }
    if (index->total_size >= 0 && index->total_size != total)
        say(checkpoint, PLUMB_LOG_WARNING,
            plumb__format("model.safetensors.index.json: total_size is %lld, the tensors have %lld "
                          "bytes", (long long)index->total_size, (long long)total).s);
    return PLUMB_OK;
}

static plumb_status open_shards(plumb_checkpoint *checkpoint, const char *const *files,
                                int64_t count, plumb_error *err) {
    checkpoint->shards = calloc((size_t)count, sizeof *checkpoint->shards);
    if (!checkpoint->shards)
        return plumb__fail_memory(err, "shards", (size_t)count * sizeof *checkpoint->shards);
    for (int64_t i = 0; i < count; i++) {
        plumb_status status = open_shard(checkpoint, files[i], err);
        if (status != PLUMB_OK) return status;
    }
    return sort_tensors(checkpoint, err);
}

/* A link that leads nowhere is not absent: opening it says what is wrong with it. */
static bool is_absent(const char *path) {
    struct stat found;
    return lstat(path, &found) != 0 && errno == ENOENT;
}

/* A checkpoint without an index is one file. */
static plumb_status open_single(plumb_checkpoint *checkpoint, const char *index_path,
                                plumb_error *err) {
    static const char *const single[] = {"model.safetensors"};
    char *path = join(checkpoint->folder, single[0]);
    if (!path) return plumb__fail_memory(err, "path", strlen(checkpoint->folder));
    bool absent = is_absent(path);
    free(path);
    if (!absent) return open_shards(checkpoint, single, 1, err);
    return plumb__fail(err, PLUMB_ERROR_IO, index_path, "open", -1, "no such file",
                       "model.safetensors.index.json, or model.safetensors in its place");
}

/* The shards of the index, or the one file of a checkpoint without an index. */
static plumb_status open_files(plumb_checkpoint *checkpoint, plumb_error *err) {
    char *path = join(checkpoint->folder, "model.safetensors.index.json");
    if (!path) return plumb__fail_memory(err, "path", strlen(checkpoint->folder));
    plumb_index index = {0};
    plumb_status status;
    if (is_absent(path)) {
        status = open_single(checkpoint, path, err);
    } else {
        status = plumb__index_load(path, &index, err);
        if (status == PLUMB_OK) status = open_shards(checkpoint, index.files, index.n_files, err);
        if (status == PLUMB_OK) status = compare_with_index(checkpoint, &index, path, err);
        plumb__index_free(&index);
    }
    free(path);
    return status;
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
        say(checkpoint, PLUMB_LOG_INFO,
            plumb__format("%lld tensors of parts that are switched off: ignored",
                          (long long)(count - kept)).s);
    return PLUMB_OK;
}

static const plumb_tensor *find(const plumb_checkpoint *checkpoint, const char *name) {
    const plumb_tensor key = {.name = name};
    if (checkpoint->tensors.count == 0) return NULL;
    return bsearch(&key, checkpoint->tensors.items, (size_t)checkpoint->tensors.count, sizeof key,
                   by_name);
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
        return plumb__fail(err, PLUMB_ERROR_TENSOR, checkpoint->folder, name, -1, "no such tensor",
                           "every tensor that config.json calls for");
    if (m.draft_missing > 0)
        say(checkpoint, PLUMB_LOG_WARNING, "no mtp.* tensors: the draft model is not available");
    return PLUMB_OK;
}

/* ---- Open and close -------------------------------------------------------------------------- */

static plumb_status open_config(plumb_checkpoint *checkpoint, plumb_error *err) {
    struct stat found;
    if (stat(checkpoint->folder, &found) == 0 && !S_ISDIR(found.st_mode))
        return plumb__fail(err, PLUMB_ERROR_IO, checkpoint->folder, "model", -1, "a file",
                           "the folder that holds config.json");
    char *path = join(checkpoint->folder, "config.json");
    if (!path) return plumb__fail_memory(err, "path", strlen(checkpoint->folder));
    plumb_status status = plumb__config_load(path, checkpoint->log, checkpoint->log_user,
                                             &checkpoint->config, err);
    free(path);
    return status;
}

plumb_status plumb__checkpoint_open(const char *folder, plumb_log_fn log, void *log_user,
                                    plumb_checkpoint **checkpoint, plumb_error *err) {
    plumb_checkpoint *opened = calloc(1, sizeof *opened);
    if (!opened) return plumb__fail_memory(err, "checkpoint", sizeof *opened);
    opened->log = log;
    opened->log_user = log_user;
    opened->folder = strdup(folder);
    plumb_status status = opened->folder ? open_config(opened, err)
                                         : plumb__fail_memory(err, "path", strlen(folder));
    if (status == PLUMB_OK) status = open_files(opened, err);
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
    free(checkpoint->folder);
    free(checkpoint);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const plumb_model_config *plumb__checkpoint_config(const plumb_checkpoint *checkpoint) {
    return &checkpoint->config;
}

const char *plumb__checkpoint_folder(const plumb_checkpoint *checkpoint) {
    return checkpoint->folder;
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

int64_t plumb__checkpoint_shards(const plumb_checkpoint *checkpoint) {
    return checkpoint->n_shards;
}

const char *plumb__checkpoint_shard_path(const plumb_checkpoint *checkpoint, int64_t shard) {
    return checkpoint->shards[shard].path;
}

int plumb__checkpoint_shard_fd(const plumb_checkpoint *checkpoint, int64_t shard) {
    return checkpoint->shards[shard].fd;
}

/* ---- Reading --------------------------------------------------------------------------------- */

plumb_status plumb__checkpoint_read(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                                    int64_t begin, int64_t size, void *into, plumb_error *err) {
    const plumb_shard_file *shard = &checkpoint->shards[tensor->shard];
    if (begin < 0 || size < 0 || begin > tensor->bytes || size > tensor->bytes - begin)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, shard->path, tensor->name, begin,
                           plumb__format("a read of %lld bytes", (long long)size).s,
                           "a range within %lld bytes", (long long)tensor->bytes);
    int64_t offset = tensor->offset + begin;
    plumb_status status =
        plumb__file_read_at(shard->fd, shard->path, tensor->name, offset, size, into, err);
    if (status != PLUMB_OK) return status;
    /* After the read, so that what it returned is known to be of the old file. */
    return plumb__shard_check_unchanged(shard, tensor->name, offset, err);
}

plumb_status plumb__checkpoint_check_unchanged(const plumb_checkpoint *checkpoint,
                                               const plumb_tensor *tensor, plumb_error *err) {
    return plumb__shard_check_unchanged(&checkpoint->shards[tensor->shard], tensor->name,
                                        tensor->offset, err);
}

plumb_status plumb__checkpoint_open_uncached(const plumb_checkpoint *checkpoint, int64_t shard,
                                             int *fd, bool *uncached, char *why, size_t why_size,
                                             plumb_error *err) {
    return plumb__shard_open_uncached(&checkpoint->shards[shard], fd, uncached, why, why_size, err);
}
