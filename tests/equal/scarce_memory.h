/* A backend that runs out of memory at an operation of the test's choice.  Without scratch memory a linear
 * leaves its output as it was, the operations after it work on that, and the next look at the backend's
 * faults tells; an allocation fails at once. */
#ifndef PLUMB_TESTS_EQUAL_SCARCE_MEMORY_H
#define PLUMB_TESTS_EQUAL_SCARCE_MEMORY_H

#include "backend/backend.h"

/* From now on this is the backend that may; one at a time. */
void scarce_memory_of(plumb_backend *backend);
/* After so many operations it fails once; negative: not at all, as at first. */
void scarce_memory_after(int64_t operations);

#endif
