/* Lane products and weighted sums over a tile with AVX2 (tiles.h).
 *
 * Sixteen registers hold eight sums and what feeds them, and eight independent sums are what hides
 * the latency of a fused multiply-add.  So lane products are taken eight at once, two rows by four
 * columns, a quarter of their lanes at a time; the last steps of their trees are taken together,
 * on a transposed square.  Beyond the last row or column the last one stands in: it computes the
 * same again.  Compiled for AVX-512 too. */
#include "backend/cpu/kernels/tiles.h"

#include "arith/lanes.h"

#include <immintrin.h>

enum { ROWS = 2, COLUMNS = 4, PRODUCTS = ROWS * COLUMNS };
enum { QUARTER = 8, QUARTERS = 4 }; /* lanes of a vector, vectors of the lanes */
/* Rows up to SHORT stay in the first cache while their quarters are read in turn; longer ones are read
 * a CHUNK at a time, close to the order in which they lie in memory. */
enum { SHORT = 32 * PLUMB_LANES, CHUNK = 4 * PLUMB_LANES };

/* A load that is not folded into each of its uses, as gcc would: loads are what is scarce. */
static inline __m256 load_once(const float *x) {
    return _mm256_castsi256_ps(_mm256_lddqu_si256((const __m256i *)(const void *)x));
}

/* Elements [begin, end) onto lanes 8q .. 8q+7 of the products: lane[row * COLUMNS + column]. */
static inline void add_quarter(const float *const x[ROWS], const float *const y[COLUMNS], int q,
                               int64_t begin, int64_t end, __m256 lane[PRODUCTS]) {
    __m256 a[PRODUCTS];
    for (int i = 0; i < PRODUCTS; i++) a[i] = begin == 0 ? _mm256_setzero_ps() : lane[i];
    for (int64_t k = begin + q * QUARTER; k < end; k += PLUMB_LANES) {
        __m256 column[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) column[c] = load_once(y[c] + k);
        for (int r = 0; r < ROWS; r++) {
            __m256 row = _mm256_loadu_ps(x[r] + k);
            for (int c = 0; c < COLUMNS; c++)
                a[r * COLUMNS + c] = _mm256_fmadd_ps(row, column[c], a[r * COLUMNS + c]);
        }
    }
    for (int i = 0; i < PRODUCTS; i++) lane[i] = a[i];
}

/* Lane i + 4 onto lane i of two vectors at once: a's four sums, then b's. */
static inline __m256 fold_four(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/* In each half: lane i + 2 onto lane i of a, then of b. */
static inline __m256 fold_two(__m256 a, __m256 b) {
    __m256d a_pairs = _mm256_castps_pd(a), b_pairs = _mm256_castps_pd(b);
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a_pairs, b_pairs)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(a_pairs, b_pairs)));
}

/* In each half: lane i + 1 onto lane i for the two pairs of a, then of b. */
static inline __m256 fold_one(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)),
                         _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
}

/* The steps +4, +2, +1 of eight trees: element i of the result is product i. */
static inline __m256 join_eight(const __m256 eight[PRODUCTS]) {
    __m256 four[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) four[c] = fold_four(eight[c], eight[COLUMNS + c]);
    return fold_one(fold_two(four[0], four[1]), fold_two(four[2], four[3]));
}

static inline __m256 eight_products(const float *const x[ROWS], const float *const y[COLUMNS],
                                    int64_t n) {
    __m256 quarter[QUARTERS][PRODUCTS], eight[PRODUCTS];
    int64_t chunk = n <= SHORT ? n : CHUNK;
    for (int64_t k = 0; k < n; k += chunk)
        for (int q = 0; q < QUARTERS; q++)
            add_quarter(x, y, q, k, k + chunk < n ? k + chunk : n, quarter[q]);
    for (int i = 0; i < PRODUCTS; i++)
        eight[i] = _mm256_add_ps(_mm256_add_ps(quarter[0][i], quarter[2][i]),
                                 _mm256_add_ps(quarter[1][i], quarter[3][i]));
    return join_eight(eight);
}

static inline __m256 join_quarters(const __m256 lane[QUARTERS]) {
    return _mm256_add_ps(_mm256_add_ps(lane[0], lane[2]), _mm256_add_ps(lane[1], lane[3]));
}

/* A single row, as in decoding: the columns come from memory and are read once, in order. */
static void products_of_one_row(const float *x, const float *y, int64_t columns, int64_t n,
                                float *out) {
    enum { BESIDE = 3 }; /* columns; with four quarters each, twelve sums */
    for (int64_t c = 0; c < columns; c += BESIDE) {
        const float *column[BESIDE];
        __m256 lane[BESIDE][QUARTERS], eight[PRODUCTS];
        for (int i = 0; i < BESIDE; i++) {
            column[i] = y + (c + i < columns ? c + i : columns - 1) * n;
            for (int q = 0; q < QUARTERS; q++) lane[i][q] = _mm256_setzero_ps();
        }
        for (int64_t k = 0; k < n; k += PLUMB_LANES)
            for (int q = 0; q < QUARTERS; q++) {
                __m256 row = _mm256_loadu_ps(x + k + q * QUARTER);
                for (int i = 0; i < BESIDE; i++)
                    lane[i][q] = _mm256_fmadd_ps(
                        row, _mm256_loadu_ps(column[i] + k + q * QUARTER), lane[i][q]);
            }
        for (int i = 0; i < PRODUCTS; i++) eight[i] = join_quarters(lane[i % BESIDE]);
        float value[PRODUCTS];
        _mm256_storeu_ps(value, join_eight(eight));
        for (int i = 0; i < BESIDE && c + i < columns; i++) out[c + i] = value[i];
    }
}

void PLUMB_KERNEL(lane_products)(const float *x, int64_t rows, const float *y, int64_t columns,
                               int64_t n, float *out, int64_t out_stride) {
    if (rows == 1) {
        products_of_one_row(x, y, columns, n, out);
        return;
    }
    for (int64_t c = 0; c < columns; c += COLUMNS) {
        int64_t wide = columns - c < COLUMNS ? columns - c : COLUMNS;
        const float *column[COLUMNS];
        for (int i = 0; i < COLUMNS; i++) column[i] = y + (c + (i < wide ? i : wide - 1)) * n;
        for (int64_t r = 0; r < rows; r += ROWS) {
            int64_t next = r + 1 < rows ? r + 1 : r;
            const float *row[ROWS] = {x + r * n, x + next * n};
            __m256 product = eight_products(row, column, n);
            float *to = out + r * out_stride + c, *to_next = out + next * out_stride + c;
            if (wide == COLUMNS) {
                _mm_storeu_ps(to, _mm256_castps256_ps128(product));
                _mm_storeu_ps(to_next, _mm256_extractf128_ps(product, 1));
                continue;
            }
            float value[PRODUCTS];
            _mm256_storeu_ps(value, product);
            for (int i = 0; i < wide; i++) {
                to[i] = value[i];
                to_next[i] = value[COLUMNS + i];
            }
        }
    }
}

enum { HEADS = 4, HALF_STRIP = PLUMB_STRIP / 2 };

/* Half a strip of four sums, over all values. */
static inline void add_to_half(const float *const p[HEADS], const float *value, int64_t n,
                               float *const sum[HEADS]) {
    __m256 a[HEADS][2];
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < 2; i++) a[h][i] = _mm256_loadu_ps(sum[h] + 8 * i);
    for (int64_t j = 0; j < n; j++) {
        __m256 low = _mm256_loadu_ps(value + j * PLUMB_STRIP);
        __m256 high = _mm256_loadu_ps(value + j * PLUMB_STRIP + 8);
        for (int h = 0; h < HEADS; h++) {
            __m256 weight = _mm256_broadcast_ss(p[h] + j);
            a[h][0] = _mm256_fmadd_ps(weight, low, a[h][0]);
            a[h][1] = _mm256_fmadd_ps(weight, high, a[h][1]);
        }
    }
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < 2; i++) _mm256_storeu_ps(sum[h] + 8 * i, a[h][i]);
}

void PLUMB_KERNEL(add_weighted)(const float *p, int64_t p_stride, int64_t rows, const float *value,
                              int64_t n, float *sum) {
    for (int64_t r = 0; r < rows; r += HEADS) {
        const float *weight[HEADS];
        float *low[HEADS], *high[HEADS];
        for (int h = 0; h < HEADS; h++) {
            int64_t row = r + h < rows ? r + h : rows - 1;
            weight[h] = p + row * p_stride;
            low[h] = sum + row * PLUMB_STRIP;
            high[h] = low[h] + HALF_STRIP;
        }
        add_to_half(weight, value, n, low);
        add_to_half(weight, value + HALF_STRIP, n, high);
    }
}
