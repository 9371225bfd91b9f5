/* Shared memory between pages that may not be touched. The GPU's address is the processor's. */
#ifndef PLUMB_TESTS_METAL_FAKE_BUFFER_H
#define PLUMB_TESTS_METAL_FAKE_BUFFER_H

#include "fake_object.h"

@class FakeResidencySet;

enum { FAKE_SETS = 4 }; /* residency sets that one buffer may be in */

/* A buffer's place in a residency set; under the lock. */
typedef struct fake_membership {
    FakeResidencySet *set; /* not retained; nil: a free place */
    uint64_t since;        /* when it was committed, by the state's clock; 0: not yet */
    bool leaving;          /* removed, but that is not committed yet */
} fake_membership;

@interface FakeBuffer : FakeObject <MTLBuffer> {
  @public
    uint8_t *start;
    int64_t bytes;
    fake_membership sets[FAKE_SETS];
    int64_t reached; /* how often running command buffers met an address in it; under the lock */
  @private
    uint8_t *mapping; /* the pages and at least one more at either end, which may not be touched */
    int64_t mapping_bytes;
    uint8_t *pages; /* the buffer and what fills up its pages */
    int64_t pages_bytes;
}
/* nil without memory. */
- (instancetype)initWithBytes:(int64_t)size;
/* Records writes to what fills up the pages; `by` names who may have done it. */
- (void)checkMargins:(const char *)by;
@end

/* The live buffer that has the address, or nil; lock held. */
FakeBuffer *fake_buffer_at(uint64_t address);
/* Calls `visit` with every live buffer; lock held. */
void fake_each_buffer(void (*visit)(FakeBuffer *buffer, id context), id context);

#endif
