/* Opening a store and finding the beginning of a prompt in it.
 *
 * Whoever reads holds no lock: entries are whole or not there, and one that is removed by another
 * process while it is read stays readable.  One that has gone before is a miss. */
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "base/whole_file.h"
#include "engine/model_digest.h"
#include "format/snapshot.h"

#define DEFAULT_SIZE_BYTES INT64_C(20000000000)
#define DEFAULT_DAILY_BYTES INT64_C(50000000000)
#define DEFAULT_FREE_SHARE 0.05

/* The first bytes of a ledger, and of one that is being written. */
static const char ledger_magic[PLUMB_WHOLE_FILE_MARK] = {'p', 'l', 'u', 'm', 'b', '-', 'l', 'e'};
static const char ledger_mark[PLUMB_WHOLE_FILE_MARK] = {'p', 'l', 'u', 'm', 'b', 'p', 'r', 't'};

/* ---- Life ------------------------------------------------------------------------------------ */

static plumb_status check_options(plumb_store_options *o, plumb_error *err) {
    if (o->size_bytes < 0 || o->daily_bytes < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "session store", -1,
                           "a negative budget", "budgets of 0 or more");
    /* Entries that share less than a block are not told from those that share nothing. */
    if (o->least_tokens != 0 && o->least_tokens < PLUMB_PREFIX_BLOCK)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "least_tokens", -1,
                           plumb__format("%lld", (long long)o->least_tokens).s, "0, or %d or more",
                           PLUMB_PREFIX_BLOCK);
    if (!(o->free_share >= 0 && o->free_share < 1))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "free_share", -1,
                           plumb__format("%g", o->free_share).s, "0 or more, below 1");
    if (o->size_bytes == 0) o->size_bytes = DEFAULT_SIZE_BYTES;
    if (o->daily_bytes == 0) o->daily_bytes = DEFAULT_DAILY_BYTES;
    if (o->least_tokens == 0) o->least_tokens = PLUMB_PREFIX_BLOCK;
    if (o->free_share == 0) o->free_share = DEFAULT_FREE_SHARE;
    return PLUMB_OK;
}

/* *damaged: it begins as a ledger, but is none; `err` says why, and `ledger` is empty. */
static plumb_status read_ledger(const plumb_store *store, plumb_ledger *ledger, bool *damaged,
                                plumb_error *err) {
    char *text = NULL;
    int64_t size = 0;
    struct stat there;
    *ledger = (plumb_ledger){0};
    *damaged = false;
    if (stat(store->ledger_path, &there) != 0 && errno == ENOENT) return PLUMB_OK;
    plumb_status status =
        plumb__file_load(store->ledger_path, PLUMB_LEDGER_BYTES_MAX, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = plumb__ledger_parse(text, (size_t)size, store->ledger_path, ledger, err);
    free(text);
    *damaged = status == PLUMB_ERROR_FORMAT;
    return *damaged ? PLUMB_OK : status;
}

/* Under the lock: what killed writers left goes.  A folder that has a `ledger` of somebody else's is
 * refused before anything is done. */
static plumb_status tidy(const plumb_store *store, plumb_error *err) {
    int lock = -1;
    plumb_ledger ledger;
    bool damaged; /* is told when it matters */
    plumb_status status = plumb__store_lock(store->folder, &lock, err);
    if (status != PLUMB_OK) return status;
    status = read_ledger(store, &ledger, &damaged, err);
    plumb__ledger_free(&ledger);
    if (status == PLUMB_OK) plumb__store_remove_parts(store->folder);
    plumb__store_unlock(lock);
    return status;
}

static void tell_of_others(const plumb_store *store) {
    int64_t others = 0;
    for (int64_t i = 0; i < store->entries.count; i++)
        others += !store->entries.entry[i].damaged &&
                  !plumb__store_rules_equal(&store->entries.entry[i].rules, &store->rules);
    if (others == 0 || !store->options.log) return;
    store->options.log(store->options.log_user, PLUMB_LOG_INFO,
                       plumb__format("session store: %lld of %lld entries are of another model or "
                                     "arithmetic revision",
                                     (long long)others, (long long)store->entries.count)
                           .s);
}

plumb_status plumb_store_open(const char *folder, plumb_model *model,
                              const plumb_store_options *options, plumb_store **out,
                              plumb_error *err) {
    if (!folder || !model)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_store_open", -1, "NULL",
                           "a folder and a model");
    plumb_store *store = calloc(1, sizeof *store);
    if (!store) return plumb__fail_memory(err, "session store", sizeof *store);
    store->model = model;
    if (options) store->options = *options;
    store->rules.arithmetic_revision = PLUMB_ARITHMETIC_REVISION;
    store->folder = strdup(folder);
    plumb_status status = store->folder ? check_options(&store->options, err)
                                        : plumb__fail_memory(err, folder, strlen(folder));
    if (status == PLUMB_OK)
        status = plumb__store_path(folder, PLUMB_STORE_LEDGER, &store->ledger_path, err);
    if (status == PLUMB_OK) status = plumb__model_digest(model, store->rules.model, err);
    if (status == PLUMB_OK) status = plumb__store_folder_make(folder, err);
    if (status == PLUMB_OK) status = tidy(store, err);
    if (status == PLUMB_OK) status = plumb__store_refresh(store, err);
    if (status != PLUMB_OK) {
        plumb_store_close(store);
        return status;
    }
    tell_of_others(store);
    *out = store;
    return PLUMB_OK;
}

void plumb_store_close(plumb_store *store) {
    if (!store) return;
    plumb__store_entries_free(&store->entries);
    free(store->ledger_path);
    free(store->folder);
    free(store);
}

/* ---- What its functions share ---------------------------------------------------------------- */

int64_t plumb__store_now(const plumb_store *store) {
    const plumb_store_options *o = &store->options;
    return o->now ? o->now(o->now_user) : (int64_t)time(NULL);
}

void plumb__store_say(const plumb_store *store, plumb_log_level level, const plumb_error *err,
                      const char *what) {
    char line[1024], said[1200];
    if (!store->options.log) return;
    plumb_error_line(err, line, sizeof line);
    (void)snprintf(said, sizeof said, "session store: %s: %s", what, line);
    store->options.log(store->options.log_user, level, said);
}

plumb_status plumb__store_refresh(plumb_store *store, plumb_error *err) {
    return plumb__store_look(&store->entries, store->folder, store->options.log,
                             store->options.log_user, err);
}

plumb_status plumb__store_sequence(const plumb_store *store, const int32_t *tokens, int64_t length,
                                   plumb_store_sequence *sequence, plumb_error *err) {
    *sequence = (plumb_store_sequence){.rules = store->rules, .tokens = tokens, .length = length};
    return plumb__prefix_chain(tokens, length, &sequence->chain, err);
}

plumb_status plumb__store_load_ledger(const plumb_store *store, plumb_ledger *ledger,
                                      plumb_error *err) {
    plumb_error fault = {0};
    bool damaged;
    plumb_status status = read_ledger(store, ledger, &damaged, &fault);
    if (damaged) plumb__store_say(store, PLUMB_LOG_WARNING, &fault, "counting begins anew");
    if (status != PLUMB_OK && err) *err = fault;
    return status;
}

plumb_status plumb__store_write_ledger(const plumb_store *store, const plumb_ledger *ledger,
                                       plumb_error *err) {
    enum { MARK = PLUMB_WHOLE_FILE_MARK };
    char *text = NULL;
    size_t size = 0;
    plumb_whole_file file;
    plumb_status status = plumb__ledger_print(ledger, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = plumb__whole_file_open(store->ledger_path, ledger_mark, ledger_magic, &file, err);
    if (status == PLUMB_OK) {
        status =
            plumb__file_write_at(file.fd, file.part, MARK, (int64_t)size - MARK, text + MARK, err);
        if (status == PLUMB_OK)
            status = plumb__file_write_at(file.fd, file.part, 0, MARK, text, err);
        if (status == PLUMB_OK)
            status = plumb__whole_file_commit(&file, err);
        else
            plumb__whole_file_abandon(&file);
    }
    free(text);
    return status;
}

plumb_status plumb_store_get_stats(plumb_store *store, plumb_store_stats *stats, plumb_error *err) {
    plumb_ledger ledger = {0};
    plumb_status status = plumb__store_refresh(store, err);
    if (status == PLUMB_OK) status = plumb__store_load_ledger(store, &ledger, err);
    if (status != PLUMB_OK) return status;
    *stats =
        (plumb_store_stats){.entries = store->entries.count,
                            .written_today = plumb__ledger_today(&ledger, plumb__store_now(store)),
                            .written_ever = ledger.ever_bytes};
    for (int64_t i = 0; i < store->entries.count; i++) {
        const plumb_store_entry *e = &store->entries.entry[i];
        stats->bytes += e->bytes;
        stats->usable += !e->damaged && plumb__store_rules_equal(&e->rules, &store->rules);
    }
    plumb__ledger_free(&ledger);
    return PLUMB_OK;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* An entry that may serve, opened, and how much of the prompt it begins with. */
typedef struct candidate {
    plumb_store_entry *entry; /* NULL: none */
    plumb_snapshot *snapshot;
    int64_t shared;
} candidate;

/* The untried entry that shares most, in whole blocks; of equal ones the shortest, which needs the
 * least going back.  NULL: none is left that could share `least`. */
static plumb_store_entry *next_entry(const plumb_store *store, const plumb_store_sequence *wanted,
                                     int64_t least, int64_t *shared) {
    plumb_store_entry *best = NULL;
    *shared = 0;
    for (int64_t i = 0; i < store->entries.count; i++) {
        plumb_store_entry *e = &store->entries.entry[i];
        int64_t n = e->tried ? 0 : plumb__store_shared(e, wanted);
        bool better = n > *shared || (best && n == *shared && e->id.length < best->id.length);
        if (n == 0 || !better) continue;
        best = e;
        *shared = n;
    }
    return *shared + PLUMB_PREFIX_BLOCK > least ? best : NULL;
}

static plumb_snapshot *open_entry(const plumb_store *store, plumb_store_entry *entry,
                                  const plumb_session *session) {
    char name[PLUMB_PREFIX_NAME_SIZE], *path = NULL;
    plumb_snapshot *snapshot = NULL;
    plumb_error err = {0};
    plumb__prefix_name(entry->id, name);
    entry->tried = true;
    if (plumb__store_path(store->folder, name, &path, &err) != PLUMB_OK) return NULL;
    /* Failing to open: it has gone.  Not fitting: the session's context is shorter. */
    if (plumb_snapshot_open(path, &snapshot, &err) == PLUMB_OK &&
        plumb_snapshot_check(snapshot, session, &err) != PLUMB_OK) {
        plumb_snapshot_close(snapshot);
        snapshot = NULL;
    }
    free(path);
    return snapshot;
}

/* The entry that shares most, to the token: blocks tell which ones may, their tokens which one
 * does. */
static candidate find(const plumb_store *store, const plumb_session *session,
                      const plumb_store_sequence *wanted, int64_t least) {
    candidate best = {0};
    int64_t blocks = 0;
    for (;;) {
        plumb_store_entry *entry = next_entry(store, wanted, least, &blocks);
        if (!entry || blocks + PLUMB_PREFIX_BLOCK <= best.shared) return best;
        plumb_snapshot *snapshot = open_entry(store, entry, session);
        if (!snapshot) continue;
        int64_t shared =
            plumb__prefix_common(plumb_snapshot_tokens(snapshot), plumb_snapshot_length(snapshot),
                                 wanted->tokens, wanted->length);
        if (shared >= least && shared > best.shared) {
            plumb_snapshot_close(best.snapshot);
            best = (candidate){entry, snapshot, shared};
        } else {
            plumb_snapshot_close(snapshot);
        }
    }
}

/* A hit goes into the ledger.  That this fails is no reason to do without the session. */
static void record_hit(const plumb_store *store, const candidate *hit,
                       const plumb_store_sequence *wanted) {
    int lock = -1;
    plumb_ledger ledger = {0};
    plumb_error err = {0};
    plumb_status status = plumb__store_lock(store->folder, &lock, &err);
    if (status == PLUMB_OK) {
        status = plumb__store_load_ledger(store, &ledger, &err);
        plumb_ledger_entry *record =
            status == PLUMB_OK ? plumb__ledger_add(&ledger, hit->entry->id) : NULL;
        if (record) {
            record->hits++;
            record->used = plumb__store_now(store);
            if (hit->shared == hit->entry->id.length)
                plumb__ledger_went_on(record, wanted->tokens + hit->shared,
                                      wanted->length - hit->shared);
            status = plumb__store_write_ledger(store, &ledger, &err);
        }
        plumb__ledger_free(&ledger);
        plumb__store_unlock(lock);
    }
    if (status != PLUMB_OK)
        plumb__store_say(store, PLUMB_LOG_WARNING, &err, "a hit is not counted");
}

static plumb_status restore_best(plumb_store *store, plumb_session *session,
                                 const plumb_store_sequence *wanted, int64_t least, int64_t *shared,
                                 plumb_error *err) {
    for (int64_t i = 0; i < store->entries.count; i++)
        store->entries.entry[i].tried = store->entries.entry[i].damaged;
    for (;;) {
        candidate best = find(store, session, wanted, least);
        if (!best.entry) return PLUMB_OK;
        plumb_error fault = {0};
        plumb_status status = plumb_session_restore(session, best.snapshot, &fault);
        plumb_snapshot_close(best.snapshot);
        if (status == PLUMB_OK) {
            *shared = best.shared;
            record_hit(store, &best, wanted);
            return PLUMB_OK;
        }
        if (status == PLUMB_ERROR_MEMORY) {
            if (err) *err = fault;
            return status;
        }
        /* It opened, but what it holds is damaged: the next one, then. */
        best.entry->damaged = true;
        plumb__store_say(store, PLUMB_LOG_WARNING, &fault, "skipped");
        for (int64_t i = 0; i < store->entries.count; i++)
            store->entries.entry[i].tried = store->entries.entry[i].damaged;
    }
}

plumb_status plumb_store_restore(plumb_store *store, plumb_session *session, const int32_t *tokens,
                                 int64_t n_tokens, int64_t *shared, plumb_error *err) {
    int64_t ignored;
    if (!shared) shared = &ignored;
    *shared = 0;
    if (!store || !session || !tokens || n_tokens < 1)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_store_restore", -1, "NULL",
                           "store, session and tokens");
    if (session->model != store->model)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "session", -1, "one of another model",
                           "one of the store's model");
    /* What a session knows may be more than it stands at.  The last token is evaluated in any case,
     * so that having it is worth nothing. */
    int64_t had = plumb__prefix_common(session->tokens, session->known, tokens, n_tokens - 1);
    plumb_store_sequence wanted;
    plumb_status status = plumb__store_refresh(store, err);
    if (status == PLUMB_OK) status = plumb__store_sequence(store, tokens, n_tokens, &wanted, err);
    if (status != PLUMB_OK) return status;
    int64_t least = had + store->options.least_tokens;
    if (least < n_tokens) status = restore_best(store, session, &wanted, least, shared, err);
    plumb__prefix_chain_free(&wanted.chain);
    return status;
}
