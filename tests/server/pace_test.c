/* Clients that take their answers quickly, slowly and in spurts, tick by tick. */
#include "server/pace.h"
#include "t.h"

enum { MUCH = PLUMB_PACE_WAITING_BYTES, LEAST = PLUMB_PACE_LEAST_BYTES, TICKS = PLUMB_PACE_TICKS };

static int64_t taken_steadily(int tick) { return (int64_t)tick * (LEAST / TICKS + 1); }
static int64_t taken_too_slowly(int tick) { return (int64_t)tick * (LEAST / TICKS); }
static int64_t taken_at_the_start(int tick) { return tick > 0 ? 100 * (int64_t)LEAST : 0; }
static int64_t taken_in_spurts(int tick) { return tick / TICKS * (int64_t)LEAST; }
static int64_t nothing_taken(int tick) { return 0 * tick; }

static int64_t much(int tick) { return MUCH + 0 * tick; }
static int64_t little(int tick) { return MUCH - 1 + 0 * tick; }
static int64_t little_at_times(int tick) { return tick % TICKS == 7 ? MUCH - 1 : MUCH; }
static int64_t little_once(int tick) { return tick == 7 ? MUCH - 1 : MUCH; }

static const struct {
    const char *what;
    int64_t (*taken)(int tick), (*unsent)(int tick);
    int slow_at; /* 0: never */
} cases[] = {
    {"steadily", taken_steadily, much, 0},
    {"too slowly", taken_too_slowly, much, TICKS},
    {"too slowly, but little waits", taken_too_slowly, little, 0},
    {"much at the start", taken_at_the_start, much, 2 * TICKS},
    {"in spurts", taken_in_spurts, much, 0},
    {"nothing", nothing_taken, much, TICKS},
    {"nothing, but little waits", nothing_taken, little, 0},
    {"nothing, and little waits at times", nothing_taken, little_at_times, 0},
    {"nothing, and little waited once", nothing_taken, little_once, 7 + TICKS},
};

static void paces(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plumb_pace pace = {0};
        int slow_at = 0;
        for (int tick = 1; tick <= 5 * TICKS && !slow_at; tick++) {
            int64_t unsent = cases[i].unsent(tick);
            if (plumb__pace_is_too_slow(&pace, cases[i].taken(tick) + unsent, unsent)) slow_at = tick;
        }
        T_CHECK(slow_at == cases[i].slow_at, "%s: %d", cases[i].what, slow_at);
    }
}

T_MAIN({"paces", paces})
