/* Headers that are sealed and lie: what nobody damaged but somebody made is refused as well, before
 * any of it is used. */
#include "converted.h"

#include "format/gguf.h"
#include "format/model_files.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE "sealed"

/* What a forged header has instead. */
typedef struct forgery {
    const char *key;     /* a u64 array that gets `more` elements, or loses some */
    int64_t more;
    bool extra_tensor;   /* that no config knows */
    int64_t alignment;
    int64_t tail;        /* bytes behind the last payload */
    const char *config;  /* found once in the config; */
    const char *instead; /* as long */
} forgery;

static void write_values(plumb_gguf_writer *writer, const plumb_gguf *from, const forgery *f) {
    for (int64_t i = 0; i < from->values; i++) {
        plumb_gguf_value value = from->value[i];
        if (!strcmp(value.key, "general.alignment")) continue;
        uint8_t *bytes = calloc(1, (size_t)(value.size + 8 * 4096));
        memcpy(bytes, value.bytes, (size_t)value.size);
        if (f->key && !strcmp(value.key, f->key)) {
            value.count += f->more;
            value.size += 8 * f->more;
        }
        if (f->config && !strcmp(value.key, PLUMB_GGUF_CONFIG_KEY)) {
            char *at = memmem(bytes, (size_t)value.size, f->config, strlen(f->config));
            if (at) memcpy(at, f->instead, strlen(f->instead));
        }
        value.bytes = bytes;
        plumb__gguf_write_value(writer, &value);
        free(bytes);
    }
}

static void write_tensors(plumb_gguf_writer *writer, const plumb_gguf *from, const forgery *f) {
    for (int64_t i = 0; i < from->tensors; i++) {
        const plumb_gguf_tensor *t = &from->tensor[i];
        plumb__gguf_write_tensor(writer, t->name, (plumb_ggml_type)t->type, t->dims, t->shape);
    }
    if (f->extra_tensor)
        plumb__gguf_write_tensor(writer, "blk.0.surprise.weight", PLUMB_GGML_F32, 1, &(int64_t){8});
}

/* A copy of the file with such a header; payloads where the header says that they are. */
static void forge(const char *path, const char *copy, const forgery *f) {
    plumb_gguf from;
    plumb_gguf_writer *writer;
    plumb_error err;
    FILE *in = fopen(path, "rb"), *out = fopen(copy, "wb");
    (void)fseek(in, 0, SEEK_END);
    int64_t size = ftell(in), bytes, file_bytes, *offsets = calloc(4096, sizeof *offsets);
    converted_must(plumb__gguf_read(fileno(in), size, path, &from, &err), &err, path);
    converted_must(plumb__gguf_writer_create(f->alignment, &writer, &err), &err, "writer");
    write_values(writer, &from, f);
    write_tensors(writer, &from, f);
    uint8_t *header;
    converted_must(plumb__gguf_writer_finish(writer, &header, &bytes, offsets, &file_bytes, &err),
                   &err, "header");
    converted_seal(header, bytes, file_bytes);
    uint8_t *file = calloc(1, (size_t)(file_bytes + f->tail));
    memcpy(file, header, (size_t)bytes);
    for (int64_t i = 0; i < from.tensors; i++) {
        (void)fseek(in, (long)from.tensor[i].offset, SEEK_SET);
        size_t payload = (size_t)from.tensor[i].bytes;
        T_CHECK(fread(file + offsets[i], 1, payload, in) == payload, "tensor %lld", (long long)i);
    }
    T_CHECK(fwrite(file, 1, (size_t)(file_bytes + f->tail), out) == (size_t)(file_bytes + f->tail), "short");
    (void)fclose(out);
    (void)fclose(in);
    plumb__gguf_writer_destroy(writer);
    plumb__gguf_free(&from);
    free(header);
    free(file);
    free(offsets);
}

static plumb_status pack(const char *from, const char *to, plumb_error *err) {
    const plumb_convert_options options = {.force = true, .jobs = 1};
    plumb_convert_result result;
    return plumb__pack(from, to, &options, &result, err);
}

static void lies(void) {
    static const struct {
        forgery forgery;
        const char *field; /* NULL: nothing is wrong */
    } rows[] = {
        {{.alignment = 16384}, NULL},
        {{.alignment = 16384, .key = "plumb.digest.source", .more = 1}, "plumb.digest.source"},
        {{.alignment = 16384, .key = "plumb.digest.source", .more = 2}, "plumb.digest.source"},
        {{.alignment = 16384, .key = "plumb.digest.source", .more = 512}, "plumb.digest.source"},
        {{.alignment = 16384, .key = "plumb.digest.source", .more = -2}, "plumb.digest.source"},
        {{.alignment = 16384, .key = "plumb.digest.stored", .more = 2}, "plumb.digest.stored"},
        {{.alignment = 16384, .key = "plumb.digest.stored", .more = -2}, "plumb.digest.stored"},
        {{.alignment = 16384, .extra_tensor = true}, "blk.0.surprise.weight"},
        {{.alignment = 32}, "general.alignment"},
        {{.alignment = 32768}, "general.alignment"},
        {{.alignment = 16384, .tail = 1}, "size"},
        {{.alignment = 16384, .tail = 16384}, "size"},
        {{.alignment = 16384, .config = "\"num_hidden_layers\": 6", .instead = "\"num_hidden_layers\": 5"},
         NULL}, /* refused, by whatever field comes first */
    };
    converted made = converted_make(PLACE, "tiny", FLAVOUR_F32);
    char copy[600], packed[600];
    (void)snprintf(copy, sizeof copy, "%s.forged", made.path);
    (void)snprintf(packed, sizeof packed, "%s.packed", made.path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_error audited = {0}, err = {0};
        forge(made.path, copy, &rows[i].forgery);
        bool good = !rows[i].field && !rows[i].forgery.config;
        T_CHECK((converted_audit(copy, NULL, 1, false, &audited) == PLUMB_OK) == good, "row %zu", i);
        T_CHECK((pack(copy, packed, &err) == PLUMB_OK) == good, "row %zu", i);
        T_CHECK(!rows[i].field || (!strcmp(err.field, rows[i].field) &&
                                   !strcmp(audited.field, rows[i].field)),
                "row %zu: %s, %s", i, audited.field, err.field);
        T_CHECK((remove(packed) == 0) == good, "row %zu leaves a file", i);
    }
    (void)remove(copy);
    converted_remove(PLACE, "tiny");
}

T_MAIN({"lies", lies})
