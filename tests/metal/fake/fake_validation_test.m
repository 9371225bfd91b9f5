/* Each rule of validation is broken once, and that is what the fake must say: this rule, once. */
#import "fake_bench.h"

#include "emulator.h"
#include "t.h"

typedef id<MTLCommandBuffer> command_buffer;
typedef id<MTLComputeCommandEncoder> command_encoder;

/* ---- Encoding ---- */

static void with_encoder(const fake_bench *b, void (*misuse)(const fake_bench *, command_encoder)) {
    command_buffer buffer = [b->queue commandBuffer];
    command_encoder encoder = [buffer computeCommandEncoder];
    fake_bench_bind(b, encoder, "add", 1);
    misuse(b, encoder);
    [encoder endEncoding];
    [buffer commit];
}

static void unbind(const fake_bench *b, command_encoder e) {
    (void)b;
    [e setBuffer:nil offset:0 atIndex:3];
    fake_bench_dispatch(e);
}
static void bind_past_end(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->from offset:256 atIndex:2];
}
static void bind_askew(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->from offset:2 atIndex:2];
    fake_bench_dispatch(e);
}
static void bind_wide_askew(const fake_bench *b, command_encoder e) {
    fake_bench_bind(b, e, "add_wide", 1);
    [e setBuffer:b->from offset:8 atIndex:2];
    fake_bench_dispatch(e);
}
static void bind_too_little(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->from offset:254 atIndex:2];
    fake_bench_dispatch(e);
}
static void bind_twice(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->to offset:0 atIndex:2];
    fake_bench_dispatch(e);
}
static void bind_control(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->control offset:0 atIndex:3];
    fake_bench_dispatch(e);
}
/* `from` and `to` in one new buffer. */
static void bind_parts(const fake_bench *b, command_encoder e, NSUInteger from, NSUInteger to) {
    id<MTLBuffer> both = fake_bench_buffer(b, 2 * BENCH_BYTES);
    [e setBuffer:both offset:from atIndex:2];
    [e setBuffer:both offset:to atIndex:3];
    [both release];
    fake_bench_dispatch(e);
}
static void read_next_part(const fake_bench *b, command_encoder e) {
    bind_parts(b, e, 0, BENCH_BYTES - 16);
}
static void write_next_part(const fake_bench *b, command_encoder e) {
    bind_parts(b, e, BENCH_BYTES - 16, 0);
}
static void bind_high_index(const fake_bench *b, command_encoder e) {
    [e setBuffer:b->from offset:0 atIndex:31];
}
static void bind_dead(const fake_bench *b, command_encoder e) {
    id<MTLBuffer> dead = fake_bench_buffer(b, 16);
    [dead release];
    [e setBuffer:dead offset:0 atIndex:2];
}
static void set_many_bytes(const fake_bench *b, command_encoder e) {
    (void)b;
    static const char bytes[4097];
    [e setBytes:bytes length:sizeof bytes atIndex:1];
}
static void set_no_bytes(const fake_bench *b, command_encoder e) {
    (void)b;
    [e setBytes:"" length:0 atIndex:1];
}
static void set_written_bytes(const fake_bench *b, command_encoder e) {
    (void)b;
    static const char bytes[BENCH_BYTES];
    [e setBytes:bytes length:sizeof bytes atIndex:3];
    fake_bench_dispatch(e);
}
static void set_few_bytes(const fake_bench *b, command_encoder e) {
    (void)b;
    [e setBytes:"four" length:4 atIndex:1];
    fake_bench_dispatch(e);
}

static void set_uneven_threadgroup(const fake_bench *b, command_encoder e) {
    (void)b;
    [e setThreadgroupMemoryLength:24 atIndex:0];
}
static void set_undeclared_threadgroup(const fake_bench *b, command_encoder e) {
    (void)b;
    [e setThreadgroupMemoryLength:16 atIndex:0];
    fake_bench_dispatch(e);
}
static void set_no_threadgroup(const fake_bench *b, command_encoder e) {
    fake_bench_bind(b, e, "reverse", 1);
    fake_bench_dispatch(e);
}
static void set_large_threadgroup(const fake_bench *b, command_encoder e) {
    fake_bench_bind(b, e, "reverse", 1);
    [e setThreadgroupMemoryLength:32784 atIndex:0];
    fake_bench_dispatch(e);
}
static void set_short_threadgroup(const fake_bench *b, command_encoder e) {
    fake_bench_bind(b, e, "reverse", 1);
    [e setThreadgroupMemoryLength:BENCH_BYTES - 16 atIndex:0];
    fake_bench_dispatch(e);
}

static void dispatch_no_groups(const fake_bench *b, command_encoder e) {
    (void)b;
    [e dispatchThreadgroups:MTLSizeMake(1, 0, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
}
static void dispatch_no_threads(const fake_bench *b, command_encoder e) {
    (void)b;
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 0)];
}
static void dispatch_many_threads(const fake_bench *b, command_encoder e) {
    (void)b;
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(512, 3, 1)];
}
static void open_two(const fake_bench *b, command_encoder e) {
    (void)e;
    command_buffer buffer = [b->queue commandBuffer];
    command_encoder first = [buffer computeCommandEncoder];
    [buffer computeCommandEncoder];
    [first endEncoding];
}
static void end_and_bind(const fake_bench *b, command_encoder e) {
    (void)e;
    command_encoder other = [[b->queue commandBuffer] computeCommandEncoder];
    [other endEncoding];
    [other setBuffer:b->from offset:0 atIndex:2];
}
static void end_twice(const fake_bench *b, command_encoder e) {
    (void)e;
    command_encoder other = [[b->queue commandBuffer] computeCommandEncoder];
    [other endEncoding];
    [other endEncoding];
}
static void dispatch_without_pipeline(const fake_bench *b, command_encoder e) {
    (void)e;
    command_encoder other = [[b->queue commandBuffer] computeCommandEncoder];
    fake_bench_dispatch(other);
    [other endEncoding];
}
static void leave_open(const fake_bench *b, command_encoder e) {
    (void)e;
    @autoreleasepool {
        [[b->queue commandBuffer] computeCommandEncoder];
    }
}
static void barrier_of_textures(const fake_bench *b, command_encoder e) {
    (void)b;
    [e memoryBarrierWithScope:MTLBarrierScopeTextures];
}

/* ---- Committing ---- */

static void commit_open(const fake_bench *b) {
    command_buffer buffer = [b->queue commandBuffer];
    command_encoder encoder = [buffer computeCommandEncoder];
    [buffer commit];
    [encoder endEncoding];
}
static void signal_open(const fake_bench *b) {
    command_buffer buffer = [b->queue commandBuffer];
    command_encoder encoder = [buffer computeCommandEncoder];
    [buffer encodeSignalEvent:b->event value:1];
    [encoder endEncoding];
}
static void commit_twice(const fake_bench *b) {
    [fake_bench_add(b, 1, 0) commit];
}
static void encode_committed(const fake_bench *b) {
    [fake_bench_add(b, 1, 0) computeCommandEncoder];
}
static void wait_uncommitted(const fake_bench *b) {
    [[b->queue commandBuffer] waitUntilCompleted];
}
static void signal_back(const fake_bench *b) {
    fake_bench_add(b, 1, 2);
    fake_bench_add(b, 1, 1);
}
static void hoard(const fake_bench *b) {
    for (int i = 0; i < 65; i++) [b->queue commandBuffer];
}

/* ---- What kernels do ---- */

static void run_beyond(const fake_bench *b, NSUInteger index) {
    const uint32_t arguments[2] = {BENCH_COUNT + 4, 1};
    id<MTLBuffer> large = fake_bench_buffer(b, 2 * BENCH_BYTES);
    command_buffer buffer = [b->queue commandBuffer];
    command_encoder encoder = [buffer computeCommandEncoder];
    fake_bench_bind(b, encoder, "add", 1);
    [encoder setBytes:arguments length:sizeof arguments atIndex:1];
    [encoder setBuffer:large offset:0 atIndex:index];
    [encoder dispatchThreadgroups:MTLSizeMake(2, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(BENCH_COUNT, 1, 1)];
    [encoder endEncoding];
    [buffer commit];
    [buffer waitUntilCompleted];
    [large release];
}
static void write_beyond(const fake_bench *b) {
    run_beyond(b, 2);
}

/* ---- Life ---- */

static void message_dead_buffer(const fake_bench *b) {
    id<MTLBuffer> dead = fake_bench_buffer(b, 16);
    [dead release];
    CHECK([dead length] == 0);
}
static void message_dead_command(const fake_bench *b) {
    command_buffer buffer;
    @autoreleasepool {
        buffer = [b->queue commandBuffer];
    }
    [buffer commit];
}
static void release_dead(const fake_bench *b) {
    id<MTLSharedEvent> event = [b->device newSharedEvent];
    [event release];
    [event release];
}
static void release_resident(const fake_bench *b) {
    id<MTLBuffer> buffer = fake_bench_buffer(b, 16);
    [b->set addAllocation:buffer];
    [b->set commit];
    [buffer release];
}
static void remove_absent(const fake_bench *b) {
    [b->set removeAllocation:b->from];
}
static void end_residency(const fake_bench *b) {
    [b->set endResidency];
}
static void write_past_contents(const fake_bench *b) {
    id<MTLBuffer> buffer =
        fake_bench_buffer(b, 40); /* so 8 bytes at least lie before the guard page */
    ((char *)[buffer contents])[40] = 1;
    [buffer release];
}

/* ---- Making things ---- */

static void make_empty_buffer(const fake_bench *b) {
    CHECK(!fake_bench_buffer(b, 0));
}
static void make_huge_buffer(const fake_bench *b) {
    CHECK(!fake_bench_buffer(b, [b->device maxBufferLength] + 1));
}
static void make_private_buffer(const fake_bench *b) {
    [[b->device newBufferWithLength:16 options:MTLResourceStorageModePrivate] release];
}
static void find_nothing(const fake_bench *b) {
    CHECK(![b->library newFunctionWithName:@"nothing"]);
}
static void compile(const fake_bench *b, NSString *text, MTLCompileOptions *options) {
    id<MTLLibrary> library = [b->device newLibraryWithSource:text options:options error:NULL];
    CHECK(library != nil);
    [library release];
}
static void compile_other_text(const fake_bench *b) {
    compile(b, @"kernel void add() {}", fake_bench_options());
}
static void compile_fast(const fake_bench *b) {
    MTLCompileOptions *options = fake_bench_options();
    options.mathMode = MTLMathModeFast;
    compile(b, [NSString stringWithUTF8String:emulated_source_text()], options);
}
static void compile_imprecise(const fake_bench *b) {
    MTLCompileOptions *options = fake_bench_options();
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsFast;
    compile(b, [NSString stringWithUTF8String:emulated_source_text()], options);
}
static void compile_other_language(const fake_bench *b) {
    MTLCompileOptions *options = fake_bench_options();
    options.languageVersion = MTLLanguageVersion3_0;
    compile(b, [NSString stringWithUTF8String:emulated_source_text()], options);
}

/* One of the two functions, and what the fake must say. */
typedef struct rule {
    void (*encode)(const fake_bench *, command_encoder);
    void (*act)(const fake_bench *);
    const char *said;
} rule;

static void check_rule(const rule *r, uint64_t seed) {
    fake_metal_options options = fake_metal_defaults();
    options.seed = seed;
    fake_bench b = fake_bench_open(&options);
    T_CHECK(fake_metal_errors() == 0, "%s: %s", r->said, fake_metal_error(0));
    @autoreleasepool {
        if (r->encode)
            with_encoder(&b, r->encode);
        else
            r->act(&b);
        fake_metal_settle();
    }
    fake_bench_close(&b);
    T_CHECK(fake_metal_said(r->said), "not said: %s (but %s)", r->said, fake_metal_error(0));
    T_CHECK(fake_metal_errors() == 1, "%s: said %d errors, %s and %s", r->said, fake_metal_errors(),
            fake_metal_error(0), fake_metal_error(1));
}

static const rule rules[] = {
    {unbind, NULL, "buffer 3 (to) is not bound"},
    {bind_past_end, NULL, "setBuffer: offset 256 at index 2, the buffer has 256 bytes"},
    {bind_askew, NULL, "buffer 2 (from) has an offset"},
    {bind_wide_askew, NULL, "dispatch of add_wide: buffer 2 (from) has an offset"},
    {bind_too_little, NULL, "buffer 2 (from) is bound to less than one element"},
    {bind_twice, NULL, "buffer 3 (to) is written by the kernel, and is buffer 2 (from) as well"},
    {bind_control, NULL, "buffer 0 (control) is written by the kernel, and is buffer 3 (to) as well"},
    {read_next_part, NULL, "read outside buffer(2), byte 2"},
    {write_next_part, NULL, "write outside buffer(3), byte 2"},
    {bind_high_index, NULL, "setBuffer: index 31"},
    {bind_dead, NULL, "the buffer at index 2 was deallocated"},
    {set_many_bytes, NULL, "setBytes: 4097 bytes"},
    {set_no_bytes, NULL, "setBytes: 0 bytes"},
    {set_written_bytes, NULL, "buffer 3 (to) is written by the kernel, but set with setBytes"},
    {set_few_bytes, NULL, "buffer 1 (args) is bound to less than one element"},
    {set_uneven_threadgroup, NULL, "setThreadgroupMemoryLength: 24 is not a multiple of 16"},
    {set_undeclared_threadgroup, NULL, "dispatch of add: it has no threadgroup memory 0"},
    {set_no_threadgroup, NULL, "threadgroup memory 0 (shared) has no length"},
    {set_large_threadgroup, NULL, "32784 bytes of threadgroup memory, at most 32768"},
    {set_short_threadgroup, NULL, "reverse: "},
    {dispatch_no_groups, NULL, "no groups in dimension 1"},
    {dispatch_no_threads, NULL, "no threads in dimension 2"},
    {dispatch_many_threads, NULL, "more than 1024 threads"},
    {open_two, NULL, "computeCommandEncoder: an encoder is open"},
    {end_and_bind, NULL, "setBuffer: after endEncoding"},
    {end_twice, NULL, "endEncoding: after endEncoding"},
    {dispatch_without_pipeline, NULL, "no pipeline is set"},
    {leave_open, NULL, "an encoder is deallocated without endEncoding"},
    {barrier_of_textures, NULL, "memoryBarrierWithScope: not of buffers"},
    {NULL, commit_open, "commit: an encoder is open"},
    {NULL, signal_open, "encodeSignalEvent: an encoder is open"},
    {NULL, commit_twice, "commit: the command buffer is already committed"},
    {NULL, encode_committed, "computeCommandEncoder: the command buffer is already committed"},
    {NULL, wait_uncommitted, "waitUntilCompleted: the command buffer was never committed"},
    {NULL, signal_back, "a shared event goes back"},
    {NULL, hoard, "64 are made and none is committed"},
    {NULL, write_beyond, "add: "},
    {NULL, message_dead_buffer, "length sent to a FakeBuffer that was deallocated"},
    {NULL, message_dead_command, "commit sent to a FakeCommandBuffer that was deallocated"},
    {NULL, release_dead, "release sent to a FakeEvent that was deallocated"},
    {NULL, release_resident, "a buffer of 16 bytes is deallocated while a residency set has it"},
    {NULL, remove_absent, "the residency set does not have this buffer"},
    {NULL, end_residency, "endResidency without requestResidency"},
    {NULL, write_past_contents, "written past the end of a buffer of 40 bytes"},
    {NULL, make_empty_buffer, "a buffer of 0 bytes"},
    {NULL, make_huge_buffer, "maxBufferLength is"},
    {NULL, make_private_buffer, "memory that is not shared"},
    {NULL, find_nothing, "there is no function nothing"},
    {NULL, compile_other_text, "not the text that the emulator was made from"},
    {NULL, compile_fast, "maths is not safe and precise"},
    {NULL, compile_imprecise, "maths is not safe and precise"},
    {NULL, compile_other_language, "the language is not Metal 3.1"},
};

/* Two seeds at least place a buffer at either end of its pages. */
static void test_rules(void) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) check_rule(&rules[i], seed);
    }
}

/* A read past the end faults where the buffer ends at its page: with some seeds, and none goes on.
 */
static void test_reads_past_end(void) {
    int faults = 0;
    for (uint64_t seed = 1; seed <= 16; seed++) {
        fake_metal_options options = fake_metal_defaults();
        options.seed = seed;
        fake_bench b = fake_bench_open(&options);
        @autoreleasepool {
            run_beyond(&b, 3);
            fake_metal_settle();
        }
        faults += fake_metal_said("add: ");
        fake_bench_close(&b);
    }
    T_CHECK(faults > 2 && faults < 14, "%d", faults);
}

/* What the rules do not forbid: stale bindings and lengths, offsets of whole elements. */
static void test_silence(void) {
    fake_metal_options options = fake_metal_defaults();
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        command_buffer buffer = [b.queue commandBuffer];
        command_encoder e = [buffer computeCommandEncoder];
        fake_bench_bind(&b, e, "reverse", 1);
        [e setThreadgroupMemoryLength:BENCH_BYTES atIndex:0];
        fake_bench_dispatch(e);
        [e memoryBarrierWithScope:MTLBarrierScopeBuffers];
        fake_bench_bind(&b, e, "add_wide", 1);
        [e setBuffer:b.from offset:16 atIndex:7];
        fake_bench_dispatch(e);
        [e endEncoding];
        [buffer commit];
        [buffer waitUntilCompleted];
        CHECK([buffer status] == MTLCommandBufferStatusCompleted && ![buffer error]);
    }
    CHECK(fake_bench_result(&b, 5) == 6);
    fake_bench_close(&b);
    T_CHECK(fake_metal_errors() == 0, "%s", fake_metal_error(0));
}

/* Parts of one buffer next to each other, either of them first: what is written is in its place. */
static void test_parts(void) {
    fake_metal_options options = fake_metal_defaults();
    fake_bench b = fake_bench_open(&options);
    @autoreleasepool {
        id<MTLBuffer> both = fake_bench_buffer(&b, 2 * BENCH_BYTES);
        uint32_t *number = [both contents];
        for (uint32_t i = 0; i < 2 * BENCH_COUNT; i++) number[i] = i;
        command_buffer buffer = [b.queue commandBuffer];
        command_encoder e = [buffer computeCommandEncoder];
        fake_bench_bind(&b, e, "add", 1000);
        [e setBuffer:both offset:0 atIndex:2];
        [e setBuffer:both offset:BENCH_BYTES atIndex:3];
        fake_bench_dispatch(e);
        [e setBuffer:both offset:BENCH_BYTES atIndex:2];
        [e setBuffer:both offset:0 atIndex:3];
        fake_bench_dispatch(e);
        [e endEncoding];
        [buffer commit];
        [buffer waitUntilCompleted];
        for (uint32_t i = 0; i < BENCH_COUNT; i++)
            T_CHECK(number[i] == 2000 + i && number[BENCH_COUNT + i] == 1000 + i, "%u: %u, %u", i,
                    number[i], number[BENCH_COUNT + i]);
        [both release];
    }
    fake_bench_close(&b);
    T_CHECK(fake_metal_errors() == 0, "%s", fake_metal_error(0));
}

T_MAIN({"rules", test_rules}, {"reads_past_end", test_reads_past_end}, {"silence", test_silence},
       {"parts", test_parts})
