/* See pace.h. */
#include "server/pace.h"

bool plumb__pace_is_too_slow(plumb_pace *pace, int64_t written, int64_t unsent) {
    const int64_t taken = written - unsent;
    bool over = ++pace->ticks >= PLUMB_PACE_TICKS;
    if (unsent >= PLUMB_PACE_WAITING_BYTES && !over) return false;
    bool slow = unsent >= PLUMB_PACE_WAITING_BYTES && taken - pace->taken < PLUMB_PACE_LEAST_BYTES;
    *pace = (plumb_pace){.taken = taken};
    return slow;
}
