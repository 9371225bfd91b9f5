/* Opening and closing: the device and whether it will do, the kernels compiled from the text that the
 * program carries, the queue. */
#import "backend/metal/metal_ops.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/metal/metal_backend.h"
#include "backend/self_test.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    THREADGROUP_BYTES = 32768, /* what every GPU of the family Metal 3 has, and the kernels count on */
    SCORE_BYTES = 16 << 20
};

static plumb_status refuse(plumb_error *err, const char *what, const char *found,
                           const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, what, -1, found, "%s", expected);
}

/* What an error says, for as long as the pool around it. */
static const char *text_of(NSError *error) {
    const char *text = [[error localizedDescription] UTF8String];
    return text ? text : "no reason";
}

/* ---- The device ------------------------------------------------------------------------------ */

static plumb_status open_device(plumb_metal_backend *m, plumb_error *err) {
    m->device = MTLCreateSystemDefaultDevice();
    if (!m->device) return refuse(err, "metal", "no Metal device", "a Mac with an Apple GPU");
    const char *name = m->name;
    (void)snprintf(m->name, sizeof m->name, "%s", [[m->device name] UTF8String]);
    if (![m->device supportsFamily:MTLGPUFamilyMetal3])
        return refuse(err, name, "an older GPU family", "one that supports Metal 3");
    if (![m->device hasUnifiedMemory])
        return refuse(err, name, "memory of its own", "a GPU that shares the processor's memory");
    if (![m->device respondsToSelector:@selector(newResidencySetWithDescriptor:error:)])
        return refuse(err, name, "a system without residency sets", "macOS 15 or later");
    m->threadgroup_bytes = (int64_t)[m->device maxThreadgroupMemoryLength];
    if (m->threadgroup_bytes < THREADGROUP_BYTES)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, name, -1,
                           plumb__format("%lld bytes of threadgroup memory",
                                         (long long)m->threadgroup_bytes)
                               .s,
                           "at least %d", THREADGROUP_BYTES);
    return PLUMB_OK;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Safe maths: the compiler changes no operation for another one that is nearly the same. */
static id<MTLLibrary> compile(plumb_metal_backend *m, NSError **error) {
    NSString *text = [[NSString alloc] initWithUTF8String:plumb__metal_source];
    MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
    [options setLanguageVersion:MTLLanguageVersion3_1];
    [options setMathMode:MTLMathModeSafe];
    [options setMathFloatingPointFunctions:MTLMathFloatingPointFunctionsPrecise];
    id<MTLLibrary> library = [m->device newLibraryWithSource:text options:options error:error];
    [options release];
    [text release];
    return library;
}

/* Lanes are those of a simdgroup, and grids assume that groups may be as large as they are. */
static plumb_status check_pipeline(id<MTLComputePipelineState> pipeline, const char *name,
                                   int threads, plumb_error *err) {
    long long width = (long long)[pipeline threadExecutionWidth];
    long long most = (long long)[pipeline maxTotalThreadsPerThreadgroup];
    if (width != PLUMB_METAL_SIMD)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, name, -1,
                           plumb__format("simdgroups of %lld threads", width).s, "%d",
                           PLUMB_METAL_SIMD);
    if (most < threads)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, name, -1,
                           plumb__format("groups of %lld threads", most).s, "at least %d",
                           threads);
    return PLUMB_OK;
}

static plumb_status open_pipeline(plumb_metal_backend *m, id<MTLLibrary> library,
                                  plumb_metal_kernel kernel, plumb_error *err) {
    const plumb_metal_kernel_form *form = &plumb__metal_kernel_forms[kernel];
    NSString *name = [NSString stringWithUTF8String:form->name];
    NSError *error = nil;
    id<MTLFunction> function = [library newFunctionWithName:name];
    if (!function)
        return refuse(err, form->name, "no function of that name", "a kernel that this system compiles");
    m->pipeline[kernel] = [m->device newComputePipelineStateWithFunction:function error:&error];
    [function release];
    if (!m->pipeline[kernel])
        return refuse(err, form->name, text_of(error), "a kernel that this system compiles");
    return check_pipeline(m->pipeline[kernel], form->name, form->threads, err);
}

static plumb_status open_kernels(plumb_metal_backend *m, plumb_error *err) {
    NSError *error = nil;
    id<MTLLibrary> library = compile(m, &error);
    if (!library) return refuse(err, "kernels", text_of(error), "a text that this system compiles");
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < KERNEL_COUNT && status == PLUMB_OK; i++) {
        @autoreleasepool {
            status = open_pipeline(m, library, (plumb_metal_kernel)i, err);
        }
    }
    [library release];
    return status;
}

/* ---- The queue ------------------------------------------------------------------------------- */

static plumb_status open_residency(plumb_metal_backend *m, plumb_error *err) {
    NSError *error = nil;
    MTLResidencySetDescriptor *descriptor = [[MTLResidencySetDescriptor alloc] init];
    m->residency = [m->device newResidencySetWithDescriptor:descriptor error:&error];
    [descriptor release];
    if (m->residency) return PLUMB_OK;
    return refuse(err, "residency set", text_of(error), "one");
}

static plumb_status open_queue(plumb_metal_backend *m, plumb_error *err) {
    plumb_status status = open_residency(m, err);
    if (status != PLUMB_OK) return status;
    m->queue = [m->device newCommandQueue];
    m->event = [m->device newSharedEvent];
    if (!m->queue || !m->event) return plumb__fail_memory(err, "command queue", 0);
    [m->queue addResidencySet:m->residency];
    const void *control = m->control = plumb__metal_allocate(&m->base, (int64_t)sizeof *m->control);
    if (!control) return plumb__fail_memory(err, "control block", sizeof *m->control);
    plumb_metal_place place;
    plumb__metal_find(m, &control, 1, &place);
    m->control_buffer = place.buffer;
    return PLUMB_OK;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void plumb__metal_close(plumb_backend *b) {
    plumb_metal_backend *m = plumb__metal(b);
    @autoreleasepool {
        plumb__metal_finish(m);
        plumb__metal_free_all(m);
        [m->residency release];
        [m->event release];
        [m->queue release];
        for (int i = 0; i < KERNEL_COUNT; i++) [m->pipeline[i] release];
        [m->device release];
    }
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Compares all operations with the portable ones. */
static plumb_status test(plumb_metal_backend *m, plumb_error *err) {
    plumb_backend *portable;
    const char *level;
    plumb_status status = plumb__cpu_backend_create(1, "portable", &portable, &level, err);
    if (status != PLUMB_OK) return status;
    status = plumb__backend_self_test(&m->base, portable, err);
    portable->ops->close(portable);
    return status;
}

plumb_status plumb__metal_backend_create(plumb_backend **backend, plumb_error *err) {
    *backend = NULL;
    plumb_metal_backend *m = calloc(1, sizeof *m);
    if (!m) return plumb__fail_memory(err, "backend", sizeof *m);
    m->base.ops = &plumb__metal_ops;
    m->score_bytes = SCORE_BYTES;
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return plumb__fail_memory(err, "backend's lock", sizeof m->lock);
    }
    plumb_status status;
    @autoreleasepool {
        status = open_device(m, err);
        if (status == PLUMB_OK) status = open_kernels(m, err);
        if (status == PLUMB_OK) status = open_queue(m, err);
        if (status == PLUMB_OK) status = test(m, err);
    }
    if (status != PLUMB_OK) {
        plumb__metal_close(&m->base);
        return status;
    }
    *backend = &m->base;
    return PLUMB_OK;
}

const char *plumb__metal_device_name(const plumb_backend *backend) {
    return ((const plumb_metal_backend *)backend)->name;
}

bool plumb__metal_is_built(void) { return true; }
