/* Memory at its limits: slots around the number of experts that a layer needs, budgets a little apart.
 *
 * A ring that is smaller than a layer must not wrap inside it; a larger budget must never be refused where
 * a smaller one works; what is refused is refused with numbers, and what is accepted runs. */
#include "engine/engine.h"
#include "equal/specimen.h"

#include <stdlib.h>

#include "engine/memory_budget.h"
#include "t.h"

/* ---- Slots around a layer's experts ------------------------------------------------------------------ */

typedef struct layer_use {
    bool used[64][64]; /* [layer][expert] */
} layer_use;

static void note_route(void *user, int64_t position, int64_t layer, const int32_t *ids, int64_t n) {
    layer_use *use = user;
    (void)position;
    for (int64_t i = 0; i < n; i++) use->used[layer][ids[i]] = true;
}

/* The reference, and the most experts that one layer needs for these rows. */
static int64_t widest_layer(const specimen *s, int64_t rows, float *reference) {
    static layer_use use;
    use = (layer_use){0};
    const plumb_model_options options = {.threads = 1, .routes = note_route, .routes_user = &use};
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb_model_open(s->folder, &options, &model, &err), &err, "reference");
    plumb_session *session = specimen_session(model, rows);
    specimen_advance(s, session, rows, reference);
    int64_t widest = 0;
    for (int layer = 0; layer < 64; layer++) {
        int64_t count = 0;
        for (int e = 0; e < 64; e++) count += use.used[layer][e];
        widest = count > widest ? count : widest;
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
    return widest;
}

/* All rows in one call, then the last ones again one by one. */
static void check_slots(const specimen *s, int64_t rows, int64_t slots, bool layer_buffers,
                        const float *reference, float *logits) {
    const plumb_model_options options = {.streaming = true, .cache_experts = slots,
                                         .threads = T_SANITIZED ? 1 : 2,
                                         .layer_buffers = layer_buffers};
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb_model_open(s->folder, &options, &model, &err), &err, "open");
    plumb_session *session = specimen_session(model, rows);
    memset(logits, 0, (size_t)(rows * s->vocab) * sizeof *logits);
    specimen_advance(s, session, rows, logits);
    specimen_must(plumb_session_rewind(session, rows - 4, &err), &err, "rewind");
    for (int64_t p = rows - 3; p <= rows; p++) specimen_advance(s, session, p, logits);
    int64_t at = specimen_first_difference(s, reference, logits, 0, rows);
    T_CHECK(at < 0, "%s: %" PRId64 " rows, %" PRId64 " slots%s: position %" PRId64 " differs", s->name,
            rows, slots, layer_buffers ? " as layer buffers" : "", at);
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static void slots_around_a_layer(void) {
    static const struct {
        const char *name;
        int64_t rows;
    } cases[] = {{"tiny", 5}, {"tiny", 96}, {"deep40", 6}, {"deep40", 40}};
    size_t n = sizeof cases / sizeof cases[0] - (T_SANITIZED ? 1 : 0); /* the last takes long */
    for (size_t i = 0; i < n; i++) {
        specimen s = specimen_open(BUILD_DIR "/checkpoints", cases[i].name);
        float *reference = specimen_logits(&s), *logits = specimen_logits(&s);
        int64_t widest = widest_layer(&s, cases[i].rows, reference);
        T_CHECK(widest > 4, "%s: %" PRId64, s.name, widest);
        for (int64_t slots = widest - 1; slots <= widest + 1; slots++) {
            check_slots(&s, cases[i].rows, slots, false, reference, logits);
            check_slots(&s, cases[i].rows, slots, true, reference, logits);
            if (!T_SANITIZED) check_slots(&s, cases[i].rows, 2 * slots, true, reference, logits);
        }
        free(reference);
        free(logits);
        specimen_close(&s);
    }
}

/* ---- Budgets ------------------------------------------------------------------------------------------ */

static plumb_status open_with(const specimen *s, int64_t budget, int64_t slots, plumb_model **model,
                              plumb_error *err) {
    const plumb_model_options options = {.streaming = true, .memory_bytes = budget,
                                         .cache_experts = slots, .threads = 1};
    return plumb_model_open(s->folder, &options, model, err);
}

/* Says what there is, what it takes, and what for. */
static void check_refusal(const plumb_error *err, const specimen *s, const char *when) {
    T_CHECK(err->status == PLUMB_ERROR_MEMORY && !strcmp(err->file, s->folder) &&
                !strcmp(err->field, "memory budget") && strstr(err->found, " GB") &&
                strstr(err->expected, "at least ") && strstr(err->expected, "dense weights ") &&
                strstr(err->expected, "experts "),
            "%s: status %d, %s: %s, %s", when, (int)err->status, err->field, err->found,
            err->expected);
}

/* The smallest budget that opens is what dense weights and the fewest slots take, to the byte. */
static void smallest_budget_of_a_model(void) {
    enum { ALL = 40 * 12 };
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = NULL;
    plumb_error err = {0};
    specimen_must(open_with(&s, INT64_C(1000000000), 0, &model, &err), &err, "open");
    /* What they take: small vectors are widened, and notes are made. */
    int64_t dense = model->network.weights.bytes;
    T_CHECK(dense >= plumb__budget_dense_bytes(model->checkpoint), "%" PRId64 " bytes", dense);
    int64_t slot = plumb__expert_layout_bytes(model->network.config, PLUMB_READ_ALIGNMENT);
    T_CHECK(plumb__budget_least_slots(model->network.config) == 6, "two tokens of three experts");
    plumb_model_close(model);
    const struct {
        int64_t budget, slots;
        bool opens;
    } cases[] = {
        {1, 0, false},
        {dense, 0, false},
        {dense + 6 * slot - 1, 0, false},
        {dense + 6 * slot, 0, true},
        {dense + 6 * slot + 1, 0, true},
        {dense + 5000000, 0, true},
        {dense + slot - 1, 1, false},
        {dense + slot, 1, true},
        {dense + 100 * slot - 1, 100, false},
        {dense + 100 * slot, 100, true},
        {dense + ALL * slot - 1, INT64_MAX, false}, /* more than there are: all of them */
        {dense + ALL * slot, INT64_MAX, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char when[64];
        snprintf(when, sizeof when, "%" PRId64 " bytes, %" PRId64 " slots", cases[i].budget,
                 cases[i].slots);
        model = NULL;
        plumb_status status = open_with(&s, cases[i].budget, cases[i].slots, &model, &err);
        T_CHECK((status == PLUMB_OK) == cases[i].opens, "%s: status %d", when, (int)status);
        if (status != PLUMB_OK) check_refusal(&err, &s, when);
        plumb_model_close(model);
    }
    specimen_close(&s);
}

/* Sessions of every kind under budgets from too small for anything to plenty, beside others that hold
 * `others` bytes: once one is accepted, all larger budgets are. */
static void sweep_budgets(plumb_model *model, const specimen *s, int64_t others) {
    static const plumb_session_options kinds[] = {
        {.context = 16, .chunk = 1},     {.context = 4096, .chunk = 1}, {.context = 256, .chunk = 256},
        {.context = 4096, .chunk = 512}, {.context = 4096},             {.context = 600},
    };
    enum { KINDS = sizeof kinds / sizeof kinds[0], STEP = 200000 };
    plumb_error err = {0};
    int64_t accepted[KINDS] = {0}, refused[KINDS] = {0};
    model->promised_bytes += others;
    for (int64_t budget = STEP; budget < others + INT64_C(100000000); budget += STEP) {
        /* Refused for the model itself: the budget stays what it was. */
        if (plumb_model_set_cache(model, budget, 0, &err) != PLUMB_OK) {
            check_refusal(&err, s, "model");
            T_CHECK(accepted[0] == 0, "a budget of %" PRId64 " after a smaller one", budget);
            continue;
        }
        for (int i = 0; i < KINDS; i++) {
            plumb_session *session = NULL;
            plumb_status status = plumb_session_create(model, &kinds[i], &session, &err);
            if (status == PLUMB_OK && accepted[i] == 0) accepted[i] = budget;
            if (status != PLUMB_OK) {
                refused[i] = budget;
                check_refusal(&err, s, "session");
                T_CHECK(strstr(err.expected, "a context of ") && strstr(err.expected, "rows "), "%s",
                        err.expected);
            }
            T_CHECK(status == PLUMB_OK || accepted[i] == 0,
                    "kind %d: %" PRId64 " is refused where %" PRId64 " works", i, budget, accepted[i]);
            plumb_session_destroy(session);
        }
    }
    for (int i = 0; i < KINDS; i++)
        T_CHECK(accepted[i] > 0 && refused[i] > 0 && accepted[i] >= accepted[0],
                "kind %d: accepted from %" PRId64 ", refused up to %" PRId64, i, accepted[i],
                refused[i]);
    T_CHECK(accepted[1] > accepted[0], "a longer context takes more");
    T_CHECK(accepted[3] > accepted[1], "more rows at a time take more");
    model->promised_bytes -= others;
}

static void larger_budgets_are_not_refused(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = NULL;
    plumb_error err = {0};
    specimen_must(open_with(&s, INT64_C(2000000000), 0, &model, &err), &err, "open");
    sweep_budgets(model, &s, 0);
    /* Where a chunk of twice the rows just becomes worth an eighth of the memory, and sessions take nearly
     * all the rest. */
    for (int64_t rows = 512; rows <= 2048; rows *= 2)
        sweep_budgets(model, &s, plumb__workspace_bytes(&model->network, rows) * 29 / 4);
    plumb_model_close(model);
    specimen_close(&s);
}

/* What is accepted runs, with the right bits, and more memory is used for more experts. */
static void accepted_budgets_run(void) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    enum { ROWS = 40 };
    float *reference = specimen_logits(&s), *logits = specimen_logits(&s);
    (void)widest_layer(&s, ROWS, reference);
    int64_t slots_before = 0;
    int ran = 0;
    for (int64_t budget = 1000000; budget <= 24000000; budget += T_SANITIZED ? 4000000 : 2000000) {
        plumb_model *model = NULL;
        plumb_session *session = NULL;
        plumb_error err = {0};
        const plumb_session_options options = {.context = 64, .chunk = 16};
        plumb_status status = open_with(&s, budget, 0, &model, &err);
        if (status == PLUMB_OK) status = plumb_session_create(model, &options, &session, &err);
        T_CHECK(status == PLUMB_OK || ran == 0, "%" PRId64 ": %s", budget, err.expected);
        if (status == PLUMB_OK) {
            ran++;
            memset(logits, 0, (size_t)(ROWS * s.vocab) * sizeof *logits);
            specimen_advance(&s, session, ROWS, logits);
            int64_t at = specimen_first_difference(&s, reference, logits, 0, ROWS);
            T_CHECK(at < 0, "%" PRId64 ": position %" PRId64 " differs", budget, at);
            plumb_stream_stats stats;
            plumb_model_get_stream_stats(model, &stats);
            T_CHECK(stats.expert_slots >= 6 && stats.expert_slots >= slots_before,
                    "%" PRId64 ": %" PRId64 " slots, %" PRId64 " before", budget, stats.expert_slots,
                    slots_before);
            slots_before = stats.expert_slots;
            int64_t held = stats.expert_slots * stats.expert_bytes + model->network.weights.bytes +
                           model->session_bytes + plumb__workspace_bytes(&model->network, 16);
            /* The place to resume from is made when all is done, and counted the next time. */
            held -= plumb__state_fixed_bytes(session->state);
            T_CHECK(held <= budget, "%" PRId64 ": %" PRId64 " bytes", budget, held);
        }
        plumb_session_destroy(session);
        plumb_model_close(model);
    }
    T_CHECK(ran >= 3 && slots_before > 100, "%d ran, %" PRId64 " slots", ran, slots_before);
    free(reference);
    free(logits);
    specimen_close(&s);
}

T_MAIN({"slots_around_a_layer", slots_around_a_layer},
       {"smallest_budget_of_a_model", smallest_budget_of_a_model},
       {"larger_budgets_are_not_refused", larger_budgets_are_not_refused},
       {"accepted_budgets_run", accepted_budgets_run})
