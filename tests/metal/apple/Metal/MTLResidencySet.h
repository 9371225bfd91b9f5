/* Memory that stays where the GPU can reach it. */
#ifndef PLUMB_TESTS_METAL_MTLRESIDENCYSET_H
#define PLUMB_TESTS_METAL_MTLRESIDENCYSET_H

#import <Metal/MTLAllocation.h>
#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlresidencysetdescriptor */
API_AVAILABLE(macos(15.0))
@interface MTLResidencySetDescriptor : NSObject <NSCopying>

/* https://developer.apple.com/documentation/metal/mtlresidencysetdescriptor/label */
@property (nullable, copy, nonatomic) NSString *label;

/* https://developer.apple.com/documentation/metal/mtlresidencysetdescriptor/initialcapacity */
@property (nonatomic) NSUInteger initialCapacity;

@end

/* Additions and removals count once committed.
 * https://developer.apple.com/documentation/metal/mtlresidencyset */
API_AVAILABLE(macos(15.0))
@protocol MTLResidencySet <NSObject>

/* https://developer.apple.com/documentation/metal/mtlresidencyset/requestresidency() */
- (void)requestResidency;

/* https://developer.apple.com/documentation/metal/mtlresidencyset/endresidency() */
- (void)endResidency;

/* https://developer.apple.com/documentation/metal/mtlresidencyset/addallocation(_:) */
- (void)addAllocation:(id<MTLAllocation>)allocation;

/* https://developer.apple.com/documentation/metal/mtlresidencyset/removeallocation(_:) */
- (void)removeAllocation:(id<MTLAllocation>)allocation;

/* https://developer.apple.com/documentation/metal/mtlresidencyset/commit() */
- (void)commit;

@end

NS_ASSUME_NONNULL_END

#endif
