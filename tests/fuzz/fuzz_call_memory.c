/* A written call memory from anywhere.  What is accepted is written the same again. */
#include <stdlib.h>
#include <string.h>

#include "plumb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCAB = 1000 };

static plumb_call_memory *read_again(const char *text, size_t size) {
    plumb_call_memory *memory = NULL;
    if (plumb_call_memory_create(VOCAB, 0, &memory, NULL) != PLUMB_OK) abort();
    if (plumb_call_memory_read(memory, text, size, NULL) != PLUMB_OK) abort();
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_call_memory *memory = NULL;
    plumb_error err = {0};
    if (plumb_call_memory_create(VOCAB, 0, &memory, &err) != PLUMB_OK) abort();
    if (plumb_call_memory_read(memory, (const char *)data, size, &err) != PLUMB_OK) {
        if (!err.found[0] || !err.expected[0] || plumb_call_memory_turns(memory) != 0) abort();
    } else {
        char *once = NULL, *twice = NULL;
        size_t once_size = 0, twice_size = 0;
        if (plumb_call_memory_write(memory, &once, &once_size, &err) != PLUMB_OK) abort();
        plumb_call_memory *second = read_again(once, once_size);
        if (plumb_call_memory_write(second, &twice, &twice_size, &err) != PLUMB_OK) abort();
        if (once_size != twice_size || memcmp(once, twice, once_size) != 0) abort();
        plumb_call_memory_destroy(second);
        free(once);
        free(twice);
    }
    plumb_call_memory_destroy(memory);
    return 0;
}
