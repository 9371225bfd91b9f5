/* Products where the kernels of a level have cases of their own: against the portable level, whose sums
 * exact_test proves.
 *
 * A fault in a rare case hides in the eight bits of a result.  So activations here come in pairs that
 * cancel, on weights that are equal, and what is left of a block is what the case is about: activations
 * and weights far below the others. */
#include "arith/float_env.h"
#include "backend/cpu/kernels/kernels.h"
#include "kernels/arena.h"
#include "kernels/notes.h"

#include "t.h"

static const plumb_cpu_kernels *portable = &plumb__cpu_kernels_portable;

enum { MOST_DISTINCT = 5, MOST_ROWS = 129, MOST_PAIRS = 14 };

static void for_each_level(void (*check)(const plumb_cpu_kernels *), uint64_t seed) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels);
    uint64_t modes;
    plumb__float_env_enter(&modes);
    for (int l = 0; l < n_levels; l++) {
        arena_seed(seed);
        check(levels[l]);
    }
    plumb__float_env_leave(modes);
}

/* ---- Operands ------------------------------------------------------------------------------------ */

static plumb_matrix empty_matrix(plumb_matrix_type type, int64_t n, int64_t k) {
    bool fp8 = type == PLUMB_MATRIX_FP8;
    int64_t bytes = fp8 ? n * k : n * k / 2;
    int64_t scales = (fp8 ? (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK : n) * (k / PLUMB_BLOCK);
    plumb_matrix w = {.type = type, .n = n, .k = k, .codes = arena_block(bytes, 1),
                      .scales = arena_block(scales, 1)};
    memset((void *)(uintptr_t)w.codes, 0, (size_t)bytes);
    memset((void *)(uintptr_t)w.scales, 127, (size_t)scales);
    return w;
}

static uint8_t *scale_of(const plumb_matrix *w, int64_t n, int64_t block) {
    int64_t row = w->type == PLUMB_MATRIX_FP8 ? n / PLUMB_BLOCK : n;
    return (uint8_t *)(uintptr_t)w->scales + row * (w->k / PLUMB_BLOCK) + block;
}

static void set_code(const plumb_matrix *w, int64_t n, int64_t k, uint8_t code) {
    uint8_t *codes = (uint8_t *)(uintptr_t)w->codes;
    if (w->type == PLUMB_MATRIX_FP8) {
        codes[n * w->k + k] = code;
    } else {
        uint8_t *both = &codes[(n * w->k + k) / 2];
        *both = (uint8_t)(k % 2 ? (*both & 15) | code << 4 : (*both & 0xF0) | (code & 15));
    }
}

/* Any code of the format but NaN. */
static uint8_t any_code(void) {
    uint8_t code = (uint8_t)arena_random();
    return (code & 0x7F) == 0x7F ? 0x7E : code;
}
static uint8_t small_code(void) { return (uint8_t)(arena_random() & 0x9F); }

static plumb_act act(float x) { return plumb__store(x); }

/* The two levels' results for rows that repeat `distinct` ones, with and without notes. */
static void compare(const plumb_cpu_kernels *level, const plumb_act *x, int64_t distinct, int64_t rows,
                    plumb_matrix w, int64_t begin, int64_t end) {
    const void **a = arena_block(rows, sizeof *a), **b = arena_block(rows, sizeof *b);
    for (int64_t r = 0; r < rows; r++) {
        a[r] = r < distinct ? arena_scratch(portable->quantized_row_bytes(w.k)) : a[r % distinct];
        b[r] = r < distinct ? arena_scratch(level->quantized_row_bytes(w.k)) : b[r % distinct];
        if (r >= distinct) continue;
        portable->quantize_row(x + r * w.k, w.k, (void *)(uintptr_t)a[r]);
        level->quantize_row(x + r * w.k, w.k, (void *)(uintptr_t)b[r]);
    }
    plumb_act *expected = arena_block(rows * w.n, sizeof *expected);
    void *scratch = arena_scratch(portable->linear_quantized_scratch(w.k, rows));
    void *levels_scratch = arena_scratch(level->linear_quantized_scratch(w.k, rows));
    const void *notes = prepared_notes(level, &w);
    plumb_act *y = arena_copy(expected, rows * w.n, sizeof *y);
    bool finite =
        portable->linear_quantized(a, rows, &w, begin, end, expected, w.n, scratch);
    for (int noted = 0; noted <= (notes != NULL); noted++) {
        w.prepared = noted ? notes : NULL;
        bool also = level->linear_quantized(b, rows, &w, begin, end, y, w.n, levels_scratch);
        bool same = !finite || !memcmp(expected, y, (size_t)(rows * w.n) * sizeof *y);
        T_CHECK(finite == also && same,
                "%s %s k %" PRId64 " n %" PRId64 " [%" PRId64 ", %" PRId64 ") rows %" PRId64
                " notes %d: flag %d", level->level, w.type == PLUMB_MATRIX_FP8 ? "fp8" : "fp4", w.k,
                w.n, begin, end, rows, noted, finite);
    }
}

static void finish_round(const plumb_cpu_kernels *level) {
    T_CHECK(arena_free_all(), "%s wrote outside its memory", level->level);
}

/* ---- What is left when large products cancel --------------------------------------------------------
 */

/* The places of one block: pair j is place[2j] and place[2j + 1]. */
typedef struct block_plan {
    int place[PLUMB_BLOCK], pairs;
    bool echoes; /* repeats the pairs of the block before, negated */
} block_plan;

static void plan_block(block_plan *plan, bool echoes) {
    static const int pairs[] = {0, 1, 2, 3, 8, MOST_PAIRS};
    plan->echoes = echoes;
    if (echoes) return;
    plan->pairs = ARENA_PICK(pairs);
    for (int i = 0; i < PLUMB_BLOCK; i++) plan->place[i] = i;
    for (int i = PLUMB_BLOCK - 1; i > 0; i--) {
        int j = (int)arena_between(0, i), other = plan->place[j];
        plan->place[j] = plan->place[i];
        plan->place[i] = other;
    }
}

/* What an activation row has beside its pairs: nothing, values far below them, one such, or any. */
static float other_value(int kind, int i, int only) {
    if (kind == 0 || (kind == 2 && i != only)) return 0.0f;
    return plumb__e4m3_decode(kind == 3 ? any_code() : (uint8_t)(arena_random() & 0xAF));
}

/* A block of a row.  `loud` pairs do not cancel: only the next block takes their sum back. */
static void fill_acts(plumb_act *x, const block_plan *plan, bool loud) {
    int kind = (int)arena_between(0, 3), only = (int)arena_between(2 * plan->pairs, PLUMB_BLOCK - 1);
    for (int i = 0; i < PLUMB_BLOCK; i++)
        x[plan->place[i]] = act(other_value(kind, i, only));
    for (int j = 0; j < plan->pairs; j++) {
        plumb_act *first = x + plan->place[2 * j], *second = x + plan->place[2 * j + 1];
        if (plan->echoes) { /* the plan, and so the places, are those of the block before */
            *first = x[plan->place[2 * j] - PLUMB_BLOCK] ^ 0x8000;
            *second = x[plan->place[2 * j + 1] - PLUMB_BLOCK] ^ 0x8000;
        } else {
            *first = act(plumb__e4m3_decode(j == 0 ? 0x7E : (uint8_t)arena_between(0x78, 0x7E)));
            *second = loud ? *first : *first ^ 0x8000;
        }
    }
}

/* Weights of row n: equal on the two of a pair; beside them small ones, a single one, or any. */
static void fill_weights(const plumb_matrix *w, int64_t n, int64_t block, const block_plan *plan,
                         uint8_t pair_code[MOST_PAIRS]) {
    int kind = (int)arena_between(0, 3), only = (int)arena_between(2 * plan->pairs, PLUMB_BLOCK - 1);
    for (int j = 0; j < plan->pairs; j++) {
        if (!plan->echoes)
            pair_code[j] = arena_random() % 4 ? (uint8_t)(any_code() & 0x7F) : 0x7E;
        for (int i = 0; i < 2; i++)
            set_code(w, n, block * PLUMB_BLOCK + plan->place[2 * j + i], pair_code[j]);
    }
    for (int i = 2 * plan->pairs; i < PLUMB_BLOCK; i++) {
        uint8_t code = kind == 3 ? any_code() : kind == 2 && i != only ? 0 : small_code();
        set_code(w, n, block * PLUMB_BLOCK + plan->place[i], code);
    }
}

/* A matrix and `distinct` rows that leave little of each other. */
static plumb_matrix fill_cancelling(plumb_matrix_type type, int64_t n, int64_t k, int64_t distinct,
                                    plumb_act *x) {
    plumb_matrix w = empty_matrix(type, n, k);
    bool loud[MOST_DISTINCT];
    uint8_t(*pair_code)[MOST_PAIRS] = arena_block(n, sizeof *pair_code);
    memset(pair_code, 0, (size_t)n * sizeof *pair_code);
    for (int64_t r = 0; r < distinct; r++) loud[r] = arena_random() % 3 == 0;
    block_plan plan = {0};
    for (int64_t b = 0; b < k / PLUMB_BLOCK; b++) {
        bool echoes = b % 2 == 1;
        plan_block(&plan, echoes);
        for (int64_t r = 0; r < distinct; r++)
            fill_acts(x + r * k + b * PLUMB_BLOCK, &plan, loud[r]);
        for (int64_t i = 0; i < n; i++) {
            fill_weights(&w, i, b, &plan, pair_code[i]);
            uint8_t *scale = scale_of(&w, i, b);
            *scale = echoes ? scale[-1] : (uint8_t)arena_between(125, 129);
        }
    }
    return w;
}

static void check_cancelling(const plumb_cpu_kernels *level) {
    static const int64_t n_rows[] = {1, 1, 2, 3, 4, 5, 7, 8};
    for (int round = 0; round < 250; round++) {
        int64_t blocks = arena_random() % 8 ? arena_between(1, 20) : arena_between(30, 70);
        int64_t k = PLUMB_BLOCK * blocks, n = arena_between(1, 40), rows = ARENA_PICK(n_rows);
        int64_t distinct = rows < MOST_DISTINCT ? rows : MOST_DISTINCT;
        bool part = arena_random() % 2;
        int64_t begin = part ? arena_between(0, n - 1) : 0, end = part ? arena_between(begin, n) : n;
        plumb_act *x = arena_block(distinct * k, sizeof *x);
        plumb_matrix_type type = round % 4 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
        plumb_matrix w = fill_cancelling(type, n, k, distinct, x);
        compare(level, x, distinct, rows, w, begin, end);
        finish_round(level);
    }
}
static void cancelling(void) { for_each_level(check_cancelling, 11); }

/* ---- Segments that cancel ---------------------------------------------------------------------------
 * The second segment takes back what the first one is, to the bit, and leaves the third: if they were
 * one sum, its roundings would be left too. */

static void check_segments(const plumb_cpu_kernels *level) {
    enum { SEGMENT = 1024, N = 17, ROWS = 4 };
    for (int round = 0; round < 24; round++) {
        plumb_matrix_type type = round % 2 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
        int64_t k = 2 * SEGMENT + PLUMB_BLOCK * arena_between(0, 12), rows = round % 4 < 2 ? 1 : ROWS;
        plumb_act *x = arena_block(ROWS * k, sizeof *x);
        arena_acts(x, ROWS * k, ARENA_PLAIN);
        plumb_matrix w = empty_matrix(type, N, k);
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = 0; i < k; i++) {
                if (i >= 2 * SEGMENT) *scale_of(&w, n, i / PLUMB_BLOCK) = 100;
                if (i >= SEGMENT && i < 2 * SEGMENT) continue;
                uint8_t code = any_code();
                set_code(&w, n, i, code);
                if (i < SEGMENT) set_code(&w, n, SEGMENT + i, code);
            }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t i = 0; i < SEGMENT; i++)
                x[r * k + SEGMENT + i] = x[r * k + i] ^ 0x8000;
        compare(level, x, rows, rows, w, 0, N);
        finish_round(level);
    }
}
static void segments(void) { for_each_level(check_segments, 16); }

/* ---- Rows and columns around the sizes of tiles -----------------------------------------------------
 */

static void check_shapes(const plumb_cpu_kernels *level) {
    static const int64_t n_rows[] = {2, 3, 4, 5, 64, 65, 66, 67, 128, MOST_ROWS};
    static const int64_t columns[] = {1, 7, 8, 9, 15, 16, 17, 24, 31, 33, 40};
    for (size_t i = 0; i < sizeof n_rows / sizeof n_rows[0]; i++)
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++) {
            int64_t distinct = n_rows[i] < MOST_DISTINCT ? n_rows[i] : MOST_DISTINCT;
            int64_t k = PLUMB_BLOCK * arena_between(1, 40);
            plumb_act *x = arena_block(distinct * k, sizeof *x);
            plumb_matrix_type type = (i + j) % 2 ? PLUMB_MATRIX_FP8 : PLUMB_MATRIX_FP4;
            plumb_matrix w = fill_cancelling(type, columns[j], k, distinct, x);
            compare(level, x, distinct, n_rows[i], w, 0, w.n);
            finish_round(level);
        }
}
static void shapes(void) { for_each_level(check_shapes, 12); }

/* ---- Exponents at the ends of the range -------------------------------------------------------------
 * Activations of any power and scales that take their products to where the range ends, in a whole chunk
 * of blocks: everywhere, or in one block or one row among usual ones. */

enum { ANY_WEIGHTS, LIGHT_WEIGHTS, ZEROS, WEIGHTS }; /* light: sums that small ones can be merged with */
enum { CHUNK = 8, CHUNK_K = CHUNK * PLUMB_BLOCK, CHUNK_N = 16, CHUNK_ROWS = 3 };

static uint8_t weight_code(int kind) {
    return kind == ZEROS ? 0 : kind == LIGHT_WEIGHTS ? any_code() & 0xBF : any_code();
}

static void check_exponent(const plumb_cpu_kernels *level, plumb_matrix_type type, int power,
                           int code, int kind) {
    int only_block = (int)arena_between(0, 3 * CHUNK), only_row = (int)arena_between(0, 3 * CHUNK_N);
    bool acts_too = arena_random() % 2; /* the other blocks' activations are usual ones, too */
    plumb_act *x = arena_block(CHUNK_ROWS * CHUNK_K, sizeof *x);
    plumb_matrix w = empty_matrix(type, CHUNK_N, CHUNK_K);
    for (int b = 0; b < CHUNK; b++) {
        bool is_block = b == only_block || only_block >= CHUNK;
        int power_here = is_block || !acts_too ? power : 0;
        for (int i = 0; i < CHUNK_ROWS * PLUMB_BLOCK; i++) {
            int k = i % PLUMB_BLOCK;
            float value = k > 0 ? plumb__e4m3_decode(any_code()) : 448.0f;
            x[i / PLUMB_BLOCK * CHUNK_K + b * PLUMB_BLOCK + k] =
                act(value * plumb__power_of_two(power_here));
        }
        for (int n = 0; n < CHUNK_N; n++) {
            bool here = is_block && (n == only_row || only_row >= CHUNK_N);
            *scale_of(&w, n, b) = (uint8_t)(here ? code : 127 - power_here);
            for (int k = 0; k < PLUMB_BLOCK; k++)
                set_code(&w, n, b * PLUMB_BLOCK + k, weight_code(kind));
        }
    }
    compare(level, x, 1, 1, w, 0, CHUNK_N);
    compare(level, x, CHUNK_ROWS, CHUNK_ROWS, w, 0, CHUNK_N);
    finish_round(level);
}

/* Of a sum of exponents, one biased: where it leaves the range, also with the unit of sums below it. */
static bool near_an_end(int biased) {
    return (biased > -4 && biased < 30) || (biased > 248 && biased < 262);
}

static void check_exponents(const plumb_cpu_kernels *level) {
    static const int powers[] = {-22, -15, -8, -1, 0, 60, 119};
    for (size_t p = 0; p < sizeof powers / sizeof powers[0]; p++)
        for (int code = 0; code < 255; code++)
            for (int kind = 0; near_an_end(code + powers[p]) && kind < WEIGHTS; kind++) {
                check_exponent(level, PLUMB_MATRIX_FP8, powers[p], code, kind);
                check_exponent(level, PLUMB_MATRIX_FP4, powers[p], code, kind);
            }
}
static void exponents(void) { for_each_level(check_exponents, 13); }

/* ---- The largest sums ----------------------------------------------------------------------------
 * Magnitudes of a block's activations that add up to 74,898 times a power of two, beyond which products
 * of 16-bit numbers leave 32 bits, or to a little more or less. */

static void fill_sum(plumb_act *x, int32_t sum) {
    for (int i = 0; i < PLUMB_BLOCK; i++) {
        uint8_t code = 0x7E;
        while (plumb__e4m3_times512(code) > sum) code--;
        x[i] = act(plumb__e4m3_decode(code));
        sum -= plumb__e4m3_times512(code);
    }
    T_CHECK(sum == 0, "%d left", sum);
}

static void check_sums(const plumb_cpu_kernels *level) {
    enum { N = 19, ROWS = 3, LIMIT = INT32_MAX / (448 << 6) };
    for (int shift = 3; shift <= 6; shift++)
        for (int off = -2; off <= 2; off++)
            for (int rows = 1; rows <= ROWS; rows += ROWS - 1) {
                plumb_act *x = arena_block(ROWS * PLUMB_BLOCK, sizeof *x);
                for (int r = 0; r < ROWS; r++)
                    fill_sum(x + r * PLUMB_BLOCK, (LIMIT << shift) + (off - r) * (1 << shift) / 2);
                plumb_matrix w = empty_matrix(PLUMB_MATRIX_FP8, N, PLUMB_BLOCK);
                for (int n = 0; n < N; n++)
                    for (int k = 0; k < PLUMB_BLOCK; k++) {
                        bool small = n % 3 == 2 && k > PLUMB_BLOCK - 4;
                        set_code(&w, n, k, small ? 0x1F : n % 2 ? 0xFE : 0x7E);
                    }
                compare(level, x, ROWS, rows, w, 0, N);
                finish_round(level);
            }
}
static void sums(void) { for_each_level(check_sums, 14); }

/* ---- One row of lanes against FP8 -----------------------------------------------------------------
 * A scale may go to the activation instead of the weight while both are far from the ends of the range,
 * and two rows may share it while they are in one tile. */

/* Codes, and scales that are usual ones, or all but one. */
static plumb_matrix lanes_matrix(int64_t n, int64_t k) {
    static const uint8_t unusual[] = {0, 0, 1, 40, 178, 250, 254, 254};
    plumb_matrix w = empty_matrix(PLUMB_MATRIX_FP8, n, k);
    for (int64_t i = 0; i < n * k; i++) set_code(&w, i / k, i % k, any_code());
    int64_t scales = (n + PLUMB_BLOCK - 1) / PLUMB_BLOCK * (k / PLUMB_BLOCK);
    uint8_t *scale = scale_of(&w, 0, 0);
    int spread = arena_random() % 2 ? 50 : 7;
    for (int64_t i = 0; i < scales; i++)
        scale[i] = (uint8_t)arena_between(127 - spread, 127 + spread);
    if (arena_random() % 2) scale[arena_between(0, scales - 1)] = ARENA_PICK(unusual);
    return w;
}

static void check_lanes(const plumb_cpu_kernels *level) {
    static const float factors[] = {1.0f, 1.0f, 1.0f, 0x1p-60f, 0x1p-110f, 0x1p60f, 0x1p100f, 0.0f};
    for (int round = 0; round < 1000; round++) {
        int64_t n = arena_between(1, 70), k = PLUMB_BLOCK * arena_between(1, 4);
        int64_t begin = arena_between(0, n - 1), end = arena_between(begin, n);
        plumb_matrix w = lanes_matrix(n, k);
        float *x = arena_block(k, sizeof *x), factor = ARENA_PICK(factors);
        arena_floats(x, k, ARENA_PLAIN);
        int64_t from = arena_random() % 2 ? arena_between(0, k - 1) : 0;
        for (int64_t i = from; i < k; i++) x[i] *= factor;
        float *a = arena_block(n, sizeof *a), *b = arena_copy(a, n, sizeof *b);
        void *scratch = arena_scratch(plumb__linear_scratch_bytes(k));
        bool finite = portable->linear(x, k, 1, &w, begin, end, NULL, a, n, scratch);
        bool also = level->linear(x, k, 1, &w, begin, end, NULL, b, n, scratch);
        T_CHECK(finite == also && (!finite || !memcmp(a, b, (size_t)n * sizeof *a)),
                "%s k %" PRId64 " [%" PRId64 ", %" PRId64 ") times %g: flag %d", level->level, k,
                begin, end, (double)factor, finite);
        finish_round(level);
    }
}
static void lanes(void) { for_each_level(check_lanes, 15); }

/* ---- Products left out that have 28 bits together ------------------------------------------------------
 *
 * Twenty small weights on the largest activations, two large weights that take their sum back, and one
 * product of the smallest kind, which is all that remains: 81 * 2^-15, or its negative. */
static void check_remainder(const plumb_cpu_kernels *level) {
    enum { K = PLUMB_BLOCK, N = 16, SMALL = 20, ROWS = 4 };
    for (int negative = 0; negative <= 1; negative++)
        for (int64_t only = 0; only < N; only += N / 2) { /* in one half of a panel */
            uint8_t sign = negative ? 0x80 : 0;
            plumb_matrix w = empty_matrix(PLUMB_MATRIX_FP8, N, K);
            for (int k = 0; k < SMALL; k++) set_code(&w, only, k, 0x1F ^ sign); /* 60 * 2^-9 */
            set_code(&w, only, SMALL, 0xBF ^ sign);                         /* -1.875 */
            set_code(&w, only, SMALL + 1, 0xAF ^ sign);                     /* -0.46875 */
            set_code(&w, only, K - 1, 0x21 ^ sign);                         /* 9 * 2^-6 */
            plumb_act x[K];
            for (int k = 0; k < K; k++) x[k] = act(k < K - 1 ? 448.0f : 9 * 0x1p-9f);
            compare(level, x, 1, ROWS, w, 0, N);
            compare(level, x, 1, 1, w, 0, N);
            finish_round(level);
        }
}
static void remainder_of_many(void) { for_each_level(check_remainder, 23); }

T_MAIN({"cancelling", cancelling}, {"segments", segments}, {"shapes", shapes}, {"exponents", exponents},
       {"sums", sums}, {"remainder", remainder_of_many}, {"lanes", lanes})
