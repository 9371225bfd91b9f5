/* A GPU: what it can do, and everything made for it. */
#ifndef PLUMB_TESTS_METAL_MTLDEVICE_H
#define PLUMB_TESTS_METAL_MTLDEVICE_H

#import <Metal/MTLDefines.h>
#import <Metal/MTLLibrary.h>
#import <Metal/MTLResource.h>
#import <Metal/MTLTypes.h>
#include <stdint.h>

NS_ASSUME_NONNULL_BEGIN

@protocol MTLBuffer;
@protocol MTLCommandQueue;
@protocol MTLComputePipelineState;
@protocol MTLDevice;
@protocol MTLResidencySet;
@protocol MTLSharedEvent;
@class MTLResidencySetDescriptor;

/* The caller releases it; nil without a GPU.
 * https://developer.apple.com/documentation/metal/mtlcreatesystemdefaultdevice() */
MTL_EXTERN id<MTLDevice> _Nullable MTLCreateSystemDefaultDevice(void)
    API_AVAILABLE(macos(10.11)) NS_RETURNS_RETAINED;

/* https://developer.apple.com/documentation/metal/mtlgpufamily */
typedef NS_ENUM(NSInteger, MTLGPUFamily) {
    MTLGPUFamilyApple1 = 1001,
    MTLGPUFamilyApple2 = 1002,
    MTLGPUFamilyApple3 = 1003,
    MTLGPUFamilyApple4 = 1004,
    MTLGPUFamilyApple5 = 1005,
    MTLGPUFamilyApple6 = 1006,
    MTLGPUFamilyApple7 = 1007,
    MTLGPUFamilyApple8 = 1008,
    MTLGPUFamilyApple9 = 1009,
    MTLGPUFamilyMac2 = 2002,
    MTLGPUFamilyCommon1 = 3001,
    MTLGPUFamilyCommon2 = 3002,
    MTLGPUFamilyCommon3 = 3003,
    MTLGPUFamilyMetal3 API_AVAILABLE(macos(13.0)) = 5001,
} API_AVAILABLE(macos(10.15));

/* https://developer.apple.com/documentation/metal/mtldevice */
API_AVAILABLE(macos(10.11))
@protocol MTLDevice <NSObject>

/* https://developer.apple.com/documentation/metal/mtldevice/name */
@property (nonnull, readonly) NSString *name;

/* https://developer.apple.com/documentation/metal/mtldevice/hasunifiedmemory */
@property (readonly) BOOL hasUnifiedMemory API_AVAILABLE(macos(10.15));

/* In bytes.
 * https://developer.apple.com/documentation/metal/mtldevice/recommendedmaxworkingsetsize */
@property (readonly) uint64_t recommendedMaxWorkingSetSize API_AVAILABLE(macos(10.12));

/* In bytes.
 * https://developer.apple.com/documentation/metal/mtldevice/currentallocatedsize */
@property (readonly) NSUInteger currentAllocatedSize API_AVAILABLE(macos(10.13));

/* https://developer.apple.com/documentation/metal/mtldevice/makecommandqueue() */
- (nullable id<MTLCommandQueue>)newCommandQueue;

/* https://developer.apple.com/documentation/metal/mtldevice/makebuffer(length:options:) */
- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length
                                      options:(MTLResourceOptions)options;

/* An error may be a warning: only nil says that there is no library.
 * https://developer.apple.com/documentation/metal/mtldevice/makelibrary(source:options:) */
- (nullable id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                                        options:(nullable MTLCompileOptions *)options
                                          error:(__autoreleasing NSError **)error;

/* https://developer.apple.com/documentation/metal/mtldevice/makecomputepipelinestate(function:) */
- (nullable id<MTLComputePipelineState>)
    newComputePipelineStateWithFunction:(id<MTLFunction>)computeFunction
                                  error:(__autoreleasing NSError **)error;

/* https://developer.apple.com/documentation/metal/mtldevice/supportsfamily(_:) */
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily API_AVAILABLE(macos(10.15));

/* In bytes.
 * https://developer.apple.com/documentation/metal/mtldevice/maxthreadgroupmemorylength */
@property (readonly) NSUInteger maxThreadgroupMemoryLength API_AVAILABLE(macos(10.13));

/* https://developer.apple.com/documentation/metal/mtldevice/makesharedevent() */
- (nullable id<MTLSharedEvent>)newSharedEvent API_AVAILABLE(macos(10.14));

/* In bytes.
 * https://developer.apple.com/documentation/metal/mtldevice/maxbufferlength */
@property (readonly) NSUInteger maxBufferLength API_AVAILABLE(macos(10.14));

/* https://developer.apple.com/documentation/metal/mtldevice/makeresidencyset(descriptor:) */
- (nullable id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)desc
                                                        error:(NSError *_Nullable *)error
    API_AVAILABLE(macos(15.0));

@end

NS_ASSUME_NONNULL_END

#endif
