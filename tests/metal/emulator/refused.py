#!/usr/bin/env python3
"""What the emulator's library of MSL must not let through: every kernel below has to be refused, with a message
that says why, and the same kernel without its fault has to be taken.

    refused.py CLANGXX FLAGS...        (those that kernels are compiled with)"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import make_kernels

KERNEL = """kernel void k%(number)d(device float *x [[buffer(0)]], device const float *c [[buffer(1)]],
              constant uint &n [[buffer(2)]], device atomic_uint *a [[buffer(3)]],
              threadgroup float *t [[threadgroup(0)]],
              uint i [[thread_index_in_threadgroup]]%(parameter)s) {
    x[i] = c[i] + t[n] + float(atomic_load_explicit(a, memory_order_relaxed));
    %(body)s
}
"""
BEGINNING = "#include <metal_stdlib>\nusing namespace metal;\n"
# body, what the message says
BODIES = [
    # functions that are not exact, or whose order MSL does not state
    ("x[i] = exp(x[i]);", "'exp'"), ("x[i] = metal::exp(x[i]);", "'exp'"),
    ("x[i] = log(x[i]);", "'log'"), ("x[i] = pow(x[i], 2.0f);", "'pow'"),
    ("x[i] = rsqrt(x[i]);", "'rsqrt'"), ("x[i] = fast::sqrt(x[i]);", "'fast'"),
    ("x[i] = sqrt(x[i]);", "'sqrt'"), ("x[i] = dot(float2(x[i]), float2(1.0f));", "'dot'"),
    ("x[i] = simd_sum(x[i]);", "'simd_sum'"), ("x[i] = simd_product(x[i]);", "'simd_product'"),
    ("x[i] = simd_prefix_inclusive_sum(x[i]);", "'simd_prefix_inclusive_sum'"),
    # no double
    ("double d = 1; x[i] = d;", "poisoned"), ("x[i] = x[i] * 0.5;", "increases floating-point precision"),
    # memory that is read only
    ("c[i] = 1.0f;", "read-only"), ("n = 2;", "const"), ("*(device float *)(c + i) = 1.0f;", "drops const"),
        # barriers that order nothing
    ("threadgroup_barrier(mem_flags::mem_none);", "'mem_none'"), ("threadgroup_barrier();", "no matching"),
    # atomics: 32 bits, relaxed, through functions
    ("atomic_fetch_add_explicit(a, 1, memory_order_seq_cst);", "'memory_order_seq_cst'"),
    ("atomic_ulong *b = nullptr;", "'atomic_ulong'"), ("atomic<float> f;", "atomic words are int and uint"),
    ("*a = 1;", "no viable"), ("(*a)++;", "cannot increment"),
    ("atomic_uint b = *a;", "deleted"), ("a[1] = a[0];", "deleted"),
    # types
    ("x[i] = float(min(1, 2u));", "no matching"), ("float4 v = float4(1.0f, 2.0f);", "components"),
    ("uint u = as_type<uint>(short(1));", "as_type changes no size"), ("std::size_t s = 1;", "poisoned"),
    ("float4 v = float4(1.0f) + int4(1);", "cannot convert"), ("int4 v = float4(1.0f);", "cannot initialize"),
    ("uint wide[n]; wide[0] = 1; throw wide[0];", "exceptions"),
]
# Found before a compiler sees the text: body, parameters.
STORAGE = [
    ("threadgroup float sums[32]; sums[i] = 1.0f;", "sums: threadgroup memory must be an argument"),
    ("threadgroup atomic_uint count; x[i] = 1.0f;", "count: threadgroup memory must be an argument"),
]
PARAMETERS = [
    (", uint j", "has 0 attributes"), (", uint j [[thread_position]]", "[[thread_position]] is not known"),
    (", device int *y [[buffer(3)]]", "[[buffer]] with index 3 twice"),
    (", device int *y [[buffer(31)]]", "expected 0 to 30"), (", device int *y [[buffer]]", "has index"),
    (", const int *y [[buffer(4)]]", "neither device nor constant"),
    (", device int *y [[threadgroup(4)]]", "is not threadgroup memory"),
    (", int y [[buffer(4)]]", "neither device nor constant"),
]
TAKEN = [
    "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    "threadgroup float *part = t + 4; x[i] = part[0]; threadgroup const float *p = t; x[i] = p[0];",
    "x[i] = float4(float2(1.0f), 2.0f, x[i]).w + metal::float2(3.0f).y;",
    "x[i] = float(min(1u, n)) + max(x[i], 2.0f) + clamp(x[i], 0.0f, 1.0f) + fmin(x[i], 1.0f);",
    "uint4 v = uint4(n) + 1; v.xy = v.zw; x[i] = float(v.x + popcount(n) + clz(n) + ctz(n));",
    "float4 f = *(device const float4 *)(c + 4 * i); x[i] = f.x + float4(int4(1, 2, 3, 4)).y;",
    "x[i] = select(1.0f, 2.0f, n > 1) * copysign(1.0f, x[i]) + float(mulhi(n, n)) + abs(x[i]);",
    "packed_float3 p = float3(1.0f); x[i] = float4(packed_float2(float2(n)), p[1], 0).z; p[0] = 2.0f;",
    "x[i] = float3(*(device const packed_float3 *)(c + 1)).y + float(as_type<uint>(uchar4(packed_uchar4())));",
    "ushort s = ushort(n); uchar u = uchar(s); x[i] = float(u) + as_type<float>(n) + float(long(n));",
]


def kernel(number, parameter="", body=""):
    return KERNEL % {"number": number, "parameter": parameter, "body": body}


def generator_message(compiler, path, text):
    """What the generator says; None: it takes the text."""
    path.write_text(BEGINNING + text, encoding="utf-8")
    try:
        make_kernels.kernels(make_kernels.preprocessed(compiler, path))
    except make_kernels.Fault as fault:
        return str(fault)
    return None


def errors(compiler, flags, path, bodies):
    """Compiles one kernel for each body; the errors in each."""
    text = BEGINNING + "".join(kernel(number, body=body) for number, body in enumerate(bodies))
    path.write_text(text, encoding="utf-8")
    source = path.with_suffix(".cpp")
    found = make_kernels.kernels(make_kernels.preprocessed(compiler, path))
    source.write_text(make_kernels.source(path, found, text), encoding="utf-8")
    command = [compiler, "-std=c++17", "-fsyntax-only", "-ferror-limit=0", *flags, str(source)]
    said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    lines_before, lines = BEGINNING.count("\n"), KERNEL.count("\n")
    messages = ["" for _ in bodies]
    # An error of the library's templates is named by the line that asked for it.
    for block in re.split(r"(?m)^(?=\S+?:\d+:\d+: (?:fatal )?error: )", said):
        place = re.search(re.escape(str(path)) + r":(\d+):", block)
        if "error: " in block and place:
            messages[(int(place[1]) - 1 - lines_before) // lines] += block
    return messages


def main():
    compiler, flags = sys.argv[1], sys.argv[2:]
    results = []  # (as expected, case, what was said)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.metal"
        cases = [(kernel(0, body=body), words) for body, words in STORAGE]
        cases += [(kernel(0, parameter=parameter), words) for parameter, words in PARAMETERS]
        cases += [(kernel(7) + kernel(7), "kernel k7: defined twice"), ("", "no kernel in the text")]
        for text, words in cases:
            said = generator_message(compiler, path, text)
            results.append((said is not None and words in said, text, said))
        said = errors(compiler, flags, path, [body for body, _ in BODIES])
        results += [(words in message, body, message) for (body, words), message in zip(BODIES, said)]
        said = errors(compiler, flags, path, TAKEN)
        results += [(message == "", body, message) for body, message in zip(TAKEN, said)]
    for ok, case, message in results:
        if not ok:
            print(f"FAIL {case}\n{message or 'not refused'}")
    failed = sum(not ok for ok, _, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
