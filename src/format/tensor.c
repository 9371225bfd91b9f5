/* Names and sizes of dtypes and tensor classes. */
#include "format/tensor.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[PLUMB_DTYPE_COUNT] = {
    [PLUMB_DTYPE_BF16] = {"BF16", 2},       [PLUMB_DTYPE_F32] = {"F32", 4},
    [PLUMB_DTYPE_F8_E4M3] = {"F8_E4M3", 1}, [PLUMB_DTYPE_F8_E8M0] = {"F8_E8M0", 1},
    [PLUMB_DTYPE_I8] = {"I8", 1},
};

static const char *const class_names[PLUMB_CLASS_COUNT] = {
    [PLUMB_CLASS_EMBED] = "embedding",
    [PLUMB_CLASS_HEAD] = "head",
    [PLUMB_CLASS_DENSE] = "backbone dense",
    [PLUMB_CLASS_EXPERT] = "backbone routed experts",
    [PLUMB_CLASS_ENGRAM_TABLE] = "Engram tables",
    [PLUMB_CLASS_DRAFT_DENSE] = "draft dense",
    [PLUMB_CLASS_DRAFT_EXPERT] = "draft routed experts",
    [PLUMB_CLASS_VISION] = "vision",
};

const char *plumb__dtype_name(int dtype) {
    return dtype >= 0 && dtype < PLUMB_DTYPE_COUNT ? dtypes[dtype].name : "unknown dtype";
}

int plumb__dtype_from_name(const char *name, size_t size) {
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++)
        if (strlen(dtypes[i].name) == size && !memcmp(dtypes[i].name, name, size)) return i;
    return -1;
}

int64_t plumb__dtype_bytes(int dtype) { return dtypes[dtype].bytes; }

const char *plumb__tensor_class_name(int tensor_class) {
    return tensor_class >= 0 && tensor_class < PLUMB_CLASS_COUNT ? class_names[tensor_class]
                                                                 : "unknown class";
}
