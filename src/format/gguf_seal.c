#include "format/gguf_seal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int64_t plumb__gguf_seal_blocks(int64_t header_bytes) {
    return (header_bytes + PLUMB_HEADER_BLOCK - 1) / PLUMB_HEADER_BLOCK;
}

plumb_status plumb__gguf_seal_compute(const uint8_t *header, int64_t bytes, int64_t at,
                                      uint64_t *digests, plumb_error *err) {
    int64_t blocks = plumb__gguf_seal_blocks(bytes);
    uint8_t *text = malloc((size_t)bytes);
    if (!text) return plumb__fail_memory(err, "header", (size_t)bytes);
    memcpy(text, header, (size_t)bytes);
    memset(text + at, 0, (size_t)blocks * sizeof *digests);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t begin = i * PLUMB_HEADER_BLOCK, left = bytes - begin;
        digests[i] = XXH3_64bits(text + begin,
                                 (size_t)(left < PLUMB_HEADER_BLOCK ? left : PLUMB_HEADER_BLOCK));
    }
    free(text);
    return PLUMB_OK;
}

/* told: as the file has them. */
static plumb_status compare(const plumb_gguf *gguf, const plumb_gguf_value *told,
                            const uint64_t *digests, plumb_error *err) {
    for (int64_t i = 0; i < told->count; i++) {
        uint64_t there;
        memcpy(&there, told->bytes + 8 * i, sizeof there);
        if (there == digests[i]) continue;
        int64_t begin = i * PLUMB_HEADER_BLOCK, end = begin + PLUMB_HEADER_BLOCK;
        if (end > gguf->header_bytes) end = gguf->header_bytes;
        return plumb__fail(err, PLUMB_ERROR_VALUE, gguf->path, "header", begin,
                           plumb__format("bytes to %lld with digest %016llx", (long long)end,
                                         (unsigned long long)digests[i]).s,
                           "digest %016llx (its place: offset %lld)", (unsigned long long)there,
                           (long long)(told->offset + 8 * i));
    }
    return PLUMB_OK;
}

plumb_status plumb__gguf_seal_check(const plumb_gguf *gguf, plumb_error *err) {
    const plumb_gguf_value *told;
    int64_t blocks = plumb__gguf_seal_blocks(gguf->header_bytes);
    plumb_status status =
        plumb__gguf_array(gguf, PLUMB_KEY_HEADER_DIGESTS, PLUMB_GGUF_U64, blocks, &told, err);
    if (status != PLUMB_OK) return status;
    uint64_t *digests = malloc((size_t)blocks * sizeof *digests);
    if (!digests) return plumb__fail_memory(err, "header digests", (size_t)blocks * sizeof *digests);
    status = plumb__gguf_seal_compute(gguf->header, gguf->header_bytes, told->offset, digests, err);
    if (status == PLUMB_OK) status = compare(gguf, told, digests, err);
    free(digests);
    return status;
}
