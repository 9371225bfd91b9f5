/* A GGUF header, made call by call: the keys and the table of tensors grow as two buffers, which
 * plumb__gguf_writer_finish joins, pads and then reads back, so that there is one place that knows
 * what is refused. */
#include "format/gguf_parse.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    uint8_t *bytes;
    int64_t size, room;
} buffer;

struct plumb_gguf_writer {
    buffer keys, tensors;
    uint64_t key_count, tensor_count;
    int64_t alignment;
    int64_t payload_bytes; /* of the tensors so far, each padded */
    int64_t strings_left;  /* that plumb__gguf_write_strings_begin was promised */
    plumb_status status;
    plumb_error error;
};

static void fault(plumb_gguf_writer *writer, const char *field, plumb__text192 found,
                  const char *expected) {
    if (writer->status == PLUMB_OK)
        writer->status = plumb__fail(&writer->error, PLUMB_ERROR_ARGUMENT, NULL, field, -1,
                                     found.s, "%s", expected);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void put(plumb_gguf_writer *writer, buffer *to, const void *bytes, int64_t size) {
    if (writer->status != PLUMB_OK || size == 0) return;
    int64_t needed;
    uint8_t *grown = __builtin_add_overflow(to->size, size, &needed)
                         ? NULL
                         : plumb__grow(to->bytes, &to->room, needed, 1);
    if (!grown) {
        writer->status = plumb__fail_memory(&writer->error, "a GGUF header", (size_t)size);
        return;
    }
    to->bytes = grown;
    memcpy(grown + to->size, bytes, (size_t)size);
    to->size = needed;
}

static void put_u32(plumb_gguf_writer *writer, buffer *to, uint32_t value) {
    put(writer, to, &value, sizeof value);
}

static void put_u64(plumb_gguf_writer *writer, buffer *to, uint64_t value) {
    put(writer, to, &value, sizeof value);
}

static void put_string(plumb_gguf_writer *writer, buffer *to, const char *text, int64_t size) {
    if (size < 0)
        fault(writer, "string", plumb__format("%lld bytes", (long long)size), "0 or more");
    put_u64(writer, to, (uint64_t)size);
    put(writer, to, text, size);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void put_key(plumb_gguf_writer *writer, const char *key, plumb_gguf_type type) {
    if (writer->strings_left > 0)
        fault(writer, key,
              plumb__format("a key %lld strings early", (long long)writer->strings_left),
              "as many strings as the array before it has");
    put_string(writer, &writer->keys, key, (int64_t)strlen(key));
    put_u32(writer, &writer->keys, type);
    writer->key_count++;
}

static void put_array(plumb_gguf_writer *writer, const char *key, plumb_gguf_type item,
                      int64_t count) {
    put_key(writer, key, PLUMB_GGUF_ARRAY);
    put_u32(writer, &writer->keys, item);
    put_u64(writer, &writer->keys, (uint64_t)count);
}

void plumb__gguf_write_u32(plumb_gguf_writer *writer, const char *key, uint32_t value) {
    put_key(writer, key, PLUMB_GGUF_U32);
    put_u32(writer, &writer->keys, value);
}

void plumb__gguf_write_f32(plumb_gguf_writer *writer, const char *key, float value) {
    put_key(writer, key, PLUMB_GGUF_F32);
    put(writer, &writer->keys, &value, sizeof value);
}

void plumb__gguf_write_bool(plumb_gguf_writer *writer, const char *key, bool value) {
    uint8_t byte = value;
    put_key(writer, key, PLUMB_GGUF_BOOL);
    put(writer, &writer->keys, &byte, sizeof byte);
}

void plumb__gguf_write_string(plumb_gguf_writer *writer, const char *key, const char *text,
                              int64_t size) {
    put_key(writer, key, PLUMB_GGUF_STRING);
    put_string(writer, &writer->keys, text, size);
}

void plumb__gguf_write_array(plumb_gguf_writer *writer, const char *key, plumb_gguf_type item,
                             const void *items, int64_t count) {
    int64_t bytes = 0;
    if (plumb__gguf_type_bytes(item) == 0)
        fault(writer, key, plumb__format("items of type %d", item), "a type of fixed size");
    if (count < 0 || __builtin_mul_overflow(count, plumb__gguf_type_bytes(item), &bytes))
        fault(writer, key, plumb__format("%lld items", (long long)count), "fewer than 2^63 bytes");
    put_array(writer, key, item, count);
    put(writer, &writer->keys, items, bytes);
}

void plumb__gguf_write_value(plumb_gguf_writer *writer, const plumb_gguf_value *value) {
    if (value->type == PLUMB_GGUF_ARRAY) {
        put_array(writer, value->key, (plumb_gguf_type)value->item, value->count);
    } else {
        put_key(writer, value->key, (plumb_gguf_type)value->type);
        if (value->type == PLUMB_GGUF_STRING) put_u64(writer, &writer->keys, (uint64_t)value->count);
    }
    put(writer, &writer->keys, value->bytes, value->size);
}

void plumb__gguf_write_strings_begin(plumb_gguf_writer *writer, const char *key, int64_t count) {
    if (count < 0)
        fault(writer, key, plumb__format("%lld strings", (long long)count), "0 or more");
    put_array(writer, key, PLUMB_GGUF_STRING, count);
    writer->strings_left = count;
}

void plumb__gguf_write_strings_add(plumb_gguf_writer *writer, const char *text, int64_t size) {
    if (writer->strings_left <= 0)
        fault(writer, "array of strings", plumb__format("one string more"), "its count of strings");
    put_string(writer, &writer->keys, text, size);
    writer->strings_left--;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

void plumb__gguf_write_tensor(plumb_gguf_writer *writer, const char *name, plumb_ggml_type type,
                              int dims, const int64_t *shape) {
    int64_t bytes = plumb__ggml_tensor_bytes((int)type, dims, shape);
    int64_t end = -1;
    if (bytes >= 0 && !__builtin_add_overflow(writer->payload_bytes, bytes, &end))
        end = plumb__gguf_align(end, writer->alignment);
    if (end < 0) {
        fault(writer, name, plumb__format("a tensor of type %d, %d dimensions", (int)type, dims),
              "a known type, 1 to 4 extents, rows of whole blocks, less than 2^63 bytes in all");
        return;
    }
    put_string(writer, &writer->tensors, name, (int64_t)strlen(name));
    put_u32(writer, &writer->tensors, (uint32_t)dims);
    put(writer, &writer->tensors, shape, dims * (int64_t)sizeof *shape);
    put_u32(writer, &writer->tensors, (uint32_t)type);
    put_u64(writer, &writer->tensors, (uint64_t)writer->payload_bytes);
    writer->payload_bytes = end;
    writer->tensor_count++;
}

/* ---- The whole ------------------------------------------------------------------------------- */

plumb_status plumb__gguf_writer_create(int64_t alignment, plumb_gguf_writer **writer,
                                       plumb_error *err) {
    *writer = NULL;
    if (alignment < PLUMB_GGUF_DEFAULT_ALIGNMENT || alignment > UINT32_MAX ||
        (alignment & (alignment - 1)) != 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, PLUMB_GGUF_ALIGNMENT_KEY, -1,
                           plumb__format("%lld", (long long)alignment).s,
                           "a power of two from %d to 2^31", PLUMB_GGUF_DEFAULT_ALIGNMENT);
    plumb_gguf_writer *created = calloc(1, sizeof *created);
    if (!created) return plumb__fail_memory(err, "a GGUF writer", sizeof *created);
    created->alignment = alignment;
    plumb__gguf_write_u32(created, PLUMB_GGUF_ALIGNMENT_KEY, (uint32_t)alignment);
    *writer = created;
    return PLUMB_OK;
}

void plumb__gguf_writer_destroy(plumb_gguf_writer *writer) {
    if (!writer) return;
    free(writer->keys.bytes);
    free(writer->tensors.bytes);
    free(writer);
}

/* Everything up to the first payload, padded. */
static void join(plumb_gguf_writer *writer, buffer *header) {
    put(writer, header, PLUMB_GGUF_MAGIC, (int64_t)strlen(PLUMB_GGUF_MAGIC));
    put_u32(writer, header, PLUMB_GGUF_VERSION);
    put_u64(writer, header, writer->tensor_count);
    put_u64(writer, header, writer->key_count);
    put(writer, header, writer->keys.bytes, writer->keys.size);
    put(writer, header, writer->tensors.bytes, writer->tensors.size);
    static const uint8_t zeros[PLUMB_GGUF_DEFAULT_ALIGNMENT];
    int64_t padding = plumb__gguf_align(header->size, writer->alignment) - header->size;
    for (int64_t part; padding > 0 && writer->status == PLUMB_OK; padding -= part) {
        part = padding < (int64_t)sizeof zeros ? padding : (int64_t)sizeof zeros;
        put(writer, header, zeros, part);
    }
}

/* Reads the header back: refuses what readers refuse, and tells where the payloads lie. */
static plumb_status read_back(const buffer *header, int64_t file_bytes, int64_t *offsets,
                              plumb_error *err) {
    plumb_gguf gguf;
    plumb_status status =
        plumb__gguf_parse(header->bytes, header->size, file_bytes, NULL, &gguf, err);
    for (int64_t i = 0; status == PLUMB_OK && offsets && i < gguf.tensors; i++)
        offsets[i] = gguf.tensor[i].offset;
    plumb__gguf_free(&gguf);
    return status;
}

plumb_status plumb__gguf_writer_finish(plumb_gguf_writer *writer, uint8_t **header,
                                       int64_t *bytes, int64_t *offsets, int64_t *file_bytes,
                                       plumb_error *err) {
    buffer whole = {0};
    *header = NULL;
    if (writer->strings_left > 0)
        fault(writer, "array of strings",
              plumb__format("%lld strings fewer", (long long)writer->strings_left),
              "its count of strings");
    join(writer, &whole);
    if (__builtin_add_overflow(whole.size, writer->payload_bytes, file_bytes))
        fault(writer, "file size", plumb__format("payloads of %lld bytes",
                                                 (long long)writer->payload_bytes),
              "less than 2^63 bytes in all");
    plumb_status status = writer->status;
    if (status != PLUMB_OK && err) *err = writer->error;
    if (status == PLUMB_OK) status = read_back(&whole, *file_bytes, offsets, err);
    if (status != PLUMB_OK) {
        free(whole.bytes);
        return status;
    }
    *header = whole.bytes;
    *bytes = whole.size;
    return PLUMB_OK;
}
