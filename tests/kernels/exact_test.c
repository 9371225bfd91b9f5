/* Quantised linear layers against integers: the exact block products of docs/arithmetic.md section
 * 3, written here a second time with nothing but integer arithmetic.
 *
 * The quantiser, the formats, the block sums, the segments, the fused additions and the final
 * rounding are all this file's own; only memory and random numbers are shared. */
#include "arith/float_env.h"
#include "backend/cpu/kernels/kernels.h"
#include "kernels/arena.h"
#include "kernels/notes.h"

#include <stdlib.h>

#include "t.h"

__extension__ typedef unsigned __int128 wide;

/* sign * magnitude * 2^exponent, exactly. */
typedef struct exact {
    bool negative;
    wide magnitude;
    int exponent;
} exact;

static int bit_length(wide x) {
    int n = 0;
    for (; x; x >>= 1) n++;
    return n;
}

/* Rounds to `precision` bits, to nearest, ties to even, as the bits of a binary32; magnitudes below
 * 2^-126 become zero of their sign, and too large ones infinite. */
static uint32_t round_to(exact x, int precision) {
    uint32_t sign = x.negative ? 0x80000000u : 0;
    int length = bit_length(x.magnitude), drop = length - precision;
    if (length == 0) return sign;
    if (drop > 0) {
        wide rest = x.magnitude & (((wide)1 << drop) - 1);
        wide half = (wide)1 << (drop - 1);
        x.magnitude >>= drop;
        x.exponent += drop;
        if (rest > half || (rest == half && (x.magnitude & 1))) x.magnitude++;
    }
    length = bit_length(x.magnitude);
    int top = x.exponent + length - 1; /* exponent of the leading bit */
    if (top < -126) return sign;
    if (top > 127) return sign | 0x7F800000u;
    uint64_t significand = length <= 24 ? (uint64_t)x.magnitude << (24 - length)
                                        : (uint64_t)(x.magnitude >> (length - 24));
    return sign | (uint32_t)(top + 127) << 23 | (uint32_t)(significand & 0x7FFFFF);
}

static exact from_bits(uint32_t bits) {
    uint32_t biased = bits >> 23 & 255;
    exact x = {.negative = bits >> 31};
    if (biased == 0) return x; /* a subnormal counts as zero */
    x.magnitude = (bits & 0x7FFFFF) | 0x800000;
    x.exponent = (int)biased - 150;
    return x;
}

/* a + b.  Far below the other, the smaller is a bit that only breaks ties. */
static exact add(exact a, exact b) {
    if (a.magnitude == 0) return b;
    if (b.magnitude == 0) return a;
    if (a.exponent < b.exponent) {
        exact swap = a;
        a = b;
        b = swap;
    }
    int up = a.exponent - b.exponent, room = 126 - bit_length(a.magnitude);
    if (up > room) {
        int down = up - room; /* b's bits that a cannot meet */
        bool rest = down >= 126 || (b.magnitude & (((wide)1 << down) - 1)) != 0;
        b.magnitude = down >= 126 ? 0 : b.magnitude >> down;
        b.magnitude = b.magnitude << 1 | rest;
        b.exponent += down - 1;
        up = room + 1;
    }
    a.magnitude <<= up;
    a.exponent = b.exponent;
    if (a.negative == b.negative) {
        a.magnitude += b.magnitude;
        return a;
    }
    if (b.magnitude > a.magnitude)
        return (exact){b.negative, b.magnitude - a.magnitude, a.exponent};
    a.magnitude -= b.magnitude;
    if (a.magnitude == 0) a.negative = false; /* to nearest, x - x is +0 */
    return a;
}

/* ---- Formats, from their tables
 * ------------------------------------------------------------------- */

/* Value times 512, from the definition: subnormals step by 2^-9, then eight steps to an octave. */
static int64_t e4m3_times512(int code) {
    int exponent = code >> 3 & 15;
    int64_t magnitude = code & 7;
    if (exponent > 0) magnitude = (magnitude + 8) * ((int64_t)1 << (exponent - 1));
    return code & 128 ? -magnitude : magnitude;
}

static int64_t e2m1_times2(int code) {
    static const int64_t values[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    return code & 8 ? -values[code & 7] : values[code & 7];
}

/* Nearest e4m3 of value * 2^-exponent, ties to the even code, by looking at every code. */
static int64_t quantise(uint32_t bits, int exponent) {
    exact x = from_bits(bits);
    /* in units of 2^-40, which no tie of interest is finer than */
    int shift = x.exponent - exponent + 40;
    if (x.magnitude == 0 || shift < -24) return 0;
    int64_t units = shift >= 0 ? (int64_t)x.magnitude << (shift < 38 ? shift : 38)
                               : (int64_t)(x.magnitude >> -shift);
    if (shift < 0 && (x.magnitude & (((wide)1 << -shift) - 1))) units |= 1;
    int best = 0;
    int64_t least = INT64_MAX;
    for (int code = 0; code < 127; code++) {
        int64_t distance = llabs(e4m3_times512(code) * ((int64_t)1 << 31) - units);
        if (distance < least || (distance == least && code % 2 == 0)) {
            least = distance;
            best = code;
        }
    }
    return x.negative ? -e4m3_times512(best) : e4m3_times512(best);
}

/* Smallest power of two that is at least amax * fl32(1/448), amax at least 1e-4. */
static int scale_exponent(const plumb_act *x) {
    uint32_t most = 0x38D1B717u; /* 1e-4 */
    for (int i = 0; i < 32; i++) {
        uint32_t magnitude = (uint32_t)(x[i] & 0x7FFF) << 16;
        most = magnitude > most ? magnitude : most;
    }
    exact a = from_bits(most), b = from_bits(0x3B124925u);
    uint32_t product =
        round_to((exact){false, a.magnitude * b.magnitude, a.exponent + b.exponent}, 24);
    int exponent = (int)(product >> 23) - 127;
    return product & 0x7FFFFF ? exponent + 1 : exponent;
}

/* ---- One output
 * ------------------------------------------------------------------------------------- */

static int64_t weight_integer(const plumb_matrix *w, int64_t n, int64_t i) {
    const uint8_t *codes = w->codes;
    if (w->type == PLUMB_MATRIX_FP8) return e4m3_times512(codes[n * w->k + i]);
    uint8_t pair = codes[(n * w->k + i) / 2];
    return e2m1_times2(i % 2 ? pair >> 4 : pair & 15);
}

enum { MOST_BLOCKS = 100, MOST_ROWS = 6 };

/* An activation row, quantised: times 512, and the exponents of its scales. */
typedef struct quantised {
    int64_t value[32 * MOST_BLOCKS];
    int exponent[MOST_BLOCKS];
} quantised;

static quantised quantise_row(const plumb_act *x, int64_t k) {
    quantised q = {0};
    for (int64_t b = 0; b < k / 32; b++) q.exponent[b] = scale_exponent(x + 32 * b);
    for (int64_t i = 0; i < k; i++)
        q.value[i] = quantise((uint32_t)x[i] << 16, q.exponent[i / 32]);
    return q;
}

/* bf16 bits of output n; *finite is cleared where the contract says error. */
static uint16_t expected_output(const quantised *x, const plumb_matrix *w, int64_t n,
                                bool *finite) {
    int64_t blocks = w->k / 32;
    bool fp8 = w->type == PLUMB_MATRIX_FP8;
    exact total = {0}, segment = {0};
    for (int64_t b = 0; b < blocks; b++) {
        int ea = x->exponent[b];
        int ew = (int)w->scales[(fp8 ? n / 32 : n) * blocks + b] - 127;
        int64_t sum = 0; /* times 2^18 or 2^10 */
        for (int64_t i = 32 * b; i < 32 * (b + 1); i++)
            sum += x->value[i] * weight_integer(w, n, i);
        exact product = {sum < 0, (wide)llabs(sum), fp8 ? -18 : -10};
        uint32_t d = round_to(product, 24);
        product = from_bits(d);
        product.exponent += ea + ew;
        if (ea + ew < -126) product.magnitude = 0;
        if (ea + ew > 127) *finite = false;
        if (b % 32 == 0) segment = (exact){0};
        uint32_t s = round_to(add(segment, product), 24);
        if ((s & 0x7F800000u) == 0x7F800000u) *finite = false;
        if (!*finite) return 0;
        segment = from_bits(s);
        if (b % 32 == 31 || b == blocks - 1) {
            uint32_t t = b < 32 ? s : round_to(add(total, segment), 24);
            if ((t & 0x7F800000u) == 0x7F800000u) *finite = false;
            total = from_bits(t);
        }
    }
    return (uint16_t)(round_to(total, 8) >> 16);
}

static plumb_matrix random_matrix(plumb_matrix_type type, int64_t n, int64_t k) {
    bool fp8 = type == PLUMB_MATRIX_FP8;
    int64_t bytes = fp8 ? n * k : n * k / 2, scales = (fp8 ? (n + 31) / 32 : n) * (k / 32);
    uint8_t *codes = arena_block(bytes, 1), *scale = arena_block(scales, 1);
    for (int64_t i = 0; i < bytes; i++) {
        codes[i] = (uint8_t)arena_random();
        if (fp8 && (codes[i] & 127) == 127) codes[i] = 0x7E;
    }
    int spread = (int)arena_between(0, 60);
    for (int64_t i = 0; i < scales; i++)
        scale[i] = (uint8_t)arena_between(127 - spread, 127 + spread);
    if (arena_random() % 4 == 0) scale[0] = 0;
    return (plumb_matrix){.type = type, .n = n, .k = k, .codes = codes, .scales = scale};
}

static int64_t outputs_compared;

/* Outputs of one row; returns whether the contract has a result for all of them. */
static bool check_row(const plumb_cpu_kernels *kernels, const plumb_act *x, const plumb_matrix *w,
                      const plumb_act *y) {
    quantised q = quantise_row(x, w->k);
    bool all_finite = true;
    for (int64_t i = 0; i < w->n; i++) {
        bool finite = true;
        uint16_t expected = expected_output(&q, w, i, &finite);
        all_finite &= finite;
        if (!finite) continue;
        outputs_compared++;
        T_CHECK(y[i] == expected || ((y[i] | expected) & 0x7FFF) == 0,
                "%s type %d, k %" PRId64 ", output %" PRId64 ": %04x, expected %04x",
                kernels->level, (int)w->type, w->k, i, y[i], expected);
    }
    return all_finite;
}

/* One row, a few, or as many as kernels treat in another way. */
static void check_matrix(const plumb_cpu_kernels *kernels, plumb_matrix_type type) {
    int64_t k = 32 * (arena_random() % 4 ? arena_between(1, 40) : arena_between(60, MOST_BLOCKS));
    int64_t n = arena_between(1, 40), n_rows = arena_random() % 2 ? arena_between(2, MOST_ROWS) : 1;
    arena_values family = arena_random() % 2 ? ARENA_PLAIN : ARENA_EDGES;
    plumb_act *x = arena_act_block(n_rows * k, family), *y = arena_block(n_rows * n, sizeof *y);
    plumb_matrix w = random_matrix(type, n, k);
    if (arena_random() % 2) w.prepared = prepared_notes(kernels, &w);
    const void *rows[MOST_ROWS];
    uint64_t modes;
    plumb__float_env_enter(&modes);
    bool finite = true, all_finite = true;
    for (int64_t r = 0; r < n_rows; r++) {
        void *row = arena_scratch(kernels->quantized_row_bytes(k));
        finite &= kernels->quantize_row(x + r * k, k, row);
        rows[r] = row;
    }
    void *scratch = arena_scratch(kernels->linear_quantized_scratch(k, n_rows));
    finite &= kernels->linear_quantized(rows, n_rows, &w, 0, n, y, n, scratch);
    plumb__float_env_leave(modes);
    for (int64_t r = 0; r < n_rows; r++) all_finite &= check_row(kernels, x + r * k, &w, y + r * n);
    T_CHECK(finite == all_finite, "%s: finite %d, expected %d", kernels->level, finite, all_finite);
    T_CHECK(arena_free_all(), "%s wrote outside", kernels->level);
}

enum { K = 32, MOST_CODES = 256, FIVE = 5 };
enum { FULL, FINE, ACTIVATIONS };

/* Weight row n is code n throughout, or a zero and then code n. */
static plumb_matrix every_code(plumb_matrix_type type, bool zero_first) {
    bool is_fp8 = type == PLUMB_MATRIX_FP8;
    int64_t n = is_fp8 ? MOST_CODES : 16, bytes = is_fp8 ? K : K / 2;
    uint8_t *codes = arena_block(n * bytes, 1), *scales = arena_block(n, 1);
    memset(scales, 127, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t code = is_fp8 && (i & 127) == 127 ? i - 1 : i;
        memset(codes + i * bytes, (int)(is_fp8 ? code : 17 * code), (size_t)bytes);
        if (zero_first) codes[i * bytes] &= is_fp8 ? 0 : 0xF0;
    }
    return (plumb_matrix){.type = type, .n = n, .k = K, .codes = codes, .scales = scales};
}

/* One block of 32 against every weight code.  FULL activations, all at the end of their range, make the
 * largest sums there are.  FINE ones, one there and the others among the smallest codes, need every bit;
 * where weights begin with a zero the result shows them.  One row in place, then five that share weights
 * unpacked once: each of them, or none, is the fine one. */
static void check_every_code(const plumb_cpu_kernels *kernels, plumb_matrix_type type,
                             bool zero_first) {
    plumb_matrix w = every_code(type, zero_first);
    plumb_act x[ACTIVATIONS][K], y[FIVE * MOST_CODES];
    void *quantized[ACTIVATIONS];
    quantised q[ACTIVATIONS];
    bool finite = true;
    uint64_t modes;
    plumb__float_env_enter(&modes);
    for (int a = 0; a < ACTIVATIONS; a++) {
        for (int i = 0; i < K; i++)
            x[a][i] = plumb__store(a == FINE && i > 0 ? (float)i * 0x1p-9f : 448.0f);
        q[a] = quantise_row(x[a], K);
        quantized[a] = arena_scratch(kernels->quantized_row_bytes(K));
        finite &= kernels->quantize_row(x[a], K, quantized[a]);
    }
    void *scratch = arena_scratch(kernels->linear_quantized_scratch(K, FIVE));
    for (int count = 1; count <= FIVE; count += FIVE - 1)
        for (int fine = 0; fine <= count; fine++) {
            const void *rows[FIVE];
            for (int r = 0; r < count; r++) rows[r] = quantized[r == fine ? FINE : FULL];
            finite &= kernels->linear_quantized(rows, count, &w, 0, w.n, y, w.n, scratch);
            for (int64_t i = 0; i < count * w.n; i++) {
                int64_t r = i / w.n, n = i % w.n;
                uint16_t expected = expected_output(&q[r == fine ? FINE : FULL], &w, n, &finite);
                T_CHECK(y[i] == expected || ((y[i] | expected) & 0x7FFF) == 0,
                        "%s, code %" PRId64 ", row %" PRId64 " of %d, %d fine: %04x, expected %04x",
                        kernels->level, n, r, count, fine, y[i], expected);
            }
        }
    plumb__float_env_leave(modes);
    T_CHECK(finite, "%s", kernels->level);
    T_CHECK(arena_free_all(), "%s wrote outside", kernels->level);
}

static void check_type(plumb_matrix_type type) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels);
    for (int l = 0; l < n_levels; l++) {
        arena_seed(7);
        outputs_compared = 0;
        for (int round = 0; round < 40; round++) check_matrix(levels[l], type);
        T_CHECK(outputs_compared > 400, "only %" PRId64 " outputs were finite", outputs_compared);
        check_every_code(levels[l], type, false);
        check_every_code(levels[l], type, true);
    }
}

static void fp8(void) {
    check_type(PLUMB_MATRIX_FP8);
}
static void fp4(void) {
    check_type(PLUMB_MATRIX_FP4);
}

T_MAIN({"fp8", fp8}, {"fp4", fp4})
