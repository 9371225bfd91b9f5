/* What all encoders have. */
#ifndef PLUMB_TESTS_METAL_MTLCOMMANDENCODER_H
#define PLUMB_TESTS_METAL_MTLCOMMANDENCODER_H

#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlbarrierscope */
typedef NS_OPTIONS(NSUInteger, MTLBarrierScope) {
    MTLBarrierScopeBuffers = 1 << 0,
    MTLBarrierScopeTextures = 1 << 1,
    MTLBarrierScopeRenderTargets API_AVAILABLE(macos(10.14)) = 1 << 2,
} API_AVAILABLE(macos(10.14));

/* https://developer.apple.com/documentation/metal/mtlcommandencoder */
API_AVAILABLE(macos(10.11))
@protocol MTLCommandEncoder <NSObject>

/* https://developer.apple.com/documentation/metal/mtlcommandencoder/endencoding() */
- (void)endEncoding;

@end

NS_ASSUME_NONNULL_END

#endif
