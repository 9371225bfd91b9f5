/* From numbers to the storage formats of the release (spec: checkpoint.md sections 2 and 3).
 *
 * Everything is computed in double with exact scaling and one round-to-nearest-even per value.  The
 * scale of a group is the smallest power of two with which its largest magnitude fits the format.
 */
#ifndef PLUMB_SYNTH_STORAGE_CODES_H
#define PLUMB_SYNTH_STORAGE_CODES_H

#include <stdint.h>

enum { PLUMB_SCALE_GROUP = 32 }; /* elements along K, and rows of a tile, that share one scale */

/* Double to float to BF16, each step to nearest even, as a framework's two casts do it. */
uint16_t plumb__bf16_code(double value);
/* Codes of the magnitude clipped to the largest finite value; the sign bit is kept for zeros too.
 */
uint8_t plumb__e4m3_code(double value);
uint8_t plumb__e2m1_code(double value); /* low 4 bits */

/* Quantises values (rows, columns), rows <= 32, as one row of 32 x 32 tiles.
 * codes (rows, columns); scales (ceil(columns / 32)), biased by 127. */
void plumb__fp8_tile_row(const double *values, int64_t rows, int64_t columns, uint8_t *codes,
                         uint8_t *scales);
/* One row with a scale per 32 elements; columns a multiple of 32.  codes (columns). */
void plumb__fp8_row(const double *values, int64_t columns, uint8_t *codes, uint8_t *scales);
/* The same in E2M1, two codes a byte, the even element in the low nibble.  codes (columns / 2). */
void plumb__fp4_row(const double *values, int64_t columns, uint8_t *codes, uint8_t *scales);

#endif
