/* GGUF headers from anywhere.  The first two bytes are the size of what the file holds behind them. */
#include "format/gguf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int promised) {
    if (!promised) abort();
}

/* What a header that passes has promised. */
static void check(const plumb_gguf *gguf, int64_t size) {
    need(gguf->header_bytes <= size && gguf->data_offset >= gguf->header_bytes);
    need(gguf->data_offset % gguf->alignment == 0);
    for (int64_t i = 0; i < gguf->values; i++) {
        const plumb_gguf_value *value = &gguf->value[i];
        need(plumb__gguf_find(gguf, value->key) == value && value->key[0]);
        need(value->offset >= 24 && value->size >= 0 && value->count >= 0);
        need(value->offset + value->size <= gguf->header_bytes);
        need(value->bytes == gguf->header + value->offset);
        int64_t number;
        plumb_error err = {0};
        if (plumb__gguf_integer(gguf, value->key, 1, 1000, &number, &err) == PLUMB_OK)
            need(number >= 1 && number <= 1000 && value->size <= 8);
        else
            need(err.found[0] && err.expected[0]);
    }
    int64_t end = gguf->data_offset;
    for (int64_t i = 0; i < gguf->tensors; i++) {
        const plumb_gguf_tensor *tensor = &gguf->tensor[i];
        need(plumb__gguf_find_tensor(gguf, tensor->name) == tensor);
        need(strlen(tensor->name) >= 1 && strlen(tensor->name) <= PLUMB_GGUF_MOST_NAME);
        need(tensor->dims >= 1 && tensor->dims <= PLUMB_GGUF_MOST_DIMS && tensor->bytes > 0);
        need(tensor->offset >= end && tensor->offset - end < gguf->alignment);
        need(tensor->offset % gguf->alignment == 0);
        end = tensor->offset + tensor->bytes;
        need(end <= gguf->file_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    int64_t behind = data[0] + 256 * data[1], header_bytes = (int64_t)size - 2;
    plumb_gguf gguf;
    plumb_error err = {0};
    plumb_status status =
        plumb__gguf_parse(data + 2, header_bytes, header_bytes + behind, "x.gguf", &gguf, &err);
    if (status == PLUMB_OK) check(&gguf, header_bytes);
    else need(err.status == status && err.offset >= 0 && err.found[0] && err.expected[0]);
    plumb__gguf_free(&gguf);
    return 0;
}
