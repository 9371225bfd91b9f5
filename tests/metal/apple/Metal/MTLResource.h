/* Where a resource's memory lies. */
#ifndef PLUMB_TESTS_METAL_MTLRESOURCE_H
#define PLUMB_TESTS_METAL_MTLRESOURCE_H

#import <Metal/MTLAllocation.h>
#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlcpucachemode */
typedef NS_ENUM(NSUInteger, MTLCPUCacheMode) {
    MTLCPUCacheModeDefaultCache = 0,
    MTLCPUCacheModeWriteCombined = 1,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlstoragemode */
typedef NS_ENUM(NSUInteger, MTLStorageMode) {
    MTLStorageModeShared = 0,
    MTLStorageModeManaged = 1,
    MTLStorageModePrivate = 2,
    MTLStorageModeMemoryless API_AVAILABLE(macos(11.0)) = 3,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlhazardtrackingmode */
typedef NS_ENUM(NSUInteger, MTLHazardTrackingMode) {
    MTLHazardTrackingModeDefault = 0,
    MTLHazardTrackingModeUntracked = 1,
    MTLHazardTrackingModeTracked = 2,
} API_AVAILABLE(macos(10.15));

#define MTLResourceCPUCacheModeShift 0
#define MTLResourceStorageModeShift 4
#define MTLResourceHazardTrackingModeShift 8

/* https://developer.apple.com/documentation/metal/mtlresourceoptions */
typedef NS_OPTIONS(NSUInteger, MTLResourceOptions) {
    MTLResourceCPUCacheModeDefaultCache = MTLCPUCacheModeDefaultCache
                                          << MTLResourceCPUCacheModeShift,
    MTLResourceCPUCacheModeWriteCombined = MTLCPUCacheModeWriteCombined
                                           << MTLResourceCPUCacheModeShift,
    MTLResourceStorageModeShared API_AVAILABLE(macos(10.11)) = MTLStorageModeShared
                                                               << MTLResourceStorageModeShift,
    MTLResourceStorageModeManaged API_AVAILABLE(macos(10.11)) = MTLStorageModeManaged
                                                                << MTLResourceStorageModeShift,
    MTLResourceStorageModePrivate API_AVAILABLE(macos(10.11)) = MTLStorageModePrivate
                                                                << MTLResourceStorageModeShift,
    MTLResourceStorageModeMemoryless API_AVAILABLE(macos(11.0)) = MTLStorageModeMemoryless
                                                                  << MTLResourceStorageModeShift,
    MTLResourceHazardTrackingModeDefault API_AVAILABLE(macos(10.13)) =
        MTLHazardTrackingModeDefault << MTLResourceHazardTrackingModeShift,
    MTLResourceHazardTrackingModeUntracked API_AVAILABLE(macos(10.13)) =
        MTLHazardTrackingModeUntracked << MTLResourceHazardTrackingModeShift,
    MTLResourceHazardTrackingModeTracked API_AVAILABLE(macos(10.15)) =
        MTLHazardTrackingModeTracked << MTLResourceHazardTrackingModeShift,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlresource */
API_AVAILABLE(macos(10.11))
@protocol MTLResource <MTLAllocation>
@end

NS_ASSUME_NONNULL_END

#endif
