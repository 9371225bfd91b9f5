/* model.safetensors.index.json from anywhere. */
#include "format/checkpoint_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = 0;
    plumb_index index;
    plumb_error err;
    if (plumb__index_parse(text, (int64_t)size, "index.json", &index, &err) != PLUMB_OK) {
        if (err.offset < 0 || !err.found[0] || !err.expected[0]) abort();
        return 0;
    }
    for (int64_t i = 0; i < index.count; i++) {
        if (strchr(index.entries[i].file, '/')) abort();
        if (i > 0 && strcmp(index.entries[i - 1].name, index.entries[i].name) >= 0) abort();
    }
    plumb__index_free(&index);
    return 0;
}
