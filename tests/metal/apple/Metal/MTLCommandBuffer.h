/* A list of commands that is submitted as one. */
#ifndef PLUMB_TESTS_METAL_MTLCOMMANDBUFFER_H
#define PLUMB_TESTS_METAL_MTLCOMMANDBUFFER_H

#import <Metal/MTLDefines.h>
#include <stdint.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLComputeCommandEncoder;
@protocol MTLEvent;

/* https://developer.apple.com/documentation/metal/mtlcommandbufferstatus */
typedef NS_ENUM(NSUInteger, MTLCommandBufferStatus) {
    MTLCommandBufferStatusNotEnqueued = 0,
    MTLCommandBufferStatusEnqueued = 1,
    MTLCommandBufferStatusCommitted = 2,
    MTLCommandBufferStatusScheduled = 3,
    MTLCommandBufferStatusCompleted = 4,
    MTLCommandBufferStatusError = 5,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlcommandbuffererrordomain */
API_AVAILABLE(macos(10.11))
MTL_EXTERN NSErrorDomain const MTLCommandBufferErrorDomain;

/* https://developer.apple.com/documentation/metal/mtlcommandbuffererror-swift.struct/code */
typedef NS_ENUM(NSUInteger, MTLCommandBufferError) {
    MTLCommandBufferErrorNone = 0,
    MTLCommandBufferErrorInternal = 1,
    MTLCommandBufferErrorTimeout = 2,
    MTLCommandBufferErrorPageFault = 3,
    MTLCommandBufferErrorAccessRevoked = 4,
    MTLCommandBufferErrorNotPermitted = 7,
    MTLCommandBufferErrorOutOfMemory = 8,
    MTLCommandBufferErrorInvalidResource = 9,
    MTLCommandBufferErrorMemoryless API_AVAILABLE(macos(11.0)) = 10,
    MTLCommandBufferErrorDeviceRemoved API_AVAILABLE(macos(10.13)) = 11,
    MTLCommandBufferErrorStackOverflow API_AVAILABLE(macos(12.0)) = 12,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlcommandbuffer */
API_AVAILABLE(macos(10.11))
@protocol MTLCommandBuffer <NSObject>

/* https://developer.apple.com/documentation/metal/mtlcommandbuffer/commit() */
- (void)commit;

/* https://developer.apple.com/documentation/metal/mtlcommandbuffer/waituntilcompleted() */
- (void)waitUntilCompleted;

/* https://developer.apple.com/documentation/metal/mtlcommandbuffer/status */
@property (readonly) MTLCommandBufferStatus status;

/* https://developer.apple.com/documentation/metal/mtlcommandbuffer/error */
@property (nullable, readonly) NSError *error;

/* Autoreleased; its dispatches run one after another.
 * https://developer.apple.com/documentation/metal/mtlcommandbuffer/makecomputecommandencoder() */
- (nullable id<MTLComputeCommandEncoder>)computeCommandEncoder;

/* Only between encoders.
 * https://developer.apple.com/documentation/metal/mtlcommandbuffer/encodesignalevent(_:value:) */
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value API_AVAILABLE(macos(10.14));

@end

NS_ASSUME_NONNULL_END

#endif
