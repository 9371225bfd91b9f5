/* Kernels, their arguments and their grids, written into a command buffer. */
#ifndef PLUMB_TESTS_METAL_MTLCOMPUTECOMMANDENCODER_H
#define PLUMB_TESTS_METAL_MTLCOMPUTECOMMANDENCODER_H

#import <Metal/MTLCommandEncoder.h>
#import <Metal/MTLDefines.h>
#import <Metal/MTLTypes.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLBuffer;
@protocol MTLComputePipelineState;

/* https://developer.apple.com/documentation/metal/mtlcomputecommandencoder */
API_AVAILABLE(macos(10.11))
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>

/* https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setcomputepipelinestate(_:) */
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;

/* Copies the bytes, at most 4 KB.
 * https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setbytes(_:length:index:) */
- (void)setBytes:(const void *)bytes
          length:(NSUInteger)length
         atIndex:(NSUInteger)index API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setbuffer(_:offset:index:) */
- (void)setBuffer:(nullable id<MTLBuffer>)buffer
           offset:(NSUInteger)offset
          atIndex:(NSUInteger)index;

/* In bytes, a multiple of 16.
 * https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/setthreadgroupmemorylength(_:index:) */
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index;

/* https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/dispatchthreadgroups(_:threadsperthreadgroup:) */
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup;

/* Orders the dispatches of a concurrent encoder; a serial one has that order already and ignores it.
 * https://developer.apple.com/documentation/metal/mtlcomputecommandencoder/memorybarrier(scope:) */
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope API_AVAILABLE(macos(10.14));

@end

NS_ASSUME_NONNULL_END

#endif
