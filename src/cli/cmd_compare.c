/* plumb compare: how far apart two dumps of logits are, and where they begin to be. */
#include "cli/commands.h"

#include "base/clean_text.h"
#include "cli/comparison.h"
#include "cli/json_report.h"
#include "cli/model_lookup.h"
#include "cli/output.h"

#include <stdio.h>
#include <string.h>

static double percent(int64_t part, int64_t whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static double mean_divergence(const cli_logits_tally *t) {
    return t->rows > 0 ? t->divergence / (double)t->rows : 0;
}

/* ---- For people ----------------------------------------------------------------------------- */

static const char *verdict(const cli_comparison *c) {
    if (c->total.differing > 0) return "some bits differ";
    return c->lengths_differ ? "every bit equal in the rows that both have" : "every bit equal";
}

static void print_pair(const cli_dump_pair *pair) {
    char name[256];
    plumb__clean_text(pair->name, "?", false, name, sizeof name);
    cli_print("%-24s%10s%12s%14.6g%14.6g\n", name, cli_grouped(pair->tally.rows).text,
              cli_grouped(pair->tally.equal_rows).text, pair->tally.largest,
              mean_divergence(&pair->tally));
}

static void print_lengths(const cli_comparison *c) {
    for (int64_t i = 0; i < c->n_pairs; i++) {
        const cli_dump_pair *pair = &c->pairs[i];
        if (pair->rows_a == pair->rows_b) continue;
        char name[256];
        plumb__clean_text(pair->name, "?", false, name, sizeof name);
        cli_print("lengths     %s rows and %s rows%s%s; the rows that both have are compared\n",
                  cli_grouped(pair->rows_a).text, cli_grouped(pair->rows_b).text,
                  c->folders ? " of " : "", c->folders ? name : "");
    }
}

static void print_report(const cli_comparison *c) {
    const cli_logits_tally *t = &c->total;
    cli_print("result      %s\n", verdict(c));
    print_lengths(c);
    if (c->folders) cli_print("files       %s\n", cli_grouped(c->n_pairs).text);
    cli_print("rows        %s of %s numbers, %s bit-identical\n", cli_grouped(t->rows).text,
              cli_grouped(c->vocab).text, cli_grouped(t->equal_rows).text);
    if (t->differing > 0) {
        char words[512], clean[512];
        cli_comparison_first(c, words, sizeof words);
        plumb__clean_text(words, "?", false, clean, sizeof clean);
        cli_print("first       %s\n", clean);
        cli_print("numbers     %s of %s differ\n", cli_grouped(t->differing).text,
                  cli_grouped(t->numbers).text);
    }
    cli_print("difference  largest %.9g, median %.9g; median of each row's largest %.9g\n",
              t->largest, c->median, c->row_median);
    cli_print("top-1       %.4f %% of rows agree\n", percent(t->same_best, t->rows));
    cli_print("top-5       %.4f %% of the best tokens are shared\n", percent(t->shared_best, t->best));
    cli_print("KL(A||B)    mean %.9g, largest %.9g nats\n", mean_divergence(t), t->worst_divergence);
    if (!c->folders) return;
    cli_print("\n%-24s%10s%12s%14s%14s\n", "file", "rows", "identical", "largest", "mean KL");
    for (int64_t i = 0; i < c->n_pairs; i++) print_pair(&c->pairs[i]);
}

/* ---- For programs --------------------------------------------------------------------------- */

static json_t *number_json(float value) {
    uint32_t bits;
    char words[16];
    memcpy(&bits, &value, sizeof bits);
    snprintf(words, sizeof words, "0x%08x", bits);
    return json_pack("{s:f, s:s}", "value", (double)value, "bits", words);
}

static json_t *first_json(const cli_comparison *c) {
    const cli_first_difference *f = &c->total.first;
    if (c->total.differing == 0) return json_null();
    return json_pack("{s:o, s:I, s:I, s:o, s:o}", "file", cli_json_text(c->pairs[c->first_pair].name),
                     "row", (json_int_t)f->row, "token", (json_int_t)f->token, "a",
                     number_json(f->a), "b", number_json(f->b));
}

static json_t *tally_json(const cli_logits_tally *t) {
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f}", "rows", (json_int_t)t->rows,
                     "identical_rows", (json_int_t)t->equal_rows, "numbers", (json_int_t)t->numbers,
                     "differing_numbers", (json_int_t)t->differing, "largest_difference", t->largest,
                     "top1", percent(t->same_best, t->rows) / 100, "top5",
                     percent(t->shared_best, t->best) / 100, "kl_mean", mean_divergence(t), "kl_max",
                     t->worst_divergence);
}

static json_t *pairs_json(const cli_comparison *c) {
    json_t *files = json_array();
    for (int64_t i = 0; i < c->n_pairs; i++) {
        const cli_dump_pair *pair = &c->pairs[i];
        (void)json_array_append_new(
            files, json_pack("{s:o, s:I, s:I, s:o}", "file", cli_json_text(pair->name), "rows_a",
                             (json_int_t)pair->rows_a, "rows_b", (json_int_t)pair->rows_b, "compared",
                             tally_json(&pair->tally)));
    }
    if (json_array_size(files) == (size_t)c->n_pairs) return files;
    json_decref(files);
    return NULL;
}

static json_t *only_json(const cli_comparison *c) {
    json_t *paths = json_array();
    for (int64_t i = 0; i < c->n_only; i++)
        (void)json_array_append_new(paths, cli_json_text(c->only[i]));
    if (json_array_size(paths) == (size_t)c->n_only) return paths;
    json_decref(paths);
    return NULL;
}

static bool print_json(const cli_comparison *c) {
    /* A part that could not be made is NULL, and then so is the whole. */
    json_t *report = json_pack(
        "{s:b, s:I, s:o, s:o, s:f, s:f, s:o, s:o}", "equal",
        c->total.differing == 0 && !c->lengths_differ && c->n_only == 0, "vocabulary",
        (json_int_t)c->vocab, "total", tally_json(&c->total), "first_difference", first_json(c),
        "median_difference", c->median, "median_of_row_largest", c->row_median, "files",
        pairs_json(c), "without_partner", only_json(c));
    if (report == NULL) return false;
    cli_json_print(report, 17);
    json_decref(report);
    return true;
}

/* ---- The command ---------------------------------------------------------------------------- */

/* 0 if neither is given. */
static plumb_status vocabulary(const cli_options *options, int64_t *vocab, plumb_error *err) {
    *vocab = options->vocab;
    if (options->vocab > 0 || options->model == NULL) return PLUMB_OK;
    return cli_find_vocabulary(options, vocab, err);
}

static int exit_status(const cli_options *options, const cli_comparison *c) {
    if (c->lengths_differ || c->n_only > 0) return CLI_FAILED;
    if (c->total.differing == 0) return CLI_OK;
    bool tolerated = cli_option_given(options, "tolerance") && c->total.largest <= options->tolerance;
    return tolerated ? CLI_OK : CLI_FAILED;
}

int cli_run_compare(const cli_options *options) {
    plumb_error err;
    int64_t vocab = 0;
    cli_comparison comparison = {0};
    int result = CLI_FAILED;
    plumb_status status = vocabulary(options, &vocab, &err);
    if (status == PLUMB_OK)
        status = cli_comparison_open(options->arguments[0], options->arguments[1], &comparison, &err);
    for (int64_t i = 0; i < comparison.n_only; i++)
        cli_complain(options, "%s: found in one folder only", comparison.only[i]);
    if (status == PLUMB_OK) status = cli_comparison_run(&comparison, vocab, &err);
    if (status != PLUMB_OK) {
        result = cli_report(options, &err);
    } else if (!options->json) {
        print_report(&comparison);
        result = exit_status(options, &comparison);
    } else if (print_json(&comparison)) {
        result = exit_status(options, &comparison);
    } else {
        cli_complain(options, "no memory for the report");
    }
    cli_comparison_free(&comparison);
    return result;
}
