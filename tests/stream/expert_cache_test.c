/* The expert cache by itself, on the files of `tiny`: requests of every size through every number of
 * slots, what may give way and what must not, reads that are held back, fail, are given up and wanted
 * again.  Whatever is taken is compared with its payloads read plainly. */
#include "stream/expert_cache_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stream/faulty_reader.h"
#include "stream/scripted_reader.h"
#include "t.h"

/* An expert of tiny is one run of 14,688 bytes. */
enum { DEPTH = 16, PIECE = 4096, PIECES = 4, MOST = 16, FAULTY_LOADS = 10000 };
#define TINY BUILD_DIR "/checkpoints/tiny"

static void must(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "expert_cache_test: %s\n", what);
    exit(1);
}

/* ---- Fixture ----------------------------------------------------------------------------------- */

typedef struct fixture {
    plumb_checkpoint *checkpoint;
    int64_t layers, experts;
    plumb_reader *reader;
    scripted_reader *script; /* the same, or NULL */
    plumb_expert_cache *cache;
} fixture;

static fixture open_files(void) {
    fixture f = {0};
    must(plumb__checkpoint_open(TINY, NULL, NULL, &f.checkpoint, NULL) == PLUMB_OK, TINY);
    const plumb_model_config *c = plumb__checkpoint_config(f.checkpoint);
    f.layers = c->layers;
    f.experts = c->experts;
    must(f.experts == 8 && f.layers == 6, "another shape");
    return f;
}

static void open_cache(fixture *f, int64_t slots, plumb_eviction eviction, bool uncached) {
    const plumb_expert_cache_options options = {.slots = slots, .eviction = eviction,
                                                .uncached = uncached, .reader = f->reader,
                                                .piece_bytes = PIECE};
    must(plumb__expert_cache_open(f->checkpoint, &options, &f->cache, NULL) == PLUMB_OK, "cache");
}

/* Over a scripted reader of that depth. */
static fixture open_scripted(int64_t slots, plumb_eviction eviction, int depth) {
    fixture f = open_files();
    f.script = scripted_reader_open(depth);
    f.reader = scripted_reader_base(f.script);
    open_cache(&f, slots, eviction, false);
    return f;
}

static void close_fixture(fixture *f) {
    plumb__expert_cache_close(f->cache);
    plumb__checkpoint_close(f->checkpoint);
}

static plumb_expert_cache_stats stats_of(const fixture *f) {
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(f->cache, &stats);
    return stats;
}

/* Lets everything under way finish, then looks for slots that were lost on the way. */
static void check_whole(const fixture *f, int64_t slots, const char *when) {
    plumb_expert_cache *c = f->cache;
    plumb__read_queue_wait_idle(c->queue);
    pthread_mutex_lock(&c->lock);
    int64_t usable = 0, used = 0;
    for (int64_t i = 0; i < c->table.capacity; i++) {
        usable += c->table.slot[i].key != PLUMB_SLOT_RETIRED;
        used += c->table.slot[i].key >= 0;
    }
    T_CHECK(c->table.slots == slots && usable == slots && used == c->table.used,
            "%s: %" PRId64 " slots, %" PRId64 " usable, %" PRId64 " used, %" PRId64 " counted", when,
            c->table.slots, usable, used, c->table.used);
    T_CHECK(c->table.pinned == 0 && c->held_ahead == 0 && c->warming == 0,
            "%s: %" PRId64 " pinned, %" PRId64 " ahead, %" PRId64 " warming", when, c->table.pinned,
            c->held_ahead, c->warming);
    for (int64_t i = 0; i < c->slot_room; i++)
        if (c->slot[i])
            T_CHECK(!c->slot[i]->loading && !c->slot[i]->requested && !c->slot[i]->ahead &&
                        !c->slot[i]->fault,
                    "%s: slot %" PRId64, when, i);
    pthread_mutex_unlock(&c->lock);
}

static bool holds(const fixture *f, int64_t layer, int64_t id) {
    pthread_mutex_lock(&f->cache->lock);
    int64_t slot = plumb__slot_find(&f->cache->table, layer * f->experts + id);
    bool ready = slot >= 0 && f->cache->slot[slot]->ready;
    pthread_mutex_unlock(&f->cache->lock);
    return ready;
}

/* ---- Requests ---------------------------------------------------------------------------------- */

/* Is this the expert, payload for payload as the files have it? */
static bool is_expert(const fixture *f, const plumb_expert *expert, int64_t layer, int64_t id) {
    const plumb_matrix *matrix[3] = {&expert->gate, &expert->down, &expert->up};
    static uint8_t plain[1 << 16];
    bool same = true;
    for (int i = 0; i < 6; i++) {
        const plumb_tensor *t = plumb__checkpoint_find(
            f->checkpoint, "layers.%d.ffn.experts.%d.w%d.%s", (int)layer, (int)id, i / 2 + 1,
            i % 2 ? "scale" : "weight");
        must(t && t->bytes <= (int64_t)sizeof plain &&
                 plumb__checkpoint_read(f->checkpoint, t, 0, t->bytes, plain, NULL) == PLUMB_OK,
             "payload");
        const void *held = i % 2 ? (const void *)matrix[i / 2]->scales : matrix[i / 2]->codes;
        same &= memcmp(held, plain, (size_t)t->bytes) == 0;
    }
    return same;
}

static plumb_status request(const fixture *f, int64_t layer, const int32_t *ids, int64_t n,
                            plumb_error *err) {
    static const int32_t rows[MOST] = {1, 3, 2, 1, 1, 5, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1};
    return plumb__expert_cache_request(f->cache, layer, ids, rows, n, err);
}

/* Takes what is left of a request, `most` at a time: how many came, each once and as in the files; -1
 * when one failed. */
static int64_t take_all(const fixture *f, int64_t layer, const int32_t *ids, int64_t n, int64_t most,
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

static void use(const fixture *f, int64_t layer, const int32_t *ids, int64_t n) {
    plumb_error err = {0};
    plumb_status status = request(f, layer, ids, n, &err);
    int64_t count = status == PLUMB_OK ? take_all(f, layer, ids, n, MOST, &err) : -1;
    T_CHECK(count == n, "%" PRId64 " of %" PRId64 ": %s %s", count, n, err.field, err.found);
    if (count < 0) plumb__expert_cache_abandon(f->cache);
}

static const int32_t all[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* A request of any size comes through any number of slots, however many are taken at once. */
static void every_size(void) {
    static const int64_t slots[] = {1, 2, 3, 7, 8, 9, 48};
    static const int32_t ids[] = {6, 0, 3, 7, 1, 5, 2, 4};
    for (size_t s = 0; s < sizeof slots / sizeof slots[0]; s++)
        for (int eviction = 0; eviction < PLUMB_EVICTIONS; eviction++)
            for (int uncached = 0; uncached < 2; uncached++) {
                fixture f = open_files();
                must(plumb__reader_open(PLUMB_READER_PREAD, DEPTH, &f.reader, NULL, 0, NULL) ==
                         PLUMB_OK,
                     "reader");
                open_cache(&f, slots[s], (plumb_eviction)eviction, uncached);
                plumb_error err = {0};
                for (int64_t n = 1; n <= 8; n++) {
                    int64_t layer = n % f.layers, most = n % 3 ? n % 3 : MOST;
                    T_CHECK(request(&f, layer, ids, n, &err) == PLUMB_OK, "%s", err.found);
                    int64_t got = take_all(&f, layer, ids, n, most, &err);
                    T_CHECK(got == n, "%" PRId64 " slots: %" PRId64 " of %" PRId64, slots[s], got, n);
                }
                check_whole(&f, slots[s], "every size");
                plumb_expert_cache_stats stats = stats_of(&f);
                T_CHECK(stats.hits + stats.misses == 36 && stats.held <= slots[s], "%" PRId64,
                        stats.hits + stats.misses);
                close_fixture(&f);
            }
}

/* What is in memory is handed out while the rest is still being read. */
static void hits_before_misses(void) {
    fixture f = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
    static const int32_t some[] = {5, 2, 7};
    use(&f, 0, some, 3);
    scripted_reader_hold(f.script, true);
    plumb_error err;
    T_CHECK(request(&f, 0, all, 8, &err) == PLUMB_OK, "request");
    int32_t which[MOST];
    plumb_expert expert[MOST];
    int64_t count = 0, ready = 0;
    T_CHECK(plumb__expert_cache_take(f.cache, MOST, false, which, expert, &count, &err) == PLUMB_OK &&
                count == 3,
            "%" PRId64 " at once", count);
    for (int64_t i = 0; i < count; i++)
        ready += (which[i] == 2 || which[i] == 5 || which[i] == 7) &&
                 is_expert(&f, &expert[i], 0, which[i]);
    T_CHECK(ready == 3, "%" PRId64 " of those in memory", ready);
    plumb__expert_cache_give_back(f.cache);
    T_CHECK(plumb__expert_cache_take(f.cache, MOST, false, which, expert, &count, &err) == PLUMB_OK &&
                count == 0,
            "%" PRId64 " from a drive that does not answer", count);
    scripted_reader_hold(f.script, false);
    T_CHECK(take_all(&f, 0, all, 8, 2, &err) == 5, "the rest");
    plumb_expert_cache_stats stats = stats_of(&f);
    T_CHECK(stats.hits == 3 && stats.misses == 3 + 5, "%" PRId64 " hits, %" PRId64 " misses",
            stats.hits, stats.misses);
    check_whole(&f, 8, "hits first");
    close_fixture(&f);
}

/* Nothing is read over an expert that is being computed with: not read ahead, not the hot list, not
 * fewer slots, not the rest of its own request. */
static void taken_experts_stay(void) {
    fixture f = open_scripted(4, PLUMB_EVICT_OLDEST, DEPTH);
    int32_t which[MOST], keys[48];
    plumb_expert expert[MOST];
    int64_t count;
    plumb_error err;
    for (int32_t i = 0; i < 48; i++) keys[i] = 47 - i;
    T_CHECK(request(&f, 2, all, 8, &err) == PLUMB_OK, "request");
    plumb__read_queue_wait_idle(f.cache->queue);
    T_CHECK(plumb__expert_cache_take(f.cache, 3, true, which, expert, &count, &err) == PLUMB_OK &&
                count == 3,
            "%" PRId64 " taken", count);
    plumb__expert_cache_read_ahead(f.cache, 3, NULL, 0);
    plumb__expert_cache_warm(f.cache, keys, 48);
    plumb__expert_cache_set_slots(f.cache, 1, PLUMB_EVICT_OLDEST);
    T_CHECK(stats_of(&f).slots >= 3, "%" PRId64 " slots with 3 taken", stats_of(&f).slots);
    plumb__expert_cache_set_slots(f.cache, 48, PLUMB_EVICT_LRU);
    plumb__expert_cache_set_slots(f.cache, 1, PLUMB_EVICT_OLDEST);
    plumb__read_queue_wait_idle(f.cache->queue);
    for (int64_t i = 0; i < count; i++)
        T_CHECK(is_expert(&f, &expert[i], 2, which[i]), "expert %d was written over", (int)which[i]);
    plumb__expert_cache_give_back(f.cache);
    int64_t rest = take_all(&f, 2, all, 8, MOST, &err);
    T_CHECK(rest == 5, "%" PRId64 " after", rest);
    plumb__read_queue_wait_idle(f.cache->queue);
    use(&f, 4, all, 8); /* lets go of what was read ahead ... */
    use(&f, 5, all, 8); /* ... and a request settles what could not be taken out of use before */
    check_whole(&f, 1, "taken");
    T_CHECK(stats_of(&f).bytes == plumb__expert_cache_slot_bytes(f.cache), "%" PRId64 " bytes",
            stats_of(&f).bytes);
    close_fixture(&f);
}

/* ---- Read ahead --------------------------------------------------------------------------------- */

static void read_ahead_is_counted(void) {
    fixture f = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
    static const int32_t wanted[] = {6, 1, 0};
    use(&f, 0, all, 4);
    plumb__expert_cache_read_ahead(f.cache, 1, NULL, 0);
    plumb__read_queue_wait_idle(f.cache->queue);
    T_CHECK(f.cache->held_ahead == 4 && holds(&f, 1, 3) && !holds(&f, 1, 4),
            "%" PRId64 " of 8 slots read ahead", f.cache->held_ahead);
    T_CHECK(holds(&f, 0, 0) && holds(&f, 0, 3), "read ahead into empty slots");
    use(&f, 1, wanted, 3);
    plumb_expert_cache_stats stats = stats_of(&f);
    T_CHECK(stats.ahead_useful == 2 && stats.ahead_wasted == 2, "%" PRId64 " useful, %" PRId64 " wasted",
            stats.ahead_useful, stats.ahead_wasted);
    T_CHECK(stats.hits == 2 && stats.misses == 4 + 1, "%" PRId64 " hits", stats.hits);
    /* What is there already costs nothing, so it is neither useful nor wasted. */
    plumb__expert_cache_read_ahead(f.cache, 1, wanted, 3);
    T_CHECK(f.cache->held_ahead == 3, "%" PRId64 " kept", f.cache->held_ahead);
    use(&f, 1, wanted, 1);
    stats = stats_of(&f);
    T_CHECK(stats.ahead_useful == 2 && stats.ahead_wasted == 2, "kept, not read");
    check_whole(&f, 8, "read ahead");
    close_fixture(&f);
    f = open_scripted(1, PLUMB_EVICT_LRU, DEPTH);
    plumb__expert_cache_read_ahead(f.cache, 1, NULL, 0);
    T_CHECK(scripted_reader_started(f.script) == 0, "half of one slot is none");
    use(&f, 1, all, 8);
    check_whole(&f, 1, "one slot");
    close_fixture(&f);
}

/* A guess that was wrong is not read any further; a right one becomes urgent. */
static void wrong_guesses_are_given_up(void) {
    fixture f = open_scripted(8, PLUMB_EVICT_LRU, 2);
    static const int32_t guess[] = {0, 1, 2, 3}, wanted[] = {2, 7};
    scripted_reader_hold(f.script, true);
    plumb__expert_cache_read_ahead(f.cache, 1, guess, 4);
    T_CHECK(scripted_reader_started(f.script) == 2, "%" PRId64 " reads begun",
            scripted_reader_started(f.script));
    plumb_error err;
    T_CHECK(request(&f, 1, wanted, 2, &err) == PLUMB_OK, "request");
    scripted_reader_hold(f.script, false);
    T_CHECK(take_all(&f, 1, wanted, 2, MOST, &err) == 2, "taken");
    check_whole(&f, 8, "wrong guesses");
    T_CHECK(!holds(&f, 1, 0) && !holds(&f, 1, 1) && !holds(&f, 1, 3) && holds(&f, 1, 2),
            "guesses read all the same");
    T_CHECK(scripted_reader_started(f.script) == 2 + 2 * PIECES, "%" PRId64 " reads",
            scripted_reader_started(f.script));
    plumb_expert_cache_stats stats = stats_of(&f);
    T_CHECK(stats.ahead_useful == 1 && stats.ahead_wasted == 3 && stats.held == 2,
            "%" PRId64 " useful, %" PRId64 " wasted, %" PRId64 " held", stats.ahead_useful,
            stats.ahead_wasted, stats.held);
    close_fixture(&f);
}

/* A load that is given up in flight, and wanted again before its last piece is in, is begun anew: by a
 * request, by a guess, by a guess that is then requested. */
static void given_up_and_wanted_again(void) {
    static const int32_t guess[] = {3}, other[] = {5};
    for (int how = 0; how < 3; how++) {
        fixture f = open_scripted(4, PLUMB_EVICT_LRU, DEPTH);
        plumb_error err;
        scripted_reader_hold(f.script, true);
        plumb__expert_cache_read_ahead(f.cache, 1, guess, 1);
        int64_t once = scripted_reader_started(f.script);
        T_CHECK(request(&f, 1, other, 1, &err) == PLUMB_OK, "other");
        plumb__expert_cache_abandon(f.cache);
        int64_t twice = scripted_reader_started(f.script);
        if (how > 0) plumb__expert_cache_read_ahead(f.cache, 1, guess, 1);
        if (how != 1) T_CHECK(request(&f, 1, guess, 1, &err) == PLUMB_OK, "again");
        T_CHECK(scripted_reader_started(f.script) == twice, "%" PRId64 " reads before the first is in",
                scripted_reader_started(f.script));
        scripted_reader_hold(f.script, false);
        if (how == 1) {
            plumb__read_queue_wait_idle(f.cache->queue);
            T_CHECK(holds(&f, 1, 3), "guessed again");
            T_CHECK(request(&f, 1, guess, 1, &err) == PLUMB_OK, "after");
        }
        T_CHECK(take_all(&f, 1, guess, 1, MOST, &err) == 1, "case %d: %s", how, err.found);
        T_CHECK(scripted_reader_started(f.script) == twice + once, "case %d: %" PRId64 " reads", how,
                scripted_reader_started(f.script));
        check_whole(&f, 4, "again");
        T_CHECK(!holds(&f, 1, 5), "what nobody wants again is not kept");
        close_fixture(&f);
    }
}

/* ---- Faults ------------------------------------------------------------------------------------- */

/* The error says which of the expert's payloads, in which file, and where. */
static void check_names_payload(const fixture *f, const plumb_error *err, int64_t layer, int64_t id) {
    char of_expert[64];
    snprintf(of_expert, sizeof of_expert, "layers.%d.ffn.experts.%d.", (int)layer, (int)id);
    const plumb_tensor *t = plumb__checkpoint_find(f->checkpoint, "%s", err->field);
    T_CHECK(t && !strncmp(err->field, of_expert, strlen(of_expert)), "field %s", err->field);
    if (!t) return;
    T_CHECK(!strcmp(err->file, plumb__checkpoint_shard_path(f->checkpoint, t->shard)), "%s", err->file);
    /* The page of an uncached read may begin before the payload. */
    T_CHECK(err->offset >= t->offset / PLUMB_READ_ALIGNMENT * PLUMB_READ_ALIGNMENT &&
                err->offset < t->offset + t->bytes,
            "%s at %" PRId64 ", not in %" PRId64 " + %" PRId64, err->field, err->offset, t->offset,
            t->bytes);
    T_CHECK(err->found[0] && err->expected[0], "no reason");
}

/* Each read of an expert fails once: the request says so, and the next one reads it again. */
static void demanded_reads_fail(void) {
    static const scripted_fault faults[] = {SCRIPTED_EIO, SCRIPTED_END_OF_FILE};
    static const int32_t ids[] = {4};
    for (int kind = 0; kind < 2; kind++) {
        fixture f = open_scripted(2, PLUMB_EVICT_LRU, 1);
        for (int64_t nth = 0; nth < PIECES; nth++) {
            plumb_error err = {0};
            int64_t layer = nth;
            scripted_reader_fail(f.script, nth, faults[kind]);
            T_CHECK(request(&f, layer, ids, 1, &err) == PLUMB_OK, "request");
            T_CHECK(take_all(&f, layer, ids, 1, MOST, &err) == -1 && err.status == PLUMB_ERROR_IO,
                    "no fault");
            T_CHECK(strstr(err.found, kind ? "end of file" : "nput/output"), "found %s", err.found);
            check_names_payload(&f, &err, layer, 4);
            plumb__expert_cache_abandon(f.cache);
            check_whole(&f, 2, "demanded");
            T_CHECK(!holds(&f, layer, 4), "held without its bytes");
            use(&f, layer, ids, 1);
        }
        close_fixture(&f);
    }
}

/* An expert read ahead in vain is no fault yet: it is read again when it is needed. */
static void guessed_reads_fail(void) {
    fixture f = open_scripted(4, PLUMB_EVICT_LRU, 1);
    static const int32_t guess[] = {1, 6};
    for (int64_t nth = 0; nth < 2 * PIECES; nth++) {
        int64_t layer = nth % f.layers;
        if (nth >= f.layers) use(&f, 3, all, 8); /* it must be read */
        scripted_reader_fail(f.script, nth, SCRIPTED_EIO);
        plumb__expert_cache_read_ahead(f.cache, layer, guess, 2);
        plumb__read_queue_wait_idle(f.cache->queue);
        T_CHECK(f.cache->held_ahead == 1 && holds(&f, layer, 1) != holds(&f, layer, 6),
                "%" PRId64 " ahead", f.cache->held_ahead);
        use(&f, layer, guess, 2);
        check_whole(&f, 4, "guessed");
    }
    T_CHECK(stats_of(&f).ahead_useful == 2 * PIECES && stats_of(&f).ahead_wasted == 0, "%" PRId64 " useful",
            stats_of(&f).ahead_useful);
    close_fixture(&f);
}

/* A request ends with experts taken, ready, being read, waiting for a slot, and failed. */
static void abandon_anywhere(void) {
    fixture f = open_scripted(3, PLUMB_EVICT_OLDEST, 1);
    for (int64_t taken = 0; taken <= 8; taken++)
        for (int fails = 0; fails < 2; fails++) {
            plumb_error err;
            int32_t which[MOST];
            plumb_expert expert[MOST];
            int64_t count, layer = taken % f.layers;
            if (fails) scripted_reader_fail(f.script, taken, SCRIPTED_EIO);
            T_CHECK(request(&f, layer, all, 8, &err) == PLUMB_OK, "request");
            plumb__expert_cache_read_ahead(f.cache, (layer + 1) % f.layers, NULL, 0);
            for (int64_t i = 0; i < taken; i++) {
                if (plumb__expert_cache_take(f.cache, 1, true, which, expert, &count, &err) != PLUMB_OK)
                    break;
                if (i + 1 < taken) plumb__expert_cache_give_back(f.cache);
            }
            plumb__expert_cache_abandon(f.cache);
            plumb__read_queue_wait_idle(f.cache->queue);
            scripted_reader_fail(f.script, 0, SCRIPTED_NONE);
            check_whole(&f, 3, "abandoned");
            use(&f, layer, all, 8);
        }
    check_whole(&f, 3, "abandoned");
    close_fixture(&f);
}

/* ---- Sizes, warm start, order ----------------------------------------------------------------------- */

static void slots_come_and_go(void) {
    static const int64_t sizes[] = {1, 5, 2, 48, 8, 1000, 3, 0, 47, 4};
    fixture f = open_scripted(4, PLUMB_EVICT_AGE_OVER_USE, DEPTH);
    for (int step = 0; step < 60; step++) {
        int64_t slots = sizes[step % 10], expected = slots < 1 ? 1 : slots > 48 ? 48 : slots;
        int32_t which[MOST];
        plumb_expert expert[MOST];
        plumb_error err;
        int64_t layer = step % f.layers, count, rest;
        T_CHECK(request(&f, layer, all, 8, &err) == PLUMB_OK, "request");
        T_CHECK(plumb__expert_cache_take(f.cache, 3, true, which, expert, &count, &err) == PLUMB_OK,
                "take");
        plumb__expert_cache_set_slots(f.cache, slots, (plumb_eviction)(step % PLUMB_EVICTIONS));
        for (int64_t i = 0; i < count; i++)
            T_CHECK(is_expert(&f, &expert[i], layer, which[i]), "step %d: written over", step);
        plumb__expert_cache_give_back(f.cache);
        rest = take_all(&f, layer, all, 8, 2, &err);
        T_CHECK(rest == 8 - count, "step %d: %" PRId64 " after %" PRId64, step, rest, count);
        use(&f, (layer + 3) % f.layers, all, 8);
        check_whole(&f, expected, "resized");
        T_CHECK(stats_of(&f).held <= expected &&
                    stats_of(&f).bytes <= expected * plumb__expert_cache_slot_bytes(f.cache),
                "step %d: %" PRId64 " held in %" PRId64 " bytes", step, stats_of(&f).held,
                stats_of(&f).bytes);
    }
    close_fixture(&f);
}

static void warm_start(void) {
    fixture f = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
    int32_t keys[48];
    for (int32_t i = 0; i < 48; i++) keys[i] = 47 - i; /* layer 5, expert 7 first */
    static const int32_t some[] = {7, 0};
    use(&f, 5, some, 2);
    plumb__expert_cache_warm(f.cache, keys, 48);
    check_whole(&f, 8, "warm");
    T_CHECK(stats_of(&f).held == 8 && holds(&f, 5, 0) && holds(&f, 5, 7), "%" PRId64 " held",
            stats_of(&f).held);
    for (int32_t id = 1; id < 7; id++) T_CHECK(holds(&f, 5, id), "expert %d is next", (int)id);
    int64_t before = scripted_reader_started(f.script);
    plumb__expert_cache_warm(f.cache, keys + 8, 40);
    T_CHECK(scripted_reader_started(f.script) == before, "no room for more");
    use(&f, 5, all, 8);
    T_CHECK(scripted_reader_started(f.script) == before && stats_of(&f).hits == 8, "%" PRId64 " hits",
            stats_of(&f).hits);
    plumb__expert_cache_set_slots(f.cache, 48, PLUMB_EVICT_LRU);
    scripted_reader_fail(f.script, 5, SCRIPTED_EIO);
    plumb__expert_cache_warm(f.cache, keys, 48);
    check_whole(&f, 48, "the rest");
    T_CHECK(stats_of(&f).held == 47, "%" PRId64 " held, one could not be read", stats_of(&f).held);
    for (int64_t layer = 0; layer < f.layers; layer++) use(&f, layer, all, 8);
    close_fixture(&f);
}

/* Closing while the hot list is being read reads no more of it. */
static void close_while_warming(void) {
    fixture f = open_scripted(48, PLUMB_EVICT_LRU, 2);
    int32_t keys[48];
    for (int32_t i = 0; i < 48; i++) keys[i] = i;
    scripted_reader_hold(f.script, true);
    plumb__expert_cache_warm(f.cache, keys, 48);
    T_CHECK(f.cache->warming == 4 && stats_of(&f).held == 4, "%" PRId64 " at a time",
            f.cache->warming);
    scripted_reader_hold(f.script, false);
    close_fixture(&f);
}

static void order_of_eviction(void) {
    for (int ring = 0; ring < 2; ring++) {
        fixture f = open_scripted(3, ring ? PLUMB_EVICT_OLDEST : PLUMB_EVICT_LRU, DEPTH);
        for (int32_t id = 0; id < 3; id++) use(&f, 0, all + id, 1);
        use(&f, 0, all, 1);
        use(&f, 0, all + 3, 1);
        T_CHECK(holds(&f, 0, 0) == !ring && holds(&f, 0, 1) == !!ring && holds(&f, 0, 2),
                "%s", ring ? "the first loaded gives way" : "the one used longest ago gives way");
        use(&f, 0, all + 4, 1);
        T_CHECK(holds(&f, 0, 3) && holds(&f, 0, 4) && holds(&f, 0, 0) == !ring, "the next");
        uint32_t uses[48];
        plumb__expert_cache_uses(f.cache, uses);
        T_CHECK(uses[0] == 2 && uses[1] == 1 && uses[4] == 1 && uses[5] == 0, "%u uses",
                (unsigned)uses[0]);
        close_fixture(&f);
    }
}

/* ---- Memory runs out ---------------------------------------------------------------------------------- */

/* Whether a limit on address space can be set and is obeyed: sanitizers need far more of it. */
static bool limit_memory(struct rlimit *was) {
    long long pages = 0;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#endif
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lld", &pages) != 1) pages = 0;
    if (file) fclose(file);
    if (pages == 0 || getrlimit(RLIMIT_AS, was) != 0) return false;
    struct rlimit now = *was;
    now.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE));
    return setrlimit(RLIMIT_AS, &now) == 0;
}

/* The system has no memory for more slots: those that have some go on, and the hot list takes none of them
 * away.  Without any the request is refused. */
static void memory_runs_out(void) {
    struct rlimit was;
    int32_t keys[48];
    for (int32_t i = 0; i < 48; i++) keys[i] = 47 - i;
    fixture some = open_scripted(8, PLUMB_EVICT_LRU, DEPTH), none = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
    use(&some, 0, all, 3);
    if (!limit_memory(&was)) {
        printf("skipped: no limit on memory here\n");
    } else {
        plumb_error err = {0};
        plumb__expert_cache_warm(some.cache, keys, 48);
        plumb__read_queue_wait_idle(some.cache->queue);
        bool kept = holds(&some, 0, 0) && holds(&some, 0, 1) && holds(&some, 0, 2);
        plumb__expert_cache_read_ahead(some.cache, 2, NULL, 0);
        use(&some, 1, all, 8);
        int64_t slots = stats_of(&some).slots;
        plumb_status status = request(&none, 0, all, 2, &err);
        must(setrlimit(RLIMIT_AS, &was) == 0, "limit");
        T_CHECK(kept, "the hot list took slots of others");
        T_CHECK(slots == 3, "%" PRId64 " slots", slots);
        T_CHECK(status == PLUMB_ERROR_MEMORY && !strcmp(err.field, "expert slot"), "status %d: %s",
                (int)status, err.field);
        plumb__expert_cache_set_slots(some.cache, 8, PLUMB_EVICT_LRU);
        plumb__expert_cache_set_slots(none.cache, 8, PLUMB_EVICT_LRU);
    }
    use(&some, 2, all, 8);
    use(&none, 2, all, 8);
    check_whole(&some, 8, "memory came back");
    check_whole(&none, 8, "memory came back");
    close_fixture(&some);
    close_fixture(&none);
}

/* ---- Ten thousand loads ------------------------------------------------------------------------------ */

static int random_below(uint64_t *state, int n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

/* Requests at random, some given up, among reads that fail in every way. */
static void many_faulty_loads(plumb_reader *inner) {
    static const fault_rule rules[] = {
        {7, true, FAULT_SHORT, 0},     {11, true, FAULT_ERROR, EINTR}, {13, true, FAULT_HOLD, 5},
        {37, true, FAULT_ERROR, EIO},  {53, true, FAULT_ZERO, 0},      {23, true, FAULT_SHORT, 3},
        {997, true, FAULT_DELAY, 300},
    };
    enum { SLOTS = 7 };
    fixture f = open_files();
    f.reader = faulty_reader_open(inner, rules, (int)(sizeof rules / sizeof *rules));
    open_cache(&f, SLOTS, PLUMB_EVICT_LRU, true);
    uint64_t random = 11;
    int64_t failed = 0, good = 0;
    while (stats_of(&f).misses < FAULTY_LOADS) {
        plumb_error err = {0};
        int64_t layer = random_below(&random, 6), n = 1 + random_below(&random, 8);
        int32_t ids[8];
        for (int32_t i = 0; i < 8; i++) ids[i] = (int32_t)((i * 3 + (int32_t)layer) % 8);
        T_CHECK(request(&f, layer, ids, n, &err) == PLUMB_OK, "%s", err.found);
        plumb__expert_cache_read_ahead(f.cache, (layer + 1) % 6, ids, random_below(&random, 9));
        if (random_below(&random, 20) == 0) {
            plumb__expert_cache_abandon(f.cache);
            continue;
        }
        int64_t got = take_all(&f, layer, ids, n, 1 + random_below(&random, 4), &err);
        if (got < 0) {
            T_CHECK(err.status == PLUMB_ERROR_IO, "status %d: %s", (int)err.status, err.found);
            plumb__expert_cache_abandon(f.cache);
        }
        failed += got < 0;
        good += got == n;
    }
    plumb__expert_cache_abandon(f.cache);
    check_whole(&f, SLOTS, "ten thousand");
    T_CHECK(failed > 100 && good > 100, "%" PRId64 " failed, %" PRId64 " good", failed, good);
    T_CHECK(stats_of(&f).bytes <= SLOTS * plumb__expert_cache_slot_bytes(f.cache), "%" PRId64 " bytes",
            stats_of(&f).bytes);
    close_fixture(&f);
}

static void ten_thousand_faulty_loads(void) {
    static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_URING};
    for (int k = 0; k < 2; k++) {
        plumb_reader *inner;
        plumb_error err = {0};
        if (plumb__reader_open(kinds[k], DEPTH, &inner, NULL, 0, &err) == PLUMB_OK)
            many_faulty_loads(inner);
        else
            printf("io_uring skipped: %s\n", err.found);
    }
}

T_MAIN({"every_size", every_size}, {"hits_before_misses", hits_before_misses},
       {"taken_experts_stay", taken_experts_stay}, {"read_ahead_is_counted", read_ahead_is_counted},
       {"wrong_guesses_are_given_up", wrong_guesses_are_given_up},
       {"given_up_and_wanted_again", given_up_and_wanted_again},
       {"demanded_reads_fail", demanded_reads_fail}, {"guessed_reads_fail", guessed_reads_fail},
       {"abandon_anywhere", abandon_anywhere}, {"slots_come_and_go", slots_come_and_go},
       {"warm_start", warm_start}, {"close_while_warming", close_while_warming},
       {"order_of_eviction", order_of_eviction}, {"memory_runs_out", memory_runs_out},
       {"ten_thousand_faulty_loads", ten_thousand_faulty_loads})
