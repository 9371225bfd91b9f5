/* One shard's header: eight bytes of length, a flat JSON object, then the payloads. */
#include "format/safetensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "format/json_scan.h"

#include <stdlib.h>
#include <string.h>

enum {
    LENGTH_BYTES = 8,
    MAX_HEADER = 100 << 20 /* the format's own limit is 100 MB; the release's largest is 0.3 */
};

/* ---- Names of older exports ---------------------------------------------------------------- */

/* What one component of a dotted name is called today, or NULL when that has not changed. */
static const char *modern_component(const char *component, size_t size, bool vision) {
    static const struct {
        const char *old, *modern;
        bool in_vision;
    } table[] = {
        {"self_attn", "attn", true},
        {"mlp", "ffn", false},
        {"weight_scale_inv", "scale", true},
        {"e_score_correction_bias", "bias", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (vision && !table[i].in_vision) continue;
        if (strlen(table[i].old) == size && !memcmp(table[i].old, component, size))
            return table[i].modern;
    }
    return NULL;
}

void plumb__safetensors_modern_name(char *name) {
    char *to = name;
    const char *from = name;
    if (!strncmp(from, "model.", 6)) from += 6;
    bool vision = !strncmp(from, "vision.", 7);
    while (*from) {
        size_t size = strcspn(from, ".");
        const char *modern = modern_component(from, size, vision);
        size_t length = modern ? strlen(modern) : size;
        memmove(to, modern ? modern : from, length);
        to += length;
        from += size;
        if (*from) *to++ = *from++;
    }
    *to = 0;
}

/* ---- One tensor ----------------------------------------------------------------------------- */

static void read_shape(plumb_json_scan *scan, plumb_tensor *tensor) {
    tensor->rank = 0;
    tensor->shape[0] = tensor->shape[1] = 1;
    plumb__scan_open(scan, '[');
    for (bool first = true; plumb__scan_next(scan, ']', &first);) {
        int64_t size = plumb__scan_integer(scan);
        if (tensor->rank == 2) {
            plumb__scan_fault(scan, tensor->name, "a shape of more dimensions",
                              "one or two dimensions");
            return;
        }
        tensor->shape[tensor->rank++] = size;
    }
    if (tensor->rank == 0)
        plumb__scan_fault(scan, tensor->name, "a shape without dimensions",
                          "one or two dimensions");
    else if (tensor->shape[0] == 0 || tensor->shape[1] == 0)
        plumb__scan_fault(scan, tensor->name, "an empty tensor", "dimensions of at least 1");
}

static void read_offsets(plumb_json_scan *scan, const char *name, int64_t range[2]) {
    int count = 0;
    plumb__scan_open(scan, '[');
    for (bool first = true; plumb__scan_next(scan, ']', &first); count++) {
        int64_t offset = plumb__scan_integer(scan);
        if (count < 2) range[count] = offset;
    }
    if (count != 2)
        plumb__scan_fault(scan, name, plumb__format("%d data_offsets", count).s,
                          "two data_offsets");
}

/* Bytes of the tensor's payload, or -1 when they exceed any file. */
static int64_t payload_bytes(const plumb_tensor *tensor) {
    int64_t elements, bytes;
    if (__builtin_mul_overflow(tensor->shape[0], tensor->shape[1], &elements) ||
        __builtin_mul_overflow(elements, plumb__dtype_bytes(tensor->dtype), &bytes))
        return -1;
    return bytes;
}

/* `range` is relative to the first payload byte of the file, which holds `data_bytes`. */
static void check_range(plumb_json_scan *scan, plumb_tensor *tensor, const int64_t range[2],
                        int64_t data_bytes) {
    tensor->bytes = payload_bytes(tensor);
    if (tensor->bytes < 0)
        plumb__scan_fault(scan, tensor->name,
                          plumb__format("shape [%lld, %lld]", (long long)tensor->shape[0],
                                        (long long)tensor->shape[1]).s,
                          "a size below 2^63 bytes");
    else if (range[0] > range[1] || range[1] - range[0] != tensor->bytes)
        plumb__scan_fault(scan, tensor->name,
                          plumb__format("data_offsets [%lld, %lld]", (long long)range[0],
                                        (long long)range[1]).s,
                          plumb__format("%lld bytes for %s [%lld, %lld]", (long long)tensor->bytes,
                                        plumb__dtype_name(tensor->dtype),
                                        (long long)tensor->shape[0],
                                        (long long)tensor->shape[1]).s);
    else if (range[1] > data_bytes)
        plumb__scan_fault(scan, tensor->name,
                          plumb__format("data_offsets [%lld, %lld]", (long long)range[0],
                                        (long long)range[1]).s,
                          plumb__format("at most the %lld bytes that the file holds",
                                        (long long)data_bytes).s);
}

/* The value of one name: {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}. */
static void read_tensor(plumb_json_scan *scan, plumb_tensor *tensor, int64_t data_bytes) {
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int seen = 0, dtype = -1;
    int64_t range[2] = {0, 0};
    plumb__scan_open(scan, '{');
    for (bool first = true; plumb__scan_next(scan, '}', &first);) {
        const char *key = plumb__scan_key(scan);
        int part = !strcmp(key, "dtype")          ? DTYPE
                   : !strcmp(key, "shape")        ? SHAPE
                   : !strcmp(key, "data_offsets") ? OFFSETS
                                                  : 0;
        if (part == 0 || (seen & part)) {
            plumb__scan_fault(scan, tensor->name, plumb__format("key \"%.100s\"", key).s,
                              "dtype, shape and data_offsets, each once");
            return;
        }
        seen |= part;
        if (part == DTYPE) {
            const char *name = plumb__scan_string(scan);
            dtype = plumb__dtype_from_name(name, strlen(name));
            if (dtype < 0)
                plumb__scan_fault(scan, tensor->name, plumb__format("dtype \"%.100s\"", name).s,
                                  "BF16, F32, F8_E4M3, F8_E8M0 or I8");
        } else if (part == SHAPE) {
            read_shape(scan, tensor);
        } else {
            read_offsets(scan, tensor->name, range);
        }
    }
    if (scan->status != PLUMB_OK) return;
    if (seen != ALL) {
        plumb__scan_fault(scan, tensor->name, "an incomplete entry",
                          "dtype, shape and data_offsets");
        return;
    }
    tensor->dtype = (uint8_t)dtype;
    check_range(scan, tensor, range, data_bytes);
    tensor->offset = range[0];
}

/* ---- The whole header ----------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b) {
    const plumb_tensor *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* The tensors of one shard, offsets relative to the data: sorted by offset, no two may share a
 * byte, and the last must end the file. */
static plumb_status check_layout(plumb_tensor *tensors, int64_t count, int64_t data_begin,
                                 int64_t data_bytes, const char *path, plumb_error *err) {
    bool sorted = true;
    for (int64_t i = 1; i < count && sorted; i++)
        sorted = tensors[i - 1].offset <= tensors[i].offset;
    if (!sorted) qsort(tensors, (size_t)count, sizeof *tensors, by_offset);
    int64_t end = 0;
    for (int64_t i = 0; i < count; i++) {
        if (tensors[i].offset < end)
            return plumb__fail(err, PLUMB_ERROR_FORMAT, path, tensors[i].name,
                               data_begin + tensors[i].offset,
                               plumb__format("bytes that belong to %.120s", tensors[i - 1].name).s,
                               "no overlap");
        end = tensors[i].offset + tensors[i].bytes;
    }
    if (end != data_bytes)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "file size", data_begin + end,
                           plumb__format("%lld more bytes", (long long)(data_bytes - end)).s,
                           "the end of the file after the last tensor");
    return PLUMB_OK;
}

plumb_status plumb__safetensors_parse(char *header, int64_t size, int64_t data_bytes,
                                      const char *path, uint16_t shard, plumb_tensor_list *list,
                                      plumb_error *err) {
    plumb_json_scan scan = {
        .text = header, .size = size, .base = LENGTH_BYTES, .path = path, .err = err};
    int64_t begin = list->count;
    plumb__scan_open(&scan, '{');
    for (bool first = true; plumb__scan_next(&scan, '}', &first);) {
        char *name = plumb__scan_key(&scan);
        if (scan.status != PLUMB_OK) break;
        if (!strcmp(name, "__metadata__")) {
            plumb__scan_skip(&scan);
            continue;
        }
        plumb_tensor *grown =
            plumb__grow(list->items, &list->capacity, list->count + 1, sizeof *grown);
        if (!grown) return plumb__fail_memory(err, "tensor list", sizeof *grown);
        list->items = grown;
        plumb__safetensors_modern_name(name);
        plumb_tensor *tensor = &grown[list->count++];
        *tensor = (plumb_tensor){.name = name, .shard = shard};
        read_tensor(&scan, tensor, data_bytes);
    }
    plumb__scan_end(&scan);
    if (scan.status != PLUMB_OK) return scan.status;
    plumb_tensor *added = list->items ? list->items + begin : NULL;
    int64_t count = list->count - begin, data_begin = LENGTH_BYTES + size;
    plumb_status status = check_layout(added, count, data_begin, data_bytes, path, err);
    for (int64_t i = 0; i < count; i++) added[i].offset += data_begin;
    return status;
}

plumb_status plumb__safetensors_read(int fd, int64_t file_bytes, const char *path, uint16_t shard,
                                     plumb_tensor_list *list, char **text, plumb_error *err) {
    if (file_bytes < LENGTH_BYTES)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "header length", 0,
                           plumb__format("a file of %lld bytes", (long long)file_bytes).s,
                           "at least %d bytes", LENGTH_BYTES);
    unsigned char length[LENGTH_BYTES];
    plumb_status status =
        plumb__file_read_at(fd, path, "header length", 0, LENGTH_BYTES, length, err);
    if (status != PLUMB_OK) return status;
    uint64_t size = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) size = size << 8 | length[i];
    uint64_t limit = (uint64_t)(file_bytes - LENGTH_BYTES);
    if (limit > MAX_HEADER) limit = MAX_HEADER;
    if (size < 2 || size > limit)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "header length", 0,
                           plumb__format("%llu bytes", (unsigned long long)size).s,
                           "2 to %llu bytes", (unsigned long long)limit);
    char *header = malloc((size_t)size + 1);
    if (!header) return plumb__fail_memory(err, path, (size_t)size + 1);
    status = plumb__file_read_at(fd, path, "header", LENGTH_BYTES, (int64_t)size, header, err);
    header[size] = 0;
    int64_t before = list->count;
    if (status == PLUMB_OK)
        status = plumb__safetensors_parse(header, (int64_t)size,
                                          file_bytes - LENGTH_BYTES - (int64_t)size, path, shard,
                                          list, err);
    if (status != PLUMB_OK) {
        list->count = before;
        free(header);
        return status;
    }
    *text = header;
    return PLUMB_OK;
}
