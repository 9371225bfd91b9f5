/* What an API is given in tests: the demo model's tokenizer, a clock that stands, ids that can be told. */
#ifndef PLUMB_TESTS_SERVER_API_FIXTURE_H
#define PLUMB_TESTS_SERVER_API_FIXTURE_H

#include "server/api.h"
#include "server/job.h"

#include "t.h"

static inline int64_t fixture_now(void *user) {
    (void)user;
    return 1700000000;
}

static inline void fixture_id(void *user, const char *prefix, char *id) {
    (void)user;
    snprintf(id, 64, "%s0123456789abcdefghijklmn", prefix);
}

static inline plumb_status fixture_encode(void *user, const plumb_generation *g, plumb_tokens *tokens,
                                          plumb_error *err) {
    return plumb__messages_encode(g, user, NULL, tokens, err);
}

/* The text handle is the caller's to close. */
static inline plumb_api_context fixture_context(plumb_text **text, plumb_sampling *sampling) {
    plumb_error err;
    *sampling = plumb_sampling_default();
    T_CHECK(plumb_text_open(PROJECT_DIR "/data/demo-model", text, &err) == PLUMB_OK, "no tokenizer");
    return (plumb_api_context){.model = "demo",
                               .text = *text,
                               .context = 4096,
                               .sampling = sampling,
                               .thinking = true,
                               .effort = 75,
                               .most_runs = 4,
                               .now = fixture_now,
                               .new_id = fixture_id,
                               .encode = fixture_encode,
                               .user = *text};
}

#endif
