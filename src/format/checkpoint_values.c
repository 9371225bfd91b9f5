/* Values that no weight may hold: NaN codes, infinities (spec: checkpoint.md section 7). */
#include "format/checkpoint.h"

#include "base/error.h"
#include "format/stored_units.h"

#include <string.h>

/* Each finder returns the index of the first bad element, or -1.  The first pass over a block only
 * gathers evidence, without a branch, so that compilers make vector code of it: gigabytes of dense
 * weights go through here at every start. */
enum { BLOCK = 4096 };

static bool bad_e4m3(const unsigned char *at) { return (*at & 0x7F) == 0x7F; }
static bool bad_e8m0(const unsigned char *at) { return *at == 0xFF; }
static bool bad_bf16(const unsigned char *at) { return (at[1] & 0x7F) == 0x7F && at[0] >= 0x80; }
static bool bad_f32(const unsigned char *at) { return (at[3] & 0x7F) == 0x7F && at[2] >= 0x80; }

#define DEFINE_FINDER(name, is_bad, width)                                     \
    static int64_t name(const unsigned char *bytes, int64_t size) {            \
        for (int64_t begin = 0; begin < size; begin += BLOCK) {                \
            int64_t end = size - begin < BLOCK ? size : begin + BLOCK;         \
            unsigned bad = 0;                                                  \
            for (int64_t i = begin; i < end; i += (width)) bad |= is_bad(bytes + i); \
            for (int64_t i = begin; bad && i < end; i += (width))              \
                if (is_bad(bytes + i)) return i / (width);                     \
        }                                                                      \
        return -1;                                                             \
    }
DEFINE_FINDER(find_e4m3, bad_e4m3, 1)
DEFINE_FINDER(find_e8m0, bad_e8m0, 1)
DEFINE_FINDER(find_bf16, bad_bf16, 2)
DEFINE_FINDER(find_f32, bad_f32, 4)

static const struct {
    int64_t (*find)(const unsigned char *bytes, int64_t size); /* NULL: every code is a number */
    const char *expected;
} rules[PLUMB_DTYPE_COUNT] = {
    [PLUMB_DTYPE_BF16] = {find_bf16, "a finite number"},
    [PLUMB_DTYPE_F32] = {find_f32, "a finite number"},
    [PLUMB_DTYPE_F8_E4M3] = {find_e4m3, "a number, not the NaN codes 0x7F and 0xFF"},
    [PLUMB_DTYPE_F8_E8M0] = {find_e8m0, "a power of two, not the NaN code 0xFF"},
    [PLUMB_DTYPE_I8] = {NULL, NULL},
};

plumb_status plumb__checkpoint_check_values(const plumb_checkpoint *checkpoint,
                                            const plumb_tensor *tensor, int64_t begin, int64_t size,
                                            const void *bytes, plumb_error *err) {
    const char *path = plumb__checkpoint_shard_path(checkpoint, tensor->shard);
    int64_t width = plumb__dtype_bytes(tensor->dtype);
    if (begin < 0 || size < 0 || begin % width != 0 || size % width != 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, tensor->name, begin,
                           plumb__format("%lld bytes", (long long)size).s,
                           "whole elements of %lld bytes", (long long)width);
    if (!rules[tensor->dtype].find) return PLUMB_OK;
    int64_t at = rules[tensor->dtype].find(bytes, size);
    if (at < 0) return PLUMB_OK;
    unsigned code = 0;
    for (int64_t i = width - 1; i >= 0; i--)
        code = code << 8 | ((const unsigned char *)bytes)[at * width + i];
    int64_t element = begin / width + at;
    return plumb__fail(err, PLUMB_ERROR_VALUE, path, tensor->name,
                       plumb__stored_offset(tensor, element * width),
                       plumb__format("0x%0*X in row %lld, column %lld", (int)(2 * width), code,
                                     (long long)(element / tensor->shape[1]),
                                     (long long)(element % tensor->shape[1])).s,
                       "%s", rules[tensor->dtype].expected);
}
