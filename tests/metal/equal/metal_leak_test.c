/* Nothing grows: the host's buffers and Metal's objects after 8 steps are those after 256, in a thread that
 * has no autorelease pool but the host's own. */
#include "metal/equal/metal_model.h"

#include <stdlib.h>

#include "metal/fake/fake_metal.h"
#include "t.h"

enum { FIRST = 8, LAST = 256, PROMPT = 2 };

static const struct {
    const char *name;
    plumb_model_options options;
} modes[] = {
    {"resident", {0}},
    {"cache", {.streaming = true, .cache_experts = 6}},
    {"layer buffers", {.streaming = true, .layer_buffers = true}},
};

static void compare(const char *mode, const char *what, int64_t first, int64_t last) {
    T_CHECK(first == last, "%s: %" PRId64 " %s after %d iterations, %" PRId64 " after %d", mode, first, what,
            FIRST, last, LAST);
}

/* One iteration: a short prompt, one more token, and back to the start. */
static void iterate(const specimen *s, plumb_session *session, float *logits) {
    plumb_error err;
    specimen_advance(s, session, PROMPT, logits);
    specimen_advance(s, session, PROMPT + 1, logits);
    specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
}

static void flat(void) {
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    float *logits = specimen_logits(&tiny);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        metal_fake_delays(m + 1, 0);
        plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_METAL, modes[m].options);
        plumb_session *session = specimen_session(model, PROMPT);
        fake_metal_counters first = {0};
        for (int i = 1; i <= LAST; i++) {
            iterate(&tiny, session, logits);
            if (i == FIRST || i == LAST) fake_metal_settle();
            if (i == FIRST) first = fake_metal_count();
        }
        fake_metal_counters last = fake_metal_count();
        compare(modes[m].name, "buffers", first.live_buffers, last.live_buffers);
        compare(modes[m].name, "bytes", first.live_bytes, last.live_bytes);
        compare(modes[m].name, "command buffers", first.live_command_buffers, last.live_command_buffers);
        compare(modes[m].name, "autoreleased objects", first.autoreleased, last.autoreleased);
        compare(modes[m].name, "objects", first.live_objects, last.live_objects);
        plumb_session_destroy(session);
        plumb_model_close(model);
        fake_metal_settle();
        fake_metal_counters none = fake_metal_count();
        T_CHECK(none.live_objects == 0 && none.live_bytes == 0, "%s: %" PRId64 " objects, %" PRId64
                " bytes after closing", modes[m].name, none.live_objects, none.live_bytes);
        CHECK_VALIDATION(modes[m].name);
    }
    free(logits);
    specimen_close(&tiny);
}

T_MAIN({"flat", flat})
