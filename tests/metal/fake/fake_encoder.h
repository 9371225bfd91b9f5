/* Encoders check what Metal's validation layer checks when a call is made; what it objects to is
 * recorded and not encoded. */
#ifndef PLUMB_TESTS_METAL_FAKE_ENCODER_H
#define PLUMB_TESTS_METAL_FAKE_ENCODER_H

#import "fake_commands.h"

@class FakeCommandBuffer;

@interface FakeEncoder : FakeObject <MTLComputeCommandEncoder> {
    FakeCommandBuffer *buffer; /* retained */
    NSMutableArray *bound;     /* every buffer ever bound, kept until the encoder is deallocated */
    fake_dispatch next;        /* bindings stay from one dispatch to the next */
    uint32_t fresh_threadgroup; /* bits: lengths set since the last dispatch */
    bool ended;
}
- (instancetype)initWithCommandBuffer:(FakeCommandBuffer *)of;
@end

#endif
