#include "equal/specimen.h"

#include "goldens.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void specimen_must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s: %s\n", what, line);
    exit(1);
}

static void *must_have(void *memory) {
    if (!memory) goldens__die("specimen", "memory", "none left");
    return memory;
}

specimen specimen_open(const char *checkpoints, const char *name) {
    specimen s = {.name = name};
    snprintf(s.folder, sizeof s.folder, "%s/%s", checkpoints, name);
    char file[128];
    snprintf(file, sizeof file, "oracle/%s.prefill.safetensors", name);
    goldens *g = goldens_open(file);
    golden ids = goldens_get(g, "input_ids", "I32");
    golden logits = goldens_get(g, "prefill.logits.f32", "F32");
    s.count = ids.count;
    s.vocab = logits.shape[1];
    s.tokens = must_have(malloc(ids.bytes));
    memcpy(s.tokens, ids.i32, ids.bytes);
    goldens_close(g);
    return s;
}

void specimen_close(specimen *s) {
    free(s->tokens);
    s->tokens = NULL;
}

plumb_model *specimen_model(const specimen *s, int threads, const char *level) {
    plumb_model_options options = {.threads = threads, .cpu_level = level};
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb_model_open(s->folder, &options, &model, &err), &err, s->name);
    return model;
}

plumb_session *specimen_session(plumb_model *model, int64_t chunk) {
    plumb_session_options options = {.chunk = chunk};
    plumb_session *session = NULL;
    plumb_error err;
    specimen_must(plumb_session_create(model, &options, &session, &err), &err, "session");
    return session;
}

float *specimen_logits(const specimen *s) {
    return must_have(calloc((size_t)(s->count * s->vocab), sizeof(float)));
}

typedef struct destination {
    float *logits;
    int64_t vocab;
} destination;

static int keep_row(void *user, int64_t position, const float *row) {
    const destination *d = user;
    memcpy(d->logits + position * d->vocab, row, (size_t)d->vocab * sizeof *row);
    return 0;
}

void specimen_feed(plumb_session *session, const int32_t *tokens, int64_t end, int64_t vocab,
                   float *logits) {
    int64_t begin = plumb_session_length(session);
    destination d = {logits, vocab};
    plumb_error err;
    specimen_must(plumb_session_eval_all(session, tokens + begin, end - begin, keep_row, &d, &err),
                  &err, "eval_all");
}

void specimen_advance(const specimen *s, plumb_session *session, int64_t end, float *logits) {
    specimen_feed(session, s->tokens, end, s->vocab, logits);
}

int64_t specimen_first_difference(const specimen *s, const float *a, const float *b, int64_t begin,
                                  int64_t end) {
    size_t row_bytes = (size_t)s->vocab * sizeof *a;
    for (int64_t p = begin; p < end; p++)
        if (memcmp(a + p * s->vocab, b + p * s->vocab, row_bytes) != 0) return p;
    return -1;
}

uint64_t specimen_hash(const specimen *s, const float *logits, int64_t rows) {
    return XXH3_64bits(logits, (size_t)(rows * s->vocab) * sizeof *logits);
}

void specimen_levels(specimen_level levels[SPECIMEN_LEVELS]) {
    for (int i = 0; i < SPECIMEN_LEVELS; i++)
        levels[i] = (specimen_level){known_levels[i], find_level(known_levels[i]) != NULL};
}
