/* A queue that runs command buffers in the order of their commits. */
#ifndef PLUMB_TESTS_METAL_MTLCOMMANDQUEUE_H
#define PLUMB_TESTS_METAL_MTLCOMMANDQUEUE_H

#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLCommandBuffer;
@protocol MTLResidencySet;

/* https://developer.apple.com/documentation/metal/mtlcommandqueue */
API_AVAILABLE(macos(10.11))
@protocol MTLCommandQueue <NSObject>

/* Autoreleased; keeps what it uses until it has run.  Waits while the queue has 64 unfinished ones.
 * https://developer.apple.com/documentation/metal/mtlcommandqueue/makecommandbuffer() */
- (nullable id<MTLCommandBuffer>)commandBuffer;

/* For every command buffer committed from now on; at most 32 sets.
 * https://developer.apple.com/documentation/metal/mtlcommandqueue/addresidencyset(_:) */
- (void)addResidencySet:(id<MTLResidencySet>)residencySet API_AVAILABLE(macos(15.0));

@end

NS_ASSUME_NONNULL_END

#endif
