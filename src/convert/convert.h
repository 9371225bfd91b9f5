/* A released folder becomes one file, and proves it (docs/convert.md).
 *
 * The payloads are written under another name, read back from the disk and compared with digests of
 * the released bytes; only then does the file get its name.  The source is only read. */
#ifndef PLUMB_CONVERT_CONVERT_H
#define PLUMB_CONVERT_CONVERT_H

#include "convert/jobs.h"

/* How dense matrices are stored. */
typedef enum plumb_dense {
    PLUMB_DENSE_F32,  /* the exact values */
    PLUMB_DENSE_BF16, /* the same, for matrices of which every value fits */
    PLUMB_DENSE_FP8,  /* codes and scales as released */
    PLUMB_DENSE_COUNT
} plumb_dense;

const char *plumb__dense_name(int dense); /* "f32" */
int plumb__dense_from_name(const char *name); /* -1: unknown */

typedef struct plumb_convert_options {
    plumb_dense dense;
    bool force;       /* replace the target */
    bool no_audit;    /* for measuring what writing alone takes: the file does not get its name */
    int jobs;         /* 0: plumb__jobs_threads */
    /* Payload bytes finished from one note of what is there to the next; 0: 256 MiB, which costs no
     * speed.  Only whole tensors are noted, so a killed run loses those in flight as well, one for each
     * job: at the released shape up to eight stacks of experts of 2.4 GB, or two tables of 98 GB. */
    int64_t note_bytes;
    plumb_log_fn log; /* may be NULL */
    void *log_user;
    plumb_progress_fn progress; /* may be NULL */
    void *progress_user;
} plumb_convert_options;

typedef struct plumb_convert_result {
    int64_t file_bytes, tensors;
    int64_t resumed_bytes;   /* that an earlier run had written */
    bool part_stays;         /* after a fault: TARGET.part is there, for the same call to go on from */
    int64_t matrices[PLUMB_DENSE_COUNT]; /* dense matrices stored in each way */
} plumb_convert_result;

/* Converts the folder `source` to the new file `target`.  What was written before a fault or an
 * interruption stays as TARGET.part, and the same call goes on from there. */
PLUMB_MUST_CHECK plumb_status plumb__convert(const char *source, const char *target,
                                             const plumb_convert_options *options,
                                             plumb_convert_result *result, plumb_error *err);

/* Clones the converted file `source`, storing every dense F32 matrix as BF16 of which each value fits;
 * what is packed is then read back and compared with the source bit for bit.  options->dense is not
 * used. */
PLUMB_MUST_CHECK plumb_status plumb__pack(const char *source, const char *target,
                                          const plumb_convert_options *options,
                                          plumb_convert_result *result, plumb_error *err);

#endif
