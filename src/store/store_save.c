/* Saving a session into a store: is it worth it, is there room, what gives way.
 *
 * Everything happens under the folder's lock, so that processes cannot pass a budget together.
 * Bytes are counted before they are written: a writer that is killed has worn the drive too. */
#include <stdlib.h>

#include "base/error.h"
#include "engine/model_digest.h"
#include "store/store.h"

typedef struct saving {
    plumb_store *store;
    const plumb_session *session;
    plumb_store_sequence wanted;
    plumb_prefix_id id;
    char *path; /* of the entry */
    int64_t now, bytes;
    plumb_ledger ledger;
    bool *leaving; /* [entries]: superseded by what is saved */
} saving;

const char *plumb_store_decision_text(plumb_store_decision decision) {
    switch (decision) {
    case PLUMB_STORE_WRITTEN: return "written";
    case PLUMB_STORE_FEW_TOKENS: return "too few new tokens to be worth a write";
    case PLUMB_STORE_TOO_LARGE: return "larger than the whole store may be";
    case PLUMB_STORE_DAILY_BUDGET: return "today's budget of bytes to write is used up";
    case PLUMB_STORE_DISK_FULL: return "the disk has no more room than is to stay free";
    }
    return "unknown";
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* Drops records of entries that have gone.  A use that is still to come was told by a clock that was
 * wrong; the entry ages from now on. */
static void mend_records(saving *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->ledger.n_entries; i++) {
        plumb_ledger_entry *record = &s->ledger.entry[i];
        bool there = false;
        for (int64_t k = 0; k < s->store->entries.count && !there; k++)
            there = plumb__prefix_id_equal(record->id, s->store->entries.entry[k].id);
        if (record->used > s->now) record->used = s->now;
        if (there) s->ledger.entry[kept++] = *record;
    }
    s->ledger.n_entries = kept;
}

/* Marks the entries that are beginnings of what is saved, unless two conversations go on from them;
 * returns how many tokens are stored already. */
static int64_t compare_with_entries(saving *s) {
    int64_t stored = 0;
    for (int64_t i = 0; i < s->store->entries.count; i++) {
        const plumb_store_entry *e = &s->store->entries.entry[i];
        int64_t shared = plumb__store_shared(e, &s->wanted);
        if (shared > stored) stored = shared;
        const plumb_ledger_entry *record = plumb__ledger_find(&s->ledger, e->id);
        s->leaving[i] = shared > 0 && shared == e->id.length && !(record && record->shared);
    }
    return stored;
}

static plumb_store_decision judge(saving *s) {
    const plumb_store_options *o = &s->store->options;
    int64_t stored = compare_with_entries(s);
    return plumb__store_decide(
        &(plumb_store_write){.new_tokens = s->wanted.length - stored,
                             .least_tokens = o->least_tokens,
                             .bytes = s->bytes,
                             .size_budget = o->size_bytes,
                             .written_today = plumb__ledger_today(&s->ledger, s->now),
                             .daily_budget = o->daily_bytes});
}

/* ---- Making room ----------------------------------------------------------------------------- */

/* The entry that gives way first, or -1; superseded ones go in any case. */
static int64_t least_valuable(const saving *s) {
    const plumb_store_entries *v = &s->store->entries;
    plumb_store_worth least = {0};
    int64_t found = -1;
    for (int64_t i = 0; i < v->count; i++) {
        if (s->leaving[i]) continue;
        plumb_store_worth worth =
            plumb__store_worth_of(v, i, plumb__ledger_find(&s->ledger, v->entry[i].id), &s->wanted);
        if (found >= 0 && !plumb__store_gives_way(&worth, &least, s->now)) continue;
        least = worth;
        found = i;
    }
    return found;
}

static plumb_status evict(saving *s, int64_t i, plumb_error *err) {
    plumb_store_entries *v = &s->store->entries;
    plumb_status status = plumb__store_remove(s->store->folder, v->entry[i].id, err);
    if (status != PLUMB_OK) return status;
    plumb__store_forget(v, i);
    s->leaving[i] = s->leaving[v->count]; /* the last one has taken its place */
    return PLUMB_OK;
}

/* Bytes of the entries that stay, superseded ones aside. */
static int64_t bytes_kept(const saving *s) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->store->entries.count; i++)
        if (!s->leaving[i]) bytes += s->store->entries.entry[i].bytes;
    return bytes;
}

/* Entries give way to the size budget and to the disk.  Where even an empty store would not do for
 * the disk, somebody else has filled it, and nothing is thrown away in vain. */
static plumb_status make_room(saving *s, plumb_store_decision *decision, plumb_error *err) {
    const plumb_store_options *o = &s->store->options;
    int64_t room = 0, kept = bytes_kept(s);
    plumb_status status = plumb__store_room(s->store->folder, o->free_share, &room, err);
    if (status != PLUMB_OK) return status;
    if (room + kept < s->bytes) {
        *decision = PLUMB_STORE_DISK_FULL;
        return PLUMB_OK;
    }
    while (status == PLUMB_OK && (kept + s->bytes > o->size_bytes || room < s->bytes)) {
        int64_t i = least_valuable(s);
        if (i < 0) break; /* another process has made the room */
        int64_t bytes = s->store->entries.entry[i].bytes;
        status = evict(s, i, err);
        kept -= bytes;
        room += bytes;
    }
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static plumb_status write_entry(saving *s, plumb_error *err) {
    const plumb_snapshot_extra extra = {.resume_points = true};
    plumb__ledger_count(&s->ledger, s->now, s->bytes);
    plumb_status status = plumb__store_write_ledger(s->store, &s->ledger, err);
    return status == PLUMB_OK ? plumb_session_save(s->session, s->path, &extra, err) : status;
}

/* The new entry is there: the beginnings that it holds go, and it takes over how often they were
 * wanted.  What fails from here on costs space or a record, not the entry. */
static void supersede(saving *s) {
    plumb_store_entries *v = &s->store->entries;
    int64_t hits = 0;
    plumb_error err = {0};
    plumb_status status = PLUMB_OK;
    for (int64_t i = v->count - 1; i >= 0 && status == PLUMB_OK; i--) {
        const plumb_ledger_entry *record = plumb__ledger_find(&s->ledger, v->entry[i].id);
        if (!s->leaving[i]) continue;
        if (record && record->hits > hits) hits = record->hits;
        status = evict(s, i, &err);
    }
    plumb_ledger_entry *mine = plumb__ledger_add(&s->ledger, s->id);
    if (mine) {
        mine->used = s->now;
        if (mine->hits < hits) mine->hits = hits;
    }
    if (status == PLUMB_OK) status = plumb__store_write_ledger(s->store, &s->ledger, &err);
    if (status != PLUMB_OK)
        plumb__store_say(s->store, PLUMB_LOG_WARNING, &err, "tidying after a write");
}

static plumb_status save_locked(saving *s, plumb_store_decision *decision, plumb_error *err) {
    plumb__store_remove_parts(s->store->folder);
    plumb_status status = plumb__store_refresh(s->store, err);
    if (status == PLUMB_OK) status = plumb__store_load_ledger(s->store, &s->ledger, err);
    if (status != PLUMB_OK) return status;
    mend_records(s);
    size_t entries = (size_t)s->store->entries.count;
    s->leaving = calloc(entries + 1, sizeof *s->leaving);
    if (!s->leaving) return plumb__fail_memory(err, "entries", entries);
    *decision = judge(s);
    if (*decision == PLUMB_STORE_WRITTEN) status = plumb__store_check_place(s->path, err);
    if (status == PLUMB_OK && *decision == PLUMB_STORE_WRITTEN)
        status = make_room(s, decision, err);
    if (status != PLUMB_OK || *decision != PLUMB_STORE_WRITTEN) return status;
    status = write_entry(s, err);
    if (status == PLUMB_OK) supersede(s);
    return status;
}

plumb_status plumb_store_save(plumb_store *store, const plumb_session *session,
                              plumb_store_decision *decision, plumb_error *err) {
    plumb_store_decision ignored;
    if (!decision) decision = &ignored;
    *decision = PLUMB_STORE_FEW_TOKENS;
    if (!store || !session || session->model != store->model)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_store_save", -1,
                           "NULL, or a session of another model", "a session of the store's model");
    int64_t length = plumb_session_length(session);
    if (length < store->options.least_tokens) return PLUMB_OK;
    const plumb_snapshot_extra extra = {.resume_points = true};
    const int32_t *tokens = plumb_session_tokens(session);
    saving s = {.store = store,
                .session = session,
                .now = plumb__store_now(store),
                .bytes = plumb_session_snapshot_bytes(session, &extra)};
    if (s.bytes < 0) return plumb__fail_memory(err, "snapshot", 0);
    s.id = plumb__prefix_id(store->rules.model, store->rules.arithmetic_revision, tokens, length);
    char name[PLUMB_PREFIX_NAME_SIZE];
    plumb__prefix_name(s.id, name);
    int lock = -1;
    plumb_status status = plumb__store_path(store->folder, name, &s.path, err);
    if (status == PLUMB_OK)
        status = plumb__store_sequence(store, tokens, length, &s.wanted, err);
    if (status == PLUMB_OK) status = plumb__store_lock(store->folder, &lock, err);
    if (status == PLUMB_OK) {
        status = save_locked(&s, decision, err);
        plumb__store_unlock(lock);
    }
    plumb__ledger_free(&s.ledger);
    plumb__prefix_chain_free(&s.wanted.chain);
    free(s.leaving);
    free(s.path);
    return status;
}
