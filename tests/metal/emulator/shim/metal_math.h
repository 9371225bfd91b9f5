/* Common, integer and maths functions of MSL that are exact or correctly rounded: sections 6.3
 * to 6.5 of its specification.  Scalars only. */
#ifndef PLUMB_EMULATED_METAL_MATH_H
#define PLUMB_EMULATED_METAL_MATH_H

namespace metal {

/* The other number where one is NaN. */
inline float fmin(float x, float y) {
    return __builtin_fminf(x, y);
}
inline float fmax(float x, float y) {
    return __builtin_fmaxf(x, y);
}

/* Arguments of one type, as MSL's overloads demand: min(1, 2u) is ambiguous there. */
template <typename T> T min(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
        return fmin(x, y);
    else
        return y < x ? y : x;
}
template <typename T> T max(T x, T y) {
    if constexpr (std::is_floating_point_v<T>)
        return fmax(x, y);
    else
        return x < y ? y : x;
}
template <typename T> T clamp(T x, T low, T high) {
    return min(max(x, low), high);
}
template <typename T> T select(T if_false, T if_true, bool condition) {
    return condition ? if_true : if_false;
}

inline float fabs(float x) {
    return __builtin_fabsf(x);
}
inline float abs(float x) {
    return __builtin_fabsf(x);
}
inline int abs(int x) {
    return x < 0 ? -x : x;
}
inline float copysign(float x, float sign) {
    return __builtin_copysignf(x, sign);
}
inline float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
inline bool isnan(float x) {
    return __builtin_isnan(x);
}
inline bool isinf(float x) {
    return __builtin_isinf(x);
}
inline bool isfinite(float x) {
    return __builtin_isfinite(x);
}
inline bool signbit(float x) {
    return __builtin_signbit(x);
}

namespace precise {
inline float sqrt(float x) {
    return __builtin_sqrtf(x);
}
} // namespace precise

/* Numbers of bits; clz and ctz of 0 are all of them. */
template <typename T> T popcount(T x) {
    static_assert(std::is_integral_v<T>);
    return static_cast<T>(__builtin_popcountl(static_cast<std::make_unsigned_t<T>>(x)));
}
template <typename T> T clz(T x) {
    static_assert(std::is_integral_v<T>);
    constexpr int bits = 8 * sizeof(T);
    const ulong u = static_cast<std::make_unsigned_t<T>>(x);
    return static_cast<T>(u == 0 ? bits : __builtin_clzl(u) - (64 - bits));
}
template <typename T> T ctz(T x) {
    static_assert(std::is_integral_v<T>);
    const ulong u = static_cast<std::make_unsigned_t<T>>(x);
    return static_cast<T>(u == 0 ? 8 * static_cast<int>(sizeof(T)) : __builtin_ctzl(u));
}
inline uint mulhi(uint x, uint y) {
    return static_cast<uint>(static_cast<ulong>(x) * y >> 32);
}
inline int mulhi(int x, int y) {
    return static_cast<int>(static_cast<long>(x) * y >> 32);
}

} // namespace metal

#endif
