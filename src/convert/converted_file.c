#include "convert/converted_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "format/gguf_names.h"
#include "format/tensor_table.h"

#include <stdlib.h>
#include <string.h>

typedef struct listing {
    plumb_converted_file *file;
    int64_t capacity, parts, parts_room;
    bool tables;        /* this visit lists the tables, which come last; the other one all else */
    plumb_error *err;
    plumb_status status;
} listing;

static int64_t stack_height(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor) {
    const plumb_model_config *c = plumb__checkpoint_config(checkpoint);
    return tensor->tensor_class == PLUMB_CLASS_DRAFT_EXPERT ? c->draft_experts : c->experts;
}

static int type_of(const plumb_stored_tensor *tensor) {
    switch ((plumb_stored_form)tensor->form) {
    case PLUMB_STORED_F32: return PLUMB_GGML_F32;
    case PLUMB_STORED_BF16: return PLUMB_GGML_BF16;
    case PLUMB_STORED_MXFP4: return PLUMB_GGML_MXFP4;
    case PLUMB_STORED_ROWS: return PLUMB_GGML_I8;
    case PLUMB_STORED_RELEASED: break;
    }
    uint8_t dtype = tensor->part->codes->dtype;
    return dtype == PLUMB_DTYPE_BF16  ? PLUMB_GGML_BF16
           : dtype == PLUMB_DTYPE_F32 ? PLUMB_GGML_F32
                                      : PLUMB_GGML_I8;
}

plumb_stored_units plumb__stored_tensor_units(const plumb_stored_tensor *tensor) {
    return plumb__stored_units(tensor->part->codes, tensor->form);
}

void plumb__stored_tensor_set_form(plumb_stored_tensor *tensor, int form) {
    tensor->form = form;
    tensor->type = type_of(tensor);
    plumb_stored_units units = plumb__stored_tensor_units(tensor);
    tensor->bytes = tensor->parts * units.count * units.stored;
}

bool plumb__stored_tensor_has_choice(const plumb_stored_tensor *tensor) {
    const plumb_tensor *codes = tensor->part->codes;
    return tensor->tiles || (codes->dtype == PLUMB_DTYPE_F32 && codes->rank == 2);
}

/* The stored tensor of that name, listed before, or NULL.  It is among the last: whatever shares a
 * place is visited together. */
static plumb_stored_tensor *find_listed(const plumb_converted_file *file, const char *name) {
    for (int64_t i = file->count; i-- > 0;)
        if (strcmp(file->tensor[i].name, name) == 0) return &file->tensor[i];
    return NULL;
}

static void set_shape(plumb_stored_tensor *t, const plumb_gguf_name *name) {
    const plumb_tensor *codes = t->part->codes;
    t->dims = codes->rank;
    t->shape[0] = codes->rank == 1 ? codes->shape[0] : codes->shape[1];
    t->shape[1] = codes->rank == 1 ? 1 : codes->shape[0];
    t->shape[2] = 1;
    if (name->in_rows) t->shape[0] += codes->shape[1] / PLUMB_MXFP4_ELEMENTS;
    if (name->expert >= 0) {
        t->dims = 3;
        t->shape[0] *= 2;
        t->shape[2] = t->parts;
    }
}

static plumb_status add(listing *l, const plumb_tensor *codes, const plumb_gguf_name *name) {
    plumb_converted_file *file = l->file;
    int64_t parts = name->expert >= 0 ? stack_height(file->checkpoint, codes) : 1;
    void *grown = plumb__grow(file->tensor, &l->capacity, file->count + 1, sizeof *file->tensor);
    if (!grown) return plumb__fail_memory(l->err, "tensors", sizeof *file->tensor);
    file->tensor = grown;
    plumb_stored_tensor *t = &file->tensor[file->count];
    *t = (plumb_stored_tensor){.part = file->parts + l->parts, .parts = parts,
                               .offset = plumb__checkpoint_gguf(file->checkpoint)
                                             ? codes->offset : 0};
    memcpy(t->name, name->name, sizeof t->name);
    t->part->codes = codes;
    l->parts += parts;
    set_shape(t, name);
    bool fp8 = codes->dtype == PLUMB_DTYPE_F8_E4M3 && !name->in_rows;
    if (fp8) {
        t->tiles = plumb__checkpoint_scales_of(file->checkpoint, codes, l->err);
        if (!t->tiles) return PLUMB_ERROR_TENSOR;
    }
    plumb__stored_tensor_set_form(t, name->expert >= 0 ? PLUMB_STORED_MXFP4
                                     : name->in_rows   ? PLUMB_STORED_ROWS
                                                       : codes->stored);
    file->count++;
    return PLUMB_OK;
}

/* Rows that are no whole number of blocks of 32 have no place in the stored forms. */
static plumb_status check_blocks(const listing *l, const plumb_tensor *codes,
                                 const plumb_gguf_name *name) {
    int64_t width = name->expert >= 0 ? 2 * codes->shape[1] : codes->shape[1];
    if ((name->expert < 0 && !name->in_rows) || width % PLUMB_MXFP4_ELEMENTS == 0) return PLUMB_OK;
    return plumb__fail(l->err, PLUMB_ERROR_UNSUPPORTED,
                       plumb__checkpoint_path(l->file->checkpoint), codes->name, -1,
                       plumb__format("rows of %lld", (long long)width).s, "a multiple of %d",
                       PLUMB_MXFP4_ELEMENTS);
}

static plumb_status place(listing *l, const plumb_tensor *tensor, const plumb_gguf_name *name) {
    bool shared = name->expert >= 0 || name->in_rows;
    bool of_scales = tensor->dtype == PLUMB_DTYPE_F8_E8M0;
    plumb_stored_tensor *stack = shared ? find_listed(l->file, name->name) : NULL;
    int64_t at = name->expert > 0 ? name->expert : 0;
    if (!of_scales) {
        plumb_status status = check_blocks(l, tensor, name);
        if (status != PLUMB_OK) return status;
    }
    if (!stack) return add(l, tensor, name); /* its codes come first */
    if (of_scales) stack->part[at].scales = tensor;
    else stack->part[at].codes = tensor;
    return PLUMB_OK;
}

static int list_tensor(void *user, const char *released, const plumb_tensor_spec *spec) {
    listing *l = user;
    plumb_gguf_name name;
    if ((spec->tensor_class == PLUMB_CLASS_ENGRAM_TABLE) != l->tables) return 0;
    const plumb_tensor *tensor = plumb__checkpoint_find(l->file->checkpoint, "%s", released);
    if (!tensor) return 0; /* of a draft that is absent as a whole */
    if (plumb__gguf_name_of(released, &name))
        l->status = place(l, tensor, &name);
    else
        l->status = plumb__fail(l->err, PLUMB_ERROR_UNSUPPORTED, NULL, released, -1,
                                "a tensor without a name in converted files", "a known tensor");
    return l->status != PLUMB_OK;
}

plumb_status plumb__converted_file_list(const plumb_checkpoint *checkpoint,
                                        plumb_converted_file *file, plumb_error *err) {
    *file = (plumb_converted_file){.checkpoint = checkpoint};
    listing l = {.file = file, .err = err, .parts_room = plumb__checkpoint_count(checkpoint)};
    file->parts = calloc((size_t)l.parts_room, sizeof *file->parts);
    if (!file->parts) return plumb__fail_memory(err, "tensors", sizeof *file->parts);
    const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
    (void)plumb__tensor_table_visit(config, list_tensor, &l);
    l.tables = true;
    if (l.status == PLUMB_OK) (void)plumb__tensor_table_visit(config, list_tensor, &l);
    if (l.status != PLUMB_OK) plumb__converted_file_free(file);
    return l.status;
}

void plumb__converted_file_free(plumb_converted_file *file) {
    free(file->parts);
    free(file->tensor);
    *file = (plumb_converted_file){0};
}
