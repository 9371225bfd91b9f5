/* What a command buffer holds: dispatches with everything they were given, and signals of events. */
#ifndef PLUMB_TESTS_METAL_FAKE_COMMANDS_H
#define PLUMB_TESTS_METAL_FAKE_COMMANDS_H

#import "fake_buffer.h"
#import "fake_device.h"
#import "fake_event.h"

typedef struct fake_binding {
    FakeBuffer *buffer; /* from an offset on; or the bytes; or neither: not bound */
    int64_t offset;
    NSData *bytes;
} fake_binding;

/* Objects are kept by the command buffer. */
typedef struct fake_dispatch {
    FakePipeline *pipeline;
    fake_binding binding[EMULATED_ARGUMENTS];
    int64_t threadgroup_bytes[EMULATED_ARGUMENTS];
    uint32_t groups[3], threads[3];
} fake_dispatch;

/* A dispatch, or an event to be raised to a value. */
typedef struct fake_command {
    fake_dispatch *dispatch;
    FakeEvent *event;
    uint64_t value;
} fake_command;

/* The bytes from the bound offset to the end. */
int64_t fake_bound_bytes(const fake_binding *binding);
const uint8_t *fake_bound_start(const fake_binding *binding);

#endif
