/* The device and what it compiles. Libraries, functions and pipelines come from the emulator's list of
 * kernels; the source text handed over must be the one that the emulator was made from. */
#ifndef PLUMB_TESTS_METAL_FAKE_DEVICE_H
#define PLUMB_TESTS_METAL_FAKE_DEVICE_H

#include "emulator.h"
#include "fake_object.h"

@interface FakeDevice : FakeObject <MTLDevice>
@end

@interface FakeLibrary : FakeObject <MTLLibrary>
@end

@interface FakeFunction : FakeObject <MTLFunction> {
  @public
    const emulated_kernel *kernel;
}
@end

@interface FakePipeline : FakeObject <MTLComputePipelineState> {
  @public
    const emulated_kernel *kernel;
    NSUInteger max_threads;
}
@end

/* A parameter of the kernel by the space and index that it is bound to, or NULL. Buffers of the device
 * and the constant space share one table of indices. */
const emulated_parameter *fake_parameter(const emulated_kernel *kernel, bool threadgroup, int index);

#endif
