/* The expert cache on the files of `tiny`, for the tests of it: a reader of the test's choice, requests
 * whose experts are compared with their payloads read plainly, and a look for slots that were lost.
 *
 * Checks are counted in the program that includes this. */
#ifndef PLUMB_TESTS_STREAM_EXPERT_CACHE_RIG_H
#define PLUMB_TESTS_STREAM_EXPERT_CACHE_RIG_H

#include "stream/expert_cache_parts.h"

#include <stdlib.h>

#include "stream/scripted_reader.h"
#include "t.h"

/* An expert of tiny is one run of 14,688 bytes. */
enum { DEPTH = 16, PIECE = 4096, PIECES = 4, MOST = 16 };
#define TINY BUILD_DIR "/checkpoints/tiny"

static inline void must(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "expert cache: %s\n", what);
    exit(1);
}

/* ---- Fixture ----------------------------------------------------------------------------------- */

typedef struct fixture {
    plumb_checkpoint *checkpoint;
    plumb_checkpoint *plain; /* whose payloads it must have: another one, or NULL for its own */
    int64_t layers, experts;
    plumb_reader *reader;
    scripted_reader *script; /* the same, or NULL */
    plumb_expert_cache *cache;
} fixture;

static inline fixture open_files_of(const char *path) {
    fixture f = {0};
    must(plumb__checkpoint_open(path, NULL, NULL, &f.checkpoint, NULL) == PLUMB_OK, path);
    const plumb_model_config *c = plumb__checkpoint_config(f.checkpoint);
    f.layers = c->layers;
    f.experts = c->experts;
    must(f.experts == 8 && f.layers == 6, "another shape");
    return f;
}

static inline fixture open_files(void) { return open_files_of(TINY); }

static inline void open_cache(fixture *f, int64_t slots, plumb_eviction eviction, bool uncached) {
    const plumb_expert_cache_options options = {.slots = slots, .eviction = eviction,
                                                .uncached = uncached, .reader = f->reader,
                                                .piece_bytes = PIECE};
    must(plumb__expert_cache_open(f->checkpoint, &options, &f->cache, NULL) == PLUMB_OK, "cache");
}

/* Over a scripted reader of that depth. */
static inline fixture open_scripted(int64_t slots, plumb_eviction eviction, int depth) {
    fixture f = open_files();
    f.script = scripted_reader_open(depth);
    f.reader = scripted_reader_base(f.script);
    open_cache(&f, slots, eviction, false);
    return f;
}

static inline void close_fixture(fixture *f) {
    plumb__expert_cache_close(f->cache);
    plumb__checkpoint_close(f->checkpoint);
    if (f->plain) plumb__checkpoint_close(f->plain);
}

static inline plumb_expert_cache_stats stats_of(const fixture *f) {
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(f->cache, &stats);
    return stats;
}

/* Lets everything under way finish, then looks for slots that were lost on the way. */
static inline void check_whole(const fixture *f, int64_t slots, const char *when) {
    plumb_expert_cache *c = f->cache;
    plumb__read_queue_wait_idle(c->queue);
    pthread_mutex_lock(&c->lock);
    int64_t usable = 0, used = 0, pinned = 0;
    for (int64_t i = 0; i < c->table.capacity; i++) {
        usable += c->table.slot[i].key != PLUMB_SLOT_RETIRED;
        used += c->table.slot[i].key >= 0;
        pinned += c->table.slot[i].pins != 0;
    }
    T_CHECK(c->table.slots == slots && usable == slots && used == c->table.used,
            "%s: %" PRId64 " slots, %" PRId64 " usable, %" PRId64 " used, %" PRId64 " counted", when,
            c->table.slots, usable, used, c->table.used);
    T_CHECK(c->table.pinned == 0 && pinned == 0 && c->held_ahead == 0 && c->warming == 0,
            "%s: %" PRId64 " pinned, %" PRId64 " ahead, %" PRId64 " warming", when, c->table.pinned,
            c->held_ahead, c->warming);
    for (int64_t i = 0; i < c->slot_room; i++)
        if (c->slot[i])
            T_CHECK(!c->slot[i]->loading && !c->slot[i]->requested && !c->slot[i]->ahead &&
                        !c->slot[i]->fault,
                    "%s: slot %" PRId64, when, i);
    pthread_mutex_unlock(&c->lock);
}

static inline bool holds(const fixture *f, int64_t layer, int64_t id) {
    pthread_mutex_lock(&f->cache->lock);
    int64_t slot = plumb__slot_find(&f->cache->table, layer * f->experts + id);
    bool ready = slot >= 0 && f->cache->slot[slot]->ready;
    pthread_mutex_unlock(&f->cache->lock);
    return ready;
}

/* ---- Requests ---------------------------------------------------------------------------------- */

/* Is this the expert, payload for payload as the files have it? */
static inline bool is_expert(const fixture *f, const plumb_expert *expert, int64_t layer, int64_t id) {
    const plumb_matrix *matrix[3] = {&expert->gate, &expert->down, &expert->up};
    static uint8_t plain[1 << 16];
    const plumb_checkpoint *checkpoint = f->plain ? f->plain : f->checkpoint;
    bool same = true;
    for (int i = 0; i < 6; i++) {
        const plumb_tensor *t = plumb__checkpoint_find(
            checkpoint, "layers.%d.ffn.experts.%d.w%d.%s", (int)layer, (int)id, i / 2 + 1,
            i % 2 ? "scale" : "weight");
        must(t && t->bytes <= (int64_t)sizeof plain &&
                 plumb__checkpoint_read(checkpoint, t, 0, t->bytes, plain, NULL) == PLUMB_OK,
             "payload");
        const void *held = i % 2 ? (const void *)matrix[i / 2]->scales : matrix[i / 2]->codes;
        same &= memcmp(held, plain, (size_t)t->bytes) == 0;
    }
    return same;
}

static inline plumb_status request(const fixture *f, int64_t layer, const int32_t *ids, int64_t n,
                            plumb_error *err) {
    static const int32_t rows[MOST] = {1, 3, 2, 1, 1, 5, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1};
    return plumb__expert_cache_request(f->cache, layer, ids, rows, n, err);
}

/* Takes what is left of a request, `most` at a time: how many came, each once and as in the files; -1
 * when one failed. */
static inline int64_t take_all(const fixture *f, int64_t layer, const int32_t *ids, int64_t n, int64_t most,
                        plumb_error *err) {
    bool seen[MOST] = {false};
    for (int64_t total = 0;;) {
        int32_t which[MOST];
        plumb_expert expert[MOST];
        int64_t count;
        if (plumb__expert_cache_take(f->cache, most, true, which, expert, &count, err) != PLUMB_OK)
            return -1;
        if (count == 0) return total;
        for (int64_t i = 0; i < count; i++) {
            bool valid = which[i] >= 0 && which[i] < n && !seen[which[i]];
            T_CHECK(valid, "layer %" PRId64 ": index %d", layer, (int)which[i]);
            if (!valid) continue;
            seen[which[i]] = true;
            T_CHECK(is_expert(f, &expert[i], layer, ids[which[i]]),
                    "layer %" PRId64 ", expert %d: other bytes", layer, (int)ids[which[i]]);
        }
        total += count;
        plumb__expert_cache_give_back(f->cache);
    }
}

static inline void use(const fixture *f, int64_t layer, const int32_t *ids, int64_t n) {
    plumb_error err = {0};
    plumb_status status = request(f, layer, ids, n, &err);
    int64_t count = status == PLUMB_OK ? take_all(f, layer, ids, n, MOST, &err) : -1;
    T_CHECK(count == n, "%" PRId64 " of %" PRId64 ": %s %s", count, n, err.field, err.found);
    if (count < 0) plumb__expert_cache_abandon(f->cache);
}

static const int32_t all[8] = {0, 1, 2, 3, 4, 5, 6, 7};

#endif
