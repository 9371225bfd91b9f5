/* What plumb__gguf_read sees in a file, as JSON, to be compared with what others see.  Numbers
 * travel as text, floats as their bits in hexadecimal, so that JSON loses nothing:
 *
 *   {"metadata": [{"key", "type", "value"} or {"key", "type", "item", "value": [...]}],
 *    "tensors": [{"name", "type", "shape": [...], "offset"}]}
 *
 * Types are the file's numbers, shapes are fastest first, offsets count from the start of the file.
 */
#include "format/gguf.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One value of a type of fixed size, or a string of `size` bytes. */
static json_t *show_item(int type, const uint8_t *bytes, size_t size) {
    uint64_t u = 0;
    if (type == PLUMB_GGUF_STRING) return json_stringn((const char *)bytes, size);
    memcpy(&u, bytes, size); /* little-endian, as the host is */
    int unused = 64 - 8 * (int)size;
    switch (type) {
    case PLUMB_GGUF_BOOL: return json_boolean(u != 0);
    case PLUMB_GGUF_F32: return json_sprintf("%08" PRIx64, u);
    case PLUMB_GGUF_F64: return json_sprintf("%016" PRIx64, u);
    case PLUMB_GGUF_I8:
    case PLUMB_GGUF_I16:
    case PLUMB_GGUF_I32:
    case PLUMB_GGUF_I64: return json_sprintf("%" PRId64, (int64_t)(u << unused) >> unused);
    default: return json_sprintf("%" PRIu64, u);
    }
}

static json_t *show_array(const plumb_gguf_value *value) {
    json_t *items = json_array();
    const uint8_t *at = value->bytes;
    for (int64_t i = 0; i < value->count; i++) {
        uint64_t size = (uint64_t)(value->size / value->count);
        if (value->item == PLUMB_GGUF_STRING) {
            memcpy(&size, at, sizeof size);
            at += sizeof size;
        }
        json_array_append_new(items, show_item(value->item, at, size));
        at += size;
    }
    return items;
}

static json_t *show_value(const plumb_gguf_value *value) {
    json_t *shown = json_pack("{s:s, s:i}", "key", value->key, "type", (int)value->type);
    if (value->type == PLUMB_GGUF_ARRAY) {
        json_object_set_new(shown, "item", json_integer(value->item));
        json_object_set_new(shown, "value", show_array(value));
    } else {
        json_object_set_new(shown, "value",
                            show_item(value->type, value->bytes, (size_t)value->size));
    }
    return shown;
}

static json_t *show_tensor(const plumb_gguf_tensor *tensor) {
    json_t *shape = json_array();
    for (int32_t d = 0; d < tensor->dims; d++)
        json_array_append_new(shape, json_sprintf("%" PRId64, tensor->shape[d]));
    return json_pack("{s:s, s:i, s:o, s:o}", "name", tensor->name, "type", (int)tensor->type,
                     "shape", shape, "offset", json_sprintf("%" PRId64, tensor->offset));
}

static bool show(const plumb_gguf *gguf) {
    json_t *metadata = json_array(), *tensors = json_array();
    for (int64_t i = 0; i < gguf->values; i++)
        json_array_append_new(metadata, show_value(&gguf->value[i]));
    for (int64_t i = 0; i < gguf->tensors; i++)
        json_array_append_new(tensors, show_tensor(&gguf->tensor[i]));
    json_t *whole = json_pack("{s:o, s:o}", "metadata", metadata, "tensors", tensors);
    bool shown = json_dumpf(whole, stdout, JSON_COMPACT) == 0;
    json_decref(whole);
    return shown;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: show_gguf FILE\n");
        return 2;
    }
    plumb_gguf gguf = {0};
    plumb_error err = {0};
    struct stat status;
    int fd = open(argv[1], O_RDONLY);
    bool shown = false;
    if (fd < 0 || fstat(fd, &status) != 0) {
        perror(argv[1]);
    } else if (plumb__gguf_read(fd, status.st_size, argv[1], &gguf, &err) != PLUMB_OK) {
        char line[1024];
        plumb_error_line(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else {
        shown = show(&gguf);
    }
    plumb__gguf_free(&gguf);
    if (fd >= 0) (void)close(fd);
    return shown ? 0 : 1;
}
