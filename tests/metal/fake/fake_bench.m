/* Used as the host uses Metal, so that a test that does not provoke anything hears nothing. */
#import "fake_bench.h"

#include "emulator.h"

MTLCompileOptions *fake_bench_options(void) {
    MTLCompileOptions *options = [[[MTLCompileOptions alloc] init] autorelease];
    options.mathMode = MTLMathModeSafe;
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
    options.languageVersion = MTLLanguageVersion3_1;
    return options;
}

id<MTLBuffer> fake_bench_buffer(const fake_bench *b, NSUInteger bytes) {
    return [b->device newBufferWithLength:bytes options:MTLResourceStorageModeShared];
}

fake_bench fake_bench_open(const fake_metal_options *options) {
    fake_metal_configure(options);
    fake_bench b = {.device = MTLCreateSystemDefaultDevice()};
    @autoreleasepool {
        NSString *text = [NSString stringWithUTF8String:emulated_source_text()];
        b.library = [b.device newLibraryWithSource:text options:fake_bench_options() error:NULL];
        MTLResidencySetDescriptor *descriptor =
            [[[MTLResidencySetDescriptor alloc] init] autorelease];
        b.set = [b.device newResidencySetWithDescriptor:descriptor error:NULL];
    }
    b.queue = [b.device newCommandQueue];
    [b.queue addResidencySet:b.set];
    b.event = [b.device newSharedEvent];
    b.control = fake_bench_buffer(&b, 8);
    b.from = fake_bench_buffer(&b, BENCH_BYTES);
    b.to = fake_bench_buffer(&b, BENCH_BYTES);
    uint32_t *from = [b.from contents];
    for (uint32_t i = 0; i < BENCH_COUNT; i++) from[i] = i;
    return b;
}

void fake_bench_close(fake_bench *b) {
    fake_metal_settle();
    [b->control release];
    [b->from release];
    [b->to release];
    [b->set release];
    [b->event release];
    [b->queue release];
    [b->library release];
    [b->device release];
}

void fake_bench_bind(const fake_bench *b, id<MTLComputeCommandEncoder> encoder, const char *kernel,
                     uint32_t addend) {
    const uint32_t arguments[5] = {BENCH_COUNT, addend};
    id<MTLFunction> function =
        [b->library newFunctionWithName:[NSString stringWithUTF8String:kernel]];
    id<MTLComputePipelineState> pipeline = [b->device newComputePipelineStateWithFunction:function
                                                                                    error:NULL];
    [encoder setComputePipelineState:pipeline];
    [pipeline release];
    [function release];
    [encoder setBuffer:b->control offset:0 atIndex:0];
    [encoder setBytes:arguments length:sizeof arguments atIndex:1];
    [encoder setBuffer:b->from offset:0 atIndex:2];
    [encoder setBuffer:b->to offset:0 atIndex:3];
}

void fake_bench_dispatch(id<MTLComputeCommandEncoder> encoder) {
    [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(BENCH_COUNT, 1, 1)];
}

id<MTLCommandBuffer> fake_bench_add(const fake_bench *b, uint32_t addend, uint64_t value) {
    id<MTLCommandBuffer> buffer = [b->queue commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [buffer computeCommandEncoder];
    fake_bench_bind(b, encoder, "add", addend);
    fake_bench_dispatch(encoder);
    [encoder endEncoding];
    if (value) [buffer encodeSignalEvent:b->event value:value];
    [buffer commit];
    return buffer;
}

uint32_t fake_bench_result(const fake_bench *b, int i) {
    return ((const uint32_t *)[b->to contents])[i];
}
