/* The stored bytes of a synthetic tensor, any range of its rows at a time. */
#ifndef PLUMB_SYNTH_TENSOR_VALUES_H
#define PLUMB_SYNTH_TENSOR_VALUES_H

#include "synth/number_stream.h"
#include "synth/recipe.h"

typedef enum plumb__encoding {
    PLUMB_ENCODE_BF16,
    PLUMB_ENCODE_F32,
    PLUMB_ENCODE_FP8_TILES, /* one scale per 32 x 32 */
    PLUMB_ENCODE_FP8_ROWS,  /* one scale per 32 of a row */
    PLUMB_ENCODE_FP4_ROWS,
    PLUMB_ENCODE_FP4_DRAWN /* codes and scales drawn at random: 16 values for one hash */
} plumb__encoding;

typedef struct plumb__tensor_source {
    plumb__encoding encoding;
    int64_t rows, columns; /* elements; a vector is one row */
    plumb__recipe recipe;
    plumb__number_stream noise;  /* per element */
    plumb__number_stream tiles;  /* per tile or group: its magnitude */
    plumb__number_stream common; /* per column: sign of the common direction */
} plumb__tensor_source;

/* Rows must be asked for in multiples of this (the last range may be shorter). */
enum { PLUMB_ROW_STRIPE = 32 };

/* `name` is the weight's tensor name. */
plumb__tensor_source plumb__tensor_source_make(uint64_t seed, const char *name,
                                               plumb__encoding encoding, int64_t rows,
                                               int64_t columns, const plumb__recipe *recipe);

int64_t plumb__encoded_row_bytes(plumb__encoding encoding, int64_t columns);
/* Scale bytes of one stripe of rows; 0 for unscaled encodings. */
int64_t plumb__encoded_stripe_scales(plumb__encoding encoding, int64_t rows, int64_t columns);

/* Rows [begin, end), begin a multiple of PLUMB_ROW_STRIPE, at most one stripe of them.
 * work (PLUMB_ROW_STRIPE * columns); payload and scales receive the stripe's stored bytes. */
void plumb__tensor_stripe(const plumb__tensor_source *source, int64_t begin, int64_t end,
                          double *work, uint8_t *payload, uint8_t *scales);

#endif
