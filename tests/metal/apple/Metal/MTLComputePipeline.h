/* A kernel ready to run. */
#ifndef PLUMB_TESTS_METAL_MTLCOMPUTEPIPELINE_H
#define PLUMB_TESTS_METAL_MTLCOMPUTEPIPELINE_H

#import <Metal/MTLAllocation.h>
#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlcomputepipelinestate (MTLAllocation since the SDK
 * of macOS 26: an older one says NSObject alone) */
API_AVAILABLE(macos(10.11))
@protocol MTLComputePipelineState <NSObject>

/* https://developer.apple.com/documentation/metal/mtlcomputepipelinestate/maxtotalthreadsperthreadgroup */
@property (readonly) NSUInteger maxTotalThreadsPerThreadgroup;

/* https://developer.apple.com/documentation/metal/mtlcomputepipelinestate/threadexecutionwidth */
@property (readonly) NSUInteger threadExecutionWidth;

/* https://developer.apple.com/documentation/metal/mtlcomputepipelinestate/staticthreadgroupmemorylength */
@property (readonly) NSUInteger staticThreadgroupMemoryLength API_AVAILABLE(macos(10.13));

@end

NS_ASSUME_NONNULL_END

#endif
