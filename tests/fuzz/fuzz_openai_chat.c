/* Bodies of POST /v1/chat/completions from anywhere.  What is taken can be encoded, and its answer told. */
#include "fuzz_openai.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_generation *g = openai_serve(&plumb__openai_chat, data, size);
    if (g && (!g->messages || g->prompt || g->ids.count > 0 || g->echo)) abort();
    plumb__generation_destroy(g);
    return 0;
}
