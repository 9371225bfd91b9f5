#include "base/pages.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

/* In whole pages, as the system counts them. */
static int64_t whole_pages(int64_t bytes) {
    int64_t page = sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void unmap(char *from, char *to) {
    if (from < to) (void)munmap(from, (size_t)(to - from));
}

/* A huge page more than asked for, less what lies outside the aligned part. */
void *plumb__pages_map(int64_t bytes) {
    if (bytes <= 0 || bytes > INT64_MAX / 2) return NULL;
    bytes = whole_pages(bytes);
    int64_t more = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *mapped = mmap(NULL, (size_t)(bytes + more), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return NULL;
    if (more == 0) return mapped;
    char *aligned = mapped + (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    unmap(mapped, aligned);
    unmap(aligned + bytes, mapped + bytes + more);
#ifdef MADV_HUGEPAGE
    (void)madvise(aligned, (size_t)bytes, MADV_HUGEPAGE);
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
    if (memory) (void)munmap(memory, (size_t)whole_pages(bytes));
}
