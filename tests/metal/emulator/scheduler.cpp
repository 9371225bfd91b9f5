/* The threads of one threadgroup: drawing the next, meetings, and faults. */
#include "scheduler.h"

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
        shared.threadgroup_memory[i] = bytes ? memory[i].lend(bytes, random.below(2)) : nullptr;
    }
    n_threads = n_ready = count(shared.threads);
    n_returned = 0;
    drawn = NONE;
    for (uint32_t i = 0; i < n_threads; i++) ready[i] = static_cast<uint16_t>(i);
    memset(states, 0, n_threads);
    barrier.arrived = 0;
    for (uint32_t i = 0; i < n_threads; i += SIMD_WIDTH) {
        simdgroup &s = simd[i / SIMD_WIDTH];
        s.meet.arrived = s.turn = 0;
        s.width = n_threads - i < SIMD_WIDTH ? n_threads - i : SIMD_WIDTH;
    }
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
        snprintf(fault, EMULATED_FAULT_BYTES,
                 "kernel %s, group (%u, %u, %u): threadgroup(%d) of %zu bytes was written at byte %td",
                 dispatch->kernel->name, shared.group.x, shared.group.y, shared.group.z, i,
                 memory[i].bytes(), outside);
        return false;
    }
    return true;
}

/* ---- fibers --------------------------------------------------------------------------------- */

void scheduler::fiber_entry() { current->run_threads(); }

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
    if (t.x == n_threads) p.in_group = {running, 0, 0};
    else p.in_group = {running % t.x, running / t.x % t.y, running / t.x / t.y};
    dispatch->kernel->run(&shared, &p);
    states[running] = state::returned;
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

/* Draws the one after the next, whose stack is fetched meanwhile. */
INLINE void scheduler::draw() {
    if (n_ready == 0) {
        drawn = NONE;
        return;
    }
    drawn = random.below(n_ready);
    const char *stack = static_cast<const char *>(threads[ready[drawn]].at.stack);
    for (int line = 0; line < 4; line++) __builtin_prefetch(stack + 64 * line, 1);
}

/* One of those that can run. */
INLINE uint32_t scheduler::next() {
    if (drawn == NONE) {
        if (n_ready == 0) fail_stuck();
        drawn = random.below(n_ready);
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

/* Where a call stands: the return addresses from there to the thread's start.  A function that is called
 * at two places is two places. */
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

INLINE void scheduler::arrive(meeting &m, operation what, uint32_t argument, int line, const void *frame) {
    const uint64_t site = call_site(frame, shared.frame);
    if (m.arrived++ == 0) {
        m.what = what;
        m.line = line;
        m.first = running;
        m.argument = argument;
        m.site = site;
    } else if (m.site != site || m.argument != argument) {
        fail_meeting(m, what, argument, line);
    }
}

INLINE lanes scheduler::meet_simdgroup(operation what, uint32_t argument, lane_value value, int line,
                                       const void *frame) {
    const uint32_t self = running, first = self / SIMD_WIDTH * SIMD_WIDTH;
    simdgroup &s = simd[self / SIMD_WIDTH];
    arrive(s.meet, what, argument, line, frame);
    lane_value *values = s.value[s.turn];
    values[self - first] = value;
    if (s.meet.arrived == s.width) {
        s.meet.arrived = 0;
        s.turn ^= 1;
        for (uint32_t i = 0; i < s.width; i++) ready[n_ready + i] = static_cast<uint16_t>(first + i);
        n_ready += s.width;
        memset(states + first, 0, s.width);
    } else {
        states[self] = state::at_simdgroup;
    }
    wait();
    return {values, self - first, s.width};
}

INLINE void scheduler::meet_threadgroup(int line, const void *frame) {
    arrive(barrier, operation::barrier, 0, line, frame);
    if (barrier.arrived == n_threads) {
        barrier.arrived = 0;
        for (uint32_t i = 0; i < n_threads; i++) ready[i] = static_cast<uint16_t>(i);
        n_ready = n_threads;
        memset(states, 0, n_threads);
    } else {
        states[running] = state::at_threadgroup;
    }
    wait();
}

lanes meet_simdgroup(operation what, uint32_t argument, lane_value value, int line) {
    return current->meet_simdgroup(what, argument, value, line, __builtin_frame_address(0));
}
void meet_threadgroup(int line) { current->meet_threadgroup(line, __builtin_frame_address(0)); }
void fault_lane(operation what, uint32_t lane, int line) {
    current->fail("%s at line %d of lane %u, which there is not", name_of(what), line, lane);
}
bool fails_spuriously() { return current->random.below(8) == 0; }

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

void scheduler::fail_meeting(const meeting &m, operation what, uint32_t argument, int line) {
    if (m.argument != argument && m.line == line)
        fail("%s at line %d with %u, thread %u with %u", name_of(what), line, argument, m.first, m.argument);
    fail("is at line %d, while thread %u of its group waits at line %d: diverged code", line, m.first,
         m.line);
}

const char *scheduler::describe(uint32_t index, char *text, size_t bytes) const {
    const meeting &m = states[index] == state::at_threadgroup ? barrier : simd[index / SIMD_WIDTH].meet;
    switch (states[index]) {
    case state::returned: return "has returned";
    case state::at_threadgroup: snprintf(text, bytes, "waits at the barrier of line %d", m.line); break;
    default: snprintf(text, bytes, "waits at %s of line %d", name_of(m.what), m.line);
    }
    return text;
}

/* Nobody can run: some thread waits for one that will not come. */
void scheduler::fail_stuck() {
    uint32_t waiting = 0;
    while (states[waiting] == state::returned) waiting++;
    for (uint32_t i = 0; i < n_threads; i++) /* a simdgroup waits for its own, so look there first */
        if (states[i] == state::at_simdgroup) waiting = i;
    const bool in_simdgroup = states[waiting] == state::at_simdgroup;
    const uint32_t from = in_simdgroup ? waiting / SIMD_WIDTH * SIMD_WIDTH : 0;
    uint32_t missing = from;
    while (states[missing] == states[waiting]) missing++;
    char a[96], b[96];
    running = waiting;
    fail("%s, which thread %u does not reach: it %s", describe(waiting, a, sizeof a), missing,
         describe(missing, b, sizeof b));
}

/* An instruction as debuggers take it: `gdb -batch -ex "info line *(run_NAME+OFFSET)" PROGRAM`. */
const char *scheduler::place_of(uintptr_t code, char *text, size_t bytes) const {
    const auto launcher = reinterpret_cast<uintptr_t>(dispatch->kernel->run);
    snprintf(text, bytes, "*(run_%s%+td)", dispatch->kernel->name, static_cast<ptrdiff_t>(code - launcher));
    return text;
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
            fail("%s outside threadgroup(%d), byte %lld of %zu, at %s", access, i, from(memory[i].start()),
                 memory[i].bytes(), at);
    for (auto &f : fibers)
        if (f->has_guard_at(address)) fail("its stack is full at %s", at);
    constexpr long long NEAR = 1 << 16;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const long long offset = from(dispatch->buffer[i]);
        if (dispatch->buffer[i] && offset > -NEAR && offset < dispatch->buffer_bytes[i] + NEAR)
            fail("%s outside buffer(%d), byte %lld of %lld, at %s", access, i, offset,
                 static_cast<long long>(dispatch->buffer_bytes[i]), at);
    }
    fail("%s of address 0x%llx, far from all buffers, at %s", access, from(nullptr), at);
}

} // namespace emulated
