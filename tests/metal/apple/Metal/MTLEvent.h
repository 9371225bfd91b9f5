/* Counters that the GPU raises and the processor waits for. */
#ifndef PLUMB_TESTS_METAL_MTLEVENT_H
#define PLUMB_TESTS_METAL_MTLEVENT_H

#import <Metal/MTLDefines.h>
#include <stdint.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlevent */
API_AVAILABLE(macos(10.14))
@protocol MTLEvent <NSObject>
@end

/* https://developer.apple.com/documentation/metal/mtlsharedevent */
API_AVAILABLE(macos(10.14))
@protocol MTLSharedEvent <MTLEvent>

/* Waits until signaledValue is at least `value`; NO when that took longer than `milliseconds`.
 * https://developer.apple.com/documentation/metal/mtlsharedevent/wait(untilsignaledvalue:timeoutms:) */
- (BOOL)waitUntilSignaledValue:(uint64_t)value
                     timeoutMS:(uint64_t)milliseconds API_AVAILABLE(macos(12.0));

/* https://developer.apple.com/documentation/metal/mtlsharedevent/signaledvalue */
@property (readwrite) uint64_t signaledValue;

@end

NS_ASSUME_NONNULL_END

#endif
