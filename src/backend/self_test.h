/* A backend proves that its bits are those of the contract, operation by operation. */
#ifndef PLUMB_BACKEND_SELF_TEST_H
#define PLUMB_BACKEND_SELF_TEST_H

#include "backend/backend.h"

/* Runs every operation on known vectors on `tested` and on `portable`, the CPU backend with its portable
 * kernels, and compares the bytes.  PLUMB_ERROR_UNSUPPORTED names the first operation and kernel that
 * differ, the place, what was found and what was expected; PLUMB_ERROR_MEMORY, PLUMB_ERROR_IO: the test
 * could not be run.  Nothing else may use the backends meanwhile; no memory of theirs is kept. */
PLUMB_MUST_CHECK plumb_status plumb__backend_self_test(plumb_backend *tested, plumb_backend *portable,
                                                       plumb_error *err);

#endif
