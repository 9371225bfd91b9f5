/* Bodies of POST /v1/completions from anywhere.  What is taken has one prompt, and its answer can be told. */
#include "fuzz_openai.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plumb_generation *g = openai_serve(&plumb__openai_completions, data, size);
    if (g && (g->messages || (g->prompt != NULL) == (g->ids.count > 0) || (g->most_tokens == 0 && !g->echo))) abort();
    plumb__generation_destroy(g);
    return 0;
}
