/* The thread lives in a structure of its own: the last to release a queue may be the thread itself,
 * when it lets go of the last command buffer, and cannot join itself. */
#import "fake_queue.h"

#include <stdlib.h>

#import "fake_run.h"

struct fake_worker {
    pthread_t thread;
    FakeCommandBuffer *first, *last; /* retained; under the lock */
    bool stopping, detached;         /* under the lock */
};

/* The next command buffer, retained, or nil when the queue is gone. */
static FakeCommandBuffer *take(fake_worker *worker) {
    fake_lock();
    while (!worker->first && !worker->stopping) fake_wait(INT64_MAX);
    FakeCommandBuffer *taken = worker->first;
    if (taken) worker->first = taken->next;
    fake_unlock();
    return taken;
}

static void *work(void *argument) {
    fake_worker *worker = argument;
    GSRegisterCurrentThread();
    for (FakeCommandBuffer *buffer; (buffer = take(worker));) {
        @autoreleasepool {
            [buffer run];
            [buffer release];
        }
        fake_lock()->unfinished--;
        fake_changed();
        fake_unlock();
    }
    GSUnregisterCurrentThread();
    if (worker->detached) free(worker);
    return NULL;
}

@implementation FakeQueue

- (instancetype)initWithDevice:(FakeDevice *)of {
    self = [super init];
    if (!self) return nil;
    device = [of retain];
    constants = fake_map_constants();
    worker = constants ? calloc(1, sizeof *worker) : NULL;
    if (worker && pthread_create(&worker->thread, NULL, work, worker)) {
        free(worker);
        worker = NULL;
    }
    if (worker) return self;
    [self release];
    return nil;
}

- (void)dealloc {
    if (worker) {
        bool on_thread = pthread_equal(worker->thread, pthread_self());
        pthread_t thread = worker->thread;
        fake_lock();
        worker->stopping = true;
        worker->detached = on_thread;
        fake_changed();
        fake_unlock();
        if (on_thread) {
            pthread_detach(thread);
        } else {
            pthread_join(thread, NULL);
            free(worker);
        }
    }
    for (int i = 0; i < n_attached; i++) [attached[i].set release];
    fake_unmap_constants(constants);
    [device release];
    [super dealloc];
}

- (void)append:(FakeCommandBuffer *)buffer {
    [buffer retain];
    if (worker->first)
        worker->last->next = buffer;
    else
        worker->first = buffer;
    worker->last = buffer;
}

- (id<MTLCommandBuffer>)commandBuffer {
    fake_state *state = fake_lock();
    bool full = outstanding >= FAKE_OUTSTANDING, stuck = full && state->unfinished == 0;
    if (full && !stuck) state->counters.waits++;
    while (outstanding >= FAKE_OUTSTANDING && !stuck) {
        stuck = state->unfinished == 0;
        if (!stuck) fake_wait(INT64_MAX);
    }
    outstanding++;
    fake_unlock();
    if (stuck)
        fake_object_to("commandBuffer: %d are made and none is committed, Metal would wait forever",
                       FAKE_OUTSTANDING);
    return [[[FakeCommandBuffer alloc] initWithQueue:self] autorelease];
}

- (void)addResidencySet:(id<MTLResidencySet>)set {
    fake_leave_behind();
    if (!set || fake_is_zombie(set)) {
        fake_object_to("addResidencySet: not a live residency set");
        return;
    }
    fake_lock();
    bool full = n_attached == FAKE_QUEUE_SETS;
    if (!full) {
        attached[n_attached].set = (FakeResidencySet *)[set retain];
        attached[n_attached++].since = fake_clock_tick();
    }
    fake_unlock();
    if (full)
        fake_object_to("addResidencySet: a queue has at most %d residency sets", FAKE_QUEUE_SETS);
}

- (bool)hasResident:(const FakeBuffer *)buffer at:(uint64_t)time {
    for (int i = 0; i < n_attached; i++) {
        if (attached[i].since < time && fake_was_resident(buffer, attached[i].set, time))
            return true;
    }
    return false;
}

@end
