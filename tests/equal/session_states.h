/* What two sessions hold, byte for byte. */
#ifndef PLUMB_TESTS_EQUAL_SESSION_STATES_H
#define PLUMB_TESTS_EQUAL_SESSION_STATES_H

#include "engine/engine.h"
#include "equal/specimen.h"

typedef struct session_difference {
    char text[96]; /* "": none */
} session_difference;

/* The first difference among the bytes that have a meaning at their lengths.  Slot length mod window of a
 * ring, whose position the next one no longer sees, has none in y when it went back by a step. */
session_difference session_states_compare(const plumb_session *x, const plumb_session *y);

/* As a check of t.h; `how` says how y came to its state. */
#define CHECK_STATES(x, y, how)                                                                     \
    do {                                                                                            \
        session_difference d_ = session_states_compare(x, y);                                       \
        T_CHECK(d_.text[0] == 0, "%s: %s", how, d_.text);                                           \
    } while (0)

#endif
