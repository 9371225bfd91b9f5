/* What a drive gives to someone who does nothing but read: random blocks of one file, past the page
 * cache, some number of them at a time.  fio is asked where it is installed, since others know and
 * trust it; a plain loop of our own stands in for it elsewhere. */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include "plumb.h"

typedef struct bench_drive {
    const char *path;    /* a file of at least a few blocks */
    int64_t block_bytes; /* a multiple of PLUMB_READ_ALIGNMENT */
    int depth;           /* unfinished reads */
    bool uring;          /* fio: io_uring, one thread; else `depth` threads that call pread */
    int64_t bytes;       /* to read in all, about */
    uint64_t seed;       /* of the blocks' places: another one reads other blocks */
    bool in_order;       /* the plain loop: every block of the file once, the next one next */
} bench_drive;

bool bench_drive_has_fio(void);
/* Has the system set aside as many huge pages as fio's blocks take?  Then they lie in these, as our
 * slots do; in small pages a large read may become several requests. */
bool bench_drive_fio_takes_huge_pages(const bench_drive *drive);
/* *rate: bytes per second.  With `fio` false, or where there is none, the plain loop reads, with
 * `depth` threads in any case. */
PLUMB_MUST_CHECK plumb_status bench_drive_read(const bench_drive *drive, bool fio, double *rate,
                                               plumb_error *err);

#endif
