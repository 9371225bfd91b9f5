/* The threads of one threadgroup: drawing the next, meetings, and faults. */
#include "scheduler.h"

#include <cstdio>
#include <cstring>

namespace emulated {

thread_local scheduler *current;

scheduler::scheduler() : running_group(false), fiber_of() {}
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
    go_on(next(), &host);
    running_group = false;
    if (failed) {
        /* Threads that waited stay where they are: their stacks begin anew. */
        idle.clear();
        for (auto &f : fibers) {
            f->prepare(fiber_entry, this);
            idle.push_back(f.get());
        }
        memset(fiber_of, 0, sizeof fiber_of);
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

void scheduler::fiber_entry(void *argument) {
    static_cast<scheduler *>(argument)->run_threads();
    __builtin_unreachable();
}

/* A fiber's life: one thread after another, until there is one that has a fiber already. */
void scheduler::run_threads() {
    fiber *const self = running_fiber;
    for (;;) {
        run_thread(running);
        if (n_returned == n_threads) {
            idle.push_back(self);
            emulated_switch(&self->stack_pointer, host);
        } else {
            const uint32_t index = next();
            if (fiber_of[index]) {
                idle.push_back(self);
                go_on(index, &self->stack_pointer);
            } else {
                running = index;
            }
        }
    }
}

void scheduler::run_thread(uint32_t index) {
    place p;
    p.index = index;
    const triple t = shared.threads;
    if (t.x == n_threads) p.in_group = {index, 0, 0};
    else p.in_group = {index % t.x, index / t.x % t.y, index / t.x / t.y};
    dispatch->kernel->run(&shared, &p);
    states[index] = state::returned;
    n_returned++;
}

/* One of those that can run. */
uint32_t scheduler::next() {
    if (n_ready == 0) fail_stuck();
    const uint32_t at = random.below(n_ready);
    const uint32_t index = ready[at];
    ready[at] = ready[--n_ready];
    return index;
}

/* Lets a thread run; saves the present stack pointer. */
void scheduler::go_on(uint32_t index, void **save) {
    fiber *f = fiber_of[index];
    fiber_of[index] = nullptr;
    if (!f) {
        if (idle.empty()) {
            fibers.push_back(std::make_unique<fiber>(static_cast<uint32_t>(fibers.size())));
            fibers.back()->prepare(fiber_entry, this);
            idle.push_back(fibers.back().get());
        }
        f = idle.back();
        idle.pop_back();
    }
    running = index;
    running_fiber = f;
    emulated_switch(save, f->stack_pointer);
}

/* Lets others run until this thread is drawn again. */
void scheduler::wait() {
    const uint32_t self = running;
    const uint32_t index = next();
    if (index == self) return;
    fiber *const mine = running_fiber;
    fiber_of[self] = mine;
    go_on(index, &mine->stack_pointer);
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

void scheduler::arrive(meeting &m, operation what, uint32_t argument, int line, uint64_t site) {
    if (m.arrived++ == 0) {
        m.what = what;
        m.line = line;
        m.first = running;
        m.argument = argument;
        m.site = site;
    } else if (m.site != site) {
        fail("is at line %d, while thread %u of its group waits at line %d: diverged code", line,
             m.first, m.line);
    } else if (m.argument != argument) {
        fail("%s at line %d with %u, thread %u with %u", name_of(what), line, argument, m.first,
             m.argument);
    }
}

lanes scheduler::meet_simdgroup(operation what, uint32_t argument, lane_value value, int line,
                                uint64_t site) {
    const uint32_t self = running, first = self / SIMD_WIDTH * SIMD_WIDTH;
    simdgroup &s = simd[self / SIMD_WIDTH];
    arrive(s.meet, what, argument, line, site);
    lane_value *values = s.value[s.turn];
    values[self - first] = value;
    if (s.meet.arrived == s.width) {
        s.meet.arrived = 0;
        s.turn ^= 1;
        for (uint32_t i = 0; i < s.width; i++) {
            states[first + i] = state::ready;
            ready[n_ready++] = static_cast<uint16_t>(first + i);
        }
    } else {
        states[self] = state::at_simdgroup;
    }
    wait();
    return {values, self - first, s.width};
}

void scheduler::meet_threadgroup(int line, uint64_t site) {
    arrive(barrier, operation::barrier, 0, line, site);
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
    void *forgotten;
    emulated_switch(&forgotten, host);
    __builtin_unreachable();
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

/* An access that the processor refused. */
void scheduler::fail_at(uintptr_t address, const char *access) {
    for (int i = 0; i < EMULATED_ARGUMENTS; i++)
        if (shared.threadgroup_memory[i] && memory[i].has(address))
            fail("%s outside threadgroup(%d): byte %td of %zu", access, i,
                 static_cast<ptrdiff_t>(address - reinterpret_cast<uintptr_t>(memory[i].start())),
                 memory[i].bytes());
    for (auto &f : fibers)
        if (f->has_guard_at(address)) fail("its stack is full");
    constexpr int64_t NEAR = 1 << 16;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const int64_t offset = static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(dispatch->buffer[i]));
        if (dispatch->buffer[i] && offset > -NEAR && offset < dispatch->buffer_bytes[i] + NEAR)
            fail("%s outside buffer(%d): byte %lld of %lld", access, i, static_cast<long long>(offset),
                 static_cast<long long>(dispatch->buffer_bytes[i]));
    }
    fail("%s at address 0x%llx, far from all buffers", access, static_cast<unsigned long long>(address));
}

/* ---- what the kernels' text calls ------------------------------------------------------------ */

/* Where a call stands: the return addresses from here to the thread's start.  A function that is called at
 * two places is two places. */
__attribute__((always_inline)) static inline uint64_t call_site(void *frame) {
    struct link {
        link *up;
        uintptr_t return_address;
    };
    uint64_t site = 0;
    for (const link *l = static_cast<const link *>(frame); l; l = l->up)
        site = site * 31 + l->return_address;
    return site;
}

lanes meet_simdgroup(operation what, uint32_t argument, lane_value value, int line) {
    return current->meet_simdgroup(what, argument, value, line, call_site(__builtin_frame_address(0)));
}
void meet_threadgroup(int line) {
    current->meet_threadgroup(line, call_site(__builtin_frame_address(0)));
}
void fault_lane(operation what, uint32_t lane, int line) {
    current->fail("%s at line %d of lane %u, which there is not", name_of(what), line, lane);
}
bool fails_spuriously() { return current->random.below(8) == 0; }

} // namespace emulated
