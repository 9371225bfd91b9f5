#include "base/pages.h"

#include <stddef.h>
#include <sys/mman.h>

enum {
    HUGE_PAGE = 2 << 20,
    PAGE = 16384 /* or a divisor of it, everywhere we run */
};

static void unmap(char *from, char *to) {
    if (from < to) (void)munmap(from, (size_t)(to - from));
}

/* A huge page more than asked for, less what lies outside the aligned part. */
void *plumb__pages_map(int64_t bytes) {
    if (bytes <= 0 || bytes > INT64_MAX - HUGE_PAGE) return NULL;
    int64_t more = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *mapped = mmap(NULL, (size_t)(bytes + more), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    if (more == 0) return mapped;
    char *aligned = mapped + (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    int64_t end = (bytes + PAGE - 1) / PAGE * PAGE;
    unmap(mapped, aligned);
    unmap(aligned + end, mapped + bytes + more);
#ifdef MADV_HUGEPAGE
    (void)madvise(aligned, (size_t)end, MADV_HUGEPAGE);
#endif
    return aligned;
}

void plumb__pages_touch(void *memory, int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
    if (madvise(memory, (size_t)bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
    for (int64_t at = 0; at < bytes; at += 4096) ((volatile char *)memory)[at] = 0;
}

void plumb__pages_unmap(void *memory, int64_t bytes) {
    if (memory) (void)munmap(memory, (size_t)bytes);
}
