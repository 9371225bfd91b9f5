/* Written GGUF headers: byte for byte what an independent program writes (make_gguf.py), refused where
 * the reader would refuse them, and read from files of any size. */
#include "base/file.h"
#include "fixture.h"
#include "format/gguf.h"
#include "t.h"

#include <stdlib.h>
#include <unistd.h>

static plumb_gguf_writer *new_writer(int64_t alignment) {
    plumb_gguf_writer *writer;
    plumb_error err;
    if (plumb__gguf_writer_create(alignment, &writer, &err) != PLUMB_OK) exit(2);
    return writer;
}

/* ---- The golden file -------------------------------------------------------------------------- */

#define ARRAY(writer, key, item, type, ...)                                                  \
    do {                                                                                     \
        const type items_[] = {__VA_ARGS__};                                                 \
        plumb__gguf_write_array(writer, key, item, items_,                                   \
                                (int64_t)(sizeof items_ / sizeof items_[0]));                \
    } while (0)

static void write_keys(plumb_gguf_writer *w) {
    static const char text[] = "Gr\xC3\xBC\xC3\x9F" "e \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x98\x80\0behind a NUL";
    static const uint64_t number = (UINT64_C(1) << 63) + 5;
    static const char *const tokens[] = {"", "a", "\xC3\xA9", "longer than eight bytes"};
    plumb__gguf_write_string(w, "general.architecture", "test", 4);
    plumb__gguf_write_u32(w, "u32", UINT32_MAX);
    plumb__gguf_write_value(w, &(const plumb_gguf_value){.key = "u64", .type = PLUMB_GGUF_U64, .count = 1,
                                                         .bytes = (const uint8_t *)&number,
                                                         .size = sizeof number});
    plumb__gguf_write_f32(w, "f32", -0.15625f);
    plumb__gguf_write_bool(w, "yes", true);
    plumb__gguf_write_bool(w, "no", false);
    plumb__gguf_write_string(w, "empty", NULL, 0);
    plumb__gguf_write_string(w, "text", text, sizeof text - 1);
    ARRAY(w, "bytes", PLUMB_GGUF_U8, uint8_t, 0, 1, 128, 255);
    ARRAY(w, "i8", PLUMB_GGUF_I8, int8_t, -128, -1, 127);
    ARRAY(w, "u16", PLUMB_GGUF_U16, uint16_t, 0, 65535);
    ARRAY(w, "i16", PLUMB_GGUF_I16, int16_t, -32768, 32767);
    ARRAY(w, "numbers", PLUMB_GGUF_I32, int32_t, INT32_MIN, 0, INT32_MAX);
    ARRAY(w, "u32s", PLUMB_GGUF_U32, uint32_t, 7);
    ARRAY(w, "floats", PLUMB_GGUF_F32, float, 0.5f, -2.0f);
    ARRAY(w, "truths", PLUMB_GGUF_BOOL, uint8_t, 1, 0, 1);
    plumb__gguf_write_array(w, "none", PLUMB_GGUF_F64, NULL, 0);
    ARRAY(w, "u64s", PLUMB_GGUF_U64, uint64_t, UINT64_MAX);
    ARRAY(w, "i64s", PLUMB_GGUF_I64, int64_t, INT64_MIN);
    ARRAY(w, "f64s", PLUMB_GGUF_F64, double, 0.1);
    plumb__gguf_write_strings_begin(w, "tokens", 4);
    for (int i = 0; i < 4; i++)
        plumb__gguf_write_strings_add(w, tokens[i], (int64_t)strlen(tokens[i]));
    plumb__gguf_write_strings_begin(w, "no_tokens", 0);
}

#define N63 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static const struct {
    const char *name;
    plumb_ggml_type type;
    int dims;
    int64_t shape[4], bytes;
} golden_tensors[] = {
    {"blk.0.norm.weight", PLUMB_GGML_F32, 1, {5, 1, 1, 1}, 20},
    {"blk.0.gate.weight", PLUMB_GGML_BF16, 2, {3, 7, 1, 1}, 42},
    {"blk.0.exps.weight", PLUMB_GGML_MXFP4, 3, {64, 3, 2, 1}, 34 * 6},
    {"codes", PLUMB_GGML_I8, 4, {1, 2, 3, 4}, 24},
    {N63, PLUMB_GGML_F32, 2, {1, 1, 1, 1}, 4},
};
enum { GOLDEN_TENSORS = sizeof golden_tensors / sizeof golden_tensors[0] };

static void golden_file(void) {
    static const char path[] = TEST_DATA "/gguf/written.gguf";
    plumb_gguf_writer *writer = new_writer(64);
    write_keys(writer);
    for (int i = 0; i < GOLDEN_TENSORS; i++)
        plumb__gguf_write_tensor(writer, golden_tensors[i].name, golden_tensors[i].type,
                                 golden_tensors[i].dims, golden_tensors[i].shape);
    uint8_t *header;
    int64_t bytes, offsets[GOLDEN_TENSORS], file_bytes;
    plumb_error err = {0};
    plumb_status status =
        plumb__gguf_writer_finish(writer, &header, &bytes, offsets, &file_bytes, &err);
    T_CHECK(status == PLUMB_OK, "%s %s", err.field, err.found);
    size_t size;
    uint8_t *golden = (uint8_t *)fixture_load(path, &size);
    T_TRUE(status == PLUMB_OK && file_bytes == (int64_t)size && bytes < file_bytes &&
           !memcmp(header, golden, (size_t)bytes));
    plumb_gguf gguf;
    T_TRUE(plumb__gguf_parse(golden, (int64_t)size, (int64_t)size, path, &gguf, &err) == PLUMB_OK);
    T_TRUE(gguf.by_name && gguf.tensors == GOLDEN_TENSORS && gguf.data_offset == bytes && gguf.alignment == 64);
    for (int i = 0; i < GOLDEN_TENSORS && gguf.by_name; i++) {
        const plumb_gguf_tensor *t = plumb__gguf_find_tensor(&gguf, golden_tensors[i].name);
        T_CHECK(t == &gguf.tensor[i] && t->type == (int32_t)golden_tensors[i].type &&
                t->dims == golden_tensors[i].dims && t->bytes == golden_tensors[i].bytes &&
                !memcmp(t->shape, golden_tensors[i].shape, sizeof t->shape), "%s",
                golden_tensors[i].name);
        /* Payloads there count 1, 2, 3... from each tensor's first byte to its last. */
        T_CHECK(t && t->offset == offsets[i] && golden[t->offset] == 1 &&
                golden[t->offset + t->bytes - 1] == t->bytes % 256, "%s", golden_tensors[i].name);
    }
    T_TRUE(gguf.by_name && !plumb__gguf_find_tensor(&gguf, "blk.0.norm") &&
           !plumb__gguf_find(&gguf, "codes"));
    plumb__gguf_free(&gguf);
    free(golden);
    free(header);
    plumb__gguf_writer_destroy(writer);
}

/* ---- Refusals --------------------------------------------------------------------------------- */

static void write_u32_twice(plumb_gguf_writer *w) {
    plumb__gguf_write_u32(w, "k", 1);
    plumb__gguf_write_u32(w, "k", 1);
}
static void write_alignment(plumb_gguf_writer *w) { plumb__gguf_write_u32(w, "general.alignment", 32); }
static void write_no_key(plumb_gguf_writer *w) { plumb__gguf_write_u32(w, "", 1); }
static void write_broken_text(plumb_gguf_writer *w) { plumb__gguf_write_string(w, "k", "\xC3", 1); }
static void write_negative_text(plumb_gguf_writer *w) { plumb__gguf_write_string(w, "k", "a", -1); }
static void write_bad_truth(plumb_gguf_writer *w) { ARRAY(w, "k", PLUMB_GGUF_BOOL, uint8_t, 1, 2); }
static void write_string_array(plumb_gguf_writer *w) { ARRAY(w, "k", PLUMB_GGUF_STRING, uint8_t, 1); }
static void write_unknown_array(plumb_gguf_writer *w) { ARRAY(w, "k", (plumb_gguf_type)13, uint8_t, 1); }
static void write_negative_array(plumb_gguf_writer *w) {
    plumb__gguf_write_array(w, "k", PLUMB_GGUF_U8, "a", -1);
}
static void write_huge_array(plumb_gguf_writer *w) {
    plumb__gguf_write_array(w, "k", PLUMB_GGUF_U64, "a", INT64_MAX);
}
static void write_strings(plumb_gguf_writer *w, int64_t promised, int count) {
    plumb__gguf_write_strings_begin(w, "k", promised);
    for (int i = 0; i < count; i++) plumb__gguf_write_strings_add(w, "s", 1);
}
static void write_too_few(plumb_gguf_writer *w) { write_strings(w, 3, 2); }
static void write_too_many(plumb_gguf_writer *w) { write_strings(w, 3, 4); }
static void write_negative_count(plumb_gguf_writer *w) { write_strings(w, -1, 0); }
static void write_early(plumb_gguf_writer *w) {
    write_strings(w, 3, 2);
    plumb__gguf_write_u32(w, "early", 1);
    plumb__gguf_write_strings_add(w, "s", 1);
}
static void write_shape(plumb_gguf_writer *w, plumb_ggml_type type, int dims, int64_t rows) {
    plumb__gguf_write_tensor(w, "t", type, dims, (const int64_t[]){48, rows, 1, 1, 1});
}
static void write_cut_blocks(plumb_gguf_writer *w) { write_shape(w, PLUMB_GGML_MXFP4, 2, 2); }
static void write_no_rows(plumb_gguf_writer *w) { write_shape(w, PLUMB_GGML_F32, 2, 0); }
static void write_huge_shape(plumb_gguf_writer *w) { write_shape(w, PLUMB_GGML_I8, 2, INT64_MAX / 40); }
static void write_five_dims(plumb_gguf_writer *w) { write_shape(w, PLUMB_GGML_F32, 5, 1); }
static void write_no_dims(plumb_gguf_writer *w) { write_shape(w, PLUMB_GGML_F32, 0, 1); }
static void write_f16(plumb_gguf_writer *w) { write_shape(w, (plumb_ggml_type)1, 1, 1); }
static void write_huge_sum(plumb_gguf_writer *w) {
    write_shape(w, PLUMB_GGML_I8, 2, INT64_MAX / 64);
    write_shape(w, PLUMB_GGML_I8, 2, INT64_MAX / 64);
}
static void write_huge_file(plumb_gguf_writer *w) { /* without the header it is below 2^63 */
    plumb__gguf_write_tensor(w, "t", PLUMB_GGML_I8, 1, (const int64_t[]){INT64_MAX - 63});
}
static void write_tensor_twice(plumb_gguf_writer *w) {
    write_shape(w, PLUMB_GGML_F32, 1, 1);
    write_shape(w, PLUMB_GGML_F32, 1, 1);
}
static void write_long_name(plumb_gguf_writer *w) {
    plumb__gguf_write_tensor(w, N63 "n", PLUMB_GGML_F32, 1, (const int64_t[]){1});
}

/* A fault, and what comes after it, which must not hide it. */
static void refusals(void) {
    static const struct {
        void (*write)(plumb_gguf_writer *writer);
        plumb_status status;
        const char *field, *found;
    } cases[] = {
        {write_u32_twice, PLUMB_ERROR_FORMAT, "k", "second time"},
        {write_alignment, PLUMB_ERROR_FORMAT, "general.alignment", "second time"},
        {write_no_key, PLUMB_ERROR_FORMAT, "key 1", "name of 0 bytes"},
        {write_broken_text, PLUMB_ERROR_FORMAT, "k", "byte C3"},
        {write_negative_text, PLUMB_ERROR_ARGUMENT, "string", "-1 bytes"},
        {write_bad_truth, PLUMB_ERROR_FORMAT, "k", "BOOL byte 2"},
        {write_string_array, PLUMB_ERROR_ARGUMENT, "k", "type 8"},
        {write_unknown_array, PLUMB_ERROR_ARGUMENT, "k", "type 13"},
        {write_negative_array, PLUMB_ERROR_ARGUMENT, "k", "-1 items"},
        {write_huge_array, PLUMB_ERROR_ARGUMENT, "k", "9223372036854775807 items"},
        {write_too_few, PLUMB_ERROR_ARGUMENT, "strings", "1 strings fewer"},
        {write_too_many, PLUMB_ERROR_ARGUMENT, "strings", "one string more"},
        {write_negative_count, PLUMB_ERROR_ARGUMENT, "k", "-1 strings"},
        {write_early, PLUMB_ERROR_ARGUMENT, "early", "1 strings early"},
        {write_cut_blocks, PLUMB_ERROR_ARGUMENT, "t", "type 39, 2 dimensions"},
        {write_no_rows, PLUMB_ERROR_ARGUMENT, "t", "type 0, 2 dimensions"},
        {write_huge_shape, PLUMB_ERROR_ARGUMENT, "t", "type 24"},
        {write_five_dims, PLUMB_ERROR_ARGUMENT, "t", "5 dimensions"},
        {write_no_dims, PLUMB_ERROR_ARGUMENT, "t", "0 dimensions"},
        {write_f16, PLUMB_ERROR_ARGUMENT, "t", "type 1"},
        {write_huge_sum, PLUMB_ERROR_ARGUMENT, "t", "type 24"},
        {write_huge_file, PLUMB_ERROR_ARGUMENT, "file size", "payloads of "},
        {write_tensor_twice, PLUMB_ERROR_FORMAT, "t", "second time"},
        {write_long_name, PLUMB_ERROR_FORMAT, "tensor 0", "64 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_gguf_writer *writer = new_writer(32);
        cases[i].write(writer);
        uint8_t *header;
        int64_t bytes, file_bytes;
        plumb_error err = {0};
        plumb_status status =
            plumb__gguf_writer_finish(writer, &header, &bytes, NULL, &file_bytes, &err);
        T_CHECK(status == cases[i].status && !header, "case %d", (int)i);
        T_ERROR(&err, cases[i].status, "", cases[i].field, cases[i].found);
        T_CHECK(strstr(err.found, cases[i].found), "%s: %s", cases[i].found, err.found);
        plumb__gguf_writer_destroy(writer);
    }
}

static void alignments(void) {
    static const int64_t good[] = {32, 16384, INT64_C(1) << 31};
    static const int64_t bad[] = {-32, 0, 16, 33, 48, INT64_C(1) << 32};
    plumb_error err = {0};
    plumb_gguf_writer *writer;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        T_CHECK(plumb__gguf_writer_create(good[i], &writer, &err) == PLUMB_OK, "%d", (int)i);
        plumb__gguf_writer_destroy(writer);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        T_CHECK(plumb__gguf_writer_create(bad[i], &writer, &err) != PLUMB_OK && !writer, "%d", (int)i);
        T_ERROR(&err, PLUMB_ERROR_ARGUMENT, "", "general.alignment", "alignment");
    }
}

/* ---- Headers of any size ---------------------------------------------------------------------- */

/* Reads of the header begin at 1 MiB: one header inside the first, one of several. */
static void large_headers(void) {
    static const int counts[] = {1, 100000, 300000};
    char folder[256], path[300], token[16];
    fixture_folder("gguf", folder);
    (void)snprintf(path, sizeof path, "%s/x.gguf", folder);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        plumb_gguf_writer *writer = new_writer(16384);
        plumb__gguf_write_strings_begin(writer, "tokens", counts[i]);
        for (int j = 0; j < counts[i]; j++)
            plumb__gguf_write_strings_add(writer, token, snprintf(token, sizeof token, "token%d", j));
        plumb__gguf_write_u32(writer, "last", 7);
        plumb__gguf_write_tensor(writer, "t", PLUMB_GGML_I8, 1, (const int64_t[]){3});
        uint8_t *header;
        int64_t bytes, offset, file_bytes, last = 0;
        plumb_error err = {0};
        T_TRUE(plumb__gguf_writer_finish(writer, &header, &bytes, &offset, &file_bytes, &err) ==
               PLUMB_OK);
        T_TRUE(bytes % 16384 == 0 && offset == bytes && file_bytes == bytes + 16384);
        file_bytes = bytes + 3; /* without the last padding */
        uint8_t *file = calloc(1, (size_t)file_bytes);
        memcpy(file, header, (size_t)bytes);
        fixture_write(folder, "x.gguf", file, (size_t)file_bytes);
        free(file);
        struct stat on_disk;
        int fd;
        T_TRUE(plumb__file_open(path, &fd, &on_disk, &err) == PLUMB_OK);
        plumb_gguf gguf;
        T_TRUE(plumb__gguf_read(fd, file_bytes - 1, path, &gguf, &err) != PLUMB_OK);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.gguf", "t", "a payload cut short");
        plumb__gguf_free(&gguf);
        plumb_status status = plumb__gguf_read(fd, file_bytes, path, &gguf, &err);
        T_CHECK(status == PLUMB_OK, "%s %s", err.field, err.found);
        T_TRUE(status == PLUMB_OK && plumb__gguf_integer(&gguf, "last", 7, 7, &last, &err) == PLUMB_OK);
        T_TRUE(gguf.header_bytes <= bytes && !memcmp(gguf.header, header, (size_t)gguf.header_bytes));
        T_TRUE(status == PLUMB_OK && gguf.tensors == 1 && gguf.tensor[0].offset == bytes);
        plumb__gguf_free(&gguf);
        (void)close(fd);
        free(header);
        plumb__gguf_writer_destroy(writer);
    }
}

T_MAIN({"golden_file", golden_file}, {"refusals", refusals}, {"alignments", alignments},
       {"large_headers", large_headers})
