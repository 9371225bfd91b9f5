/* Stacks that a host thread can change between, without the operating system: what a suspended thread of a
 * kernel lives on.
 *
 * A stack ends at a page that may not be touched.  Neither the signal mask nor the float modes change
 * with the stack: all fibers of a host thread compute under the same. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_FIBER_H
#define PLUMB_TESTS_METAL_EMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

namespace emulated {

class fiber {
  public:
    /* `number` only spreads stacks over the sets of a cache. */
    explicit fiber(uint32_t number);
    ~fiber();
    fiber(const fiber &) = delete;
    fiber &operator=(const fiber &) = delete;

    /* The next switch to it begins entry(argument), which must not return; what was on the stack is
     * forgotten. */
    void prepare(void (*entry)(void *), void *argument);
    bool has_guard_at(uintptr_t address) const;

    void *stack_pointer; /* while it is not running */

  private:
    uint8_t *mapping;
    uint32_t number;
};

extern "C" {
/* Goes on where `to` was saved, and saves here.  Returns when somebody switches back. */
void emulated_switch(void **save, void *to);
}

} // namespace emulated

#endif
