#include "format/stored_units.h"

#include <stdbool.h>
#include <string.h>

enum { TILE = 32 };

static int64_t tiles_of(int64_t columns) { return (columns + TILE - 1) / TILE; }

plumb_stored_units plumb__stored_units(const plumb_tensor *tensor, int form) {
    plumb_stored_units u = {.form = form};
    bool fp8 = tensor->dtype == PLUMB_DTYPE_F8_E4M3, of_scales = tensor->dtype == PLUMB_DTYPE_F8_E8M0;
    int64_t width = tensor->shape[1];
    switch ((plumb_stored_form)form) {
    case PLUMB_STORED_RELEASED:
        u.codes = u.stored = plumb__dtype_bytes(tensor->dtype);
        break;
    case PLUMB_STORED_F32:
    case PLUMB_STORED_BF16:
        u.tiles = fp8;
        u.columns = width;
        u.codes = fp8 ? width : (int64_t)sizeof(float);
        u.stored = (form == PLUMB_STORED_F32 ? 4 : 2) * (fp8 ? width : 1);
        break;
    case PLUMB_STORED_MXFP4:
        u.codes = PLUMB_MXFP4_ELEMENTS / 2;
        u.scales = 1;
        u.stored = PLUMB_MXFP4_BYTES;
        break;
    case PLUMB_STORED_ROWS:
        u.scales = of_scales ? width : width / TILE;
        u.codes = u.scales * TILE;
        u.stored = u.codes + u.scales;
        break;
    }
    u.count = tensor->bytes / (of_scales && u.scales > 0 ? u.scales : u.codes);
    return u;
}

int64_t plumb__stored_offset(const plumb_tensor *tensor, int64_t byte) {
    plumb_stored_units u = plumb__stored_units(tensor, tensor->stored);
    bool inner_scales = tensor->dtype == PLUMB_DTYPE_F8_E8M0 && u.scales > 0;
    int64_t bytes = inner_scales ? u.scales : u.codes, within = byte % bytes;
    if (u.form == PLUMB_STORED_MXFP4) within = 0;
    else if (inner_scales) within += u.codes;
    else if (u.columns > 0) within = within * u.stored / u.codes;
    return tensor->offset + byte / bytes * u.stored + within;
}

int64_t plumb__stored_tiles_begin(const plumb_stored_units *u, int64_t first) {
    return u->tiles ? first / TILE * tiles_of(u->columns) : 0;
}

int64_t plumb__stored_tiles_bytes(const plumb_stored_units *u, int64_t first, int64_t n) {
    if (!u->tiles || n == 0) return 0;
    return ((first + n - 1) / TILE - first / TILE + 1) * tiles_of(u->columns);
}

/* ---- FP8 as values ----------------------------------------------------------------------------- */

/* bfloat16 goes through float32, part of a row at a time: whole tiles. */
enum { STRIP = 64 * TILE };

typedef struct strip {
    int64_t at, size;       /* elements from the first unit's first on */
    const uint8_t *scales;  /* of its tiles */
} strip;

/* The strip that begins with element `at` of a run of rows whose first is `first`. */
static strip strip_at(const plumb_stored_units *u, int64_t first, const uint8_t *tiles, int64_t at) {
    int64_t row = first % TILE + at / u->columns, column = at % u->columns;
    int64_t left = u->columns - column;
    return (strip){at, left < STRIP ? left : STRIP,
                   tiles + row / TILE * tiles_of(u->columns) + column / TILE};
}

static int64_t narrow_values(const plumb_stored_units *u, int64_t first, int64_t n,
                             const uint8_t *codes, const uint8_t *tiles, uint16_t *stored) {
    float values[STRIP];
    for (int64_t at = 0; at < n * u->columns;) {
        strip s = strip_at(u, first, tiles, at);
        int64_t bad = plumb__fp8_widen(codes + at, s.scales, 0, 1, s.size, values);
        if (bad < 0) bad = plumb__f32_unfit_for_bf16(values, s.size);
        if (bad >= 0) return at + bad;
        plumb__f32_to_bf16(values, s.size, stored + at);
        at += s.size;
    }
    return -1;
}

static int64_t widen_values(const plumb_stored_units *u, int64_t first, int64_t n,
                            const uint16_t *stored, const uint8_t *tiles, uint8_t *codes) {
    float values[STRIP];
    for (int64_t at = 0; at < n * u->columns;) {
        strip s = strip_at(u, first, tiles, at);
        plumb__bf16_to_f32(stored + at, s.size, values);
        int64_t bad = plumb__fp8_narrow(values, s.scales, 0, 1, s.size, codes + at);
        if (bad >= 0) return at + bad;
        at += s.size;
    }
    return -1;
}

/* ---- Units ------------------------------------------------------------------------------------- */

int64_t plumb__stored_encode(const plumb_stored_units *u, int64_t first, int64_t n,
                             const uint8_t *codes, const uint8_t *scales, const uint8_t *tiles,
                             uint8_t *stored) {
    switch ((plumb_stored_form)u->form) {
    case PLUMB_STORED_RELEASED: memcpy(stored, codes, (size_t)(n * u->codes)); return -1;
    case PLUMB_STORED_MXFP4: plumb__mxfp4_pack(codes, scales, n, stored); return -1;
    case PLUMB_STORED_ROWS:
        plumb__rows_join(codes, u->codes, scales, u->scales, n, stored);
        return -1;
    case PLUMB_STORED_F32:
        return plumb__fp8_widen(codes, tiles, first % TILE, n, u->columns, (float *)(void *)stored);
    case PLUMB_STORED_BF16: break;
    }
    if (u->tiles) return narrow_values(u, first, n, codes, tiles, (uint16_t *)(void *)stored);
    const float *values = (const float *)(const void *)codes;
    int64_t bad = plumb__f32_unfit_for_bf16(values, n);
    if (bad < 0) plumb__f32_to_bf16(values, n, (uint16_t *)(void *)stored);
    return bad;
}

int64_t plumb__stored_decode(const plumb_stored_units *u, int64_t first, int64_t n,
                             const uint8_t *stored, const uint8_t *tiles, uint8_t *codes,
                             uint8_t *scales) {
    switch ((plumb_stored_form)u->form) {
    case PLUMB_STORED_RELEASED: memcpy(codes, stored, (size_t)(n * u->codes)); return -1;
    case PLUMB_STORED_MXFP4: plumb__mxfp4_unpack(stored, n, codes, scales); return -1;
    case PLUMB_STORED_ROWS:
        plumb__rows_split(stored, n, u->codes, codes, u->scales, scales);
        return -1;
    case PLUMB_STORED_F32:
        return plumb__fp8_narrow((const float *)(const void *)stored, tiles, first % TILE, n,
                                 u->columns, codes);
    case PLUMB_STORED_BF16: break;
    }
    const uint16_t *narrow = (const uint16_t *)(const void *)stored;
    if (u->tiles) return widen_values(u, first, n, narrow, tiles, codes);
    plumb__bf16_to_f32(narrow, n, (float *)(void *)codes);
    return -1;
}
