/* Memory at its limits: slots around the number of experts that a layer needs, budgets a little apart.
 *
 * A ring that is smaller than a layer must not wrap inside it; a larger budget must never be refused where
 * a smaller one works; what is refused is refused with numbers, and what is accepted runs. */
#include "engine/engine.h"
#include "equal/specimen.h"

#include <stdlib.h>

#include "base/machine.h"
#include "engine/memory_budget.h"
#include "stream/expert_cache_parts.h"
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

/* ---- What a budget gives ------------------------------------------------------------------------------ */

/* deep40: 3 of 12 experts in each of 40 layers. */
enum { LAYERS = 40, EXPERTS = 12, ONE_TOKEN = 3 * LAYERS };

/* The largest power of two whose working memory is an eighth of what is left, to the byte. */
static void chosen_chunk(void) {
    enum { CONTEXT = 4096, SMALLEST = 256, LARGEST = 8192 };
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = NULL;
    plumb_error err = {0};
    specimen_must(open_with(&s, INT64_C(2000000000), 0, &model, &err), &err, "open");
    plumb_network *n = &model->network;
    int64_t slot = plumb__expert_layout_bytes(n->config, PLUMB_READ_ALIGNMENT);
    static const int64_t counts[][2] = {{0, 6}, {100, 100}}; /* as asked for, as paid for */
    for (int i = 0; i < 2; i++) {
        int64_t others = n->weights.bytes + counts[i][1] * slot + plumb__state_bytes_at(n->config, CONTEXT);
        model->cache_experts = counts[i][0];
        for (int64_t rows = 2 * SMALLEST; rows <= LARGEST; rows *= 2) {
            int64_t enough = others + 8 * plumb__workspace_bytes(n, rows);
            model->memory_bytes = enough;
            T_CHECK(plumb__budget_chunk(model, CONTEXT) == rows, "%" PRId64 ", not %" PRId64,
                    plumb__budget_chunk(model, CONTEXT), rows);
            model->memory_bytes = enough - 1;
            T_CHECK(plumb__budget_chunk(model, CONTEXT) == rows / 2, "%" PRId64 ", not half of %" PRId64,
                    plumb__budget_chunk(model, CONTEXT), rows);
        }
        model->memory_bytes = 1;
        T_CHECK(plumb__budget_chunk(model, CONTEXT) == SMALLEST, "the least");
        model->memory_bytes = INT64_MAX;
        T_CHECK(plumb__budget_chunk(model, CONTEXT) == LARGEST, "the most");
    }
    plumb_model_close(model);
    specimen_close(&s);
}

/* A ring where slots are fewer than one token's experts, or wanted as buffers: of two layers, no more. */
static void cache_or_ring(void) {
    static const struct {
        int64_t wanted;
        bool layer_buffers;
        int64_t slots;
        plumb_eviction eviction;
    } cases[] = {
        {1, false, 1, PLUMB_EVICT_OLDEST},
        {ONE_TOKEN - 1, false, ONE_TOKEN - 1, PLUMB_EVICT_OLDEST},
        {ONE_TOKEN, false, ONE_TOKEN, PLUMB_EVICT_AGE_OVER_USE},
        {0, false, LAYERS * EXPERTS, PLUMB_EVICT_AGE_OVER_USE},
        {0, true, 2 * EXPERTS, PLUMB_EVICT_OLDEST},
        {LAYERS * EXPERTS, true, 2 * EXPERTS, PLUMB_EVICT_OLDEST},
        {2 * EXPERTS - 1, true, 2 * EXPERTS - 1, PLUMB_EVICT_OLDEST},
    };
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const plumb_model_options options = {.streaming = true, .memory_bytes = INT64_C(2000000000),
                                             .cache_experts = cases[i].wanted, .threads = 1,
                                             .layer_buffers = cases[i].layer_buffers};
        plumb_model *model = NULL;
        plumb_error err = {0};
        specimen_must(plumb_model_open(s.folder, &options, &model, &err), &err, "open");
        const plumb_expert_cache *cache = plumb__source_cache(model->source);
        T_CHECK(cache->table.slots == cases[i].slots && cache->table.eviction == cases[i].eviction,
                "case %zu: %" PRId64 " slots, eviction %d", i, cache->table.slots,
                (int)cache->table.eviction);
        plumb_model_close(model);
    }
    specimen_close(&s);
}

static int64_t slots_now(plumb_model *model) {
    plumb_stream_stats stats;
    plumb_model_get_stream_stats(model, &stats);
    return stats.expert_slots;
}

/* What is granted shows at once; what is refused changes nothing, not for a session that comes later
 * either. */
static void changes_of_the_budget(void) {
    enum { BUDGET = 1000000000 };
    static const int64_t refused[][2] = {{1, 0}, {1, 50}, {0, 0}, {-1, 50}, {BUDGET, -1}};
    static const int64_t granted[] = {50, 7, 1000, 1, ONE_TOKEN};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *model = NULL;
    plumb_error err = {0};
    specimen_must(open_with(&s, BUDGET, 200, &model, &err), &err, "open");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        plumb_session *session = NULL;
        const plumb_session_options options = {.context = 64, .chunk = 16};
        T_CHECK(plumb_model_set_cache(model, refused[i][0], refused[i][1], &err) != PLUMB_OK, "%zu", i);
        T_CHECK(slots_now(model) == 200 && model->memory_bytes == BUDGET && model->cache_experts == 200,
                "%zu: %" PRId64 " slots", i, slots_now(model));
        plumb_status status = plumb_session_create(model, &options, &session, &err);
        T_CHECK(status == PLUMB_OK && slots_now(model) == 200, "%zu: status %d, %" PRId64 " slots", i,
                (int)status, slots_now(model));
        plumb_session_destroy(session);
    }
    for (size_t i = 0; i < sizeof granted / sizeof granted[0]; i++) {
        int64_t expected = granted[i] < LAYERS * EXPERTS ? granted[i] : LAYERS * EXPERTS;
        specimen_must(plumb_model_set_cache(model, 0, granted[i], &err), &err, "granted");
        T_CHECK(slots_now(model) == expected, "%" PRId64 " slots, not %" PRId64, slots_now(model),
                expected);
    }
    specimen_must(plumb_model_set_cache(model, BUDGET, 0, &err), &err, "granted");
    T_CHECK(slots_now(model) == LAYERS * EXPERTS, "%" PRId64 " slots", slots_now(model));
    plumb_model_close(model);
    specimen_close(&s);
}

static void count_cuts(void *user, plumb_log_level level, const char *line) {
    *(int *)user += level == PLUMB_LOG_WARNING && strstr(line, " is cut to this machine's ");
}

static void more_than_the_machine_has(void) {
    int64_t machine = plumb__machine_memory_bytes();
    const struct {
        int64_t budget, held;
        int cuts;
    } cases[] = {{INT64_MAX, machine, 1}, {machine + 1, machine, 1}, {machine, machine, 0}};
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    if (machine == 0) printf("skipped: the memory of this machine is not known\n");
    for (int i = 0; i < 3; i++) {
        int cuts = 0;
        const plumb_model_options options = {.streaming = true, .memory_bytes = cases[i].budget,
                                             .threads = 1, .log = count_cuts, .log_user = &cuts};
        plumb_model *model = NULL;
        plumb_error err = {0};
        if (machine == 0 && cases[i].budget < INT64_MAX) continue;
        specimen_must(plumb_model_open(s.folder, &options, &model, &err), &err, "open");
        T_CHECK(machine == 0 || (model->memory_bytes == cases[i].held && cuts == cases[i].cuts),
                "case %d: %" PRId64 " bytes, %d warnings", i, (int64_t)model->memory_bytes, cuts);
        plumb_model_close(model);
    }
    specimen_close(&s);
}

T_MAIN({"slots_around_a_layer", slots_around_a_layer},
       {"smallest_budget_of_a_model", smallest_budget_of_a_model},
       {"larger_budgets_are_not_refused", larger_budgets_are_not_refused},
       {"accepted_budgets_run", accepted_budgets_run}, {"chosen_chunk", chosen_chunk},
       {"cache_or_ring", cache_or_ring}, {"changes_of_the_budget", changes_of_the_budget},
       {"more_than_the_machine_has", more_than_the_machine_has})
