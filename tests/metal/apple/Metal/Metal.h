/* Metal as the host sees it: Apple's names, types, values and availability, and nothing the host does not
 * call.  Each declaration names the page of Apple's documentation that states it; types, nullability and
 * API_AVAILABLE are those of the SDK's headers, of which only macOS is kept.  Pages carry Swift's names:
 * they show Objective-C with ?language=objc. */
#ifndef PLUMB_TESTS_METAL_METAL_H
#define PLUMB_TESTS_METAL_METAL_H

#import <Metal/MTLAllocation.h>
#import <Metal/MTLBuffer.h>
#import <Metal/MTLCommandBuffer.h>
#import <Metal/MTLCommandEncoder.h>
#import <Metal/MTLCommandQueue.h>
#import <Metal/MTLComputeCommandEncoder.h>
#import <Metal/MTLComputePipeline.h>
#import <Metal/MTLDefines.h>
#import <Metal/MTLDevice.h>
#import <Metal/MTLEvent.h>
#import <Metal/MTLGPUAddress.h>
#import <Metal/MTLLibrary.h>
#import <Metal/MTLResidencySet.h>
#import <Metal/MTLResource.h>
#import <Metal/MTLTypes.h>

#endif
