/* What lies in a store's folder, as this process knows it.
 *
 * Looking again costs a listing; only files that are new are opened, and only their beginnings
 * read.  A name stands for its tokens, so a file that was replaced by another process is the same
 * entry. */
#ifndef PLUMB_STORE_ENTRIES_H
#define PLUMB_STORE_ENTRIES_H

#include "store/folder.h"
#include "store/ledger.h"
#include "store/policy.h"

/* Rules under which tokens become caches: equal ones are needed to use an entry. */
typedef struct plumb_store_rules {
    uint8_t model[16]; /* digest */
    uint32_t arithmetic_revision;
} plumb_store_rules;

typedef struct plumb_store_entry {
    plumb_prefix_id id;
    int64_t bytes, modified; /* as in plumb_store_file */
    bool damaged;            /* it does not open, or holds something else than its name says */
    bool seen, tried;        /* of one look at the folder, of one search */
    plumb_store_rules rules;
    plumb_prefix_chain chain;
} plumb_store_entry;

typedef struct plumb_store_entries {
    plumb_store_entry *entry; /* [count] */
    int64_t count, capacity;
} plumb_store_entries; /* start from {0} */

void plumb__store_entries_free(plumb_store_entries *entries);
/* Looks at the folder again.  Says once of each entry that it is damaged. */
PLUMB_MUST_CHECK plumb_status plumb__store_look(plumb_store_entries *entries, const char *folder,
                                                plumb_log_fn log, void *log_user, plumb_error *err);
void plumb__store_forget(plumb_store_entries *entries, int64_t i);

bool plumb__store_rules_equal(const plumb_store_rules *a, const plumb_store_rules *b);

/* A sequence to be compared with entries. */
typedef struct plumb_store_sequence {
    plumb_store_rules rules;
    const int32_t *tokens;
    int64_t length;
    plumb_prefix_chain chain;
} plumb_store_sequence;
/* Tokens that entry and sequence both begin with: to the token if it is all of the entry, otherwise
 * rounded down to whole blocks; 0 for an entry of other rules. */
int64_t plumb__store_shared(const plumb_store_entry *entry, const plumb_store_sequence *sequence);

/* The i-th entry's worth once there is an entry of `coming`, too; `record` is its line of the ledger or
 * NULL. */
plumb_store_worth plumb__store_worth_of(const plumb_store_entries *entries, int64_t i,
                                        const plumb_ledger_entry *record,
                                        const plumb_store_sequence *coming);

#endif
