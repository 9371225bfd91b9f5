/* What this machine can do, measured: its drive, read as the engine reads it, and its memory. */
#ifndef PLUMB_PLAN_MACHINE_H
#define PLUMB_PLAN_MACHINE_H

#include "format/checkpoint.h"

typedef struct plumb_disk_rate {
    double bytes_per_second;
    int64_t bytes; /* that were read */
    double seconds;
    int64_t experts; /* that were read */
    int in_flight;   /* at a time */
    bool uncached;   /* false: part of it may have come from memory */
    bool holes; /* true: parts of the files take no room on the drive and were not read from it */
    char reader[160]; /* which one, and why */
} plumb_disk_rate;

/* Reads experts of the model in random order for about `seconds`, whole and several at a time, past
 * the page cache where the system allows it. */
PLUMB_MUST_CHECK plumb_status plumb__measure_disk(const plumb_checkpoint *checkpoint,
                                                  double seconds, plumb_disk_rate *rate,
                                                  plumb_error *err);

/* Bytes a second at which `threads` threads together read memory that no cache holds: the best of
 * several rounds in about `seconds`. */
PLUMB_MUST_CHECK plumb_status plumb__measure_memory(int threads, double seconds, double *rate,
                                                    plumb_error *err);

#endif
