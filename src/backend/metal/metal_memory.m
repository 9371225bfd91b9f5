/* Memory that the processor and the GPU share.
 *
 * Every allocation is a buffer of its own, and callers see the address of its contents: what a reader
 * puts there is what kernels read.  A table sorted by address turns any pointer into an allocation back
 * into a buffer and an offset.  All buffers are in the residency set of the queue, since kernels reach
 * experts by addresses that no encoder is told of.
 *
 * The GPU may still read what the caller releases: such buffers become garbage that is freed when the
 * command buffers issued before have been done. */
#import "backend/metal/metal_host.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- The table -------------------------------------------------------------------------------- */

/* The number of blocks that start at or before `memory`. */
static int64_t blocks_up_to(const plumb_metal_backend *m, const void *memory) {
    int64_t begin = 0, end = m->n_blocks;
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if ((uintptr_t)m->block[middle].start <= (uintptr_t)memory) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

static plumb_metal_place place_of(const plumb_metal_backend *m, const void *memory) {
    int64_t i = blocks_up_to(m, memory) - 1;
    if (i < 0) return (plumb_metal_place){0};
    const plumb_metal_block *block = &m->block[i];
    int64_t offset = (int64_t)((uintptr_t)memory - (uintptr_t)block->start);
    if (offset >= block->bytes) return (plumb_metal_place){0};
    return (plumb_metal_place){block->buffer, block->skipped + (NSUInteger)offset};
}

/* The table owns the buffer from here on, unless it has no room. */
static bool insert_block(plumb_metal_backend *m, plumb_metal_block block) {
    plumb_metal_block *blocks =
        plumb__grow(m->block, &m->block_room, m->n_blocks + 1, sizeof *blocks);
    if (!blocks) return false;
    m->block = blocks;
    int64_t at = blocks_up_to(m, block.start);
    memmove(blocks + at + 1, blocks + at, (size_t)(m->n_blocks - at) * sizeof *blocks);
    blocks[at] = block;
    m->n_blocks++;
    [m->residency addAllocation:block.buffer];
    m->residency_changed = true;
    return true;
}

/* Takes the block that starts at `memory` out of the table; nil when there is none. */
static id<MTLBuffer> remove_block(plumb_metal_backend *m, const void *memory) {
    int64_t i = blocks_up_to(m, memory) - 1;
    if (i < 0 || m->block[i].start != memory) return nil;
    id<MTLBuffer> buffer = m->block[i].buffer;
    m->n_blocks--;
    memmove(m->block + i, m->block + i + 1, (size_t)(m->n_blocks - i) * sizeof *m->block);
    return buffer;
}

void plumb__metal_find(plumb_metal_backend *m, const void *const *memory, int n,
                       plumb_metal_place *place) {
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < n; i++) place[i] = place_of(m, memory[i]);
    pthread_mutex_unlock(&m->lock);
}

uint64_t plumb__metal_address(plumb_backend *b, const void *memory) {
    plumb_metal_place place;
    plumb__metal_find(plumb__metal(b), &memory, 1, &place);
    @autoreleasepool {
        return place.buffer ? (uint64_t)[place.buffer gpuAddress] + place.offset : 0;
    }
}

/* ---- Residency and garbage -------------------------------------------------------------------- */

void plumb__metal_make_resident(plumb_metal_backend *m) {
    if (!m->residency_changed) return;
    [m->residency commit];
    [m->residency requestResidency];
    m->is_resident = true;
    m->residency_changed = false;
}

void plumb__metal_free_garbage(plumb_metal_backend *m) {
    int64_t n = 0;
    for (; n < m->n_garbage && m->garbage[n].after <= m->done; n++)
        [m->residency removeAllocation:m->garbage[n].buffer];
    if (n == 0) return;
    [m->residency commit]; /* until then the set keeps them */
    for (int64_t i = 0; i < n; i++) [m->garbage[i].buffer release];
    m->n_garbage -= n;
    memmove(m->garbage, m->garbage + n, (size_t)m->n_garbage * sizeof *m->garbage);
}

/* Room for all blocks to become garbage is kept at hand, so that releasing cannot fail. */
static bool reserve_garbage(plumb_metal_backend *m) {
    plumb_metal_garbage *garbage = plumb__grow(m->garbage, &m->garbage_room,
                                               m->n_garbage + m->n_blocks + 1, sizeof *garbage);
    if (garbage) m->garbage = garbage;
    return garbage != NULL;
}

/* ---- Allocating ------------------------------------------------------------------------------- */

/* Files are read past the page cache into whole pages of the largest size there is.  What is at least one
 * page begins on one, which Metal does not promise. */
enum { PAGE = 16384 };

static plumb_metal_block make_block(plumb_metal_backend *m, int64_t bytes) {
    plumb_metal_block block = {.bytes = bytes > 0 ? bytes : 1};
    NSUInteger length = (NSUInteger)block.bytes;
    if (bytes >= PAGE) length += PAGE;
    if (length <= [m->device maxBufferLength])
        block.buffer = [m->device newBufferWithLength:length options:MTLResourceStorageModeShared];
    if (!block.buffer) return block;
    char *contents = [block.buffer contents]; /* zeroed by newBufferWithLength */
    if (bytes >= PAGE) block.skipped = (PAGE - (uintptr_t)contents % PAGE) % PAGE;
    block.start = contents + block.skipped;
    return block;
}

void *plumb__metal_allocate(plumb_backend *b, int64_t bytes) {
    plumb_metal_backend *m = plumb__metal(b);
    if (bytes < 0) return NULL;
    void *memory = NULL;
    @autoreleasepool {
        pthread_mutex_lock(&m->lock);
        plumb__metal_collect(m); /* what waits to be freed may be needed */
        pthread_mutex_unlock(&m->lock);
        plumb_metal_block block = make_block(m, bytes);
        pthread_mutex_lock(&m->lock);
        if (block.buffer && reserve_garbage(m) && insert_block(m, block)) memory = block.start;
        pthread_mutex_unlock(&m->lock);
        if (!memory) [block.buffer release];
    }
    return memory;
}

void plumb__metal_release(plumb_backend *b, void *memory) {
    plumb_metal_backend *m = plumb__metal(b);
    if (!memory) return;
    @autoreleasepool {
        pthread_mutex_lock(&m->lock);
        id<MTLBuffer> buffer = remove_block(m, memory);
        if (buffer) m->garbage[m->n_garbage++] = (plumb_metal_garbage){buffer, m->issued};
        plumb__metal_collect(m);
        pthread_mutex_unlock(&m->lock);
        if (!buffer) plumb__metal_fail(m, PLUMB_ERROR_ARGUMENT);
    }
}

void *plumb__metal_work_memory(plumb_metal_backend *m, plumb_metal_work which, int64_t bytes) {
    if (bytes <= m->work[which].bytes) return m->work[which].memory;
    /* Old and new together would be more than working_bytes promises. */
    plumb__metal_finish(m);
    plumb__metal_release(&m->base, m->work[which].memory);
    m->work[which].memory = plumb__metal_allocate(&m->base, bytes);
    m->work[which].bytes = m->work[which].memory ? bytes : 0;
    if (!m->work[which].memory) plumb__metal_fail(m, PLUMB_ERROR_MEMORY);
    return m->work[which].memory;
}

void plumb__metal_free_all(plumb_metal_backend *m) {
    if (m->is_resident) [m->residency endResidency];
    for (int64_t i = 0; i < m->n_garbage; i++) m->garbage[i].after = m->done;
    plumb__metal_free_garbage(m);
    for (int64_t i = 0; i < m->n_blocks; i++) [m->residency removeAllocation:m->block[i].buffer];
    [m->residency commit];
    for (int64_t i = 0; i < m->n_blocks; i++) [m->block[i].buffer release];
    free(m->garbage);
    free(m->block);
}
