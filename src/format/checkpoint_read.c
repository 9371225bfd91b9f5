/* Released bytes, from whatever form they are stored in.
 *
 * What is not stored as released is decoded, a few units at a time: this way is for weights that are
 * read once and for single rows; what streams knows the stored form (stream/expert_layout.h,
 * stream/engram_rows.h). */
#include "format/checkpoint_parts.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "format/stored_units.h"

#include <stdlib.h>
#include <string.h>

enum { STORED_PIECE = 1 << 20 };

/* The scales of an FP8 matrix, for rows [first, first + n) of it. */
static plumb_status read_tiles(const plumb_checkpoint *checkpoint, const plumb_tensor *codes,
                               const plumb_stored_units *units, int64_t first, int64_t n,
                               uint8_t **tiles, plumb_error *err) {
    const plumb_tensor *scale = plumb__checkpoint_scales_of(checkpoint, codes, err);
    if (!scale) return PLUMB_ERROR_TENSOR;
    int64_t bytes = plumb__stored_tiles_bytes(units, first, n);
    *tiles = malloc((size_t)bytes);
    if (!*tiles) return plumb__fail_memory(err, scale->name, (size_t)bytes);
    return plumb__checkpoint_read(checkpoint, scale, plumb__stored_tiles_begin(units, first), bytes,
                                  *tiles, err);
}

typedef struct stored_range {
    plumb_stored_units units;
    int64_t begin, size; /* of the released tensor */
    uint8_t *into;
    bool wants_scales;
    int64_t wanted;      /* released bytes of a unit */
} stored_range;

/* Units [first, first + n), of which the range may begin or end inside. */
static plumb_status read_units(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                               const stored_range *r, int64_t first, int64_t n, uint8_t *stored,
                               uint8_t *released, plumb_error *err) {
    const plumb_shard_file *shard = &checkpoint->shards[tensor->shard];
    const plumb_stored_units *u = &r->units;
    uint8_t *tiles = NULL;
    int64_t offset = tensor->offset + first * u->stored;
    plumb_status status = plumb__file_read_at(shard->fd, shard->path, tensor->name, offset,
                                              n * u->stored, stored, err);
    if (status == PLUMB_OK && u->tiles)
        status = read_tiles(checkpoint, tensor, u, first, n, &tiles, err);
    if (status == PLUMB_OK) {
        int64_t bad = plumb__stored_decode(u, first, n, stored, tiles,
                                           r->wants_scales ? NULL : released,
                                           r->wants_scales ? released : NULL);
        if (bad >= 0)
            status = plumb__fail(err, PLUMB_ERROR_VALUE, shard->path, tensor->name,
                                 offset + bad * u->stored / (u->tiles ? u->columns : 1),
                                 "a value that is no code times its scale",
                                 "the exact value of a released weight");
    }
    free(tiles);
    if (status != PLUMB_OK) return status;
    int64_t from = first * r->wanted, end = from + n * r->wanted;
    int64_t low = from > r->begin ? from : r->begin;
    int64_t high = end < r->begin + r->size ? end : r->begin + r->size;
    memcpy(r->into + (low - r->begin), released + (low - from), (size_t)(high - low));
    return PLUMB_OK;
}

static plumb_status read_stored(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                                int64_t begin, int64_t size, void *into, plumb_error *err) {
    stored_range r = {.begin = begin, .size = size, .into = into,
                      .units = plumb__stored_units(tensor, tensor->stored),
                      .wants_scales = tensor->dtype == PLUMB_DTYPE_F8_E8M0};
    r.wanted = r.wants_scales ? r.units.scales : r.units.codes;
    int64_t largest = r.units.stored > r.wanted ? r.units.stored : r.wanted;
    int64_t most = largest < STORED_PIECE ? STORED_PIECE / largest : 1;
    int64_t first = begin / r.wanted, end = (begin + size + r.wanted - 1) / r.wanted;
    if (most > end - first) most = end - first;
    int64_t room = (most * r.units.stored + PLUMB_ALIGNMENT - 1) / PLUMB_ALIGNMENT * PLUMB_ALIGNMENT;
    uint8_t *memory = plumb__alloc_aligned(room + most * r.wanted, 1);
    plumb_status status = PLUMB_OK;
    if (!memory) status = plumb__fail_memory(err, tensor->name, (size_t)(room + most * r.wanted));
    for (; first < end && status == PLUMB_OK; first += most) {
        int64_t n = end - first < most ? end - first : most;
        status = read_units(checkpoint, tensor, &r, first, n, memory,
                            memory + room, err);
    }
    plumb__free_aligned(memory);
    return status;
}

plumb_status plumb__checkpoint_read(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                                    int64_t begin, int64_t size, void *into, plumb_error *err) {
    const plumb_shard_file *shard = &checkpoint->shards[tensor->shard];
    if (begin < 0 || size < 0 || begin > tensor->bytes || size > tensor->bytes - begin)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, shard->path, tensor->name, begin,
                           plumb__format("a read of %lld bytes", (long long)size).s,
                           "a range within %lld bytes", (long long)tensor->bytes);
    int64_t offset = tensor->offset;
    plumb_status status;
    if (tensor->stored == PLUMB_STORED_RELEASED) {
        offset += begin;
        status = plumb__file_read_at(shard->fd, shard->path, tensor->name, offset, size, into, err);
    } else {
        status = read_stored(checkpoint, tensor, begin, size, into, err);
    }
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
