/* Runs the threads of one threadgroup, as fibers of one host thread.
 *
 * A thread runs until it meets others, at a barrier or a simd operation; which one runs next is
 * drawn from those that can, in half of the groups with a preference for some simdgroups.  A thread that never meets anyone costs no change of stacks: the fiber
 * it ran on takes the next.  So a thread gets a fiber of its own only while it waits. */
#ifndef PLUMB_TESTS_METAL_EMULATOR_SCHEDULER_H
#define PLUMB_TESTS_METAL_EMULATOR_SCHEDULER_H

#include "fiber.h"
#include "races.h"
#include "thread.h"
#include "threadgroup_memory.h"

#include <memory>
#include <vector>

namespace emulated {

/* Numbers from a seed: the upper half of a linear congruential sequence (Knuth's constants), since
 * a number is drawn for every meeting of every thread. */
class random_numbers {
  public:
    explicit random_numbers(uint64_t seed = 0) { reseed(seed); }
    void reseed(uint64_t seed) {
        state = (seed + 1) * 0x9E3779B97F4A7C15u;
        below(1);
    }
    /* 0 .. n - 1 */
    uint32_t below(uint32_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>((state >> 32) * n >> 32);
    }

  private:
    uint64_t state;
};

/* An operation that threads wait at: who came first, and where it stands in the code. */
struct meeting {
    operation what;
    int line;
    uint32_t first, argument;
    uint64_t site;
};

/* Sets of lanes are bits of a word. */
struct simdgroup {
    uint32_t members, arrived, at_barrier, returned;
    meeting meet;
    uint32_t turn;
    lane_value
        value[2][SIMD_WIDTH]; /* of this operation and of the one before, which may be being read */
};

/* A host thread's fibers and memory, kept from group to group. */
class scheduler {
  public:
    scheduler();
    ~scheduler();
    scheduler(const scheduler &) = delete;
    scheduler &operator=(const scheduler &) = delete;

    /* Runs group number `group` of a valid dispatch; false: `fault` has been written. */
    bool run(const emulated_dispatch &dispatch, triple group, uint64_t seed, char *fault);

    /* The rest is called on fibers, and by the handler of signals. */
    lanes meet_simdgroup(operation what, uint32_t argument, lane_value value, int line,
                         const void *frame);
    void meet_threadgroup(uint32_t flags, int line, const void *frame);
    void check_order(access what, uintptr_t address, size_t bytes, bool is_atomic, uintptr_t code);
    [[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 2, 3)));
    [[noreturn]] void fail_at(uintptr_t address, const char *access, uintptr_t code);
    [[noreturn]] void fail_undefined(uintptr_t code);
    bool is_running() const { return running_group; }
    random_numbers random;
    race_watch races; /* of kernels that are watched */

  private:
    /* What is known of a thread that waits, or may go on. */
    struct suspended {
        context at;
        fiber *on; /* NULL: it has not begun */
    };

    void begin(const emulated_dispatch &dispatch, triple group, uint64_t seed);
    bool check_memory();
    static void fiber_entry();
    [[noreturn]] void run_threads();
    void run_thread();
    void start(uint32_t index, context *save);
    uint32_t drawn_place();
    void draw();
    uint32_t next();
    void wait();
    void check(meeting &m, bool is_first, operation what, uint32_t argument, int line,
               const void *frame);
    [[noreturn]] void fail_meeting(const meeting &m, operation what, uint32_t argument, int line);
    [[noreturn]] void fail_stuck();
    const char *place_of(uintptr_t code, char *text, size_t bytes) const;
    const char *describe(uint32_t index, char *text, size_t bytes) const;

    const emulated_dispatch *dispatch;
    launch shared;
    char *fault;
    bool running_group, failed;
    context host; /* of `run` */

    uint32_t n_threads, n_returned, running;
    fiber *running_on;
    uint32_t n_ready, drawn; /* the place in `ready` of the next one; NONE: to be drawn */
    uint32_t draws;           /* of which the fastest goes on: 1, or so many that speeds differ */
    uint32_t speeds;          /* their order among simdgroups */
    uint32_t speed_of(uint32_t thread) const { return thread / SIMD_WIDTH ^ speeds; }
    uint16_t ready[EMULATED_MAX_THREADS + SIMD_WIDTH];
    suspended threads[EMULATED_MAX_THREADS];
    std::vector<std::unique_ptr<fiber>> fibers;
    std::vector<fiber *> idle;

    meeting barrier;
    uint32_t n_at_barrier;
    simdgroup simd[EMULATED_MAX_THREADS / SIMD_WIDTH];
    threadgroup_memory memory[EMULATED_ARGUMENTS];
};

/* The scheduler that runs on this host thread; NULL: none. */
extern thread_local scheduler *current;

/* Installs, once, the handlers that turn a signal inside a kernel into a fault, and gives this
 * thread a stack to handle them on. */
void catch_signals();

} // namespace emulated

#endif
