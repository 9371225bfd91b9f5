/* The part of immintrin.h without floats: lanes of integers and masked loads. */
#ifndef PLUMB_TESTS_KERNELS_EMULATED_INTEGERS_H
#define PLUMB_TESTS_KERNELS_EMULATED_INTEGERS_H

/* ---- Lane i of the result is `lane`, an expression of x, the operand, and i ------------------- */

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

/* SIMDe's is signed: there wrapping, which the instruction defines, is undefined. */
static inline __m512i emulated_add_epi32(__m512i a, __m512i b) {
    simde__m512i_private x = simde__m512i_to_private(a), y = simde__m512i_to_private(b);
    for (int i = 0; i < 16; i++) x.u32[i] += y.u32[i];
    return simde__m512i_from_private(x);
}

static inline int32_t emulated_reduce_add_epi32(__m512i a) {
    simde__m512i_private x = simde__m512i_to_private(a);
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += x.u32[i];
    return (int32_t)sum;
}

#undef _mm512_add_epi32
#undef _mm512_srai_epi32
#undef _mm512_srai_epi16
#undef _mm512_cvtepu8_epi16
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_epi16
#undef _mm512_reduce_add_epi32
#define _mm512_add_epi32(a, b) emulated_add_epi32(a, b)
#define _mm512_srai_epi32(a, count) emulated_srai_epi32(a, count)
#define _mm512_srai_epi16(a, count) emulated_srai_epi16(a, count)
#define _mm512_cvtepu8_epi16(a) emulated_cvtepu8_epi16(a)
#define _mm512_cvtepu16_epi32(a) emulated_cvtepu16_epi32(a)
#define _mm512_cvtepi32_epi8(a) emulated_cvtepi32_epi8(a)
#define _mm512_cvtepi32_epi16(a) emulated_cvtepi32_epi16(a)
#define _mm512_reduce_add_epi32(a) emulated_reduce_add_epi32(a)

/* ---- Masked loads: what is not in the mask is not touched ------------------------------------- */

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
