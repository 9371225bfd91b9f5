/* A released folder: config, index, shard headers, and the agreement between what the index says and
 * what the shards hold.
 *
 * Names stay where they were read, in the text of the shard headers; the tensors are one array
 * sorted by name.  Descriptors stay open, so that a folder that is moved away keeps working until
 * the check after each read notices (shard_file.h). */
#include "format/checkpoint_parts.h"

#include "base/error.h"
#include "base/file.h"
#include "format/checkpoint_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    *shard = (plumb_shard_file){.fd = -1, .path = join(checkpoint->path, file)};
    if (!shard->path) return plumb__fail_memory(err, file, strlen(file));
    shard->file = shard->path + strlen(checkpoint->path) + 1;
    uint16_t number = (uint16_t)checkpoint->n_shards++;
    plumb_status status = plumb__file_open(shard->path, &shard->fd, &shard->opened, err);
    if (status != PLUMB_OK) return status;
    return plumb__safetensors_read(shard->fd, shard->opened.st_size, shard->path, number,
                                   &checkpoint->tensors, &shard->header, err);
}

static plumb_status sort_tensors(plumb_checkpoint *checkpoint, plumb_error *err) {
    plumb_tensor *tensors = checkpoint->tensors.items;
    int64_t count = checkpoint->tensors.count;
    if (count > 0) qsort(tensors, (size_t)count, sizeof *tensors, plumb__tensor_by_name);
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
        plumb__checkpoint_say(checkpoint, PLUMB_LOG_WARNING,
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
    char *path = join(checkpoint->path, single[0]);
    if (!path) return plumb__fail_memory(err, "path", strlen(checkpoint->path));
    bool absent = is_absent(path);
    free(path);
    if (!absent) return open_shards(checkpoint, single, 1, err);
    return plumb__fail(err, PLUMB_ERROR_IO, index_path, "open", -1, "no such file",
                       "model.safetensors.index.json, or model.safetensors in its place");
}

/* The shards of the index, or the one file of a checkpoint without an index. */
static plumb_status open_files(plumb_checkpoint *checkpoint, plumb_error *err) {
    char *path = join(checkpoint->path, "model.safetensors.index.json");
    if (!path) return plumb__fail_memory(err, "path", strlen(checkpoint->path));
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

static plumb_status load_config(plumb_checkpoint *checkpoint, plumb_error *err) {
    struct stat found;
    if (stat(checkpoint->path, &found) == 0 && !S_ISDIR(found.st_mode))
        return plumb__fail(err, PLUMB_ERROR_IO, checkpoint->path, "model", -1, "a file",
                           "the folder that holds config.json");
    return plumb__config_load(checkpoint->path, checkpoint->log, checkpoint->log_user,
                              &checkpoint->config, err);
}

plumb_status plumb__checkpoint_open_folder(plumb_checkpoint *checkpoint, plumb_error *err) {
    plumb_status status = load_config(checkpoint, err);
    return status == PLUMB_OK ? open_files(checkpoint, err) : status;
}
