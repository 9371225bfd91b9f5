/* What the tests of the fake Metal work with: a device, its queue, and kernels between two buffers.
 */
#ifndef PLUMB_TESTS_METAL_FAKE_BENCH_H
#define PLUMB_TESTS_METAL_FAKE_BENCH_H

#import <Metal/Metal.h>

#include "fake_metal.h"

/* Where the condition says it all. */
#define CHECK(condition) T_CHECK(condition, "is false")

enum { BENCH_COUNT = 64, BENCH_BYTES = BENCH_COUNT * 4 };

/* Everything owned. */
typedef struct fake_bench {
    id<MTLDevice> device;
    id<MTLLibrary> library;
    id<MTLCommandQueue> queue;
    id<MTLSharedEvent> event;
    id<MTLResidencySet> set;         /* attached to the queue, empty */
    id<MTLBuffer> control, from, to; /* from[i] = i */
} fake_bench;

/* Configures the fake and opens a device of it. */
fake_bench fake_bench_open(const fake_metal_options *options);
/* Waits until all is done. */
void fake_bench_close(fake_bench *b);

MTLCompileOptions *fake_bench_options(void); /* autoreleased; what the host asks for */
id<MTLBuffer> fake_bench_buffer(const fake_bench *b, NSUInteger bytes); /* owned */
/* Sets the pipeline and binds control block, arguments, `from` and `to`. */
void fake_bench_bind(const fake_bench *b, id<MTLComputeCommandEncoder> encoder, const char *kernel,
                     uint32_t addend);
/* One group of BENCH_COUNT threads. */
void fake_bench_dispatch(id<MTLComputeCommandEncoder> encoder);
/* A committed command buffer with one `add`, autoreleased; raises the event to `value` if that is
 * not 0. */
id<MTLCommandBuffer> fake_bench_add(const fake_bench *b, uint32_t addend, uint64_t value);
uint32_t fake_bench_result(const fake_bench *b, int i);

#endif
