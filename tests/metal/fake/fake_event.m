/* Waiting is with the one condition of the state. */
#import "fake_event.h"

@implementation FakeEvent

- (uint64_t)signaledValue {
    fake_lock();
    uint64_t now = value;
    fake_unlock();
    return now;
}

- (void)setSignaledValue:(uint64_t)to {
    fake_lock();
    bool back = to < value;
    value = to;
    fake_changed();
    fake_unlock();
    if (back) fake_object_to("a shared event goes back in value");
}

- (BOOL)waitUntilSignaledValue:(uint64_t)wanted timeoutMS:(uint64_t)milliseconds {
    fake_leave_behind();
    const uint64_t year_ms = UINT64_C(365) * 24 * 3600 * 1000;
    uint64_t limited = milliseconds < year_ms ? milliseconds : year_ms;
    int64_t deadline = fake_clock_ns() + (int64_t)limited * 1000000;
    fake_state *state = fake_lock();
    if (value < wanted) state->counters.waits++;
    while (value < wanted && fake_wait(deadline)) {
    }
    bool reached = value >= wanted;
    fake_unlock();
    return reached;
}

@end
