/* Buffers begin at a page or end at one, whichever the seed says: the first is what Metal does, the
 * second lets the first byte past the end fault. Kernels may load 16 bytes at a time, so a buffer
 * that ends at a page may end up to 15 bytes earlier; these bytes, and the rest of the last page of
 * one that begins at a page, carry a pattern that is looked at. The memory of a deallocated buffer
 * stays out of reach until many others have died, so that late accesses fault. */
#include "fake_buffer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 16384, ALIGNMENT = 16, GRAVES = 1024, MARGIN = 0xA7 };

/* Live buffers by address, and the memory of the newest dead ones; under the lock. */
static struct {
    FakeBuffer **live;
    int64_t count, capacity;
    struct {
        void *mapping;
        size_t bytes;
    } grave[GRAVES];
    unsigned next_grave;
} registry;

/* The number of live buffers that start at or before the address. */
static int64_t place_of(uint64_t address) {
    int64_t low = 0, high = registry.count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if ((uint64_t)(uintptr_t)registry.live[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

FakeBuffer *fake_buffer_at(uint64_t address) {
    int64_t place = place_of(address);
    if (place == 0) return nil;
    FakeBuffer *buffer = registry.live[place - 1];
    return address - (uint64_t)(uintptr_t)buffer->start < (uint64_t)buffer->bytes ? buffer : nil;
}

void fake_each_buffer(void (*visit)(FakeBuffer *buffer, id context), id context) {
    for (int64_t i = 0; i < registry.count; i++) visit(registry.live[i], context);
}

static bool enter(FakeBuffer *buffer) {
    if (registry.count == registry.capacity) {
        int64_t capacity = registry.capacity * 2 + 64;
        FakeBuffer **live = realloc(registry.live, (size_t)capacity * sizeof(FakeBuffer *));
        if (!live) return false;
        registry.live = live;
        registry.capacity = capacity;
    }
    int64_t place = place_of((uint64_t)(uintptr_t)buffer->start);
    memmove(registry.live + place + 1, registry.live + place,
            (size_t)(registry.count - place) * sizeof(FakeBuffer *));
    registry.live[place] = buffer;
    registry.count++;
    return true;
}

static void leave(FakeBuffer *buffer) {
    int64_t place = place_of((uint64_t)(uintptr_t)buffer->start) - 1;
    registry.count--;
    memmove(registry.live + place, registry.live + place + 1,
            (size_t)(registry.count - place) * sizeof(FakeBuffer *));
}

/* Takes the pages away but keeps the addresses. */
static void bury(void *mapping, size_t bytes) {
    mmap(mapping, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    unsigned place = registry.next_grave++ % GRAVES;
    if (registry.grave[place].mapping)
        munmap(registry.grave[place].mapping, registry.grave[place].bytes);
    registry.grave[place].mapping = mapping;
    registry.grave[place].bytes = bytes;
}

@implementation FakeBuffer

/* Reserves addresses and chooses where the buffer lies. */
- (bool)mapBytes:(int64_t)size atEnd:(bool)at_end {
    pages_bytes = (size + PAGE - 1) / PAGE * PAGE;
    mapping_bytes = pages_bytes + 3 * PAGE; /* the system's pages may be smaller than these */
    void *address = mmap(NULL, (size_t)mapping_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return false;
    mapping = address;
    pages = mapping + 2 * PAGE - (uintptr_t)mapping % PAGE;
    start = pages;
    if (at_end) start += (pages_bytes - size) / ALIGNMENT * ALIGNMENT;
    bytes = size;
    return !mprotect(pages, (size_t)pages_bytes, PROT_READ | PROT_WRITE);
}

- (instancetype)initWithBytes:(int64_t)size {
    self = [super init];
    if (!self) return nil;
    bool at_end = fake_random() & 1;
    fake_state *state = fake_lock();
    uint64_t limit = state->options.memory_bytes;
    bool fits = !limit || (uint64_t)(state->counters.live_bytes + size) <= limit;
    bool made = fits && [self mapBytes:size atEnd:at_end] && enter(self);
    if (made) {
        state->counters.live_buffers++;
        state->counters.live_bytes += bytes;
    } else if (mapping) {
        munmap(mapping, (size_t)mapping_bytes);
        mapping = NULL;
    }
    fake_unlock();
    if (!made) {
        [self release];
        return nil;
    }
    memset(pages, MARGIN, (size_t)(start - pages));
    memset(start + bytes, MARGIN, (size_t)(pages + pages_bytes - start - bytes));
    return self;
}

- (void)checkMargins:(const char *)by {
    const uint8_t *end = pages + pages_bytes;
    bool before = false, past = false;
    for (const uint8_t *p = pages; p < start; p++) before |= *p != MARGIN;
    for (const uint8_t *p = start + bytes; p < end; p++) past |= *p != MARGIN;
    if (before)
        fake_object_to("%s: written before the start of a buffer of %lld bytes", by,
                       (long long)bytes);
    if (past)
        fake_object_to("%s: written past the end of a buffer of %lld bytes", by, (long long)bytes);
    if (before) memset(pages, MARGIN, (size_t)(start - pages));
    if (past) memset(start + bytes, MARGIN, (size_t)(end - start - bytes));
}

- (void)dealloc {
    if (mapping) {
        [self checkMargins:"before a buffer was deallocated"];
        fake_state *state = fake_lock();
        bool held = false;
        for (int i = 0; i < FAKE_SETS; i++) held |= sets[i].set != nil;
        bool in_use = reached > 0;
        leave(self);
        state->counters.live_buffers--;
        state->counters.live_bytes -= bytes;
        bury(mapping, (size_t)mapping_bytes);
        fake_unlock();
        if (held)
            fake_object_to("a buffer of %lld bytes is deallocated while a residency set has it",
                           (long long)bytes);
        if (in_use) {
            fake_object_to("a buffer of %lld bytes is deallocated while a command buffer that has "
                           "its address runs",
                           (long long)bytes);
        }
    }
    [super dealloc];
}

- (void *)contents {
    return start;
}

- (NSUInteger)length {
    return (NSUInteger)bytes;
}

- (NSUInteger)allocatedSize {
    return (NSUInteger)pages_bytes;
}

- (MTLGPUAddress)gpuAddress {
    fake_leave_behind();
    return (MTLGPUAddress)(uintptr_t)start;
}

@end
