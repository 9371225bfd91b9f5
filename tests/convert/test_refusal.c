/* Packing is exact or declined, and what is no number is refused: sources made from tiny by writing
 * other bytes into some of its tensors.  Each case has a matrix of its own, so that a few conversions
 * show all of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "converted.h"
#include "equal/specimen_copy.h"
#include "t.h"

#define PLACE "refusal"
#define FOLDER BUILD_DIR "/" PLACE "/source"

enum { TILE = 32 };
enum { F32 = PLUMB_GGML_F32, BF16 = PLUMB_GGML_BF16, I8 = PLUMB_GGML_I8 }; /* as stored */

/* ---- Other sources --------------------------------------------------------------------------- */

static void copy_tiny(void) {
    char tiny[512];
    converted_source("tiny", tiny);
    int32_t no_token = 0;
    specimen original = {.name = "tiny", .tokens = &no_token};
    (void)snprintf(original.folder, sizeof original.folder, "%s", tiny);
    specimen copy = specimen_copy(&original, BUILD_DIR "/" PLACE, "source");
    specimen_close(&copy);
}

/* Writes `size` bytes at byte `at` of a tensor; `before` (may be NULL) receives what was there. */
static void patch(const char *name, int64_t at, const void *bytes, int64_t size, void *before) {
    plumb_checkpoint *checkpoint;
    plumb_error err;
    converted_must(plumb__checkpoint_open(FOLDER, NULL, NULL, &checkpoint, &err), &err, FOLDER);
    const plumb_tensor *t = plumb__checkpoint_find(checkpoint, "%s", name);
    T_CHECK(t && at + size <= t->bytes, "%s has no byte %lld", name, (long long)at);
    int fd = open(plumb__checkpoint_shard_path(checkpoint, t->shard), O_RDWR | O_CLOEXEC);
    bool done = fd >= 0 &&
                (!before || pread(fd, before, (size_t)size, (off_t)(t->offset + at)) == size) &&
                pwrite(fd, bytes, (size_t)size, (off_t)(t->offset + at)) == size;
    T_CHECK(done, "%s: %s", name, strerror(errno));
    if (fd >= 0) (void)close(fd);
    plumb__checkpoint_close(checkpoint);
}

/* All of a tensor's bytes; free() them. */
static uint8_t *load(const char *name, int64_t *columns, int64_t *size) {
    plumb_checkpoint *checkpoint;
    plumb_error err;
    converted_must(plumb__checkpoint_open(FOLDER, NULL, NULL, &checkpoint, &err), &err, FOLDER);
    const plumb_tensor *t = plumb__checkpoint_find(checkpoint, "%s", name);
    if (!t) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    *columns = t->shape[1];
    *size = t->bytes;
    uint8_t *bytes = malloc((size_t)t->bytes);
    converted_must(plumb__checkpoint_read(checkpoint, t, 0, t->bytes, bytes, &err), &err, name);
    plumb__checkpoint_close(checkpoint);
    return bytes;
}

static plumb__text192 place_of(int64_t element, int64_t columns) {
    return plumb__format("row %lld, column %lld", (long long)(element / columns),
                         (long long)(element % columns));
}

/* ---- FP8 ------------------------------------------------------------------------------------- */

/* One tile with an extreme scale, zeros but for one code.  The smallest bfloat16 is 2^-133, the largest
 * 255 * 2^120; float32 begins lower and goes no further. */
static const struct fp8_case {
    const char *matrix, *stored;
    uint8_t scale, code;
    int f32, bf16; /* ggml types in files made with --dense f32 and bf16 */
} fp8_cases[] = {
    {"layers.0.attn.wq_a", "blk.0.attn_q_a", 0, 0x01, F32, F32},        /* 2^-136 */
    {"layers.0.attn.wq_b", "blk.0.attn_q_b", 0, 0x08, F32, BF16},       /* 2^-133 */
    {"layers.0.attn.wkv", "blk.0.attn_kv", 0, 0x89, F32, F32},          /* -9 * 2^-136 */
    {"layers.0.attn.wo_a", "blk.0.attn_output_a", 0, 0x80, F32, BF16},  /* -0 */
    {"layers.0.attn.wo_b", "blk.0.attn_output_b", 1, 0x82, F32, F32},   /* -2^-134 */
    {"layers.1.attn.wq_a", "blk.1.attn_q_a", 1, 0x04, F32, BF16},       /* 2^-133 */
    {"layers.1.attn.wq_b", "blk.1.attn_q_b", 2, 0x01, F32, F32},        /* 2^-134 */
    {"layers.1.attn.wkv", "blk.1.attn_kv", 2, 0x02, F32, BF16},         /* 2^-133 */
    {"layers.1.attn.wo_a", "blk.1.attn_output_a", 3, 0x81, F32, BF16},  /* -2^-133 */
    {"layers.1.attn.wo_b", "blk.1.attn_output_b", 2, 0x03, F32, F32},   /* 3 * 2^-134 */
    {"layers.2.attn.wq_a", "blk.2.attn_q_a", 246, 0x7E, F32, BF16},     /* 1.75 * 2^127 */
    {"layers.2.attn.wq_b", "blk.2.attn_q_b", 247, 0x7E, I8, I8},        /* 1.75 * 2^128 */
    {"layers.2.attn.wkv", "blk.2.attn_kv", 247, 0xF7, F32, BF16},       /* -1.875 * 2^127 */
    {"layers.2.attn.wo_a", "blk.2.attn_output_a", 247, 0xF8, I8, I8},   /* -2^128 */
    {"layers.2.attn.wo_b", "blk.2.attn_output_b", 254, 0x38, F32, BF16},/* 2^127 */
    {"layers.3.attn.wq_a", "blk.3.attn_q_a", 254, 0x40, I8, I8},        /* 2^128 */
    {"layers.3.attn.wq_b", "blk.3.attn_q_b", 127, 0x7E, F32, BF16},
};
enum { FP8_CASES = sizeof fp8_cases / sizeof fp8_cases[0] };

/* The last element, along one axis, of the second tile where there is one. */
static int64_t tile_end(int64_t extent) {
    int64_t end = extent > TILE ? 2 * TILE : TILE;
    return (extent < end ? extent : end) - 1;
}

/* That tile, whose last code is the case's; *place (may be NULL): where that is, in words. */
static void write_fp8(const struct fp8_case *c, plumb__text192 *place) {
    char name[96];
    int64_t columns, size;
    (void)snprintf(name, sizeof name, "%s.weight", c->matrix);
    uint8_t *codes = load(name, &columns, &size);
    int64_t row = tile_end(size / columns), column = tile_end(columns);
    int64_t top = row / TILE, left = column / TILE, tiles = (columns + TILE - 1) / TILE;
    for (int64_t r = top * TILE; r <= row; r++)
        memset(codes + r * columns + left * TILE, 0, (size_t)(column - left * TILE + 1));
    codes[row * columns + column] = c->code;
    patch(name, 0, codes, size, NULL);
    free(codes);
    (void)snprintf(name, sizeof name, "%s.scale", c->matrix);
    patch(name, top * tiles + left, &c->scale, 1, NULL);
    if (place) *place = place_of(row * columns + column, columns);
}

/* ---- Float32 --------------------------------------------------------------------------------- */

/* A matrix whose values are all bfloat16 but, perhaps, the last one. */
static const struct f32_case {
    const char *matrix, *stored;
    uint32_t last;
    int bf16; /* ggml type; with --dense f32 it is F32 */
} f32_cases[] = {
    {"layers.0.hc_attn_fn", "blk.0.hc_attn_fn", 0x3F810000, BF16},      /* eight digits */
    {"layers.0.hc_ffn_fn", "blk.0.hc_ffn_fn", 0x3F808000, F32},         /* nine */
    {"layers.1.hc_attn_fn", "blk.1.hc_attn_fn", 0x80000000, BF16},      /* -0 */
    {"layers.1.hc_ffn_fn", "blk.1.hc_ffn_fn", 0x00010000, BF16},        /* subnormal 2^-133 */
    {"layers.2.hc_attn_fn", "blk.2.hc_attn_fn", 0x00000001, F32},       /* 2^-149 */
    {"layers.2.hc_ffn_fn", "blk.2.hc_ffn_fn", 0x80018000, F32},         /* subnormal, one digit more */
    {"layers.3.hc_attn_fn", "blk.3.hc_attn_fn", 0x7F7F0000, BF16},      /* the largest bfloat16 */
    {"layers.3.hc_ffn_fn", "blk.3.hc_ffn_fn", 0xFF7FFFFF, F32},         /* the largest float32 */
};
enum { F32_CASES = sizeof f32_cases / sizeof f32_cases[0] };

static void write_f32(const char *name, const uint32_t *last, plumb__text192 *place) {
    int64_t columns, size;
    uint8_t *bytes = load(name, &columns, &size);
    for (int64_t i = 0; i < size; i += 4) bytes[i] = bytes[i + 1] = 0;
    if (last) memcpy(bytes + size - 4, last, 4);
    patch(name, 0, bytes, size, NULL);
    free(bytes);
    if (place) *place = place_of(size / 4 - 1, columns);
}

/* ---- Exact or declined ----------------------------------------------------------------------- */

static int type_of(const plumb_checkpoint *file, const char *stem) {
    char name[96];
    (void)snprintf(name, sizeof name, "%s.weight", stem);
    const plumb_gguf_tensor *t = plumb__gguf_find_tensor(plumb__checkpoint_gguf(file), name);
    return t ? t->type : -1;
}

static void check_types(const char *path, bool bf16) {
    plumb_checkpoint *file;
    plumb_error err;
    converted_must(plumb__checkpoint_open(path, NULL, NULL, &file, &err), &err, path);
    for (int i = 0; i < FP8_CASES; i++) {
        const struct fp8_case *c = &fp8_cases[i];
        int type = type_of(file, c->stored);
        T_CHECK(type == (bf16 ? c->bf16 : c->f32), "%s: scale %d, code %02X: type %d", path,
                c->scale, c->code, type);
    }
    for (int i = 0; i < F32_CASES; i++) {
        const struct f32_case *c = &f32_cases[i];
        int type = type_of(file, c->stored);
        T_CHECK(type == (bf16 ? c->bf16 : F32), "%s: %08X: type %d", path, c->last, type);
    }
    T_CHECK(type_of(file, "blk.0.hc_attn_base") == F32, "vectors stay as they are");
    plumb__checkpoint_close(file);
}

static void exact_or_declined(void) {
    copy_tiny();
    for (int i = 0; i < FP8_CASES; i++) write_fp8(&fp8_cases[i], NULL);
    for (int i = 0; i < F32_CASES; i++) write_f32(f32_cases[i].matrix, &f32_cases[i].last, NULL);
    write_f32("layers.0.hc_attn_base", NULL, NULL);
    for (flavour f = 0; f < FLAVOURS; f++) {
        converted c = converted_make_from(PLACE, "edges", FOLDER, f);
        plumb_error err;
        if (f != FLAVOUR_FP8) check_types(c.path, f != FLAVOUR_F32);
        CONVERTED_CHECK_RELEASED(c.path, FOLDER);
        T_CHECK(converted_audit(c.path, NULL, 2, false, &err) == PLUMB_OK, "%s", err.found);
        T_CHECK(converted_audit(c.path, FOLDER, 2, false, &err) == PLUMB_OK, "%s", err.found);
    }
    converted_remove(PLACE, "edges");
}

/* ---- Told ------------------------------------------------------------------------------------ */

typedef struct lines {
    char text[64][256];
    int count;
} lines;

static void keep_line(void *user, plumb_log_level level, const char *line) {
    lines *l = user;
    (void)level;
    if (l->count < 64) (void)snprintf(l->text[l->count++], sizeof l->text[0], "%s", line);
}

static bool is_told(const lines *l, const char *text) {
    for (int i = 0; i < l->count; i++)
        if (strcmp(l->text[i], text) == 0) return true;
    return false;
}

/* What is declined is told with its place, once. */
static void declined_is_told(void) {
    copy_tiny();
    const struct fp8_case too_small = {"layers.0.attn.wq_a", NULL, 0, 0x01, 0, 0};
    const uint32_t nine_digits = 0x3F808000;
    plumb__text192 fp8, f32;
    write_fp8(&too_small, &fp8);
    write_f32("layers.0.hc_ffn_fn", &nine_digits, &f32);
    fp8 = plumb__format("blk.0.attn_q_a.weight stays f32: the value in %.60s does not fit bf16", fp8.s);
    f32 = plumb__format("blk.0.hc_ffn_fn.weight stays f32: the value in %.60s does not fit bf16", f32.s);
    for (int packing = 0; packing < 2; packing++) {
        lines told = {.count = 0};
        const plumb_convert_options options = {.dense = PLUMB_DENSE_BF16, .force = true, .jobs = 2,
                                               .log = keep_line, .log_user = &told};
        plumb_convert_result result;
        plumb_error err;
        const char *target = BUILD_DIR "/" PLACE "/told-bf16.gguf";
        if (packing) {
            converted made = converted_make_from(PLACE, "told", FOLDER, FLAVOUR_F32);
            converted_must(plumb__pack(made.path, target, &options, &result, &err), &err, target);
        } else {
            converted_must(plumb__convert(FOLDER, target, &options, &result, &err), &err, target);
        }
        T_CHECK(is_told(&told, fp8.s) && is_told(&told, f32.s), "%d: %s, %s", told.count, fp8.s, f32.s);
        T_CHECK(result.matrices[PLUMB_DENSE_F32] == told.count, "%d lines, %lld matrices",
                told.count, (long long)result.matrices[PLUMB_DENSE_F32]);
    }
    converted_remove(PLACE, "told");
}

/* A source that has changed into what the file's form cannot hold is another source. */
static void another_source(void) {
    static const struct fp8_case changed = {"layers.2.attn.wq_b", NULL, 0, 0x01, 0, 0};
    copy_tiny();
    converted c = converted_make_from(PLACE, "other", FOLDER, FLAVOUR_BF16);
    plumb_error err = {0};
    plumb__text192 place;
    write_fp8(&changed, &place);
    plumb_status status = converted_audit(c.path, FOLDER, 1, false, &err);
    T_CHECK(status == PLUMB_ERROR_VALUE && strcmp(err.field, "layers.2.attn.wq_b.weight") == 0 &&
                strstr(err.found, place.s) && strcmp(err.file, FOLDER) == 0,
            "%s: %s: %s, not %s", err.file, err.field, err.found, place.s);
    converted_remove(PLACE, "other");
}

/* ---- Other tensors --------------------------------------------------------------------------- */

static const char *const added_name = "blk.0.more.weight";

/* Writes the file `target` with the header of `gguf`, but for one tensor: its shape has the extents that
 * are given (fastest first, 0: those it has), or, past the last one, it is one more. */
static void write_other(const plumb_gguf *gguf, int64_t number, int dims, const int64_t *shape,
                        const char *target) {
    plumb_gguf_writer *writer;
    plumb_error err;
    uint8_t *header;
    int64_t bytes, file_bytes;
    converted_must(plumb__gguf_writer_create(gguf->alignment, &writer, &err), &err, target);
    for (int64_t i = 0; i < gguf->values; i++)
        if (strcmp(gguf->value[i].key, "general.alignment") != 0)
            plumb__gguf_write_value(writer, &gguf->value[i]);
    for (int64_t i = 0; i <= gguf->tensors; i++) {
        const plumb_gguf_tensor *t = &gguf->tensor[i];
        if (i == number)
            plumb__gguf_write_tensor(writer, i < gguf->tensors ? t->name : added_name,
                                     i < gguf->tensors ? (plumb_ggml_type)t->type : PLUMB_GGML_F32, dims,
                                     shape);
        else if (i < gguf->tensors)
            plumb__gguf_write_tensor(writer, t->name, (plumb_ggml_type)t->type, t->dims, t->shape);
    }
    converted_must(plumb__gguf_writer_finish(writer, &header, &bytes, NULL, &file_bytes, &err), &err, target);
    plumb__gguf_writer_destroy(writer);
    converted_seal(header, bytes, file_bytes);
    int fd = open(target, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    T_CHECK(fd >= 0 && write(fd, header, (size_t)bytes) == bytes && ftruncate(fd, (off_t)file_bytes) == 0,
            "%s: %s", target, strerror(errno));
    if (fd >= 0) (void)close(fd);
    free(header);
}

/* `name`: the tensor that is to be told of, or NULL where the file opens. */
static void check_opens(const char *path, const char *name, const char *what) {
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err = {0};
    plumb_status status = plumb__checkpoint_open(path, NULL, NULL, &checkpoint, &err);
    T_CHECK(status == (name ? PLUMB_ERROR_TENSOR : PLUMB_OK), "%s: status %d: %s", what, status, err.found);
    if (name)
        T_CHECK(strcmp(err.field, name) == 0 && strcmp(err.file, path) == 0, "%s: told of '%s' in '%s'",
                what, err.field, err.file);
    plumb__checkpoint_close(checkpoint);
}

/* A file is refused that has a tensor more than its config knows, or one of another shape in any of the
 * four extents. */
static void other_tensors(void) {
    static const char target[] = BUILD_DIR "/" PLACE "/other-tensors.gguf";
    converted c = converted_make(PLACE, "tiny", FLAVOUR_F32);
    plumb_checkpoint *checkpoint;
    plumb_error err;
    converted_must(plumb__checkpoint_open(c.path, NULL, NULL, &checkpoint, &err), &err, c.path);
    const plumb_gguf *gguf = plumb__checkpoint_gguf(checkpoint);
    static const int64_t one[PLUMB_GGUF_MOST_DIMS] = {32, 1, 1, 1};
    for (int64_t i = 0; i < gguf->tensors; i++) {
        const plumb_gguf_tensor *t = &gguf->tensor[i];
        if (i % 40 != 0 && i != gguf->tensors - 1) continue;
        write_other(gguf, i, PLUMB_GGUF_MOST_DIMS, t->shape, target);
        check_opens(target, NULL, "extents of 1 told");
        for (int k = 0; k < PLUMB_GGUF_MOST_DIMS; k++) {
            int64_t shape[PLUMB_GGUF_MOST_DIMS];
            memcpy(shape, t->shape, sizeof shape);
            shape[k] *= 2;
            write_other(gguf, i, PLUMB_GGUF_MOST_DIMS, shape, target);
            check_opens(target, t->name, plumb__format("extent %d", k).s);
        }
    }
    write_other(gguf, gguf->tensors, 1, one, target);
    check_opens(target, added_name, "one more");
    plumb__checkpoint_close(checkpoint);
    (void)unlink(target);
    converted_remove(PLACE, "tiny");
}

/* ---- No numbers ------------------------------------------------------------------------------ */

static const struct nan_case {
    const char *tensor;
    int64_t element, width; /* which, and bytes of one */
    uint32_t bits;
} nan_cases[] = {
    {"layers.1.ffn.experts.2.w1.scale", 5, 1, 0xFF},
    {"layers.0.ffn.experts.0.w2.scale", 0, 1, 0xFF},
    {"layers.1.engram.embed.weight", 1000, 1, 0x7F},
    {"layers.1.engram.embed.weight", 77, 1, 0xFF},
    {"layers.1.engram.embed.scale", 9, 1, 0xFF},
    {"layers.2.attn.wq_b.weight", 33, 1, 0x7F},
    {"layers.2.attn.wq_b.weight", 0, 1, 0xFF},
    {"layers.2.attn.wq_b.scale", 1, 1, 0xFF},
    {"embed.weight", 4001, 2, 0x7FC0},
    {"head.weight", 12, 2, 0xFF80},
    {"layers.1.hc_attn_fn", 90, 4, 0x7F800000},
    {"layers.1.hc_ffn_fn", 91, 4, 0xFFC00001},
    {"layers.0.attn.attn_sink", 1, 4, 0x7FC00000},
};

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void check_refused(const struct nan_case *c, plumb_dense dense, int64_t columns) {
    const char *target = BUILD_DIR "/" PLACE "/refused.gguf";
    const plumb_convert_options options = {.dense = dense, .jobs = 2};
    plumb_convert_result result;
    plumb_error err = {0};
    char bits[16], line[1024] = "converted";
    plumb__text192 place = place_of(c->element, columns);
    plumb_status status = plumb__convert(FOLDER, target, &options, &result, &err);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    (void)snprintf(bits, sizeof bits, "0x%0*X", (int)(2 * c->width), c->bits);
    T_CHECK(status == PLUMB_ERROR_VALUE && strcmp(err.field, c->tensor) == 0 &&
                strstr(err.found, bits) && strstr(err.found, place.s) && strstr(err.file, FOLDER),
            "%s %s, --dense %s: %s", c->tensor, place.s, plumb__dense_name((int)dense), line);
    T_CHECK(!exists(target), "%s: a file under the name", c->tensor);
    (void)unlink(BUILD_DIR "/" PLACE "/refused.gguf.part");
    (void)unlink(target);
}

static void no_numbers(void) {
    copy_tiny();
    for (size_t i = 0; i < sizeof nan_cases / sizeof nan_cases[0]; i++) {
        const struct nan_case *c = &nan_cases[i];
        int64_t columns, size;
        uint8_t before[4];
        free(load(c->tensor, &columns, &size));
        patch(c->tensor, c->element * c->width, &c->bits, c->width, before);
        for (plumb_dense dense = 0; dense < PLUMB_DENSE_COUNT; dense++)
            check_refused(c, dense, columns);
        patch(c->tensor, c->element * c->width, before, c->width, NULL);
    }
    converted whole = converted_make_from(PLACE, "whole", FOLDER, FLAVOUR_FP8);
    CONVERTED_CHECK_RELEASED(whole.path, FOLDER);
    converted_remove(PLACE, "whole");
}

T_MAIN({"exact_or_declined", exact_or_declined}, {"declined_is_told", declined_is_told},
       {"another_source", another_source}, {"other_tensors", other_tensors},
       {"no_numbers", no_numbers})
