/* Runs Metal kernels on this machine, to find out on Linux whether their bits and their barriers are right.
 *
 * How to use it:
 * - CMake: `plumb_emulated_kernels(TARGET TEXT.metal)` makes a static library of a whole text of kernels;
 *   link it and call the functions below.  One such library a program.  Needs clang++.
 * - Look a kernel up by its name, fill an emulated_dispatch (all zero first): buffer[i] is what the kernel
 *   declares as [[buffer(i)]] (`setBytes` too: a pointer to the bytes), threadgroup_bytes[i] the size of its
 *   [[threadgroup(i)]].  emulated_run returns when the whole grid has run, or with what went wrong.
 * - Threads of a group change at barriers and simd operations, in an order that the seed decides; so does
 *   the order of the groups.  A kernel that depends on it shows another result under another seed: try some.
 * - Caught: accesses outside threadgroup memory, and outside a buffer that lies at a page that may not be
 *   touched (tests/kernels/arena.h makes such); barriers and simd operations that some threads do not reach;
 *   lanes and shuffle distances that Metal leaves undefined; undefined behaviour of C++, such as an index
 *   outside a thread's own array.  Threadgroup memory begins as NaN.  A fault's *(run_NAME+OFFSET) is
 *   shown by `gdb -batch -ex "info line *(run_NAME+OFFSET)" PROGRAM`.
 * - Numbers are those of safe maths: no contraction, subnormals flush to zero, no libm but fma and sqrt.
 *   What shim/ does not define does not compile: double, exp, simd_sum, storage declared `threadgroup`.
 * - How a device reorders memory is not shown: here a simd operation orders memory, a barrier orders all of
 *   it whatever its flags say, and groups see each other's writes at once.  `plumb_watched_kernels` makes a
 *   library, several times slower, that refuses kernels which rely on that (races.h). */
#ifndef PLUMB_TESTS_METAL_EMULATOR_H
#define PLUMB_TESTS_METAL_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    EMULATED_ARGUMENTS = 31,     /* indices of buffers, and of threadgroup memory */
    EMULATED_MAX_THREADS = 1024, /* of a threadgroup */
    EMULATED_MAX_THREADGROUP_BYTES = 32768,
    EMULATED_FAULT_BYTES = 256
};

typedef enum { EMULATED_DEVICE, EMULATED_CONSTANT, EMULATED_THREADGROUP } emulated_space;

/* A buffer or threadgroup argument of a kernel; size and alignment of what it points to. */
typedef struct {
    const char *name;
    emulated_space space;
    int index;
    bool writable;
    int64_t element_bytes, alignment;
} emulated_parameter;

typedef struct emulated_kernel {
    const char *name;
    const emulated_parameter *parameter;
    int n_parameters;
    bool is_watched; /* its library is of plumb_watched_kernels */
    /* Runs one thread; the emulator's own. */
    void (*run)(const void *launch, const void *thread);
} emulated_kernel;

/* NULL: the text has no such kernel. */
const emulated_kernel *emulated_kernel_find(const char *name);
/* All of them, in the order of the text; returns how many. */
int emulated_kernel_list(const emulated_kernel **kernels);
/* The text that was compiled. */
const char *emulated_source_text(void);

typedef struct {
    const emulated_kernel *kernel;
    void *buffer[EMULATED_ARGUMENTS];
    int64_t buffer_bytes[EMULATED_ARGUMENTS]; /* from the bound offset to the end */
    int64_t threadgroup_bytes[EMULATED_ARGUMENTS];
    uint32_t groups[3], threads[3];
    uint64_t seed;
    int host_threads; /* that run groups, more than one only for large grids; 0 is 1, as for watched kernels */
} emulated_dispatch;

/* Runs a grid.  False: `fault` says what went wrong, in one line; memory is then as the kernel left it.
 * May be called from several threads at once. */
bool emulated_run(const emulated_dispatch *dispatch, char fault[EMULATED_FAULT_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
