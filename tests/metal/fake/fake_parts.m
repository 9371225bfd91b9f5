/* A part's copy is written back byte by byte where it changed: the host may be writing to other memory of
 * the same buffer meanwhile. */
#import "fake_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

/* Whether two arguments are bound to one buffer, and it matters. */
static bool conflict(const fake_dispatch *dispatch, const emulated_parameter *p,
                     const emulated_parameter *q) {
    const FakeBuffer *buffer = dispatch->binding[p->index].buffer;
    return q && q != p && buffer && buffer == dispatch->binding[q->index].buffer &&
           (p->writable || q->writable);
}

int fake_same_beginning(const fake_dispatch *dispatch, const emulated_parameter *p) {
    int64_t offset = dispatch->binding[p->index].offset;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *q = fake_parameter(dispatch->pipeline->kernel, false, i);
        if (conflict(dispatch, p, q) && dispatch->binding[i].offset == offset) return i;
    }
    return -1;
}

/* How far an argument may reach. */
static int64_t part_bytes(const fake_dispatch *dispatch, const emulated_parameter *p) {
    const fake_binding *binding = &dispatch->binding[p->index];
    int64_t bytes = fake_bound_bytes(binding);
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *q = fake_parameter(dispatch->pipeline->kernel, false, i);
        if (!conflict(dispatch, p, q)) continue;
        int64_t distance = dispatch->binding[i].offset - binding->offset;
        if (distance > 0 && distance < bytes) bytes = distance;
    }
    return bytes;
}

static struct fake_part copy_part(const uint8_t *from, int64_t bytes, int64_t alignment) {
    int64_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    struct fake_part part = {.bytes = bytes, .mapped = 2 * whole + PAGE};
    void *pages = mmap(NULL, (size_t)part.mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect((char *)pages + whole, PAGE, PROT_NONE)) abort();
    part.pages = pages;
    part.copy = part.pages + whole - (bytes + alignment - 1) / alignment * alignment;
    part.before = part.pages + whole + PAGE;
    memcpy(part.before, from, (size_t)bytes);
    memcpy(part.copy, part.before, (size_t)bytes);
    return part;
}

void fake_separate_parts(const fake_dispatch *dispatch, fake_parts *parts, emulated_dispatch *to) {
    *parts = (fake_parts){0};
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *p = fake_parameter(to->kernel, false, i);
        if (!p) continue;
        int64_t bytes = part_bytes(dispatch, p);
        if (bytes == fake_bound_bytes(&dispatch->binding[i])) continue;
        parts->part[i] = copy_part(fake_bound_start(&dispatch->binding[i]), bytes, p->alignment);
        to->buffer[i] = parts->part[i].copy;
        to->buffer_bytes[i] = bytes;
    }
}

void fake_join_parts(const fake_dispatch *dispatch, fake_parts *parts) {
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        struct fake_part *part = &parts->part[i];
        if (!part->pages) continue;
        uint8_t *memory = dispatch->binding[i].buffer->start + dispatch->binding[i].offset;
        for (int64_t at = 0; at < part->bytes; at++) {
            if (part->copy[at] != part->before[at]) memory[at] = part->copy[at];
        }
        munmap(part->pages, (size_t)part->mapped);
    }
}
