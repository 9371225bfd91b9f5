/* Memory that kernels reach by address: alive, in a residency set of the queue that was committed
 * before the command buffer, and until that has ended. */
#import "fake_bench.h"

#include "backend/metal/kernels/arguments.h"
#include "t.h"

typedef id<MTLCommandBuffer> command_buffer;

enum { EXPERTS = 4 };

/* `payload` has the bytes 10, 11 and so on; expert i of the table has its payloads at byte i, but
 * expert 3 is not in memory. */
typedef struct experts {
    fake_bench bench;
    id<MTLBuffer> table, shared, payload;
} experts;

static plumb_metal_expert expert_at(uint64_t address) {
    return (plumb_metal_expert){address, address, address, address, address, address};
}

static experts open_experts(void) {
    fake_metal_options options = fake_metal_defaults();
    experts e = {.bench = fake_bench_open(&options)};
    e.table = fake_bench_buffer(&e.bench, EXPERTS * sizeof(plumb_metal_expert));
    e.shared = fake_bench_buffer(&e.bench, sizeof(plumb_metal_expert));
    e.payload = fake_bench_buffer(&e.bench, 8);
    plumb_metal_expert *table = [e.table contents], *shared = [e.shared contents];
    for (uint64_t i = 0; i < EXPERTS - 1; i++) table[i] = expert_at([e.payload gpuAddress] + i);
    *shared = expert_at([e.payload gpuAddress] + 7);
    for (int i = 0; i < 8; i++) ((char *)[e.payload contents])[i] = (char)(10 + i);
    return e;
}

/* `payload` may be gone. */
static void close_experts(experts *e) {
    fake_metal_settle();
    [e->table release];
    [e->shared release];
    [e->payload release];
    fake_bench_close(&e->bench);
    CHECK(fake_metal_count().live_objects == 0);
}

static void add_payload(experts *e) {
    [e->bench.set addAllocation:e->payload];
    [e->bench.set commit];
}

static void remove_payload(experts *e) {
    [e->bench.set removeAllocation:e->payload];
    [e->bench.set commit];
}

/* Committed, autoreleased; signals 1 and then 2. */
static command_buffer run(experts *e) {
    const plumb_metal_group_experts arguments = {.rows = 1, .k = EXPERTS, .experts = EXPERTS};
    command_buffer buffer = [e->bench.queue commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [buffer computeCommandEncoder];
    fake_bench_bind(&e->bench, encoder, "group_experts", 0);
    [encoder setBytes:&arguments length:sizeof arguments atIndex:1];
    [encoder setBuffer:e->table offset:0 atIndex:4];
    [encoder setBuffer:e->shared offset:0 atIndex:5];
    fake_bench_dispatch(encoder);
    [encoder endEncoding];
    [buffer encodeSignalEvent:e->bench.event value:1];
    [buffer encodeSignalEvent:e->bench.event value:2];
    [buffer commit];
    return buffer;
}

static void run_to_end(experts *e) {
    @autoreleasepool {
        [run(e) waitUntilCompleted];
    }
    fake_metal_settle();
}

/* Whether that alone was said. */
static void check_said(const char *text) {
    T_CHECK(fake_metal_said(text), "not said: %s (but %s)", text, fake_metal_error(0));
    T_CHECK(fake_metal_errors() == 1, "%d errors, then %s", fake_metal_errors(),
            fake_metal_error(1));
}

static void test_resident(void) {
    experts e = open_experts();
    add_payload(&e);
    run_to_end(&e);
    const uint32_t wanted[EXPERTS] = {10, 11, 12, 17};
    for (int i = 0; i < EXPERTS; i++) CHECK(fake_bench_result(&e.bench, i) == wanted[i]);
    remove_payload(&e);
    [e.payload release];
    e.payload = nil;
    close_experts(&e);
    T_CHECK(fake_metal_errors() == 0, "%s", fake_metal_error(0));
}

static const char absent[] = "was in no committed residency set";

static void test_absent(void) {
    experts e = open_experts();
    run_to_end(&e);
    check_said(absent);
    close_experts(&e);
}

static void test_uncommitted(void) {
    experts e = open_experts();
    [e.bench.set addAllocation:e.payload];
    run_to_end(&e);
    check_said(absent);
    [e.bench.set removeAllocation:e.payload];
    close_experts(&e);
}

static void test_committed_late(void) {
    experts e = open_experts();
    fake_metal_allow(0);
    @autoreleasepool {
        command_buffer buffer = run(&e);
        add_payload(&e);
        fake_metal_allow(FAKE_METAL_ALL);
        [buffer waitUntilCompleted];
        CHECK([buffer status] == MTLCommandBufferStatusError);
    }
    check_said(absent);
    remove_payload(&e);
    close_experts(&e);
}

static void test_removed_early(void) {
    experts e = open_experts();
    add_payload(&e);
    fake_metal_allow(0);
    @autoreleasepool {
        run(&e);
        remove_payload(&e);
        fake_metal_allow(FAKE_METAL_ALL);
    }
    fake_metal_settle();
    check_said(absent);
    close_experts(&e);
}

static void test_other_set(void) {
    experts e = open_experts();
    @autoreleasepool {
        MTLResidencySetDescriptor *descriptor =
            [[[MTLResidencySetDescriptor alloc] init] autorelease];
        id<MTLResidencySet> other = [e.bench.device newResidencySetWithDescriptor:descriptor
                                                                            error:NULL];
        [other addAllocation:e.payload];
        [other commit];
        run_to_end(&e);
        check_said(absent);
        [other release];
    }
    close_experts(&e);
}

static void test_dead(void) {
    experts e = open_experts();
    [e.payload release];
    e.payload = nil;
    run_to_end(&e);
    check_said("lies in no live buffer");
    close_experts(&e);
}

static void test_past_end(void) {
    experts e = open_experts();
    add_payload(&e);
    ((plumb_metal_expert *)[e.table contents])[2].up_scales = [e.payload gpuAddress] + 8;
    run_to_end(&e);
    check_said("lies in no live buffer");
    remove_payload(&e);
    close_experts(&e);
}

/* Freed when the kernel has run, but its command buffer has not ended. */
static void test_freed_while_running(void) {
    experts e = open_experts();
    add_payload(&e);
    fake_metal_allow(3); /* scheduled, the kernel, the first signal */
    @autoreleasepool {
        run(&e);
        CHECK([e.bench.event waitUntilSignaledValue:1 timeoutMS:60000]);
        remove_payload(&e);
        check_said(
            "a buffer leaves a residency set while a command buffer that has its address runs");
        [e.payload release];
        e.payload = nil;
        CHECK(fake_metal_said(
            "of 8 bytes is deallocated while a command buffer that has its address runs"));
        fake_metal_allow(FAKE_METAL_ALL);
    }
    close_experts(&e);
    CHECK(fake_metal_errors() == 2);
}

static void test_halted(void) {
    experts e = open_experts();
    ((plumb_metal_control *)[e.bench.control contents])->halted = 1;
    run_to_end(&e);
    T_CHECK(fake_metal_errors() == 0, "%s", fake_metal_error(0));
    close_experts(&e);
}

T_MAIN({"resident", test_resident}, {"absent", test_absent}, {"uncommitted", test_uncommitted},
       {"committed_late", test_committed_late}, {"removed_early", test_removed_early},
       {"other_set", test_other_set}, {"dead", test_dead}, {"past_end", test_past_end},
       {"freed_while_running", test_freed_while_running}, {"halted", test_halted})
