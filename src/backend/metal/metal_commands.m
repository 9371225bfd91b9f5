/* Issuing and waiting.
 *
 * Operations are appended to one open command buffer, through one serial compute encoder: dispatches run
 * in their order and see what the ones before them wrote.  `check`, once a layer, hands it to the GPU
 * without waiting.  Command buffers are numbered; each signals its number on a shared event as its last
 * deed, which is what a wait waits for.  A command buffer that fails never signals, so a wait also looks
 * at the state of all that are unfinished, now and then. */
#import "backend/metal/metal_host.h"

enum { LOOK_MS = 100 }; /* between looks at command buffers that do not end */

/* ---- Failures --------------------------------------------------------------------------------- */

static void note_failure(plumb_metal_backend *m, plumb_status status) {
    if (m->failure == PLUMB_OK) m->failure = status;
}

void plumb__metal_fail(plumb_metal_backend *m, plumb_status status) {
    pthread_mutex_lock(&m->lock);
    note_failure(m, status);
    pthread_mutex_unlock(&m->lock);
}

static plumb_status status_of_error(NSError *error) {
    return [error code] == MTLCommandBufferErrorOutOfMemory ? PLUMB_ERROR_MEMORY : PLUMB_ERROR_IO;
}

/* ---- Command buffers --------------------------------------------------------------------------- */

static id<MTLCommandBuffer> *slot_of(plumb_metal_backend *m, uint64_t number) {
    return &m->in_flight[number % PLUMB_METAL_IN_FLIGHT];
}

void plumb__metal_collect(plumb_metal_backend *m) {
    while (m->done < m->submitted) {
        @autoreleasepool {
            id<MTLCommandBuffer> *command = slot_of(m, m->done + 1);
            MTLCommandBufferStatus status = [*command status];
            if (status != MTLCommandBufferStatusCompleted && status != MTLCommandBufferStatusError)
                break;
            if (status == MTLCommandBufferStatusError)
                note_failure(m, status_of_error([*command error]));
            [*command release];
            *command = nil;
            m->done++;
        }
    }
    plumb__metal_free_garbage(m);
}

/* The oldest unfinished command buffer, retained; nil when at most `allowed` are unfinished. */
static id<MTLCommandBuffer> oldest_unfinished(plumb_metal_backend *m, uint64_t allowed) {
    pthread_mutex_lock(&m->lock);
    plumb__metal_collect(m);
    id<MTLCommandBuffer> oldest =
        m->submitted - m->done > allowed ? [*slot_of(m, m->done + 1) retain] : nil;
    pthread_mutex_unlock(&m->lock);
    return oldest;
}

/* Waits until the ring has a place for one more. */
static void make_room(plumb_metal_backend *m) {
    for (bool full = true; full;) {
        @autoreleasepool {
            id<MTLCommandBuffer> oldest = oldest_unfinished(m, PLUMB_METAL_IN_FLIGHT - 1);
            full = oldest != nil;
            [oldest waitUntilCompleted];
            [oldest release];
        }
    }
}

static bool open_command(plumb_metal_backend *m) {
    if (m->command) return true;
    make_room(m);
    m->command = [[m->queue commandBuffer] retain];
    m->encoder = [[m->command computeCommandEncoder] retain];
    if (!m->encoder) {
        [m->command release];
        m->command = nil;
        plumb__metal_fail(m, PLUMB_ERROR_MEMORY);
        return false;
    }
    pthread_mutex_lock(&m->lock);
    m->issued++;
    pthread_mutex_unlock(&m->lock);
    return true;
}

void plumb__metal_submit(plumb_metal_backend *m) {
    if (!m->command) return;
    @autoreleasepool {
        [m->encoder endEncoding];
        [m->encoder release];
        m->encoder = nil;
        id<MTLCommandBuffer> command = m->command;
        m->command = nil;
        [command encodeSignalEvent:m->event value:m->issued];
        pthread_mutex_lock(&m->lock);
        plumb__metal_make_resident(m);
        [command commit];
        m->submitted = m->issued;
        *slot_of(m, m->submitted) = command;
        plumb__metal_collect(m);
        pthread_mutex_unlock(&m->lock);
    }
}

void plumb__metal_finish(plumb_metal_backend *m) {
    plumb__metal_submit(m);
    for (bool busy = true; busy;) {
        @autoreleasepool {
            id<MTLCommandBuffer> oldest = oldest_unfinished(m, 0);
            busy = oldest != nil;
            /* The event is signalled a little before the state says so. */
            if (busy && [m->event waitUntilSignaledValue:m->submitted timeoutMS:LOOK_MS])
                [oldest waitUntilCompleted];
            [oldest release];
        }
    }
}

/* ---- Dispatches ------------------------------------------------------------------------------- */

static bool memory_fits(const plumb_metal_backend *m, const plumb_metal_call *call) {
    return call->threadgroup_bytes[0] + call->threadgroup_bytes[1] <= m->threadgroup_bytes;
}

/* Binds what `call` lists; false when a pointer is not this backend's memory. */
static bool bind_memory(plumb_metal_backend *m, const plumb_metal_call *call) {
    plumb_metal_place place[PLUMB_METAL_MAX_MEMORY];
    int n = plumb__metal_kernel_forms[call->kernel].n_memory;
    plumb__metal_find(m, call->memory, n, place);
    for (int i = 0; i < n; i++) {
        NSUInteger index = (NSUInteger)(PLUMB_METAL_FIRST_MEMORY + i);
        if (!call->memory[i] && call->list)
            [m->encoder setBytes:call->list length:call->list_bytes atIndex:index];
        else if (place[i].buffer)
            [m->encoder setBuffer:place[i].buffer offset:place[i].offset atIndex:index];
        else return false;
    }
    return true;
}

static void encode(plumb_metal_backend *m, const plumb_metal_call *call) {
    [m->encoder setBuffer:m->control_buffer offset:0 atIndex:0];
    [m->encoder setBytes:call->arguments length:call->arguments_bytes atIndex:1];
    for (NSUInteger i = 0; i < 2; i++)
        if (call->threadgroup_bytes[i] > 0)
            [m->encoder setThreadgroupMemoryLength:(NSUInteger)call->threadgroup_bytes[i] atIndex:i];
    MTLSize groups = MTLSizeMake((NSUInteger)call->groups[0], (NSUInteger)call->groups[1],
                                 (NSUInteger)call->groups[2]);
    int threads = plumb__metal_kernel_forms[call->kernel].threads;
    [m->encoder dispatchThreadgroups:groups
               threadsPerThreadgroup:MTLSizeMake((NSUInteger)threads, 1, 1)];
}

void plumb__metal_dispatch(plumb_metal_backend *m, const plumb_metal_call *call) {
    if (call->groups[0] <= 0 || call->groups[1] <= 0 || call->groups[2] <= 0) return;
    if (!memory_fits(m, call)) {
        plumb__metal_fail(m, PLUMB_ERROR_UNSUPPORTED);
        return;
    }
    @autoreleasepool {
        if (!open_command(m)) return;
        [m->encoder setComputePipelineState:m->pipeline[call->kernel]];
        if (bind_memory(m, call)) encode(m, call);
        else plumb__metal_fail(m, PLUMB_ERROR_ARGUMENT);
    }
}

/* ---- What callers ask ------------------------------------------------------------------------- */

void plumb__metal_wait(plumb_backend *b) { plumb__metal_finish(plumb__metal(b)); }

/* Whether something is known to have gone wrong.  The GPU may be about to say so. */
static bool is_faulty(plumb_metal_backend *m) {
    bool failed;
    @autoreleasepool {
        pthread_mutex_lock(&m->lock);
        plumb__metal_collect(m);
        failed = m->failure != PLUMB_OK;
        pthread_mutex_unlock(&m->lock);
    }
    return failed || __atomic_load_n(&m->control->fault, __ATOMIC_RELAXED) != 0;
}

/* Reports and forgets, when nothing is in flight: a kernel might set the flag again. */
static plumb_status take_failure(plumb_metal_backend *m) {
    pthread_mutex_lock(&m->lock);
    plumb_status status = m->failure;
    m->failure = PLUMB_OK;
    pthread_mutex_unlock(&m->lock);
    if (status == PLUMB_OK && m->control->fault) status = PLUMB_ERROR_VALUE;
    m->control->fault = 0;
    return status;
}

plumb_status plumb__metal_check(plumb_backend *b) {
    plumb_metal_backend *m = plumb__metal(b);
    plumb__metal_submit(m);
    if (!is_faulty(m)) return PLUMB_OK;
    plumb__metal_finish(m);
    return take_failure(m);
}

int64_t plumb__metal_missed(plumb_backend *b) {
    plumb_metal_backend *m = plumb__metal(b);
    plumb__metal_finish(m);
    int64_t layer = (int64_t)m->control->halted - 1;
    m->control->halted = 0;
    return layer;
}
