/* Number formats and the three quantisers, bit for bit (tests/data/oracle/units.safetensors).  The
 * rows hold zeros, subnormals, ties, exact powers and huge values. */
#include "arith/float_env.h"
#include "arith/rounding.h"
#include "goldens.h"
#include "t.h"

enum { DIM = 64 }; /* of every row in the data */

static void tables(void) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden e4m3 = goldens_get(g, "table.e4m3", "F32"), e2m1 = goldens_get(g, "table.e2m1", "F32");
    golden e8m0 = goldens_get(g, "table.e8m0", "F32");
    for (int code = 0; code < 256; code++) {
        if ((code & 0x7F) == 0x7F) continue; /* NaN: a load error, never decoded */
        float value = plumb__e4m3_decode((uint8_t)code);
        T_CHECK(plumb__bits_of(value) == plumb__bits_of(e4m3.f32[code]), "e4m3 %02x", code);
        T_CHECK(plumb__e4m3_encode(e4m3.f32[code]) == code, "e4m3 %02x", code);
        T_CHECK((float)plumb__e4m3_times512((uint8_t)code) == e4m3.f32[code] * 512, "%02x", code);
    }
    for (int code = 0; code < 16; code++) {
        float value = plumb__e2m1_decode((uint8_t)code);
        T_CHECK(plumb__bits_of(value) == plumb__bits_of(e2m1.f32[code]), "e2m1 %x", code);
        T_CHECK(plumb__e2m1_encode(e2m1.f32[code]) == code, "e2m1 %x", code);
        T_CHECK((float)plumb__e2m1_times2((uint8_t)code) == e2m1.f32[code] * 2, "e2m1 %x", code);
    }
    T_CHECK(plumb__power_of_two(-127) == 0.0f, "2^-127 is subnormal: zero");
    for (int code = 1; code < 255; code++) {
        T_CHECK(plumb__power_of_two(code - 127) == e8m0.f32[code], "e8m0 %d", code);
        T_CHECK(plumb__ceil_log2(e8m0.f32[code]) == code - 127, "e8m0 %d", code);
    }
    goldens_close(g);
}

/* One quantiser: its packed row is codes, then scales. */
typedef struct quantiser {
    const char *name, *codes; /* tensor names */
    int64_t code_bytes, scale_bytes;
    void (*pack)(const float *x, int64_t dim, uint8_t *row);
    void (*unpack)(const uint8_t *row, int64_t dim, float *x);
} quantiser;

/* The code of element i of a packed row. */
static unsigned code_of(const quantiser *q, const uint8_t *row, int i) {
    if (q->code_bytes == DIM) return row[i];
    return i % 2 ? row[i / 2] >> 4 : row[i / 2] & 15u;
}

static void check_row(const quantiser *q, int64_t r, const float *x, const uint8_t *codes,
                      const uint8_t *scales, const uint16_t *inplace) {
    uint8_t row[2 * DIM];
    float value[DIM];
    q->pack(x, DIM, row);
    q->unpack(row, DIM, value);
    if (scales)
        T_CHECK(!memcmp(row + q->code_bytes, scales, (size_t)q->scale_bytes), "%s row %d: scales",
                q->name, (int)r);
    for (int i = 0; i < DIM; i++) {
        unsigned code = code_of(q, row, i);
        if (codes)
            T_CHECK(code == code_of(q, codes, i), "%s row %d, element %d (%a): %x, not %x",
                    q->name, (int)r, i, (double)x[i], code, code_of(q, codes, i));
        T_CHECK(plumb__bits_of(value[i]) == (uint32_t)inplace[i] << 16,
                "%s row %d, element %d (%a): %a", q->name, (int)r, i, (double)x[i],
                (double)value[i]);
    }
}

static void check_quantiser(const quantiser *q) {
    goldens *g = goldens_open("oracle/units.safetensors");
    char name[64];
    snprintf(name, sizeof name, "%s.x", q->name);
    golden x = goldens_get(g, name, "BF16");
    snprintf(name, sizeof name, "%s.inplace", q->name);
    golden inplace = goldens_get(g, name, "BF16"), codes = {0}, scales = {0};
    if (q->codes) {
        snprintf(name, sizeof name, "%s.%s", q->name, q->codes);
        codes = goldens_get(g, name, "U8");
        snprintf(name, sizeof name, "%s.scale", q->name);
        scales = goldens_get(g, name, "U8");
    }
    T_CHECK(x.shape[1] == DIM && x.shape[0] > 20, "%s", q->name);
    for (int64_t r = 0; r < x.shape[0]; r++) {
        float row[DIM];
        for (int i = 0; i < DIM; i++) row[i] = plumb__bf16_decode(x.bf16[r * DIM + i]);
        check_row(q, r, row, codes.u8 ? codes.u8 + r * q->code_bytes : NULL,
                  scales.u8 ? scales.u8 + r * q->scale_bytes : NULL, inplace.bf16 + r * DIM);
    }
    goldens_close(g);
}

/* The quantisers run in the float environment of the engine. */
static void run_quantiser(const quantiser *q) {
    uint64_t saved;
    plumb__float_env_enter(&saved);
    check_quantiser(q);
    plumb__float_env_leave(saved);
}

static void act_quant(void) {
    run_quantiser(&(quantiser){"act_quant", "codes", DIM, DIM / 32, plumb__window_pack,
                               plumb__window_unpack});
}
static void fp4_e8m0(void) {
    run_quantiser(&(quantiser){"fp4_e8m0", "packed", DIM / 2, DIM / 32, plumb__index_pack,
                               plumb__index_unpack});
}
static void fp4_e4m3(void) {
    run_quantiser(&(quantiser){"fp4_e4m3", "packed", DIM / 2, DIM / 16, plumb__compressed_pack,
                               plumb__compressed_unpack});
}
/* Block maxima beyond 6 * 448: the scale stays at its largest value. */
static void fp4_e4m3_saturating(void) {
    run_quantiser(&(quantiser){"fp4_e4m3_saturating", NULL, DIM / 2, DIM / 16,
                               plumb__compressed_pack, plumb__compressed_unpack});
}

T_MAIN({"tables", tables}, {"act_quant", act_quant}, {"fp4_e8m0", fp4_e8m0},
       {"fp4_e4m3", fp4_e4m3}, {"fp4_e4m3_saturating", fp4_e4m3_saturating})
