/* Bodies of POST /v1/responses from anywhere.  One that is taken is answered and continued. */
#include "fuzz_dialect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const plumb_api *api = &plumb__openai_responses;
    plumb_api_context context = dialect_context();
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    void *state;
    if (api->create_state(&state, NULL) != PLUMB_OK) abort();
    /* The second time, what the first has left can be continued. */
    for (int time = 0; time < 2; time++) {
        if (api->read(&context, state, (const char *)data, size, &request, &g, &error) == PLUMB_OK) {
            (void)dialect_encode(&context, g);
            dialect_tell(api, request);
            plumb__generation_destroy(g);
            api->destroy(request);
        } else {
            dialect_refuse(api, &error);
        }
    }
    api->destroy_state(state);
    return 0;
}
