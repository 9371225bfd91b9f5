/* The wiring, without rounding noise: a build of the engine whose rounding steps are switched off
 * against the published code run the same way (NAME.smooth.safetensors of tests/data/oracle).
 *
 * A mistake in any operator moves these logits by 1e-2 or more; two correct programs differ by less
 * than 1e-5.  Lists of experts, selected positions and candidates must be identical. */
#include "goldens.h"
#include "run.h"
#include "t.h"

#include <math.h>

#define TOLERANCE 1e-4

/* What the observer compares with, and how it went. */
typedef struct smooth {
    golden experts, candidates, hidden, positions;
    golden list[PLUMB_MAX_LAYERS]; /* of index sources */
    int64_t rows_seen, lists_seen, pools_seen, hidden_seen; /* compared */
    int64_t experts_off, lists_off, pools_off;              /* of them, different */
    double hidden_error; /* largest difference, relative to the vector's RMS */
} smooth;

static void compare_lists(smooth *s, const plumb_network *n, int64_t layer, int64_t position,
                          int64_t row) {
    const plumb_model_config *c = n->config;
    s->lists_seen++;
    s->lists_off += !oracle_same_list(n, row, s->list[layer].i32 + position * c->index_topk);
    if (layer != c->candidate_source) return;
    int64_t width = s->candidates.shape[1];
    s->pools_seen++;
    s->pools_off += !oracle_same_pool(n, row, s->candidates.u8 + position * width, width);
}

/* The residual copies after the layer, at the golden's chosen positions. */
static void compare_hidden(smooth *s, const plumb_network *n, int64_t layer, int64_t position,
                           int64_t row) {
    int64_t width = PLUMB_HC * n->config->hidden, chosen = s->positions.count;
    for (int64_t i = 0; i < chosen; i++) {
        if (s->positions.i32[i] != position) continue;
        const float *want = s->hidden.f32 + (layer * chosen + i) * width;
        double square = 0, most = 0;
        for (int64_t j = 0; j < width; j++) {
            double off = fabs((double)plumb__load(n->work.h[row * width + j]) - (double)want[j]);
            square += (double)want[j] * (double)want[j];
            if (!(off <= most)) most = off;
        }
        double relative = most / sqrt(square / (double)width);
        if (!(relative <= s->hidden_error)) s->hidden_error = relative;
        s->hidden_seen++;
    }
}

static void watch(void *user, plumb_network *n, plumb_point point, int64_t layer, int64_t rows) {
    oracle_run *run = user;
    smooth *s = run->user;
    int64_t k = n->config->experts_per_token;
    for (int64_t row = 0; row < rows; row++) {
        int64_t position = run->state->length + row;
        if (point == PLUMB_POINT_ATTN_OUT && n->config->is_index_source[layer])
            compare_lists(s, n, layer, position, row);
        if (point == PLUMB_POINT_FFN_OUT) {
            s->rows_seen++;
            s->experts_off += !oracle_same_experts(plumb__expert_ids(n, rows, layer) + row * k,
                                                   s->experts.u8 + (layer * run->n_ids + position) * k, k);
        }
        if (point == PLUMB_POINT_LAYER_OUT) compare_hidden(s, n, layer, position, row);
    }
}

static void load(smooth *s, goldens *g, const plumb_model_config *c) {
    *s = (smooth){.experts = goldens_get(g, "prefill.gate_indices.f64", "U8"),
                  .candidates = goldens_get(g, "prefill.candidates.f64", "U8"),
                  .hidden = goldens_get(g, "prefill.hidden.f64", "F32"),
                  .positions = goldens_get(g, "hidden_positions", "I32")};
    for (int64_t layer = 0; layer < c->layers; layer++) {
        char name[64];
        snprintf(name, sizeof name, "prefill.topk.%d.f64", (int)layer);
        if (c->is_index_source[layer]) s->list[layer] = goldens_get(g, name, "I32");
    }
}

/* Largest difference between the run's rows from `first` on and the golden's rows; fails once. */
static void check_logits(const oracle_run *run, const char *what, golden want, int64_t first) {
    int64_t vocab = run->config->vocab;
    double most = 0;
    T_CHECK(want.shape[1] == vocab && first + want.shape[0] <= run->n_ids, "%s", what);
    for (int64_t i = 0; i < want.count; i++) {
        double off = fabs((double)oracle_row(run, first)[i] - (double)want.f32[i]);
        if (!(off <= most)) most = off;
    }
    printf("  %-24s %3d rows  max %.2e\n", what, (int)want.shape[0], most);
    T_CHECK(most <= TOLERANCE, "%s: %g", what, most);
}

static void check_watched(const smooth *s, const char *what, int64_t rows, int64_t layers) {
    printf("  %-24s %d expert rows, %d lists, %d pools; hidden states: %d, relative max %.2e\n",
           what, (int)s->rows_seen, (int)s->lists_seen, (int)s->pools_seen, (int)s->hidden_seen,
           s->hidden_error);
    T_CHECK(s->rows_seen == rows * layers && s->lists_seen > 0 && s->pools_seen == rows,
            "%s: not everything was compared", what);
    T_CHECK(s->experts_off == 0, "%s: %d rows take other experts", what, (int)s->experts_off);
    T_CHECK(s->lists_off == 0, "%s: %d lists differ", what, (int)s->lists_off);
    T_CHECK(s->pools_off == 0, "%s: %d candidate pools differ", what, (int)s->pools_off);
    T_CHECK(s->hidden_error <= TOLERANCE && s->hidden_seen > 0, "%s: hidden states: %g", what,
            s->hidden_error);
}

static void run_model(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "oracle/%s.smooth.safetensors", name);
    goldens *g = goldens_open(path);
    golden ids = goldens_get(g, "input_ids", "I32");
    snprintf(path, sizeof path, BUILD_DIR "/checkpoints/%s", name);
    oracle_run run;
    oracle_open(&run, path, ids.i32, ids.count);
    smooth watched;
    load(&watched, g, run.config);
    run.observe = watch;
    run.user = &watched;

    oracle_eval_to(&run, ids.count);
    check_logits(&run, "prefill", goldens_get(g, "prefill.logits.f64", "F32"), 0);
    check_watched(&watched, "prefill", ids.count, run.config->layers);

    /* Row 0 of the decode goldens is the prefill's last position. */
    int64_t start = goldens_get(g, "decode_start", "I32").i32[0];
    golden decoded = goldens_get(g, "decode.logits.f64", "F32");
    load(&watched, g, run.config);
    oracle_decode(&run, start, start + decoded.shape[0] - 1);
    check_logits(&run, "decode", decoded, start - 1);
    check_watched(&watched, "decode", run.state->length, run.config->layers);
    oracle_close(&run);
    goldens_close(g);
}

static void tiny(void) { run_model("tiny"); }
static void deep40(void) { run_model("deep40"); }

T_MAIN({"tiny", tiny}, {"deep40", deep40})
