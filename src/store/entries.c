#include "store/entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "format/snapshot.h"

static void free_entry(plumb_store_entry *e) {
    plumb__prefix_chain_free(&e->chain);
}

void plumb__store_entries_free(plumb_store_entries *entries) {
    for (int64_t i = 0; i < entries->count; i++) free_entry(&entries->entry[i]);
    free(entries->entry);
    *entries = (plumb_store_entries){0};
}

void plumb__store_forget(plumb_store_entries *entries, int64_t i) {
    free_entry(&entries->entry[i]);
    entries->entry[i] = entries->entry[--entries->count];
}

bool plumb__store_rules_equal(const plumb_store_rules *a, const plumb_store_rules *b) {
    return a->arithmetic_revision == b->arithmetic_revision &&
           memcmp(a->model, b->model, sizeof a->model) == 0;
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* Fills rules and chain; an error says what is wrong with the file. */
static plumb_status read_entry(plumb_store_entry *e, const char *path, plumb_error *err) {
    plumb_snapshot *snapshot = NULL;
    plumb_status status = plumb_snapshot_open(path, &snapshot, err);
    if (status != PLUMB_OK) return status;
    const plumb_snapshot_header *h = &snapshot->header;
    e->rules.arithmetic_revision = h->arithmetic_revision;
    memcpy(e->rules.model, h->model, sizeof e->rules.model);
    plumb_prefix_id found =
        plumb__prefix_id(h->model, h->arithmetic_revision, snapshot->tokens, h->length);
    if (plumb__prefix_id_equal(found, e->id)) {
        status = plumb__prefix_chain(snapshot->tokens, h->length, &e->chain, err);
    } else {
        char name[PLUMB_PREFIX_NAME_SIZE];
        plumb__prefix_name(found, name);
        status =
            plumb__fail(err, PLUMB_ERROR_FORMAT, path, "name", -1, "another snapshot", "%s", name);
    }
    plumb_snapshot_close(snapshot);
    return status;
}

static void tell(plumb_log_fn log, void *user, const plumb_error *err) {
    char line[1024], said[1100];
    if (!log) return;
    plumb_error_line(err, line, sizeof line);
    (void)snprintf(said, sizeof said, "session store: skipped: %s", line);
    log(user, PLUMB_LOG_WARNING, said);
}

typedef struct look {
    plumb_store_entries *entries;
    const char *folder;
    plumb_log_fn log;
    void *log_user;
} look;

/* A file that has not been seen before.  Whatever is wrong with it is no failure of looking. */
static plumb_status add_file(const look *l, const plumb_store_file *file, plumb_error *err) {
    plumb_store_entries *v = l->entries;
    plumb_store_entry e = {
        .id = file->id, .bytes = file->bytes, .modified = file->modified, .seen = true};
    char name[PLUMB_PREFIX_NAME_SIZE], *path = NULL;
    plumb_error fault = {0};
    plumb_store_entry *grown = plumb__grow(v->entry, &v->capacity, v->count + 1, sizeof *grown);
    if (!grown) return plumb__fail_memory(err, "entries", (size_t)v->count * sizeof *grown);
    v->entry = grown;
    plumb__prefix_name(e.id, name);
    plumb_status status = plumb__store_path(l->folder, name, &path, err);
    if (status != PLUMB_OK) return status;
    plumb_status read = read_entry(&e, path, &fault);
    if (read == PLUMB_ERROR_MEMORY) {
        *err = fault;
        status = read;
    } else if (read == PLUMB_OK || plumb__snapshot_begins(path, NULL) == PLUMB_OK) {
        e.damaged = read != PLUMB_OK;
        grown[v->count++] = e;
        if (e.damaged) tell(l->log, l->log_user, &fault);
    } /* or it has gone meanwhile, or is none of ours */
    free(path);
    return status;
}

static plumb_store_entry *find(const plumb_store_entries *entries, plumb_prefix_id id) {
    for (int64_t i = 0; i < entries->count; i++)
        if (plumb__prefix_id_equal(entries->entry[i].id, id)) return &entries->entry[i];
    return NULL;
}

plumb_status plumb__store_look(plumb_store_entries *entries, const char *folder, plumb_log_fn log,
                               void *log_user, plumb_error *err) {
    const look l = {entries, folder, log, log_user};
    plumb_store_file *files = NULL;
    int64_t n = 0;
    plumb_status status = plumb__store_list(folder, &files, &n, err);
    if (status != PLUMB_OK) return status;
    for (int64_t i = 0; i < entries->count; i++) entries->entry[i].seen = false;
    for (int64_t i = 0; i < n && status == PLUMB_OK; i++) {
        plumb_store_entry *known = find(entries, files[i].id);
        if (known && known->bytes == files[i].bytes && known->modified == files[i].modified)
            known->seen = true;
        else
            status = add_file(&l, &files[i], err);
    }
    free(files);
    for (int64_t i = entries->count - 1; i >= 0; i--)
        if (!entries->entry[i].seen) plumb__store_forget(entries, i);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

int64_t plumb__store_shared(const plumb_store_entry *entry, const plumb_store_sequence *sequence) {
    if (entry->damaged || !plumb__store_rules_equal(&entry->rules, &sequence->rules)) return 0;
    int64_t shared = plumb__prefix_shared(&entry->chain, &sequence->chain);
    int64_t length = entry->id.length;
    if (shared / PLUMB_PREFIX_BLOCK < entry->chain.blocks || length > sequence->length)
        return shared;
    plumb_prefix_id beginning = plumb__prefix_id(
        sequence->rules.model, sequence->rules.arithmetic_revision, sequence->tokens, length);
    return plumb__prefix_id_equal(beginning, entry->id) ? length : shared;
}

plumb_store_worth plumb__store_worth_of(const plumb_store_entries *entries, int64_t i,
                                        const plumb_ledger_entry *record,
                                        const plumb_store_sequence *coming) {
    const plumb_store_entry *e = &entries->entry[i];
    plumb_store_worth worth = {.length = e->damaged ? 0 : e->id.length,
                               .shared = plumb__store_shared(e, coming),
                               .bytes = e->bytes,
                               .hits = record ? record->hits : 0,
                               .used = record ? record->used : e->modified / INT64_C(1000000000)};
    for (int64_t k = 0; k < entries->count && !e->damaged; k++) {
        const plumb_store_entry *other = &entries->entry[k];
        if (k == i || other->damaged || !plumb__store_rules_equal(&e->rules, &other->rules))
            continue;
        int64_t shared = plumb__prefix_shared(&e->chain, &other->chain);
        if (shared > worth.shared) worth.shared = shared;
    }
    return worth;
}
