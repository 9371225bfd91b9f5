/* Nothing grows: what Metal holds after 8 iterations is what it holds after 256, in a thread that has no
 * autorelease pool but the host's own; and nothing is left of a model that is closed. */
#include "metal/equal/metal_model.h"

#include <stdlib.h>

#include "t.h"

enum { FIRST = 8, LAST = 256, PROMPT = 2, ANSWER = 14 };

static const struct {
    const char *name;
    plumb_model_options options;
} modes[] = {
    {"resident", {0}},
    {"cache", {.streaming = true, .cache_experts = 16}}, /* of 48: some are missing in every step */
    {"layer buffers", {.streaming = true, .layer_buffers = true}},
};

static void compare(const char *mode, const char *when, const metal_figure *before, int n) {
    metal_figure after[METAL_FIGURES];
    (void)metal_measure(after);
    for (int i = 0; i < n; i++) {
        printf("%s, %s: %" PRId64 " %s, before %" PRId64 "\n", mode, when, after[i].value, after[i].name,
               before[i].value);
        T_CHECK(after[i].value - before[i].value <= after[i].allowed, "%s, %s: %" PRId64 " %s, before %" PRId64,
                mode, when, after[i].value, after[i].name, before[i].value);
    }
}

/* One iteration: one more token, or back to the start and a short prompt. */
static void iterate(const specimen *s, plumb_session *session, float *logits) {
    plumb_error err;
    int64_t length = plumb_session_length(session);
    if (length == PROMPT + ANSWER) {
        specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
        length = 0;
    }
    specimen_advance(s, session, length == 0 ? PROMPT : length + 1, logits);
}

static void flat(void) {
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    float *logits = specimen_logits(&tiny);
    /* The first one loads what stays: a system's libraries, its compiler. */
    plumb_model_close(metal_model_open(&tiny, PLUMB_DEVICE_METAL, (plumb_model_options){0}));
    metal_figure closed[METAL_FIGURES];
    int n = metal_measure(closed);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        metal_delays(m + 1, 0);
        plumb_model *model = metal_model_open(&tiny, PLUMB_DEVICE_METAL, modes[m].options);
        plumb_session *session = specimen_session(model, PROMPT);
        metal_figure first[METAL_FIGURES];
        specimen_advance(&tiny, session, PROMPT + ANSWER, logits); /* every expert that will be used */
        for (int i = 1; i <= LAST; i++) {
            iterate(&tiny, session, logits);
            if (i == FIRST) (void)metal_measure(first);
        }
        compare(modes[m].name, "after 256 iterations, 8", first, n);
        plumb_session_destroy(session);
        plumb_model_close(model);
        compare(modes[m].name, "closed again", closed, n);
        CHECK_VALIDATION(modes[m].name);
    }
    free(logits);
    specimen_close(&tiny);
}

T_MAIN({"flat", flat})
