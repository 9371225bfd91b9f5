/* Rows of the Engram tables, fetched in the background.
 *
 * Which rows a batch looks up depends on its token ids only, so they are asked for before any layer
 * runs, for every Engram layer, and collected when the layer is reached.  In between the reads are
 * under way, as many at a time as the reader takes: single rows lie scattered over a hundred
 * gigabytes, and only many reads at once make a drive give them quickly.  A row that a batch asks
 * for twice is read once, and one that was read lately comes out of a small cache.
 *
 * Reads are buffered and without read-ahead: at a few hundred bytes that is faster than direct
 * ones.  Every row is checked for NaN when it is collected, and the files for not having changed
 * since the checkpoint was opened. */
#ifndef PLUMB_STREAM_ENGRAM_ROWS_H
#define PLUMB_STREAM_ENGRAM_ROWS_H

#include "format/checkpoint.h"
#include "stream/reader.h"

/* Rows in the cache: 17 MB at the released shape. */
enum { PLUMB_ENGRAM_CACHE_ROWS = 65536 };

typedef struct plumb_engram_rows plumb_engram_rows;

/* Since it was opened. */
typedef struct plumb_engram_row_stats {
    int64_t asked;    /* rows, as often as they were asked for */
    int64_t distinct; /* of these, once per batch and table */
    int64_t cached;   /* of the distinct ones, came from the cache */
    int64_t reads;    /* that the system answered */
    int64_t bytes;    /* that arrived */
} plumb_engram_row_stats;

/* A reader for single rows: io_uring with many reads in flight, or a pool of a few threads. */
PLUMB_MUST_CHECK plumb_status plumb__engram_rows_reader(plumb_reader_kind kind,
                                                        plumb_reader **reader, plumb_error *err);

/* The checkpoint is kept and must outlive the fetcher.  The reader is taken over, even when this
 * fails.  cache_rows >= 0. */
PLUMB_MUST_CHECK plumb_status plumb__engram_rows_open(const plumb_checkpoint *checkpoint,
                                                      plumb_reader *reader, int64_t cache_rows,
                                                      plumb_engram_rows **rows, plumb_error *err);
/* Waits for reads that are under way. */
void plumb__engram_rows_close(plumb_engram_rows *rows);

/* begin, finish and abandon are called by one thread at a time. */

/* Starts fetching numbers[n] of the engram-th Engram layer's table; the numbers are copied.  Every
 * begin is followed by one finish for that layer, or by an abandon. */
PLUMB_MUST_CHECK plumb_status plumb__engram_rows_begin(plumb_engram_rows *rows, int engram,
                                                       const int64_t *numbers, int64_t n,
                                                       plumb_error *err);
/* Waits for these rows and stores them in the order asked for: codes [n][dim] e4m3, scales
 * [n][dim/32] ue8m0.  An error names file, tensor and offset. */
PLUMB_MUST_CHECK plumb_status plumb__engram_rows_finish(plumb_engram_rows *rows, int engram,
                                                        uint8_t *codes, uint8_t *scales,
                                                        plumb_error *err);
/* Drops what was begun and not finished, if anything.  Waits for the reads in flight only. */
void plumb__engram_rows_abandon(plumb_engram_rows *rows);

/* Memory that a batch which asks for n rows of a table makes the fetcher keep, at most. */
int64_t plumb__engram_rows_bytes(const plumb_model_config *config, int64_t n);

/* May be called from any thread. */
void plumb__engram_rows_stats(plumb_engram_rows *rows, plumb_engram_row_stats *stats);

#endif
