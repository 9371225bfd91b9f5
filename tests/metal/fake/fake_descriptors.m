/* The two classes that Metal's interface has beside its protocols. Their instances are of
 * subclasses here, since the declarations, which are Apple's, leave no room for instance variables.
 */
#import "fake_object.h"

@interface FakeCompileOptions : MTLCompileOptions {
    MTLMathMode mode;
    MTLMathFloatingPointFunctions functions;
    MTLLanguageVersion version;
    bool autoreleased;
}
@end

@interface FakeResidencySetDescriptor : MTLResidencySetDescriptor {
    NSString *name;
    NSUInteger capacity;
    bool autoreleased;
}
@end

@implementation MTLCompileOptions

@dynamic mathMode, mathFloatingPointFunctions, languageVersion;

+ (instancetype)allocWithZone:(NSZone *)zone {
    return self == [MTLCompileOptions class] ? [FakeCompileOptions allocWithZone:zone]
                                             : [super allocWithZone:zone];
}

- (id)copyWithZone:(NSZone *)zone {
    MTLCompileOptions *copy = [[MTLCompileOptions allocWithZone:zone] init];
    copy.mathMode = self.mathMode;
    copy.mathFloatingPointFunctions = self.mathFloatingPointFunctions;
    copy.languageVersion = self.languageVersion;
    return copy;
}

@end

@implementation MTLResidencySetDescriptor

@dynamic label, initialCapacity;

+ (instancetype)allocWithZone:(NSZone *)zone {
    return self == [MTLResidencySetDescriptor class]
               ? [FakeResidencySetDescriptor allocWithZone:zone]
               : [super allocWithZone:zone];
}

- (id)copyWithZone:(NSZone *)zone {
    MTLResidencySetDescriptor *copy = [[MTLResidencySetDescriptor allocWithZone:zone] init];
    copy.label = self.label;
    copy.initialCapacity = self.initialCapacity;
    return copy;
}

@end

/* As in fake_object.m. */
#pragma clang diagnostic ignored "-Wobjc-missing-super-calls"

@implementation FakeCompileOptions

/* The documented defaults; of the language, the newest version that macOS 15 knows. */
- (instancetype)init {
    self = [super init];
    if (!self) return nil;
    fake_born();
    mode = MTLMathModeFast;
    functions = MTLMathFloatingPointFunctionsFast;
    version = MTLLanguageVersion3_2;
    return self;
}

- (instancetype)autorelease {
    fake_autoreleased(&autoreleased);
    return [super autorelease];
}

- (void)dealloc {
    fake_died(self, autoreleased);
}

- (MTLMathMode)mathMode {
    return mode;
}

- (void)setMathMode:(MTLMathMode)to {
    mode = to;
}

- (MTLMathFloatingPointFunctions)mathFloatingPointFunctions {
    return functions;
}

- (void)setMathFloatingPointFunctions:(MTLMathFloatingPointFunctions)to {
    functions = to;
}

- (MTLLanguageVersion)languageVersion {
    return version;
}

- (void)setLanguageVersion:(MTLLanguageVersion)to {
    version = to;
}

@end

@implementation FakeResidencySetDescriptor

- (instancetype)init {
    self = [super init];
    if (self) fake_born();
    return self;
}

- (instancetype)autorelease {
    fake_autoreleased(&autoreleased);
    return [super autorelease];
}

- (void)dealloc {
    [name release];
    fake_died(self, autoreleased);
}

- (NSString *)label {
    return name;
}

- (void)setLabel:(NSString *)to {
    NSString *copy = [to copy];
    [name release];
    name = copy;
}

- (NSUInteger)initialCapacity {
    return capacity;
}

- (void)setInitialCapacity:(NSUInteger)to {
    capacity = to;
}

@end
