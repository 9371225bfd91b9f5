/* Shards as in the release: a layer's tensors together, the Engram tables last and alone.  The
 * order inside a shard is by name, so nothing depends on the order in which tensors are visited. */
#include "synth/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---- Which shard ---------------------------------------------------------------------------- */

/* Slots are shards before the empty ones of a cut model are left out. */
enum { SMALL_SLOTS = 4, RELEASE_SLOTS = 48 };
enum { SLOT_HEAD = 41, SLOT_DRAFT = 42, SLOT_VISION = 45, SLOT_TABLES = 46 }; /* release */

static int64_t block_number(const char *name) {
    const char *dot = strchr(name, '.');
    return dot ? strtoll(dot + 1, NULL, 10) : 0;
}

static int small_slot(const plumb_model_config *shape, const char *name, int tensor_class) {
    switch (tensor_class) {
    case PLUMB_CLASS_EMBED:
    case PLUMB_CLASS_VISION: return 0;
    case PLUMB_CLASS_ENGRAM_TABLE: return 3;
    default: break;
    }
    bool in_layer = !strncmp(name, "layers.", 7);
    return in_layer && block_number(name) < shape->layers / 2 ? 1 : 2;
}

static int release_slot(const plumb_model_config *shape, const char *name, int tensor_class) {
    switch (tensor_class) {
    case PLUMB_CLASS_EMBED: return 0;
    case PLUMB_CLASS_DRAFT_DENSE:
    case PLUMB_CLASS_DRAFT_EXPERT: return SLOT_DRAFT + (int)block_number(name);
    case PLUMB_CLASS_VISION: return SLOT_VISION;
    case PLUMB_CLASS_ENGRAM_TABLE:
        return SLOT_TABLES + plumb__config_engram_index(shape, block_number(name));
    default: break;
    }
    bool in_layer = !strncmp(name, "layers.", 7);
    return in_layer ? 1 + (int)block_number(name) : SLOT_HEAD;
}

/* ---- Collecting ----------------------------------------------------------------------------- */

typedef struct collector {
    const plumb_synth_options *options;
    const plumb_model_config *shape;
    plumb__plan *plan;
} collector;

static bool is_real(const plumb_synth_options *options, const plumb_tensor_spec *spec) {
    bool plain = spec->dtype == PLUMB_DTYPE_BF16 || spec->dtype == PLUMB_DTYPE_F32;
    bool backbone = spec->tensor_class == PLUMB_CLASS_EMBED ||
                    spec->tensor_class == PLUMB_CLASS_HEAD ||
                    spec->tensor_class == PLUMB_CLASS_DENSE;
    switch (options->payload) {
    case PLUMB_SYNTH_FULL: return true;
    case PLUMB_SYNTH_SPARSE_TABLES: return spec->tensor_class != PLUMB_CLASS_ENGRAM_TABLE;
    case PLUMB_SYNTH_SPARSE: return plain && backbone;
    case PLUMB_SYNTH_HOLLOW: break;
    }
    return false;
}

/* Names move while their buffer grows, so a tensor first holds its name's place in it. */
static int collect(void *user, const char *name, const plumb_tensor_spec *spec) {
    collector *c = user;
    plumb__plan *plan = c->plan;
    int64_t size = (int64_t)strlen(name) + 1;
    char *names = plumb__grow(plan->names, &plan->names_capacity, plan->names_size + size, 1);
    if (names) plan->names = names;
    plumb__planned *tensors =
        plumb__grow(plan->tensors, &plan->capacity, plan->count + 1, sizeof *tensors);
    if (tensors) plan->tensors = tensors;
    if (!names || !tensors) return 1;
    memcpy(names + plan->names_size, name, (size_t)size);
    int slot = c->options->variant == PLUMB_SYNTH_RELEASE
                   ? release_slot(c->shape, name, spec->tensor_class)
                   : small_slot(c->shape, name, spec->tensor_class);
    tensors[plan->count++] = (plumb__planned){
        .spec = *spec, .shard = slot, .begin = plan->names_size, .real = is_real(c->options, spec)};
    plan->names_size += size;
    return 0;
}

static int by_shard_and_name(const void *a, const void *b) {
    const plumb__planned *x = a, *y = b;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Numbers the slots in use, in order, and gives each shard its range of the sorted tensors. */
static plumb_status make_shards(plumb__plan *plan, plumb_error *err) {
    for (int64_t i = 0; i < plan->count; i++)
        plan->n_shards += i == 0 || plan->tensors[i].shard != plan->tensors[i - 1].shard;
    plan->shards = calloc((size_t)plan->n_shards + 1, sizeof *plan->shards);
    if (!plan->shards) return plumb__fail_memory(err, "shards", sizeof *plan->shards);
    int shard = -1, slot = -1;
    for (int64_t i = 0; i < plan->count; i++) {
        plumb__planned *tensor = &plan->tensors[i];
        if (tensor->shard != slot) {
            slot = tensor->shard;
            shard++;
            plan->shards[shard].first = i;
            (void)snprintf(plan->shards[shard].file, sizeof plan->shards[shard].file,
                           "model-%05d-of-%05d.safetensors", shard + 1, plan->n_shards);
        }
        plumb__planned_shard *into = &plan->shards[shard];
        tensor->shard = shard;
        tensor->begin = into->data_bytes;
        into->data_bytes += tensor->spec.bytes;
        into->count++;
        plan->total_bytes += tensor->spec.bytes;
        if (tensor->real) plan->real_bytes += tensor->spec.bytes;
    }
    return PLUMB_OK;
}

plumb_status plumb__plan_make(const plumb_synth_options *options, const plumb_model_config *shape,
                              plumb__plan *plan, plumb_error *err) {
    *plan = (plumb__plan){0};
    collector c = {options, shape, plan};
    if (plumb__tensor_table_visit(shape, collect, &c))
        return plumb__fail_memory(err, "tensor list", (size_t)plan->names_size);
    for (int64_t i = 0; i < plan->count; i++)
        plan->tensors[i].name = plan->names + plan->tensors[i].begin;
    qsort(plan->tensors, (size_t)plan->count, sizeof *plan->tensors, by_shard_and_name);
    return make_shards(plan, err);
}

void plumb__plan_free(plumb__plan *plan) {
    free(plan->tensors);
    free(plan->shards);
    free(plan->names);
    *plan = (plumb__plan){0};
}

/* ---- Header and index ----------------------------------------------------------------------- */

void plumb__plan_write_header(const plumb__plan *plan, int shard, plumb__json_text *text) {
    const plumb__planned_shard *s = &plan->shards[shard];
    plumb__put_begin(text, '{');
    plumb__put_key(text, "__metadata__");
    plumb__put_begin(text, '{');
    plumb__put_key(text, "format");
    plumb__put_string(text, "pt");
    plumb__put_end(text, '}');
    for (int64_t i = s->first; i < s->first + s->count; i++) {
        const plumb__planned *tensor = &plan->tensors[i];
        plumb__put_key(text, tensor->name);
        plumb__put_begin(text, '{');
        plumb__put_key(text, "dtype");
        plumb__put_string(text, plumb__dtype_name(tensor->spec.dtype));
        plumb__put_key(text, "shape");
        plumb__put_begin(text, '[');
        for (int d = 0; d < tensor->spec.rank; d++) plumb__put_integer(text, tensor->spec.shape[d]);
        plumb__put_end(text, ']');
        plumb__put_key(text, "data_offsets");
        plumb__put_begin(text, '[');
        plumb__put_integer(text, tensor->begin);
        plumb__put_integer(text, tensor->begin + tensor->spec.bytes);
        plumb__put_end(text, ']');
        plumb__put_end(text, '}');
    }
    plumb__put_end(text, '}');
    while (text->size % 8 != 0 && !plumb__json_failed(text)) plumb__put_raw(text, " ", 1);
}

static int by_name(const void *a, const void *b) {
    const plumb__planned *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

plumb_status plumb__plan_write_index(const plumb__plan *plan, plumb__json_text *text,
                                     plumb_error *err) {
    const plumb__planned **sorted = malloc((size_t)plan->count * sizeof *sorted);
    if (!sorted) return plumb__fail_memory(err, "index", (size_t)plan->count * sizeof *sorted);
    for (int64_t i = 0; i < plan->count; i++) sorted[i] = &plan->tensors[i];
    qsort(sorted, (size_t)plan->count, sizeof *sorted, by_name);
    plumb__put_begin(text, '{');
    plumb__put_key(text, "metadata");
    plumb__put_begin(text, '{');
    plumb__put_key(text, "total_size");
    plumb__put_integer(text, plan->total_bytes);
    plumb__put_end(text, '}');
    plumb__put_key(text, "weight_map");
    plumb__put_begin(text, '{');
    for (int64_t i = 0; i < plan->count; i++) {
        plumb__put_key(text, sorted[i]->name);
        plumb__put_string(text, plan->shards[sorted[i]->shard].file);
    }
    plumb__put_end(text, '}');
    plumb__put_end(text, '}');
    free(sorted);
    return PLUMB_OK;
}
