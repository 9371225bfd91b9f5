/* The expert cache when things go wrong: reads that are held back, fail, are given up and wanted again,
 * requests that end early, memory that runs out; ten thousand loads through a reader that spoils its
 * answers.  No slot is lost, and what is taken is what the files say. */
#include "stream/expert_cache_rig.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stream/faulty_reader.h"

enum { FAULTY_LOADS = 10000 };

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

/* ---- Memory runs out ---------------------------------------------------------------------------------- */

/* Whether a limit on address space can be set and is obeyed: sanitizers need far more of it. */
static bool limit_memory(struct rlimit *was) {
    long long pages = 0;
    if (T_SANITIZED) return false;
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
static void many_faulty_loads(plumb_reader *inner, bool uncached) {
    static const fault_rule rules[] = {
        {7, true, FAULT_SHORT, 0},     {11, true, FAULT_ERROR, EINTR}, {13, true, FAULT_HOLD, 5},
        {37, true, FAULT_ERROR, EIO},  {53, true, FAULT_ZERO, 0},      {23, true, FAULT_SHORT, 3},
        {997, true, FAULT_DELAY, 300},
    };
    enum { SLOTS = 7 };
    fixture f = open_files();
    f.reader = faulty_reader_open(inner, rules, (int)(sizeof rules / sizeof *rules));
    open_cache(&f, SLOTS, PLUMB_EVICT_LRU, uncached);
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
            many_faulty_loads(inner, kinds[k] == PLUMB_READER_URING);
        else
            printf("io_uring skipped: %s\n", err.found);
    }
}

T_MAIN({"given_up_and_wanted_again", given_up_and_wanted_again},
       {"demanded_reads_fail", demanded_reads_fail}, {"guessed_reads_fail", guessed_reads_fail},
       {"abandon_anywhere", abandon_anywhere}, {"memory_runs_out", memory_runs_out},
       {"ten_thousand_faulty_loads", ten_thousand_faulty_loads})
