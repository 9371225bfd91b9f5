/* Two versions of the same stored bytes, and where they first differ, in words. */
#ifndef PLUMB_CONVERT_DIFFERENCE_H
#define PLUMB_CONVERT_DIFFERENCE_H

#include "convert/converted_file.h"

/* `found` and `expected` are n units of part `part` of the tensor, from unit `first` on, and differ.
 * Fills *err (PLUMB_ERROR_VALUE) with file, released tensor and offset, row, column and both values. */
plumb_status plumb__difference_tell(const plumb_stored_tensor *tensor, int64_t part, int64_t first,
                                    int64_t n, const uint8_t *found, const uint8_t *expected,
                                    const char *path, plumb_error *err);

#endif
