/* Which pieces are in a sample is decided by a hash of the tensor's name and the piece's place, so
 * that a sample is the same on every machine and for every order of the shards. */
#include "convert/folder_pieces.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { ONE_IN = 100, SEED = 1 };

typedef struct sorting {
    const plumb_tensor *tensor;
    int64_t number;
} sorting;

static int by_place(const void *a, const void *b) {
    const plumb_tensor *x = ((const sorting *)a)->tensor, *y = ((const sorting *)b)->tensor;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* One number for each unit of a sample; the unit is in it when the number is small. */
static uint64_t lot(const plumb_tensor *tensor, int64_t begin) {
    return XXH3_64bits_withSeed(tensor->name, strlen(tensor->name), SEED + (uint64_t)begin);
}

typedef struct choosing {
    plumb_piece_choice choice;
    int64_t largest; /* tensor of a sample */
    uint64_t limit;  /* lots below are chosen */
} choosing;

static bool chosen(const choosing *c, const plumb_tensor *tensor, int64_t begin) {
    switch (c->choice) {
    case PLUMB_PIECES_ALL: break;
    case PLUMB_PIECES_SAMPLE: return lot(tensor, begin) <= c->limit;
    case PLUMB_PIECES_SAMPLE_TENSORS:
        return tensor->bytes <= c->largest && lot(tensor, 0) <= c->limit;
    }
    return true;
}

static int64_t largest_of_sample(const plumb_checkpoint *checkpoint) {
    int64_t total = 0, least = INT64_MAX;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        int64_t bytes = plumb__checkpoint_tensor(checkpoint, i)->bytes;
        total += bytes;
        if (bytes < least) least = bytes;
    }
    return total / ONE_IN > least ? total / ONE_IN : least;
}

/* At least one unit is chosen: the one whose lot is least. */
static choosing rule_of(const plumb_checkpoint *checkpoint, plumb_piece_choice choice) {
    choosing rule = {choice, largest_of_sample(checkpoint), UINT64_MAX / ONE_IN};
    uint64_t least = UINT64_MAX;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *tensor = plumb__checkpoint_tensor(checkpoint, i);
        if (choice == PLUMB_PIECES_SAMPLE_TENSORS && tensor->bytes > rule.largest) continue;
        uint64_t first = lot(tensor, 0);
        if (first < least) least = first;
    }
    if (least > rule.limit) rule.limit = least;
    return rule;
}

static plumb_status add(plumb_pieces *pieces, int64_t *capacity, plumb_piece piece,
                        plumb_error *err) {
    void *grown = plumb__grow(pieces->piece, capacity, pieces->count + 1, sizeof *pieces->piece);
    if (!grown) return plumb__fail_memory(err, "pieces", sizeof *pieces->piece);
    pieces->piece = grown;
    pieces->piece[pieces->count++] = piece;
    pieces->bytes += piece.size;
    return PLUMB_OK;
}

static plumb_status add_tensor(plumb_pieces *pieces, int64_t *capacity, const choosing *rule,
                               const sorting *s, plumb_error *err) {
    int64_t before = pieces->count;
    plumb_status status = PLUMB_OK;
    for (int64_t begin = 0; begin < s->tensor->bytes && status == PLUMB_OK;
         begin += PLUMB_PIECE_BYTES) {
        int64_t left = s->tensor->bytes - begin;
        const plumb_piece piece = {s->number, begin,
                                   left < PLUMB_PIECE_BYTES ? left : PLUMB_PIECE_BYTES};
        if (chosen(rule, s->tensor, begin)) status = add(pieces, capacity, piece, err);
    }
    pieces->tensors += pieces->count > before;
    return status;
}

plumb_status plumb__pieces_list(const plumb_checkpoint *checkpoint, plumb_piece_choice choice,
                                plumb_pieces *pieces, plumb_error *err) {
    int64_t count = plumb__checkpoint_count(checkpoint), capacity = 0;
    *pieces = (plumb_pieces){0};
    sorting *order = malloc((size_t)count * sizeof *order);
    if (!order) return plumb__fail_memory(err, "tensors", (size_t)count * sizeof *order);
    for (int64_t i = 0; i < count; i++)
        order[i] = (sorting){plumb__checkpoint_tensor(checkpoint, i), i};
    qsort(order, (size_t)count, sizeof *order, by_place);
    const choosing rule = rule_of(checkpoint, choice);
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < count && status == PLUMB_OK; i++)
        status = add_tensor(pieces, &capacity, &rule, &order[i], err);
    free(order);
    if (status != PLUMB_OK) plumb__pieces_free(pieces);
    return status;
}

void plumb__pieces_free(plumb_pieces *pieces) {
    free(pieces->piece);
    *pieces = (plumb_pieces){0};
}
