/* Finds accesses to memory that nothing puts in order: they go right under the schedules of the emulator,
 * where a simd operation or any barrier orders all memory, and wrong on a GPU.
 *
 * Kernels that are compiled for it (plumb_watched_kernels) tell every access.  Of every byte that a grid
 * may write it is known who read, wrote and updated it last, and when.  Accesses of two threads, at least
 * one of them a write, are in order
 * - after a threadgroup_barrier between them, if its flags name that memory;
 * - within a simdgroup, after such a simdgroup_barrier;
 * - a write behind a read within a simdgroup, after any simd operation: its outcome takes what was read;
 * and never between groups.  Atomic loads and stores of threadgroup memory count as plain ones, since a
 * result that depends on their order is wrong as well; atomic updates have any order among themselves.
 * Atomics of device memory, by which groups tell each other things, are not watched, nor are copies of
 * structs of more than 16 bytes. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_RACES_H
#define PLUMB_TESTS_METAL_EMULATOR_RACES_H

#include "thread.h"

#include <vector>

namespace emulated {

/* Accesses of two threads without an order. */
struct race {
    const char *memory; /* "buffer" or "threadgroup" */
    int index;
    ptrdiff_t byte;
    access other; /* what the other thread did there */
    uint32_t other_thread, other_group;
};

class race_watch {
  public:
    race_watch();
    /* Groups of a grid are begun in any order, one at a time. */
    void begin_grid(const emulated_dispatch &dispatch);
    void begin_group(const emulated_dispatch &dispatch, uint32_t group, void *const *threadgroup_memory);

    /* flags: mem_flags */
    void threadgroup_barrier(uint32_t flags);
    void simdgroup_barrier(uint32_t simdgroup, uint32_t flags);
    void simd_operation(uint32_t simdgroup) { operations[simdgroup]++; }

    /* By a thread of the group; true: `found` says with what it has no order. */
    bool is_race(access what, uintptr_t address, size_t bytes, uint32_t thread, race *found);
    /* The same for an atomic access. */
    bool is_atomic_race(access what, uintptr_t address, size_t bytes, uint32_t thread, race *found);

  private:
    static constexpr int SPACES = 2, SIMDGROUPS = EMULATED_MAX_THREADS / SIMD_WIDTH;

    struct moment {
        uint32_t era; /* number of the grid, or of the group whose memory it is */
        uint32_t group, thread, barriers, simd_barriers, operations;
    };
    /* Those who did the same: the last of them, and whether others have no order with it. */
    struct users {
        moment last;
        bool other_lanes, other_simdgroups, other_groups;
    };
    struct cell {
        users of[3]; /* by access */
    };
    struct range {
        uintptr_t begin;
        size_t bytes;
        int space, index;
        cell *cells;
    };

    void add_range(int space, int index, const void *begin, size_t bytes);
    const range *range_of(uintptr_t address) const;
    moment now(int space, uint32_t thread) const;
    static bool is_ordered(const moment &before, const moment &at, bool operations_order);
    static bool is_race_with(const users &u, const moment &at, bool operations_order);
    static void note(users &u, const moment &at);

    uint32_t eras = 0, group = 0;
    uint32_t era[SPACES] = {}, barriers[SPACES] = {};
    uint32_t simd_barriers[SPACES][SIMDGROUPS] = {};
    uint32_t operations[SIMDGROUPS] = {};
    std::vector<range> ranges; /* device memory first */
    size_t n_device_ranges = 0;
    std::vector<cell> cells[SPACES][EMULATED_ARGUMENTS];
};

} // namespace emulated

#endif
