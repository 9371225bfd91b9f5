/* What Apple's headers take from the SDK, for compilers without one.  Availability is written as Apple
 * writes it and expands to nothing: tests/metal/apple/check_api.py reads it instead. */
#ifndef PLUMB_TESTS_METAL_MTLDEFINES_H
#define PLUMB_TESTS_METAL_MTLDEFINES_H

#import <Foundation/Foundation.h>

#ifndef API_AVAILABLE
#define API_AVAILABLE(...)
#endif

#ifndef NS_RETURNS_INNER_POINTER
#define NS_RETURNS_INNER_POINTER __attribute__((objc_returns_inner_pointer))
#endif

#define MTL_EXPORT __attribute__((visibility("default")))
#define MTL_EXTERN extern MTL_EXPORT
#define MTL_INLINE static inline

#endif
