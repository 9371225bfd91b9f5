/* Bindings are kept as the dispatch that would be encoded next; a dispatch is checked as a whole
 * and copied into the command buffer. */
#import "fake_encoder.h"

#include <stdlib.h>

#import "fake_command_buffer.h"
#import "fake_parts.h"

enum { MAX_BYTES = 4096, THREADGROUP_UNIT = 16 };

int64_t fake_bound_bytes(const fake_binding *binding) {
    if (binding->buffer) return binding->buffer->bytes - binding->offset;
    return (int64_t)[binding->bytes length];
}

const uint8_t *fake_bound_start(const fake_binding *binding) {
    if (binding->buffer) return binding->buffer->start + binding->offset;
    return [binding->bytes bytes];
}

static bool object_to_binding(const fake_dispatch *dispatch, const emulated_parameter *p) {
    const emulated_kernel *kernel = dispatch->pipeline->kernel;
    const fake_binding *binding = &dispatch->binding[p->index];
    const char *fault = NULL;
    if (!binding->buffer && !binding->bytes)
        fault = "is not bound";
    else if (fake_bound_bytes(binding) < p->element_bytes)
        fault = "is bound to less than one element";
    else if (binding->offset % p->alignment)
        fault = "has an offset that its type's alignment does not divide";
    else if (binding->bytes && p->writable)
        fault = "is written by the kernel, but set with setBytes";
    if (fault)
        fake_object_to("dispatch of %s: buffer %d (%s) %s", kernel->name, p->index, p->name, fault);
    return fault != NULL;
}

/* Named once, by the argument that is written; of two such by the first. */
static bool object_to_sharing(const fake_dispatch *dispatch, const emulated_parameter *p) {
    const emulated_kernel *kernel = dispatch->pipeline->kernel;
    int other = fake_same_beginning(dispatch, p);
    if (!p->writable || other < 0) return false;
    const emulated_parameter *q = fake_parameter(kernel, false, other);
    if (q->writable && other < p->index) return false;
    fake_object_to("dispatch of %s: buffer %d (%s) is written by the kernel, and is buffer %d (%s) "
                   "as well", kernel->name, p->index, p->name, other, q->name);
    return true;
}

@implementation FakeEncoder

- (instancetype)initWithCommandBuffer:(FakeCommandBuffer *)of {
    self = [super init];
    if (!self) return nil;
    buffer = [of retain];
    bound = [[NSMutableArray alloc] init];
    return self;
}

- (void)dealloc {
    if (!ended) fake_object_to("an encoder is deallocated without endEncoding");
    [buffer encoderEnded:self];
    [bound release];
    [buffer release];
    [super dealloc];
}

- (bool)isOpenFor:(const char *)what {
    if (ended) fake_object_to("%s: after endEncoding", what);
    return !ended;
}

- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
    if (![self isOpenFor:"setComputePipelineState"]) return;
    if (!state || fake_is_zombie(state)) {
        fake_object_to("setComputePipelineState: not a live pipeline");
        return;
    }
    next.pipeline = (FakePipeline *)state;
    [buffer use:state];
}

- (fake_binding *)bindingAt:(NSUInteger)index for:(const char *)what {
    if (![self isOpenFor:what]) return NULL;
    if (index >= EMULATED_ARGUMENTS) {
        fake_object_to("%s: index %llu, the last one is %d", what, (unsigned long long)index,
                       EMULATED_ARGUMENTS - 1);
        return NULL;
    }
    next.binding[index] = (fake_binding){nil, 0, nil};
    return &next.binding[index];
}

- (void)setBuffer:(id<MTLBuffer>)what offset:(NSUInteger)offset atIndex:(NSUInteger)index {
    fake_binding *binding = [self bindingAt:index for:"setBuffer"];
    if (!binding || !what) return;
    if (fake_is_zombie(what)) {
        fake_object_to("setBuffer: the buffer at index %llu was deallocated",
                       (unsigned long long)index);
        return;
    }
    if (offset >= [what length]) {
        fake_object_to("setBuffer: offset %llu at index %llu, the buffer has %llu bytes",
                       (unsigned long long)offset, (unsigned long long)index,
                       (unsigned long long)[what length]);
        return;
    }
    *binding = (fake_binding){(FakeBuffer *)what, (int64_t)offset, nil};
    [bound addObject:what];
    [buffer use:what];
}

- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
    fake_binding *binding = [self bindingAt:index for:"setBytes"];
    if (!binding) return;
    if (length == 0 || length > MAX_BYTES) {
        fake_object_to("setBytes: %llu bytes at index %llu, at least 1 and at most %d",
                       (unsigned long long)length, (unsigned long long)index, MAX_BYTES);
        return;
    }
    NSData *copy = [[NSData alloc] initWithBytes:bytes length:length];
    *binding = (fake_binding){nil, 0, copy};
    [buffer use:copy];
    [copy release];
}

- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
    if (![self isOpenFor:"setThreadgroupMemoryLength"]) return;
    if (index >= EMULATED_ARGUMENTS) {
        fake_object_to("setThreadgroupMemoryLength: index %llu", (unsigned long long)index);
        return;
    }
    if (length % THREADGROUP_UNIT) {
        fake_object_to("setThreadgroupMemoryLength: %llu is not a multiple of %d",
                       (unsigned long long)length, THREADGROUP_UNIT);
    }
    next.threadgroup_bytes[index] = (int64_t)length;
    fresh_threadgroup |= UINT32_C(1) << index;
}

- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
    if ([self isOpenFor:"memoryBarrierWithScope"] && !(scope & MTLBarrierScopeBuffers)) {
        fake_object_to("memoryBarrierWithScope: not of buffers");
    }
}

- (void)endEncoding {
    fake_leave_behind();
    if (![self isOpenFor:"endEncoding"]) return;
    ended = true;
    [buffer encoderEnded:self];
}

/* ---- Dispatches ---- */

/* Counts what it objects to. */
- (int)objectToThreadgroupMemory {
    const emulated_kernel *kernel = next.pipeline->kernel;
    int faults = 0;
    int64_t total = 0;
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *p = fake_parameter(kernel, true, i);
        int64_t length = next.threadgroup_bytes[i];
        if (p && length < p->element_bytes) {
            fake_object_to("dispatch of %s: threadgroup memory %d (%s) has no length", kernel->name,
                           i, p->name);
            faults++;
        }
        if (!p && fresh_threadgroup >> i & 1 && length > 0) {
            fake_object_to("dispatch of %s: it has no threadgroup memory %d", kernel->name, i);
            faults++;
        }
        if (p) faults += length % THREADGROUP_UNIT != 0;
        total += length;
    }
    fake_state *state = fake_lock();
    int64_t most = (int64_t)state->options.threadgroup_bytes;
    fake_unlock();
    if (total > most) {
        fake_object_to("dispatch of %s: %lld bytes of threadgroup memory, at most %lld",
                       kernel->name, (long long)total, (long long)most);
        faults++;
    }
    fresh_threadgroup = 0;
    return faults;
}

- (int)objectToGroups:(MTLSize)groups threads:(MTLSize)threads {
    const char *name = next.pipeline->kernel->name;
    const NSUInteger sizes[6] = {groups.width,  groups.height,  groups.depth,
                                 threads.width, threads.height, threads.depth};
    int faults = 0;
    for (int i = 0; i < 6; i++) {
        const char *of = i < 3 ? "groups" : "threads";
        if (sizes[i] == 0)
            fake_object_to("dispatch of %s: no %s in dimension %d", name, of, i % 3);
        else if (sizes[i] > UINT32_MAX)
            fake_object_to("dispatch of %s: too many %s", name, of);
        else
            continue;
        faults++;
    }
    NSUInteger most = next.pipeline->max_threads;
    if (faults == 0 && threads.width * threads.height * threads.depth > most) {
        fake_object_to("dispatch of %s: more than %llu threads in a threadgroup", name,
                       (unsigned long long)most);
        faults++;
    }
    return faults;
}

- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads {
    if (![self isOpenFor:"dispatchThreadgroups"]) return;
    if (!next.pipeline) {
        fake_object_to("dispatchThreadgroups: no pipeline is set");
        return;
    }
    const emulated_kernel *kernel = next.pipeline->kernel;
    int faults = [self objectToGroups:groups threads:threads] + [self objectToThreadgroupMemory];
    for (int i = 0; i < EMULATED_ARGUMENTS; i++) {
        const emulated_parameter *p = fake_parameter(kernel, false, i);
        if (p) faults += object_to_binding(&next, p) || object_to_sharing(&next, p);
    }
    if (faults) return;
    fake_dispatch *dispatch = malloc(sizeof *dispatch);
    if (!dispatch) abort();
    *dispatch = next;
    const NSUInteger sizes[6] = {groups.width,  groups.height,  groups.depth,
                                 threads.width, threads.height, threads.depth};
    for (int i = 0; i < 3; i++) {
        dispatch->groups[i] = (uint32_t)sizes[i];
        dispatch->threads[i] = (uint32_t)sizes[i + 3];
    }
    [buffer addDispatch:dispatch];
}

@end
