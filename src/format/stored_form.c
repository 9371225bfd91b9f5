/* Bytes and nibbles moved between the released and the stored form.  On little-endian hosts, as
 * everywhere in format.  FP8 matrices are in stored_fp8.c. */
#include "format/stored_form.h"

#include <string.h>

enum {
    CODES = PLUMB_MXFP4_BYTES - 1, /* of a block, in bytes */
    HALF = CODES / 2,
    BATCH = 16 /* blocks: compilers vectorise loops over a fixed number of them */
};

const char *plumb__stored_form_name(int form) {
    static const char *const names[] = {
        [PLUMB_STORED_RELEASED] = "released", [PLUMB_STORED_F32] = "f32",
        [PLUMB_STORED_BF16] = "bf16", [PLUMB_STORED_MXFP4] = "mxfp4", [PLUMB_STORED_ROWS] = "rows"};
    return names[form];
}

/* ---- float32 as bfloat16 --------------------------------------------------------------------- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

int64_t plumb__f32_unfit_for_bf16(const float *values, int64_t n) {
    enum { BLOCK = 256 }; /* a loop that may end early does not vectorise */
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
        uint32_t lost = 0;
        for (int64_t i = begin; i < end; i++) lost |= bits_of(values[i]);
        if (!(lost & 0xFFFFu)) continue;
        for (int64_t i = begin; i < end; i++)
            if (bits_of(values[i]) & 0xFFFFu) return i;
    }
    return -1;
}

void plumb__f32_to_bf16(const float *values, int64_t n, uint16_t *narrow) {
    for (int64_t i = 0; i < n; i++) narrow[i] = (uint16_t)(bits_of(values[i]) >> 16);
}

void plumb__bf16_to_f32(const uint16_t *narrow, int64_t n, float *values) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)narrow[i] << 16;
        memcpy(values + i, &bits, sizeof bits);
    }
}

/* ---- MXFP4 blocks ---------------------------------------------------------------------------- */

/* Released bytes j and j + 8 hold elements 2j, 2j + 1 and 2j + 16, 2j + 17: just those of the
 * block's bytes 2j and 2j + 1.  As a 16-bit number, nibble by nibble from the low end, they are
 *     released  2j, 2j + 1, 2j + 16, 2j + 17      block  2j, 2j + 16, 2j + 1, 2j + 17
 * so that one form is the other with its two inner nibbles swapped. */
static uint16_t swap_inner_nibbles(unsigned pair) {
    unsigned differ = (pair ^ pair >> 4) & 0x00F0;
    return (uint16_t)(pair ^ differ ^ differ << 4);
}

static void join_halves(const uint8_t *restrict low, const uint8_t *restrict high,
                        uint16_t *restrict pairs) {
    for (int i = 0; i < BATCH * HALF; i++)
        pairs[i] = swap_inner_nibbles(low[i] | (unsigned)high[i] << 8);
}

static void split_halves(const uint16_t *restrict pairs, uint8_t *restrict low,
                         uint8_t *restrict high) {
    for (int i = 0; i < BATCH * HALF; i++) {
        uint16_t pair = swap_inner_nibbles(pairs[i]);
        low[i] = (uint8_t)pair;
        high[i] = (uint8_t)(pair >> 8);
    }
}

/* n <= BATCH blocks. */
static void pack_batch(const uint8_t *codes, const uint8_t *scales, int64_t n, uint8_t *blocks) {
    uint8_t low[BATCH * HALF], high[BATCH * HALF];
    uint16_t pairs[BATCH * HALF];
    if (n < BATCH) { /* the loop below goes over all of them */
        memset(low, 0, sizeof low);
        memset(high, 0, sizeof high);
    }
    for (int64_t b = 0; b < n; b++) {
        memcpy(low + b * HALF, codes + b * CODES, HALF);
        memcpy(high + b * HALF, codes + b * CODES + HALF, HALF);
    }
    join_halves(low, high, pairs);
    for (int64_t b = 0; b < n; b++) {
        blocks[b * PLUMB_MXFP4_BYTES] = scales[b];
        memcpy(blocks + b * PLUMB_MXFP4_BYTES + 1, pairs + b * HALF, CODES);
    }
}

/* All of the batch is read before its codes are written: in place they end where the next begins
 * at the latest. */
static void unpack_batch(const uint8_t *blocks, int64_t n, uint8_t *codes, uint8_t *scales) {
    uint8_t low[BATCH * HALF], high[BATCH * HALF];
    uint16_t pairs[BATCH * HALF];
    if (n < BATCH) memset(pairs, 0, sizeof pairs);
    for (int64_t b = 0; b < n; b++)
        memcpy(pairs + b * HALF, blocks + b * PLUMB_MXFP4_BYTES + 1, CODES);
    if (scales)
        for (int64_t b = 0; b < n; b++) scales[b] = blocks[b * PLUMB_MXFP4_BYTES];
    if (!codes) return;
    split_halves(pairs, low, high);
    for (int64_t b = 0; b < n; b++) {
        memcpy(codes + b * CODES, low + b * HALF, HALF);
        memcpy(codes + b * CODES + HALF, high + b * HALF, HALF);
    }
}

void plumb__mxfp4_pack(const uint8_t *codes, const uint8_t *scales, int64_t n, uint8_t *blocks) {
    for (int64_t b = 0; b < n; b += BATCH)
        pack_batch(codes + b * CODES, scales + b, n - b < BATCH ? n - b : BATCH,
                   blocks + b * PLUMB_MXFP4_BYTES);
}

void plumb__mxfp4_unpack(const uint8_t *blocks, int64_t n, uint8_t *codes, uint8_t *scales) {
    for (int64_t b = 0; b < n; b += BATCH)
        unpack_batch(blocks + b * PLUMB_MXFP4_BYTES, n - b < BATCH ? n - b : BATCH,
                     codes ? codes + b * CODES : NULL, scales ? scales + b : NULL);
}

/* ---- Rows of a table ------------------------------------------------------------------------- */

void plumb__rows_join(const uint8_t *codes, int64_t code_bytes, const uint8_t *scales,
                      int64_t scale_bytes, int64_t rows, uint8_t *joined) {
    for (int64_t i = 0; i < rows; i++, joined += code_bytes + scale_bytes) {
        memcpy(joined, codes + i * code_bytes, (size_t)code_bytes);
        memcpy(joined + code_bytes, scales + i * scale_bytes, (size_t)scale_bytes);
    }
}

void plumb__rows_split(const uint8_t *joined, int64_t rows, int64_t code_bytes, uint8_t *codes,
                       int64_t scale_bytes, uint8_t *scales) {
    for (int64_t i = 0; i < rows; i++, joined += code_bytes + scale_bytes) {
        if (codes) memcpy(codes + i * code_bytes, joined, (size_t)code_bytes);
        if (scales) memcpy(scales + i * scale_bytes, joined + code_bytes, (size_t)scale_bytes);
    }
}
