/* Made-up routes through the cache, against counts that replay_reference.py found with a cache of its
 * own, made of lists. */
#include "stream/route_replay.h"

#include "t.h"

enum { LAYERS = 6, LOWER = 4, EXPERTS = 16, K = 3, MOST_ROWS = 20 };

static const char path[] = BUILD_DIR "/route_replay_test.txt";

/* ---- The routes of replay_reference.py --------------------------------------------------------- */

static uint64_t state;

static int32_t below(uint64_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int32_t)((state >> 33) % n);
}

static void choose(int32_t ids[K]) {
    for (int n = 0; n < K;) {
        int32_t a = below(EXPERTS), b = below(EXPERTS), chosen = a < b ? a : b;
        bool taken = false;
        for (int i = 0; i < n; i++) taken |= ids[i] == chosen;
        if (!taken) ids[n++] = chosen;
    }
}

static void write_batch(FILE *file, int64_t position, int64_t lower, int64_t upper) {
    static const plumb_route_shape shape = {LAYERS, EXPERTS, K};
    int32_t ids[MOST_ROWS * K];
    plumb_error err = {0};
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int64_t rows = layer < LOWER ? lower : upper;
        for (int64_t r = 0; r < rows; r++) choose(ids + r * K);
        T_CHECK(plumb__route_trace_add(file, path, &shape, position + lower - rows, layer, rows, ids,
                                       &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    }
}

static void write_routes(void) {
    static const struct {
        int64_t times, lower, upper;
    } batches[] = {{1, 20, 5}, {60, 1, 1}, {1, 7, 7}, {40, 1, 1}, {1, 9, 0}, {20, 1, 1}};
    static const plumb_route_shape shape = {LAYERS, EXPERTS, K};
    plumb_error err = {0};
    FILE *file = fopen(path, "wb");
    T_CHECK(file != NULL, "%s", path);
    if (!file) return;
    T_CHECK(plumb__route_trace_begin(file, path, &shape, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    int64_t position = 0;
    state = 1;
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++)
        for (int64_t i = 0; i < batches[b].times; i++) {
            write_batch(file, position, batches[b].lower, batches[b].upper);
            position += batches[b].lower;
        }
    T_CHECK(fclose(file) == 0, "unexpected");
}

/* ---- Tests ------------------------------------------------------------------------------------- */

static const struct {
    int64_t slots;
    plumb_eviction eviction;
    int64_t decode_wanted, decode_hits, prefill_wanted, prefill_hits;
} expected[] = {
    {1, PLUMB_EVICT_LRU, 2160, 0, 176, 0},
    {1, PLUMB_EVICT_AGE_OVER_USE, 2160, 0, 176, 0},
    {2, PLUMB_EVICT_LRU, 2160, 0, 176, 0},
    {2, PLUMB_EVICT_AGE_OVER_USE, 2160, 0, 176, 0},
    {5, PLUMB_EVICT_LRU, 2160, 0, 176, 0},
    {5, PLUMB_EVICT_AGE_OVER_USE, 2160, 0, 176, 0},
    {18, PLUMB_EVICT_LRU, 2160, 540, 176, 10},
    {18, PLUMB_EVICT_AGE_OVER_USE, 2160, 419, 176, 12},
    {24, PLUMB_EVICT_LRU, 2160, 547, 176, 17},
    {24, PLUMB_EVICT_AGE_OVER_USE, 2160, 588, 176, 22},
    {40, PLUMB_EVICT_LRU, 2160, 1007, 176, 40},
    {40, PLUMB_EVICT_AGE_OVER_USE, 2160, 1121, 176, 48},
    {64, PLUMB_EVICT_LRU, 2160, 1689, 176, 80},
    {64, PLUMB_EVICT_AGE_OVER_USE, 2160, 1809, 176, 83},
    {96, PLUMB_EVICT_LRU, 2160, 2139, 176, 102},
    {96, PLUMB_EVICT_AGE_OVER_USE, 2160, 2139, 176, 102},
    {500, PLUMB_EVICT_LRU, 2160, 2139, 176, 102},
    {500, PLUMB_EVICT_AGE_OVER_USE, 2160, 2139, 176, 102},
};
enum { REPLAYS = sizeof expected / sizeof expected[0] };

static void counts(void) {
    plumb_replay replays[REPLAYS] = {{.slots = 0}};
    for (int i = 0; i < REPLAYS; i++) {
        replays[i].slots = expected[i].slots;
        replays[i].eviction = expected[i].eviction;
    }
    write_routes();
    plumb_route_shape shape = {0, 0, 0};
    plumb_error err = {0};
    T_CHECK(plumb__route_replay(path, &shape, replays, REPLAYS, &err) == PLUMB_OK, "%s %s", err.field,
            err.found);
    T_CHECK(shape.layers == LAYERS && shape.experts == EXPERTS && shape.per_token == K, "unexpected");
    for (int i = 0; i < REPLAYS; i++) {
        const plumb_replay_count *d = &replays[i].decode, *p = &replays[i].prefill;
        T_CHECK(d->wanted == expected[i].decode_wanted && d->hits == expected[i].decode_hits &&
                    p->wanted == expected[i].prefill_wanted && p->hits == expected[i].prefill_hits,
                "%" PRId64 " slots, %s: %" PRId64 " of %" PRId64 ", %" PRId64 " of %" PRId64,
                replays[i].slots, plumb__eviction_name(replays[i].eviction), d->hits, d->wanted,
                p->hits, p->wanted);
        T_CHECK(d->batches == 120 && d->tokens == 120 && p->batches == 3 && p->tokens == 20 + 7 + 9, "unexpected");
        T_CHECK(replays[i].slots == expected[i].slots && replays[i].distinct == 95, "unexpected");
    }
}

static void rates(void) {
    static const plumb_replay_count count = {.batches = 2, .tokens = 8, .wanted = 40, .hits = 10};
    static const plumb_replay_count none = {0};
    T_CHECK(plumb__replay_hit_rate(&count) == 0.25 && plumb__replay_misses(&count) == 3.75, "unexpected");
    T_CHECK(plumb__replay_hit_rate(&none) == 0 && plumb__replay_misses(&none) == 0, "unexpected");
}

/* A fault in the middle of a file is an error, not a shorter trace. */
static void fault(void) {
    FILE *file = fopen(path, "wb");
    T_CHECK(file != NULL, "unexpected");
    if (!file) return;
    fputs("plumb routes 1 2 4 1\n0 0 1\n0 1 2\n1 0 4\n", file);
    T_CHECK(fclose(file) == 0, "unexpected");
    plumb_replay replay = {.slots = 1};
    plumb_route_shape shape = {7, 7, 7};
    plumb_error err = {0};
    T_CHECK(plumb__route_replay(path, &shape, &replay, 1, &err) == PLUMB_ERROR_FORMAT, "%s: %s", err.field, err.found);
    T_CHECK(!strcmp(err.field, "line 4") && shape.layers == 7, "%s", err.field);
}

T_MAIN({"counts", counts}, {"rates", rates}, {"fault", fault})
