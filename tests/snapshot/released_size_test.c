/* What a session of the released shape takes on disk, counted from a file: 890 bytes of caches and 4 of
 * its id a token, and 2.7 MB of rings and carries whatever the length; a ring and its carries more for
 * each resume point.  No weights are needed: a session is made by hand, with bytes of no meaning. */
#include "convert/converted.h"
#include "engine/engine.h"
#include "snapshot/files.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "t.h"

static int64_t allocations_left = INT64_MAX;

static void *allocate(plumb_backend *backend, int64_t bytes) {
    (void)backend;
    return allocations_left-- > 0 ? calloc(1, (size_t)bytes) : NULL;
}

static void release(plumb_backend *backend, void *memory) {
    (void)backend;
    free(memory);
}

static const plumb_backend_ops ops = {.name = "memory", .allocate = allocate, .release = release};
static plumb_backend backend = {&ops};
static plumb_model_config released;

static void fill(void *memory, int64_t bytes, uint64_t seed) {
    uint8_t *to = memory;
    for (int64_t i = 0; i < bytes; i++) to[i] = (uint8_t)(converted_random(&seed) >> 56);
}

static void make_session(plumb_model *model, plumb_session *s, int64_t length) {
    plumb_error err;
    *s = (plumb_session){.model = model, .options.context = 1 << 20};
    specimen_must(plumb__state_create(&released, &backend, &s->state, &err), &err, "state");
    specimen_must(plumb__state_reserve(s->state, length, &err), &err, "state");
    s->state->length = length;
    s->token_capacity = length;
    s->tokens = calloc((size_t)length + 1, sizeof *s->tokens);
    file_must(s->tokens != NULL, "memory");
    for (int64_t i = 0; i < length; i++) s->tokens[i] = (int32_t)(i * 7919 % released.vocab);
}

static void fill_session(plumb_session *s) {
    int64_t length = s->state->length;
    for (int64_t l = 0; l < released.layers; l++) {
        plumb_layer_state *at = &s->state->layer[l];
        uint64_t seed = (uint64_t)l * 4 + 1;
        fill(at->ring, 128 * 528, seed);
        if (at->carry) fill(at->carry, 4096, seed + 1);
        if (!at->compressed) continue;
        fill(at->compressed, length / released.ratio[l] * 288, seed + 2);
        fill(at->index_keys, length / released.ratio[l] * 68, seed + 3);
    }
}

static void free_session(plumb_session *s) {
    plumb__state_destroy(s->state);
    free(s->tokens);
    for (int i = 0; i < s->n_points; i++) free(s->point[i].fixed);
}

static bool same_states(const plumb_state *a, const plumb_state *b) {
    int64_t length = a->length, rows = length < 128 ? length : 128;
    bool same = a->length == b->length;
    for (int64_t l = 0; l < released.layers && same; l++) {
        const plumb_layer_state *x = &a->layer[l], *y = &b->layer[l];
        same = memcmp(x->ring, y->ring, (size_t)rows * 528) == 0;
        if (x->carry) same = same && (length == 0 || memcmp(x->carry, y->carry, 4096) == 0);
        if (!x->compressed || length == 0) continue;
        int64_t kept = length / released.ratio[l];
        same = same && memcmp(x->compressed, y->compressed, (size_t)kept * 288) == 0 &&
               memcmp(x->index_keys, y->index_keys, (size_t)kept * 68) == 0;
    }
    return same;
}

/* 40 rings of 128 rows of 528 bytes, 3 carries of 4096; header, and 52 sections in the table. */
enum { RINGS = 40 * 128 * 528, CARRIES = 3 * 4096, BEGINNING = 96 + 40 * 52 };

static int64_t size_at(int64_t length) {
    if (length == 0) return BEGINNING;
    int64_t rows = length < 128 ? length : 128;
    int64_t caches = (length + 3 * (length / 2)) * (288 + 68); /* one of ratio 1, three of ratio 2 */
    return BEGINNING + 4 * length + rows * 40 * 528 + CARRIES + caches;
}

/* A resume point: as many rings and carries again, and their lines in the table. */
static void check_point(plumb_session *s, const char *path) {
    int64_t length = s->state->length;
    if (length <= 128) return;
    s->point[0] = (plumb_resume_point){128, calloc(1, (size_t)plumb__state_fixed_bytes(s->state))};
    s->n_points = 1;
    file_must(s->point[0].fixed != NULL, "memory");
    plumb__state_save_fixed(s->state, s->point[0].fixed);
    snapshot_save(s, path, &(plumb_snapshot_extra){.resume_points = true});
    file_bytes file = file_load(path);
    T_CHECK((int64_t)file.size == size_at(length) + RINGS + CARRIES + 43 * 40, "%zu bytes", file.size);
    free(file.bytes);
    snapshot_save(s, path, NULL);
    file = file_load(path);
    T_CHECK((int64_t)file.size == size_at(length), "%zu bytes without", file.size);
    free(file.bytes);
}

static void make_model(plumb_model *model) {
    plumb_error err;
    specimen_must(plumb__config_load(TEST_DATA "/config/released.json", NULL, NULL, &released, &err),
                  &err, "config");
    *model = (plumb_model){.has_digest = true, .digest = {1, 2, 3}};
    model->network.config = &released;
    pthread_mutex_init(&model->lock, NULL);
    pthread_mutex_init(&model->digest_lock, NULL);
}

static void free_model(plumb_model *model) {
    pthread_mutex_destroy(&model->lock);
    pthread_mutex_destroy(&model->digest_lock);
}

static void sizes(void) {
    plumb_model model;
    make_model(&model);
    const char *path = snapshot_path("released");
    static const int64_t lengths[] = {0, 1, 2, 127, 128, 129, 1000, 4096};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        plumb_session source, target;
        make_session(&model, &source, lengths[i]);
        make_session(&model, &target, 5);
        fill_session(&source);
        snapshot_save(&source, path, NULL);
        file_bytes file = file_load(path);
        T_CHECK((int64_t)file.size == size_at(lengths[i]), "%zu bytes for %" PRId64, file.size,
                size_at(lengths[i]));
        free(file.bytes);
        snapshot_restore(&target, path);
        T_CHECK(same_states(source.state, target.state), "length %" PRId64, lengths[i]);
        check_point(&source, path);
        free_session(&source);
        free_session(&target);
    }
    T_CHECK(size_at(1000000) == 894 * (int64_t)1000000 + RINGS + CARRIES + BEGINNING, "the round number");
    T_CHECK(RINGS + CARRIES + BEGINNING == 2717824, "2.7 MB");
    (void)unlink(path);
    free_model(&model);
}

/* Without memory at any point of restoring, the session keeps what it has, and so does the account. */
static void no_memory(void) {
    enum { BLOCKS = 40 + 3 + 4 * 2, HELD = 5, LENGTH = 130 }; /* rings, carries, caches */
    plumb_model model;
    make_model(&model);
    plumb_session source, target;
    make_session(&model, &source, LENGTH);
    make_session(&model, &target, HELD);
    fill_session(&source);
    const char *path = snapshot_path("no-memory");
    snapshot_save(&source, path, NULL);
    const plumb_state *held = target.state;
    for (int i = 0; i <= BLOCKS; i++) {
        plumb_error err = {0};
        allocations_left = i;
        plumb_status status = snapshot_try(&target, path, &err);
        allocations_left = INT64_MAX;
        if (i == BLOCKS)
            T_CHECK(status == PLUMB_OK && same_states(source.state, target.state), "%s", err.field);
        else
            T_CHECK(status == PLUMB_ERROR_MEMORY && target.state == held && held->length == HELD &&
                        model.session_bytes == 0,
                    "block %d: status %d", i, status);
    }
    (void)unlink(path);
    free_session(&source);
    free_session(&target);
    free_model(&model);
}

T_MAIN({"sizes", sizes}, {"no_memory", no_memory})
