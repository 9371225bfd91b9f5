/* A stored payload, taken apart into units that can be encoded and decoded one by one: a block of
 * MXFP4, a row of a table or of an FP8 matrix, an element.  What works on ranges of payloads (reading,
 * converting, auditing) goes unit by unit and needs to know no format. */
#ifndef PLUMB_FORMAT_STORED_UNITS_H
#define PLUMB_FORMAT_STORED_UNITS_H

#include "format/tensor.h"

/* Bytes of one unit: as stored, and of the released tensors that it is made of.  `codes` is also
 * where a payload goes that has no scales; the scales of an FP8 matrix are tiles, which are stored
 * for themselves and only needed beside (`tiles`). */
typedef struct plumb_stored_units {
    int form;             /* plumb_stored_form */
    bool tiles;           /* an FP8 matrix as values */
    int64_t stored, codes, scales; /* scales is 0 where none are inside */
    int64_t count;        /* units of the tensor */
    int64_t columns;      /* of an FP8 matrix */
} plumb_stored_units;

/* Of a released tensor that is stored in `form`; where codes and scales share units, of either. */
plumb_stored_units plumb__stored_units(const plumb_tensor *tensor, int form);
/* Where in its file the tensor keeps this byte of the released payload: the element, or the block that it
 * is in. */
int64_t plumb__stored_offset(const plumb_tensor *tensor, int64_t byte);

/* n units from the first one on.  tiles: the FP8 matrix's scales from row `first` rounded down to 32
 * on (NULL elsewhere).  The index of the first element, counted from the first unit's, whose value the
 * form cannot hold, or -1. */
int64_t plumb__stored_encode(const plumb_stored_units *units, int64_t first, int64_t n,
                             const uint8_t *codes, const uint8_t *scales, const uint8_t *tiles,
                             uint8_t *stored);
/* The way back.  codes or scales may be NULL: not wanted.  The index of the first element that no
 * released code stands for, or -1. */
int64_t plumb__stored_decode(const plumb_stored_units *units, int64_t first, int64_t n,
                             const uint8_t *stored, const uint8_t *tiles, uint8_t *codes,
                             uint8_t *scales);

/* Bytes of the tiles' scales for rows [first, first + n), and where they begin in the scale tensor. */
int64_t plumb__stored_tiles_begin(const plumb_stored_units *units, int64_t first);
int64_t plumb__stored_tiles_bytes(const plumb_stored_units *units, int64_t first, int64_t n);

#endif
