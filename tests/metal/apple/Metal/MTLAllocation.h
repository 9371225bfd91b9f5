/* What a residency set may hold. */
#ifndef PLUMB_TESTS_METAL_MTLALLOCATION_H
#define PLUMB_TESTS_METAL_MTLALLOCATION_H

#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlallocation */
API_AVAILABLE(macos(15.0))
@protocol MTLAllocation <NSObject>

/* https://developer.apple.com/documentation/metal/mtlallocation/allocatedsize */
@property (readonly) NSUInteger allocatedSize API_AVAILABLE(macos(15.0));

@end

NS_ASSUME_NONNULL_END

#endif
