/* The bytes of a GGUF header into structs: one pass with a cursor whose first fault sticks.
 *
 * Counts and lengths are claims.  Each is compared with what the file can still hold before it is
 * used, and memory grows with the entries that were found, never with a count.  Names are copied one
 * behind the other, each with a NUL; pointers into them and into the header are set at the end, when
 * neither moves any more. */
#include "format/gguf_parse.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_KEY = 65535, /* bytes, the format's own limit */
    STRING_LENGTH = 8,
    LEAST_KEY = STRING_LENGTH + 1 + 4 + 1,           /* a name of one byte, a type, a BOOL */
    LEAST_TENSOR = STRING_LENGTH + 1 + 4 + 8 + 4 + 8 /* name, dims, one extent, type, offset */
};

typedef struct cursor {
    plumb_gguf *gguf;
    int64_t at, size; /* of gguf->header */
    int64_t values_room, tensors_room;
    int64_t names_room, names_bytes;
    int64_t payload_end; /* of the tensors so far, padded, relative to the data */
    bool cut;
    plumb_status status;
    plumb_error *err;
} cursor;

static void fault(cursor *c, const char *field, int64_t offset, plumb__text192 found,
                  plumb__text192 expected) {
    if (c->status == PLUMB_OK)
        c->status = plumb__fail(c->err, PLUMB_ERROR_FORMAT, c->gguf->path, field, offset, found.s,
                                "%s", expected.s);
}

static void no_memory(cursor *c, const char *what, size_t bytes) {
    c->status = plumb__fail_memory(c->err, what, bytes);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static uint64_t in_file(const cursor *c) { return (uint64_t)(c->gguf->file_bytes - c->at); }

/* The next `bytes` bytes, or NULL. */
static const uint8_t *take(cursor *c, const char *field, uint64_t bytes) {
    if (c->status != PLUMB_OK) return NULL;
    uint64_t left = (uint64_t)(c->size - c->at);
    if (bytes > left) {
        c->cut = bytes <= in_file(c);
        fault(c, field, c->at, plumb__format("%llu bytes", (unsigned long long)bytes),
              plumb__format("at most the %llu bytes left of the %s", (unsigned long long)left,
                            c->cut ? "header that was read" : "file"));
        return NULL;
    }
    const uint8_t *from = c->gguf->header + c->at;
    c->at += (int64_t)bytes;
    return from;
}

static uint32_t take_u32(cursor *c, const char *field) {
    uint32_t value = 0;
    const uint8_t *from = take(c, field, sizeof value);
    if (from) memcpy(&value, from, sizeof value);
    return value;
}

static uint64_t take_u64(cursor *c, const char *field) {
    uint64_t value = 0;
    const uint8_t *from = take(c, field, sizeof value);
    if (from) memcpy(&value, from, sizeof value);
    return value;
}

/* A count of things of at least `least` bytes each. */
static int64_t take_count(cursor *c, const char *field, int64_t least) {
    int64_t offset = c->at;
    uint64_t count = take_u64(c, field);
    if (c->status != PLUMB_OK) return 0;
    uint64_t most = in_file(c) / (uint64_t)least;
    if (count <= most) return (int64_t)count;
    fault(c, field, offset, plumb__format("a count of %llu", (unsigned long long)count),
          plumb__format("at most %llu, which the file has room for", (unsigned long long)most));
    return 0;
}

static void check_utf8(cursor *c, const char *field, const uint8_t *bytes, uint64_t size) {
    size_t valid = plumb__utf8_valid_prefix((const char *)bytes, (size_t)size);
    if (valid < size)
        fault(c, field, bytes - c->gguf->header + (int64_t)valid,
              plumb__format("byte %02X", bytes[valid]), plumb__format("UTF-8"));
}

/* Steps over a string: length and bytes. */
static int64_t take_string(cursor *c, const char *field) {
    uint64_t size = take_u64(c, field);
    const uint8_t *bytes = take(c, field, size);
    if (bytes) check_utf8(c, field, bytes, size);
    return c->status == PLUMB_OK ? (int64_t)size : 0;
}

/* A name of 1 to `most` bytes, appended to gguf->names; valid until the next one, or NULL.
 * `nameless` stands in messages as long as there is none. */
static const char *take_name(cursor *c, const char *nameless, uint64_t most) {
    int64_t offset = c->at;
    uint64_t size = take_u64(c, nameless);
    if (c->status == PLUMB_OK && (size == 0 || size > most))
        fault(c, nameless, offset,
              plumb__format("a name of %llu bytes", (unsigned long long)size),
              plumb__format("1 to %llu bytes", (unsigned long long)most));
    const uint8_t *bytes = take(c, nameless, size);
    if (!bytes) return NULL;
    const uint8_t *nul = memchr(bytes, 0, (size_t)size);
    if (nul)
        fault(c, nameless, nul - c->gguf->header, plumb__format("a NUL"),
              plumb__format("a name without NUL"));
    check_utf8(c, nameless, bytes, size);
    if (c->status != PLUMB_OK) return NULL;
    int64_t needed = c->names_bytes + (int64_t)size + 1;
    char *names = plumb__grow(c->gguf->names, &c->names_room, needed, 1);
    if (!names) {
        no_memory(c, "names of a GGUF header", (size_t)needed);
        return NULL;
    }
    c->gguf->names = names;
    char *name = names + c->names_bytes;
    memcpy(name, bytes, (size_t)size);
    name[size] = 0;
    c->names_bytes = needed;
    return name;
}

/* ---- Metadata -------------------------------------------------------------------------------- */

static uint8_t take_type(cursor *c, const char *key, bool in_array) {
    int64_t offset = c->at;
    uint32_t type = take_u32(c, key);
    if (type > PLUMB_GGUF_F64)
        fault(c, key, offset, plumb__format("value type %lu", (unsigned long)type),
              plumb__format("0 to %d", PLUMB_GGUF_F64));
    else if (in_array && type == PLUMB_GGUF_ARRAY)
        fault(c, key, offset, plumb__format("an array of arrays"),
              plumb__format("an array of numbers or strings"));
    return c->status == PLUMB_OK ? (uint8_t)type : 0;
}

/* Steps over `count` numbers or truth values. */
static void take_numbers(cursor *c, const char *key, uint8_t type, int64_t count) {
    const uint8_t *bytes = take(c, key, (uint64_t)(count * plumb__gguf_type_bytes(type)));
    if (!bytes || type != PLUMB_GGUF_BOOL) return;
    for (int64_t i = 0; i < count; i++) {
        if (bytes[i] <= 1) continue;
        fault(c, key, bytes - c->gguf->header + i, plumb__format("BOOL byte %d", bytes[i]),
              plumb__format("0 or 1"));
        return;
    }
}

static void take_array(cursor *c, const char *key, plumb_gguf_value *value) {
    value->item = take_type(c, key, true);
    bool strings = value->item == PLUMB_GGUF_STRING;
    value->count =
        take_count(c, key, strings ? STRING_LENGTH : plumb__gguf_type_bytes(value->item));
    value->offset = c->at;
    if (!strings) take_numbers(c, key, value->item, value->count);
    for (int64_t i = 0; strings && i < value->count && c->status == PLUMB_OK; i++)
        (void)take_string(c, key);
}

static void check_alignment(cursor *c, const char *key, const plumb_gguf_value *value) {
    uint32_t alignment = 0;
    if (value->type == PLUMB_GGUF_U32)
        memcpy(&alignment, c->gguf->header + value->offset, sizeof alignment);
    if (value->type != PLUMB_GGUF_U32)
        fault(c, key, value->offset, plumb__format("value type %d", value->type),
              plumb__format("%d, a u32", PLUMB_GGUF_U32));
    else if (alignment == 0 || (alignment & (alignment - 1)) != 0)
        fault(c, key, value->offset, plumb__format("%lu", (unsigned long)alignment),
              plumb__format("a power of two"));
    else
        c->gguf->alignment = alignment;
}

static void take_value(cursor *c) {
    plumb_gguf *gguf = c->gguf;
    plumb_gguf_value value = {.count = 1};
    const char *key =
        take_name(c, plumb__format("key %lld", (long long)gguf->values).s, MOST_KEY);
    if (!key) return;
    value.type = take_type(c, key, false);
    if (value.type == PLUMB_GGUF_ARRAY) {
        take_array(c, key, &value);
    } else if (value.type == PLUMB_GGUF_STRING) {
        value.count = take_string(c, key);
        value.offset = c->at - value.count;
    } else {
        value.offset = c->at;
        take_numbers(c, key, value.type, 1);
    }
    value.size = c->at - value.offset;
    if (c->status == PLUMB_OK && !strcmp(key, PLUMB_GGUF_ALIGNMENT_KEY))
        check_alignment(c, key, &value);
    if (c->status != PLUMB_OK) return;
    plumb_gguf_value *grown =
        plumb__grow(gguf->value, &c->values_room, gguf->values + 1, sizeof *grown);
    if (!grown) {
        no_memory(c, "keys of a GGUF header", sizeof *grown);
        return;
    }
    gguf->value = grown;
    grown[gguf->values++] = value;
}

/* ---- The table of tensors -------------------------------------------------------------------- */

static void take_shape(cursor *c, const char *name, plumb_gguf_tensor *tensor) {
    int64_t offset = c->at;
    uint32_t dims = take_u32(c, name);
    if (c->status == PLUMB_OK && (dims == 0 || dims > PLUMB_GGUF_MOST_DIMS))
        fault(c, name, offset, plumb__format("%lu dimensions", (unsigned long)dims),
              plumb__format("1 to %d", PLUMB_GGUF_MOST_DIMS));
    for (int i = 0; i < PLUMB_GGUF_MOST_DIMS; i++) tensor->shape[i] = 1;
    for (uint32_t i = 0; i < dims && c->status == PLUMB_OK; i++) {
        offset = c->at;
        uint64_t extent = take_u64(c, name);
        if (c->status == PLUMB_OK && (extent == 0 || extent > INT64_MAX))
            fault(c, name, offset,
                  plumb__format("extent %llu", (unsigned long long)extent),
                  plumb__format("1 to 2^63 - 1"));
        tensor->shape[i] = (int64_t)extent;
    }
    tensor->dims = (int32_t)dims;
}

/* Sets the payload's size from type and shape. */
static void take_tensor_type(cursor *c, const char *name, plumb_gguf_tensor *tensor) {
    int64_t offset = c->at;
    uint32_t type = take_u32(c, name);
    if (c->status != PLUMB_OK) return;
    tensor->type = type <= INT32_MAX ? (int32_t)type : -1;
    if (!plumb__ggml_type_name(tensor->type)) {
        fault(c, name, offset, plumb__format("tensor type %lu", (unsigned long)type),
              plumb__format("F32, I8, BF16 or MXFP4"));
        return;
    }
    tensor->bytes = plumb__ggml_tensor_bytes(tensor->type, tensor->dims, tensor->shape);
    if (tensor->bytes < 0)
        fault(c, name, offset,
              plumb__format("%s [%lld, %lld, %lld, %lld]", plumb__ggml_type_name(tensor->type),
                            (long long)tensor->shape[0], (long long)tensor->shape[1],
                            (long long)tensor->shape[2], (long long)tensor->shape[3]),
              plumb__format("rows of whole blocks and less than 2^63 bytes"));
}

/* The payload's offset, relative to the data for now. */
static void take_offset(cursor *c, const char *name, plumb_gguf_tensor *tensor) {
    int64_t at = c->at, end;
    uint64_t offset = take_u64(c, name);
    if (c->status != PLUMB_OK) return;
    tensor->offset = c->payload_end;
    if (offset != (uint64_t)c->payload_end) {
        fault(c, name, at, plumb__format("payload offset %llu", (unsigned long long)offset),
              plumb__format("%lld, where the previous payload ends",
                            (long long)c->payload_end));
        return;
    }
    c->payload_end = __builtin_add_overflow(c->payload_end, tensor->bytes, &end)
                         ? -1
                         : plumb__gguf_align(end, c->gguf->alignment);
    if (c->payload_end < 0)
        fault(c, name, at, plumb__format("a payload of %lld bytes", (long long)tensor->bytes),
              plumb__format("payloads of less than 2^63 bytes"));
}

static void take_tensor(cursor *c) {
    plumb_gguf *gguf = c->gguf;
    plumb_gguf_tensor tensor = {0};
    const char *name = take_name(
        c, plumb__format("tensor %lld", (long long)gguf->tensors).s, PLUMB_GGUF_MOST_NAME);
    if (!name) return;
    take_shape(c, name, &tensor);
    take_tensor_type(c, name, &tensor);
    take_offset(c, name, &tensor);
    if (c->status != PLUMB_OK) return;
    plumb_gguf_tensor *grown =
        plumb__grow(gguf->tensor, &c->tensors_room, gguf->tensors + 1, sizeof *grown);
    if (!grown) {
        no_memory(c, "tensors of a GGUF header", sizeof *grown);
        return;
    }
    gguf->tensor = grown;
    grown[gguf->tensors++] = tensor;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* The first fields; the counts are returned and not yet believed. */
static void take_counts(cursor *c, int64_t *tensors, int64_t *values) {
    const uint8_t *magic = take(c, "magic", strlen(PLUMB_GGUF_MAGIC));
    if (magic && memcmp(magic, PLUMB_GGUF_MAGIC, strlen(PLUMB_GGUF_MAGIC)) != 0)
        fault(c, "magic", 0,
              memcmp(magic, PLUMB_GGUF_PART_MARK, strlen(PLUMB_GGUF_MAGIC)) == 0
                  ? plumb__format("an unfinished file")
                  : plumb__format("bytes %02X %02X %02X %02X", magic[0], magic[1], magic[2], magic[3]),
              plumb__format("\"" PLUMB_GGUF_MAGIC "\""));
    int64_t offset = c->at;
    uint32_t version = take_u32(c, "version");
    if (c->status == PLUMB_OK && version != PLUMB_GGUF_VERSION)
        fault(c, "version", offset, plumb__format("%lu", (unsigned long)version),
              plumb__format("%d", PLUMB_GGUF_VERSION));
    *tensors = take_count(c, "number of tensors", LEAST_TENSOR);
    *values = take_count(c, "number of keys", LEAST_KEY);
}

/* Sets all that points into the header and the names, which stay where they are from here on. */
static void point(cursor *c) {
    plumb_gguf *gguf = c->gguf;
    gguf->header_bytes = c->at;
    uint8_t *shorter = realloc(gguf->header, (size_t)c->at);
    if (shorter) gguf->header = shorter;
    const char *name = gguf->names;
    for (int64_t i = 0; i < gguf->values; i++) {
        gguf->value[i].key = name;
        gguf->value[i].bytes = gguf->header + gguf->value[i].offset;
        name += strlen(name) + 1;
    }
    for (int64_t i = 0; i < gguf->tensors; i++) {
        gguf->tensor[i].name = name;
        name += strlen(name) + 1;
    }
}

/* Payload offsets become those of the file, which must hold the payloads; padding behind the last
 * one may be missing. */
static void place_payloads(cursor *c) {
    plumb_gguf *gguf = c->gguf;
    gguf->data_offset = plumb__gguf_align(gguf->header_bytes, gguf->alignment);
    for (int64_t i = 0; i < gguf->tensors; i++) {
        plumb_gguf_tensor *tensor = &gguf->tensor[i];
        int64_t room = gguf->file_bytes - gguf->data_offset - tensor->offset;
        tensor->offset += gguf->data_offset;
        if (tensor->bytes <= room) continue;
        fault(c, tensor->name, tensor->offset,
              plumb__format("a payload of %lld bytes", (long long)tensor->bytes),
              plumb__format("a file of more than %lld bytes", (long long)gguf->file_bytes));
        return;
    }
}

plumb_status plumb__gguf_parse_header(plumb_gguf *gguf, int64_t size, bool *cut,
                                      plumb_error *err) {
    plumb__gguf_forget(gguf);
    gguf->alignment = PLUMB_GGUF_DEFAULT_ALIGNMENT;
    cursor c = {.gguf = gguf, .size = size, .err = err};
    int64_t tensors, values;
    take_counts(&c, &tensors, &values);
    while (c.status == PLUMB_OK && gguf->values < values) take_value(&c);
    while (c.status == PLUMB_OK && gguf->tensors < tensors) take_tensor(&c);
    if (c.status == PLUMB_OK) {
        point(&c);
        place_payloads(&c);
    }
    if (c.status == PLUMB_OK) c.status = plumb__gguf_sort(gguf, err);
    *cut = c.cut;
    return c.status;
}
