/* The float environment every worker thread computes in (docs/arithmetic.md section 2): round to
 * nearest even, subnormals read and written as zero of their sign.  The modes belong to a thread;
 * a library must give the caller's back, so work is bracketed by enter and leave.
 *
 * Call the work through a function between the two: a compiler may move plain arithmetic of the
 * same function across them. */
#ifndef PLUMB_ARITH_FLOAT_ENV_H
#define PLUMB_ARITH_FLOAT_ENV_H

#include "plumb.h"

/* Sets the modes of this thread; *saved receives the caller's. */
void plumb__float_env_enter(uint64_t *saved);
void plumb__float_env_leave(uint64_t saved);

/* Proves under the modes what the contract takes for granted: fmaf has one rounding, division and
 * square root are correctly rounded, subnormals flush on input and output.  PLUMB_ERROR_UNSUPPORTED
 * names the first that fails.  Leaves the caller's modes as they were. */
PLUMB_MUST_CHECK plumb_status plumb__float_env_self_test(plumb_error *err);

#endif
