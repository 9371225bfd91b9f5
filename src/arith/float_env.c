/* The thread's float modes, and the start-up proof that this machine and its libm keep to them.
 * The modes are two instructions, so the targets share a file. */
#include "arith/float_env.h"

#include "arith/portable.h"
#include "base/error.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
/* Every exception masked, flush to zero, denormals are zero, round to nearest. */
enum { MXCSR_CONTRACT = 0x1F80 | 0x8000 | 0x0040 };

void plumb__float_env_enter(uint64_t *saved) {
    *saved = _mm_getcsr();
    _mm_setcsr(MXCSR_CONTRACT);
}

void plumb__float_env_leave(uint64_t saved) { _mm_setcsr((unsigned)saved); }

#elif defined(__aarch64__)
static const uint64_t FPCR_CONTRACT = 1u << 24; /* FZ alone: inputs and outputs, round to nearest */

void plumb__float_env_enter(uint64_t *saved) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    *saved = mode;
    __asm__ volatile("msr fpcr, %0" : : "r"(FPCR_CONTRACT) : "memory");
}

void plumb__float_env_leave(uint64_t saved) {
    __asm__ volatile("msr fpcr, %0" : : "r"(saved) : "memory");
}

#else
/* No flush mode is known here: the self test refuses the machine if it does not flush by itself. */
void plumb__float_env_enter(uint64_t *saved) { *saved = 0; }

void plumb__float_env_leave(uint64_t saved) { (void)saved; }
#endif

/* Operands and results as bits, so that no comparison is done under the modes that it tests. */
typedef struct env_case {
    const char *what;
    char operation; /* 'f' a*b+c, '*' a*b, '/' a/b, 's' sqrt a, '+' a+b */
    uint32_t a, b, c, result;
} env_case;

static const env_case env_cases[] = {
    /* (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24 only when the product is not rounded */
    {"fused fmaf", 'f', 0x3F800800, 0x3F800800, 0xBF801000, 0x33800000},
    /* 97 * 172961 = 2^24 + 1 lies between two floats; 2^-40 more or less decides, and a sum that is
     * first rounded to double forgets it */
    {"correctly rounded fmaf", 'f', 0x42C20000, 0x4828E840, 0x2B800000, 0x4B800001},
    {"correctly rounded fmaf", 'f', 0x42C20000, 0x4828E840, 0xAB800000, 0x4B800000},
    {"correctly rounded fmaf", 'f', 0xC2C20000, 0x4828E840, 0xAB800000, 0xCB800001},
    /* 3 * 5592407 = 2^24 + 5, whose even neighbour is below */
    {"correctly rounded fmaf", 'f', 0x40400000, 0x4AAAAAAE, 0x2B800000, 0x4B800003},
    {"correctly rounded fmaf", 'f', 0x40400000, 0x4AAAAAAE, 0xAB800000, 0x4B800002},
    {"fmaf that flushes its result", 'f', 0x1C800000, 0x1C800000, 0x00000000, 0x00000000},
    {"fmaf that flushes its input", 'f', 0x007FFFFF, 0x4B800000, 0x00000001, 0x00000000},
    {"correctly rounded division", '/', 0x3F800000, 0x40400000, 0, 0x3EAAAAAB},
    {"correctly rounded division", '/', 0x3F7FFFFF, 0x3F7FFFFE, 0, 0x3F800001},
    {"correctly rounded square root", 's', 0x40000000, 0, 0, 0x3FB504F3},
    {"correctly rounded square root", 's', 0x3F7FFFFF, 0, 0, 0x3F7FFFFF},
    {"flush of results to zero", '*', 0x00800000, 0x3F000000, 0, 0x00000000},
    {"flush of results to zero of their sign", '*', 0x80800000, 0x3F000000, 0, 0x80000000},
    {"subnormal inputs that read as zero", '*', 0x007FFFFF, 0x4B800000, 0, 0x00000000},
    {"subnormal inputs that read as zero", '+', 0x00400000, 0x00400000, 0, 0x00000000},
    {"rounding to nearest even", '+', 0x4B800000, 0x3F800000, 0, 0x4B800000},
    {"rounding to nearest even", '+', 0xCB800001, 0xBF800000, 0, 0xCB800002},
};

static uint32_t env_compute(const env_case *t) {
    /* volatile: to be computed here and now, not by the compiler under its own modes */
    const volatile float a = plumb__float_of(t->a), b = plumb__float_of(t->b);
    const volatile float c = plumb__float_of(t->c);
    volatile float y = 0.0f;
    switch (t->operation) {
    case 'f': y = plumb__fma(a, b, c); break;
    case '*': y = a * b; break;
    case '/': y = a / b; break;
    case 's': y = plumb__sqrt(a); break;
    default: y = a + b; break;
    }
    return plumb__bits_of(y);
}

plumb_status plumb__float_env_self_test(plumb_error *err) {
    const env_case *failed = NULL;
    uint32_t found = 0;
    uint64_t saved;
    plumb__float_env_enter(&saved);
    for (size_t i = 0; i < sizeof env_cases / sizeof env_cases[0] && !failed; i++) {
        found = env_compute(&env_cases[i]);
        if (found != env_cases[i].result) failed = &env_cases[i];
    }
    plumb__float_env_leave(saved);
    if (!failed) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "float arithmetic of this machine", -1,
                       plumb__format("bits 0x%08X", (unsigned)found).s, "%s (0x%08X)", failed->what,
                       (unsigned)failed->result);
}
