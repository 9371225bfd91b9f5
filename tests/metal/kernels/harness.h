/* Metal kernels in the emulator beside the same operation of the CPU backend with portable kernels.
 *
 * A test draws inputs from kernels/arena.h, runs `harness_cpu`, then the kernel:
 *
 *     harness_call call = harness_begin("rotate", &args, sizeof args);
 *     harness_bind(&call, 2, x, bytes);          as kernels/arguments.h lists them
 *     harness_threadgroup(&call, 0, bytes);
 *     bool fault = harness_run(&call, groups_x, groups_y, threads);
 *
 * and compares what both wrote.  Memory must come from the arena, whose guard pages catch accesses outside.
 * What a kernel writes may be bound to one argument only.  Every run is repeated under other schedules,
 * which may not change a byte, and with the queue halted, which may change none at all. */
#ifndef PLUMB_TESTS_METAL_KERNELS_HARNESS_H
#define PLUMB_TESTS_METAL_KERNELS_HARNESS_H

#include "backend/cpu/cpu_backend.h"
#include "backend/metal/kernels/arguments.h"
#include "emulator.h"
#include "kernels/arena.h"
#include "metal/kernels/bindings.h"

#include <stdlib.h>

#include "t.h"

enum { HARNESS_SCHEDULES = 2, HARNESS_LAYER = 6 /* that a halted queue names */ };

static plumb_backend *harness_cpu; /* portable, one thread, between begin and end */

/* Whether an operation of harness_cpu met a value that is not finite since the last call. */
static inline bool harness_cpu_fault(void) {
    return harness_cpu->ops->check(harness_cpu) != PLUMB_OK;
}

/* ---- One dispatch ------------------------------------------------------------------------------ */

typedef struct harness_call {
    emulated_dispatch dispatch;
    plumb_metal_control *control; /* as the last run left it */
} harness_call;

/* Memory and threadgroup memory are added by those below. */
static inline harness_call harness_begin(const char *kernel, const void *args, size_t bytes) {
    harness_call call = {.dispatch.kernel = emulated_kernel_find(kernel)};
    if (!call.dispatch.kernel) {
        fprintf(stderr, "%s: no such kernel\n", kernel);
        exit(1);
    }
    call.control = arena_block(2, 4);
    void *copy = arena_copy(args, (int64_t)bytes / 4, 4);
    arena_seal(copy);
    call.dispatch.buffer[0] = call.control;
    call.dispatch.buffer_bytes[0] = (int64_t)sizeof *call.control;
    call.dispatch.buffer[1] = copy;
    call.dispatch.buffer_bytes[1] = (int64_t)bytes;
    return call;
}

static inline void harness_bind(harness_call *call, int index, const void *memory, int64_t bytes) {
    call->dispatch.buffer[index] = (void *)(uintptr_t)memory;
    call->dispatch.buffer_bytes[index] = bytes;
}

static inline void harness_threadgroup(harness_call *call, int index, int64_t bytes) {
    call->dispatch.threadgroup_bytes[index] = (bytes + 15) / 16 * 16;
}

/* What the kernel may write, from memory to `copy` (or back), or compared; returns the bytes, or -1 where
 * they differ. */
typedef enum harness_way { HARNESS_SAVE, HARNESS_RESTORE, HARNESS_COMPARE } harness_way;

static inline int64_t harness_written(const harness_call *call, harness_way way, char *copy) {
    const emulated_dispatch *d = &call->dispatch;
    int64_t at = 0, differ = 0;
    for (int i = 0; i < d->kernel->n_parameters; i++) {
        const emulated_parameter *p = &d->kernel->parameter[i];
        if (p->space == EMULATED_THREADGROUP || !p->writable) continue;
        size_t bytes = (size_t)d->buffer_bytes[p->index];
        void *memory = d->buffer[p->index];
        if (copy && way == HARNESS_SAVE) memcpy(copy + at, memory, bytes);
        if (copy && way == HARNESS_RESTORE) memcpy(memory, copy + at, bytes);
        if (copy && way == HARNESS_COMPARE) differ |= memcmp(memory, copy + at, bytes) != 0;
        at += (int64_t)bytes;
    }
    return differ ? -1 : at;
}

static inline void harness_once(harness_call *call) {
    char fault[EMULATED_FAULT_BYTES] = "";
    call->dispatch.seed = arena_random();
    T_CHECK(emulated_run(&call->dispatch, fault), "%s, seed %" PRIu64 ": %s",
            call->dispatch.kernel->name, call->dispatch.seed, fault);
}

/* Runs the grid; true: the kernel met a value that is not finite. */
static inline bool harness_run_3(harness_call *call, int64_t x, int64_t y, int64_t z, int threads) {
    const char *name = call->dispatch.kernel->name;
    uint32_t groups[3] = {(uint32_t)x, (uint32_t)y, (uint32_t)z}, sizes[3] = {(uint32_t)threads, 1, 1};
    memcpy(call->dispatch.groups, groups, sizeof groups);
    memcpy(call->dispatch.threads, sizes, sizeof sizes);
    bindings_check(&call->dispatch);
    size_t bytes = (size_t)harness_written(call, HARNESS_SAVE, NULL);
    char *before = malloc(bytes), *after = malloc(bytes);
    if (!before || !after) exit(1);

    *call->control = (plumb_metal_control){.halted = HARNESS_LAYER + 1};
    (void)harness_written(call, HARNESS_SAVE, before);
    harness_once(call);
    T_CHECK(harness_written(call, HARNESS_COMPARE, before) > 0, "%s worked though halted", name);

    for (int i = 0; i < HARNESS_SCHEDULES; i++) {
        (void)harness_written(call, HARNESS_RESTORE, before);
        *call->control = (plumb_metal_control){0};
        harness_once(call);
        if (i == 0) (void)harness_written(call, HARNESS_SAVE, after);
        T_CHECK(harness_written(call, HARNESS_COMPARE, after) > 0,
                "%s depends on the schedule, seed %" PRIu64, name, call->dispatch.seed);
    }
    free(before);
    free(after);
    return call->control->fault == PLUMB_METAL_VALUE_FAULT;
}

static inline bool harness_run(harness_call *call, int64_t x, int64_t y, int threads) {
    return harness_run_3(call, x, y, 1, threads);
}

/* A flat kernel over `items`. */
static inline bool harness_run_flat(harness_call *call, int64_t items) {
    return harness_run(call, (items + PLUMB_METAL_FLAT - 1) / PLUMB_METAL_FLAT, 1, PLUMB_METAL_FLAT);
}

/* ---- Values and comparisons -------------------------------------------------------------------- */

static inline arena_values harness_tame(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_EDGES);
}
static inline arena_values harness_finite(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_HUGE);
}
static inline arena_values harness_any(void) {
    return (arena_values)arena_between(ARENA_PLAIN, ARENA_BROKEN);
}
/* Often one around the sizes of blocks and groups. */
static inline int64_t harness_width(int64_t most) {
    static const int64_t edges[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 127, 128, 129, 257};
    int64_t edge = ARENA_PICK(edges);
    return arena_random() % 2 && edge <= most ? edge : arena_between(1, most);
}

/* Two outputs with the same contents: what a kernel should leave alone is compared too. */
#define HARNESS_OUTPUTS(type, a, b, count) \
    type *a = arena_block(count, sizeof(type)), *b = arena_copy(a, count, sizeof(type))

/* Equal bits, or both NaN: which NaN a meaningless result is, nobody promises. */
static inline bool harness_same_acts(const plumb_act *a, const plumb_act *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i] && !((a[i] & 0x7FFF) > 0x7F80 && (b[i] & 0x7FFF) > 0x7F80)) return false;
    return true;
}
static inline bool harness_same_floats(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = plumb__bits_of(a[i]), v = plumb__bits_of(b[i]);
        if (u != v && !((u & 0x7FFFFFFFu) > 0x7F800000u && (v & 0x7FFFFFFFu) > 0x7F800000u)) return false;
    }
    return true;
}

/* `main` of a test program. */
static inline int harness_main(int argc, char **argv, const t_test *tests, int count) {
    plumb_error err;
    const char *level;
    if (plumb__cpu_backend_create(1, "portable", &harness_cpu, &level, &err) != PLUMB_OK) return 1;
    harness_cpu->ops->begin(harness_cpu);
    int status = t_main(argc, argv, tests, count);
    harness_cpu->ops->end(harness_cpu);
    harness_cpu->ops->close(harness_cpu);
    return status;
}

#endif
