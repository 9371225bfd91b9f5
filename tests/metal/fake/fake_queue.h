/* Queues: one thread each, which runs command buffers in the order of their commits. */
#ifndef PLUMB_TESTS_METAL_FAKE_QUEUE_H
#define PLUMB_TESTS_METAL_FAKE_QUEUE_H

#import "fake_command_buffer.h"
#import "fake_device.h"
#import "fake_residency.h"

enum { FAKE_QUEUE_SETS = 32, FAKE_OUTSTANDING = 64 };

typedef struct fake_worker fake_worker;

@interface FakeQueue : FakeObject <MTLCommandQueue> {
  @public
    uint8_t *constants;  /* of the dispatch that runs (fake_run.h) */
    int64_t outstanding; /* command buffers that have not completed; under the lock */
  @private
    FakeDevice *device;  /* retained */
    fake_worker *worker;
    struct {
        FakeResidencySet *set; /* retained */
        uint64_t since;        /* by the state's clock */
    } attached[FAKE_QUEUE_SETS]; /* under the lock */
    int n_attached;
}
- (instancetype)initWithDevice:(FakeDevice *)of;
/* Lock held. */
- (void)append:(FakeCommandBuffer *)buffer;
/* Whether a command buffer committed at that time may use the buffer by its address; lock held. */
- (bool)hasResident:(const FakeBuffer *)buffer at:(uint64_t)time;
@end

#endif
