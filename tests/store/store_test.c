/* A session store over a small model, with a clock that the test sets.
 *
 * Whatever is restored goes through plumb_session_sync, and the logits must be those of a session that
 * never saw the store. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "equal/specimen.h"
#include "store/store.h"
#include "t.h"

enum { HOUR = 3600, DAY = 86400, LONG = 100, MOST = 160 };

static specimen tiny, tiny2;
static plumb_model *model, *model2;
static int64_t clock_now;
static char said[4096]; /* the lines of the log */

static int64_t now(void *user) {
    (void)user;
    return clock_now;
}

static void note(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    size_t used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s\n", line);
}

static void set_up(void) {
    clock_now = 20000 * DAY;
    said[0] = 0;
    if (model) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    tiny2 = tiny;
    (void)snprintf(tiny2.folder, sizeof tiny2.folder, "%s", BUILD_DIR "/checkpoints/tiny-seed2");
    model = specimen_model(&tiny, 1, NULL);
    model2 = specimen_model(&tiny2, 1, NULL);
}

/* ---- Folders and files ------------------------------------------------------------------------------- */

static const char *folder(const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof path, BUILD_DIR "/tests/store/%s.store", name);
    return path;
}

/* An empty place for a store. */
static const char *fresh_folder(const char *name) {
    const char *path = folder(name);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (unlinkat(dirfd(dir), e->d_name, 0) != 0) (void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    if (dir) (void)closedir(dir);
    (void)rmdir(path);
    return path;
}

static plumb_store *open_store(const char *name, plumb_store_options options, plumb_model *of) {
    plumb_store *store = NULL;
    plumb_error err;
    options.now = now;
    options.log = note;
    specimen_must(plumb_store_open(folder(name), of, &options, &store, &err), &err, "store");
    return store;
}

static plumb_store *new_store(const char *name, plumb_store_options options) {
    set_up();
    (void)fresh_folder(name);
    return open_store(name, options, model);
}

static char *path_in(const char *name, const char *file) {
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder(name), file);
    return path;
}

static bool exists(const char *path) {
    struct stat there;
    return lstat(path, &there) == 0;
}

static void write_file(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    T_CHECK(file && fwrite(bytes, 1, size, file) == size, "%s", path);
    if (file) (void)fclose(file);
}

/* Changes one byte, counted from the end when negative. */
static void flip_byte(const char *path, long at) {
    FILE *file = fopen(path, "r+b");
    int byte = 0;
    if (file && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0) byte = fgetc(file);
    T_CHECK(file && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF, "%s", path);
    if (file) (void)fclose(file);
}

/* ---- Sequences ---------------------------------------------------------------------------------------- */

/* Tokens that are those of `seed` 0 up to `parts` and others after it. */
typedef struct sequence {
    int32_t ids[MOST];
} sequence;

static sequence branch(int64_t parts, int32_t seed) {
    sequence s;
    for (int32_t i = 0; i < MOST; i++) s.ids[i] = (i * 37 + i / 5 + (i < parts ? 0 : 11 + seed)) % (int32_t)tiny.vocab;
    return s;
}

static plumb_session *session_of(plumb_model *of, sequence s, int64_t length) {
    plumb_session *session = specimen_session(of, 16);
    plumb_error err;
    if (length > 0) specimen_must(plumb_session_eval(session, s.ids, length, NULL, &err), &err, "eval");
    return session;
}

static plumb_store_decision save(plumb_store *store, const plumb_session *session) {
    plumb_store_decision decision = PLUMB_STORE_TOO_LARGE;
    plumb_error err;
    specimen_must(plumb_store_save(store, session, &decision, &err), &err, "save");
    return decision;
}

static plumb_store_decision save_sequence(plumb_store *store, sequence s, int64_t length) {
    plumb_session *session = session_of(store->model, s, length);
    plumb_store_decision decision = save(store, session);
    plumb_session_destroy(session);
    return decision;
}

static int64_t restore(plumb_store *store, plumb_session *session, sequence s, int64_t length) {
    int64_t shared = -1;
    plumb_error err;
    specimen_must(plumb_store_restore(store, session, s.ids, length, &shared, &err), &err, "restore");
    return shared;
}

/* Restores for a new session, which then goes on to the prompt: the bits must be a fresh session's. */
static int64_t restore_and_go_on(plumb_store *store, sequence s, int64_t length) {
    plumb_session *session = specimen_session(store->model, 0), *fresh = specimen_session(store->model, 0);
    const float *logits = NULL, *wanted = NULL;
    plumb_sync_report report = {0};
    plumb_error err;
    int64_t shared = restore(store, session, s, length);
    int64_t cached = shared < length ? shared : length - 1;
    specimen_must(plumb_session_sync(session, s.ids, length, &logits, &report, &err), &err, "sync");
    specimen_must(plumb_session_eval(fresh, s.ids, length, &wanted, &err), &err, "eval");
    T_CHECK(report.cached == cached && report.evaluated == length - cached, "%" PRId64 " of %" PRId64 " cached",
            report.cached, cached);
    T_CHECK(!memcmp(logits, wanted, (size_t)tiny.vocab * sizeof *logits), "other bits after %" PRId64, shared);
    plumb_session_destroy(session);
    plumb_session_destroy(fresh);
    return shared;
}

static plumb_store_stats stats_of(plumb_store *store) {
    plumb_store_stats stats;
    plumb_error err;
    specimen_must(plumb_store_get_stats(store, &stats, &err), &err, "stats");
    return stats;
}

static int64_t entry_bytes(sequence s, int64_t length) {
    plumb_session *session = session_of(model, s, length);
    const plumb_snapshot_extra extra = {.resume_points = true};
    int64_t bytes = plumb_session_snapshot_bytes(session, &extra);
    plumb_session_destroy(session);
    return bytes;
}

static char *entry_path(const char *store, sequence s, int64_t length) {
    plumb_store *named = open_store(store, (plumb_store_options){0}, model);
    char name[PLUMB_PREFIX_NAME_SIZE];
    plumb__prefix_name(plumb__prefix_id(named->rules.model, named->rules.arithmetic_revision, s.ids, length), name);
    plumb_store_close(named);
    return path_in(store, name);
}

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

/* ---- What lies in the folder ------------------------------------------------------------------------------ */

static void damaged_entries(void) {
    sequence s = branch(MOST, 0);
    plumb_store *store = new_store("damaged", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(60, 1), LONG) == PLUMB_STORE_WRITTEN, "a branch");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "the best");
    /* The last byte: it opens, and fails when it is restored. */
    flip_byte(entry_path("damaged", s, LONG), -1);
    T_CHECK(restore_and_go_on(store, s, LONG) == 60, "the next best");
    T_CHECK(strstr(said, "skipped") && strstr(said, "checksum"), "%s", said);
    said[0] = 0;
    T_CHECK(restore_and_go_on(store, s, LONG) == 60 && !said[0], "said once");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "written again in its place");
    T_CHECK(restore_and_go_on(store, s, LONG) == LONG, "and good");
    plumb_store_close(store);
    /* In the header, and cut short: told when the folder is looked at, and the first to give way. */
    flip_byte(entry_path("damaged", s, LONG), 20);
    T_CHECK(truncate(entry_path("damaged", branch(60, 1), LONG), 100) == 0, "cut");
    said[0] = 0;
    store = open_store("damaged", (plumb_store_options){0}, model);
    T_CHECK(strstr(said, "header") != NULL, "%s", said);
    T_CHECK(stats_of(store).entries == 2 && stats_of(store).usable == 0, "kept");
    T_CHECK(restore_and_go_on(store, s, LONG) == 0, "a miss");
    plumb_store_close(store);
    store = open_store("damaged", (plumb_store_options){.size_bytes = entry_bytes(s, LONG) + 100}, model);
    T_CHECK(save_sequence(store, branch(0, 2), LONG) == PLUMB_STORE_WRITTEN, "another");
    T_CHECK(!exists(entry_path("damaged", s, LONG)) && exists(entry_path("damaged", branch(60, 1), LONG)),
            "no more than needed gave way");
    plumb_store_close(store);
    /* A name that belongs to another content. */
    T_CHECK(rename(entry_path("damaged", branch(0, 2), LONG), path_in("damaged", "kept")) == 0, "out");
    T_CHECK(rename(path_in("damaged", "kept"), entry_path("damaged", s, LONG)) == 0, "in");
    said[0] = 0;
    store = open_store("damaged", (plumb_store_options){0}, model);
    T_CHECK(strstr(said, "another snapshot") != NULL, "%s", said);
    T_CHECK(restore_and_go_on(store, s, LONG) == 0 && restore_and_go_on(store, branch(0, 2), LONG) == 0, "misses");
    plumb_store_close(store);
}

/* Two models use one folder: neither sees the other's entries, nor throws them away. */
static void other_models(void) {
    sequence s = branch(MOST, 0);
    plumb_store *one = new_store("models", (plumb_store_options){0});
    T_CHECK(save_sequence(one, s, LONG) == PLUMB_STORE_WRITTEN, "one");
    plumb_store *two = open_store("models", (plumb_store_options){0}, model2);
    T_CHECK(strstr(said, "1 of 1 entries are of another model") != NULL, "%s", said);
    T_CHECK(restore_and_go_on(two, s, LONG) == 0, "a miss");
    T_CHECK(save_sequence(two, s, LONG) == PLUMB_STORE_WRITTEN, "the same tokens, another file");
    T_CHECK(stats_of(two).entries == 2 && stats_of(two).usable == 1, "two");
    T_CHECK(restore_and_go_on(one, s, LONG) == LONG && restore_and_go_on(two, s, LONG) == LONG, "each its own");
    T_CHECK(save_sequence(two, s, LONG + 40) == PLUMB_STORE_WRITTEN, "more");
    T_CHECK(stats_of(one).entries == 2 && restore_and_go_on(one, s, LONG) == LONG, "supersedes its own only");
    plumb_session *session = specimen_session(model2, 0);
    plumb_error err;
    T_CHECK(plumb_store_restore(one, session, s.ids, LONG, NULL, &err) == PLUMB_ERROR_ARGUMENT, "another's session");
    T_CHECK(plumb_store_save(one, session, NULL, &err) == PLUMB_ERROR_ARGUMENT, "another's session");
    plumb_session_destroy(session);
    plumb_store_close(one);
    plumb_store_close(two);
    plumb_store_rules a = {{1}, 7}, b = a, c = a;
    b.arithmetic_revision++;
    c.model[15]++;
    T_CHECK(plumb__store_rules_equal(&a, &a) && !plumb__store_rules_equal(&a, &b) && !plumb__store_rules_equal(&a, &c), "");
}

/* Only what is provably ours and left over goes; everything else stays as it is. */
static void strange_files(void) {
#define STRANGE "000000100-00112233445566778899aabbccddeeff.plumb-session"
    static const struct {
        const char *name, *bytes;
        size_t size;
        bool stays;
    } files[] = {{"README", "mine", 4, true},
                 {"notes.plumb-session", "PLUMBSNP and more", 17, true},
                 {STRANGE, "mine", 4, true},
                 {"000000101-00112233445566778899aabbccddeeff.plumb-session.part", "PLUMBprt1234", 12, false},
                 {"000000102-00112233445566778899aabbccddeeff.plumb-session.part", "", 0, false},
                 {"000000103-00112233445566778899aabbccddeeff.plumb-session.part", "PLUMBSNP1234", 12, false},
                 {"000000104-00112233445566778899aabbccddeeff.plumb-session.part", "somebody's", 10, true},
                 {"README.part", "PLUMBprt1234", 12, true}};
    plumb_store *store = new_store("strange", (plumb_store_options){0});
    for (int saved = 0; saved < 2; saved++) {
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            write_file(path_in("strange", files[i].name), files[i].bytes, files[i].size);
        if (saved) {
            T_CHECK(save_sequence(store, branch(0, 0), LONG) == PLUMB_STORE_WRITTEN, "save");
        } else {
            plumb_store_close(store);
            store = open_store("strange", (plumb_store_options){0}, model);
        }
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            T_CHECK(exists(path_in("strange", files[i].name)) == files[i].stays, "%s", files[i].name);
    }
    T_CHECK(mkdir(path_in("strange", "000000105-00112233445566778899aabbccddeeff.plumb-session"), 0700) == 0, "a folder");
    T_CHECK(symlink("/dev/null", path_in("strange", "000000106-00112233445566778899aabbccddeeff.plumb-session")) == 0, "a link");
    T_CHECK(stats_of(store).entries == 1 && !said[0], "%s", said);
    plumb_store_close(store);
    (void)fresh_folder("strange");
}

static void damaged_ledger(void) {
    sequence s = branch(MOST, 0);
    plumb_store *store = new_store("ledger", (plumb_store_options){0});
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "save");
    flip_byte(path_in("ledger", "ledger"), 20);
    T_CHECK(stats_of(store).written_ever == 0, "counting begins anew");
    T_CHECK(strstr(said, "counting begins anew") && strstr(said, "checksum"), "%s", said);
    T_CHECK(restore_and_go_on(store, s, LONG) == LONG, "entries are as they were");
    said[0] = 0;
    T_CHECK(stats_of(store).entries == 1 && !said[0], "and a new ledger is there");
    write_file(path_in("ledger", "ledger.part"), "plumbprt", 8); /* of a writer that was killed */
    T_CHECK(save_sequence(store, branch(0, 1), LONG) == PLUMB_STORE_WRITTEN, "save");
    T_CHECK(!exists(path_in("ledger", "ledger.part")), "became the ledger");
    plumb_store_close(store);
}

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
       {"worth_a_read", worth_a_read}, {"worth_a_write", worth_a_write}, {"superseded", superseded}, {"eviction", eviction},
       {"too_large", too_large}, {"daily_budget", daily_budget}, {"full_disk", full_disk},
       {"damaged_entries", damaged_entries}, {"other_models", other_models}, {"strange_files", strange_files},
       {"damaged_ledger", damaged_ledger}, {"refused_arguments", refused_arguments})
