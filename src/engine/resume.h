/* Resume points: places of a session's past whose rings and carries are kept.
 *
 * With the append-only caches such a place, and the one before it, can be gone back to without
 * evaluating anything. */
#ifndef PLUMB_ENGINE_RESUME_H
#define PLUMB_ENGINE_RESUME_H

#include "engine/engine.h"

/* Remembers the present length.  Without memory there is simply no point here. */
void plumb__resume_add(plumb_session *session);
/* Drops the points beyond `length`: the tokens after it are about to be others. */
void plumb__resume_drop_after(plumb_session *session, int64_t length);
/* Moves the state to the greatest length that is at most `length` and costs nothing: the present, a
 * point, one position before either, or empty.  Points stay. */
void plumb__resume_nearest(plumb_session *session, int64_t length);

/* Brings the model's account of its sessions' memory up to date (session.c). */
void plumb__session_count_bytes(plumb_session *session);

#endif
