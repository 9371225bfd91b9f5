/* The expert cache by itself, on the files of `tiny`: requests of every size through every number of
 * slots, what may give way and what must not, reads ahead, slots that come and go, warm starts. */
#include "stream/expert_cache_rig.h"

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

/* What has been asked for in time, as a guess or from the hot list, but is not there yet, was not in
 * memory. */
static void loading_is_a_miss(void) {
    static const int32_t ids[] = {2, 5}, keys[] = {8 + 2, 8 + 5};
    for (int warm = 0; warm < 2; warm++) {
        fixture f = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
        plumb_error err;
        scripted_reader_hold(f.script, true);
        if (warm) plumb__expert_cache_warm(f.cache, keys, 2);
        else plumb__expert_cache_read_ahead(f.cache, 1, ids, 2);
        T_CHECK(request(&f, 1, ids, 2, &err) == PLUMB_OK, "request");
        plumb_expert_cache_stats stats = stats_of(&f);
        T_CHECK(stats.hits == 0 && stats.misses == 2, "%" PRId64 " hits, %" PRId64 " misses", stats.hits,
                stats.misses);
        scripted_reader_hold(f.script, false);
        T_CHECK(take_all(&f, 1, ids, 2, MOST, &err) == 2, "taken");
        use(&f, 1, ids, 2);
        stats = stats_of(&f);
        T_CHECK(stats.hits == 2 && stats.misses == 2, "%" PRId64 " hits, %" PRId64 " misses", stats.hits,
                stats.misses);
        check_whole(&f, 8, "loading");
        close_fixture(&f);
    }
}

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
    /* What was read ahead was not in memory either. */
    T_CHECK(stats.hits == 0 && stats.misses == 4 + 3, "%" PRId64 " hits", stats.hits);
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

/* The same where a backend found them without a request. */
static void found_ahead_is_counted(void) {
    fixture f = open_scripted(8, PLUMB_EVICT_LRU, DEPTH);
    static const int32_t guess[] = {1, 6}, found[] = {6, 7}, rows[] = {2, 3};
    use(&f, 1, all + 7, 1);
    plumb__expert_cache_read_ahead(f.cache, 1, guess, 2);
    plumb__read_queue_wait_idle(f.cache->queue);
    plumb__expert_cache_used(f.cache, 1, found, rows, 2);
    plumb_expert_cache_stats stats = stats_of(&f);
    T_CHECK(stats.hits == 1 && stats.misses == 2 && stats.ahead_useful == 1,
            "%" PRId64 " hits, %" PRId64 " misses, %" PRId64 " useful", stats.hits, stats.misses,
            stats.ahead_useful);
    plumb__expert_cache_used(f.cache, 1, found, rows, 2);
    use(&f, 2, all, 1); /* lets go of what was read ahead */
    stats = stats_of(&f);
    T_CHECK(stats.hits == 3 && stats.misses == 3 && stats.ahead_useful == 1 && stats.ahead_wasted == 1,
            "%" PRId64 " hits, %" PRId64 " misses, %" PRId64 " wasted", stats.hits, stats.misses,
            stats.ahead_wasted);
    uint32_t uses[48];
    plumb__expert_cache_uses(f.cache, uses);
    T_CHECK(uses[8 + 6] == 4 && uses[8 + 7] == 1 + 6 && uses[8 + 1] == 0, "%d, %d uses", (int)uses[8 + 6],
            (int)uses[8 + 7]);
    check_whole(&f, 8, "found");
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
    int64_t slot = plumb__slot_find(&f.cache->table, f.experts + 2);
    T_CHECK(f.cache->slot[slot]->load.urgent, "now it is waited for");
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

/* Experts of the hot list that are requested while they wait for the drive, and given up with the
 * request: those of the list that follow are read all the same, and a slot that one of them had is a
 * slot like any other. */
static void warming_given_up(void) {
    enum { GIVEN_UP = 3, ROUNDS = 5 };
    fixture f = open_scripted(48, PLUMB_EVICT_LRU, 1);
    int32_t keys[48];
    plumb_error err;
    for (int32_t i = 0; i < 48; i++) keys[i] = i;
    scripted_reader_hold(f.script, true);
    for (int round = 0; round < ROUNDS; round++) {
        plumb__expert_cache_warm(f.cache, keys, 48);
        T_CHECK(f.cache->warming == 4, "round %d: %" PRId64 " warming", round, f.cache->warming);
        /* The first has a piece in flight, the others are still in the queue. */
        T_CHECK(request(&f, 0, all + 1, GIVEN_UP, &err) == PLUMB_OK, "request");
        plumb__expert_cache_abandon(f.cache);
        T_CHECK(f.cache->warming == 1 && stats_of(&f).held == 1, "round %d: %" PRId64 " warming", round,
                f.cache->warming);
        T_CHECK(request(&f, 1, all, GIVEN_UP, &err) == PLUMB_OK, "other experts in their slots");
        plumb__expert_cache_abandon(f.cache);
        T_CHECK(f.cache->warming == 1, "round %d: %" PRId64 " warming after others", round,
                f.cache->warming);
    }
    /* And the one in flight: given up, wanted again. */
    T_CHECK(request(&f, 0, all, 1, &err) == PLUMB_OK, "request");
    plumb__expert_cache_abandon(f.cache);
    T_CHECK(request(&f, 0, all, 1, &err) == PLUMB_OK, "again");
    scripted_reader_hold(f.script, false);
    T_CHECK(take_all(&f, 0, all, 1, MOST, &err) == 1, "taken");
    check_whole(&f, 48, "given up");
    plumb__expert_cache_warm(f.cache, keys, 48);
    check_whole(&f, 48, "warm again");
    T_CHECK(stats_of(&f).held == 48, "%" PRId64 " of the hot list", stats_of(&f).held);
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

/* A sweep through all layers goes through few slots once the others are full: what it found room for is
 * there for the next sweep, with and without reading ahead. */
static void sweeps_pass(void) {
    enum { SLOTS = 26 }; /* three layers, and two experts more */
    for (int ahead = 0; ahead < 2; ahead++) {
        fixture f = open_scripted(SLOTS, PLUMB_EVICT_LRU, DEPTH);
        for (int sweep = 0; sweep < 2; sweep++)
            for (int64_t layer = 0; layer < f.layers; layer++) {
                if (ahead) plumb__expert_cache_read_ahead(f.cache, layer, NULL, 0);
                use(&f, layer, all, 8);
            }
        /* The second found the two whole layers that the first did not need the slots of. */
        T_CHECK(stats_of(&f).hits >= (ahead ? 8 : 16), "%" PRId64 " hits, ahead %d",
                stats_of(&f).hits, ahead);
        for (int32_t id = 0; id < 8; id++) T_CHECK(holds(&f, 1, id), "expert %d", (int)id);
        /* One token's few experts stay when the next sweep comes. */
        use(&f, 5, all, 2);
        for (int64_t layer = 0; layer < 5; layer++) use(&f, layer, all, 8);
        T_CHECK(holds(&f, 5, 0) && holds(&f, 5, 1), "ahead %d: a sweep displaced what is used", ahead);
        close_fixture(&f);
    }
}

T_MAIN({"every_size", every_size}, {"hits_before_misses", hits_before_misses},
       {"taken_experts_stay", taken_experts_stay}, {"loading_is_a_miss", loading_is_a_miss},
       {"read_ahead_is_counted", read_ahead_is_counted},
       {"found_ahead_is_counted", found_ahead_is_counted},
       {"wrong_guesses_are_given_up", wrong_guesses_are_given_up},
       {"slots_come_and_go", slots_come_and_go}, {"warm_start", warm_start},
       {"warming_given_up", warming_given_up}, {"close_while_warming", close_while_warming},
       {"order_of_eviction", order_of_eviction},
       {"sweeps_pass", sweeps_pass})
