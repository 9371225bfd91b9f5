/* What one sequence leaves behind: window rings, compressed caches, carries (model.md section 6).
 *
 * The network appends to the caches and hands rings and carries over only when a whole batch has
 * succeeded, so a failed batch leaves the state as it was: rows beyond `length` do not exist.
 * Caches keep codes and scales; the packed form is the value (docs/arithmetic.md section 5). */
#ifndef PLUMB_MODEL_STATE_H
#define PLUMB_MODEL_STATE_H

#include "backend/backend.h"
#include "format/model_config.h"

typedef struct plumb_layer_state {
    uint8_t *ring;       /* [window] packed window rows, slot = position mod window */
    uint8_t *compressed; /* [capacity / ratio] packed rows; kv sources only */
    uint8_t *index_keys; /* [capacity / ratio] packed rows; kv sources only */
    float *carry;        /* [2][head_dim] value and gate of the first of the last pair, which may be
                          * unfinished; ratio 2 only */
} plumb_layer_state;

typedef struct plumb_state {
    const plumb_model_config *config;
    plumb_backend *backend;
    int64_t length;      /* positions 0..length-1 have been evaluated */
    int64_t capacity;    /* positions the caches have room for */
    int64_t limit;       /* that they will ever have; 0: none */
    plumb_layer_state layer[PLUMB_MAX_LAYERS];
} plumb_state;

PLUMB_MUST_CHECK plumb_status plumb__state_create(const plumb_model_config *config,
                                                  plumb_backend *backend, plumb_state **state,
                                                  plumb_error *err);
void plumb__state_destroy(plumb_state *state);

/* Room for `length` positions; contents are kept.  Grows in steps, so that a long context costs only
 * what it uses. */
PLUMB_MUST_CHECK plumb_status plumb__state_reserve(plumb_state *state, int64_t length,
                                                   plumb_error *err);

/* The part that later positions overwrite: rings and carries.  With it and the append-only caches
 * a state can return to the length at which it was saved. */
int64_t plumb__state_fixed_bytes(const plumb_state *state);
void plumb__state_save_fixed(const plumb_state *state, uint8_t *to);
/* Back to `length`, with the rings and carries that were saved there. */
void plumb__state_restore_fixed(plumb_state *state, int64_t length, const uint8_t *from);
/* Where a layer's ring begins in that part; its carry, if it has one, follows. */
int64_t plumb__state_ring_offset(const plumb_model_config *config, int64_t layer);
/* Back to the empty sequence. */
void plumb__state_clear(plumb_state *state);
/* Back by one position, once after any evaluation or restoring: nothing that the next position reads has
 * been overwritten.  Its own slot of a ring held a position that is out of its window, and the carry
 * keeps the first of a pair that the last position completed. */
void plumb__state_step_back(plumb_state *state);
/* Bytes of all caches now allocated, and with room for `length` positions. */
int64_t plumb__state_bytes(const plumb_state *state);
int64_t plumb__state_bytes_at(const plumb_model_config *config, int64_t length);

#endif
