/* What goes through the network at a time.
 *
 * Operations that treat rows one by one see nothing but rows.  Those that look at a sequence's past
 * (attention, compression, search, hashes of the last tokens) go through the sequences of the batch: one with
 * many rows while a prompt is read, several with one row each while answers are written. */
#ifndef PLUMB_MODEL_BATCH_H
#define PLUMB_MODEL_BATCH_H

#include "model/state.h"

typedef struct plumb_network plumb_network;

/* Places of the forward pass at which an observer may look at, or replace, the working memory:
 * layer inputs and outputs in work.h and work.pre, sublayer inputs in work.x, outputs in work.out. */
typedef enum plumb_point {
    PLUMB_POINT_LAYER_IN,   /* h before a possible Engram */
    PLUMB_POINT_ENGRAM_OUT, /* h after it */
    PLUMB_POINT_ATTN_IN,    /* x, normalised */
    PLUMB_POINT_ATTN_OUT,   /* out */
    PLUMB_POINT_FFN_IN,     /* x, normalised */
    PLUMB_POINT_FFN_OUT,    /* out */
    PLUMB_POINT_LAYER_OUT   /* h; pre for the next layer */
} plumb_point;

typedef void (*plumb_observer)(void *user, plumb_network *network, plumb_point point,
                               int64_t layer, int64_t rows);

/* The next token of a sequence: tokens[state->length]. */
typedef struct plumb_step {
    plumb_state *state;
    const int32_t *tokens;
} plumb_step;

enum { PLUMB_MOST_STEPS = 64 };

/* Consecutive positions of one sequence, or the next position of several. */
typedef struct plumb_batch {
    const plumb_step *steps;   /* [rows] different sequences, at most PLUMB_MOST_STEPS; NULL: one sequence, of
                                * which the next three and `end`, `cached` tell */
    plumb_state *state;
    const int32_t *tokens;     /* the whole sequence: tokens[state->length + i] is row i */
    int64_t rows;
    int64_t end;               /* length after the last batch of the call: nothing is asked about rows
                                * before it but what `first_logits` and later positions need */
    int64_t cached;            /* the compressed caches hold the positions before it already; rows from there
                                * on append to them */
    int64_t first_logits;      /* rows from here on go through the head; rows: none */
    plumb_logits_sink sink;    /* receives them in order, with their position or, of steps, their row */
    void *sink_user;
    int (*progress)(void *user, int64_t layer, int64_t layers); /* nonzero cancels; may be NULL */
    void *progress_user;
    plumb_observer observe;    /* may be NULL */
    void *observe_user;
} plumb_batch;

/* The part of a batch that belongs to one sequence. */
typedef struct plumb_sequence {
    plumb_state *state;
    const int32_t *tokens;
    int64_t row, rows; /* rows `row` to `row + rows` of the batch */
    int64_t cached;
} plumb_sequence;

static inline int64_t plumb__sequences(const plumb_batch *batch) { return batch->steps ? batch->rows : 1; }

static inline plumb_sequence plumb__sequence(const plumb_batch *batch, int64_t i) {
    if (!batch->steps)
        return (plumb_sequence){batch->state, batch->tokens, 0, batch->rows, batch->cached};
    const plumb_step *step = &batch->steps[i];
    return (plumb_sequence){step->state, step->tokens, i, 1, step->state->length};
}

/* The position of a row in its sequence. */
static inline int64_t plumb__row_position(const plumb_batch *batch, int64_t row) {
    return batch->steps ? batch->steps[row].state->length : batch->state->length + row;
}

/* Rows of the batch that rings will keep. */
static inline int64_t plumb__rows_kept(const plumb_batch *batch, int64_t window) {
    return batch->steps || batch->rows < window ? batch->rows : window;
}

#endif
