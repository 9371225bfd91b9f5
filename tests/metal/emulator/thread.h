/* What a kernel's thread and the scheduler know of each other.
 *
 * The shim of metal_stdlib calls `meet_*`, the generated launchers turn a launch into the arguments
 * of a kernel.  A kernel's text is compiled behind this header, so it must not bring in functions
 * of the C library: a kernel that calls exp() is to be an error. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_THREAD_H
#define PLUMB_TESTS_METAL_EMULATOR_THREAD_H

#include "emulator.h"

#include <stddef.h>
#include <type_traits>

namespace emulated {

constexpr uint32_t SIMD_WIDTH = 32;

struct triple {
    uint32_t x, y, z;
};

/* What all threads of a threadgroup share. */
struct launch {
    void *const *buffer;
    void *threadgroup_memory[EMULATED_ARGUMENTS];
    triple group, groups, threads;
    mutable const void *frame; /* of the launcher of the thread that runs */
};

struct place {
    triple in_group;
    uint32_t index; /* in_group, linear */
};

enum class operation {
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
    broadcast,
    vote,
    reduce,
    barrier
};

/* A value as it is handed to other lanes: up to 16 bytes. */
struct lane_value {
    uint64_t word[2];
};

/* What the lanes of a simdgroup brought to an operation; valid until the thread's next operation.
 */
struct lanes {
    const lane_value *value;
    uint32_t self, width;
};

/* A compiler must neither merge such calls nor move them into branches: where a call is tells which
 * operation it is. */
#define EMULATED_MEETING __attribute__((convergent, nomerge))
/* Waits for all threads of the simdgroup.  `argument`, a barrier's flags, must be the same for all. */
EMULATED_MEETING lanes meet_simdgroup(operation what, uint32_t argument, lane_value value,
                                      int line);
/* Waits for all threads of the threadgroup. */
EMULATED_MEETING void meet_threadgroup(uint32_t flags, int line);
/* Ends the run: a lane that is none. */
[[noreturn]] void fault_lane(operation what, uint32_t lane, int line);
/* Whether a compare_exchange_weak fails for no reason this time. */
bool fails_spuriously();

/* What a thread does with memory; an update is an atomic read and write in one. */
enum class access { read, write, update };
/* An atomic access of a watched kernel (races.h). */
void note_atomic(access what, const volatile void *address);

/* ---- launchers: the type of a kernel's argument number N
 * ------------------------------------------- */

template <typename F> struct arguments_of;
template <typename... A> struct arguments_of<void(A...)> {
    template <int N, typename First, typename... Rest> struct nth : nth<N - 1, Rest...> {};
    template <typename First, typename... Rest> struct nth<0, First, Rest...> {
        using type = First;
    };
    template <int N> using at = typename nth<N, A...>::type;
};

template <typename T> struct pointee {
    static_assert(std::is_pointer_v<T>, "a buffer is a pointer or a reference");
    using type = std::remove_pointer_t<T>;
};
template <typename T> struct pointee<T &> { using type = T; };

template <typename T>
constexpr emulated_parameter parameter(const char *name, emulated_space space, int index) {
    using element = typename pointee<T>::type;
    if constexpr (std::is_void_v<element>)
        return {name, space, index, !std::is_const_v<element>, 1, 1};
    else
        return {name, space, index, !std::is_const_v<element>, sizeof(element), alignof(element)};
}

template <typename T> T memory(void *at) {
    if constexpr (std::is_reference_v<T>)
        return *static_cast<std::remove_reference_t<T> *>(at);
    else
        return static_cast<T>(at);
}

template <typename T> T builtin(triple t) {
    if constexpr (std::is_arithmetic_v<T>)
        return static_cast<T>(t.x);
    else if constexpr (sizeof(T) / sizeof(T{}[0]) == 2)
        return T{t.x, t.y};
    else
        return T{t.x, t.y, t.z};
}
template <typename T> T builtin(uint32_t n) {
    return static_cast<T>(n);
}

inline uint32_t count(triple t) {
    return t.x * t.y * t.z;
}
inline triple product(triple a, triple b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z};
}

/* The inputs that MSL's attributes name. */
inline triple thread_position_in_grid(const launch &l, const place &p) {
    const triple t = product(l.group, l.threads);
    return {t.x + p.in_group.x, t.y + p.in_group.y, t.z + p.in_group.z};
}
inline triple thread_position_in_threadgroup(const launch &, const place &p) {
    return p.in_group;
}
inline uint32_t thread_index_in_threadgroup(const launch &, const place &p) {
    return p.index;
}
inline triple threadgroup_position_in_grid(const launch &l, const place &) {
    return l.group;
}
inline triple threads_per_threadgroup(const launch &l, const place &) {
    return l.threads;
}
inline triple threadgroups_per_grid(const launch &l, const place &) {
    return l.groups;
}
inline triple threads_per_grid(const launch &l, const place &) {
    return product(l.groups, l.threads);
}
inline uint32_t thread_index_in_simdgroup(const launch &, const place &p) {
    return p.index % SIMD_WIDTH;
}
inline uint32_t simdgroup_index_in_threadgroup(const launch &, const place &p) {
    return p.index / SIMD_WIDTH;
}
inline uint32_t threads_per_simdgroup(const launch &, const place &) {
    return SIMD_WIDTH;
}
inline uint32_t simdgroups_per_threadgroup(const launch &l, const place &) {
    return (count(l.threads) + SIMD_WIDTH - 1) / SIMD_WIDTH;
}

} // namespace emulated

#endif
