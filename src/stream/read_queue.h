/* Loads, in order of need, for a reader.
 *
 * A load is a few extents of files that belong together (one expert).  The queue cuts them into
 * pieces, keeps the reader's depth full, goes on after short reads and interruptions, and reports
 * when all of a load has arrived or failed.  Urgent loads go first, in the order they were added;
 * others (read-ahead) are only begun while no urgent piece waits or is being read, so that they
 * delay a demanded read by the pieces in flight at most. */
#ifndef PLUMB_STREAM_READ_QUEUE_H
#define PLUMB_STREAM_READ_QUEUE_H

#include "stream/reader.h"

enum { PLUMB_LOAD_EXTENTS = 6 };

typedef struct plumb_extent {
    int fd;
    int64_t offset, size; /* as read: aligned where fd is uncached */
    int64_t needed;       /* of its first bytes these must come; the rest is alignment and may lie
                           * behind the end of the file */
    void *into;
} plumb_extent;

typedef struct plumb_load plumb_load;
struct plumb_load {
    plumb_extent extent[PLUMB_LOAD_EXTENTS]; /* each of 1 byte or more */
    int n_extents;                           /* 1 or more */
    /* Called once, without locks held: 0, or an errno (ENODATA for an end of file, ECANCELED after
     * plumb__read_queue_cancel) with the extent and the file offset (-1 and -1 without a fault).  On
     * a thread of the reader, or inside the close that drops a load of which nothing is in flight.
     * The load is the caller's again.  May add loads; must not wait or close. */
    void (*done)(plumb_load *load, int error, int extent, int64_t offset);
    void *user;
    /* The queue's own. */
    plumb_load *next;
    int extent_now, pieces, error, error_extent; /* cursor, unfinished pieces, first fault */
    int64_t offset_now, error_offset;
    bool urgent;
};

typedef struct plumb_read_queue plumb_read_queue;

typedef struct plumb_read_stats {
    int64_t bytes;          /* that arrived */
    double urgent_seconds;  /* while at least one urgent load was unfinished */
    int64_t urgent_bytes;   /* that arrived in that time */
    double busy_seconds;    /* while any read was unfinished */
} plumb_read_stats;

/* Takes the reader over, unless it fails.  piece_bytes: a multiple of PLUMB_READ_ALIGNMENT. */
PLUMB_MUST_CHECK plumb_status plumb__read_queue_open(plumb_reader *reader, int64_t piece_bytes,
                                                     plumb_read_queue **queue, plumb_error *err);
/* Drops what has not begun (`done` comes with ECANCELED), waits for the rest, closes the reader.
 * Nobody may add loads any more.  NULL is fine. */
void plumb__read_queue_close(plumb_read_queue *queue);
plumb_reader *plumb__read_queue_reader(plumb_read_queue *queue);

/* The load must live until `done` has been called. */
void plumb__read_queue_add(plumb_read_queue *queue, plumb_load *load, bool urgent);
/* A load that was read ahead is now demanded. Nothing happens when it is urgent already or finished. */
void plumb__read_queue_urge(plumb_read_queue *queue, plumb_load *load);
/* Stops a load.  True: nothing of it was in flight, it is the caller's again and `done` will not be
 * called.  False: it is finished, or `done` comes with the last piece in flight, with ECANCELED, or the
 * fault that came before it. */
bool plumb__read_queue_cancel(plumb_read_queue *queue, plumb_load *load);
/* Returns when no load is unfinished and every `done` has returned. */
void plumb__read_queue_wait_idle(plumb_read_queue *queue);
void plumb__read_queue_stats(plumb_read_queue *queue, plumb_read_stats *stats);

#endif
