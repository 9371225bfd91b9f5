/* How released payloads lie in a converted file, and back: pure functions on memory, every one exact
 * and reversible (docs/convert.md).
 *
 *   FP8 matrix   e4m3 codes [o][i] with ue8m0 scales [ceil(o/32)][ceil(i/32)] -> the values
 *                code * scale as float32 or bfloat16; with the scales the codes come back
 *   F32 matrix   as bfloat16 where the low 16 bits of every value are zero
 *   FP4 matrix   e2m1 pairs [n][k/2] (element 2j in the low nibble of byte j) with ue8m0 scales
 *                [n][k/32] -> ggml's MXFP4: per 32 elements one scale byte, then 16 bytes whose
 *                byte j holds element j in the low and element j + 16 in the high nibble
 *   table        codes [rows][dim] and scales [rows][dim/32] -> rows of codes, then scales */
#ifndef PLUMB_FORMAT_STORED_FORM_H
#define PLUMB_FORMAT_STORED_FORM_H

#include <stdbool.h>
#include <stdint.h>

/* A tensor's form in its file.  Where codes and scales share a place (blocks, rows), the tensor's
 * dtype tells which of the two it is. */
typedef enum plumb_stored_form {
    PLUMB_STORED_RELEASED, /* the released bytes */
    PLUMB_STORED_F32,      /* FP8 codes as float32 values */
    PLUMB_STORED_BF16,     /* FP8 codes, or float32 numbers, as bfloat16 values */
    PLUMB_STORED_MXFP4,    /* FP4 codes or their scales, inside MXFP4 blocks */
    PLUMB_STORED_ROWS      /* a table's codes or scales, inside its rows */
} plumb_stored_form;

/* "released", "f32", "bf16", "mxfp4", "rows". */
const char *plumb__stored_form_name(int form);

enum { PLUMB_MXFP4_ELEMENTS = 32, PLUMB_MXFP4_BYTES = 17 };

/* Rows [row, row + rows) of an FP8 matrix as float32: codes[rows][columns] begins at that row,
 * scales[][tiles] at the matrix's first.  The index of the first value that float32 cannot hold
 * exactly (NaN codes or scales, overflow), counted from values[0], or -1. */
int64_t plumb__fp8_widen(const uint8_t *codes, const uint8_t *scales, int64_t row, int64_t rows,
                         int64_t columns, float *values);
/* The codes that widen to these values; the index of the first value that is no code times its
 * scale, or -1.  values may be unaligned. */
int64_t plumb__fp8_narrow(const float *values, const uint8_t *scales, int64_t row, int64_t rows,
                          int64_t columns, uint8_t *codes);

/* The index of the first of n float32 numbers that bfloat16 cannot hold bit for bit, or -1. */
int64_t plumb__f32_unfit_for_bf16(const float *values, int64_t n);
void plumb__f32_to_bf16(const float *values, int64_t n, uint16_t *narrow); /* all fit */
void plumb__bf16_to_f32(const uint16_t *narrow, int64_t n, float *values);

/* n blocks: codes [n][16], scales [n] <-> blocks [n][17].  Unpacking works in place as well: codes
 * may be `blocks` itself, when scales is other memory.  Either of codes and scales may be NULL when
 * unpacking. */
void plumb__mxfp4_pack(const uint8_t *codes, const uint8_t *scales, int64_t n, uint8_t *blocks);
void plumb__mxfp4_unpack(const uint8_t *blocks, int64_t n, uint8_t *codes, uint8_t *scales);

/* codes [rows][code_bytes], scales [rows][scale_bytes] <-> joined [rows][code_bytes + scale_bytes].
 * Either may be NULL when splitting. */
void plumb__rows_join(const uint8_t *codes, int64_t code_bytes, const uint8_t *scales,
                      int64_t scale_bytes, int64_t rows, uint8_t *joined);
void plumb__rows_split(const uint8_t *joined, int64_t rows, int64_t code_bytes, uint8_t *codes,
                       int64_t scale_bytes, uint8_t *scales);

#endif
