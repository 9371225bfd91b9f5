/* Threadgroup memory: each argument in a mapping of its own, between pages that may not be touched.
 *
 * An argument lies at one end of its mapping or at the other, so that one step outside meets a page
 * at that end; what is left of the mapping holds the pattern of memory that nobody wrote, and is
 * looked at when the group has run.  The pattern is a NaN as a float, an index far outside as an
 * integer. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_THREADGROUP_MEMORY_H
#define PLUMB_TESTS_METAL_EMULATOR_THREADGROUP_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace emulated {

class threadgroup_memory {
  public:
    threadgroup_memory() = default;
    ~threadgroup_memory();
    threadgroup_memory(const threadgroup_memory &) = delete;
    threadgroup_memory &operator=(const threadgroup_memory &) = delete;

    /* Memory for one group, at most EMULATED_MAX_THREADGROUP_BYTES. */
    void *lend(size_t bytes, bool at_end);
    /* Bytes from the start to the first that was written outside, 0: none was. */
    ptrdiff_t written_outside() const;
    /* Whether an address lies in the mapping or in the pages around it. */
    bool has(uintptr_t address) const;
    uint8_t *start() const { return memory; }
    size_t bytes() const { return used; }

  private:
    uint8_t *mapping = nullptr, *memory = nullptr;
    size_t used = 0;
};

} // namespace emulated

#endif
