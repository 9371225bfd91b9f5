/* GGUF headers, good and hostile.  Bad ones are spelled in a small language, in which '@' marks the
 * byte where the fault must be found. */
#include "base/file.h"
#include "fixture.h"
#include "format/gguf.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Headers as recipes ----------------------------------------------------------------------- */

typedef struct recipe_bytes {
    uint8_t at[1024];
    int64_t size, mark; /* mark: place of '@', -1: none */
} recipe_bytes;

static void append(recipe_bytes *b, const void *bytes, size_t size) {
    if (b->size + (int64_t)size > (int64_t)sizeof b->at) exit(2);
    memcpy(b->at + b->size, bytes, size);
    b->size += (int64_t)size;
}

/* Words of a recipe, between blanks:  =TEXT these bytes;  N:NUMBER a number of N bytes;
 * .TEXT a string with its length;  x:HH one byte;  @ the place of the fault. */
static recipe_bytes make(const char *recipe) {
    recipe_bytes b = {.mark = -1};
    while (*recipe) {
        size_t length = strcspn(recipe, " ");
        if (recipe[0] == '@') {
            b.mark = b.size;
        } else if (recipe[0] == '=') {
            append(&b, recipe + 1, length - 1);
        } else if (recipe[0] == '.') {
            uint64_t size = length - 1;
            append(&b, &size, sizeof size);
            append(&b, recipe + 1, length - 1);
        } else if (length > 2 && recipe[1] == ':') {
            uint64_t value = strtoull(recipe + 2, NULL, recipe[0] == 'x' ? 16 : 10);
            append(&b, &value, recipe[0] == 'x' ? 1 : (size_t)(recipe[0] - '0'));
        } else if (length > 0) {
            exit(2);
        }
        recipe += length + (recipe[length] != 0);
    }
    return b;
}

#define START "=GGUF 4:3 "
#define ONE_KEY START "8:0 8:1 "
#define ONE_TENSOR START "8:1 8:0 "
#define HALF "18446744073709551615" /* 2^64 - 1, which is -1 to the careless */
#define N16 "nnnnnnnnnnnnnnnn"

/* `more`: bytes that the file holds behind the header. */
typedef struct bad_header {
    const char *recipe;
    int64_t more;
    const char *field, *found;
} bad_header;

static const bad_header bad_starts[] = {
    {"@", 0, "magic", "4 bytes"},
    {"@ =GGU", 0, "magic", "4 bytes"},
    {"@ =GGUX 4:3 8:0 8:0", 0, "magic", "47 47 55 58"},
    {"=GGUF @ 4:2 8:0 8:0", 0, "version", "2"},
    {"=GGUF @ 4:50331648 8:0 8:0", 0, "version", "50331648"}, /* the other byte order */
    {START "@ 8:1 8:0", 24, "number of tensors", "count of 1"},
    {START "@ 8:" HALF " 8:0", 0, "number of tensors", "count of " HALF},
    {START "8:0 @ 8:1", 13, "number of keys", "count of 1"},
    {START "8:0 @ 8:" HALF, 1000, "number of keys", "count of " HALF},
};

static const bad_header bad_keys[] = {
    {ONE_KEY "@ 8:0 4:0 1:0", 9, "key 0", "name of 0 bytes"},
    {ONE_KEY "@ 8:65536 =kk", 70000, "key 0", "name of 65536 bytes"},
    {ONE_KEY "@ 8:" HALF " =kk 4:0", 100, "key 0", "name of " HALF},
    {ONE_KEY "8:10 @ =kk 4:0", 3, "key 0", "10 bytes"},
    {ONE_KEY "8:3 =k @ x:00 =k 4:0 1:7", 9, "key 0", "NUL"},
    {ONE_KEY "8:2 =k @ x:FF 4:0 1:7", 9, "key 0", "byte FF"},
    {ONE_KEY ".k @ 4:13 8:0 1:0", 9, "k", "value type 13"},
    {ONE_KEY ".k @ 4:4294967295 8:0 1:0", 9, "k", "value type 4294967295"},
    {ONE_KEY ".k 4:9 @ 4:9 8:1 4:0", 9, "k", "array of arrays"},
    {ONE_KEY ".k 4:9 @ 4:99 8:1 4:0", 9, "k", "value type 99"},
    {ONE_KEY ".k 4:9 4:10 @ 8:3 8:1 8:2", 7, "k", "count of 3"},
    {ONE_KEY ".k 4:9 4:10 @ 8:2305843009213693952 8:1", 0, "k", "count of 2305843009213693952"},
    {ONE_KEY ".k 4:9 4:0 @ 8:" HALF " 1:1", 0, "k", "count of " HALF},
    {ONE_KEY ".k 4:9 4:8 @ 8:2 .a", 6, "k", "count of 2"},
    {ONE_KEY ".k 4:9 4:8 8:2 .a 8:9 @ =b", 7, "k", "9 bytes"},
    {ONE_KEY ".k 4:9 4:8 8:2 .a 8:" HALF " @ =b", 7, "k", HALF " bytes"},
    {ONE_KEY ".k 4:9 4:8 8:2 .a 8:1 @ x:80", 9, "k", "byte 80"},
    {ONE_KEY ".k 4:9 4:7 8:3 1:0 1:1 @ 1:2", 9, "k", "BOOL byte 2"},
    {ONE_KEY ".k 4:7 @ 1:255", 9, "k", "BOOL byte 255"},
    {ONE_KEY ".k 4:8 8:9223372036854775807 @ =a", 7, "k", "9223372036854775807 bytes"},
    {ONE_KEY ".k 4:8 8:3 =a @ x:C3 =b", 9, "k", "byte C3"},         /* cut */
    {ONE_KEY ".k 4:8 8:2 @ x:C0 x:80", 9, "k", "byte C0"},          /* overlong */
    {ONE_KEY ".k 4:8 8:3 @ x:ED x:A0 x:80", 9, "k", "byte ED"},     /* a surrogate */
    {ONE_KEY ".k 4:8 8:4 @ x:F4 x:90 x:80 x:80", 9, "k", "byte F4"}, /* beyond U+10FFFF */
    {ONE_KEY ".k 4:10 @ 4:1", 0, "k", "8 bytes"},
    {START "8:0 8:3 .k 4:0 1:1 .j 4:0 1:2 .k 4:1 @ 1:3", 9, "k", "second time"},
    {ONE_KEY ".general.alignment 4:4 @ 4:0", 9, "general.alignment", "0"},
    {ONE_KEY ".general.alignment 4:4 @ 4:48", 9, "general.alignment", "48"},
    {ONE_KEY ".general.alignment 4:10 @ 8:32", 9, "general.alignment", "value type 10"},
    {ONE_KEY ".general.alignment 4:9 4:4 8:1 @ 4:32", 9, "general.alignment", "value type 9"},
};

static const bad_header bad_tensors[] = {
    {ONE_TENSOR "@ 8:0 4:1 8:1 4:0 8:0", 99, "tensor 0", "name of 0 bytes"},
    {ONE_TENSOR "@ 8:64 =" N16 N16 N16 N16 " 4:1 8:1 4:0 8:0", 99, "tensor 0", "64 bytes"},
    {ONE_TENSOR "8:3 =t @ x:00 =t 4:1 8:1 4:0 8:0", 99, "tensor 0", "NUL"},
    {ONE_TENSOR "8:2 =t @ x:E9 4:1 8:1 4:0 8:0", 99, "tensor 0", "byte E9"},
    {ONE_TENSOR ".t @ 4:0 4:0 8:0", 99, "t", "0 dimensions"},
    {ONE_TENSOR ".t @ 4:5 8:1 8:1 8:1 8:1 8:1 4:0 8:0", 99, "t", "5 dimensions"},
    {ONE_TENSOR ".t 4:2 8:1 @ 8:0 4:0 8:0", 99, "t", "extent 0"},
    {ONE_TENSOR ".t 4:1 @ 8:9223372036854775808 4:24 8:0", 99, "t", "extent 9223372036854775808"},
    {ONE_TENSOR ".t 4:1 8:4 @ 4:1 8:0", 99, "t", "tensor type 1"}, /* F16 */
    {ONE_TENSOR ".t 4:1 8:4 @ 4:4294967295 8:0", 99, "t", "tensor type 4294967295"},
    {ONE_TENSOR ".t 4:1 8:4611686018427387904 @ 4:0 8:0", 99, "t", "F32 [4611686018427387904, 1,"},
    {ONE_TENSOR ".t 4:3 8:4194304 8:4194304 8:4194304 @ 4:24 8:0", 99, "t", "I8 [4194304, "},
    {ONE_TENSOR ".t 4:2 8:48 8:2 @ 4:39 8:0", 99, "t", "MXFP4 [48, 2, 1, 1]"},
    {ONE_TENSOR ".t 4:1 8:4 4:24 @ 8:32", 99, "t", "payload offset 32"},
    {START "8:2 8:0 .t 4:1 8:33 4:24 8:0 .u 4:1 8:1 4:24 @ 8:33", 199, "u", "payload offset 33"},
    {START "8:2 8:0 .t 4:1 8:33 4:24 8:0 .u 4:1 8:1 4:24 @ 8:32", 199, "u", "payload offset 32"},
    {START "8:2 8:1 .general.alignment 4:4 4:128 .t 4:1 8:33 4:24 8:0 .u 4:1 8:1 4:24 @ 8:64", 199,
     "u", "payload offset 64"},
    {ONE_TENSOR ".t 4:1 8:9223372036854775807 4:24 @ 8:0", 99, "t",
     "payload of 9223372036854775807 bytes"},
    {START "8:2 8:0 .t 4:1 8:1 4:24 8:0 .t 4:1 8:1 4:24 8:32", 199, "t", "second time"},
    /* 57 bytes of header: the payload takes bytes 64 to 96. */
    {ONE_TENSOR ".t 4:1 8:33 4:24 8:0", 39, "t", "payload of 33 bytes"},
    {ONE_TENSOR ".t 4:1 8:33 4:24 8:0", 0, "t", "payload of 33 bytes"},
};

static void check_bad(const bad_header *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        recipe_bytes b = make(cases[i].recipe);
        plumb_gguf gguf;
        plumb_error err = {0};
        plumb_status status = plumb__gguf_parse(b.at, b.size, b.size + cases[i].more, "x.gguf",
                                                &gguf, &err);
        T_CHECK(status == PLUMB_ERROR_FORMAT, "%s", cases[i].recipe);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "x.gguf", cases[i].field, cases[i].recipe);
        T_CHECK(strstr(err.found, cases[i].found), "%s: found %s", cases[i].recipe, err.found);
        T_CHECK(b.mark < 0 || err.offset == b.mark, "%s: at %" PRId64 " instead of %" PRId64,
                cases[i].recipe, err.offset, b.mark);
        plumb__gguf_free(&gguf);
    }
}

static void bad_headers(void) {
    check_bad(bad_starts, sizeof bad_starts / sizeof bad_starts[0]);
    check_bad(bad_keys, sizeof bad_keys / sizeof bad_keys[0]);
    check_bad(bad_tensors, sizeof bad_tensors / sizeof bad_tensors[0]);
}

static void good_headers(void) {
    static const struct {
        const char *recipe;
        int64_t more, values, tensors, data_offset;
    } cases[] = {
        {START "8:0 8:0", 0, 0, 0, 32},
        {START "8:0 8:0", 1000, 0, 0, 32},
        {ONE_KEY ".k 4:7 1:1", 0, 1, 0, 64},
        {ONE_KEY ".general.alignment 4:4 4:1", 0, 1, 0, 57},
        {ONE_KEY ".general.alignment 4:4 4:2147483648", 0, 1, 0, 2147483648},
        {ONE_TENSOR ".t 4:1 8:33 4:24 8:0", 40, 0, 1, 64}, /* without padding at the end */
        {ONE_TENSOR ".t 4:1 8:33 4:24 8:0", 71, 0, 1, 64},
        {ONE_TENSOR ".t 4:4 8:32 8:1 8:1 8:1 4:39 8:0", 40, 0, 1, 96},
        {START "8:2 8:1 .general.alignment 4:4 4:64 .t 4:1 8:33 4:24 8:0 .u 4:1 8:1 4:24 8:64", 200,
         1, 2, 128},
        {START "8:1 8:1 .k 4:7 1:0 .k 4:1 8:1 4:24 8:0", 99, 1, 1, 96}, /* a key and a tensor */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        recipe_bytes b = make(cases[i].recipe);
        plumb_gguf gguf;
        plumb_error err = {0};
        plumb_status status = plumb__gguf_parse(b.at, b.size, b.size + cases[i].more, NULL, &gguf,
                                                &err);
        T_CHECK(status == PLUMB_OK, "%s: %s %s", cases[i].recipe, err.field, err.found);
        T_CHECK(gguf.values == cases[i].values && gguf.tensors == cases[i].tensors &&
                gguf.data_offset == cases[i].data_offset, "%s: data at %" PRId64,
                cases[i].recipe, gguf.data_offset);
        T_CHECK(gguf.header_bytes == b.size && !memcmp(gguf.header, b.at, (size_t)b.size), "%s",
                cases[i].recipe);
        plumb__gguf_free(&gguf);
    }
}

/* ---- Files ------------------------------------------------------------------------------------ */

static plumb_status read_file(const char *path, plumb_gguf *gguf, plumb_error *err) {
    struct stat file;
    int fd;
    plumb_status status = plumb__file_open(path, &fd, &file, err);
    if (status != PLUMB_OK) exit(2);
    status = plumb__gguf_read(fd, file.st_size, path, gguf, err);
    (void)close(fd);
    return status;
}

static const char *const goldens[] = {TEST_DATA "/gguf/written.gguf", TEST_DATA "/gguf/types.gguf"};

/* A file cut anywhere, and a header cut anywhere of a file that goes on. */
static void truncated_anywhere(void) {
    for (size_t i = 0; i < sizeof goldens / sizeof goldens[0]; i++) {
        size_t size;
        uint8_t *file = (uint8_t *)fixture_load(goldens[i], &size);
        plumb_gguf whole;
        plumb_error err = {0};
        T_TRUE(plumb__gguf_parse(file, (int64_t)size, (int64_t)size, NULL, &whole, &err) ==
               PLUMB_OK);
        const plumb_gguf_tensor *last = &whole.tensor[whole.tensors - 1];
        int64_t header_bytes = whole.header_bytes, payload_end = last->offset + last->bytes;
        plumb__gguf_free(&whole);
        for (int64_t cut = 0; cut <= (int64_t)size; cut++) {
            plumb_gguf gguf;
            plumb_status status = plumb__gguf_parse(file, cut, cut, NULL, &gguf, &err);
            T_CHECK(status == (cut < payload_end ? PLUMB_ERROR_FORMAT : PLUMB_OK), "file of %d",
                    (int)cut);
            plumb__gguf_free(&gguf);
            status = plumb__gguf_parse(file, cut, (int64_t)size, NULL, &gguf, &err);
            T_CHECK(status == (cut < header_bytes ? PLUMB_ERROR_FORMAT : PLUMB_OK), "%d bytes",
                    (int)cut);
            plumb__gguf_free(&gguf);
        }
        free(file);
    }
}

/* Whatever a byte becomes, the answer is a status. */
static void damaged_anywhere(void) {
    static const uint8_t damage[] = {0x01, 0x80, 0xFF};
    size_t size;
    uint8_t *file = (uint8_t *)fixture_load(goldens[0], &size);
    for (size_t i = 0; i < size; i++) {
        for (size_t d = 0; d < sizeof damage; d++) {
            plumb_gguf gguf;
            plumb_error err = {0};
            file[i] ^= damage[d];
            plumb_status status =
                plumb__gguf_parse(file, (int64_t)size, (int64_t)size, NULL, &gguf, &err);
            T_CHECK(status == PLUMB_OK || (status == err.status && err.field[0]), "byte %d",
                    (int)i);
            plumb__gguf_free(&gguf);
            file[i] ^= damage[d];
        }
    }
    free(file);
}

/* ---- Values ----------------------------------------------------------------------------------- */

static void values_of_all_types(void) {
    static const struct {
        const char *name;
        int type;
        const char *least, *most; /* as recipes */
    } cases[] = {
        {"u8", 0, "x:00", "x:FF"},
        {"i8", 1, "x:80", "x:7F"},
        {"u16", 2, "2:0", "2:65535"},
        {"i16", 3, "2:32768", "2:32767"},
        {"u32", 4, "4:0", "4:4294967295"},
        {"i32", 5, "4:2147483648", "4:2147483647"},
        {"f32", 6, "4:3217031168", "4:1048576000"}, /* BFC00000 = -1.5, 3E800000 = 0.25 */
        {"bool", 7, "x:00", "x:01"},
        {"string", 8, "=s", "x:C3 x:A9"},
        {"u64", 10, "8:0", "8:" HALF},
        {"i64", 11, "8:9223372036854775808", "8:9223372036854775807"},
        {"f64", 12, "8:13832806255468478464", "8:4591870180066957722"}, /* -1.5, 0.1 */
    };
    plumb_gguf gguf;
    plumb_error err = {0};
    T_CHECK(read_file(goldens[1], &gguf, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    T_TRUE(gguf.values == 36 && gguf.alignment == PLUMB_GGUF_DEFAULT_ALIGNMENT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        recipe_bytes parts[2] = {make(cases[i].least), make(cases[i].most)};
        recipe_bytes both = {.mark = -1};
        bool string = cases[i].type == PLUMB_GGUF_STRING;
        for (int j = 0; j < 2; j++) {
            char key[16];
            (void)snprintf(key, sizeof key, "%s.%s", cases[i].name, j == 0 ? "least" : "most");
            const plumb_gguf_value *one = plumb__gguf_find(&gguf, key);
            T_CHECK(one && one->type == cases[i].type && one->size == parts[j].size &&
                    !memcmp(one->bytes, parts[j].at, (size_t)one->size), "%s", key);
            T_CHECK(one && one->count == (string ? parts[j].size : 1) &&
                    one->bytes == gguf.header + one->offset, "%s", key);
            uint64_t length = (uint64_t)parts[j].size;
            if (string) append(&both, &length, sizeof length);
            append(&both, parts[j].at, (size_t)length);
        }
        char key[16];
        (void)snprintf(key, sizeof key, "%s.both", cases[i].name);
        const plumb_gguf_value *array = plumb__gguf_find(&gguf, key);
        T_CHECK(array && array->type == PLUMB_GGUF_ARRAY && array->item == cases[i].type &&
                array->count == 2 && array->size == both.size &&
                !memcmp(array->bytes, both.at, (size_t)both.size), "%s", key);
    }
    plumb__gguf_free(&gguf);
}

static void whole_numbers(void) {
    static const struct {
        const char *key;
        int64_t least, most, number;
        const char *refused; /* part of what was found; NULL: nothing is refused */
    } cases[] = {
        {"u8.most", 0, 255, 255, NULL},
        {"u8.most", 0, 254, 0, "255"},
        {"i8.least", -128, 0, -128, NULL},
        {"i8.least", -127, 0, 0, "-128"},
        {"i8.most", 127, 127, 127, NULL},
        {"u16.most", 0, INT64_MAX, 65535, NULL},
        {"i16.least", INT64_MIN, 0, -32768, NULL},
        {"u32.most", 0, INT64_MAX, 4294967295, NULL},
        {"i32.least", INT64_MIN, 0, -2147483647 - 1, NULL},
        {"u64.least", 0, 0, 0, NULL},
        {"u64.most", INT64_MIN, INT64_MAX, 0, "u64"},
        {"i64.least", INT64_MIN, 0, INT64_MIN, NULL},
        {"i64.most", 0, INT64_MAX, INT64_MAX, NULL},
        {"f32.most", 0, 1, 0, "f32"},
        {"f64.most", 0, 1, 0, "f64"},
        {"bool.most", 0, 1, 0, "bool"},
        {"string.most", 0, 1, 0, "string"},
        {"u8.both", 0, 1, 0, "array of 2 of type u8"},
        {"u8", 0, 1, 0, "no such key"},
    };
    plumb_gguf gguf;
    plumb_error err = {0};
    T_TRUE(read_file(goldens[1], &gguf, &err) == PLUMB_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t number = 0;
        plumb_status status = plumb__gguf_integer(&gguf, cases[i].key, cases[i].least,
                                                  cases[i].most, &number, &err);
        T_CHECK((status == PLUMB_OK) == !cases[i].refused && number == cases[i].number,
                "%s: %" PRId64, cases[i].key, number);
        if (!cases[i].refused) continue;
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "types.gguf", cases[i].key, cases[i].key);
        T_CHECK(strstr(err.found, cases[i].refused), "%s: %s", cases[i].key, err.found);
    }
    plumb__gguf_free(&gguf);
}

static void strings_and_arrays(void) {
    plumb_gguf gguf;
    plumb_error err = {0};
    const char *text;
    int64_t size;
    const plumb_gguf_value *array;
    T_TRUE(read_file(goldens[1], &gguf, &err) == PLUMB_OK);
    T_TRUE(plumb__gguf_string(&gguf, "string.most", &text, &size, &err) == PLUMB_OK);
    T_TRUE(size == 2 && !memcmp(text, "\xC3\xA9", 2));
    T_TRUE(plumb__gguf_string(&gguf, "u8.most", &text, &size, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "types.gguf", "u8.most", "a string");
    T_TRUE(plumb__gguf_string(&gguf, "string.both", &text, &size, &err) != PLUMB_OK);
    T_TRUE(plumb__gguf_string(&gguf, "absent", &text, &size, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "types.gguf", "absent", "a string");
    T_TRUE(plumb__gguf_array(&gguf, "i16.both", PLUMB_GGUF_I16, -1, &array, &err) == PLUMB_OK);
    T_TRUE(plumb__gguf_array(&gguf, "i16.both", PLUMB_GGUF_I16, 2, &array, &err) == PLUMB_OK);
    T_TRUE(array == plumb__gguf_find(&gguf, "i16.both"));
    T_TRUE(plumb__gguf_array(&gguf, "i16.both", PLUMB_GGUF_I16, 3, &array, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "types.gguf", "i16.both", "three items");
    T_TRUE(plumb__gguf_array(&gguf, "i16.both", PLUMB_GGUF_U16, -1, &array, &err) != PLUMB_OK);
    T_TRUE(plumb__gguf_array(&gguf, "i16.least", PLUMB_GGUF_I16, 1, &array, &err) != PLUMB_OK);
    T_TRUE(plumb__gguf_array(&gguf, "absent", PLUMB_GGUF_I16, 1, &array, &err) != PLUMB_OK);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "types.gguf", "absent", "an array");
    plumb__gguf_free(&gguf);
}

static void bytes_of_tensors(void) {
    static const struct {
        int type;
        int64_t elements, bytes;
    } rows[] = {
        {PLUMB_GGML_F32, 5, 20},      {PLUMB_GGML_I8, 5, 5},
        {PLUMB_GGML_BF16, 5, 10},     {PLUMB_GGML_MXFP4, 64, 34},
        {PLUMB_GGML_MXFP4, 33, -1},   {PLUMB_GGML_MXFP4, 31, -1},
        {PLUMB_GGML_F32, -1, -1},     {PLUMB_GGML_F32, INT64_MAX / 4, INT64_MAX - 3},
        {PLUMB_GGML_F32, INT64_MAX / 4 + 1, -1}, {1, 32, -1}, {-1, 32, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(plumb__ggml_row_bytes(rows[i].type, rows[i].elements) == rows[i].bytes, "%d", (int)i);
    const int64_t shape[] = {64, 3, 2, 5}, empty[] = {64, 0}, none[] = {0, 64};
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_MXFP4, 4, shape) == 34 * 30);
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_MXFP4, 2, shape) == 34 * 3);
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_F32, 0, shape) == -1);
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_F32, 5, shape) == -1);
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_F32, 2, empty) == -1);
    T_TRUE(plumb__ggml_tensor_bytes(PLUMB_GGML_F32, 2, none) == -1);
    T_TRUE(!strcmp(plumb__ggml_type_name(PLUMB_GGML_MXFP4), "MXFP4") && !plumb__ggml_type_name(2));
}

T_MAIN({"bad_headers", bad_headers}, {"good_headers", good_headers},
       {"truncated_anywhere", truncated_anywhere}, {"damaged_anywhere", damaged_anywhere},
       {"values_of_all_types", values_of_all_types}, {"whole_numbers", whole_numbers},
       {"strings_and_arrays", strings_and_arrays}, {"bytes_of_tensors", bytes_of_tensors})
