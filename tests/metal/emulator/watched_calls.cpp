/* What the compiler puts before every access of a watched kernel: the calls of ThreadSanitizer. */
#include "scheduler.h"

#define WATCHED(name, what, bytes)                                                                 \
    extern "C" void __tsan_##name(const void *address);                                            \
    extern "C" void __tsan_##name(const void *address) {                                           \
        emulated::current->check_order(emulated::access::what, reinterpret_cast<uintptr_t>(address), \
                                       bytes, false,                                               \
                                       reinterpret_cast<uintptr_t>(__builtin_return_address(0)));  \
    }
#define WATCHED_SIZE(bytes)                                                                        \
    WATCHED(read##bytes, read, bytes)                                                              \
    WATCHED(write##bytes, write, bytes)                                                            \
    WATCHED(unaligned_read##bytes, read, bytes)                                                    \
    WATCHED(unaligned_write##bytes, write, bytes)
WATCHED_SIZE(1)
WATCHED_SIZE(2)
WATCHED_SIZE(4)
WATCHED_SIZE(8)
WATCHED_SIZE(16)

extern "C" void __tsan_init();
extern "C" void __tsan_init() {}
