/* The demo model's answers: tokens of the prompts, logits of prompt positions, and the greedy
 * continuation, as the published code computed them on the same files.
 *
 * Two correct programs part by the noise that the data states (the published code against itself with
 * float64 sums, and against a second implementation).  Where the published choice leads by more than
 * that, ours must be the same; nearer ties are listed.  Every step is fed the published token, so that a
 * tie that falls the other way does not hide what follows. */
#include "goldens.h"
#include "run.h"
#include "spread.h"
#include "t.h"

#include <stdlib.h>

static json_t *document, *prompts;
static goldens *logits;
static plumb_text *text;

static double noise_of(const json_t *prompt, const char *key) {
    return json_number_value(json_object_get(json_object_get(prompt, "noise"), key));
}

/* Appends the integers of prompt[key] to ids; returns how many. */
static int64_t append_ids(const json_t *prompt, const char *key, int32_t *ids) {
    const json_t *list = json_object_get(prompt, key);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int64_t)json_array_size(list);
}

static void check_text(const json_t *prompt, const char *name, const int32_t *ids, int64_t n_ids) {
    const char *bytes = json_string_value(json_object_get(prompt, "text"));
    plumb_tokens tokens = {0};
    plumb_error err;
    T_CHECK(plumb_text_encode(text, bytes, strlen(bytes), true, &tokens, &err) == PLUMB_OK, "%s",
            name);
    T_CHECK(tokens.count == n_ids && !memcmp(tokens.ids, ids, (size_t)n_ids * sizeof *ids),
            "%s: %d ids for %d", name, (int)tokens.count, (int)n_ids);
    plumb_tokens_free(&tokens);
}

/* Rows of the prompt against the goldens: no further than twice the larger of the noise figures. */
static void check_rows(const oracle_run *run, const json_t *prompt, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "%s.logits", name);
    golden want = goldens_get(logits, key, "F32");
    int64_t first =
        json_integer_value(json_array_get(json_object_get(prompt, "logits_rows"), 0));
    double rms = noise_of(prompt, "f32_against_f64_rms");
    double other = noise_of(prompt, "numpy_against_f32_rms");
    double most = noise_of(prompt, "f32_against_f64_max");
    if (other > rms) rms = other;
    oracle_spread s =
        oracle_compare(oracle_row(run, first), want.f32, want.shape[0], run->config->vocab);
    printf("  %-13s %3d rows: rms %.3f (noise %.3f), max %.2f (%.2f), median %.3f, top-1 %.0f %%\n",
           name, (int)want.shape[0], s.rms, rms, s.max, most, s.median, 100 * s.top1);
    T_CHECK(s.rms <= 2 * rms, "%s: rms %g", name, s.rms);
    T_CHECK(s.median <= rms, "%s: median %g", name, s.median);
    T_CHECK(s.max <= 2 * most, "%s: max %g", name, s.max);
}

/* Every greedy choice, each after the published tokens before it. */
static void check_choices(const oracle_run *run, const json_t *prompt, const char *name,
                          int64_t n_prompt) {
    const json_t *margins = json_object_get(prompt, "margins");
    double close = 2 * noise_of(prompt, "f32_against_f64_rms");
    int64_t vocab = run->config->vocab, same = 0, ties = 0;
    for (int64_t p = n_prompt; p < run->n_ids; p++) {
        double margin = json_number_value(json_array_get(margins, (size_t)(p - n_prompt)));
        int64_t best = oracle_best(oracle_row(run, p - 1), vocab);
        same += best == run->ids[p];
        ties += margin <= close;
        if (best == run->ids[p]) continue;
        printf("    step %d: %d where the published code takes %d with a lead of %.3f\n",
               (int)(p - n_prompt), (int)best, (int)run->ids[p], margin);
        T_CHECK(margin <= close, "%s, step %d: %d, not %d, which leads by %g (noise %g)", name,
                (int)(p - n_prompt), (int)best, (int)run->ids[p], margin, close);
    }
    printf("  %-13s %d of %d choices are the same; %d lead by less than %.2f\n", name, (int)same,
           (int)(run->n_ids - n_prompt), (int)ties, close);
    T_CHECK(json_array_size(margins) == (size_t)(run->n_ids - n_prompt), "%s", name);
}

static void check_prompt(const char *name) {
    json_t *prompt = NULL;
    for (size_t i = 0; i < json_array_size(prompts); i++) {
        json_t *candidate = json_array_get(prompts, i);
        if (!strcmp(json_string_value(json_object_get(candidate, "name")), name))
            prompt = candidate;
    }
    T_CHECK(prompt, "%s", name);
    if (!prompt) return;
    int32_t ids[1024];
    int64_t n_prompt = append_ids(prompt, "ids", ids);
    int64_t n = n_prompt + append_ids(prompt, "continuation", ids + n_prompt);
    check_text(prompt, name, ids, n_prompt);
    oracle_run run;
    oracle_open(&run, PROJECT_DIR "/data/demo-model", ids, n);
    oracle_decode(&run, n_prompt, n - 1);
    check_rows(&run, prompt, name);
    check_choices(&run, prompt, name, n_prompt);
    oracle_close(&run);
}

static void capital(void) { check_prompt("capital"); }
static void sum_thinking(void) { check_prompt("sum_thinking"); }
static void story(void) { check_prompt("story"); }
static void plain(void) { check_prompt("plain"); }
static void tool(void) { check_prompt("tool"); }
static void long_recall(void) { check_prompt("long_recall"); }

int main(int argc, char **argv) {
    static const t_test tests[] = {{"capital", capital}, {"sum_thinking", sum_thinking},
                                   {"story", story}, {"plain", plain}, {"tool", tool},
                                   {"long_recall", long_recall}};
    plumb_error err;
    document = json_load_file(TEST_DATA "/demo-model/prompts.json", 0, NULL);
    prompts = json_object_get(document, "prompts");
    logits = goldens_open("demo-model/logits.safetensors");
    if (!prompts || plumb_text_open(PROJECT_DIR "/data/demo-model", &text, &err) != PLUMB_OK) {
        fprintf(stderr, "the demo model or its goldens cannot be read\n");
        return 1;
    }
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    plumb_text_close(text);
    goldens_close(logits);
    json_decref(document);
    return status;
}
