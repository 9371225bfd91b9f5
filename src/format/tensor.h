/* A tensor of a checkpoint: what it is, where its bytes are (spec: checkpoint.md sections 2-4). */
#ifndef PLUMB_FORMAT_TENSOR_H
#define PLUMB_FORMAT_TENSOR_H

#include "format/stored_form.h"
#include "plumb.h"

typedef enum plumb_dtype {
    PLUMB_DTYPE_BF16,
    PLUMB_DTYPE_F32,
    PLUMB_DTYPE_F8_E4M3,
    PLUMB_DTYPE_F8_E8M0,
    PLUMB_DTYPE_I8, /* two e2m1 codes a byte */
    PLUMB_DTYPE_COUNT
} plumb_dtype;

/* Which part of the model a tensor belongs to (checkpoint.md section 4). */
typedef enum plumb_tensor_class {
    PLUMB_CLASS_EMBED,
    PLUMB_CLASS_HEAD,
    PLUMB_CLASS_DENSE,          /* backbone without routed experts and tables, final norm too */
    PLUMB_CLASS_EXPERT,
    PLUMB_CLASS_ENGRAM_TABLE,
    PLUMB_CLASS_DRAFT_DENSE,
    PLUMB_CLASS_DRAFT_EXPERT,
    PLUMB_CLASS_VISION,         /* tower, aligner, span delimiters */
    PLUMB_CLASS_COUNT
} plumb_tensor_class;

typedef struct plumb_tensor {
    const char *name;     /* owned by the checkpoint */
    int64_t offset;       /* in the shard file, of the first byte of what holds it */
    int64_t bytes;        /* released bytes, however they are stored */
    int64_t shape[2];     /* rank 1: shape[1] = 1 */
    uint16_t shard;
    uint8_t rank, dtype, tensor_class; /* plumb_dtype, plumb_tensor_class */
    uint8_t stored;       /* plumb_stored_form */
} plumb_tensor;

/* The name in a safetensors header, "F8_E4M3". */
const char *plumb__dtype_name(int dtype);
/* The dtype of that name, or -1. */
int plumb__dtype_from_name(const char *name, size_t size);
int64_t plumb__dtype_bytes(int dtype); /* of one stored element */
const char *plumb__tensor_class_name(int tensor_class);

#endif
