/* Shared events: a value that command buffers raise and the processor waits for. */
#ifndef PLUMB_TESTS_METAL_FAKE_EVENT_H
#define PLUMB_TESTS_METAL_FAKE_EVENT_H

#include "fake_object.h"

@interface FakeEvent : FakeObject <MTLSharedEvent> {
    uint64_t value; /* under the lock */
}
@end

#endif
