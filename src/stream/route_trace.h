/* Recorded routes: which experts every row of every layer chose, as a text file.
 *
 *     plumb routes 1 LAYERS EXPERTS K
 *     POSITION LAYER ID ... ID          K different ids, ascending
 *
 * Lines stand in the order of evaluation: a batch is evaluated layer by layer, so all of its rows
 * of one layer are neighbours, positions rising by one.  That is enough to find the batches again;
 * only in a model of a single layer do batches whose positions follow each other read as one.
 *
 * A trace of any length is read through one small buffer, a group at a time: the rows of one batch
 * in one layer, which is what the expert cache is asked for at once. */
#ifndef PLUMB_STREAM_ROUTE_TRACE_H
#define PLUMB_STREAM_ROUTE_TRACE_H

#include "plumb.h"

#include <stdio.h>

typedef struct plumb_route_shape {
    int64_t layers, experts, per_token;
} plumb_route_shape;

/* ---- Writing.  `name` is what errors call the file; the stream stays the caller's. ---- */

PLUMB_MUST_CHECK plumb_status plumb__route_trace_begin(FILE *file, const char *name,
                                                       const plumb_route_shape *shape,
                                                       plumb_error *err);
/* Rows of positions `position`, `position` + 1, ...: ids [rows][per_token]. */
PLUMB_MUST_CHECK plumb_status plumb__route_trace_add(FILE *file, const char *name,
                                                     const plumb_route_shape *shape,
                                                     int64_t position, int64_t layer, int64_t rows,
                                                     const int32_t *ids, plumb_error *err);

/* ---- Reading ---- */

typedef struct plumb_route_group {
    int64_t batch; /* from 0 */
    int64_t layer, position, rows;
    int64_t n;           /* different experts of the rows */
    const int32_t *id;   /* [n] ascending; valid until the next call */
    const int64_t *uses; /* [n] rows that chose each */
} plumb_route_group;

typedef struct plumb_route_trace plumb_route_trace;

/* Reads the first line.  Errors name the line. */
PLUMB_MUST_CHECK plumb_status plumb__route_trace_open(const char *path, plumb_route_trace **trace,
                                                      plumb_error *err);
void plumb__route_trace_close(plumb_route_trace *trace);
const plumb_route_shape *plumb__route_trace_shape(const plumb_route_trace *trace);
/* The next group; *more is false, and the group untouched, at the end of the file. */
PLUMB_MUST_CHECK plumb_status plumb__route_trace_next(plumb_route_trace *trace,
                                                      plumb_route_group *group, bool *more,
                                                      plumb_error *err);

#endif
