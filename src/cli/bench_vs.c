/* One command line against another; see bench_vs.h.  bench_pairs.h says how they are run, bench_verdict.h
 * what is made of it. */
#include "cli/bench_vs.h"

#include "base/error.h"
#include "cli/bench_pairs.h"
#include "cli/bench_verdict.h"
#include "cli/executable.h"
#include "cli/interrupt.h"
#include "cli/model_lookup.h"
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The two command lines ---- */

/* What belongs to the comparison, not to what is compared. */
static const char own_options[] = "vs vs-rounds vs-threshold vs-bits-may-differ";

typedef struct sides {
    char program[CLI_PATH_SIZE];
    const char *a[3];         /* this program, its command */
    const char **a_rest;      /* owned */
    char *line;               /* owned */
    const char *b[5], *none[1]; /* /bin/sh -c LINE sh, and nothing after what is given */
} sides;

static plumb_status make_sides(const cli_options *options, sides *s, plumb_error *err) {
    static const char given[] = " \"$@\""; /* the shell puts the words in, whatever is in them */
    size_t length = strlen(options->vs);
    while (length > 0 && options->vs[length - 1] == '\n') length--; /* ends a command line, too early */
    size_t size = length + sizeof given;
    if (!cli_executable_path(s->program, sizeof s->program))
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "this program", -1, "no path",
                           "one to run it by");
    s->a_rest = calloc((size_t)options->n_words + 1, sizeof *s->a_rest);
    s->line = malloc(size);
    if (s->a_rest == NULL || s->line == NULL)
        return plumb__fail_memory(err, "command lines", size);
    cli_options_without(options, own_options, s->a_rest);
    memcpy(s->line, options->vs, length);
    memcpy(s->line + length, given, sizeof given);
    s->a[0] = s->program;
    s->a[1] = options->command->name;
    s->b[0] = "/bin/sh";
    s->b[1] = "-c";
    s->b[2] = s->line;
    s->b[3] = "sh";
    return PLUMB_OK;
}

/* ---- The report ---- */

static void tell_run(void *user, int run) {
    const cli_options *options = user;
    if (!options->quiet)
        cli_complain(options, "run %d of %lld: %s", run + 1, (long long)(4 * options->vs_rounds),
                     cli_bench_run_is_a(run) ? "A, this command line" : "B, the other one");
}

/* The median of a side's runs, for orientation: the ratios are not made of it. */
static double side_speed(const cli_bench_pairs *p, bool is_a, double context, bool decode,
                         double *room) {
    int64_t n = 0;
    for (int run = 0; run < p->n_runs; run++)
        if (cli_bench_run_is_a(run) == is_a)
            room[n++] = cli_bench_speed(&p->tables[run], context, decode);
    return cli_bench_median(room, n);
}

typedef struct verdicts {
    int compared, slower;
} verdicts;

/* `room` holds a number for every run. */
static void print_verdict(const cli_options *options, const cli_bench_pairs *p, double context,
                          bool decode, double *room, verdicts *all) {
    double a = side_speed(p, true, context, decode, room);
    double b = side_speed(p, false, context, decode, room);
    bool both = cli_bench_pairs_ratios(p, context, decode, room);
    if (!both && a == 0 && b == 0) return;
    cli_print("%10.10g  %-8s%12.3f%12.3f", context, decode ? "decode" : "prefill", a, b);
    if (!both) {
        cli_print("  not measured by both\n");
        return;
    }
    cli_bench_verdict v = cli_bench_judge(room, p->n_runs / 2, options->vs_threshold / 100);
    cli_print("%10.4f%10.4f%10.4f%7d  %s\n", v.median, v.least, v.most, v.pairs,
              cli_bench_outcome_words(v.outcome));
    all->compared++;
    all->slower += v.outcome == CLI_BENCH_SLOWER;
}

/* False without memory. */
static bool print_verdicts(const cli_options *options, const cli_bench_pairs *p, verdicts *all) {
    double *room = calloc((size_t)p->n_runs, sizeof *room);
    if (room == NULL) return false;
    cli_print("%10s  %-8s%12s%12s%10s%10s%10s%7s  %s\n", "context", "", "A tokens/s", "B tokens/s",
              "A/B", "least", "most", "pairs", "verdict");
    for (double context = -1; cli_bench_next_context(&p->tables[0], &context);)
        for (int decode = 0; decode < 2; decode++)
            print_verdict(options, p, context, decode != 0, room, all);
    free(room);
    return true;
}

/* How many runs had other bits than the first. */
static int print_bits(const cli_bench_pairs *p) {
    int differing = 0;
    for (int run = 1; run < p->n_runs; run++) {
        if (!p->bits[run].differ) continue;
        cli_print("bits: run 1 (A) and run %d (%c) differ: %s\n", run + 1,
                  cli_bench_run_is_a(run) ? 'A' : 'B', p->bits[run].words);
        differing++;
    }
    if (differing == 0 && p->bits[1].rows == 0)
        cli_print("bits: no logits were dumped\n");
    else if (differing == 0)
        cli_print("bits: all runs have the same %s rows of logits\n",
                  cli_grouped(p->bits[1].rows).text);
    return differing;
}

static int print_report(const cli_options *options, const cli_bench_pairs *p) {
    verdicts all = {0};
    if (!print_verdicts(options, p, &all)) {
        cli_complain(options, "no memory for the report");
        return CLI_FAILED;
    }
    int differing = print_bits(p);
    if (all.compared == 0)
        cli_print("result: none, since no speed was measured by both\n");
    else if (all.slower > 0)
        cli_print("result: a regression of more than %g %%, %d times\n", options->vs_threshold,
                  all.slower);
    else
        cli_print("result: no regression of more than %g %%\n", options->vs_threshold);
    bool bits_fail = differing > 0 && !options->vs_bits_may_differ;
    return all.compared == 0 || all.slower > 0 || bits_fail ? CLI_FAILED : CLI_OK;
}

int cli_bench_vs(const cli_options *options) {
    plumb_error err;
    sides s = {.line = NULL};
    cli_bench_pairs pairs = {.n_runs = 4 * (int)options->vs_rounds,
                             .folder = options->tmpdir != NULL ? options->tmpdir : "/tmp",
                             .begin = tell_run,
                             .user = (void *)options};
    plumb_status status = cli_interrupt_catch(&err);
    if (status == PLUMB_OK) status = make_sides(options, &s, &err);
    /* Before anything runs: a model that cannot be opened is told at once. */
    if (status == PLUMB_OK) status = cli_find_vocabulary(options, &pairs.vocab, &err);
    pairs.a = (cli_bench_side){.before = s.a, .after = s.a_rest};
    pairs.b = (cli_bench_side){.before = s.b, .after = s.none};
    if (status == PLUMB_OK) status = cli_bench_pairs_run(&pairs, &err);
    int result = status == PLUMB_OK ? print_report(options, &pairs) : cli_report(options, &err);
    cli_bench_pairs_free(&pairs);
    free(s.a_rest);
    free(s.line);
    return result;
}
