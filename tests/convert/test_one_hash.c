/* The folder and its files of every flavour give the same logits, to the bit. */
#include <stdlib.h>

#include "converted.h"
#include "equal/specimen.h"
#include "t.h"

/* The demo model has no published prompt: any tokens do. */
static specimen demo_specimen(void) {
    enum { TOKENS = 160, VOCAB = 4096 };
    uint64_t random = 20260917;
    specimen s = {.name = "demo", .count = TOKENS, .vocab = VOCAB,
                  .tokens = malloc(TOKENS * sizeof *s.tokens)};
    converted_source("demo", s.folder);
    for (int i = 0; i < TOKENS; i++)
        s.tokens[i] = (int32_t)(converted_random(&random) % (VOCAB - 96)); /* no control tokens */
    return s;
}

static float *evaluate(const specimen *s) {
    plumb_model *model = specimen_model(s, 2, NULL);
    plumb_session *session = specimen_session(model, 0);
    float *logits = specimen_logits(s);
    specimen_advance(s, session, s->count, logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return logits;
}

static void check_flavours(specimen s) {
    float *reference = evaluate(&s);
    uint64_t expected = specimen_hash(&s, reference, s.count);
    T_CHECK(specimen_first_difference(&s, reference, reference + s.vocab, 0, 1) == 0,
            "%s: two positions are alike", s.name);
    for (flavour f = 0; f < FLAVOURS; f++) {
        converted c = converted_make("one-hash", s.name, f);
        specimen of_file = s;
        (void)snprintf(of_file.folder, sizeof of_file.folder, "%s", c.path);
        float *logits = evaluate(&of_file);
        int64_t at = specimen_first_difference(&s, reference, logits, 0, s.count);
        uint64_t hash = specimen_hash(&s, logits, s.count);
        T_CHECK(at < 0 && hash == expected, "%s: %016" PRIx64 ", position %lld differs", c.path,
                hash, (long long)at);
        free(logits);
    }
    converted_remove("one-hash", s.name);
    printf("%s: %lld positions, XXH3-64 %016" PRIx64 "\n", s.name, (long long)s.count, expected);
    free(reference);
    specimen_close(&s);
}

static void tiny(void) { check_flavours(specimen_open(BUILD_DIR "/checkpoints", "tiny")); }

/* The start of its prompt: all layers and both halves of the window. */
static void deep40(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    s.count = 100;
    check_flavours(s);
}

static void demo(void) { check_flavours(demo_specimen()); }

T_MAIN({"tiny", tiny}, {"deep40", deep40}, {"demo", demo})
