#include "cli/bench_walk.h"

#include <math.h>

int64_t cli_walk_next(const cli_walk *walk, int64_t frontier) {
    if (frontier == 0) return walk->start;
    if (frontier >= walk->most) return 0;
    int64_t next = walk->multiplier > 1 ? (int64_t)ceil((double)frontier * walk->multiplier)
                                        : frontier + walk->increment;
    return next < walk->most ? next : walk->most;
}

int64_t cli_walk_tokens_end(const cli_walk_room *room) {
    return room->tokens - (room->from_sequence ? room->gen_tokens : 0);
}

int64_t cli_walk_generates(const cli_walk_room *room, int64_t frontier) {
    int64_t left = room->context - frontier;
    return left < room->gen_tokens ? left : room->gen_tokens;
}
