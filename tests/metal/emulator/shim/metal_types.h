/* Scalar and vector types of MSL (section 2 of its specification), over clang's vectors, which have
 * the same operators, components and layout.  `float4(a, b)` is spelled by a macro: C++ has no such
 * constructor for vectors. */
#ifndef PLUMB_EMULATED_METAL_TYPES_H
#define PLUMB_EMULATED_METAL_TYPES_H

namespace metal {

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using size_t = unsigned long;

template <typename T, int N> using vec = T __attribute__((ext_vector_type(N)));

#define EMULATED_VECTORS(T) \
    using T##2 = vec<T, 2>; \
    using T##3 = vec<T, 3>; \
    using T##4 = vec<T, 4>;
EMULATED_VECTORS(char)
EMULATED_VECTORS(uchar)
EMULATED_VECTORS(short)
EMULATED_VECTORS(ushort)
EMULATED_VECTORS(int)
EMULATED_VECTORS(uint)
EMULATED_VECTORS(long)
EMULATED_VECTORS(ulong)
EMULATED_VECTORS(float)
#undef EMULATED_VECTORS

/* Vectors with the alignment of their elements. */
template <typename T, int N> struct packed_vec {
    T component[N];

    packed_vec() = default;
    packed_vec(vec<T, N> v) {
        for (int i = 0; i < N; i++) component[i] = v[i];
    }
    operator vec<T, N>() const {
        vec<T, N> v;
        for (int i = 0; i < N; i++) v[i] = component[i];
        return v;
    }
    T &operator[](int i) { return component[i]; }
    const T &operator[](int i) const { return component[i]; }
};

#define EMULATED_PACKED(T)                                                                         \
    using packed_##T##2 = packed_vec<T, 2>;                                                        \
    using packed_##T##3 = packed_vec<T, 3>;                                                        \
    using packed_##T##4 = packed_vec<T, 4>;
EMULATED_PACKED(char)
EMULATED_PACKED(uchar)
EMULATED_PACKED(short)
EMULATED_PACKED(ushort)
EMULATED_PACKED(int)
EMULATED_PACKED(uint)
EMULATED_PACKED(float)
#undef EMULATED_PACKED

} // namespace metal

namespace emulated {

template <typename T> struct shape {
    using element = T;
    static constexpr int size = 1;
};
template <typename T, int N> struct shape<T __attribute__((ext_vector_type(N)))> {
    using element = T;
    static constexpr int size = N;
};
template <typename T, int N> struct shape<metal::packed_vec<T, N>> {
    using element = T;
    static constexpr int size = N;
};

/* V(parts...): one scalar for all components, a vector of as many to convert, or parts side by side. */
template <typename V, typename... Parts> V vector_of(Parts... parts) {
    using element = typename shape<V>::element;
    V v{};
    if constexpr (sizeof...(Parts) == 1 && ((shape<Parts>::size == 1) && ...)) {
        ((v = static_cast<element>(parts)), ...);
    } else {
        static_assert((shape<Parts>::size + ...) == shape<V>::size, "components of a vector");
        int at = 0;
        const auto put = [&](auto part) {
            if constexpr (shape<decltype(part)>::size == 1) v[at++] = static_cast<element>(part);
            else
                for (int i = 0; i < shape<decltype(part)>::size; i++)
                    v[at++] = static_cast<element>(part[i]);
        };
        (put(parts), ...);
    }
    return v;
}

} // namespace emulated

namespace metal {
namespace emulated = ::emulated; /* for `metal::float4(x)` */
}

/* The same bits as another type of the same size. */
template <typename To, typename From> To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type changes no size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

#define char2(...) emulated::vector_of<metal::char2>(__VA_ARGS__)
#define char3(...) emulated::vector_of<metal::char3>(__VA_ARGS__)
#define char4(...) emulated::vector_of<metal::char4>(__VA_ARGS__)
#define uchar2(...) emulated::vector_of<metal::uchar2>(__VA_ARGS__)
#define uchar3(...) emulated::vector_of<metal::uchar3>(__VA_ARGS__)
#define uchar4(...) emulated::vector_of<metal::uchar4>(__VA_ARGS__)
#define short2(...) emulated::vector_of<metal::short2>(__VA_ARGS__)
#define short3(...) emulated::vector_of<metal::short3>(__VA_ARGS__)
#define short4(...) emulated::vector_of<metal::short4>(__VA_ARGS__)
#define ushort2(...) emulated::vector_of<metal::ushort2>(__VA_ARGS__)
#define ushort3(...) emulated::vector_of<metal::ushort3>(__VA_ARGS__)
#define ushort4(...) emulated::vector_of<metal::ushort4>(__VA_ARGS__)
#define int2(...) emulated::vector_of<metal::int2>(__VA_ARGS__)
#define int3(...) emulated::vector_of<metal::int3>(__VA_ARGS__)
#define int4(...) emulated::vector_of<metal::int4>(__VA_ARGS__)
#define uint2(...) emulated::vector_of<metal::uint2>(__VA_ARGS__)
#define uint3(...) emulated::vector_of<metal::uint3>(__VA_ARGS__)
#define uint4(...) emulated::vector_of<metal::uint4>(__VA_ARGS__)
#define long2(...) emulated::vector_of<metal::long2>(__VA_ARGS__)
#define long3(...) emulated::vector_of<metal::long3>(__VA_ARGS__)
#define long4(...) emulated::vector_of<metal::long4>(__VA_ARGS__)
#define ulong2(...) emulated::vector_of<metal::ulong2>(__VA_ARGS__)
#define ulong3(...) emulated::vector_of<metal::ulong3>(__VA_ARGS__)
#define ulong4(...) emulated::vector_of<metal::ulong4>(__VA_ARGS__)
#define float2(...) emulated::vector_of<metal::float2>(__VA_ARGS__)
#define float3(...) emulated::vector_of<metal::float3>(__VA_ARGS__)
#define float4(...) emulated::vector_of<metal::float4>(__VA_ARGS__)

#endif
