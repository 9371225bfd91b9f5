/* GGUF files: types, and reading a header whose size is not known ahead. */
#include "format/gguf_parse.h"

#include "base/error.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_READ = 1 << 20, /* more than a header without a tokenizer */
    MOST_HEADER = 1 << 30
};

/* ---- Types ----------------------------------------------------------------------------------- */

static const struct ggml_type {
    int type;
    const char *name;
    int64_t block, bytes; /* elements and bytes of a block */
} ggml_types[] = {
    {PLUMB_GGML_F32, "F32", 1, 4},
    {PLUMB_GGML_I8, "I8", 1, 1},
    {PLUMB_GGML_BF16, "BF16", 1, 2},
    {PLUMB_GGML_MXFP4, "MXFP4", 32, 17}, /* an E8M0 scale, then two codes a byte */
};

static const struct ggml_type *ggml_type(int type) {
    for (size_t i = 0; i < sizeof ggml_types / sizeof ggml_types[0]; i++)
        if (ggml_types[i].type == type) return &ggml_types[i];
    return NULL;
}

const char *plumb__ggml_type_name(int type) {
    const struct ggml_type *known = ggml_type(type);
    return known ? known->name : NULL;
}

int64_t plumb__ggml_row_bytes(int type, int64_t elements) {
    const struct ggml_type *known = ggml_type(type);
    int64_t bytes;
    if (!known || elements < 0 || elements % known->block != 0 ||
        __builtin_mul_overflow(elements / known->block, known->bytes, &bytes))
        return -1;
    return bytes;
}

int64_t plumb__ggml_tensor_bytes(int type, int dims, const int64_t *shape) {
    if (dims < 1 || dims > PLUMB_GGUF_MOST_DIMS || shape[0] < 1) return -1;
    int64_t bytes = plumb__ggml_row_bytes(type, shape[0]);
    for (int i = 1; i < dims && bytes >= 0; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(bytes, shape[i], &bytes)) return -1;
    return bytes;
}

int64_t plumb__gguf_type_bytes(uint32_t type) {
    static const int64_t bytes[] = {
        [PLUMB_GGUF_U8] = 1,     [PLUMB_GGUF_I8] = 1,    [PLUMB_GGUF_U16] = 2,
        [PLUMB_GGUF_I16] = 2,    [PLUMB_GGUF_U32] = 4,   [PLUMB_GGUF_I32] = 4,
        [PLUMB_GGUF_F32] = 4,    [PLUMB_GGUF_BOOL] = 1,  [PLUMB_GGUF_STRING] = 0,
        [PLUMB_GGUF_ARRAY] = 0,  [PLUMB_GGUF_U64] = 8,   [PLUMB_GGUF_I64] = 8,
        [PLUMB_GGUF_F64] = 8,
    };
    return type < sizeof bytes / sizeof bytes[0] ? bytes[type] : 0;
}

int64_t plumb__gguf_align(int64_t at, int64_t alignment) {
    int64_t up;
    if (__builtin_add_overflow(at, alignment - 1, &up)) return -1;
    return up & ~(alignment - 1);
}

/* ---- Reading --------------------------------------------------------------------------------- */

void plumb__gguf_forget(plumb_gguf *gguf) {
    free(gguf->value);
    free(gguf->tensor);
    free(gguf->names);
    free(gguf->by_key);
    free(gguf->by_name);
    *gguf = (plumb_gguf){
        .path = gguf->path, .header = gguf->header, .file_bytes = gguf->file_bytes};
}

void plumb__gguf_free(plumb_gguf *gguf) {
    plumb__gguf_forget(gguf);
    free(gguf->path);
    free(gguf->header);
    *gguf = (plumb_gguf){0};
}

static plumb_status begin(plumb_gguf *gguf, int64_t file_bytes, const char *path,
                          plumb_error *err) {
    *gguf = (plumb_gguf){.file_bytes = file_bytes};
    if (!path) return PLUMB_OK;
    gguf->path = strdup(path);
    return gguf->path ? PLUMB_OK : plumb__fail_memory(err, path, strlen(path) + 1);
}

/* Makes room for `size` bytes of header. */
static plumb_status make_room(plumb_gguf *gguf, int64_t size, plumb_error *err) {
    uint8_t *grown = realloc(gguf->header, size > 0 ? (size_t)size : 1);
    if (!grown) return plumb__fail_memory(err, "a GGUF header", (size_t)size);
    gguf->header = grown;
    return PLUMB_OK;
}

plumb_status plumb__gguf_parse(const uint8_t *header, int64_t size, int64_t file_bytes,
                               const char *path, plumb_gguf *gguf, plumb_error *err) {
    bool cut;
    if (size > file_bytes) size = file_bytes;
    plumb_status status = begin(gguf, file_bytes, path, err);
    if (status == PLUMB_OK) status = make_room(gguf, size, err);
    if (status != PLUMB_OK) return status;
    if (size > 0) memcpy(gguf->header, header, (size_t)size);
    return plumb__gguf_parse_header(gguf, size, &cut, err);
}

plumb_status plumb__gguf_read(int fd, int64_t file_bytes, const char *path, plumb_gguf *gguf,
                              plumb_error *err) {
    int64_t most = file_bytes < MOST_HEADER ? file_bytes : MOST_HEADER, size = 0;
    plumb_status status = begin(gguf, file_bytes, path, err);
    if (status != PLUMB_OK) return status;
    bool cut;
    do { /* twice as much as before: what is parsed again is less than what is new */
        int64_t before = size;
        size = size == 0 ? FIRST_READ : 2 * size;
        if (size > most) size = most;
        status = make_room(gguf, size, err);
        if (status == PLUMB_OK)
            status = plumb__file_read_at(fd, path, "header", before, size - before,
                                         gguf->header + before, err);
        if (status != PLUMB_OK) return status;
        status = plumb__gguf_parse_header(gguf, size, &cut, err);
    } while (cut && size < most);
    return status;
}
