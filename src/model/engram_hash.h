/* Which rows of an Engram table a position looks up (model.md sections 5.2 to 5.4).
 *
 * A position hashes its last n folded token ids for n = 2, 3, ...: the ids times fixed odd
 * multipliers, joined by xor, taken modulo one prime per head.  Every column (n, head) owns a range
 * of the table as long as its prime.  The rows depend on token ids alone, so they are known, and
 * can be fetched, before any layer has run. */
#ifndef PLUMB_MODEL_ENGRAM_HASH_H
#define PLUMB_MODEL_ENGRAM_HASH_H

#include "format/model_config.h"

/* What stands for a position inside an image span, or before the start of the sequence. */
#define PLUMB_ENGRAM_DEAD (-1)

/* The hash of one Engram layer; plain data, constant after init, may be shared by threads. */
typedef struct plumb_engram_hash {
    int32_t ngram, heads;
    int32_t columns;                           /* (ngram - 1) * heads */
    int32_t folded_pad;                        /* replaces dead and missing history */
    uint64_t multiplier[PLUMB_MAX_NGRAM];      /* of the newest id first */
    uint64_t prime[PLUMB_MAX_ENGRAM_COLUMNS];
    int64_t offset[PLUMB_MAX_ENGRAM_COLUMNS];  /* first table row of the column */
} plumb_engram_hash;

/* Prepares the hash of the engram_index-th Engram layer of a checked config.  folded_pad is the
 * folded id of engram_pad_id, in [0, engram_folded_vocab).  PLUMB_ERROR_CONFIG when the primes do
 * not add up to the table's rows. */
PLUMB_MUST_CHECK plumb_status plumb__engram_hash_init(const plumb_model_config *config,
                                                      int64_t engram_index, int32_t folded_pad,
                                                      plumb_engram_hash *hash, plumb_error *err);

/* history: the folded ids of the last `ngram` positions, newest last, PLUMB_ENGRAM_DEAD where dead
 * or before the start.  From the first dead one backwards, all older ids read as the pad.
 * rows: [columns] table rows, each in [0, engram_rows). */
void plumb__engram_hash_rows(const plumb_engram_hash *hash, const int32_t *history, int64_t *rows);

#endif
