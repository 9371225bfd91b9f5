/* Stacks of fibers. */
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace emulated {

namespace {
constexpr size_t STACK_BYTES = 128 * 1024;

size_t page_bytes() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}
} // namespace

fiber::fiber(uint32_t number) {
    const size_t page = page_bytes();
    void *at = mmap(nullptr, page + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    mapping = static_cast<uint8_t *>(at);
    if (mprotect(mapping + page, STACK_BYTES, PROT_READ | PROT_WRITE)) throw std::bad_alloc();
    /* Stacks whose tops lie at the same place of their pages would share one set of a cache. */
    top = mapping + page + STACK_BYTES - number % 61 * 64;
}

fiber::~fiber() {
    munmap(mapping, page_bytes() + STACK_BYTES);
}

bool fiber::has_guard_at(uintptr_t address) const {
    return address - reinterpret_cast<uintptr_t>(mapping) < page_bytes();
}

context fiber::beginning(void (*entry)()) const {
    void **stack = reinterpret_cast<void **>(top);
#if defined(__x86_64__)
    *--stack = nullptr; /* as if it had been called */
#endif
    return {stack, reinterpret_cast<void *>(entry), nullptr};
}

} // namespace emulated
