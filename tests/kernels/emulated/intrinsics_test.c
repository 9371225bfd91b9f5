/* Every AVX-512 intrinsic that the kernels use against Intel's definition of it, lane by lane.
 *
 * Compiled twice where that is possible: against the emulation, which this makes trustworthy,
 * and as the processor's own instructions, on a machine that has them. */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/machine.h"
#include "t.h"

typedef union vector {
    int8_t i8[64];
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    uint64_t u64[8];
    float f32[16];
} vector;

static uint64_t state = 1;

static uint32_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

/* Any bits, or mostly the ends of ranges. */
static vector random_vector(void) {
    static const uint16_t ends[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF};
    vector v;
    bool hostile = draw() % 2;
    for (int i = 0; i < 32; i++)
        v.u16[i] = hostile && draw() % 4 ? ends[draw() % 8] : (uint16_t)draw();
    return v;
}

static vector random_floats(void) {
    vector v;
    for (int i = 0; i < 16; i++) v.f32[i] = ldexpf((float)(int32_t)draw(), (int)(draw() % 8) - 34);
    return v;
}

static __m512i load(const vector *v) { return _mm512_loadu_si512(v); }
static __m512 load_floats(const vector *v) { return _mm512_loadu_ps(v->f32); }
static __m128i first_128(const vector *v) {
    return _mm_loadu_si128((const __m128i *)(const void *)v);
}
static __m256i first_256(const vector *v) { return _mm512_castsi512_si256(load(v)); }

static void check_bytes(const void *got, const vector *expected, int bytes, const char *what) {
    T_CHECK(!memcmp(got, expected, (size_t)bytes), "%s", what);
}

/* CHECK(call, definition): what the call gives against e, zeros that the definition fills. */
#define CHECK_AS(type, bytes, call, ...)                                                           \
    do {                                                                                           \
        vector e = {{0}};                                                                          \
        __VA_ARGS__;                                                                               \
        type got_vector = call;                                                                    \
        vector got;                                                                                \
        memcpy(&got, &got_vector, sizeof got_vector);                                              \
        check_bytes(&got, &e, bytes, #call);                                                       \
    } while (0)
#define CHECK(call, ...) CHECK_AS(__m512i, 64, call, __VA_ARGS__)
#define CHECK_FLOATS(call, ...) CHECK_AS(__m512, 64, call, __VA_ARGS__)
#define EACH(n) for (int i = 0; i < (n); i++)

static int16_t saturate(int32_t x) {
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

static void arithmetic(const vector *va, const vector *vb) {
    const vector a = *va, b = *vb;
    const __m512i x = load(va), y = load(vb);
    CHECK(_mm512_add_epi16(x, y), EACH(32) e.u16[i] = (uint16_t)(a.u16[i] + b.u16[i]));
    CHECK(_mm512_add_epi32(x, y), EACH(16) e.u32[i] = a.u32[i] + b.u32[i]);
    CHECK(_mm512_adds_epi16(x, y), EACH(32) e.i16[i] = saturate(a.i16[i] + b.i16[i]));
    CHECK(_mm512_max_epi16(x, y), EACH(32) e.i16[i] = a.i16[i] > b.i16[i] ? a.i16[i] : b.i16[i]);
    CHECK(_mm512_max_epi32(x, y), EACH(16) e.i32[i] = a.i32[i] > b.i32[i] ? a.i32[i] : b.i32[i]);
    CHECK(_mm512_mulhi_epi16(x, y), EACH(32) e.i16[i] = (int16_t)(a.i16[i] * b.i16[i] >> 16));
    CHECK(_mm512_mullo_epi16(x, y),
          EACH(32) e.u16[i] = (uint16_t)((uint32_t)a.u16[i] * b.u16[i]));
    CHECK(_mm512_and_si512(x, y), EACH(16) e.u32[i] = a.u32[i] & b.u32[i]);
    CHECK(_mm512_andnot_si512(x, y), EACH(16) e.u32[i] = ~a.u32[i] & b.u32[i]);
    CHECK(_mm512_or_si512(x, y), EACH(16) e.u32[i] = a.u32[i] | b.u32[i]);
    CHECK(_mm512_slli_epi16(x, 7), EACH(32) e.u16[i] = (uint16_t)(a.u16[i] << 7));
    CHECK(_mm512_srli_epi16(x, 11), EACH(32) e.u16[i] = (uint16_t)(a.u16[i] >> 11));
    CHECK(_mm512_srai_epi16(x, 8), EACH(32) e.i16[i] = (int16_t)(a.i16[i] >> 8));
    CHECK(_mm512_slli_epi32(x, 23), EACH(16) e.u32[i] = a.u32[i] << 23);
    CHECK(_mm512_srli_epi32(x, 16), EACH(16) e.u32[i] = a.u32[i] >> 16);
    CHECK(_mm512_srai_epi32(x, 11), EACH(16) e.i32[i] = a.i32[i] >> 11);
    uint32_t sum = 0;
    EACH(16) sum += a.u32[i];
    T_CHECK((uint32_t)_mm512_reduce_add_epi32(x) == sum, "reduce_add");
}

/* The first five bits of an index count, and the index comes first. */
static void moves(const vector *va, const vector *vb) {
    const vector a = *va, b = *vb;
    const __m512i x = load(va), y = load(vb);
    CHECK(_mm512_permutexvar_epi16(x, y), EACH(32) e.u16[i] = b.u16[a.u16[i] & 31]);
    CHECK(_mm512_shuffle_epi8(x, y), EACH(64) e.u8[i] = b.u8[i] & 128
              ? 0 : a.u8[i / 16 * 16 + (b.u8[i] & 15)]);
    CHECK(_mm512_unpacklo_epi32(x, y),
          EACH(16) e.u32[i] = (i & 1 ? b : a).u32[i / 4 * 4 + i % 4 / 2]);
    CHECK(_mm512_unpackhi_epi32(x, y),
          EACH(16) e.u32[i] = (i & 1 ? b : a).u32[i / 4 * 4 + 2 + i % 4 / 2]);
    CHECK(_mm512_unpacklo_epi64(x, y), EACH(8) e.u64[i] = (i & 1 ? b : a).u64[i / 2 * 2]);
    CHECK(_mm512_unpackhi_epi64(x, y), EACH(8) e.u64[i] = (i & 1 ? b : a).u64[i / 2 * 2 + 1]);
#define QUARTERS(control)                                                                          \
    EACH(16) e.u32[i] = (i < 8 ? a : b).u32[((control) >> i / 4 * 2 & 3) * 4 + i % 4]
    CHECK(_mm512_shuffle_i32x4(x, y, 0x44), QUARTERS(0x44));
    CHECK(_mm512_shuffle_i32x4(x, y, 0xEE), QUARTERS(0xEE));
    CHECK(_mm512_shuffle_i32x4(x, y, 0x88), QUARTERS(0x88));
    CHECK(_mm512_shuffle_i32x4(x, y, 0xDD), QUARTERS(0xDD));
    CHECK(_mm512_inserti32x4(x, first_128(vb), 1), e = a; memcpy(e.u8 + 16, b.u8, 16));
    CHECK(_mm512_inserti32x4(x, first_128(vb), 2), e = a; memcpy(e.u8 + 32, b.u8, 16));
    CHECK(_mm512_inserti32x4(x, first_128(vb), 3), e = a; memcpy(e.u8 + 48, b.u8, 16));
    CHECK(_mm512_inserti64x4(x, first_256(vb), 1), e = a; memcpy(e.u8 + 32, b.u8, 32));
    CHECK(_mm512_broadcast_i32x4(first_128(va)), EACH(16) e.u32[i] = a.u32[i % 4]);
    CHECK_AS(__m256i, 32, _mm512_extracti64x4_epi64(x, 1), memcpy(e.u8, a.u8 + 32, 32));
    CHECK_AS(__m256d, 32,
             _mm512_extractf64x4_pd(_mm512_castps_pd(_mm512_castsi512_ps(x)), 1),
             memcpy(e.u8, a.u8 + 32, 32));
    CHECK(_mm512_cvtepu8_epi16(first_256(va)), EACH(32) e.u16[i] = a.u8[i]);
    CHECK(_mm512_cvtepu16_epi32(first_256(va)), EACH(16) e.u32[i] = a.u16[i]);
    CHECK_AS(__m128i, 16, _mm512_cvtepi32_epi8(x), EACH(16) e.u8[i] = (uint8_t)a.u32[i]);
    CHECK_AS(__m256i, 32, _mm512_cvtepi32_epi16(x), EACH(16) e.u16[i] = (uint16_t)a.u32[i]);
}

static void masks(const vector *va, const vector *vb) {
    const vector a = *va, b = *vb;
    const uint64_t k = (uint64_t)draw() << 32 | draw();
    uint32_t tested = 0;
    EACH(16) tested |= (uint32_t)((a.u32[i] & b.u32[i]) != 0) << i;
    T_CHECK(_mm512_test_epi32_mask(load(va), load(vb)) == tested, "test_epi32_mask");
    CHECK(_mm512_maskz_mov_epi32((uint16_t)k, load(va)),
          EACH(16) e.u32[i] = k >> i & 1 ? a.u32[i] : 0);
    CHECK(_mm512_maskz_loadu_epi8(k, a.u8), EACH(64) e.u8[i] = k >> i & 1 ? a.u8[i] : 0);
    CHECK_FLOATS(_mm512_maskz_loadu_ps((uint16_t)k, a.f32),
                 EACH(16) e.u32[i] = k >> i & 1 ? a.u32[i] : 0);
    CHECK_AS(__m256i, 32, _mm256_maskz_loadu_epi8((uint32_t)k, a.u8),
             EACH(32) e.u8[i] = k >> i & 1 ? a.u8[i] : 0);
    CHECK_AS(__m256i, 32, _mm256_maskz_loadu_epi16((uint16_t)k, a.u16),
             EACH(16) e.u16[i] = k >> i & 1 ? a.u16[i] : 0);
    CHECK_AS(__m128i, 16, _mm_maskz_loadu_epi8((uint16_t)k, a.u8),
             EACH(16) e.u8[i] = k >> i & 1 ? a.u8[i] : 0);
}

/* Bytes: the first operand unsigned, the second signed. bf16: small integers, whose sums are
 * exact in any order. */
static void dots(const vector *va, const vector *vb) {
    const vector a = *va, b = *vb;
    vector c = random_vector(), s = a, t = b;
    EACH(16) c.i32[i] /= 2;
    EACH(32) s.i16[i] /= 4, t.i16[i] /= 4;
    CHECK(_mm512_dpbusd_epi32(load(&c), load(va), load(vb)),
          e = c; EACH(64) e.i32[i / 4] += a.u8[i] * b.i8[i]);
    CHECK(_mm512_dpwssd_epi32(load(&c), load(&s), load(&t)),
          e = c; EACH(32) e.i32[i / 2] += s.i16[i] * t.i16[i]);
#ifdef PLUMB_AVX512_BF16
    vector sum;
    float x[32], y[32];
    EACH(16) sum.f32[i] = (float)(int)(draw() % 1000);
    EACH(32) {
        uint32_t bits[2];
        x[i] = (float)(a.i8[i] / 2), y[i] = (float)(b.i8[i] / 2);
        memcpy(&bits[0], &x[i], 4), memcpy(&bits[1], &y[i], 4);
        s.u16[i] = (uint16_t)(bits[0] >> 16), t.u16[i] = (uint16_t)(bits[1] >> 16);
    }
    CHECK_FLOATS(_mm512_dpbf16_ps(load_floats(&sum), (__m512bh)load(&s), (__m512bh)load(&t)),
                 e = sum; EACH(32) e.f32[i / 2] += x[i] * y[i]);
#endif
}

static void floats(const vector *va, const vector *vb) {
    const vector a = random_floats(), b = random_floats(), c = random_floats();
    const __m512 x = load_floats(&a), y = load_floats(&b), z = load_floats(&c);
    const uint16_t k = (uint16_t)draw();
    CHECK_FLOATS(_mm512_add_ps(x, y), EACH(16) e.f32[i] = a.f32[i] + b.f32[i]);
    CHECK_FLOATS(_mm512_sub_ps(x, y), EACH(16) e.f32[i] = a.f32[i] - b.f32[i]);
    CHECK_FLOATS(_mm512_mul_ps(x, y), EACH(16) e.f32[i] = a.f32[i] * b.f32[i]);
    CHECK_FLOATS(_mm512_min_ps(x, y), EACH(16) e.f32[i] = fminf(a.f32[i], b.f32[i]));
    CHECK_FLOATS(_mm512_fmadd_ps(x, y, z), EACH(16) e.f32[i] = fmaf(a.f32[i], b.f32[i], c.f32[i]));
    CHECK_FLOATS(_mm512_mask3_fmadd_ps(x, y, z, k),
                 EACH(16) e.f32[i] = k >> i & 1 ? fmaf(a.f32[i], b.f32[i], c.f32[i]) : c.f32[i]);
    CHECK_FLOATS(_mm512_cvtepi32_ps(load(va)), EACH(16) e.f32[i] = (float)va->i32[i]);
    CHECK(_mm512_cvtps_epi32(x), EACH(16) e.i32[i] = (int32_t)lrintf(a.f32[i]));
    vector halves = *vb; /* no NaN, whose bits change */
    EACH(16) if ((halves.u16[i] & 0x7C00) == 0x7C00) halves.u16[i] &= 0xFC00;
    CHECK_FLOATS(_mm512_cvtph_ps(first_256(&halves)), EACH(16) {
        int exponent = halves.u16[i] >> 10 & 31, fraction = halves.u16[i] & 1023;
        float value = exponent == 31 ? HUGE_VALF
                      : exponent == 0
                          ? ldexpf((float)fraction, -24)
                          : ldexpf((float)(fraction + 1024), exponent - 25);
        e.f32[i] = halves.u16[i] & 0x8000 ? -value : value;
    });
}

static void run(void (*group)(const vector *a, const vector *b)) {
    for (int round = 0; round < 2000; round++) {
        vector a = random_vector(), b = random_vector();
        group(&a, &b);
    }
}

static void test_arithmetic(void) { run(arithmetic); }
static void test_moves(void) { run(moves); }
static void test_masks(void) { run(masks); }
static void test_dots(void) { run(dots); }
static void test_floats(void) { run(floats); }

int main(int argc, char **argv) {
    static const t_test tests[] = {{"arithmetic", test_arithmetic},
                                   {"moves", test_moves},
                                   {"masks", test_masks},
                                   {"dots", test_dots},
                                   {"floats", test_floats}};
#ifdef __AVX512F__
    if (!plumb__machine_has_avx512_bf16()) {
        printf("skipped: no avx512_bf16 here\n0 passed, 0 failed\n");
        return 0;
    }
#endif
    return t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
}
