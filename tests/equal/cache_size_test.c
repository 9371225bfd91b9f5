/* What a sequence costs at the released shape: 890 bytes a token, and 2.7 MB of rings and carries
 * whatever its length (model.md section 6).  Counts the bytes that are allocated, not the formula. */
#include "backend/backend.h"
#include "format/model_config.h"
#include "model/state.h"
#include "t.h"

#include <stdlib.h>

/* A backend that only allocates, and counts; memory is never touched by it. */
typedef struct counting_backend {
    plumb_backend base;
    int64_t bytes, blocks;
} counting_backend;

static void *count_allocate(plumb_backend *b, int64_t bytes) {
    counting_backend *counter = (counting_backend *)b;
    counter->bytes += bytes;
    counter->blocks++;
    int64_t *block = calloc(1, (size_t)bytes + sizeof *block);
    if (!block) return NULL;
    *block = bytes;
    return block + 1;
}

static void count_release(plumb_backend *b, void *memory) {
    counting_backend *counter = (counting_backend *)b;
    int64_t *block = (int64_t *)memory - 1;
    counter->bytes -= *block;
    counter->blocks--;
    free(block);
}

static const plumb_backend_ops counting_ops = {
    .name = "counting", .allocate = count_allocate, .release = count_release};

static plumb_model_config released;

static plumb_state *new_state(counting_backend *counter) {
    *counter = (counting_backend){.base = {&counting_ops}};
    plumb_error err = {0};
    plumb_state *state = NULL;
    plumb_status status = plumb__config_load(TEST_DATA "/config/released.json", NULL, NULL,
                                             &released, &err);
    if (status == PLUMB_OK) status = plumb__state_create(&released, &counter->base, &state, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.field, err.found);
    return state;
}

static void fixed_part(void) {
    counting_backend counter;
    plumb_state *state = new_state(&counter);
    if (!state) return;
    /* 40 rings of 128 rows of 528 bytes; 3 carries of 2 x 512 floats. */
    T_CHECK(counter.bytes == 2703360 + 12288, "%" PRId64 " bytes", counter.bytes);
    T_CHECK(plumb__state_fixed_bytes(state) == counter.bytes, "fixed part");
    plumb__state_destroy(state);
    T_CHECK(counter.bytes == 0 && counter.blocks == 0, "%" PRId64 " bytes kept", counter.bytes);
}

static void per_token(void) {
    counting_backend counter;
    plumb_state *state = new_state(&counter);
    if (!state) return;
    int64_t fixed = counter.bytes;
    static const int64_t lengths[] = {1024, 131072, 1048576};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        plumb_error err;
        T_CHECK(plumb__state_reserve(state, lengths[i], &err) == PLUMB_OK, "reserve");
        T_CHECK(counter.bytes - fixed == 890 * state->capacity, "%" PRId64 " bytes for %" PRId64,
                counter.bytes - fixed, state->capacity);
        T_CHECK(state->capacity >= lengths[i] && state->capacity <= lengths[i] + lengths[i] / 4,
                "capacity %" PRId64 " for %" PRId64, state->capacity, lengths[i]);
        T_CHECK(plumb__state_bytes(state) == counter.bytes, "state_bytes");
    }
    T_CHECK(counter.bytes < 1000000000, "a million positions in %" PRId64 " bytes", counter.bytes);
    plumb__state_destroy(state);
    T_CHECK(counter.bytes == 0, "%" PRId64 " bytes kept", counter.bytes);
}

/* A context grows with its use: many small steps never hold much more than they need. */
static void grows_with_use(void) {
    counting_backend counter;
    plumb_state *state = new_state(&counter);
    if (!state) return;
    for (int64_t length = 1; length < 40000; length += 37) {
        plumb_error err;
        T_CHECK(plumb__state_reserve(state, length, &err) == PLUMB_OK, "reserve");
        state->length = length;
        int64_t most = length + length / 4;
        T_CHECK(state->capacity <= (most < 1024 ? 1024 : most), "%" PRId64 " for %" PRId64,
                state->capacity, length);
    }
    plumb__state_destroy(state);
}

T_MAIN({"fixed_part", fixed_part}, {"per_token", per_token}, {"grows_with_use", grows_with_use})
