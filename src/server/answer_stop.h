/* Stop strings in a stream of text: what may be the beginning of one is held back, the rest goes on.
 *
 * The stop that is complete first ends the text; of those that the same byte completes, the longest, so
 * that no byte of any is told.  What is held is the longest end of the text that some stop begins with: it
 * goes on once it cannot become one, or when the text ends. */
#ifndef PLUMB_SERVER_ANSWER_STOP_H
#define PLUMB_SERVER_ANSWER_STOP_H

#include "server/generation.h"

typedef struct plumb_stop_filter plumb_stop_filter;
typedef void (*plumb_text_sink)(void *user, const char *bytes, size_t size);

/* Copies the stops; none is fine.  Text that is pushed in whole characters goes on in whole characters. */
PLUMB_MUST_CHECK plumb_status plumb__stop_filter_create(const plumb_stop_string *stops, int n_stops,
                                                        plumb_text_sink sink, void *user,
                                                        plumb_stop_filter **filter, plumb_error *err);
void plumb__stop_filter_destroy(plumb_stop_filter *filter); /* NULL is fine */

/* After a stop was found, text is lost. */
void plumb__stop_filter_push(plumb_stop_filter *filter, const char *bytes, size_t size);
/* The text ends here: what is held goes on. */
void plumb__stop_filter_release(plumb_stop_filter *filter);
size_t plumb__stop_filter_held(const plumb_stop_filter *filter);
/* The stop that was found, NUL-terminated, as long as the filter; NULL: none yet. */
const char *plumb__stop_filter_found(const plumb_stop_filter *filter);

#endif
