"""Words of MSL 3.1: keywords, types, attributes, and the part of its library that kernels here use."""
import re

SPACES = {"device", "constant", "thread", "threadgroup"}
OTHER_SPACES = {"threadgroup_imageblock", "ray_data", "object_data"}
FUNCTION_KINDS = {"kernel", "vertex", "fragment"}

# ---- Types (2.1 to 2.6)

LONE = {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat", "float"}
INTEGERS = {f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)}
VECTORS = {f"{t}{n}" for t in LONE for n in (2, 3, 4)}
PACKED = {f"packed_{v}" for v in VECTORS}
MATRICES = {f"{t}{n}x{m}" for t in ("half", "float") for n in (2, 3, 4) for m in (2, 3, 4)}
SCALARS = LONE | INTEGERS | {"size_t", "ptrdiff_t"}
ATOMICS = {"atomic_int", "atomic_uint"}
OTHER_ATOMICS = {"atomic_bool", "atomic_float", "atomic_long", "atomic_ulong", "atomic"}
ABSENT_TYPES = {"double"}
LIBRARY_TYPES = {"mem_flags", "memory_order", "simd_vote"}
INNER_TYPES = {("simd_vote", "vote_t")}
LIBRARY_VALUES = {("mem_flags", f"mem_{m}") for m in ("none", "device", "threadgroup", "texture")}
TYPES = SCALARS | VECTORS | PACKED | MATRICES | ATOMICS | OTHER_ATOMICS | LIBRARY_TYPES | ABSENT_TYPES | {
    "void", "signed", "unsigned", "auto"}
TEMPLATES = {"vec", "packed_vec", "matrix", "array", "as_type", "atomic"}
CASTS = {"static_cast", "reinterpret_cast", "const_cast"}

# ---- Reserved names

KEYWORDS = set("""alignas alignof asm auto bool break case catch char char16_t char32_t class const
    constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator
    private protected public register reinterpret_cast return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename union
    unsigned using virtual void volatile wchar_t while
    and and_eq bitand bitor compl not not_eq or or_eq xor xor_eq""".split())
TEXTURES = {f"{kind}{shape}" for kind in ("texture", "depth")
            for shape in ("1d", "1d_array", "2d", "2d_array", "2d_ms", "2d_ms_array", "3d", "cube", "cube_array",
                          "_buffer")}
RESERVED = (KEYWORDS | TYPES | TEMPLATES | SPACES | OTHER_SPACES | FUNCTION_KINDS | TEXTURES
            | {"metal", "sampler", "imageblock", "ray", "defined"}) - {"memory_order"}


def is_reserved(name):
    """Names that start with two underscores, or one and a capital, are the compiler's."""
    return name in RESERVED or re.match(r"__|_[A-Z]", name) is not None


# C, and C++ after C++14
FOREIGN = {"restrict", "_Bool", "_Static_assert", "_Generic", "_Alignas", "_Alignof", "_Noreturn", "_Atomic",
           "__restrict", "concept", "requires", "co_await", "co_yield", "co_return", "consteval", "constinit"}
# What MSL leaves out of C++ (1.5.4), by word
ABSENT_WORDS = {"dynamic_cast": "dynamic-cast", "typeid": "typeid", "new": "new-delete", "delete": "new-delete",
                "noexcept": "noexcept", "goto": "goto", "register": "storage", "thread_local": "storage",
                "virtual": "virtual", "try": "exceptions", "catch": "exceptions", "throw": "exceptions",
                "asm": "asm", "__asm__": "asm", "__asm": "asm"}

# ---- Attributes of a kernel's parameters (table 5.8): how many components they may have

COUNT = ("dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup "
         "quadgroup_index_in_threadgroup quadgroups_per_threadgroup simdgroup_index_in_threadgroup "
         "simdgroups_per_threadgroup thread_index_in_quadgroup thread_index_in_simdgroup "
         "thread_index_in_threadgroup threads_per_simdgroup").split()
POSITION = ("dispatch_threads_per_threadgroup grid_origin grid_size thread_position_in_grid "
            "thread_position_in_threadgroup threadgroup_position_in_grid threadgroups_per_grid threads_per_grid "
            "threads_per_threadgroup").split()
BUILT_INS = {**{name: (1,) for name in COUNT}, **{name: (1, 2, 3) for name in POSITION}}
MAX_INDEX = 30

# ---- The library

ATOMIC_FUNCTIONS = {"atomic_store_explicit", "atomic_load_explicit", "atomic_exchange_explicit",
                    "atomic_compare_exchange_weak_explicit"} | {
    f"atomic_fetch_{key}_explicit" for key in ("add", "and", "max", "min", "or", "sub", "xor")}
ATOMIC_NAME = re.compile(r"atomic_(?!int$|uint$)\w+")
# Reductions in an order of the compiler's or the machine's choice.  Any, all, minimum and maximum have none.
LANE_ORDER = re.compile(r"(simd|quad)_(sum|product|prefix_\w+)|simdgroup_(multiply\w*|matrix|load|store)")
INEXACT = set("""acos acosh asin asinh atan atan2 atanh cos cosh cospi exp exp2 exp10 log log2 log10 pow powr
    sin sincos sinh sinpi tan tanh tanpi rsqrt fmod mad length distance normalize dot cross mix smoothstep
    fast_length fast_distance fast_normalize faceforward reflect refract""".split())
EXACT = set("""fma fabs abs floor ceil trunc rint round copysign fmin fmax min max clamp select sign
    isnan isinf isfinite isnormal signbit all any ldexp frexp clz ctz popcount reverse_bits rotate
    mulhi madhi absdiff hadd addsat subsat extract_bits insert_bits""".split())
LANES = {f"{g}_{f}" for g in ("simd", "quad") for f in (
    "shuffle shuffle_down shuffle_up shuffle_xor shuffle_rotate_down shuffle_rotate_up shuffle_and_fill_down "
    "shuffle_and_fill_up broadcast broadcast_first any all ballot active_threads_mask is_first max min "
    "and or xor is_helper_thread").split()}
BARRIERS = {"threadgroup_barrier", "simdgroup_barrier"}
LIBRARY_CALLS = EXACT | LANES | BARRIERS | ATOMIC_FUNCTIONS
OTHER_FUNCTIONS = set("""determinant distance_squared divide fdim fract ilogb length_squared max3 median3 min3 modf
    nan nextafter outer_product saturate sqrt step transpose""".split())


def is_library_function(name):
    return name in LIBRARY_CALLS | INEXACT | OTHER_FUNCTIONS or bool(
        LANE_ORDER.fullmatch(name) or ATOMIC_NAME.fullmatch(name))
