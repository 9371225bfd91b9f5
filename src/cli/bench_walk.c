#include "cli/bench_walk.h"

#include <math.h>

int64_t cli_walk_next(const cli_walk *walk, int64_t frontier) {
    if (frontier == 0) return walk->start;
    if (frontier >= walk->most) return 0;
    double step = walk->multiplier > 1 ? ceil((double)frontier * walk->multiplier)
                                       : (double)frontier + (double)walk->increment;
    if (step >= (double)walk->most) return walk->most;
    /* A multiplier so near to 1 that the product is rounded to the frontier itself. */
    return (int64_t)step > frontier ? (int64_t)step : frontier + 1;
}

int64_t cli_walk_tokens_end(const cli_walk_room *room) {
    return room->tokens - (room->from_sequence ? room->gen_tokens : 0);
}

int64_t cli_walk_generates(const cli_walk_room *room, int64_t frontier) {
    int64_t left = room->context - frontier;
    return left < room->gen_tokens ? left : room->gen_tokens;
}
