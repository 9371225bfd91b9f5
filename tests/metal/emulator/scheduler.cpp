/* The threads of one threadgroup: drawing the next, meetings, and faults. */
#include "scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace emulated {

thread_local scheduler *current;

namespace {
constexpr uint32_t NONE = UINT32_MAX;
}
/* One frame a meeting: its lines of memory are what a change of stacks costs. */
#define INLINE __attribute__((always_inline)) inline

scheduler::scheduler() : running_group(false), threads() {}
scheduler::~scheduler() = default;

/* ---- a group from start to end -------------------------------------------------------------- */

void scheduler::begin(const emulated_dispatch &d, triple group, uint64_t seed) {
    dispatch = &d;
    random.reseed(seed);
    failed = false;
    shared.buffer = d.buffer;
    shared.group = group;
    shared.groups = {d.groups[0], d.groups[1], d.groups[2]};
    shared.threads = {d.threads[0], d.threads[1], d.threads[2]};
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const size_t bytes = static_cast<size_t>(d.threadgroup_bytes[i]);
        shared.threadgroup_memory[i] = bytes ? memory[i].lend(bytes, random.below(2) != 0) : nullptr;
    }
    n_threads = n_ready = count(shared.threads);
    n_returned = 0;
    drawn = NONE;
    draws = random.below(2) == 0 ? 1 : 4;
    speeds = random.below(EMULATED_MAX_THREADS / SIMD_WIDTH);
    for (uint32_t i = 0; i < n_threads; i++) ready[i] = static_cast<uint16_t>(i);
    n_at_barrier = 0;
    for (uint32_t i = 0; i < n_threads; i += SIMD_WIDTH) {
        simdgroup &s = simd[i / SIMD_WIDTH];
        s.members = n_threads - i < SIMD_WIDTH ? (1u << (n_threads - i)) - 1 : UINT32_MAX;
        s.arrived = s.at_barrier = s.returned = s.turn = 0;
    }
    if (d.kernel->is_watched)
        races.begin_group(d, (group.z * d.groups[1] + group.y) * d.groups[0] + group.x,
                          shared.threadgroup_memory);
}

bool scheduler::run(const emulated_dispatch &d, triple group, uint64_t seed, char *fault_text) {
    fault = fault_text;
    begin(d, group, seed);
    scheduler *outer = current;
    current = this;
    running_group = true;
    start(next(), &host);
    running_group = false;
    if (failed) { /* threads that waited are forgotten */
        idle.clear();
        for (auto &f : fibers) idle.push_back(f.get());
        for (suspended &t : threads) t.on = nullptr;
    }
    current = outer;
    return !failed && check_memory();
}

bool scheduler::check_memory() {
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const ptrdiff_t outside = shared.threadgroup_memory[i] ? memory[i].written_outside() : 0;
        if (outside == 0) continue;
        snprintf(
            fault, EMULATED_FAULT_BYTES,
            "kernel %s, group (%u, %u, %u): threadgroup(%d) of %zu bytes was written at byte %td",
            dispatch->kernel->name, shared.group.x, shared.group.y, shared.group.z, i,
            memory[i].bytes(), outside);
        return false;
    }
    return true;
}

/* ---- fibers --------------------------------------------------------------------------------- */

void scheduler::fiber_entry() {
    current->run_threads();
}

/* A fiber's life: one thread after another, until the next is one that has a fiber already. */
void scheduler::run_threads() {
    for (;;) {
        run_thread();
        context forgotten; /* a fiber that is used again begins again */
        if (n_returned == n_threads) {
            idle.push_back(running_on);
            change_context(&forgotten, &host);
        }
        running = next();
        suspended &t = threads[running];
        if (t.on) {
            idle.push_back(running_on);
            running_on = t.on;
            t.on = nullptr;
            change_context(&forgotten, &t.at);
        }
    }
}

void scheduler::run_thread() {
    place p;
    p.index = running;
    const triple t = shared.threads;
    if (t.x == n_threads)
        p.in_group = {running, 0, 0};
    else
        p.in_group = {running % t.x, running / t.x % t.y, running / t.x / t.y};
    dispatch->kernel->run(&shared, &p);
    simd[running / SIMD_WIDTH].returned |= 1u << running % SIMD_WIDTH;
    n_returned++;
}

/* Begins a thread on a fiber of its own; returns when somebody goes on where it saved. */
__attribute__((noinline)) void scheduler::start(uint32_t index, context *save) {
    if (idle.empty()) {
        fibers.push_back(std::make_unique<fiber>(static_cast<uint32_t>(fibers.size())));
        idle.push_back(fibers.back().get());
    }
    running = index;
    running_on = idle.back();
    idle.pop_back();
    const context beginning = running_on->beginning(fiber_entry);
    change_context(save, &beginning);
}

/* A place in `ready`.  Evenly drawn, simdgroups keep pace, and a barrier that only a simdgroup far ahead
 * of another would need is never missed: where several threads are drawn, the fastest of them goes on. */
INLINE uint32_t scheduler::drawn_place() {
    uint32_t best = random.below(n_ready);
    for (uint32_t i = 1; i < draws; i++) {
        const uint32_t other = random.below(n_ready);
        if (speed_of(ready[other]) > speed_of(ready[best])) best = other;
    }
    return best;
}

/* Draws the one after the next, whose stack is fetched meanwhile. */
INLINE void scheduler::draw() {
    if (n_ready == 0) {
        drawn = NONE;
        return;
    }
    drawn = drawn_place();
    const suspended &t = threads[ready[drawn]];
    if (!t.on) return;
    const char *stack = static_cast<const char *>(t.at.stack);
    for (int line = 0; line < 3; line++) __builtin_prefetch(stack + 64 * line, 1);
}

/* One of those that can run. */
INLINE uint32_t scheduler::next() {
    if (drawn == NONE) {
        if (n_ready == 0) fail_stuck();
        drawn = drawn_place();
    }
    const uint32_t index = ready[drawn];
    ready[drawn] = ready[--n_ready];
    draw();
    return index;
}

/* Lets others run until this thread is drawn again. */
INLINE void scheduler::wait() {
    const uint32_t self = running, index = next();
    if (index == self) return;
    suspended &mine = threads[self], &other = threads[index];
    const void *const frame = shared.frame;
    mine.on = running_on;
    if (other.on) {
        running = index;
        running_on = other.on;
        other.on = nullptr;
        change_context(&mine.at, &other.at);
    } else {
        start(index, &mine.at);
    }
    shared.frame = frame;
}

/* ---- meetings ------------------------------------------------------------------------------- */

static const char *name_of(operation what) {
    switch (what) {
    case operation::shuffle: return "simd_shuffle";
    case operation::shuffle_down: return "simd_shuffle_down";
    case operation::shuffle_up: return "simd_shuffle_up";
    case operation::shuffle_xor: return "simd_shuffle_xor";
    case operation::broadcast: return "simd_broadcast";
    case operation::vote: return "simd_ballot, simd_any or simd_all";
    case operation::reduce: return "simd_max or simd_min";
    default: return "simdgroup_barrier";
    }
}

/* Where a call stands: the return addresses from there to the thread's start.  A function that is
 * called at two places is two places. */
static inline uint64_t call_site(const void *from, const void *to) {
    struct link {
        const link *up;
        uintptr_t return_address;
    };
    uint64_t site = 0;
    for (const link *l = static_cast<const link *>(from); l != to; l = l->up)
        site = site * 31 + l->return_address;
    return site;
}

/* All must come to the same call, with the same argument. */
INLINE void scheduler::check(meeting &m, bool is_first, operation what, uint32_t argument, int line,
                             const void *frame) {
    const uint64_t site = call_site(frame, shared.frame);
    if (is_first)
        m = {what, line, running, argument, site};
    else if (m.site != site || m.argument != argument)
        fail_meeting(m, what, argument, line);
}

INLINE lanes scheduler::meet_simdgroup(operation what, uint32_t argument, lane_value value,
                                       int line, const void *frame) {
    const uint32_t lane = running % SIMD_WIDTH, first = running - lane;
    simdgroup &s = simd[running / SIMD_WIDTH];
    check(s.meet, s.arrived == 0, what, argument, line, frame);
    s.arrived |= 1u << lane;
    lane_value *values = s.value[s.turn];
    values[lane] = value;
    const uint32_t width = static_cast<uint32_t>(__builtin_popcount(s.members));
    if (s.arrived == s.members) {
        s.arrived = 0;
        s.turn ^= 1;
        races.simd_operation(first / SIMD_WIDTH);
        if (what == operation::barrier) races.simdgroup_barrier(first / SIMD_WIDTH, argument);
        /* Those that are too many are overwritten, and never read. */
        for (uint32_t i = 0; i < SIMD_WIDTH; i++)
            ready[n_ready + i] = static_cast<uint16_t>(first + i);
        n_ready += width;
    }
    wait();
    return {values, lane, width};
}

INLINE void scheduler::meet_threadgroup(uint32_t flags, int line, const void *frame) {
    check(barrier, n_at_barrier == 0, operation::barrier, flags, line, frame);
    simd[running / SIMD_WIDTH].at_barrier |= 1u << running % SIMD_WIDTH;
    if (++n_at_barrier == n_threads) {
        n_at_barrier = 0;
        races.threadgroup_barrier(flags);
        for (uint32_t i = 0; i < n_threads; i++) ready[i] = static_cast<uint16_t>(i);
        n_ready = n_threads;
        for (uint32_t i = 0; i < n_threads; i += SIMD_WIDTH) simd[i / SIMD_WIDTH].at_barrier = 0;
    }
    wait();
}

lanes meet_simdgroup(operation what, uint32_t argument, lane_value value, int line) {
    return current->meet_simdgroup(what, argument, value, line, __builtin_frame_address(0));
}
void meet_threadgroup(uint32_t flags, int line) {
    current->meet_threadgroup(flags, line, __builtin_frame_address(0));
}
void fault_lane(operation what, uint32_t lane, int line) {
    current->fail("%s at line %d of lane %u, which there is not", name_of(what), line, lane);
}
bool fails_spuriously() {
    return current->random.below(8) == 0;
}

/* ---- faults --------------------------------------------------------------------------------- */

void scheduler::fail(const char *format, ...) {
    char what[EMULATED_FAULT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(fault, EMULATED_FAULT_BYTES, "kernel %s, group (%u, %u, %u), thread %u: %s",
             dispatch->kernel->name, shared.group.x, shared.group.y, shared.group.z, running, what);
    failed = true;
    context forgotten;
    change_context(&forgotten, &host);
    __builtin_unreachable();
}

static uint32_t lowest(uint32_t lanes) {
    return static_cast<uint32_t>(__builtin_ctz(lanes));
}

void scheduler::fail_meeting(const meeting &m, operation what, uint32_t argument, int line) {
    if (m.argument != argument && m.line == line)
        fail("%s at line %d with %u, thread %u with %u", name_of(what), line, argument, m.first,
             m.argument);
    fail("is at line %d, while thread %u of its group waits at line %d: diverged code", line,
         m.first, m.line);
}

/* What a thread that cannot run does. */
const char *scheduler::describe(uint32_t index, char *text, size_t bytes) const {
    const simdgroup &s = simd[index / SIMD_WIDTH];
    const uint32_t bit = 1u << index % SIMD_WIDTH;
    if (s.returned & bit) return "has returned";
    if (s.at_barrier & bit)
        snprintf(text, bytes, "waits at the barrier of line %d", barrier.line);
    else
        snprintf(text, bytes, "waits at %s of line %d", name_of(s.meet.what), s.meet.line);
    return text;
}

/* Nobody can run: some thread waits for one that will not come. */
void scheduler::fail_stuck() {
    /* A simdgroup waits for its own threads, so look there first. */
    const uint32_t n_simd = (n_threads + SIMD_WIDTH - 1) / SIMD_WIDTH;
    uint32_t waiting = NONE, missing = NONE;
    for (uint32_t i = 0; i < n_simd; i++) {
        const simdgroup &s = simd[i];
        if (s.arrived == 0) continue;
        waiting = i * SIMD_WIDTH + lowest(s.arrived);
        missing = i * SIMD_WIDTH + lowest(s.members & ~s.arrived);
    }
    for (uint32_t i = 0; i < n_simd && missing == NONE; i++) {
        const simdgroup &s = simd[i];
        if (s.members & ~s.at_barrier) missing = i * SIMD_WIDTH + lowest(s.members & ~s.at_barrier);
    }
    for (uint32_t i = 0; i < n_simd && waiting == NONE; i++)
        if (simd[i].at_barrier) waiting = i * SIMD_WIDTH + lowest(simd[i].at_barrier);
    char a[96], b[96];
    running = waiting;
    fail("%s, which thread %u does not reach: it %s", describe(waiting, a, sizeof a), missing,
         describe(missing, b, sizeof b));
}

/* An instruction as debuggers take it: `gdb -batch -ex "info line *(run_NAME+OFFSET)" PROGRAM`. */
const char *scheduler::place_of(uintptr_t code, char *text, size_t bytes) const {
    const auto launcher = reinterpret_cast<uintptr_t>(dispatch->kernel->run);
    snprintf(text, bytes, "*(run_%s%+td)", dispatch->kernel->name,
             static_cast<ptrdiff_t>(code - launcher));
    return text;
}

void scheduler::check_order(access what, uintptr_t address, size_t bytes, bool is_atomic,
                            uintptr_t code) {
    static const char *const does[] = {"reads", "writes", "updates"};
    static const char *const did[] = {"read", "wrote", "updated"};
    race r;
    if (!(is_atomic ? races.is_atomic_race(what, address, bytes, running, &r)
                    : races.is_race(what, address, bytes, running, &r)))
        return;
    char at[96];
    fail("%s byte %td of %s(%d), which thread %u of group %u %s, and nothing orders the two, at %s",
         does[static_cast<int>(what)], r.byte, r.memory, r.index, r.other_thread, r.other_group,
         did[static_cast<int>(r.other)], place_of(code, at, sizeof at));
}

void scheduler::fail_undefined(uintptr_t code) {
    char place[96];
    fail("undefined behaviour at %s", place_of(code, place, sizeof place));
}

/* An access that the processor refused. */
void scheduler::fail_at(uintptr_t address, const char *access, uintptr_t code) {
    char at[96];
    place_of(code, at, sizeof at);
    const auto from = [&](const void *start) {
        return static_cast<long long>(address - reinterpret_cast<uintptr_t>(start));
    };
    for (int i = 0; i < EMULATED_ARGUMENTS; i++)
        if (shared.threadgroup_memory[i] && memory[i].has(address))
            fail("%s outside threadgroup(%d), byte %lld of %zu, at %s", access, i,
                 from(memory[i].start()), memory[i].bytes(), at);
    for (auto &f : fibers)
        if (f->has_guard_at(address)) fail("its stack is full at %s", at);
    /* Buffers may lie side by side: meant is the one that the access missed by least. */
    long long missed_by = 1 << 16;
    int nearest = -1;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        if (!dispatch->buffer[i]) continue;
        const long long offset = from(dispatch->buffer[i]);
        const long long distance = std::max(-offset, offset - static_cast<long long>(dispatch->buffer_bytes[i]));
        if (distance >= missed_by) continue;
        missed_by = distance;
        nearest = i;
    }
    if (nearest >= 0)
        fail("%s outside buffer(%d), byte %lld of %lld, at %s", access, nearest,
             from(dispatch->buffer[nearest]), static_cast<long long>(dispatch->buffer_bytes[nearest]), at);
    fail("%s of address 0x%llx, far from all buffers, at %s", access, from(nullptr), at);
}

} // namespace emulated
