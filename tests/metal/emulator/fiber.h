/* Stacks that a host thread can change between, without the operating system: what a thread of a kernel
 * lives on while it waits.
 *
 * A stack ends at a page that may not be touched.  Neither the signal mask nor the float modes change
 * with the stack: all fibers of a host thread compute under the same. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_FIBER_H
#define PLUMB_TESTS_METAL_EMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

namespace emulated {

/* Where something that does not run goes on. */
struct context {
    void *stack, *code, *frame;
};

/* Saves this place, goes on at the other, and returns when somebody goes on here.  All registers are
 * lost on the way, so the compiler saves those that it needs, and only those. */
__attribute__((always_inline)) static inline void change_context(context *save, const context *to) {
#if defined(__x86_64__)
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%0)\n\t"
                     "movq %%rax, 8(%0)\n\t"
                     "movq %%rbp, 16(%0)\n\t"
                     "movq 0(%1), %%rsp\n\t"
                     "movq 16(%1), %%rbp\n\t"
                     "jmpq *8(%1)\n"
                     "1:"
                     : "+D"(save), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
#elif defined(__aarch64__)
    register context *from __asm__("x0") = save;
    register const context *there __asm__("x1") = to;
    __asm__ volatile("adr x2, 1f\n\t"
                     "mov x3, sp\n\t"
                     "stp x3, x2, [x0]\n\t"
                     "str x29, [x0, #16]\n\t"
                     "ldp x3, x2, [x1]\n\t"
                     "ldr x29, [x1, #16]\n\t"
                     "mov sp, x3\n\t"
                     "br x2\n"
                     "1:"
                     : "+r"(from), "+r"(there)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
                       "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",
                       "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
                       "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",
                       "cc", "memory");
#else
#error "the change of stacks is written for x86-64 and aarch64"
#endif
}

class fiber {
  public:
    /* `number` only spreads stacks over the sets of a cache. */
    explicit fiber(uint32_t number);
    ~fiber();
    fiber(const fiber &) = delete;
    fiber &operator=(const fiber &) = delete;

    /* Calls entry, which must not return, on the empty stack. */
    context beginning(void (*entry)()) const;
    bool has_guard_at(uintptr_t address) const;

  private:
    uint8_t *mapping, *top;
};

} // namespace emulated

#endif
