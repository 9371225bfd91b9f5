/* Memory that the processor and the GPU share. */
#ifndef PLUMB_TESTS_METAL_MTLBUFFER_H
#define PLUMB_TESTS_METAL_MTLBUFFER_H

#import <Metal/MTLDefines.h>
#import <Metal/MTLGPUAddress.h>
#import <Metal/MTLResource.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlbuffer */
API_AVAILABLE(macos(10.11))
@protocol MTLBuffer <MTLResource>

/* https://developer.apple.com/documentation/metal/mtlbuffer/length */
@property (readonly) NSUInteger length;

/* https://developer.apple.com/documentation/metal/mtlbuffer/contents() */
- (void *)contents NS_RETURNS_INNER_POINTER;

/* https://developer.apple.com/documentation/metal/mtlbuffer/gpuaddress */
@property (readonly) MTLGPUAddress gpuAddress API_AVAILABLE(macos(13.0));

@end

NS_ASSUME_NONNULL_END

#endif
