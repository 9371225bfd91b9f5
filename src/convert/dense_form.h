/* Which form a dense matrix can take: every value decides. */
#ifndef PLUMB_CONVERT_DENSE_FORM_H
#define PLUMB_CONVERT_DENSE_FORM_H

#include "convert/converted_file.h"
#include "convert/convert.h"

/* Sets the form of every dense matrix of `file`, whose checkpoint is a folder, as near to `dense` as
 * is exact: BF16, or else F32, or else as released.  What falls short is told, matrix by matrix. */
PLUMB_MUST_CHECK plumb_status plumb__dense_forms_choose(plumb_converted_file *file,
                                                        plumb_dense dense, plumb_log_fn log,
                                                        void *log_user, plumb_error *err);

/* Tells, in one line, why a matrix keeps its form: element `unfit` does not fit `wanted`, which is
 * PLUMB_STORED_BF16 or PLUMB_STORED_F32.  `log` may be NULL. */
void plumb__dense_form_tell(const plumb_stored_tensor *matrix, int wanted, int64_t unfit,
                            plumb_log_fn log, void *log_user);

#endif
