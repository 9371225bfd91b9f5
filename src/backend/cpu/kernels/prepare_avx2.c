/* The small weights of FP8 matrices: found once, when a matrix is loaded. */
#include "backend/cpu/kernels/quantized_avx2.h"

/* Bit i: codes[i] is below 2^-3 in magnitude (exponent field below 4) and not zero. */
static uint32_t small_codes(__m256i codes) {
    __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi8(0x7F));
    __m256i is_low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), magnitude);
    __m256i is_zero = _mm256_cmpeq_epi8(magnitude, _mm256_setzero_si256());
    return (uint32_t)_mm256_movemask_epi8(_mm256_andnot_si256(is_zero, is_low));
}

int64_t plumb__find_small_avx2(const plumb_matrix *w, int64_t n, int64_t rows,
                               plumb_small_weight *entry) {
    int64_t found = 0;
    for (int64_t r = 0; r < rows; r++) {
        const uint8_t *codes = (const uint8_t *)w->codes + (n + r) * w->k;
        for (int64_t k = 0; k < w->k; k += PLUMB_BLOCK)
            for (uint32_t bits = small_codes(plumb__load_avx2(codes + k)); bits; bits &= bits - 1) {
                int64_t at = k + __builtin_ctz(bits);
                entry[found++] = (plumb_small_weight){
                    (uint32_t)at, (int16_t)r, (int16_t)plumb__e4m3_times512(codes[at])};
            }
    }
    return found;
}

static int64_t count_small(const plumb_matrix *w) {
    const uint8_t *codes = w->codes;
    int64_t count = 0;
    for (int64_t i = 0; i < w->n * w->k; i += PLUMB_BLOCK)
        count += __builtin_popcount(small_codes(plumb__load_avx2(codes + i)));
    return count;
}

static int64_t panels_of(const plumb_matrix *w) {
    return (w->n + PLUMB_LANE_ROWS - 1) / PLUMB_LANE_ROWS;
}

plumb_small_weights plumb__small_weights_avx2(const plumb_matrix *w) {
    const int64_t *first = w->prepared;
    return (plumb_small_weights){
        first, (const plumb_small_weight *)(const void *)(first + panels_of(w) + 1)};
}

int64_t plumb__prepared_bytes_avx2(const plumb_matrix *w) {
    enum { USUAL = 64 }; /* more than one small weight in so many: not worth their memory */
    if (w->type != PLUMB_MATRIX_FP8 || w->k % PLUMB_BLOCK != 0) return 0;
    int64_t small = count_small(w);
    if (small > w->n * w->k / USUAL) return 0;
    return (panels_of(w) + 1) * (int64_t)sizeof(int64_t) +
           small * (int64_t)sizeof(plumb_small_weight);
}

void plumb__prepare_avx2(const plumb_matrix *w, void *memory) {
    int64_t panels = panels_of(w), *first = memory;
    plumb_small_weight *entry = (plumb_small_weight *)(void *)(first + panels + 1);
    first[0] = 0;
    for (int64_t p = 0; p < panels; p++) {
        int64_t n = p * PLUMB_LANE_ROWS;
        int64_t rows = w->n - n < PLUMB_LANE_ROWS ? w->n - n : PLUMB_LANE_ROWS;
        first[p + 1] = first[p] + plumb__find_small_avx2(w, n, rows, entry + first[p]);
    }
}
