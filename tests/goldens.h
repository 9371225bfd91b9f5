/* Reader of the golden files (tests/data/.../NAME.safetensors), for tests only.
 *
 *     goldens *g = goldens_open("oracle/units.safetensors");
 *     golden cosines = goldens_get(g, "rope.window64.cos", "F32");
 *     ... cosines.shape[0], cosines.count, cosines.f32[i] ...
 *     goldens_close(g);
 *
 * A golden that is missing or of another type means the test cannot run: the program ends. */
#ifndef PLUMB_TESTS_GOLDENS_H
#define PLUMB_TESTS_GOLDENS_H

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_MAX_RANK = 8 };

/* One tensor, row-major, aligned; lives until goldens_close. */
typedef struct golden {
    const char *name;
    char dtype[8]; /* as in the file: F32, BF16, I32, I64, U8, ... */
    int rank;
    int64_t shape[GOLDEN_MAX_RANK];
    int64_t count; /* elements */
    size_t bytes;
    union { /* whichever fits dtype */
        const void *data;
        const float *f32;
        const uint16_t *bf16;
        const int32_t *i32;
        const int64_t *i64;
        const uint8_t *u8;
    };
} golden;

typedef struct goldens {
    char path[512];
    unsigned char *data; /* the tensors' bytes, after the header */
    uint64_t data_size;
    json_t *header;
    void **copies; /* aligned copies handed out */
    size_t n_copies;
} goldens;

static inline void goldens__die(const char *path, const char *name, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", path, name, why);
    exit(1);
}

/* Opens TEST_DATA/name. */
static inline goldens *goldens_open(const char *name) {
    goldens *g = calloc(1, sizeof *g);
    if (!g) goldens__die(name, "open", "no memory");
    snprintf(g->path, sizeof g->path, "%s/%s", TEST_DATA, name);
    FILE *file = fopen(g->path, "rb");
    if (!file) goldens__die(g->path, "open", "cannot open");
    unsigned char prefix[8];
    if (fread(prefix, 1, 8, file) != 8) goldens__die(g->path, "header", "too short");
    uint64_t header_size = 0;
    for (int i = 7; i >= 0; i--) header_size = header_size << 8 | prefix[i];
    fseek(file, 0, SEEK_END);
    uint64_t size = (uint64_t)ftell(file);
    if (header_size > size - 8) goldens__die(g->path, "header", "longer than the file");
    g->data_size = size - 8 - header_size;
    char *text = malloc(header_size + 1);
    g->data = malloc(g->data_size + 1);
    if (!text || !g->data) goldens__die(g->path, "open", "no memory");
    fseek(file, 8, SEEK_SET);
    if (fread(text, 1, header_size, file) != header_size ||
        fread(g->data, 1, g->data_size, file) != g->data_size)
        goldens__die(g->path, "open", "cannot read");
    fclose(file);
    g->header = json_loadb(text, header_size, 0, NULL);
    if (!json_is_object(g->header)) goldens__die(g->path, "header", "not a JSON object");
    free(text);
    return g;
}

static inline void goldens_close(goldens *g) {
    for (size_t i = 0; i < g->n_copies; i++) free(g->copies[i]);
    free(g->copies);
    free(g->data);
    json_decref(g->header);
    free(g);
}

static inline bool goldens_has(const goldens *g, const char *name) {
    return json_object_get(g->header, name) != NULL;
}

/* The tensor `name`; `dtype` is what the test expects it to be. */
static inline golden goldens_get(goldens *g, const char *name, const char *dtype) {
    json_t *entry = json_object_get(g->header, name);
    if (!entry) goldens__die(g->path, name, "missing");
    golden t = {.name = json_object_iter_key(json_object_iter_at(g->header, name)), .count = 1};
    const char *found = json_string_value(json_object_get(entry, "dtype"));
    if (!found || strcmp(found, dtype) != 0) goldens__die(g->path, name, "not of the expected type");
    snprintf(t.dtype, sizeof t.dtype, "%s", found);
    json_t *shape = json_object_get(entry, "shape");
    if (json_array_size(shape) > GOLDEN_MAX_RANK) goldens__die(g->path, name, "too many axes");
    t.rank = (int)json_array_size(shape);
    for (int i = 0; i < t.rank; i++) {
        t.shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        t.count *= t.shape[i];
    }
    json_t *range = json_object_get(entry, "data_offsets");
    uint64_t begin = (uint64_t)json_integer_value(json_array_get(range, 0));
    uint64_t end = (uint64_t)json_integer_value(json_array_get(range, 1));
    if (begin > end || end > g->data_size) goldens__die(g->path, name, "outside the file");
    t.bytes = (size_t)(end - begin);
    void *copy = malloc(t.bytes + 1);
    void **copies = realloc(g->copies, (g->n_copies + 1) * sizeof *copies);
    if (!copy || !copies) goldens__die(g->path, name, "no memory");
    memcpy(copy, g->data + begin, t.bytes);
    g->copies = copies;
    g->copies[g->n_copies++] = copy;
    t.data = copy;
    return t;
}

#endif
