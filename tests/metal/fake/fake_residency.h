/* Residency sets: additions and removals take effect with a commit, for what is committed after it. */
#ifndef PLUMB_TESTS_METAL_FAKE_RESIDENCY_H
#define PLUMB_TESTS_METAL_FAKE_RESIDENCY_H

#include "fake_buffer.h"

@interface FakeResidencySet : FakeObject <MTLResidencySet> {
    int64_t requests; /* requestResidency less endResidency */
}
@end

/* Whether the set had the buffer at that time of the state's clock; lock held. */
bool fake_was_resident(const FakeBuffer *buffer, const FakeResidencySet *set, uint64_t time);

#endif
