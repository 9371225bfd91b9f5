/* Stacks, and the change from one to another: the registers that a function must keep are pushed, the stack
 * pointer is exchanged, the others are popped. */
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#if defined(__x86_64__)
__asm__(R"(
    .text
    .globl emulated_switch
    .type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulated_switch, . - emulated_switch

    .type emulated_begin, @function
emulated_begin:
    movq %r12, %rdi
    callq *%r13
    ud2
    .size emulated_begin, . - emulated_begin
)");
#elif defined(__aarch64__)
__asm__(R"(
    .text
    .globl emulated_switch
    .type emulated_switch, %function
emulated_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size emulated_switch, . - emulated_switch

    .type emulated_begin, %function
emulated_begin:
    mov x0, x19
    blr x20
    brk #1
    .size emulated_begin, . - emulated_begin
)");
#else
#error "the change of stacks is written for x86-64 and aarch64"
#endif

extern "C" void emulated_begin();

namespace emulated {

namespace {
constexpr size_t STACK_BYTES = 128 * 1024;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
} // namespace

fiber::fiber(uint32_t number) : stack_pointer(nullptr), number(number) {
    const size_t page = page_bytes();
    void *at = mmap(nullptr, page + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    mapping = static_cast<uint8_t *>(at);
    mprotect(mapping + page, STACK_BYTES, PROT_READ | PROT_WRITE);
}

fiber::~fiber() { munmap(mapping, page_bytes() + STACK_BYTES); }

bool fiber::has_guard_at(uintptr_t address) const {
    return address - reinterpret_cast<uintptr_t>(mapping) < page_bytes();
}

void fiber::prepare(void (*entry)(void *), void *argument) {
    /* Stacks whose tops lie at the same place of their pages would share one set of a cache. */
    uint8_t *top = mapping + page_bytes() + STACK_BYTES - (number % 61) * 64;
#if defined(__x86_64__)
    auto *frame = reinterpret_cast<void **>(top) - 9; /* r15 r14 r13 r12 rbx rbp, address; aligned then */
    for (int i = 0; i < 9; i++) frame[i] = nullptr;
    frame[2] = reinterpret_cast<void *>(entry);
    frame[3] = argument;
    frame[6] = reinterpret_cast<void *>(emulated_begin);
#else
    auto *frame = reinterpret_cast<void **>(top) - 20; /* x19 to x30, d8 to d15 */
    for (int i = 0; i < 20; i++) frame[i] = nullptr;
    frame[0] = argument;
    frame[1] = reinterpret_cast<void *>(entry);
    frame[11] = reinterpret_cast<void *>(emulated_begin);
#endif
    stack_pointer = frame;
}

} // namespace emulated
