/* A stripe of rows is computed in double, with the additions in a fixed order, then stored.
 * The order matters: the same bytes must come out of any implementation of the same recipe. */
#include "synth/tensor_values.h"

#include <math.h>
#include <string.h>

#include "synth/storage_codes.h"

plumb__tensor_source plumb__tensor_source_make(uint64_t seed, const char *name,
                                               plumb__encoding encoding, int64_t rows,
                                               int64_t columns, const plumb__recipe *recipe) {
    static const char suffix[] = ".weight";
    int64_t base = (int64_t)strlen(name), cut = (int64_t)sizeof suffix - 1;
    if (base > cut && !strcmp(name + base - cut, suffix)) base -= cut;
    return (plumb__tensor_source){
        .encoding = encoding,
        .rows = rows,
        .columns = columns,
        .recipe = *recipe,
        .noise = plumb__number_stream_of(seed, name),
        .tiles = plumb__number_stream_of_parts(seed, name, base, ".mag"),
        .common = plumb__number_stream_of(seed, "common"),
    };
}

static int64_t groups_of(int64_t columns) {
    return (columns + PLUMB_SCALE_GROUP - 1) / PLUMB_SCALE_GROUP;
}

int64_t plumb__encoded_row_bytes(plumb__encoding encoding, int64_t columns) {
    switch (encoding) {
    case PLUMB_ENCODE_BF16: return columns * 2;
    case PLUMB_ENCODE_F32: return columns * 4;
    case PLUMB_ENCODE_FP8_TILES:
    case PLUMB_ENCODE_FP8_ROWS: return columns;
    case PLUMB_ENCODE_FP4_ROWS:
    case PLUMB_ENCODE_FP4_DRAWN: return columns / 2;
    }
    return 0;
}

int64_t plumb__encoded_stripe_scales(plumb__encoding encoding, int64_t rows, int64_t columns) {
    switch (encoding) {
    case PLUMB_ENCODE_BF16:
    case PLUMB_ENCODE_F32: return 0;
    case PLUMB_ENCODE_FP8_TILES: return groups_of(columns);
    case PLUMB_ENCODE_FP8_ROWS:
    case PLUMB_ENCODE_FP4_ROWS:
    case PLUMB_ENCODE_FP4_DRAWN: return rows * groups_of(columns);
    }
    return 0;
}

static double tile_magnitude(const plumb__tensor_source *source, int64_t tile) {
    static const double magnitudes[4] = {0.5, 1.0, 1.0, 2.0};
    return magnitudes[plumb__stream_below(source->tiles, tile, 4)] * 0.8;
}

/* Each column of the stripe's quantised row times the magnitude of its tile or group. */
static void vary_tiles(const plumb__tensor_source *source, int64_t row, double *values) {
    int64_t groups = groups_of(source->columns);
    int64_t tile_row = source->encoding == PLUMB_ENCODE_FP8_TILES ? row / PLUMB_SCALE_GROUP : row;
    for (int64_t g = 0; g < groups; g++) {
        double magnitude = tile_magnitude(source, tile_row * groups + g);
        int64_t end = (g + 1) * PLUMB_SCALE_GROUP;
        if (end > source->columns) end = source->columns;
        for (int64_t c = g * PLUMB_SCALE_GROUP; c < end; c++) values[c] *= magnitude;
    }
}

/* The parts of a hyper-connection base: pre, post, and the matrix that carries the copies on. */
static void add_mixing_base(int64_t columns, double *values) {
    for (int64_t c = 0; c < PLUMB_HC && c < columns; c++) values[c] += -1.0;
    for (int64_t i = 0; i < PLUMB_HC; i++) {
        int64_t c = 2 * PLUMB_HC + i * (PLUMB_HC + 1);
        if (c < columns) values[c] += 1.5;
    }
}

static void add_structure(const plumb__tensor_source *source, int64_t row, double *values) {
    const plumb__recipe *recipe = &source->recipe;
    int64_t columns = source->columns;
    if (row < recipe->common_rows) {
        for (int64_t c = 0; c < columns; c++) {
            bool negative = plumb__stream_below(source->common, c, 2) == 1;
            values[c] += negative ? -recipe->common : recipe->common;
        }
    } else {
        /* Adding a zero still matters: it turns a negative zero into a positive one. */
        for (int64_t c = 0; c < columns; c++) values[c] += recipe->offset;
    }
    if (recipe->diagonal_width > 0) {
        int64_t c = row % recipe->diagonal_width;
        if (c < PLUMB_SALIENT && c < columns) values[c] += recipe->diagonal;
    }
    if (recipe->mixing_base) add_mixing_base(columns, values);
    if (recipe->absolute)
        for (int64_t c = 0; c < columns; c++) values[c] = fabs(values[c]);
}

static bool is_quantised(plumb__encoding encoding) {
    return encoding != PLUMB_ENCODE_BF16 && encoding != PLUMB_ENCODE_F32;
}

static void clear_corner(const plumb__tensor_source *source, int64_t row, double *values) {
    int64_t rows = source->encoding == PLUMB_ENCODE_FP8_TILES ? PLUMB_SCALE_GROUP : 1;
    if (row >= rows) return;
    for (int64_t c = 0; c < PLUMB_SCALE_GROUP && c < source->columns; c++) values[c] = 0.0;
}

static void row_values(const plumb__tensor_source *source, int64_t row, double *values) {
    const plumb__recipe *recipe = &source->recipe;
    double spread = row < PLUMB_SALIENT ? recipe->salient_spread : recipe->spread;
    int64_t first = row * source->columns;
    for (int64_t c = 0; c < source->columns; c++)
        values[c] = plumb__stream_normal(source->noise, first + c) * spread;
    if (recipe->varied_tiles && is_quantised(source->encoding)) vary_tiles(source, row, values);
    add_structure(source, row, values);
    if (recipe->zero_corner) clear_corner(source, row, values);
}

static void store16(uint8_t *to, uint16_t value) {
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static void store_float(uint8_t *to, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    store16(to, (uint16_t)bits);
    store16(to + 2, (uint16_t)(bits >> 16));
}

/* One row of an encoding whose rows are stored one by one. */
static void store_row(const plumb__tensor_source *source, const double *values, uint8_t *payload,
                      uint8_t *scales) {
    int64_t columns = source->columns;
    switch (source->encoding) {
    case PLUMB_ENCODE_BF16:
        for (int64_t c = 0; c < columns; c++) store16(payload + 2 * c, plumb__bf16_code(values[c]));
        break;
    case PLUMB_ENCODE_F32:
        for (int64_t c = 0; c < columns; c++) store_float(payload + 4 * c, (float)values[c]);
        break;
    case PLUMB_ENCODE_FP8_ROWS: plumb__fp8_row(values, columns, payload, scales); break;
    case PLUMB_ENCODE_FP4_ROWS: plumb__fp4_row(values, columns, payload, scales); break;
    case PLUMB_ENCODE_FP8_TILES:
    case PLUMB_ENCODE_FP4_DRAWN: break; /* stored a stripe at a time */
    }
}

/* Exponent of the scale with which uniformly drawn E2M1 codes have a standard deviation near
 * `spread`: theirs is 2.93. */
static int drawn_exponent(double spread) {
    int exponent;
    double fraction = frexp(spread / 2.93, &exponent);
    return fraction > 0.70710678 ? exponent : exponent - 1;
}

/* A word of the stream makes 8 bytes of codes, or 32 scales of 2 bits.  A stripe of 32 rows begins
 * at a whole word of either. */
static void drawn_stripe(const plumb__tensor_source *source, int64_t begin, int64_t end,
                         uint8_t *payload, uint8_t *scales) {
    static const int step[4] = {-1, 0, 0, 1};
    int64_t row_bytes = source->columns / 2, groups = groups_of(source->columns);
    int64_t first = begin * row_bytes, count = (end - begin) * row_bytes;
    uint64_t word = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % 8 == 0) word = plumb__stream_word(source->noise, (first + i) / 8);
        payload[i] = (uint8_t)(word >> (i % 8 * 8));
    }
    int middle = 127 + drawn_exponent(source->recipe.spread);
    first = begin * groups, count = (end - begin) * groups;
    for (int64_t i = 0; i < count; i++) {
        if (i % 32 == 0) word = plumb__stream_word(source->tiles, (first + i) / 32);
        scales[i] = (uint8_t)(middle + step[word >> (i % 32 * 2) & 3]);
    }
}

void plumb__tensor_stripe(const plumb__tensor_source *source, int64_t begin, int64_t end,
                          double *work, uint8_t *payload, uint8_t *scales) {
    if (source->encoding == PLUMB_ENCODE_FP4_DRAWN) {
        drawn_stripe(source, begin, end, payload, scales);
        return;
    }
    for (int64_t row = begin; row < end; row++)
        row_values(source, row, work + (row - begin) * source->columns);
    if (source->encoding == PLUMB_ENCODE_FP8_TILES) {
        plumb__fp8_tile_row(work, end - begin, source->columns, payload, scales);
        return;
    }
    int64_t row_bytes = plumb__encoded_row_bytes(source->encoding, source->columns);
    int64_t groups = groups_of(source->columns);
    for (int64_t r = 0; r < end - begin; r++)
        store_row(source, work + r * source->columns, payload + r * row_bytes,
                  scales ? scales + r * groups : NULL);
}
