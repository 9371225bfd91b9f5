/* Reading many parts of files at once: the seam between streaming and the operating system.
 *
 * A reader performs single reads in the background and hands each one back with what the system
 * answered, once, on a thread of its own: a number of bytes, which may be less than asked for, or a
 * negated errno.  What to make of that is read_queue's business.  Two implementations: io_uring,
 * with registered memory where the system lets us, and a pool of threads that call pread. */
#ifndef PLUMB_STREAM_READER_H
#define PLUMB_STREAM_READER_H

#include "plumb.h"

/* Alignment of offset, size and memory that uncached reads need on every file system we know:
 * 4 KiB pages on Linux, 16 KiB on macOS. */
#if defined(__APPLE__)
enum { PLUMB_READ_ALIGNMENT = 16384 };
#else
enum { PLUMB_READ_ALIGNMENT = 4096 };
#endif

typedef struct plumb_read plumb_read;
struct plumb_read {
    int fd;
    int64_t offset, size; /* bytes */
    void *into;
    /* Called once, on a thread of the reader; `result` is the bytes read or a negated errno.  May start
     * further reads; the read is the caller's again. */
    void (*done)(plumb_read *read, int64_t result);
    void *user;
};

typedef struct plumb_reader plumb_reader;
typedef struct plumb_reader_ops {
    const char *name; /* "io_uring", "pread" */
    /* Starts a read.  The caller keeps at most plumb_reader.depth unfinished. */
    void (*start)(plumb_reader *reader, plumb_read *read);
    /* Memory that many reads will go to, and its end: lets io_uring register it.  Other memory may be
     * read into as well.  No read into it may be unfinished when it is removed. */
    void (*add_memory)(plumb_reader *reader, void *memory, int64_t bytes);
    void (*remove_memory)(plumb_reader *reader, void *memory, int64_t bytes);
    /* All reads must be finished. */
    void (*close)(plumb_reader *reader);
} plumb_reader_ops;

/* Every reader's state begins with this. */
struct plumb_reader {
    const plumb_reader_ops *ops;
    int depth; /* most unfinished reads */
};

typedef enum plumb_reader_kind { PLUMB_READER_BEST, PLUMB_READER_URING, PLUMB_READER_PREAD } plumb_reader_kind;

/* BEST: io_uring where the system offers it, else pread.  `why` (may be NULL) receives one phrase for
 * the log: which one and why.  PLUMB_ERROR_UNSUPPORTED when URING is asked for and not to be had. */
PLUMB_MUST_CHECK plumb_status plumb__reader_open(plumb_reader_kind kind, int depth,
                                                 plumb_reader **reader, char *why, size_t why_size,
                                                 plumb_error *err);

#endif
