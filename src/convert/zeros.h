/* Payloads of nothing but zeros, as holes make them: a skeleton of a model has hundreds of gigabytes.
 *
 * Zero codes with zero scales are zeros in every form whose units stand for themselves, and the digest
 * of zeros follows from their number.  So a hole is neither read, encoded nor written, and the
 * digests of the first PLUMB_ZEROS_KNOWN sizes are kept for those that come after. */
#ifndef PLUMB_CONVERT_ZEROS_H
#define PLUMB_CONVERT_ZEROS_H

#include "convert/converted_file.h"
#include "convert/jobs.h"
#include "convert/payload_reader.h"

#include <pthread.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { PLUMB_ZEROS_KNOWN = 64 };

/* Digests that were worked out; shared by threads. */
typedef struct plumb_zeros {
    pthread_mutex_t lock;
    int64_t bytes[PLUMB_ZEROS_KNOWN];
    XXH128_hash_t digest[PLUMB_ZEROS_KNOWN];
    int known;
} plumb_zeros;

void plumb__zeros_open(plumb_zeros *zeros);
void plumb__zeros_close(plumb_zeros *zeros);
/* XXH3-128 of so many zeros.  PLUMB_ERROR_CANCELLED: the item of `jobs` is to be given up. */
PLUMB_MUST_CHECK plumb_status plumb__zeros_digest(plumb_zeros *zeros, int64_t bytes,
                                                  plumb_jobs *jobs, int64_t item,
                                                  XXH128_hash_t *digest, plumb_error *err);

/* Do zero units of this kind stand for zero codes and scales, whatever is beside them?  An FP8 matrix as
 * values has scales elsewhere, which may be NaN. */
bool plumb__zeros_stay(const plumb_stored_units *units);

#endif
