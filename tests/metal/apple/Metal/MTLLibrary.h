/* Kernels compiled from source. */
#ifndef PLUMB_TESTS_METAL_MTLLIBRARY_H
#define PLUMB_TESTS_METAL_MTLLIBRARY_H

#import <Metal/MTLDefines.h>

NS_ASSUME_NONNULL_BEGIN

/* https://developer.apple.com/documentation/metal/mtlfunction */
API_AVAILABLE(macos(10.11))
@protocol MTLFunction <NSObject>
@end

/* https://developer.apple.com/documentation/metal/mtllanguageversion */
typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
    MTLLanguageVersion1_1 API_AVAILABLE(macos(10.11)) = (1 << 16) + 1,
    MTLLanguageVersion1_2 API_AVAILABLE(macos(10.12)) = (1 << 16) + 2,
    MTLLanguageVersion2_0 API_AVAILABLE(macos(10.13)) = (2 << 16),
    MTLLanguageVersion2_1 API_AVAILABLE(macos(10.14)) = (2 << 16) + 1,
    MTLLanguageVersion2_2 API_AVAILABLE(macos(10.15)) = (2 << 16) + 2,
    MTLLanguageVersion2_3 API_AVAILABLE(macos(11.0)) = (2 << 16) + 3,
    MTLLanguageVersion2_4 API_AVAILABLE(macos(12.0)) = (2 << 16) + 4,
    MTLLanguageVersion3_0 API_AVAILABLE(macos(13.0)) = (3 << 16) + 0,
    MTLLanguageVersion3_1 API_AVAILABLE(macos(14.0)) = (3 << 16) + 1,
    MTLLanguageVersion3_2 API_AVAILABLE(macos(15.0)) = (3 << 16) + 2,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtlmathmode */
typedef NS_ENUM(NSInteger, MTLMathMode) {
    MTLMathModeSafe = 0,
    MTLMathModeRelaxed = 1,
    MTLMathModeFast = 2,
};

/* https://developer.apple.com/documentation/metal/mtlmathfloatingpointfunctions */
typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions) {
    MTLMathFloatingPointFunctionsFast = 0,
    MTLMathFloatingPointFunctionsPrecise = 1,
};

/* https://developer.apple.com/documentation/metal/mtlcompileoptions */
MTL_EXPORT API_AVAILABLE(macos(10.11))
@interface MTLCompileOptions : NSObject <NSCopying>

/* https://developer.apple.com/documentation/metal/mtlcompileoptions/mathmode */
@property (readwrite, nonatomic) MTLMathMode mathMode API_AVAILABLE(macos(15.0));

/* https://developer.apple.com/documentation/metal/mtlcompileoptions/mathfloatingpointfunctions */
@property (nonatomic) MTLMathFloatingPointFunctions mathFloatingPointFunctions
    API_AVAILABLE(macos(15.0));

/* https://developer.apple.com/documentation/metal/mtlcompileoptions/languageversion */
@property (readwrite, nonatomic) MTLLanguageVersion languageVersion API_AVAILABLE(macos(10.11));

@end

/* https://developer.apple.com/documentation/metal/mtllibraryerrordomain */
API_AVAILABLE(macos(10.11))
MTL_EXTERN NSErrorDomain const MTLLibraryErrorDomain;

/* https://developer.apple.com/documentation/metal/mtllibraryerror-swift.struct/code */
typedef NS_ENUM(NSUInteger, MTLLibraryError) {
    MTLLibraryErrorUnsupported = 1,
    MTLLibraryErrorInternal = 2,
    MTLLibraryErrorCompileFailure = 3,
    MTLLibraryErrorCompileWarning = 4,
    MTLLibraryErrorFunctionNotFound API_AVAILABLE(macos(10.12)) = 5,
    MTLLibraryErrorFileNotFound API_AVAILABLE(macos(10.12)) = 6,
} API_AVAILABLE(macos(10.11));

/* https://developer.apple.com/documentation/metal/mtllibrary */
API_AVAILABLE(macos(10.11))
@protocol MTLLibrary <NSObject>

/* nil when the library has no such function.
 * https://developer.apple.com/documentation/metal/mtllibrary/makefunction(name:) */
- (nullable id<MTLFunction>)newFunctionWithName:(NSString *)functionName;

@end

NS_ASSUME_NONNULL_END

#endif
