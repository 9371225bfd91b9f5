/* Shard headers from anywhere.  The first two bytes are the size of the data behind the header. */
#include "format/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a header that passes has promised. */
static void check(const plumb_tensor_list *list, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < list->count; i++) {
        const plumb_tensor *t = &list->items[i];
        int64_t bytes = t->shape[0] * t->shape[1] * plumb__dtype_bytes(t->dtype);
        if (t->rank < 1 || t->rank > 2 || t->bytes != bytes || bytes <= 0) abort();
        if (t->offset < begin || t->offset > end - bytes) abort();
        if (i > 0 && t->offset < t[-1].offset + t[-1].bytes) abort();
        if (strlen(t->name) >= (size_t)(begin - 8)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    int64_t data_bytes = data[0] + 256 * data[1], header_bytes = (int64_t)size - 2;
    char *header = malloc(size - 1);
    if (!header) return 0;
    memcpy(header, data + 2, size - 2);
    header[header_bytes] = 0;
    plumb_tensor_list list = {0};
    plumb_error err;
    plumb_status status = plumb__safetensors_parse(header, header_bytes, data_bytes,
                                                   "x.safetensors", 0, &list, &err);
    if (status == PLUMB_OK) check(&list, 8 + header_bytes, 8 + header_bytes + data_bytes);
    else if (err.status != status || err.offset < 8 || !err.found[0] || !err.expected[0]) abort();
    free(list.items);
    free(header);
    return 0;
}
