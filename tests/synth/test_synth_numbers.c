/* Number streams against published vectors; storage codes against a search for the nearest value.
 */
#include <math.h>

#include "synth/number_stream.h"
#include "synth/storage_codes.h"
#include "synth/tensor_values.h"
#include "t.h"

/* SplitMix64's first outputs from state 0, as its author published them. */
static void words(void) {
    static const uint64_t expected[] = {UINT64_C(0xE220A8397B1DCDAF), UINT64_C(0x6E789E6AA1B965F4),
                                        UINT64_C(0x06C45D188009454F), UINT64_C(0xF88BB8A8724C81EC),
                                        UINT64_C(0x1B39896A51A8749B)};
    for (int i = 0; i < 5; i++) {
        uint64_t word = plumb__stream_word((plumb__number_stream){0}, i);
        T_CHECK(word == expected[i], "word %d: %" PRIx64, i, word);
    }
}

/* FNV-1a test vectors; the seed enters by exclusive or, times an odd constant. */
static void keys(void) {
    static const struct {
        const char *name;
        uint64_t hash;
    } cases[] = {{"", UINT64_C(0xcbf29ce484222325)},
                 {"a", UINT64_C(0xaf63dc4c8601ec8c)},
                 {"foobar", UINT64_C(0x85944171f73967e8)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t key = plumb__number_stream_of(0, cases[i].name).key;
        T_CHECK(key == cases[i].hash, "'%s': %" PRIx64, cases[i].name, key);
        key ^= plumb__number_stream_of(1, cases[i].name).key;
        T_CHECK(key == UINT64_C(0xD1B54A32D192ED03), "'%s': %" PRIx64, cases[i].name, key);
    }
    T_CHECK(plumb__number_stream_of_parts(5, "foolish", 3, "bar").key ==
                plumb__number_stream_of(5, "foobar").key,
            "a name in two parts");
}

/* Values of Python's n ** -0.5. */
static void inverse_roots(void) {
    static const struct {
        int64_t n;
        double root;
    } cases[] = {{2, 0x1.6a09e667f3bcdp-1},      {3, 0x1.279a74590331cp-1},
                 {5, 0x1.c9f25c5bfedd9p-2},      {7, 0x1.83091e6a7f7e7p-2},
                 {10, 0x1.43d136248490fp-2},     {32, 0x1.6a09e667f3bcdp-3},
                 {48, 0x1.279a74590331cp-3},     {64, 0x1.0p-3},
                 {96, 0x1.a20bd700c2c3ep-4},     {384, 0x1.a20bd700c2c3ep-5},
                 {588, 0x1.51d517412838ep-5},    {2304, 0x1.5555555555555p-6},
                 {2816, 0x1.34bf63d156826p-6},   {5376, 0x1.bee9056fb9c39p-7},
                 {15360, 0x1.08654a2d4f6dbp-7},  {20480, 0x1.c9f25c5bfedd9p-8},
                 {129280, 0x1.6c8a0a0625448p-9}, {99999999, 0x1.a36e2ed4f365dp-14}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double root = plumb__inverse_sqrt(cases[i].n);
        T_CHECK(root == cases[i].root, "%" PRId64 ": %a", cases[i].n, root);
    }
}

static double e4m3_value(int code) {
    int mantissa = code & 7, exponent = code >> 3;
    return exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10);
}

static double e2m1_value(int code) {
    int mantissa = code & 1, exponent = code >> 1;
    return exponent == 0 ? 0.5 * mantissa : ldexp(2 + mantissa, exponent - 2);
}

typedef uint8_t encode_fn(double value);
typedef double decode_fn(int code);

/* Around every code and every midpoint between two: the nearer one, and the even one of a tie. */
static void check_codes(encode_fn *encode, decode_fn *decode, int largest, uint8_t sign) {
    for (int code = 0; code < largest; code++) {
        double low = decode(code), high = decode(code + 1), middle = (low + high) / 2;
        int tie = code % 2 == 0 ? code : code + 1;
        T_CHECK(encode(low) == code, "%d: %d", code, encode(low));
        T_CHECK(encode(middle) == tie, "tie %d: %d", code, encode(middle));
        T_CHECK(encode(nextafter(middle, 0.0)) == code, "below tie %d", code);
        T_CHECK(encode(nextafter(middle, high)) == code + 1, "above tie %d", code);
        T_CHECK(encode(-middle) == (tie | sign), "minus tie %d", code);
    }
    T_CHECK(encode(decode(largest)) == largest, "largest");
    T_CHECK(encode(1e300) == largest && encode(-1e300) == (largest | sign), "clipped");
    T_CHECK(encode(-0.0) == sign && encode(-1e-300) == sign, "the sign of zero");
}

static void codes(void) {
    check_codes(plumb__e4m3_code, e4m3_value, 126, 0x80);
    check_codes(plumb__e2m1_code, e2m1_value, 7, 0x08);
    T_CHECK(plumb__bf16_code(1.0) == 0x3F80 && plumb__bf16_code(-2.0) == 0xC000, "exact values");
    T_CHECK(plumb__bf16_code(0x1.01p0) == 0x3F80 && plumb__bf16_code(0x1.03p0) == 0x3F82, "ties");
    /* Just above a tie of BF16, but a float of 24 bits cannot tell: the two casts give the tie. */
    T_CHECK(plumb__bf16_code(0x1.0100000001p0) == 0x3F80, "two roundings");
}

/* The second tile of 40 columns is cut off; scales are the smallest that fit. */
static void tiles(void) {
    enum { ROWS = 32, COLUMNS = 40 };
    double values[ROWS * COLUMNS] = {0};
    uint8_t code[ROWS * COLUMNS], scale[2];
    values[31 * COLUMNS + 31] = -448.0; /* last of the first tile: scale 1 */
    values[5 * COLUMNS + 32] = 448.5;   /* first column of the second: too large for 1 */
    plumb__fp8_tile_row(values, ROWS, COLUMNS, code, scale);
    T_CHECK(scale[0] == 127 && scale[1] == 128, "%d %d", scale[0], scale[1]);
    T_CHECK(code[31 * COLUMNS + 31] == 0xFE && code[5 * COLUMNS + 32] == 0x76, "%x %x",
            code[31 * COLUMNS + 31], code[5 * COLUMNS + 32]);
    memset(values, 0, sizeof values);
    plumb__fp8_tile_row(values, 1, COLUMNS, code, scale);
    T_CHECK(scale[1] == 127 - 48, "%d: 448 * 2^-48 is the first above 2^-40", scale[1]);

    double row[PLUMB_SCALE_GROUP] = {0.25, -6.0, 0.0, 1.0};
    plumb__fp4_row(row, PLUMB_SCALE_GROUP, code, scale);
    T_CHECK(scale[0] == 127 && code[0] == 0xF0 && code[1] == 0x20, "%d %x %x", scale[0], code[0],
            code[1]);
}

/* Drawn experts: any stripe can be made alone, and codes times scales have the asked-for spread. */
static void drawn(void) {
    enum { ROWS = 64, COLUMNS = 96, BYTES = ROWS * COLUMNS / 2, GROUPS = ROWS * COLUMNS / 32 };
    plumb__recipe recipe = {.spread = 0.02};
    plumb__tensor_source source = plumb__tensor_source_make(
        7, "layers.0.ffn.experts.3.w1.weight", PLUMB_ENCODE_FP4_DRAWN, ROWS, COLUMNS, &recipe);
    uint8_t code[BYTES], scale[GROUPS], again[BYTES / 2], scale_again[GROUPS / 2];
    plumb__tensor_stripe(&source, 0, 32, NULL, code, scale);
    plumb__tensor_stripe(&source, 32, 64, NULL, code + BYTES / 2, scale + GROUPS / 2);
    plumb__tensor_stripe(&source, 32, 64, NULL, again, scale_again);
    T_CHECK(!memcmp(code + BYTES / 2, again, sizeof again), "codes of one stripe");
    T_CHECK(!memcmp(scale + GROUPS / 2, scale_again, sizeof scale_again), "scales of one stripe");
    T_CHECK(memcmp(code, again, sizeof again), "codes of stripes differ");
    T_CHECK(memcmp(scale, scale_again, sizeof scale_again), "scales of stripes differ");
    double square = 0.0;
    for (int i = 0; i < BYTES; i++) {
        double unit = ldexp(1.0, scale[i / 16] - 127);
        double even = e2m1_value(code[i] & 7) * unit, odd = e2m1_value(code[i] >> 4 & 7) * unit;
        square += even * even + odd * odd;
    }
    double spread = sqrt(square / (2 * BYTES));
    T_CHECK(spread > 0.014 && spread < 0.04, "%g", spread);
}

T_MAIN({"words", words}, {"keys", keys}, {"inverse_roots", inverse_roots}, {"codes", codes},
       {"tiles", tiles}, {"drawn", drawn})
