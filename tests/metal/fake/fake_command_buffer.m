/* A command buffer runs on its queue's thread with delays between its steps.  It lets go of what it
 * used before it says that it has completed. */
#import "fake_command_buffer.h"

#include <stdlib.h>

#import "fake_encoder.h"
#import "fake_queue.h"
#import "fake_run.h"

NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";

@implementation FakeCommandBuffer

- (instancetype)initWithQueue:(FakeQueue *)of {
    self = [super init];
    if (!self) return nil;
    queue = [of retain];
    used = [[NSMutableArray alloc] init];
    outstanding = true;
    fake_state *state = fake_lock();
    state->counters.live_command_buffers++;
    fake_unlock();
    return self;
}

- (void)dealloc {
    if (encoder) fake_object_to("a command buffer is deallocated while an encoder is open");
    fake_state *state = fake_lock();
    state->counters.live_command_buffers--;
    if (outstanding) queue->outstanding--;
    fake_changed();
    fake_unlock();
    for (int64_t i = 0; i < n_commands; i++) free(commands[i].dispatch);
    free(commands);
    free(reached);
    [used release];
    [failure release];
    [queue release];
    [super dealloc];
}

/* ---- What the host calls ---- */

- (bool)isOpenFor:(const char *)what {
    fake_lock();
    bool open = status == MTLCommandBufferStatusNotEnqueued;
    fake_unlock();
    if (!open)
        fake_object_to("%s: the command buffer is already committed", what);
    else if (encoder)
        fake_object_to("%s: an encoder is open", what);
    return open && !encoder;
}

- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
    if (![self isOpenFor:"computeCommandEncoder"]) return nil;
    encoder = [[FakeEncoder alloc] initWithCommandBuffer:self];
    return [encoder autorelease];
}

- (void)encoderEnded:(FakeEncoder *)which {
    if (encoder == which) encoder = nil;
}

- (fake_command *)newCommand {
    if (n_commands == capacity) {
        capacity = capacity * 2 + 16;
        commands = realloc(commands, (size_t)capacity * sizeof *commands);
        if (!commands) abort();
    }
    commands[n_commands] = (fake_command){NULL, nil, 0};
    return &commands[n_commands++];
}

- (void)use:(id)object {
    [used addObject:object];
}

- (void)addDispatch:(fake_dispatch *)dispatch {
    [self newCommand]->dispatch = dispatch;
}

- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
    fake_leave_behind();
    if (![self isOpenFor:"encodeSignalEvent"]) return;
    if (fake_is_zombie(event)) {
        fake_object_to("encodeSignalEvent: the event was deallocated");
        return;
    }
    [self use:event];
    fake_command *command = [self newCommand];
    command->event = (FakeEvent *)event;
    command->value = value;
}

- (void)commit {
    fake_leave_behind();
    if (![self isOpenFor:"commit"]) return;
    fake_state *state = fake_lock();
    status = MTLCommandBufferStatusCommitted;
    committed_at = fake_clock_tick();
    state->counters.commits++;
    state->unfinished++;
    if (state->counters.commits == state->options.fail_commit) {
        fail_code = state->options.fail_code;
        fail_signals = state->options.fail_signals;
    }
    [queue append:self];
    fake_changed();
    fake_unlock();
}

- (void)waitUntilCompleted {
    fake_leave_behind();
    fake_state *state = fake_lock();
    bool committed = status != MTLCommandBufferStatusNotEnqueued;
    if (committed && status < MTLCommandBufferStatusCompleted) state->counters.waits++;
    while (committed && status < MTLCommandBufferStatusCompleted) fake_wait(INT64_MAX);
    fake_unlock();
    if (!committed) fake_object_to("waitUntilCompleted: the command buffer was never committed");
}

- (MTLCommandBufferStatus)status {
    fake_leave_behind();
    fake_lock();
    MTLCommandBufferStatus now = status;
    fake_unlock();
    return now;
}

- (NSError *)error {
    fake_leave_behind();
    return [self status] == MTLCommandBufferStatusError ? failure : nil;
}

/* ---- On the queue's thread ---- */

- (void)reach:(FakeBuffer *)buffer {
    for (int64_t i = n_reached; i-- > 0;) {
        if (reached[i] == buffer) return;
    }
    if (n_reached == reached_capacity) {
        reached_capacity = reached_capacity * 2 + 64;
        reached = realloc(reached, (size_t)reached_capacity * sizeof *reached);
        if (!reached) abort();
    }
    reached[n_reached++] = buffer;
    buffer->reached++;
}

- (void)setStatus:(MTLCommandBufferStatus)to {
    fake_lock();
    status = to;
    fake_changed();
    fake_unlock();
}

- (void)failWith:(NSInteger)code text:(const char *)text {
    NSDictionary *info = @{NSLocalizedDescriptionKey : [NSString stringWithUTF8String:text]};
    failure = [[FakeError alloc] initWithDomain:MTLCommandBufferErrorDomain
                                           code:code
                                       userInfo:info];
}

/* One that fails on purpose has run half of its dispatches. */
- (void)runCommands {
    int64_t n_dispatches = 0, n_run = 0;
    for (int64_t i = 0; i < n_commands; i++) n_dispatches += commands[i].dispatch != NULL;
    if (fail_code) [self failWith:(NSInteger)fail_code text:"failed on purpose"];
    for (int64_t i = 0; i < n_commands; i++) {
        fake_command *command = &commands[i];
        char fault[EMULATED_FAULT_BYTES];
        if (command->event) {
            fake_delay();
            if (!failure || fail_signals) [command->event setSignaledValue:command->value];
        } else if (!(fail_code && n_run++ >= n_dispatches / 2) && !(failure && !fail_code)) {
            if (!fake_run(self, command->dispatch, fault)) {
                [failure release];
                [self failWith:MTLCommandBufferErrorPageFault text:fault];
            }
        }
    }
}

- (void)letGo {
    fake_lock();
    for (int64_t i = 0; i < n_reached; i++) reached[i]->reached--;
    n_reached = 0;
    fake_unlock();
    [used removeAllObjects];
}

- (void)run {
    fake_delay();
    [self setStatus:MTLCommandBufferStatusScheduled];
    fake_delay();
    [self runCommands];
    fake_delay();
    [self letGo];
    fake_lock();
    status = failure ? MTLCommandBufferStatusError : MTLCommandBufferStatusCompleted;
    queue->outstanding--;
    outstanding = false;
    fake_changed();
    fake_unlock();
}

@end
