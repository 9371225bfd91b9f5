/* The network runs ahead of the device: which the fake alone can show, since it can be held. */
#include "metal/equal/metal_model.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "metal/fake/fake_metal.h"
#include "t.h"

static specimen deep40;

typedef struct step {
    plumb_session *session;
    int64_t end;
    float *logits;
} step;

static void *take_step(void *arg) {
    const step *st = arg;
    specimen_advance(&deep40, st->session, st->end, st->logits);
    return NULL;
}

/* With all experts in memory the host asks for every layer of a step before the device has begun with the
 * first: the device is held, and all layers are committed nevertheless. */
static void no_wait_between_layers(void) {
    deep40 = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    float *reference = metal_reference(&deep40);
    metal_delays(7, 0);
    enum { WARM = 40, STEPS = 3, LAYERS = 40, PATIENCE_S = 300 };
    float *logits = specimen_logits(&deep40);
    plumb_model *model = metal_model_open(&deep40, PLUMB_DEVICE_METAL, (plumb_model_options){0});
    for (int round = 0; round < 2; round++) { /* the first one reads the experts, the second finds them */
        plumb_session *session = specimen_session(model, 64);
        specimen_advance(&deep40, session, WARM, logits);
        for (int64_t p = WARM; p < WARM + STEPS; p++) {
            step next = {session, p + 1, logits};
            pthread_t thread;
            fake_metal_settle();
            fake_metal_counters before = fake_metal_count(), now = before;
            if (round > 0) fake_metal_allow(0);
            T_CHECK(pthread_create(&thread, NULL, take_step, &next) == 0, "no thread");
            for (int ms = 0; round > 0 && ms < 1000 * PATIENCE_S && now.commits < before.commits + LAYERS; ms++) {
                (void)usleep(1000);
                now = fake_metal_count();
            }
            if (round > 0)
                T_CHECK(now.commits == before.commits + LAYERS && now.dispatches == before.dispatches,
                        "%" PRId64 " commits, %" PRId64 " dispatches while the device is held",
                        now.commits - before.commits, now.dispatches - before.dispatches);
            fake_metal_allow(FAKE_METAL_ALL);
            (void)pthread_join(thread, NULL);
        }
        plumb_session_destroy(session);
    }
    plumb_stream_stats stats;
    plumb_model_get_stream_stats(model, &stats);
    T_CHECK(stats.hits > stats.misses && stats.misses > 0, "%" PRId64 " hits, %" PRId64 " misses",
            stats.hits, stats.misses);
    plumb_model_close(model);
    int64_t at = specimen_first_difference(&deep40, reference, logits, 0, WARM + STEPS);
    T_CHECK(at < 0, "position %" PRId64 " differs", at);
    CHECK_VALIDATION("steps");
    free(logits);
    free(reference);
    specimen_close(&deep40);
}

T_MAIN({"no_wait_between_layers", no_wait_between_layers})
