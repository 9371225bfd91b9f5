/* Command buffers: filled by encoders, one at a time, then committed once; run by their queue. */
#ifndef PLUMB_TESTS_METAL_FAKE_COMMAND_BUFFER_H
#define PLUMB_TESTS_METAL_FAKE_COMMAND_BUFFER_H

#import "fake_commands.h"

@class FakeEncoder, FakeQueue;

@interface FakeCommandBuffer : FakeObject <MTLCommandBuffer> {
  @public
    FakeQueue *queue; /* retained */
    fake_command *commands;
    int64_t n_commands;
    uint64_t committed_at; /* by the state's clock */
    FakeBuffer **reached;  /* buffers whose addresses it has met, not retained; under the lock */
    int64_t n_reached;
    FakeCommandBuffer *next; /* in the queue's list */
  @private
    FakeEncoder *encoder; /* the open one, not retained */
    NSMutableArray *used; /* retained until it has ended */
    int64_t capacity, reached_capacity;
    MTLCommandBufferStatus status; /* under the lock */
    bool outstanding;              /* counts against the queue's limit; under the lock */
    int64_t fail_code;             /* what it ends with on purpose, or 0 */
    bool fail_signals;
    FakeError *failure;
}
- (instancetype)initWithQueue:(FakeQueue *)of;
- (void)use:(id)object;
/* Takes the dispatch over. */
- (void)addDispatch:(fake_dispatch *)dispatch;
- (void)encoderEnded:(FakeEncoder *)which;
/* Notes that the running command buffer can reach the buffer by its address; lock held. */
- (void)reach:(FakeBuffer *)buffer;
/* On the queue's thread. */
- (void)run;
@end

#endif
