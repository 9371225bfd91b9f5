/* Accesses without an order. */
#include "scheduler.h"

namespace emulated {

namespace {
enum { DEVICE, THREADGROUP }; /* spaces; bits of mem_flags */
}

race_watch::race_watch() = default;

/* Memory that is bound twice is watched once. */
void race_watch::add_range(int space, int index, const void *begin, size_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(begin);
    std::vector<cell> &own = cells[space][index];
    for (range &r : ranges)
        if (at - r.begin < r.bytes && bytes <= r.bytes - (at - r.begin)) return;
    if (own.size() < bytes) own.resize(bytes);
    ranges.push_back({at, bytes, space, index, own.data()});
}

void race_watch::begin_grid(const emulated_dispatch &d) {
    ranges.clear();
    era[DEVICE] = ++eras;
    for (int i = 0; i < d.kernel->n_parameters; i++) {
        const emulated_parameter &p = d.kernel->parameter[i];
        if (p.space == EMULATED_DEVICE && p.writable)
            add_range(DEVICE, p.index, d.buffer[p.index], static_cast<size_t>(d.buffer_bytes[p.index]));
    }
    n_device_ranges = ranges.size();
}

void race_watch::begin_group(const emulated_dispatch &d, uint32_t number,
                             void *const *threadgroup_memory) {
    group = number;
    era[THREADGROUP] = ++eras;
    ranges.resize(n_device_ranges);
    for (int i = 0; i < EMULATED_ARGUMENTS; i++)
        if (d.threadgroup_bytes[i])
            add_range(THREADGROUP, i, threadgroup_memory[i], static_cast<size_t>(d.threadgroup_bytes[i]));
}

/* ---- time ----------------------------------------------------------------------------------- */

void race_watch::threadgroup_barrier(uint32_t flags) {
    for (int space = 0; space < SPACES; space++)
        if (flags >> space & 1) barriers[space]++;
}

void race_watch::simdgroup_barrier(uint32_t simdgroup, uint32_t flags) {
    for (int space = 0; space < SPACES; space++)
        if (flags >> space & 1) simd_barriers[space][simdgroup]++;
}

race_watch::moment race_watch::now(int space, uint32_t thread) const {
    const uint32_t simdgroup = thread / SIMD_WIDTH;
    return {era[space], group, thread, barriers[space], simd_barriers[space][simdgroup],
            operations[simdgroup]};
}

bool race_watch::is_ordered(const moment &before, const moment &at, bool operations_order) {
    if (before.group != at.group) return false;
    if (before.thread == at.thread || before.barriers != at.barriers) return true;
    if (before.thread / SIMD_WIDTH != at.thread / SIMD_WIDTH) return false;
    return before.simd_barriers != at.simd_barriers ||
           (operations_order && before.operations != at.operations);
}

bool race_watch::is_race_with(const users &u, const moment &at, bool operations_order) {
    if (u.last.era != at.era) return false;
    if (u.other_groups || !is_ordered(u.last, at, operations_order)) return true;
    if (u.last.barriers != at.barriers) return false;
    if (u.other_simdgroups) return true;
    return u.other_lanes && u.last.simd_barriers == at.simd_barriers &&
           (!operations_order || u.last.operations == at.operations);
}

void race_watch::note(users &u, const moment &at) {
    const bool is_first = u.last.era != at.era;
    const bool same_group = !is_first && u.last.group == at.group;
    const bool same_time = same_group && u.last.barriers == at.barriers;
    const bool same_simdgroup = u.last.thread / SIMD_WIDTH == at.thread / SIMD_WIDTH;
    const bool same_step = same_time && same_simdgroup && u.last.simd_barriers == at.simd_barriers &&
                           u.last.operations == at.operations;
    u.other_groups = !is_first && (u.other_groups || !same_group);
    u.other_simdgroups = same_time && (u.other_simdgroups || !same_simdgroup);
    u.other_lanes = same_step && (u.other_lanes || u.last.thread != at.thread);
    u.last = at;
}

/* ---- accesses ------------------------------------------------------------------------------- */

const race_watch::range *race_watch::range_of(uintptr_t address) const {
    for (const range &r : ranges)
        if (address - r.begin < r.bytes) return &r;
    return nullptr;
}

bool race_watch::is_race(access what, uintptr_t address, size_t bytes, uint32_t thread, race *found) {
    const range *r = range_of(address);
    if (!r) return false;
    const moment at = now(r->space, thread);
    const size_t first = address - r->begin;
    for (size_t i = first; i < first + bytes && i < r->bytes; i++) {
        users *of = r->cells[i].of;
        for (const access other : {access::read, access::write, access::update}) {
            if (what == other && what != access::write) continue;
            const users &u = of[static_cast<int>(other)];
            if (!is_race_with(u, at, other == access::read)) continue;
            *found = {r->space == DEVICE ? "buffer" : "threadgroup", r->index,
                      static_cast<ptrdiff_t>(i), other, u.last.thread, u.last.group};
            return true;
        }
        note(of[static_cast<int>(what)], at);
    }
    return false;
}

bool race_watch::is_atomic_race(access what, uintptr_t address, size_t bytes, uint32_t thread,
                                race *found) {
    const range *r = range_of(address);
    return r && r->space == THREADGROUP && is_race(what, address, bytes, thread, found);
}

void note_atomic(access what, const volatile void *address) {
    current->check_order(what, reinterpret_cast<uintptr_t>(address), 4, true,
                         reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

} // namespace emulated
