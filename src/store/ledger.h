/* The ledger of a store: what was written, for the wear of the drive, and what is known of each
 * entry.
 *
 * It is a text file in the folder, so that every process that uses the folder counts in the same
 * place:
 *
 *     plumb-ledger 1
 *     day 20423 bytes 2715648 ever 1048576000
 *     000055572-<hash>.plumb-session used 1764527237 hits 3 next 64 00f1e2d3c4b5a697 shared 0
 *     check 0011223344556677
 *
 * The last line is XXH3-64 of the text before it.  Written whole or not at all (base/whole_file.h).
 */
#ifndef PLUMB_STORE_LEDGER_H
#define PLUMB_STORE_LEDGER_H

#include "store/prefix.h"

typedef struct plumb_ledger_entry {
    plumb_prefix_id id;
    int64_t used, hits;
    /* How the first prompt that began with all of this entry went on: the hash of so many tokens;
     * 0: no prompt yet.  Once another one goes on differently the entry is shared by two
     * conversations. */
    int64_t next_tokens;
    uint64_t next_hash;
    bool shared;
} plumb_ledger_entry;

typedef struct plumb_ledger {
    int64_t day, day_bytes, ever_bytes;
    plumb_ledger_entry *entry; /* [n_entries], in the order of their names */
    int64_t n_entries, capacity;
} plumb_ledger; /* start from {0} */

void plumb__ledger_free(plumb_ledger *ledger);
plumb_ledger_entry *plumb__ledger_find(const plumb_ledger *ledger,
                                       plumb_prefix_id id); /* or NULL */
/* The entry of this id, a new one if need be; NULL without memory.  Moves the others. */
plumb_ledger_entry *plumb__ledger_add(plumb_ledger *ledger, plumb_prefix_id id);

/* Counts bytes as written at `now`.  The day before the last one counted is a clock that was set
 * back a little: the budget does not begin anew. */
void plumb__ledger_count(plumb_ledger *ledger, int64_t now, int64_t bytes);
int64_t plumb__ledger_today(const plumb_ledger *ledger, int64_t now);

/* A prompt began with all of the entry and went on with these tokens. */
void plumb__ledger_went_on(plumb_ledger_entry *entry, const int32_t *tokens, int64_t n_tokens);

enum { PLUMB_LEDGER_BYTES_MAX = 1 << 26 };
/* The text; free() it. */
PLUMB_MUST_CHECK plumb_status plumb__ledger_print(const plumb_ledger *ledger, char **text,
                                                  size_t *size, plumb_error *err);
/* Text that is damaged is refused as a whole: PLUMB_ERROR_FORMAT.  What is not to be written over has
 * another error: ARGUMENT what is no ledger, UNSUPPORTED one of another version.  `ledger` must be
 * {0}. */
PLUMB_MUST_CHECK plumb_status plumb__ledger_parse(const char *text, size_t size, const char *path,
                                                  plumb_ledger *ledger, plumb_error *err);

#endif
