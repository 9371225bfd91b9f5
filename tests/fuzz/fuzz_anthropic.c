/* Bodies of POST /v1/messages and of its count_tokens from anywhere.  What the first takes the second takes too;
 * that it counts right is a test's affair. */
#include "fuzz_dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool counted(const plumb_api_context *context, const char *body, size_t size) {
    const plumb_api *api = &plumb__anthropic_count_tokens;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    plumb_response response = {.begin = dialect_begin, .write = dialect_write, .end = dialect_end};
    if (api->read(context, NULL, body, size, &request, &g, &error) != PLUMB_OK) {
        dialect_refuse(api, &error);
        return false;
    }
    if (g) abort();
    api->answer(request, &response);
    if (!response.ended) abort();
    api->destroy(request);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const plumb_api *api = &plumb__anthropic_messages;
    const char *body = (const char *)data;
    plumb_api_context context = dialect_context();
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    bool was_counted = counted(&context, body, size);
    if (api->read(&context, NULL, body, size, &request, &g, &error) != PLUMB_OK) {
        dialect_refuse(api, &error);
        return 0;
    }
    if (!was_counted || dialect_encode(&context, g) == 0) abort();
    dialect_tell(api, request);
    plumb__generation_destroy(g);
    api->destroy(request);
    return 0;
}
