/* What the functions of a store share. */
#ifndef PLUMB_STORE_STORE_H
#define PLUMB_STORE_STORE_H

#include "store/entries.h"

#define PLUMB_STORE_LEDGER "ledger"

struct plumb_store {
    char *folder;
    char *ledger_path;
    plumb_model *model;
    plumb_store_options options; /* without zeros */
    plumb_store_rules rules;     /* of the model */
    plumb_store_entries entries;
};

int64_t plumb__store_now(const plumb_store *store);
/* One line to the log, as printf. */
void plumb__store_say(const plumb_store *store, plumb_log_level level, const plumb_error *err,
                      const char *what);
PLUMB_MUST_CHECK plumb_status plumb__store_refresh(plumb_store *store, plumb_error *err);

/* Under the lock.  A ledger that is not there, or damaged, begins anew; the latter is said.  What is no
 * ledger, or a newer one, is an error. */
PLUMB_MUST_CHECK plumb_status plumb__store_load_ledger(const plumb_store *store,
                                                       plumb_ledger *ledger, plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__store_write_ledger(const plumb_store *store,
                                                        const plumb_ledger *ledger,
                                                        plumb_error *err);

/* Tokens as something to compare with the store's entries; free its chain. */
PLUMB_MUST_CHECK plumb_status plumb__store_sequence(const plumb_store *store, const int32_t *tokens,
                                                    int64_t length, plumb_store_sequence *sequence,
                                                    plumb_error *err);

#endif
