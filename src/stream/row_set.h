/* The distinct numbers of a list, in the order in which they first appear, and for every place of
 * the list which of them it is.  A hash table with open addressing, sized for the list. */
#ifndef PLUMB_STREAM_ROW_SET_H
#define PLUMB_STREAM_ROW_SET_H

#include "plumb.h"

/* Starts as {0}; its memory is kept from list to list. */
typedef struct plumb_row_set {
    int64_t n, n_distinct;
    int32_t *place;    /* [n] index into distinct */
    int64_t *distinct; /* [n_distinct] */
    int32_t *bucket;   /* index into distinct, or -1 */
    int64_t capacity;  /* longest list that there is room for */
} plumb_row_set;

/* numbers[n], 0 <= n < 2^30, none negative.  On failure the set is empty. */
PLUMB_MUST_CHECK plumb_status plumb__row_set_make(plumb_row_set *set, const int64_t *numbers,
                                                  int64_t n, plumb_error *err);
void plumb__row_set_free(plumb_row_set *set);

#endif
