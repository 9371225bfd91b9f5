/* Threadgroup memory between guard pages. */
#include "threadgroup_memory.h"

#include "emulator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace emulated {

namespace {
/* A NaN with a clear quiet bit; every byte differs from its neighbours, so a shift shows. */
constexpr uint32_t UNWRITTEN = 0x7FA1B2C3u;
constexpr size_t CAPACITY = EMULATED_MAX_THREADGROUP_BYTES;
constexpr size_t LOOKED_AT = 1024; /* bytes outside, next to the argument */

size_t page_bytes() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void fill(uint8_t *from, uint8_t *to) {
    for (uint8_t *p = from; p < to; p += sizeof UNWRITTEN)
        __builtin_memcpy(p, &UNWRITTEN, sizeof UNWRITTEN);
}
} // namespace

threadgroup_memory::~threadgroup_memory() {
    if (mapping) munmap(mapping, CAPACITY + 2 * page_bytes());
}

void *threadgroup_memory::lend(size_t bytes, bool at_end) {
    const size_t page = page_bytes();
    if (!mapping) {
        void *at =
            mmap(nullptr, CAPACITY + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        mapping = static_cast<uint8_t *>(at);
        mprotect(mapping + page, CAPACITY, PROT_READ | PROT_WRITE);
    }
    uint8_t *begin = mapping + page, *end = begin + CAPACITY;
    memory = at_end ? end - bytes : begin;
    used = bytes;
    fill(std::max(begin, memory - LOOKED_AT), std::min(end, memory + bytes + LOOKED_AT));
    return memory;
}

ptrdiff_t threadgroup_memory::written_outside() const {
    uint8_t *begin = mapping + page_bytes(), *end = begin + CAPACITY;
    uint8_t *behind = memory + used;
    const auto is_written = [](const uint8_t *word) {
        return __builtin_memcmp(word, &UNWRITTEN, sizeof UNWRITTEN) != 0;
    };
    for (uint8_t *p = behind; p < std::min(end, behind + LOOKED_AT); p += sizeof UNWRITTEN)
        if (is_written(p)) return p - memory;
    for (uint8_t *p = std::max(begin, memory - LOOKED_AT); p < memory; p += sizeof UNWRITTEN)
        if (is_written(p)) return p - memory;
    return 0;
}

bool threadgroup_memory::has(uintptr_t address) const {
    return mapping && address - reinterpret_cast<uintptr_t>(mapping) < CAPACITY + 2 * page_bytes();
}

} // namespace emulated
