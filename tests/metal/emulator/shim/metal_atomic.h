/* Atomic words of MSL (section 6.15 of its specification): 32 bits, relaxed, on device and
 * threadgroup memory.  A weak exchange fails now and then for no reason, as it may. */
#ifndef PLUMB_EMULATED_METAL_ATOMIC_H
#define PLUMB_EMULATED_METAL_ATOMIC_H

namespace metal {

enum memory_order { memory_order_relaxed };

template <typename T> struct atomic {
    static_assert(sizeof(T) == 4 && std::is_integral_v<T>, "atomic words are int and uint");
    T word; /* for the functions below only */
    atomic() = default;
    atomic(const atomic &) = delete;
    atomic &operator=(const atomic &) = delete;
};
#if __has_feature(thread_sanitizer) /* a watched kernel */
#define EMULATED_NOTE(what) emulated::note_atomic(emulated::access::what, &object->word)
#else
#define EMULATED_NOTE(what) static_cast<void>(0)
#endif

using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;

/* The value's type is the object's, as in MSL, whatever the argument is. */
template <typename T> using atomic_value = std::common_type_t<T>;

template <typename T> T atomic_load_explicit(const volatile atomic<T> *object, memory_order) {
    EMULATED_NOTE(read);
    return __atomic_load_n(&object->word, __ATOMIC_RELAXED);
}
template <typename T>
void atomic_store_explicit(volatile atomic<T> *object, atomic_value<T> value, memory_order) {
    EMULATED_NOTE(write);
    __atomic_store_n(&object->word, value, __ATOMIC_RELAXED);
}
template <typename T>
T atomic_exchange_explicit(volatile atomic<T> *object, atomic_value<T> value, memory_order) {
    EMULATED_NOTE(write);
    return __atomic_exchange_n(&object->word, value, __ATOMIC_RELAXED);
}
template <typename T>
bool atomic_compare_exchange_weak_explicit(volatile atomic<T> *object, T *expected,
                                           atomic_value<T> desired, memory_order, memory_order) {
    EMULATED_NOTE(update);
    if (emulated::fails_spuriously()) {
        *expected = __atomic_load_n(&object->word, __ATOMIC_RELAXED);
        return false;
    }
    return __atomic_compare_exchange_n(&object->word, expected, desired, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

#define EMULATED_FETCH(name)                                                                       \
    template <typename T>                                                                          \
    T atomic_fetch_##name##_explicit(volatile atomic<T> *object, atomic_value<T> value,            \
                                     memory_order) {                                               \
        EMULATED_NOTE(update);                                                                     \
        return __atomic_fetch_##name(&object->word, value, __ATOMIC_RELAXED);                      \
    }
EMULATED_FETCH(add)
EMULATED_FETCH(sub)
EMULATED_FETCH(and)
EMULATED_FETCH(or)
EMULATED_FETCH(xor)
EMULATED_FETCH(min)
EMULATED_FETCH(max)
#undef EMULATED_FETCH
#undef EMULATED_NOTE

} // namespace metal

#endif
