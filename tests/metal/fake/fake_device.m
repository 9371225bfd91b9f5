/* The device claims what the options say at the time of asking. */
#import "fake_device.h"

#include <string.h>

#import "fake_buffer.h"
#import "fake_event.h"
#import "fake_queue.h"
#import "fake_residency.h"

NSErrorDomain const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";

static fake_metal_options options(void) {
    fake_metal_options now = fake_lock()->options;
    fake_unlock();
    return now;
}

static bool is_named(const emulated_kernel *kernel, const char *name) {
    return name && !strcmp(kernel->name, name);
}

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
    return options().absent ? nil : [[FakeDevice alloc] init];
}

const emulated_parameter *fake_parameter(const emulated_kernel *kernel, bool threadgroup,
                                         int index) {
    for (int i = 0; i < kernel->n_parameters; i++) {
        const emulated_parameter *p = &kernel->parameter[i];
        if (p->index == index && (p->space == EMULATED_THREADGROUP) == threadgroup) return p;
    }
    return NULL;
}

@implementation FakeDevice

- (NSString *)name {
    fake_leave_behind();
    return [NSString stringWithUTF8String:options().name];
}

- (BOOL)hasUnifiedMemory {
    return options().unified_memory;
}

- (uint64_t)recommendedMaxWorkingSetSize {
    fake_leave_behind();
    return options().working_set_bytes;
}

- (NSUInteger)currentAllocatedSize {
    return (NSUInteger)fake_metal_count().live_bytes;
}

- (NSUInteger)maxThreadgroupMemoryLength {
    return options().threadgroup_bytes;
}

- (NSUInteger)maxBufferLength {
    return options().max_buffer_bytes;
}

- (BOOL)supportsFamily:(MTLGPUFamily)family {
    fake_metal_options claimed = options();
    if (family == MTLGPUFamilyMetal3) return claimed.metal3;
    if (family >= MTLGPUFamilyApple1 && family < MTLGPUFamilyMac2) {
        return family - MTLGPUFamilyApple1 < claimed.apple_family;
    }
    return family == MTLGPUFamilyMac2 ||
           (family >= MTLGPUFamilyCommon1 && family <= MTLGPUFamilyCommon3);
}

- (BOOL)respondsToSelector:(SEL)selector {
    bool is_new = sel_isEqual(selector, @selector(newResidencySetWithDescriptor:error:));
    return is_new && !options().residency_sets ? NO : [super respondsToSelector:selector];
}

- (id<MTLCommandQueue>)newCommandQueue {
    fake_leave_behind();
    return [[FakeQueue alloc] initWithDevice:self];
}

- (id<MTLSharedEvent>)newSharedEvent {
    fake_leave_behind();
    return [[FakeEvent alloc] init];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)placement {
    fake_leave_behind();
    uint64_t most = options().max_buffer_bytes;
    if (length == 0) {
        fake_object_to("newBufferWithLength: a buffer of 0 bytes");
        return nil;
    }
    if (length > most) {
        fake_object_to("newBufferWithLength: %llu bytes, maxBufferLength is %llu",
                       (unsigned long long)length, (unsigned long long)most);
        return nil;
    }
    if ((placement >> MTLResourceStorageModeShift & 15) != MTLStorageModeShared) {
        fake_object_to("newBufferWithLength: the processor cannot use memory that is not shared");
    }
    return [[FakeBuffer alloc] initWithBytes:(int64_t)length];
}

- (id<MTLLibrary>)newLibraryWithSource:(NSString *)source
                               options:(MTLCompileOptions *)compile
                                 error:(NSError **)error {
    fake_metal_options now = options();
    bool safe = compile && compile.mathMode == MTLMathModeSafe &&
                compile.mathFloatingPointFunctions == MTLMathFloatingPointFunctionsPrecise;
    if (!safe && !now.compiler_is_strict)
        fake_object_to("newLibraryWithSource: maths is not safe and precise");
    if (!compile || compile.languageVersion != MTLLanguageVersion3_1) {
        fake_object_to("newLibraryWithSource: the language is not Metal 3.1");
    }
    if (strcmp([source UTF8String], emulated_source_text())) {
        fake_object_to("newLibraryWithSource: not the text that the emulator was made from");
    }
    NSString *fault = nil;
    if (now.compile_error)
        fault = [NSString stringWithUTF8String:now.compile_error];
    else if (!safe && now.compiler_is_strict)
        fault = @"maths is not safe and precise";
    if (fault) {
        [FakeError set:error
                domain:MTLLibraryErrorDomain
                  code:MTLLibraryErrorCompileFailure
                  text:fault];
        return nil;
    }
    return [[FakeLibrary alloc] init];
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError **)error {
    fake_metal_options now = options();
    const emulated_kernel *kernel = ((FakeFunction *)function)->kernel;
    if (is_named(kernel, now.refused_kernel)) {
        [FakeError set:error
                domain:MTLLibraryErrorDomain
                  code:MTLLibraryErrorInternal
                  text:[NSString stringWithFormat:@"no pipeline for %s", kernel->name]];
        return nil;
    }
    FakePipeline *pipeline = [[FakePipeline alloc] init];
    pipeline->kernel = kernel;
    pipeline->max_threads = now.max_threads;
    return pipeline;
}

- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor *)descriptor
                                               error:(NSError **)error {
    (void)error;
    if (!descriptor) fake_object_to("newResidencySetWithDescriptor: no descriptor");
    if (!options().residency_sets)
        fake_object_to("newResidencySetWithDescriptor: macOS before 15 has no such method");
    return [[FakeResidencySet alloc] init];
}

@end

@implementation FakeLibrary

- (id<MTLFunction>)newFunctionWithName:(NSString *)name {
    fake_leave_behind();
    const emulated_kernel *kernel = emulated_kernel_find([name UTF8String]);
    if (!kernel) fake_object_to("newFunctionWithName: there is no function %s", [name UTF8String]);
    if (!kernel || is_named(kernel, options().missing_kernel)) return nil;
    FakeFunction *function = [[FakeFunction alloc] init];
    function->kernel = kernel;
    return function;
}

@end

@implementation FakeFunction
@end

@implementation FakePipeline

- (NSUInteger)maxTotalThreadsPerThreadgroup {
    return max_threads;
}

- (NSUInteger)threadExecutionWidth {
    return 32;
}

- (NSUInteger)staticThreadgroupMemoryLength {
    return 0;
}

@end
