/* AVX-512 in portable C, for the tests of the AVX-512 kernels on machines that lack it.
 *
 * Found in place of the compiler's header when the kernels are compiled a second time. SIMDe has
 * most of the intrinsics; those that its version 0.7.4 lacks follow, written from Intel's
 * definitions, and replace what later versions may have. The fused multiply-add is here because
 * SIMDe may round it twice, and the dot products because kernels promise more than it checks:
 * one that lets an integer sum wrap, or a sum of VDPBF16PS be rounded, whose order is the
 * processor's own, ends the program. */
#ifndef PLUMB_TESTS_KERNELS_EMULATED_IMMINTRIN_H
#define PLUMB_TESTS_KERNELS_EMULATED_IMMINTRIN_H

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <math.h>
#include <stdbool.h>
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

/* ---- Floats ---------------------------------------------------------------------------------- */

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

#include "integers.h"

#endif
