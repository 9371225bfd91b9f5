/* Stored forms: exact and reversible.  FP8 over every code and scale against a second writing in
 * double and a table of exact fractions; MXFP4 against ggml's definition of the block. */
#include "format/stored_form.h"

#include "arith/float_env.h"
#include "arith/formats.h"
#include "goldens.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>

#define ABSENT 0x7FFFFFFF

static uint32_t bits_at(const float *values, int64_t i) {
    uint32_t bits;
    memcpy(&bits, values + i, sizeof bits);
    return bits;
}

/* The value in double, NaN where code or scale is. */
static double value_of(int code, int scale) {
    int exponent = code >> 3 & 15, mantissa = code & 7;
    double magnitude = exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
    if ((code & 127) == 127 || scale == 255) magnitude = (double)NAN;
    return ldexp(code & 128 ? -magnitude : magnitude, scale - 127);
}

/* Each code under each scale, alone in a row: what widens narrows to itself, the rest is reported.
 */
static void every_code_and_scale(void) {
    for (int scale = 0; scale < 256; scale++)
        for (int code = 0; code < 256; code++) {
            double value = value_of(code, scale);
            bool fits = fabs(value) <= 0x1.fffffep127;
            uint8_t from = (uint8_t)code, tile = (uint8_t)scale, back = 0;
            float wide = 0;
            int64_t unfit = plumb__fp8_widen(&from, &tile, 0, 1, 1, &wide);
            T_CHECK(unfit == (fits ? -1 : 0), "code %d, scale %d", code, scale);
            if (!fits) continue;
            T_CHECK((double)wide == value && !signbit(wide) == !signbit(value), "code %d, scale %d",
                    code, scale);
            T_CHECK(plumb__fp8_narrow(&wide, &tile, 0, 1, 1, &back) == -1 && back == code,
                    "code %d, scale %d: %d", code, scale, back);
        }
}

/* All codes of a scale in one row, where they come in strips; NaN codes give way to 0. */
static void every_scale_in_strips(void) {
    for (int scale = 0; scale < 256; scale++) {
        uint8_t codes[256], scales[8], back[256];
        float values[256];
        memset(scales, scale, sizeof scales);
        for (int i = 0; i < 256; i++)
            codes[i] = fabs(value_of(i, scale)) <= 0x1.fffffep127 ? (uint8_t)i : 0;
        int64_t unfit = plumb__fp8_widen(codes, scales, 0, 1, 256, values);
        T_CHECK(unfit == (scale == 255 ? 0 : -1), "scale %d: %" PRId64, scale, unfit);
        if (scale == 255) continue;
        for (int i = 0; i < 256; i++) {
            double value = value_of(codes[i], scale);
            T_CHECK((double)values[i] == value && !signbit(values[i]) == !signbit(value),
                    "scale %d, code %d", scale, i);
        }
        T_CHECK(plumb__fp8_narrow(values, scales, 0, 1, 256, back) == -1 &&
                    !memcmp(codes, back, 256),
                "scale %d", scale);
    }
}

static void fractions(void) {
    goldens *g = goldens_open("stored_forms/forms.safetensors");
    golden scales = goldens_get(g, "fp8.scales", "U8"), bits = goldens_get(g, "fp8.bits", "I32");
    for (int64_t s = 0; s < scales.count; s++)
        for (int code = 0; code < 256; code++) {
            uint8_t from = (uint8_t)code;
            float wide = 0;
            int32_t wanted = bits.i32[s * 256 + code];
            bool fits = plumb__fp8_widen(&from, scales.u8 + s, 0, 1, 1, &wide) == -1;
            T_CHECK(fits == (wanted != ABSENT) && (!fits || bits_at(&wide, 0) == (uint32_t)wanted),
                    "code %d, scale %d", code, scales.u8[s]);
        }
    goldens_close(g);
}

/* Whatever is not a code's product is reported: next to each product, and any bits at all. */
static void no_other_value_narrows(void) {
    uint32_t any = 1;
    for (int scale = 0; scale < 256; scale++) {
        uint8_t tile = (uint8_t)scale, code;
        double values[256];
        for (int c = 0; c < 256; c++) values[c] = value_of(c, scale);
        for (int i = 0; i < 1280; i++) {
            any = any * 1664525u + 1013904223u;
            uint32_t bits = any;
            double near = values[i & 255];
            float product = (float)near;
            if (i < 1024 && fabs(near) <= 0x1.fffffep127)
                bits = bits_at(&product, 0) ^ 1u << (i >> 8) * 8;
            if (i == 1279) bits = ((uint32_t)scale - 127u) << 23; /* code 0 without its own case */
            float value;
            memcpy(&value, &bits, sizeof value);
            bool is_one = false;
            for (int c = 0; c < 256; c++)
                is_one |= values[c] == (double)value && !signbit(values[c]) == !signbit(value);
            T_CHECK((plumb__fp8_narrow(&value, &tile, 0, 1, 1, &code) == -1) == is_one,
                    "scale %d, bits %08x", scale, bits);
        }
    }
}

/* Scales belong to tiles of 32 x 32 of the whole matrix; the last may be narrower; the first value
 * that does not fit is named, wherever it is. */
static void tiles(void) {
    enum { ROWS = 70, COLUMNS = 83, TILES = 3, FIRST = 29, N = (ROWS - FIRST) * COLUMNS };
    static uint8_t codes[ROWS * COLUMNS], back[ROWS * COLUMNS];
    static float values[ROWS * COLUMNS], wide[ROWS * COLUMNS];
    static uint8_t unaligned[sizeof values + 1];
    const uint8_t scales[3 * TILES] = {120, 3, 121, 122, 123, 124, 244, 126, 0};
    for (int i = 0; i < ROWS * COLUMNS; i++) codes[i] = (uint8_t)(i * 7 % 127 | (i & 1) << 7);
    T_CHECK(plumb__fp8_widen(codes + FIRST * COLUMNS, scales, FIRST, ROWS - FIRST, COLUMNS,
                             values) == -1,
            "widen");
    for (int i = FIRST; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double value = value_of(codes[i * COLUMNS + j], scales[i / 32 * TILES + j / 32]);
            T_CHECK((double)values[(i - FIRST) * COLUMNS + j] == value, "row %d column %d", i, j);
        }
    memcpy(unaligned + 1, values, sizeof values);
    T_CHECK(plumb__fp8_narrow((const float *)(const void *)(unaligned + 1), scales, FIRST,
                              ROWS - FIRST, COLUMNS, back) == -1 &&
            !memcmp(back, codes + FIRST * COLUMNS, N),
            "narrow");
    for (int64_t i = N - 1; i >= 0; i -= 61) { /* each is before those of the rounds before */
        codes[FIRST * COLUMNS + i] = i & 1 ? 0x7F : 0xFF;
        values[i] *= 1.03125f;
        if (values[i] == 0) values[i] = 1e-30f;
        T_CHECK(plumb__fp8_widen(codes + FIRST * COLUMNS, scales, FIRST, ROWS - FIRST, COLUMNS,
                                 wide) == i,
                "code %" PRId64, i);
        T_CHECK(plumb__fp8_narrow(values, scales, FIRST, ROWS - FIRST, COLUMNS, back) == i,
                "value %" PRId64, i);
    }
}

/* A worker's float mode changes nothing: subnormals are numbers here. */
static void float_mode(void) {
    uint8_t code = 0x81, scale = 0, back = 0;
    float wide = 0;
    uint64_t saved;
    plumb__float_env_enter(&saved);
    int64_t unfit = plumb__fp8_widen(&code, &scale, 0, 1, 1, &wide);
    int64_t other = plumb__fp8_narrow(&wide, &scale, 0, 1, 1, &back);
    plumb__float_env_leave(saved);
    T_CHECK(unfit == -1 && other == -1 && bits_at(&wide, 0) == (0x80000000u | 1u << 13) &&
            back == code,
            "%08x, code %02x", bits_at(&wide, 0), back);
}

static void bf16(void) {
    static const struct {
        uint32_t bits;
        bool fits;
        const char *what;
    } cases[] = {
        {0x00000000, true, "0"},
        {0x80000000, true, "-0"},
        {0x3F800000, true, "1"},
        {0x3FFF0000, true, "8 significant bits"},
        {0x3F808000, false, "9 significant bits"},
        {0x3F800001, false, "24 significant bits"},
        {0x00010000, true, "2^-133, subnormal in both"},
        {0x80008000, false, "-2^-134, subnormal, half the smallest"},
        {0x00000001, false, "2^-149"},
        {0x00800000, true, "2^-126"},
        {0xFF7F0000, true, "the lowest of bfloat16"},
        {0x7F7FFFFF, false, "the highest of float32"},
        {0x7F800000, true, "infinity"},
        {0x7FC00000, true, "NaN"},
        {0x7F800001, false, "NaN whose payload would go"},
    };
    enum { N = 777 };
    static float values[N], wide[N];
    static uint16_t narrow[N];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int place = 0; place < N; place += 97) {
            for (int i = 0; i < N; i++) values[i] = (float)(i % 256) * 0.5f;
            memcpy(values + place, &cases[c].bits, 4);
            int64_t unfit = plumb__f32_unfit_for_bf16(values, N);
            T_CHECK(unfit == (cases[c].fits ? -1 : place), "%s: %" PRId64, cases[c].what, unfit);
            if (!cases[c].fits) continue;
            plumb__f32_to_bf16(values, N, narrow);
            T_CHECK(narrow[place] == cases[c].bits >> 16, "%s", cases[c].what);
            plumb__bf16_to_f32(narrow, N, wide);
            T_CHECK(!memcmp(values, wide, sizeof values), "%s", cases[c].what);
        }
}

/* ---- MXFP4 ----------------------------------------------------------------------------------- */

/* Published with ggml: twice the values, so the exponent is one less. */
static const int8_t ggml_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static double block_value(const uint8_t *block, int element) {
    int nibble = element < 16 ? block[1 + element] & 15 : block[1 + element - 16] >> 4;
    return ldexp(ggml_values[nibble], block[0] - 128);
}

static double released_value(const uint8_t *codes, int scale, int element) {
    uint8_t code = codes[element / 2] >> (element & 1) * 4 & 15;
    return ldexp((double)plumb__e2m1_decode(code), scale - 127);
}

static void mxfp4_goldens(void) {
    goldens *g = goldens_open("stored_forms/forms.safetensors");
    golden codes = goldens_get(g, "mxfp4.codes", "U8"),
           scales = goldens_get(g, "mxfp4.scales", "U8"),
           blocks = goldens_get(g, "mxfp4.blocks", "U8"),
           values = goldens_get(g, "mxfp4.values", "F64");
    const double *value = values.data;
    uint8_t *to = malloc(blocks.bytes), *code = malloc(codes.bytes), *scale = malloc(scales.bytes);
    plumb__mxfp4_pack(codes.u8, scales.u8, scales.count, to);
    T_CHECK(!memcmp(to, blocks.u8, blocks.bytes), "pack");
    plumb__mxfp4_unpack(blocks.u8, scales.count, code, scale);
    T_CHECK(!memcmp(code, codes.u8, codes.bytes) && !memcmp(scale, scales.u8, scales.bytes),
            "unpack");
    for (int64_t i = 0; i < values.count; i++)
        T_CHECK(released_value(codes.u8 + i / 32 * 16, scales.u8[i / 32], (int)(i % 32)) == value[i] &&
                    block_value(to + i / 32 * 17, (int)(i % 32)) == value[i],
                "element %" PRId64, i);
    free(to), free(code), free(scale);
    goldens_close(g);
}

/* Every byte in every place, in numbers of blocks around those that go at once; in place, with one
 * half wanted only. */
static void mxfp4_bytes(void) {
    enum { MOST = 275 };
    static uint8_t codes[MOST * 16], scales[MOST], blocks[MOST * 17 + 1], code[MOST * 16 + 1],
        scale[MOST + 1];
    static const int64_t counts[] = {0, 1, 15, 16, 17, 31, 32, 33, 256, MOST};
    for (int b = 0; b < MOST; b++) {
        scales[b] = (uint8_t)b;
        for (int j = 0; j < 16; j++) codes[b * 16 + j] = (uint8_t)(b + j * 37);
    }
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t n = counts[c];
        size_t bytes = (size_t)n;
        blocks[n * 17] = code[n * 16] = scale[n] = 0xA5;
        plumb__mxfp4_pack(codes, scales, n, blocks);
        for (int64_t i = 0; i < n * 32; i++)
            T_CHECK(block_value(blocks + i / 32 * 17, (int)(i % 32)) ==
                        released_value(codes + i / 32 * 16, scales[i / 32], (int)(i % 32)),
                    "element %" PRId64 " of %" PRId64 " blocks", i, n);
        plumb__mxfp4_unpack(blocks, n, code, NULL);
        plumb__mxfp4_unpack(blocks, n, NULL, scale);
        T_CHECK(!memcmp(code, codes, 16 * bytes) && !memcmp(scale, scales, bytes), "%" PRId64, n);
        memset(scale, 0, bytes);
        plumb__mxfp4_unpack(blocks, n, blocks, scale);
        T_CHECK(!memcmp(blocks, codes, 16 * bytes) && !memcmp(scale, scales, bytes), "%" PRId64, n);
        T_CHECK(blocks[n * 17] == 0xA5 && code[n * 16] == 0xA5 && scale[n] == 0xA5,
                "%" PRId64 " blocks: written beyond the end", n);
    }
}

static void rows(void) {
    enum { ROWS = 9, CODES = 64, SCALES = 2, BOTH = CODES + SCALES };
    uint8_t codes[ROWS * CODES], scales[ROWS * SCALES], joined[ROWS * BOTH],
        code[ROWS * CODES] = {0}, scale[ROWS * SCALES] = {0};
    for (int i = 0; i < ROWS * CODES; i++) codes[i] = (uint8_t)(i * 5 + i / 256);
    for (int i = 0; i < ROWS * SCALES; i++) scales[i] = (uint8_t)(200 - i);
    plumb__rows_join(codes, CODES, scales, SCALES, ROWS, joined);
    for (int i = 0; i < ROWS * BOTH; i++) {
        int row = i / BOTH, place = i % BOTH;
        uint8_t wanted =
            place < CODES ? codes[row * CODES + place] : scales[row * SCALES + place - CODES];
        T_CHECK(joined[i] == wanted, "byte %d", i);
    }
    plumb__rows_split(joined, ROWS, CODES, code, SCALES, NULL);
    plumb__rows_split(joined, ROWS, CODES, NULL, SCALES, scale);
    T_CHECK(!memcmp(code, codes, sizeof codes) && !memcmp(scale, scales, sizeof scales), "split");
}

T_MAIN({"every_code_and_scale", every_code_and_scale},
       {"every_scale_in_strips", every_scale_in_strips}, {"fractions", fractions},
       {"no_other_value_narrows", no_other_value_narrows}, {"tiles", tiles},
       {"float_mode", float_mode}, {"bf16", bf16}, {"mxfp4_goldens", mxfp4_goldens},
       {"mxfp4_bytes", mxfp4_bytes}, {"rows", rows})
