/* A converted file as a checkpoint: for every tensor that the config needs, where the file keeps it
 * and in which form (docs/convert.md).
 *
 * The released names are expanded from the config and looked up under the names they have here, so
 * that a file which lacks one, or has one more, is told at once. */
#include "format/checkpoint_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "format/gguf_names.h"
#include "format/gguf_seal.h"
#include "format/model_files.h"
#include "format/stored_units.h"
#include "format/tensor_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct listing {
    plumb_checkpoint *checkpoint;
    const plumb_gguf *gguf;
    bool *used;             /* [gguf->tensors] */
    int64_t names_size, names_room;
    plumb_error *err;
    plumb_status status;
} listing;

/* ---- Is it ours? ------------------------------------------------------------------------------ */

static plumb_status check_kind(const plumb_gguf *gguf, plumb_error *err) {
    static const char architecture[] = "deepseek41";
    const char *text;
    int64_t size, format;
    plumb_status status = plumb__gguf_string(gguf, "general.architecture", &text, &size, err);
    if (status != PLUMB_OK) return status;
    if (size != sizeof architecture - 1 || memcmp(text, architecture, sizeof architecture - 1) != 0)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, gguf->path, "general.architecture", -1,
                           plumb__format("%.*s", (int)(size < 64 ? size : 64), text).s, "%s",
                           architecture);
    if (!plumb__gguf_find(gguf, PLUMB_GGUF_FORMAT_KEY))
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, gguf->path, PLUMB_GGUF_FORMAT_KEY, -1,
                           "a file of another program, whose weights are not the released ones",
                           "a file that plumb convert wrote");
    status = plumb__gguf_integer(gguf, PLUMB_GGUF_FORMAT_KEY, 0, UINT32_MAX, &format, err);
    if (status != PLUMB_OK || format == PLUMB_GGUF_FORMAT) return status;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, gguf->path, PLUMB_GGUF_FORMAT_KEY, -1,
                       plumb__format("format %lld", (long long)format).s, "format %d", PLUMB_GGUF_FORMAT);
}

/* The layout that every reader of ours counts on. */
static plumb_status check_layout(const plumb_gguf *gguf, plumb_error *err) {
    if (gguf->alignment != PLUMB_GGUF_ALIGNMENT)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, "general.alignment", -1,
                           plumb__format("%lld", (long long)gguf->alignment).s, "%d",
                           PLUMB_GGUF_ALIGNMENT);
    int64_t end = gguf->data_offset;
    if (gguf->tensors > 0) {
        const plumb_gguf_tensor *last = &gguf->tensor[gguf->tensors - 1];
        end = plumb__gguf_align(last->offset + last->bytes, PLUMB_GGUF_ALIGNMENT);
    }
    if (gguf->file_bytes == end) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, "size", end,
                       plumb__format("%lld bytes", (long long)gguf->file_bytes).s, "%lld bytes",
                       (long long)end);
}

/* ---- One tensor ------------------------------------------------------------------------------- */

static plumb__text192 shape_text(const plumb_gguf_tensor *t) {
    const char *type = plumb__ggml_type_name(t->type);
    return plumb__format("%s [%lld, %lld, %lld]", type, (long long)t->shape[0],
                         (long long)t->shape[1], (long long)t->shape[2]);
}

/* How a file may hold a released tensor: the form, the type, and the shape, fastest first. */
typedef struct way {
    int form, type;
    int64_t shape[3];
} way;

/* The ways of a tensor, the first `n` of `ways`. */
static int ways_of(const plumb_tensor_spec *s, const plumb_gguf_name *name, int64_t experts,
                   way ways[3]) {
    int64_t k = s->rank == 1 ? s->shape[0] : s->shape[1], n = s->rank == 1 ? 1 : s->shape[0];
    if (name->expert >= 0) {
        int64_t elements = s->dtype == PLUMB_DTYPE_I8 ? 2 * k : PLUMB_MXFP4_ELEMENTS * k;
        ways[0] = (way){PLUMB_STORED_MXFP4, PLUMB_GGML_MXFP4, {elements, n, experts}};
        return 1;
    }
    if (name->in_rows) {
        int64_t dim = s->dtype == PLUMB_DTYPE_F8_E4M3 ? k : PLUMB_MXFP4_ELEMENTS * k;
        ways[0] = (way){PLUMB_STORED_ROWS, PLUMB_GGML_I8, {dim + dim / PLUMB_MXFP4_ELEMENTS, n, 1}};
        return 1;
    }
    static const int released[PLUMB_DTYPE_COUNT] = {
        [PLUMB_DTYPE_BF16] = PLUMB_GGML_BF16, [PLUMB_DTYPE_F32] = PLUMB_GGML_F32,
        [PLUMB_DTYPE_F8_E4M3] = PLUMB_GGML_I8, [PLUMB_DTYPE_F8_E8M0] = PLUMB_GGML_I8,
        [PLUMB_DTYPE_I8] = PLUMB_GGML_I8};
    int count = 0;
    ways[count++] = (way){PLUMB_STORED_RELEASED, released[s->dtype], {k, n, 1}};
    bool fp8 = s->dtype == PLUMB_DTYPE_F8_E4M3;
    if (fp8) ways[count++] = (way){PLUMB_STORED_F32, PLUMB_GGML_F32, {k, n, 1}};
    if (fp8 || (s->dtype == PLUMB_DTYPE_F32 && s->rank == 2))
        ways[count++] = (way){PLUMB_STORED_BF16, PLUMB_GGML_BF16, {k, n, 1}};
    return count;
}

/* The way in which the file holds it, or NULL. */
static const way *way_taken(const plumb_gguf_tensor *t, const way *ways, int n) {
    for (int i = 0; i < n; i++)
        if (t->type == ways[i].type && t->shape[0] == ways[i].shape[0] &&
            t->shape[1] == ways[i].shape[1] && t->shape[2] == ways[i].shape[2] && t->shape[3] == 1)
            return &ways[i];
    return NULL;
}

static char *keep_name(listing *l, const char *name) {
    size_t size = strlen(name) + 1;
    char *kept = l->checkpoint->names + l->names_size;
    memcpy(kept, name, size);
    l->names_size += (int64_t)size;
    return kept;
}

static plumb_status add(listing *l, const char *released, const plumb_tensor_spec *s,
                        const plumb_gguf_name *name, const plumb_gguf_tensor *t) {
    const plumb_model_config *c = &l->checkpoint->config;
    bool draft = s->tensor_class == PLUMB_CLASS_DRAFT_EXPERT;
    way ways[3];
    int n = ways_of(s, name, draft ? c->draft_experts : c->experts, ways);
    const way *taken = way_taken(t, ways, n);
    if (!taken)
        return plumb__fail(l->err, PLUMB_ERROR_TENSOR, l->gguf->path, t->name, t->offset,
                           shape_text(t).s, "%s [%lld, %lld, %lld]%s",
                           plumb__ggml_type_name(ways[0].type), (long long)ways[0].shape[0],
                           (long long)ways[0].shape[1], (long long)ways[0].shape[2],
                           n > 1 ? ", or another type that holds its values" : "");
    plumb_tensor_list *list = &l->checkpoint->tensors;
    void *grown = plumb__grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (!grown) return plumb__fail_memory(l->err, "tensors", sizeof *list->items);
    list->items = grown;
    plumb_tensor *tensor = &list->items[list->count++];
    *tensor = (plumb_tensor){.name = keep_name(l, released), .offset = t->offset, .bytes = s->bytes,
                             .shape = {s->shape[0], s->shape[1]}, .rank = s->rank,
                             .dtype = s->dtype, .stored = (uint8_t)taken->form};
    if (name->expert > 0) {
        plumb_stored_units units = plumb__stored_units(tensor, tensor->stored);
        tensor->offset += name->expert * units.count * units.stored;
    }
    return PLUMB_OK;
}

/* A needed tensor that is absent is told later, with those of folders. */
static int list_tensor(void *user, const char *released, const plumb_tensor_spec *spec) {
    listing *l = user;
    plumb_gguf_name name;
    if (!plumb__gguf_name_of(released, &name)) return 0;
    const plumb_gguf_tensor *t = plumb__gguf_find_tensor(l->gguf, name.name);
    if (!t) return 0;
    l->used[t - l->gguf->tensor] = true;
    l->status = add(l, released, spec, &name, t);
    return l->status != PLUMB_OK;
}

static int measure_name(void *user, const char *released, const plumb_tensor_spec *spec) {
    (void)spec;
    ((listing *)user)->names_room += (int64_t)strlen(released) + 1;
    return 0;
}

static plumb_status check_used(const listing *l) {
    for (int64_t i = 0; i < l->gguf->tensors; i++)
        if (!l->used[i])
            return plumb__fail(l->err, PLUMB_ERROR_TENSOR, l->gguf->path, l->gguf->tensor[i].name,
                               l->gguf->tensor[i].offset, "a tensor that this config has no use for",
                               "only tensors of the released layout");
    return PLUMB_OK;
}

static plumb_status list_tensors(plumb_checkpoint *checkpoint, plumb_error *err) {
    listing l = {.checkpoint = checkpoint, .gguf = checkpoint->gguf, .err = err};
    (void)plumb__tensor_table_visit(&checkpoint->config, measure_name, &l);
    checkpoint->names = malloc((size_t)l.names_room);
    l.used = calloc((size_t)l.gguf->tensors + 1, sizeof *l.used);
    if (!checkpoint->names || !l.used)
        l.status = plumb__fail_memory(err, "tensor names", (size_t)l.names_room);
    if (l.status == PLUMB_OK) (void)plumb__tensor_table_visit(&checkpoint->config, list_tensor, &l);
    if (l.status == PLUMB_OK) l.status = check_used(&l);
    free(l.used);
    plumb_tensor_list *list = &checkpoint->tensors;
    if (l.status == PLUMB_OK && list->count > 0)
        qsort(list->items, (size_t)list->count, sizeof *list->items, plumb__tensor_by_name);
    return l.status;
}

/* ---- Open --------------------------------------------------------------------------------------- */

static plumb_status open_file(plumb_checkpoint *checkpoint, plumb_error *err) {
    checkpoint->shards = calloc(1, sizeof *checkpoint->shards);
    checkpoint->gguf = calloc(1, sizeof *checkpoint->gguf);
    if (!checkpoint->shards || !checkpoint->gguf)
        return plumb__fail_memory(err, "file", sizeof *checkpoint->shards);
    plumb_shard_file *shard = checkpoint->shards;
    *shard = (plumb_shard_file){.fd = -1, .path = strdup(checkpoint->path)};
    checkpoint->n_shards = 1;
    if (!shard->path) return plumb__fail_memory(err, "path", strlen(checkpoint->path));
    const char *slash = strrchr(shard->path, '/');
    shard->file = slash ? slash + 1 : shard->path;
    plumb_status status = plumb__file_open(shard->path, &shard->fd, &shard->opened, err);
    if (status != PLUMB_OK) return status;
    return plumb__gguf_read(shard->fd, shard->opened.st_size, shard->path, checkpoint->gguf, err);
}

plumb_status plumb__checkpoint_open_gguf(plumb_checkpoint *checkpoint, plumb_error *err) {
    const char *config;
    int64_t size;
    plumb_status status = open_file(checkpoint, err);
    if (status == PLUMB_OK) status = check_kind(checkpoint->gguf, err);
    if (status == PLUMB_OK) status = plumb__gguf_seal_check(checkpoint->gguf, err);
    if (status == PLUMB_OK) status = check_layout(checkpoint->gguf, err);
    if (status == PLUMB_OK)
        status = plumb__gguf_string(checkpoint->gguf, PLUMB_GGUF_CONFIG_KEY, &config, &size, err);
    if (status == PLUMB_OK)
        status = plumb__config_parse(config, (size_t)size, checkpoint->path, checkpoint->log,
                                     checkpoint->log_user, &checkpoint->config, err);
    return status == PLUMB_OK ? list_tensors(checkpoint, err) : status;
}
