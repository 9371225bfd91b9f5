/* For tests of a session store: a small model, a clock that the test sets, folders, sequences of tokens.
 * Whatever is restored goes through plumb_session_sync, and the logits must be those of a session that
 * never saw the store. */
#ifndef PLUMB_TESTS_STORE_SCENE_H
#define PLUMB_TESTS_STORE_SCENE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "equal/specimen.h"
#include "store/store.h"
#include "t.h"

enum { HOUR = 3600, DAY = 86400, LONG = 100, MOST = 160 };

static specimen tiny;
static plumb_model *model;
static int64_t clock_now;
static char said[4096]; /* the lines of the log */

static inline int64_t now(void *user) {
    (void)user;
    return clock_now;
}

static inline void note(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    size_t used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s\n", line);
}

static inline void open_model(void) {
    if (model) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    model = specimen_model(&tiny, 1, NULL);
}

static inline void set_up(void) {
    open_model();
    clock_now = 20000 * DAY;
    said[0] = 0;
}

/* ---- Folders and files ------------------------------------------------------------------------------- */

static inline const char *folder(const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof path, BUILD_DIR "/tests/store/%s.store", name);
    return path;
}

/* An empty place for a store. */
static inline const char *fresh_folder(const char *name) {
    const char *path = folder(name);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (unlinkat(dirfd(dir), e->d_name, 0) != 0) (void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    if (dir) (void)closedir(dir);
    (void)rmdir(path);
    return path;
}

static inline plumb_store *open_store(const char *name, plumb_store_options options, plumb_model *of) {
    plumb_store *store = NULL;
    plumb_error err;
    options.now = now;
    options.log = note;
    specimen_must(plumb_store_open(folder(name), of, &options, &store, &err), &err, "store");
    return store;
}

static inline plumb_store *new_store(const char *name, plumb_store_options options) {
    set_up();
    (void)fresh_folder(name);
    return open_store(name, options, model);
}

static inline char *path_in(const char *name, const char *file) {
    static char paths[4][1024];
    static int next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder(name), file);
    return path;
}

static inline bool exists(const char *path) {
    struct stat there;
    return lstat(path, &there) == 0;
}

static inline void write_file(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    T_CHECK(file && fwrite(bytes, 1, size, file) == size, "%s", path);
    if (file) (void)fclose(file);
}

/* ---- Sequences ---------------------------------------------------------------------------------------- */

/* Tokens that are those of `seed` 0 up to `parts` and others after it. */
typedef struct sequence { int32_t ids[MOST]; } sequence;

static inline sequence branch(int64_t parts, int32_t seed) {
    sequence s;
    open_model();
    for (int32_t i = 0; i < MOST; i++) s.ids[i] = (i * 37 + i / 5 + (i < parts ? 0 : 11 + seed)) % (int32_t)tiny.vocab;
    return s;
}

static inline plumb_session *session_of(plumb_model *of, sequence s, int64_t length) {
    plumb_session *session = specimen_session(of, 16);
    plumb_error err;
    if (length > 0) specimen_must(plumb_session_eval(session, s.ids, length, NULL, &err), &err, "eval");
    return session;
}

static inline plumb_store_decision save(plumb_store *store, const plumb_session *session) {
    plumb_store_decision decision = PLUMB_STORE_TOO_LARGE;
    plumb_error err;
    specimen_must(plumb_store_save(store, session, &decision, &err), &err, "save");
    return decision;
}

static inline plumb_store_decision save_sequence(plumb_store *store, sequence s, int64_t length) {
    plumb_session *session = session_of(store->model, s, length);
    plumb_store_decision decision = save(store, session);
    plumb_session_destroy(session);
    return decision;
}

static inline int64_t restore(plumb_store *store, plumb_session *session, sequence s, int64_t length) {
    int64_t shared = -1;
    plumb_error err;
    specimen_must(plumb_store_restore(store, session, s.ids, length, &shared, &err), &err, "restore");
    return shared;
}

/* Restores for a new session, which then goes on to the prompt: the bits must be a fresh session's. */
static inline int64_t restore_and_go_on(plumb_store *store, sequence s, int64_t length) {
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

static inline plumb_store_stats stats_of(plumb_store *store) {
    plumb_store_stats stats;
    plumb_error err;
    specimen_must(plumb_store_get_stats(store, &stats, &err), &err, "stats");
    return stats;
}

static inline int64_t entry_bytes(sequence s, int64_t length) {
    plumb_session *session = session_of(model, s, length);
    const plumb_snapshot_extra extra = {.resume_points = true};
    int64_t bytes = plumb_session_snapshot_bytes(session, &extra);
    plumb_session_destroy(session);
    return bytes;
}

static inline char *entry_path(const char *store, sequence s, int64_t length) {
    plumb_store *named = open_store(store, (plumb_store_options){0}, model);
    char name[PLUMB_PREFIX_NAME_SIZE];
    plumb__prefix_name(plumb__prefix_id(named->rules.model, named->rules.arithmetic_revision, s.ids, length), name);
    plumb_store_close(named);
    return path_in(store, name);
}

#endif
