/* Which lengths of context a benchmark measures at, and how far it gets.  Numbers only: nothing
 * here knows of models or files. */
#ifndef PLUMB_CLI_BENCH_WALK_H
#define PLUMB_CLI_BENCH_WALK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_walk {
    int64_t start, most; /* the first and the last frontier, 1 <= start <= most <= 2^24 */
    int64_t increment;   /* 1 to 2^24 */
    double multiplier;   /* above 1 it takes the increment's place; at most 10^6 */
} cli_walk;

/* The frontier after `frontier` (0: before the first), or 0 after the last.  Each is beyond the one
 * before; the last is `most`, however near it lies. */
int64_t cli_walk_next(const cli_walk *walk, int64_t frontier);

/* What there is to walk over. */
typedef struct cli_walk_room {
    int64_t tokens;     /* of the sequence */
    int64_t context;    /* positions of the session */
    int64_t gen_tokens; /* wanted at each frontier */
    bool from_sequence; /* these are the sequence's own: the walk ends where that many are left */
} cli_walk_room;

/* The furthest frontier that there are tokens for; below 1 when there is none. */
int64_t cli_walk_tokens_end(const cli_walk_room *room);
/* Tokens to generate at a frontier: as many as the context still holds. */
int64_t cli_walk_generates(const cli_walk_room *room, int64_t frontier);

#endif
