/* A session store over a small model: what is found, written, superseded and evicted. */
#include "scene.h"

/* ---- Finding ------------------------------------------------------------------------------------------ */

/* The same prompt in another session: one token is evaluated. */
static void resend(void) {
    plumb_store *store = new_store("resend", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(MOST, 0), LONG) == PLUMB_STORE_WRITTEN, "save");
    T_CHECK(restore_and_go_on(store, branch(MOST, 0), LONG) == LONG, "all of it");
    plumb_store_close(store);
    /* And in another store over the same folder, as after a restart. */
    store = open_store("resend", (plumb_store_options){0}, model);
    T_CHECK(restore_and_go_on(store, branch(MOST, 0), LONG) == LONG, "all of it, later");
    T_CHECK(restore_and_go_on(store, branch(MOST, 0), LONG + 7) == LONG, "and more");
    plumb_store_close(store);
}

/* Around the ends of blocks, pairs and the entry. */
static bool telling(int64_t length) {
    return length <= 1 || length >= LONG - 3 || (length + 2) % PLUMB_PREFIX_BLOCK < 4;
}

/* Wherever the prompt leaves the entry: its beginning is used, to the token. */
static void divergence(void) {
    plumb_store *store = new_store("divergence", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(MOST, 0), LONG) == PLUMB_STORE_WRITTEN, "save");
    for (int64_t parts = 0; parts <= LONG; parts++) {
        if (!telling(parts)) continue;
        int64_t shared = restore_and_go_on(store, branch(parts, 1), LONG + 3);
        T_CHECK(shared == (parts < 32 ? 0 : parts), "parts at %" PRId64 ": %" PRId64, parts, shared);
    }
    for (int64_t length = 1; length <= LONG; length++) {
        if (!telling(length)) continue;
        int64_t shared = restore_and_go_on(store, branch(MOST, 0), length);
        T_CHECK(shared == (length < 33 ? 0 : length), "a prompt of %" PRId64 ": %" PRId64, length, shared);
    }
    plumb_store_close(store);
}

/* Of entries that agree in whole blocks the one that agrees longest, whichever is shorter. */
static void the_longest_beginning(void) {
    plumb_store *store = new_store("longest", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(MOST, 0), LONG) == PLUMB_STORE_WRITTEN, "100");
    T_CHECK(save_sequence(store, branch(90, 1), LONG - 1) == PLUMB_STORE_WRITTEN, "parts at 90");
    T_CHECK(save_sequence(store, branch(40, 2), LONG) == PLUMB_STORE_WRITTEN, "parts at 40");
    T_CHECK(restore_and_go_on(store, branch(95, 3), LONG + 5) == 95, "95 of the first, 90 of the second");
    T_CHECK(restore_and_go_on(store, branch(90, 1), LONG + 5) == 99, "all of the second");
    T_CHECK(restore_and_go_on(store, branch(40, 2), 50) == 50, "the third");
    T_CHECK(restore_and_go_on(store, branch(35, 3), 50) == 35, "any");
    T_CHECK(restore_and_go_on(store, branch(0, 3), 50) == 0, "none");
    plumb_store_close(store);
}

/* Of entries that agree as far the shortest: it needs the least going back. */
static void the_shortest_of_equals(void) {
    static const int64_t lengths[] = {100, 80, 90};
    plumb_store *store = new_store("shortest", (plumb_store_options){0});
    for (int32_t i = 0; i < 3; i++)
        T_CHECK(save_sequence(store, branch(40, 3 * i), lengths[i]) == PLUMB_STORE_WRITTEN, "%d", (int)i);
    plumb_session *session = specimen_session(model, 0);
    T_CHECK(restore(store, session, branch(40, 20), 60) == 40 && plumb_session_length(session) == 80, "%" PRId64,
            plumb_session_length(session));
    plumb_session_destroy(session);
    plumb_store_close(store);
}

static int stop_after_80(void *user, int64_t done, int64_t total) {
    (void)user;
    (void)total;
    return done > 80;
}

/* What the session has already is not read again. */
static void worth_a_read(void) {
    plumb_store *store = new_store("worth", (plumb_store_options){0});
    sequence s = branch(MOST, 0);
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "save");
    static const struct {
        int64_t has, prompt, parts, shared;
    } cases[] = {{68, 120, MOST, 100}, {69, 120, MOST, 0}, {100, 120, MOST, 0}, {18, 60, 50, 50}, {19, 60, 50, 0},
                 {0, 32, MOST, 0},     {0, 33, MOST, 33}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_session *session = session_of(model, s, cases[i].has);
        int64_t shared = restore(store, session, branch(cases[i].parts, 5), cases[i].prompt);
        T_CHECK(shared == cases[i].shared, "case %zu: %" PRId64, i, shared);
        T_CHECK(plumb_session_length(session) == (shared ? LONG : cases[i].has), "case %zu: length", i);
        plumb_session_destroy(session);
    }
    /* Nor what it knows from a prompt that was cut short. */
    plumb_session *cut = NULL;
    plumb_error fault;
    const plumb_session_options stops = {.chunk = 16, .progress = stop_after_80};
    specimen_must(plumb_session_create(model, &stops, &cut, &fault), &fault, "session");
    T_CHECK(plumb_session_sync(cut, s.ids, 120, NULL, NULL, &fault) == PLUMB_ERROR_CANCELLED, "cut short");
    T_CHECK(restore(store, cut, s, 120) == 0 && plumb_session_length(cut) == 0, "it knows 80, of 100");
    plumb_session_destroy(cut);
    /* A session that is too short for the entry is left as it is. */
    plumb_session *small = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &(plumb_session_options){.context = 60}, &small, &err), &err, "small");
    T_CHECK(restore(store, small, s, 50) == 0 && plumb_session_length(small) == 0, "a context of 60");
    T_CHECK(!said[0], "%s", said);
    plumb_session_destroy(small);
    plumb_store_close(store);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void worth_a_write(void) {
    plumb_store *store = new_store("write", (plumb_store_options){0});
    sequence s = branch(MOST, 0);
    T_CHECK(save_sequence(store, s, 0) == PLUMB_STORE_FEW_TOKENS, "nothing");
    T_CHECK(save_sequence(store, s, 31) == PLUMB_STORE_FEW_TOKENS, "31 tokens");
    T_CHECK(stats_of(store).written_ever == 0, "nothing was written");
    T_CHECK(save_sequence(store, s, 33) == PLUMB_STORE_WRITTEN, "33");
    T_CHECK(save_sequence(store, s, 33) == PLUMB_STORE_FEW_TOKENS, "again");
    T_CHECK(save_sequence(store, s, 64) == PLUMB_STORE_FEW_TOKENS, "31 more");
    T_CHECK(save_sequence(store, s, 65) == PLUMB_STORE_WRITTEN, "32 more");
    T_CHECK(save_sequence(store, s, 40) == PLUMB_STORE_FEW_TOKENS, "a beginning of what is there");
    plumb_store_close(store);
}

/* A conversation that grows is one entry; a beginning from which two go on stays. */
static void superseded(void) {
    plumb_store *store = new_store("superseded", (plumb_store_options){0});
    sequence s = branch(MOST, 0);
    T_CHECK(save_sequence(store, s, 50) == PLUMB_STORE_WRITTEN, "50");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "100");
    plumb_store_stats stats = stats_of(store);
    T_CHECK(stats.entries == 1 && stats.bytes == entry_bytes(s, LONG), "%" PRId64 " entries", stats.entries);
    T_CHECK(stats.written_ever == entry_bytes(s, 50) + entry_bytes(s, LONG), "both were written");
    T_CHECK(save_sequence(store, branch(60, 1), LONG) == PLUMB_STORE_WRITTEN, "a branch");
    T_CHECK(stats_of(store).entries == 2, "supersedes nothing");
    plumb_store_close(store);

    store = new_store("superseded", (plumb_store_options){0});
    T_CHECK(save_sequence(store, s, 50) == PLUMB_STORE_WRITTEN, "50");
    T_CHECK(restore_and_go_on(store, branch(50, 1), 60) == 50, "one goes on");
    T_CHECK(restore_and_go_on(store, branch(50, 2), 60) == 50, "another goes on");
    T_CHECK(save_sequence(store, branch(50, 1), LONG) == PLUMB_STORE_WRITTEN, "one");
    T_CHECK(save_sequence(store, branch(50, 2), LONG) == PLUMB_STORE_WRITTEN, "two");
    T_CHECK(stats_of(store).entries == 3, "the beginning stays");
    plumb_store_close(store);
}

/* A conversation that was wanted is as much wanted when it has grown. */
static void hits_are_taken_over(void) {
    plumb_store *store = new_store("hits", (plumb_store_options){0});
    sequence s = branch(MOST, 0);
    plumb_ledger ledger = {0};
    plumb_error err;
    T_CHECK(save_sequence(store, s, 50) == PLUMB_STORE_WRITTEN, "50");
    for (int i = 0; i < 2; i++) T_CHECK(restore_and_go_on(store, s, 50) == 50, "a hit");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "100");
    T_CHECK(plumb__store_load_ledger(store, &ledger, &err) == PLUMB_OK, "ledger");
    plumb_prefix_id id = plumb__prefix_id(store->rules.model, store->rules.arithmetic_revision, s.ids, LONG);
    const plumb_ledger_entry *record = plumb__ledger_find(&ledger, id);
    T_CHECK(record && record->hits == 2 && record->used == clock_now, "its record");
    plumb__ledger_free(&ledger);
    plumb_store_close(store);
}

/* Three entries of one size S and S tokens worth each; the values are, at the time of the fourth:
 *     first   2 / (1 + 1) = 1      wanted once, an hour ago
 *     second  1 / (1 + 3) = 0.25   saved three hours ago
 *     third   1 / (1 + 2) = 0.33 */
static void eviction(void) {
    sequence s[5];
    set_up();
    for (int32_t i = 0; i < 5; i++) s[i] = branch(0, 3 * i);
    int64_t bytes = entry_bytes(s[0], LONG);
    plumb_store *store = new_store("eviction", (plumb_store_options){.size_bytes = 3 * bytes});
    for (int i = 0; i < 3; i++, clock_now += HOUR) T_CHECK(save_sequence(store, s[i], LONG) == PLUMB_STORE_WRITTEN, "%d", i);
    T_CHECK(restore_and_go_on(store, s[0], LONG) == LONG, "a hit");
    clock_now += HOUR;
    T_CHECK(save_sequence(store, s[3], LONG) == PLUMB_STORE_WRITTEN, "the fourth");
    T_CHECK(!exists(entry_path("eviction", s[1], LONG)), "the second gave way");
    T_CHECK(save_sequence(store, s[4], LONG) == PLUMB_STORE_WRITTEN, "the fifth");
    T_CHECK(!exists(entry_path("eviction", s[2], LONG)), "then the third");
    T_CHECK(exists(entry_path("eviction", s[0], LONG)) && exists(entry_path("eviction", s[3], LONG)), "not the others");
    T_CHECK(stats_of(store).bytes == 3 * bytes, "all of the budget");
    /* By a process that has just come and knows only what lies there. */
    plumb_store *later = open_store("eviction", (plumb_store_options){.size_bytes = 3 * bytes}, model);
    clock_now += HOUR;
    T_CHECK(restore_and_go_on(later, s[4], LONG) == LONG, "a hit");
    T_CHECK(save_sequence(later, s[1], LONG) == PLUMB_STORE_WRITTEN, "the second again");
    T_CHECK(!exists(entry_path("eviction", s[3], LONG)), "the fourth: an hour old, never wanted");
    plumb_store_close(later);
    plumb_store_close(store);
}

/* A budget of one entry less a byte holds none, and is not a reason to throw others away. */
/* What the new entry has as well is worth little, however lately it was used: 100 - 64 tokens are saved,
 * against 100 of the older entry. */
static void eviction_for_a_branch(void) {
    set_up();
    const int64_t bytes = entry_bytes(branch(0, 0), LONG);
    plumb_store *store = new_store("branch", (plumb_store_options){.size_bytes = 2 * bytes});
    T_CHECK(save_sequence(store, branch(0, 3), LONG) == PLUMB_STORE_WRITTEN, "another");
    clock_now += HOUR / 2;
    T_CHECK(save_sequence(store, branch(MOST, 0), LONG) == PLUMB_STORE_WRITTEN, "one");
    T_CHECK(save_sequence(store, branch(64, 1), LONG) == PLUMB_STORE_WRITTEN, "its branch");
    T_CHECK(!exists(entry_path("branch", branch(MOST, 0), LONG)) && exists(entry_path("branch", branch(0, 3), LONG)),
            "the one gave way");
    plumb_store_close(store);
}

/* The entry that gives way is not the one that is superseded, which goes all the same. */
static void eviction_and_superseding(void) {
    set_up();
    sequence s = branch(MOST, 0);
    plumb_store *store = new_store("both", (plumb_store_options){.size_bytes = entry_bytes(s, MOST)});
    T_CHECK(save_sequence(store, branch(0, 3), 33) == PLUMB_STORE_WRITTEN, "another");
    T_CHECK(save_sequence(store, s, 33) == PLUMB_STORE_WRITTEN && stats_of(store).entries == 2, "a beginning");
    T_CHECK(save_sequence(store, s, MOST) == PLUMB_STORE_WRITTEN, "as large as the store may be");
    T_CHECK(stats_of(store).entries == 1 && stats_of(store).bytes == entry_bytes(s, MOST), "alone");
    plumb_store_close(store);

    const int64_t both = entry_bytes(branch(0, 3), 33) + entry_bytes(s, MOST);
    store = new_store("both", (plumb_store_options){.size_bytes = both});
    T_CHECK(save_sequence(store, branch(0, 3), 33) == PLUMB_STORE_WRITTEN, "another");
    T_CHECK(save_sequence(store, s, 33) == PLUMB_STORE_WRITTEN, "a beginning");
    T_CHECK(save_sequence(store, s, MOST) == PLUMB_STORE_WRITTEN, "longer");
    T_CHECK(stats_of(store).entries == 2 && stats_of(store).bytes == both, "the other need not give way");
    plumb_store_close(store);
}

static void too_large(void) {
    set_up();
    sequence s = branch(MOST, 0);
    int64_t bytes = entry_bytes(s, LONG);
    plumb_store *store = new_store("large", (plumb_store_options){.size_bytes = bytes - 1});
    T_CHECK(save_sequence(store, branch(0, 1), 50) == PLUMB_STORE_WRITTEN, "a small one");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_TOO_LARGE, "the large one");
    T_CHECK(stats_of(store).entries == 1, "the small one is there");
    plumb_store_close(store);
    store = new_store("large", (plumb_store_options){.size_bytes = bytes});
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "exactly");
    plumb_store_close(store);
}

/* Two stores over one folder, as two processes have, wear one drive. */
static void daily_budget(void) {
    set_up();
    int64_t bytes = entry_bytes(branch(0, 0), LONG);
    const plumb_store_options options = {.daily_bytes = 2 * bytes + 1};
    plumb_store *one = new_store("daily", options), *two = open_store("daily", options, model);
    T_CHECK(save_sequence(one, branch(0, 0), LONG) == PLUMB_STORE_WRITTEN, "first");
    T_CHECK(save_sequence(two, branch(0, 1), LONG) == PLUMB_STORE_WRITTEN, "second");
    T_CHECK(stats_of(one).written_today == 2 * bytes && stats_of(two).written_today == 2 * bytes, "both count");
    T_CHECK(save_sequence(one, branch(0, 2), LONG) == PLUMB_STORE_DAILY_BUDGET, "third");
    T_CHECK(stats_of(two).entries == 2, "nothing gave way");
    clock_now += DAY - 1;
    T_CHECK(save_sequence(one, branch(0, 2), LONG) == PLUMB_STORE_DAILY_BUDGET, "the same day");
    clock_now++;
    T_CHECK(stats_of(one).written_today == 0, "a new day");
    T_CHECK(save_sequence(two, branch(0, 2), LONG) == PLUMB_STORE_WRITTEN, "the next day");
    clock_now -= DAY;
    plumb_store_stats stats = stats_of(one);
    T_CHECK(stats.written_today == bytes && stats.written_ever == 3 * bytes, "the clock set back");
    plumb_store_close(one);
    plumb_store_close(two);
    one = open_store("daily", options, model);
    T_CHECK(stats_of(one).written_ever == 3 * bytes, "after a restart");
    plumb_store_close(one);
}

/* When somebody else has filled the disk nothing is thrown away in vain. */
static void full_disk(void) {
    plumb_store *store = new_store("full", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(0, 0), LONG) == PLUMB_STORE_WRITTEN, "before");
    plumb_store_close(store);
    store = open_store("full", (plumb_store_options){.free_share = 0.99999}, model);
    T_CHECK(save_sequence(store, branch(0, 1), LONG) == PLUMB_STORE_DISK_FULL, "declined");
    T_CHECK(stats_of(store).entries == 1, "the entry is there");
    plumb_store_close(store);
}

/* The clock was years ahead for one write.  At the time of the third, had the first kept its date, the
 * values would be
 *     first   1 / (1 + 0) = 1      rather than 1 / (1 + 4), four hours after the clock was put right
 *     second  2 / (1 + 1) = 1      wanted once, an hour ago, and of equal ones the one used earlier */
static void clock_put_right(void) {
    set_up();
    const int64_t bytes = entry_bytes(branch(0, 0), LONG), ahead = 3650 * DAY;
    const plumb_store_options options = {.size_bytes = 2 * bytes, .daily_bytes = 2 * bytes};
    plumb_store *store = new_store("ahead", options);
    clock_now += ahead;
    T_CHECK(save_sequence(store, branch(0, 0), LONG) == PLUMB_STORE_WRITTEN, "ahead");
    clock_now -= ahead;
    T_CHECK(stats_of(store).written_today == 0, "not today");
    T_CHECK(save_sequence(store, branch(0, 3), LONG) == PLUMB_STORE_WRITTEN, "put right");
    clock_now += 3 * HOUR;
    T_CHECK(restore_and_go_on(store, branch(0, 3), LONG) == LONG, "a hit");
    clock_now += HOUR;
    T_CHECK(save_sequence(store, branch(0, 6), LONG) == PLUMB_STORE_WRITTEN, "the third");
    T_CHECK(!exists(entry_path("ahead", branch(0, 0), LONG)) && exists(entry_path("ahead", branch(0, 3), LONG)), "the first gave way");
    T_CHECK(save_sequence(store, branch(0, 9), LONG) == PLUMB_STORE_DAILY_BUDGET, "two a day");
    clock_now += DAY;
    T_CHECK(save_sequence(store, branch(0, 9), LONG) == PLUMB_STORE_WRITTEN, "the next day");
    plumb_store_close(store);
}

/* ---- Arguments ----------------------------------------------------------------------------------------- */

static void refused_arguments(void) {
    set_up();
    plumb_store *store = NULL;
    plumb_error err;
    T_CHECK(plumb_store_open(NULL, model, NULL, &store, &err) == PLUMB_ERROR_ARGUMENT, "no folder");
    T_CHECK(plumb_store_open("x", NULL, NULL, &store, &err) == PLUMB_ERROR_ARGUMENT, "no model");
    T_CHECK(plumb_store_open(BUILD_DIR "/tests/store/none/inner", model, NULL, &store, &err) == PLUMB_ERROR_IO, "no parent");
    T_CHECK(plumb_store_open(BUILD_DIR "/CMakeCache.txt", model, NULL, &store, &err) == PLUMB_ERROR_IO &&
                !strcmp(err.found, "a file"), "%s", err.found);
    static const plumb_store_options bad[] = {{.size_bytes = -1}, {.daily_bytes = -1}, {.least_tokens = -1}, {.least_tokens = 31},
                                              {.free_share = -0.1}, {.free_share = 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        T_CHECK(plumb_store_open(folder("none"), model, &bad[i], &store, &err) == PLUMB_ERROR_ARGUMENT, "%zu", i);
    T_CHECK(!exists(folder("none")), "no folder was made");
    store = new_store("arguments", (plumb_store_options){0});
    plumb_session *session = specimen_session(model, 0);
    T_CHECK(plumb_store_restore(store, session, NULL, 5, NULL, &err) == PLUMB_ERROR_ARGUMENT, "no tokens");
    T_CHECK(plumb_store_restore(store, session, tiny.tokens, 0, NULL, &err) == PLUMB_ERROR_ARGUMENT, "none");
    T_CHECK(plumb_store_save(store, NULL, NULL, &err) == PLUMB_ERROR_ARGUMENT, "no session");
    plumb_session_destroy(session);
    plumb_store_close(store);
    plumb_store_close(NULL);
    for (int d = PLUMB_STORE_WRITTEN; d <= PLUMB_STORE_DISK_FULL; d++)
        T_CHECK(strcmp(plumb_store_decision_text((plumb_store_decision)d), "unknown") != 0, "%d", d);
}

T_MAIN({"resend", resend}, {"divergence", divergence}, {"the_longest_beginning", the_longest_beginning},
       {"the_shortest_of_equals", the_shortest_of_equals},
       {"worth_a_read", worth_a_read}, {"worth_a_write", worth_a_write}, {"superseded", superseded}, {"hits_are_taken_over", hits_are_taken_over},
       {"eviction", eviction}, {"eviction_for_a_branch", eviction_for_a_branch},
       {"eviction_and_superseding", eviction_and_superseding}, {"too_large", too_large}, {"daily_budget", daily_budget},
       {"full_disk", full_disk}, {"clock_put_right", clock_put_right}, {"refused_arguments", refused_arguments})
