/* What a test can ask of the fake Metal: what the device claims, what goes wrong and when, what was
 * done and what Metal's validation would have said.
 *
 * The fake implements the protocols of <Metal/Metal.h> as Apple documents them, on memory of this
 * process: command buffers run on a thread of their queue, later than the host would like, and their
 * kernels run in the emulator (emulator.h). Where the documentation leaves a choice, the fake makes
 * the one that is worse for the host:
 * - an encoder keeps the buffers bound to it until it is deallocated, a command buffer those it uses
 *   until it has completed, a residency set keeps nothing;
 * - a command buffer that fails has run half of its commands;
 * - every message to a deallocated object and every access to a deallocated buffer is noticed;
 * - what one argument of a dispatch writes must not be touched through another (fake_parts.h).
 *
 * All functions may be called from any thread. The state behind them is one per process, since Metal's
 * own MTLCreateSystemDefaultDevice is. */
#ifndef PLUMB_TESTS_METAL_FAKE_METAL_H
#define PLUMB_TESTS_METAL_FAKE_METAL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fake_metal_options {
    uint64_t seed;                    /* of delays, placements of buffers and schedules of threads */
    int64_t delay_us_min, delay_us_max; /* before each step of a command buffer, microseconds */

    /* What the device claims. */
    bool absent;               /* MTLCreateSystemDefaultDevice finds none */
    const char *name;
    bool metal3;               /* MTLGPUFamilyMetal3 */
    int64_t apple_family;      /* 9: MTLGPUFamilyApple1 to Apple9 */
    bool unified_memory;
    bool residency_sets;       /* false: macOS before 15, which does not know the method */
    uint64_t working_set_bytes, max_buffer_bytes, threadgroup_bytes;
    uint64_t max_threads;      /* of a threadgroup, of every pipeline */
    bool litters;              /* methods that work leave an autoreleased object behind, as Metal's may */

    /* What goes wrong. */
    uint64_t memory_bytes;     /* buffers past this many live bytes cannot be made; 0: no limit */
    int64_t fail_commit;       /* the command buffer committed as the Nth fails, from 1; 0: none */
    int64_t fail_code;         /* MTLCommandBufferError..., when it does */
    bool fail_signals;         /* its events are signalled nevertheless */
    const char *compile_error; /* newLibraryWithSource fails with this text */
    bool compiler_is_strict;   /* newLibraryWithSource fails unless maths is safe and precise */
    const char *missing_kernel; /* a function that the library does not have */
    const char *refused_kernel; /* a function of which no pipeline can be made */
    const char *wrong_kernel;   /* a kernel that flips a bit of the last buffer that it writes, */
    int64_t wrong_bit;          /* this one, from the lowest of the first byte on */
} fake_metal_options;

/* An M2 with 64 GB, in a hurry and without faults. */
fake_metal_options fake_metal_defaults(void);
/* Takes effect for what is made and committed from now on; counts of commits, waits and dispatches
 * start again, validation errors are forgotten. Strings are kept by pointer. */
void fake_metal_configure(const fake_metal_options *options);

typedef struct fake_metal_counters {
    int64_t live_objects;        /* of every kind, errors too */
    int64_t live_buffers, live_bytes, live_command_buffers;
    int64_t autoreleased;        /* objects that were autoreleased and are still alive */
    int64_t most_autoreleased;   /* of these at a time, since `configure` */
    int64_t commits, dispatches; /* dispatches: those that ran */
    int64_t waits;               /* waitUntilCompleted, waitUntilSignaledValue that had to block */
} fake_metal_counters;

fake_metal_counters fake_metal_count(void);

/* Lets the queues take that many steps together and holds them before the next one; FAKE_METAL_ALL lets
 * them go on. Steps of a command buffer: being scheduled, its first command, each signal, its end. */
enum { FAKE_METAL_ALL = -1 };
void fake_metal_allow(int64_t steps);
/* Waits until every committed command buffer has ended and let go of what it used. */
void fake_metal_settle(void);

/* What Metal's validation layer would have stopped at, oldest first, since `configure`. */
int fake_metal_errors(void);
/* NULL past the last one; valid until `configure`. */
const char *fake_metal_error(int i);
/* Whether one of the errors contains the text. */
bool fake_metal_said(const char *text);

#endif
