/* Shard headers, good and hostile.  Each bad header must be refused at the right byte, in the name
 * of the right tensor. */
#include "base/file.h"
#include "fixture.h"
#include "format/checkpoint_index.h"
#include "format/safetensors.h"
#include "t.h"

#include <stdlib.h>
#include <unistd.h>

#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define X ENTRY("x", "F32", "[2]", "[0,8]")

/* Parses a copy of exactly the header's size, so that a checker sees reads past it. */
static plumb_status parse_bytes(const char *header, size_t size, int64_t data_bytes,
                                plumb_tensor_list *list, char **text, plumb_error *err) {
    *text = malloc(size + 1);
    memcpy(*text, header, size);
    (*text)[size] = 0;
    return plumb__safetensors_parse(*text, (int64_t)size, data_bytes, "x.safetensors", 3, list,
                                    err);
}

static void good_headers(void) {
    static const struct {
        const char *header;
        int64_t data_bytes;
        int count;
    } cases[] = {
        {"{}", 0, 0},
        {" {\t} \n\r ", 0, 0},
        {"{" X "}", 8, 1},
        {"{\"__metadata__\":{\"format\":\"pt\\\"\\u0041\",\"y\":\"\xC3\xA9\"}," X "}   ", 8, 1},
        {"{\"__metadata__\":[1,-2.5e3,true,null,[],{}]," X "}", 8, 1},
        {"{\"x\":{\"shape\":[ 2 ],\"data_offsets\":[ 0 , 8 ],\"dtype\":\"F32\"}}", 8, 1},
        /* not in order of offsets, and with a gap */
        {"{" ENTRY("b", "BF16", "[1,2]", "[12,16]") "," X "}", 16, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_tensor_list list = {0};
        plumb_error err = {0};
        char *text;
        plumb_status status = parse_bytes(cases[i].header, strlen(cases[i].header),
                                          cases[i].data_bytes, &list, &text, &err);
        T_CHECK(status == PLUMB_OK, "%s: %s %s", cases[i].header, err.field, err.found);
        T_CHECK(list.count == cases[i].count, "%s: %d", cases[i].header, (int)list.count);
        int64_t data_begin = 8 + (int64_t)strlen(cases[i].header);
        if (list.count > 0) {
            const plumb_tensor *x = &list.items[0];
            T_CHECK(!strcmp(x->name, "x"), "%s", x->name);
            T_TRUE(x->dtype == PLUMB_DTYPE_F32 && x->rank == 1 && x->shard == 3);
            T_TRUE(x->shape[0] == 2 && x->shape[1] == 1 && x->bytes == 8);
            T_TRUE(x->offset == data_begin);
        }
        if (list.count > 1) {
            const plumb_tensor *b = &list.items[1];
            T_CHECK(!strcmp(b->name, "b"), "%s", b->name);
            T_TRUE(b->dtype == PLUMB_DTYPE_BF16 && b->rank == 2 && b->shape[1] == 2);
            T_TRUE(b->offset == data_begin + 12 && b->bytes == 4);
        }
        free(list.items);
        free(text);
    }
}

static void bad_headers(void) {
    static const struct {
        const char *header, *field;
        int64_t data_bytes, offset; /* offset -1: only that there is one */
    } cases[] = {
        {"[]", "JSON", 0, 8},
        {"x", "JSON", 0, 8},
        {"{", "JSON", 0, 9},
        {"{}}", "JSON", 0, 10},
        {"{" X ",}", "JSON", 8, -1},
        {"{" X " " X "}", "JSON", 8, -1},
        {"{\"x\"}", "JSON", 0, 12},
        {"{\"x\":1}", "JSON", 0, 13},
        {"{\"x\":[]}", "JSON", 0, 13},
        {"{x:{}}", "JSON", 0, 9},
        {"{\"x\n\":{}}", "JSON", 0, 11},
        {"{\"\xC3\xA9\":{}}", "JSON", 0, 10},
        {"{\"\\u0078\":{}}", "JSON", 0, 10},
        {"{\"x\":{}}", "x", 0, -1},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", "x", 0, -1},
        {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "x", 8, -1},
        {"{\"x\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "x", 8, -1},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}}", "x", 8, -1},
        {"{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "x",
         8, -1},
        {"{" ENTRY("x", "F64", "[1]", "[0,8]") "}", "x", 8, -1},
        {"{" ENTRY("x", "f32", "[2]", "[0,8]") "}", "x", 8, -1},
        {"{" ENTRY("x", "", "[2]", "[0,8]") "}", "x", 8, -1},
        {"{\"x\":{\"dtype\":3,\"shape\":[2],\"data_offsets\":[0,8]}}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[]", "[0,4]") "}", "x", 4, -1},
        {"{" ENTRY("x", "F32", "[1,1,2]", "[0,8]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[0]", "[0,0]") "}", "x", 0, -1},
        {"{" ENTRY("x", "F32", "[2,0]", "[0,0]") "}", "x", 0, -1},
        {"{" ENTRY("x", "F32", "[-2]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[2.0]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[2e0]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[02]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[\"2\"]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "2", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[9223372036854775808]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[99999999999999999999999]", "[0,8]") "}", "JSON", 8, -1},
        {"{" ENTRY("x", "F32", "[4611686018427387904,4]", "[0,0]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[4611686018427387904]", "[0,0]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[0]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[0,8,8]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[8,0]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[0,7]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[0,16]") "}", "x", 16, -1},
        {"{" ENTRY("x", "F32", "[2]", "[1,9]") "}", "x", 8, -1},
        {"{" ENTRY("x", "F32", "[2]", "[9223372036854775799,9223372036854775807]") "}", "x", 8, -1},
        {"{" X "}", "x", 7, -1},                                         /* truncated data */
        {"{" X "}", "file size", 9, 8 + sizeof "{" X "}" - 1 + 8}, /* bytes behind the data */
        {"{}", "file size", 1, 10},
        {"{" X "," ENTRY("y", "F32", "[2]", "[4,12]") "}", "y", 12, -1}, /* overlap */
        {"{" X "," ENTRY("y", "F32", "[2]", "[0,8]") "}", "", 8, -1},    /* the same bytes */
        {"{" ENTRY("y", "F32", "[1]", "[4,8]") "," X "}", "y", 8, -1},
        {"{\"__metadata__\":{\"a\":\"b}," X "}", "JSON", 8, -1},
        {"{\"__metadata__\":{\"a\" \"b\"}," X "}", "JSON", 8, -1},
        {"{\"__metadata__\":{1:2}," X "}", "JSON", 8, -1},
        {"{\"__metadata__\":," X "}", "JSON", 8, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_tensor_list list = {0};
        plumb_error err = {0};
        char *text;
        size_t size = strlen(cases[i].header);
        T_CHECK(parse_bytes(cases[i].header, size, cases[i].data_bytes, &list, &text, &err) !=
                    PLUMB_OK, "%s", cases[i].header);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.safetensors", cases[i].field, cases[i].header);
        T_CHECK(cases[i].offset < 0 ? err.offset >= 8 : err.offset == cases[i].offset,
                "%s: offset %lld", cases[i].header, (long long)err.offset);
        free(list.items);
        free(text);
    }
}

static void deep_nesting(void) {
    enum { DEPTH = 100000 };
    static char header[DEPTH + 64];
    int at = snprintf(header, sizeof header, "{\"__metadata__\":");
    memset(header + at, '[', DEPTH);
    plumb_tensor_list list = {0};
    plumb_error err = {0};
    char *text;
    T_TRUE(parse_bytes(header, (size_t)at + DEPTH, 0, &list, &text, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.safetensors", "JSON", "deep nesting");
    T_CHECK(err.offset == 8 + at + 64, "%lld", (long long)err.offset);
    free(text);
    free(list.items);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static plumb_status read_file(const char *folder, const char *bytes, size_t size,
                              plumb_error *err) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/x.safetensors", folder);
    fixture_write(folder, "x.safetensors", bytes, size);
    int fd;
    struct stat opened;
    plumb_tensor_list list = {0};
    char *text = NULL;
    plumb_status status = plumb__file_open(path, &fd, &opened, err);
    if (status != PLUMB_OK) return status;
    status = plumb__safetensors_read(fd, opened.st_size, path, 0, &list, &text, err);
    T_CHECK(status == PLUMB_OK || list.count == 0, "no tensors of a refused file");
    (void)close(fd);
    free(list.items);
    free(text);
    return status;
}

static void truncated_anywhere(void) {
    char file[256] = {0};
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"}," X
                                 "," ENTRY("y", "I8", "[3,2]", "[8,14]") "} ";
    size_t size = 8 + sizeof header - 1;
    file[0] = (char)(size - 8);
    memcpy(file + 8, header, sizeof header - 1);
    size += 14;
    char folder[256];
    fixture_folder("safetensors", folder);
    plumb_error err = {0};
    T_CHECK(read_file(folder, file, size, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    for (size_t n = 0; n < size; n++) {
        T_CHECK(read_file(folder, file, n, &err) == PLUMB_ERROR_FORMAT, "%zu bytes", n);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.safetensors", "", "truncated");
    }
}

static void absurd_lengths(void) {
    static const uint64_t lengths[] = {0, 1, 3, 1000, 100 << 20, (100 << 20) + 1, UINT64_C(1) << 63,
                                       UINT64_MAX, UINT64_MAX - 7};
    char folder[256];
    fixture_folder("safetensors", folder);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char file[10];
        for (int b = 0; b < 8; b++) file[b] = (char)(lengths[i] >> (8 * b) & 0xFF);
        memcpy(file + 8, "{}", 2);
        plumb_error err = {0};
        T_CHECK(read_file(folder, file, sizeof file, &err) == PLUMB_ERROR_FORMAT, "%zu", i);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.safetensors", "header length", "absurd length");
        T_CHECK(err.offset == 0, "%lld", (long long)err.offset);
    }
}

/* A length that the (sparse) file could hold, but no header needs. */
static void header_limit(void) {
    char folder[256], path[512];
    fixture_folder("safetensors", folder);
    uint64_t length = (100 << 20) + 1;
    char file[8];
    for (int b = 0; b < 8; b++) file[b] = (char)(length >> (8 * b) & 0xFF);
    fixture_write(folder, "x.safetensors", file, sizeof file);
    (void)snprintf(path, sizeof path, "%s/x.safetensors", folder);
    T_TRUE(truncate(path, 200 << 20) == 0);
    int fd;
    struct stat opened;
    plumb_error err = {0};
    plumb_tensor_list list = {0};
    char *text;
    T_TRUE(plumb__file_open(path, &fd, &opened, &err) == PLUMB_OK);
    T_TRUE(plumb__safetensors_read(fd, opened.st_size, path, 0, &list, &text, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.safetensors", "header length", "header limit");
    (void)close(fd);
    T_TRUE(truncate(path, 0) == 0);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void modern_names(void) {
    static const struct {
        const char *old, *modern;
    } cases[] = {
        {"layers.0.attn.wq_a.weight", "layers.0.attn.wq_a.weight"},
        {"model.layers.3.self_attn.wq_a.weight_scale_inv", "layers.3.attn.wq_a.scale"},
        {"model.layers.3.mlp.gate.e_score_correction_bias", "layers.3.ffn.gate.bias"},
        {"model.norm.weight", "norm.weight"},
        {"model.vision.blocks.0.mlp.w1.weight", "vision.blocks.0.mlp.w1.weight"},
        {"vision.blocks.0.attn.wo.bias", "vision.blocks.0.attn.wo.bias"},
        {"mtp.0.mlp.experts.1.w2.weight_scale_inv", "mtp.0.ffn.experts.1.w2.scale"},
        {"models.0.mlps.x", "models.0.mlps.x"},
        {"layers.model.x", "layers.model.x"},
        {"model.", ""},
        {"model", "model"},
        {"..mlp..", "..ffn.."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "%s", cases[i].old);
        plumb__safetensors_modern_name(name);
        T_CHECK(!strcmp(name, cases[i].modern), "%s: %s", cases[i].old, name);
    }
}

/* ---- The index ------------------------------------------------------------------------------- */

static plumb_status parse_index(const char *json, plumb_index *index, plumb_error *err) {
    return plumb__index_parse(strdup(json), (int64_t)strlen(json), "index.json", index, err);
}

static void good_index(void) {
    plumb_index index;
    plumb_error err = {0};
    T_CHECK(parse_index("{\"other\": [1], \"weight_map\": {\"model.b\": \"s2\", \"a\": \"s1\","
                        " \"c\": \"s2\"}, \"metadata\": {\"x\": 1.5, \"total_size\": 42}}",
                        &index, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    T_TRUE(index.count == 3 && index.n_files == 2 && index.total_size == 42);
    T_TRUE(!strcmp(index.entries[0].name, "a") && !strcmp(index.entries[0].file, "s1"));
    T_TRUE(!strcmp(index.entries[1].name, "b") && !strcmp(index.entries[1].file, "s2"));
    T_TRUE(!strcmp(index.files[0], "s1") && !strcmp(index.files[1], "s2"));
    plumb__index_free(&index);
    T_TRUE(parse_index("{\"weight_map\": {\"a\": \"s1\"}}", &index, &err) == PLUMB_OK);
    T_TRUE(index.total_size == -1);
    plumb__index_free(&index);
}

static void bad_index(void) {
    static const struct {
        const char *json, *field;
    } cases[] = {
        {"", "JSON"},
        {"{}", "weight_map"},
        {"{\"metadata\": {}}", "weight_map"},
        {"{\"weight_map\": {}}", "weight_map"},
        {"{\"weight_map\": []}", "JSON"},
        {"{\"weight_map\": {\"a\": 1}}", "JSON"},
        {"{\"weight_map\": {\"a\": \"../s\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"sub/s\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"..\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \".\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"s..t\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"s\\u0000\"}}", "JSON"},
        {"{\"weight_map\": {\"a\": \"s\", \"a\": \"s\"}}", "a"},
        {"{\"weight_map\": {\"a\": \"s\", \"model.a\": \"s\"}}", "a"},
        {"{\"weight_map\": {\"a\": \"s\"}, \"weight_map\": {\"b\": \"s\"}}", "weight_map"},
        {"{\"weight_map\": {\"a\": \"s\"}, \"metadata\": {}, \"metadata\": {}}", "metadata"},
        {"{\"weight_map\": {\"a\": \"s\"}, \"metadata\": {\"total_size\": -1}}", "JSON"},
        {"{\"weight_map\": {\"a\": \"s\"}} x", "JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_index index;
        plumb_error err = {0};
        T_CHECK(parse_index(cases[i].json, &index, &err) != PLUMB_OK, "%s", cases[i].json);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "index.json", cases[i].field, cases[i].json);
        T_CHECK(err.offset >= 0, "%s", cases[i].json);
    }
}

T_MAIN({"good_headers", good_headers}, {"bad_headers", bad_headers}, {"deep_nesting", deep_nesting},
       {"truncated_anywhere", truncated_anywhere}, {"absurd_lengths", absurd_lengths},
       {"header_limit", header_limit},
       {"modern_names", modern_names}, {"good_index", good_index}, {"bad_index", bad_index})
