/* Items of work done by several threads, watched by the one that asked: progress, interruption, and
 * the fault of the first item that has one. */
#ifndef PLUMB_CONVERT_JOBS_H
#define PLUMB_CONVERT_JOBS_H

#include "plumb.h"

/* Told about ten times a second, on the calling thread; nonzero stops the work. */
typedef struct plumb_progress {
    const char *doing;   /* for people: "writing", "auditing" */
    int64_t done, total; /* bytes */
    double seconds;      /* since this part of the work began */
} plumb_progress;
typedef int (*plumb_progress_fn)(void *user, const plumb_progress *progress);

typedef struct plumb_jobs plumb_jobs;

/* Does one item on thread `job`; calls plumb__jobs_add as it goes on. */
typedef plumb_status (*plumb_job_fn)(void *user, plumb_jobs *jobs, int job, int64_t item,
                                     plumb_error *err);

typedef struct plumb_work {
    const char *doing;
    int jobs;            /* threads, at least 1 */
    int64_t items, total; /* total: bytes, for the progress */
    plumb_job_fn run;
    void *user;
    plumb_progress_fn progress; /* may be NULL */
    void *progress_user;
} plumb_work;

/* As many threads as were asked for; 0: four per core, since they mostly wait for the disk, and at
 * most eight, with which a drive is busy. */
int plumb__jobs_threads(int asked);

/* Threads take items in ascending order.  After a fault no further item is begun; of several faults
 * that of the lowest item is returned, so that which one is told does not depend on timing.
 * PLUMB_ERROR_CANCELLED when `progress` asked to stop. */
PLUMB_MUST_CHECK plumb_status plumb__jobs_run(const plumb_work *work, plumb_error *err);
/* Counts bytes as done, from inside an item.  PLUMB_ERROR_CANCELLED: the item is to be given up. */
PLUMB_MUST_CHECK plumb_status plumb__jobs_add(plumb_jobs *jobs, int64_t item, int64_t bytes,
                                              plumb_error *err);

#endif
