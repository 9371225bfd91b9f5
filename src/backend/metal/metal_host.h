/* The state of the Metal backend and what its files offer each other.
 *
 * metal_device.m opens and closes, metal_memory.m turns pointers into buffers, metal_commands.m issues
 * and waits, metal_ops_*.m are the operations.  Objects are retained and released by hand: what `new` or
 * `alloc` gave is released, what a method merely returned lives until the pool around it is drained, so
 * every C function that calls Metal has a pool, and so has every iteration of a loop that does. */
#ifndef PLUMB_BACKEND_METAL_METAL_HOST_H
#define PLUMB_BACKEND_METAL_METAL_HOST_H

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include "backend/backend.h"
#include "backend/metal/metal_kernels.h"
#include "base/error.h"

#include <pthread.h>

/* The text of all kernels, which the program carries (cmake/metal_source.cmake). */
extern const char plumb__metal_source[];

/* ---- State ----------------------------------------------------------------------------------- */

/* An allocation. */
typedef struct plumb_metal_block {
    char *start;        /* `skipped` bytes into the buffer */
    int64_t bytes;      /* from there on */
    NSUInteger skipped;
    id<MTLBuffer> buffer;
} plumb_metal_block;

/* A released allocation that the GPU may still use: until command buffer number `after` is done. */
typedef struct plumb_metal_garbage {
    id<MTLBuffer> buffer;
    uint64_t after;
} plumb_metal_garbage;

/* Memory that operations keep for themselves. */
typedef enum plumb_metal_work {
    WORK_GATE,
    WORK_UP,
    WORK_ACTIVATED,    /* quantised rows */
    WORK_GROUPS,       /* what group_experts makes */
    WORK_SCORES,
    WORK_BLOCK_SCORES,
    WORK_COUNT
} plumb_metal_work;

/* A queue takes no more unfinished command buffers by default. */
enum { PLUMB_METAL_IN_FLIGHT = 64 };

typedef struct plumb_metal_backend {
    plumb_backend base;
    id<MTLDevice> device;
    char name[128];           /* the device's */
    id<MTLCommandQueue> queue;
    id<MTLSharedEvent> event; /* its value: the number of the last command buffer that is done */
    id<MTLComputePipelineState> pipeline[KERNEL_COUNT];
    int64_t threadgroup_bytes; /* most that a group may have */
    int64_t score_bytes;       /* of a search's scores at once; more only for a single row */
    plumb_metal_control *control;
    id<MTLBuffer> control_buffer; /* not retained: an allocation like others */
    uint64_t float_env;           /* the caller's, between begin and end */
    struct {
        void *memory;
        int64_t bytes;
    } work[WORK_COUNT];

    id<MTLCommandBuffer> command; /* open, or nil */
    id<MTLComputeCommandEncoder> encoder;

    pthread_mutex_t lock; /* over all that follows: any thread may allocate and release */
    id<MTLResidencySet> residency;
    bool residency_changed; /* allocations were added that are not committed yet */
    bool is_resident;       /* residency was requested */
    plumb_metal_block *block; /* ascending `start` */
    int64_t n_blocks, block_room;
    plumb_metal_garbage *garbage; /* ascending `after` */
    int64_t n_garbage, garbage_room;
    id<MTLCommandBuffer> in_flight[PLUMB_METAL_IN_FLIGHT]; /* a ring; number n lies at n mod its size */
    uint64_t issued;    /* number of the open command buffer, else of the last one */
    uint64_t submitted; /* of the last one that was committed */
    uint64_t done;      /* it and all before it are done */
    plumb_status failure; /* first one since the last check; PLUMB_OK: none */
} plumb_metal_backend;

static inline plumb_metal_backend *plumb__metal(plumb_backend *b) {
    return (plumb_metal_backend *)b;
}

/* ---- Memory (metal_memory.m) ------------------------------------------------------------------- */

void *plumb__metal_allocate(plumb_backend *b, int64_t bytes);
void plumb__metal_release(plumb_backend *b, void *memory);

typedef struct plumb_metal_place {
    id<MTLBuffer> buffer; /* nil: not memory of this backend */
    NSUInteger offset;
} plumb_metal_place;

/* Where pointers into allocations lie. */
void plumb__metal_find(plumb_metal_backend *m, const void *const *memory, int n,
                       plumb_metal_place *place);
/* What kernels call a place; 0 for NULL. */
uint64_t plumb__metal_address(plumb_backend *b, const void *memory);
/* At least `bytes` that keep nothing of their contents when they grow; NULL raises the memory fault. */
void *plumb__metal_work_memory(plumb_metal_backend *m, plumb_metal_work which, int64_t bytes);
/* Frees all allocations; nothing may be in flight. */
void plumb__metal_free_all(plumb_metal_backend *m);

/* These expect the lock to be held. */
void plumb__metal_make_resident(plumb_metal_backend *m);
void plumb__metal_free_garbage(plumb_metal_backend *m);

/* ---- Commands (metal_commands.m) --------------------------------------------------------------- */

/* One dispatch of a kernel. */
typedef struct plumb_metal_call {
    plumb_metal_kernel kernel;
    const void *arguments; /* the kernel's struct of kernels/arguments.h */
    size_t arguments_bytes;
    const void *memory[PLUMB_METAL_MAX_MEMORY]; /* in binding order */
    /* Stands for the NULL among `memory`: bytes that are copied into the command buffer. */
    const void *list;
    size_t list_bytes;
    int64_t groups[3];            /* a 0 among them: nothing to do */
    int64_t threadgroup_bytes[2]; /* of threadgroup(0) and (1); 0: none */
} plumb_metal_call;

/* Appends to the open command buffer; what cannot be issued becomes a failure that `check` reports. */
void plumb__metal_dispatch(plumb_metal_backend *m, const plumb_metal_call *call);
/* Hands what was issued to the GPU. */
void plumb__metal_submit(plumb_metal_backend *m);
/* Submits and waits until all is done or has failed. */
void plumb__metal_finish(plumb_metal_backend *m);
/* Notes which command buffers are done or have failed, and frees what only they needed.  Expects the lock
 * to be held. */
void plumb__metal_collect(plumb_metal_backend *m);
/* The first failure is kept until it is reported. */
void plumb__metal_fail(plumb_metal_backend *m, plumb_status status);

/* backend.h */
void plumb__metal_wait(plumb_backend *b);
plumb_status plumb__metal_check(plumb_backend *b);
int64_t plumb__metal_missed(plumb_backend *b);

void plumb__metal_close(plumb_backend *b);
extern const plumb_backend_ops plumb__metal_ops; /* metal_table.m */

#endif
