/* Whether a client takes its answer in earnest.  Whoever leaves much of it keeps a slot from others, and a byte now
 * and then would keep it for ever. */
#ifndef PLUMB_SERVER_PACE_H
#define PLUMB_SERVER_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PLUMB_PACE_WAITING_BYTES = 512 << 10, /* with less than that waiting for it, no client is slow */
    PLUMB_PACE_LEAST_BYTES = 64 << 10,    /* what it must take of more, in as many ticks */
    PLUMB_PACE_TICKS = 600
};

/* All zero: before the first tick. */
typedef struct plumb_pace {
    int64_t taken; /* when the ticks began */
    int ticks;
} plumb_pace;

/* Once a tick, with all bytes written so far and those that the client has not taken. */
bool plumb__pace_is_too_slow(plumb_pace *pace, int64_t written, int64_t unsent);

#endif
