/* Does guessing the next layer's experts pay?
 *
 * A right guess saves part of a read; a wrong one costs a read of idle time and a slot, and the
 * guess itself costs the time to compute it.  Published measurements find a gain at 0.4 wasted reads
 * for a useful one and a loss at 7, so guessing goes on while at most two are wasted for each that
 * is used, pauses when not, and tries again now and then: text changes. */
#ifndef PLUMB_STREAM_GUESS_CONTROL_H
#define PLUMB_STREAM_GUESS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct plumb_guess_control {
    int64_t useful, wasted; /* totals when the present trial began */
    int64_t paused;         /* layers still to go without a guess */
} plumb_guess_control;

/* Asked once for every layer but the last, with the totals so far. */
bool plumb__guess_pays(plumb_guess_control *control, int64_t useful, int64_t wasted);

#endif
