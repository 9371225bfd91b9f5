#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

void *plumb__alloc_aligned(int64_t count, size_t size) {
    if (count < 0 || size == 0 || (uint64_t)count > (SIZE_MAX - HUGE_PAGE) / size) return NULL;
    size_t bytes = (size_t)count * size;
    bytes = (bytes + (bytes == 0) + PLUMB_ALIGNMENT - 1) / PLUMB_ALIGNMENT * PLUMB_ALIGNMENT;
    void *memory;
    if (posix_memalign(&memory, bytes < HUGE_PAGE ? PLUMB_ALIGNMENT : HUGE_PAGE, bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    /* Streams of weights cross a small page every few hundred nanoseconds.  Whole huge pages only: the
     * rest of the last one would be paid for and not used. */
    if (bytes >= HUGE_PAGE) (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    memset(memory, 0, bytes);
    return memory;
}

void plumb__free_aligned(void *memory) { free(memory); }

bool plumb__reserve_aligned(uint8_t **memory, int64_t *room, int64_t bytes) {
    if (bytes <= *room) return true;
    plumb__free_aligned(*memory);
    *memory = plumb__alloc_aligned(bytes, 1);
    *room = *memory ? bytes : 0;
    return *memory != NULL;
}

void *plumb__grow(void *items, int64_t *capacity, int64_t needed, size_t size) {
    if (needed <= *capacity) return items;
    int64_t next = *capacity < 8 ? 8 : *capacity;
    while (next < needed) {
        if (next > INT64_MAX / 2) return NULL;
        next *= 2;
    }
    if ((uint64_t)next > SIZE_MAX / size) return NULL;
    void *grown = realloc(items, (size_t)next * size);
    if (grown) *capacity = next;
    return grown;
}
