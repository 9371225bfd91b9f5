/* The fake behaves as Metal is documented to: asynchronously and in order, with the ownership that
 * names tell, with the errors that were asked for; and it counts right. */
#import "fake_bench.h"

#include "emulator.h"
#include "t.h"

typedef id<MTLCommandBuffer> command_buffer;
typedef id<MTLComputeCommandEncoder> command_encoder;

/* Closes the bench: nothing may be left, and validation must have been silent. */
static void close_clean(fake_bench *b) {
    fake_bench_close(b);
    fake_metal_counters now = fake_metal_count();
    T_CHECK(now.live_objects == 0 && now.live_buffers == 0 && now.live_bytes == 0,
            "%lld objects, %lld bytes", (long long)now.live_objects, (long long)now.live_bytes);
    CHECK(now.live_command_buffers == 0 && now.autoreleased == 0);
    T_CHECK(fake_metal_errors() == 0, "%s", fake_metal_error(0));
}

static fake_bench open_defaults(void) {
    fake_metal_options options = fake_metal_defaults();
    return fake_bench_open(&options);
}

/* ---- Asynchronous, in order ---- */

static void test_asynchronous(void) {
    fake_bench b = open_defaults();
    @autoreleasepool {
        command_buffer open = [b.queue commandBuffer];
        CHECK([open status] == MTLCommandBufferStatusNotEnqueued);
        fake_metal_allow(0);
        command_buffer first = fake_bench_add(&b, 100, 1), second = fake_bench_add(&b, 200, 2);
        CHECK([first status] == MTLCommandBufferStatusCommitted);
        CHECK(fake_bench_result(&b, 5) == 0 && [b.event signaledValue] == 0);
        CHECK(![b.event waitUntilSignaledValue:1 timeoutMS:1]);

        fake_metal_allow(3); /* scheduled, the add, the signal */
        CHECK([b.event waitUntilSignaledValue:1 timeoutMS:60000]);
        CHECK(fake_bench_result(&b, 5) == 105 && [first status] == MTLCommandBufferStatusScheduled);
        CHECK([second status] == MTLCommandBufferStatusCommitted && [b.event signaledValue] == 1);

        fake_metal_allow(FAKE_METAL_ALL);
        [second waitUntilCompleted];
        CHECK([first status] == MTLCommandBufferStatusCompleted);
        CHECK([second status] == MTLCommandBufferStatusCompleted && ![second error]);
        CHECK(fake_bench_result(&b, 5) == 205 && [b.event signaledValue] == 2);
    }
    close_clean(&b);
}

/* Whatever the delays, an event says that the work before it is done, and later work comes later.
 */
static void test_order(void) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        fake_metal_options options = fake_metal_defaults();
        options.seed = seed;
        options.delay_us_max = 200;
        fake_bench b = fake_bench_open(&options);
        for (uint32_t i = 1; i <= 20; i++) {
            @autoreleasepool {
                fake_bench_add(&b, i, i);
                if (i % 5) continue;
                CHECK([b.event waitUntilSignaledValue:i timeoutMS:60000]);
                CHECK(fake_bench_result(&b, 7) == 7 + i);
            }
        }
        close_clean(&b);
    }
}

static void test_delays(void) {
    fake_metal_options options = fake_metal_defaults();
    options.delay_us_min = options.delay_us_max = 20000;
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        command_buffer buffer = fake_bench_add(&b, 1, 1);
        CHECK([buffer status] < MTLCommandBufferStatusCompleted && fake_bench_result(&b, 0) == 0);
        [buffer waitUntilCompleted];
        CHECK(fake_bench_result(&b, 0) == 1);
    }
    close_clean(&b);
}

/* ---- Ownership ---- */

static void test_pools(void) {
    fake_bench b = open_defaults();
    int64_t objects = fake_metal_count().live_objects;
    @autoreleasepool {
        for (int i = 0; i < 8; i++) fake_bench_add(&b, 1, 0);
        fake_metal_settle();
        T_CHECK(fake_metal_count().autoreleased == 16, "%lld",
                (long long)fake_metal_count().autoreleased);
        CHECK(fake_metal_count().live_command_buffers == 8);
    }
    CHECK(fake_metal_count().autoreleased == 0 && fake_metal_count().live_objects == objects);

    command_buffer kept;
    @autoreleasepool {
        kept = [fake_bench_add(&b, 1, 0) retain];
    }
    [kept waitUntilCompleted];
    CHECK(fake_metal_count().autoreleased == 1 && [kept status] == MTLCommandBufferStatusCompleted);
    [kept release];
    close_clean(&b);
}

/* A buffer lives as long as the command buffer that uses it runs, and as the encoder it was bound
 * to. */
static void check_used_buffer(const fake_bench *b, bool keeps_encoder) {
    command_buffer buffer;
    command_encoder encoder;
    fake_metal_allow(0);
    @autoreleasepool {
        id<MTLBuffer> to = fake_bench_buffer(b, BENCH_BYTES);
        buffer = [[b->queue commandBuffer] retain];
        encoder = [buffer computeCommandEncoder];
        fake_bench_bind(b, encoder, "add", 1);
        [encoder setBuffer:to offset:0 atIndex:3];
        fake_bench_dispatch(encoder);
        [encoder endEncoding];
        if (keeps_encoder) [encoder retain];
        [buffer commit];
        [to release];
    }
    CHECK(fake_metal_count().live_buffers == 4);
    fake_metal_allow(FAKE_METAL_ALL);
    [buffer waitUntilCompleted];
    CHECK(fake_metal_count().live_buffers == (keeps_encoder ? 4 : 3));
    if (keeps_encoder) [encoder release];
    CHECK(fake_metal_count().live_buffers == 3);
    [buffer release];
}

static void test_used_buffers(void) {
    fake_bench b = open_defaults();
    check_used_buffer(&b, false);
    check_used_buffer(&b, true);
    close_clean(&b);
}

static void test_outstanding(void) {
    fake_bench b = open_defaults();
    for (int i = 0; i < 200; i++) {
        @autoreleasepool {
            fake_bench_add(&b, 1, 0);
        }
        T_CHECK(fake_metal_count().live_command_buffers <= 65,
                "64 outstanding, and one that has just ended");
    }
    close_clean(&b);
}

static void test_buffers(void) {
    int at_start = 0, at_end = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        fake_metal_options options = fake_metal_defaults();
        options.seed = seed;
        options.memory_bytes = 5000;
        fake_bench b = fake_bench_open(&options);
        id<MTLBuffer> buffer = fake_bench_buffer(&b, 4000);
        uintptr_t start = (uintptr_t)[buffer contents];
        at_start += start % 16384 == 0;
        at_end += (start + 4000) % 16384 == 0;
        CHECK(start % 16 == 0 && [buffer gpuAddress] == start && [buffer length] == 4000);
        for (int i = 0; i < 4000; i++) CHECK(((const char *)[buffer contents])[i] == 0);
        CHECK(fake_metal_count().live_bytes == 4000 + 8 + 2 * BENCH_BYTES);
        CHECK((int64_t)[b.device currentAllocatedSize] == fake_metal_count().live_bytes);
        T_CHECK(!fake_bench_buffer(&b, 1000), "more than memory_bytes");
        [buffer release];
        close_clean(&b);
    }
    T_CHECK(at_start + at_end == 16 && at_start > 0 && at_end > 0, "%d, %d", at_start, at_end);
}

/* ---- Counters ---- */

static void test_counters(void) {
    fake_bench b = open_defaults();
    @autoreleasepool {
        command_buffer buffer = fake_bench_add(&b, 1, 1);
        fake_metal_settle();
        [buffer waitUntilCompleted];
        CHECK([b.event waitUntilSignaledValue:1 timeoutMS:0]);
        T_CHECK(fake_metal_count().waits == 0, "nothing to wait for");
        fake_metal_allow(0);
        fake_bench_add(&b, 1, 2);
        CHECK(![b.event waitUntilSignaledValue:2 timeoutMS:1]);
        CHECK(fake_metal_count().waits == 1 && fake_metal_count().commits == 2);
        CHECK(fake_metal_count().dispatches == 1);
        fake_metal_allow(FAKE_METAL_ALL);
        fake_metal_settle();
        CHECK(fake_metal_count().dispatches == 2);
    }
    close_clean(&b);
}

/* ---- What goes wrong ---- */

static void check_failure(int64_t code, bool signals) {
    fake_metal_options options = fake_metal_defaults();
    options.fail_commit = 2;
    options.fail_code = code;
    options.fail_signals = signals;
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        command_buffer first = fake_bench_add(&b, 1, 1), failing = [b.queue commandBuffer];
        command_encoder encoder = [failing computeCommandEncoder];
        for (uint32_t i = 2; i <= 5; i++) {
            fake_bench_bind(&b, encoder, "add", i);
            fake_bench_dispatch(encoder);
        }
        [encoder endEncoding];
        [failing encodeSignalEvent:b.event value:2];
        [failing commit];
        [failing waitUntilCompleted];
        CHECK([first status] == MTLCommandBufferStatusCompleted);
        CHECK([failing status] == MTLCommandBufferStatusError && [[failing error] code] == code);
        CHECK([[[failing error] domain] isEqualToString:MTLCommandBufferErrorDomain]);
        T_CHECK(fake_bench_result(&b, 0) == 3, "half of the dispatches ran, not %u",
                fake_bench_result(&b, 0));
        CHECK([b.event signaledValue] == (signals ? 2 : 1));
        command_buffer next = fake_bench_add(&b, 9, 3);
        [next waitUntilCompleted];
        CHECK([next status] == MTLCommandBufferStatusCompleted && fake_bench_result(&b, 0) == 9);
    }
    close_clean(&b);
}

static void test_failures(void) {
    check_failure(MTLCommandBufferErrorOutOfMemory, false);
    check_failure(MTLCommandBufferErrorTimeout, false);
    check_failure(MTLCommandBufferErrorPageFault, true);
}

/* A kernel that faults fails its command buffer, and nothing after it runs there. */
static void test_fault(void) {
    fake_bench b = open_defaults();
    @autoreleasepool {
        command_buffer failing = [b.queue commandBuffer];
        command_encoder encoder = [failing computeCommandEncoder];
        fake_bench_bind(&b, encoder, "reverse", 1);
        [encoder setThreadgroupMemoryLength:16 atIndex:0];
        fake_bench_dispatch(encoder);
        fake_bench_bind(&b, encoder, "add", 7);
        fake_bench_dispatch(encoder);
        [encoder endEncoding];
        [failing encodeSignalEvent:b.event value:1];
        [failing commit];
        [failing waitUntilCompleted];
        CHECK([failing status] == MTLCommandBufferStatusError);
        CHECK([[failing error] code] == MTLCommandBufferErrorPageFault);
        CHECK(fake_bench_result(&b, 0) != 7 && [b.event signaledValue] == 0);
        T_CHECK(fake_metal_errors() == 1 && fake_metal_said("reverse: "), "%s",
                fake_metal_error(0));
    }
    fake_bench_close(&b);
}

static void test_wrong_kernel(void) {
    fake_metal_options options = fake_metal_defaults();
    options.wrong_kernel = "add";
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        [fake_bench_add(&b, 10, 0) waitUntilCompleted];
        CHECK(fake_bench_result(&b, 0) == 11 && fake_bench_result(&b, 1) == 11);
    }
    close_clean(&b);
}

static NSError *compile(const fake_bench *b, MTLCompileOptions *options) {
    NSError *error = nil;
    NSString *text = [NSString stringWithUTF8String:emulated_source_text()];
    id<MTLLibrary> library = [b->device newLibraryWithSource:text options:options error:&error];
    CHECK(!library == (error != nil));
    [library release];
    return error;
}

static void test_compiler(void) {
    fake_metal_options options = fake_metal_defaults();
    options.compiler_is_strict = true;
    options.missing_kernel = "reverse";
    options.refused_kernel = "add";
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        CHECK(!compile(&b, fake_bench_options()));
        MTLCompileOptions *fast = fake_bench_options();
        fast.mathMode = MTLMathModeFast;
        NSError *error = compile(&b, fast);
        CHECK([error code] == MTLLibraryErrorCompileFailure);
        CHECK([[error domain] isEqualToString:MTLLibraryErrorDomain] &&
              fake_metal_count().autoreleased == 3);

        CHECK(![b.library newFunctionWithName:@"reverse"]);
        id<MTLFunction> function = [b.library newFunctionWithName:@"add"];
        CHECK(![b.device newComputePipelineStateWithFunction:function error:&error]);
        CHECK(function && [[error localizedDescription] isEqualToString:@"no pipeline for add"]);
        [function release];

        options.compile_error = "line 1: no";
        fake_metal_configure(&options);
        CHECK([[compile(&b, fake_bench_options()) localizedDescription]
            isEqualToString:@"line 1: no"]);
    }
    close_clean(&b);
}

static void test_device(void) {
    fake_metal_options options = fake_metal_defaults();
    options.absent = true;
    fake_metal_configure(&options);
    CHECK(!MTLCreateSystemDefaultDevice());
    options.absent = false;
    options.apple_family = 6;
    options.metal3 = options.unified_memory = options.residency_sets = false;
    options.working_set_bytes = 1 << 20;
    fake_metal_configure(&options);
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    SEL residency = @selector(newResidencySetWithDescriptor:error:);
    @autoreleasepool {
        CHECK([[device name] isEqualToString:@"Apple M2 Max (fake)"]);
        CHECK(![device supportsFamily:MTLGPUFamilyMetal3] &&
              [device supportsFamily:MTLGPUFamilyApple6]);
        CHECK(![device supportsFamily:MTLGPUFamilyApple7] &&
              [device supportsFamily:MTLGPUFamilyCommon3]);
        CHECK(![device hasUnifiedMemory] && [device recommendedMaxWorkingSetSize] == 1 << 20);
        CHECK([device maxThreadgroupMemoryLength] == 32768 &&
              ![(id)device respondsToSelector:residency]);
        CHECK([(id)device respondsToSelector:@selector(newCommandQueue)]);
        options = fake_metal_defaults();
        fake_metal_configure(&options);
        CHECK([(id)device respondsToSelector:residency] &&
              [device supportsFamily:MTLGPUFamilyMetal3]);
    }
    [device release];
    CHECK(fake_metal_count().live_objects == 0);
}

T_MAIN({"asynchronous", test_asynchronous}, {"order", test_order}, {"delays", test_delays},
       {"pools", test_pools}, {"used_buffers", test_used_buffers},
       {"outstanding", test_outstanding}, {"buffers", test_buffers}, {"counters", test_counters},
       {"failures", test_failures}, {"fault", test_fault}, {"wrong_kernel", test_wrong_kernel},
       {"compiler", test_compiler}, {"device", test_device})
