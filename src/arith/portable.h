/* The common subset of C17, CUDA C++ and MSL in which src/arith is written.
 *
 * PLUMB_FN marks a function that every backend includes.  Pointers say which memory they point into,
 * as MSL demands: PLUMB_THREAD a thread's own, PLUMB_DEVICE that of the device; in C and CUDA both say
 * nothing.  Bit casts, the fused multiply-add and the square root are the only operations whose spelling
 * differs between the three languages. */
#ifndef PLUMB_ARITH_PORTABLE_H
#define PLUMB_ARITH_PORTABLE_H

#if defined(__METAL_VERSION__)
#include <metal_stdlib>
#define PLUMB_FN static inline
#define PLUMB_THREAD thread
#define PLUMB_DEVICE device
#define plumb__bits_of(x) as_type<uint32_t>(x)
#define plumb__float_of(u) as_type<float>(u)
#define plumb__fma(a, b, c) metal::fma(a, b, c)
#define plumb__sqrt(x) metal::precise::sqrt(x)

#elif defined(__CUDACC__)
#include <stdint.h>
#define PLUMB_FN static __device__ inline
#define PLUMB_THREAD
#define PLUMB_DEVICE
#define plumb__bits_of(x) __float_as_uint(x)
#define plumb__float_of(u) __uint_as_float(u)
#define plumb__fma(a, b, c) __fmaf_rn(a, b, c)
#define plumb__sqrt(x) __fsqrt_rn(x)

#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#define PLUMB_FN static inline
#define PLUMB_THREAD
#define PLUMB_DEVICE
PLUMB_FN uint32_t plumb__bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
PLUMB_FN float plumb__float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
/* fmaf and sqrtf are exact by definition: the only libm calls that touch a result. */
#define plumb__fma(a, b, c) fmaf(a, b, c)
#define plumb__sqrt(x) sqrtf(x)
#endif

#endif
