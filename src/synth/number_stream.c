/* Seeding of the number streams, and the one irrational function the generator needs. */
#include "synth/number_stream.h"

#include <math.h>
#include <string.h>

static uint64_t fnv1a(uint64_t hash, const char *bytes, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001B3);
    return hash;
}

plumb__number_stream plumb__number_stream_of_parts(uint64_t seed, const char *name,
                                                   int64_t name_size, const char *suffix) {
    uint64_t hash = fnv1a(UINT64_C(0xCBF29CE484222325), name, name_size);
    hash = fnv1a(hash, suffix, (int64_t)strlen(suffix));
    return (plumb__number_stream){hash ^ seed * UINT64_C(0xD1B54A32D192ED03)};
}

plumb__number_stream plumb__number_stream_of(uint64_t seed, const char *name) {
    return plumb__number_stream_of_parts(seed, name, (int64_t)strlen(name), "");
}

double plumb__inverse_sqrt(int64_t n) {
    double x = (double)n;
    double y = 1.0 / sqrt(x);
    /* One Newton step whose residual 1 - x*y*y is kept to twice the precision: y is within an ulp
     * already, so the corrected value rounds to the nearest double. */
    double square = y * y;
    double square_low = fma(y, y, -square);
    double product = x * square;
    double product_low = fma(x, square, -product);
    double residual = (1.0 - product) - product_low - x * square_low;
    return y + 0.5 * y * residual;
}
