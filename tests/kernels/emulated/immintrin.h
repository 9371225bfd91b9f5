/* AVX-512 in portable C, for the tests of the AVX-512 kernels on machines that lack it.
 *
 * Found in place of the compiler's header when the kernels are compiled a second time.  SIMDe has most
 * of the intrinsics; those that its version 0.7.4 lacks follow, written from Intel's definitions, and
 * replace what later versions may have.  The fused multiply-add is here because SIMDe may round it twice,
 * and the dot products because kernels promise more than it checks: one that lets an integer sum wrap, or
 * a sum of VDPBF16PS be rounded, whose order is the processor's own, ends the program. */
#ifndef PLUMB_TESTS_KERNELS_EMULATED_IMMINTRIN_H
#define PLUMB_TESTS_KERNELS_EMULATED_IMMINTRIN_H

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __mmask16 uint16_t
#define __mmask32 uint32_t
#define __mmask64 uint64_t

static inline float emulated_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- Dot products ---------------------------------------------------------------------------- */

static inline void emulated_require(bool exact, const char *instruction) {
    if (exact) return;
    fprintf(stderr, "%s: a sum is not exact\n", instruction);
    abort();
}

static inline __m512i emulated_dpbusd(__m512i sum, __m512i a, __m512i b) {
    simde__m512i_private r = simde__m512i_to_private(sum), u = simde__m512i_to_private(a);
    simde__m512i_private s = simde__m512i_to_private(b);
    int64_t lost = 0;
    for (int i = 0; i < 16; i++) {
        int64_t exact = r.i32[i];
        for (int j = 4 * i; j < 4 * i + 4; j++) exact += (int32_t)u.u8[j] * s.i8[j];
        r.i32[i] = (int32_t)exact;
        lost |= exact - r.i32[i];
    }
    emulated_require(lost == 0, "vpdpbusd");
    return simde__m512i_from_private(r);
}

static inline __m512i emulated_dpwssd(__m512i sum, __m512i a, __m512i b) {
    simde__m512i_private r = simde__m512i_to_private(sum), s = simde__m512i_to_private(a);
    simde__m512i_private t = simde__m512i_to_private(b);
    int64_t lost = 0;
    for (int i = 0; i < 16; i++) {
        int64_t exact = r.i32[i];
        for (int j = 2 * i; j < 2 * i + 2; j++) exact += (int64_t)s.i16[j] * t.i16[j];
        r.i32[i] = (int32_t)exact;
        lost |= exact - r.i32[i];
    }
    emulated_require(lost == 0, "vpdpwssd");
    return simde__m512i_from_private(r);
}

/* Rounded once, after both products: where that is exact, so is any other order. */
static inline __m512 emulated_dpbf16(__m512 sum, __m512i a, __m512i b) {
    simde__m512_private r = simde__m512_to_private(sum);
    simde__m512i_private s = simde__m512i_to_private(a), t = simde__m512i_to_private(b);
    bool inexact = false;
    for (int i = 0; i < 16; i++) {
        double exact = (double)r.f32[i];
        for (int j = 2 * i; j < 2 * i + 2; j++)
            exact += (double)emulated_float((uint32_t)s.u16[j] << 16) *
                     (double)emulated_float((uint32_t)t.u16[j] << 16);
        r.f32[i] = (float)exact;
        inexact |= (double)r.f32[i] != exact;
    }
    emulated_require(!inexact, "vdpbf16ps");
    return simde__m512_from_private(r);
}

#undef _mm512_dpbusd_epi32
#undef _mm512_dpwssd_epi32
#undef _mm512_dpbf16_ps
#define _mm512_dpbusd_epi32(sum, a, b) emulated_dpbusd(sum, a, b)
#define _mm512_dpwssd_epi32(sum, a, b) emulated_dpwssd(sum, a, b)
#define _mm512_dpbf16_ps(sum, a, b) emulated_dpbf16(sum, (__m512i)(a), (__m512i)(b))

/* ---- Floats ------------------------------------------------------------------------------------ */

static inline __m512 emulated_fmadd(__m512 a, __m512 b, __m512 c, uint32_t mask) {
    simde__m512_private x = simde__m512_to_private(a), y = simde__m512_to_private(b);
    simde__m512_private r = simde__m512_to_private(c);
    for (int i = 0; i < 16; i++) {
        float fused = fmaf(x.f32[i], y.f32[i], r.f32[i]);
        r.f32[i] = mask >> i & 1 ? fused : r.f32[i];
    }
    return simde__m512_from_private(r);
}

static inline __m512 emulated_cvtepi32_ps(__m512i a) {
    simde__m512i_private x = simde__m512i_to_private(a);
    simde__m512_private r;
    for (int i = 0; i < 16; i++) r.f32[i] = (float)x.i32[i];
    return simde__m512_from_private(r);
}

/* By the rounding mode; what does not fit, and NaN, is the least integer. */
static inline __m512i emulated_cvtps_epi32(__m512 a) {
    simde__m512_private x = simde__m512_to_private(a);
    simde__m512i_private r;
    for (int i = 0; i < 16; i++) {
        float whole = rintf(x.f32[i]);
        r.i32[i] = fabsf(whole) < 0x1p31f ? (int32_t)whole : INT32_MIN;
    }
    return simde__m512i_from_private(r);
}

/* From half floats; a subnormal one is converted, whatever the modes. */
static inline __m512 emulated_cvtph_ps(__m256i a) {
    simde__m256i_private x = simde__m256i_to_private(a);
    simde__m512_private r;
    for (int i = 0; i < 16; i++) {
        uint32_t magnitude = x.u16[i] & 0x7FFFu, exponent = magnitude >> 10;
        float normal = emulated_float((magnitude << 13) + ((exponent == 31 ? 224u : 112u) << 23));
        float value = exponent == 0 ? (float)magnitude * 0x1p-24f : normal;
        r.f32[i] = x.u16[i] & 0x8000u ? -value : value;
    }
    return simde__m512_from_private(r);
}

#undef _mm512_fmadd_ps
#undef _mm512_mask3_fmadd_ps
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvtph_ps
#define _mm512_fmadd_ps(a, b, c) emulated_fmadd(a, b, c, 0xFFFF)
#define _mm512_mask3_fmadd_ps(a, b, c, mask) emulated_fmadd(a, b, c, mask)
#define _mm512_cvtepi32_ps(a) emulated_cvtepi32_ps(a)
#define _mm512_cvtps_epi32(a) emulated_cvtps_epi32(a)
#define _mm512_cvtph_ps(a) emulated_cvtph_ps(a)

/* ---- Integers: lane i of the result is `lane`, an expression of x, the operand, and i ------------- */

#define EMULATED_LANES(name, to, from, lanes, member, lane, ...)                                   \
    static inline __##to name(__##from a __VA_ARGS__) {                                            \
        simde__##from##_private x = simde__##from##_to_private(a);                                 \
        simde__##to##_private r;                                                                   \
        for (int i = 0; i < (lanes); i++) r.member[i] = lane;                                      \
        return simde__##to##_from_private(r);                                                      \
    }
EMULATED_LANES(emulated_srai_epi32, m512i, m512i, 16, i32, x.i32[i] >> count, , int count)
EMULATED_LANES(emulated_srai_epi16, m512i, m512i, 32, i16, (int16_t)(x.i16[i] >> count), ,
               int count)
EMULATED_LANES(emulated_cvtepu8_epi16, m512i, m256i, 32, u16, x.u8[i], )
EMULATED_LANES(emulated_cvtepu16_epi32, m512i, m256i, 16, u32, x.u16[i], )
EMULATED_LANES(emulated_cvtepi32_epi8, m128i, m512i, 16, u8, (uint8_t)x.u32[i], )
EMULATED_LANES(emulated_cvtepi32_epi16, m256i, m512i, 16, u16, (uint16_t)x.u32[i], )

static inline int32_t emulated_reduce_add_epi32(__m512i a) {
    simde__m512i_private x = simde__m512i_to_private(a);
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += x.u32[i];
    return (int32_t)sum;
}

#undef _mm512_srai_epi32
#undef _mm512_srai_epi16
#undef _mm512_cvtepu8_epi16
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_epi16
#undef _mm512_reduce_add_epi32
#define _mm512_srai_epi32(a, count) emulated_srai_epi32(a, count)
#define _mm512_srai_epi16(a, count) emulated_srai_epi16(a, count)
#define _mm512_cvtepu8_epi16(a) emulated_cvtepu8_epi16(a)
#define _mm512_cvtepu16_epi32(a) emulated_cvtepu16_epi32(a)
#define _mm512_cvtepi32_epi8(a) emulated_cvtepi32_epi8(a)
#define _mm512_cvtepi32_epi16(a) emulated_cvtepi32_epi16(a)
#define _mm512_reduce_add_epi32(a) emulated_reduce_add_epi32(a)

/* ---- Masked loads: what is not in the mask is not touched ---------------------------------------- */

#define EMULATED_LOAD(name, type, lanes, lane_bytes)                                               \
    static inline type name(uint64_t mask, const void *from) {                                     \
        char bytes[(lanes) * (lane_bytes)] = {0};                                                  \
        type r;                                                                                    \
        for (int i = 0; i < (lanes); i++)                                                          \
            if (mask >> i & 1)                                                                     \
                memcpy(bytes + i * (lane_bytes), (const char *)from + i * (lane_bytes),            \
                       lane_bytes);                                                                \
        memcpy(&r, bytes, sizeof r);                                                               \
        return r;                                                                                  \
    }
EMULATED_LOAD(emulated_load_16_bytes, __m128i, 16, 1)
EMULATED_LOAD(emulated_load_32_bytes, __m256i, 32, 1)
EMULATED_LOAD(emulated_load_64_bytes, __m512i, 64, 1)
EMULATED_LOAD(emulated_load_16_words, __m256i, 16, 2)
EMULATED_LOAD(emulated_load_16_floats, __m512, 16, 4)

#undef _mm_maskz_loadu_epi8
#undef _mm256_maskz_loadu_epi8
#undef _mm512_maskz_loadu_epi8
#undef _mm256_maskz_loadu_epi16
#undef _mm512_maskz_loadu_ps
#define _mm_maskz_loadu_epi8(mask, from) emulated_load_16_bytes(mask, from)
#define _mm256_maskz_loadu_epi8(mask, from) emulated_load_32_bytes(mask, from)
#define _mm512_maskz_loadu_epi8(mask, from) emulated_load_64_bytes(mask, from)
#define _mm256_maskz_loadu_epi16(mask, from) emulated_load_16_words(mask, from)
#define _mm512_maskz_loadu_ps(mask, from) emulated_load_16_floats(mask, from)

#endif
