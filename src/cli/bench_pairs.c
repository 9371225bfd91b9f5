/* Running two commands in turns; see bench_pairs.h. */
#include "cli/bench_pairs.h"

#include "base/error.h"
#include "cli/bench_verdict.h"
#include "cli/child_process.h"
#include "cli/comparison.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NAME_SIZE = 32, GIVEN_WORDS = 2 };

/* ---- The private folder ---- */

typedef struct workplace {
    char folder[PATH_SIZE - 16];
    char csv[PATH_SIZE], dump[PATH_SIZE];
    char first_dump[PATH_SIZE]; /* of the first run: all others are compared with it */
} workplace;

static plumb_status make_workplace(workplace *w, const char *folder, plumb_error *err) {
    int length = snprintf(w->folder, sizeof w->folder, "%s/plumb-bench-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof w->folder) {
        w->folder[0] = '\0';
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, folder, NULL, -1, "a long name",
                           "a folder for temporary files");
    }
    if (mkdtemp(w->folder) == NULL) {
        w->folder[0] = '\0';
        return plumb__fail(err, PLUMB_ERROR_IO, folder, NULL, -1, strerror(errno),
                           "a folder for temporary files (TMPDIR names another)");
    }
    snprintf(w->csv, sizeof w->csv, "%s/csv", w->folder);
    snprintf(w->dump, sizeof w->dump, "%s/dump", w->folder);
    snprintf(w->first_dump, sizeof w->first_dump, "%s/first-dump", w->folder);
    return PLUMB_OK;
}

/* With whatever a run that was killed left in it. */
static void remove_workplace(const workplace *w) {
    DIR *entries = w->folder[0] != '\0' ? opendir(w->folder) : NULL;
    if (entries == NULL) return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0);
    closedir(entries);
    rmdir(w->folder);
}

/* ---- One run ---- */

typedef struct run_name {
    char s[NAME_SIZE];
} run_name;

static run_name name_of(int run) {
    run_name name;
    snprintf(name.s, sizeof name.s, "run %d (%c)", run + 1, cli_bench_run_is_a(run) ? 'A' : 'B');
    return name;
}

/* Names of files in the private folder mean nothing to anyone, least of all once it is gone. */
static plumb_status in_run(plumb_status status, int run, const char *what, plumb_error *err) {
    if (status != PLUMB_OK && err != NULL)
        snprintf(err->file, sizeof err->file, "%s: %s", name_of(run).s, what);
    return status;
}

static int64_t count_words(const char *const *words) {
    int64_t n = 0;
    while (words[n] != NULL) n++;
    return n;
}

static plumb_status start(const cli_bench_side *side, const workplace *w, int run,
                          plumb_error *err) {
    int64_t before = count_words(side->before), after = count_words(side->after);
    const char *given[GIVEN_WORDS] = {"--csv", w->csv};
    const char **words = calloc((size_t)(before + GIVEN_WORDS + after + 1), sizeof *words);
    if (words == NULL) return plumb__fail_memory(err, "a command line", sizeof *words);
    memcpy(words, side->before, (size_t)before * sizeof *words);
    memcpy(words + before, given, sizeof given);
    memcpy(words + before + GIVEN_WORDS, side->after, (size_t)after * sizeof *words);
    plumb_status status =
        cli_child_run(name_of(run).s, words, CLI_BENCH_DUMP_VARIABLE, w->dump, err);
    free(words);
    return status;
}

static int64_t count_contexts(const cli_bench_table *table) {
    int64_t n = 0;
    for (double context = -1; cli_bench_next_context(table, &context);) n++;
    return n;
}

/* Ratios of some contexts only would look like the whole. */
static plumb_status check_contexts(const cli_bench_table *first, const cli_bench_table *table,
                                   plumb_error *err) {
    double a = -1, b = -1;
    bool in_a, in_b;
    do {
        in_a = cli_bench_next_context(first, &a);
        in_b = cli_bench_next_context(table, &b);
    } while (in_a && in_b && a == b);
    if (!in_a && !in_b) return PLUMB_OK;
    plumb__text192 found = in_b && (!in_a || b < a) ? plumb__format("%.17g", b)
                                                    : plumb__format("none of %.17g", a);
    return plumb__fail(err, PLUMB_ERROR_FORMAT, NULL, "contexts", -1, found.s,
                       "the %lld of run 1 (A)", (long long)count_contexts(first));
}

/* A run without generated tokens has an empty dump, which is equal to an empty one only. */
static plumb_status compare_dumps(const workplace *w, int64_t vocab, cli_bench_bits *bits,
                                  plumb_error *err) {
    struct stat first, other;
    if (stat(w->first_dump, &first) != 0 || stat(w->dump, &other) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, NULL, -1, strerror(errno),
                           "a file of that name");
    if (first.st_size == 0 || other.st_size == 0) {
        bits->differ = first.st_size != other.st_size;
        snprintf(bits->words, sizeof bits->words, "%lld bytes and %lld bytes",
                 (long long)first.st_size, (long long)other.st_size);
        return PLUMB_OK;
    }
    cli_comparison comparison;
    plumb_status status = cli_comparison_open(w->first_dump, w->dump, &comparison, err);
    if (status == PLUMB_OK) status = cli_comparison_run(&comparison, vocab, err);
    if (status == PLUMB_OK) {
        const cli_dump_pair *pair = &comparison.pairs[0];
        bits->rows = comparison.total.rows;
        bits->differ = comparison.total.differing > 0 || comparison.lengths_differ;
        if (comparison.total.differing > 0)
            cli_comparison_first(&comparison, bits->words, sizeof bits->words);
        else if (comparison.lengths_differ)
            snprintf(bits->words, sizeof bits->words, "%lld rows and %lld rows",
                     (long long)pair->rows_a, (long long)pair->rows_b);
    }
    cli_comparison_free(&comparison);
    return status;
}

static plumb_status take_dump(const cli_bench_pairs *p, const workplace *w, int run,
                              plumb_error *err) {
    if (run == 0 && rename(w->dump, w->first_dump) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, NULL, -1, strerror(errno),
                           "a file of that name");
    if (run == 0) return PLUMB_OK;
    plumb_status status = compare_dumps(w, p->vocab, &p->bits[run], err);
    unlink(w->dump);
    return status;
}

static plumb_status make_run(cli_bench_pairs *p, const workplace *w, int run, plumb_error *err) {
    if (p->begin != NULL) p->begin(p->user, run);
    plumb_status status = start(cli_bench_run_is_a(run) ? &p->a : &p->b, w, run, err);
    if (status != PLUMB_OK) return status;
    cli_bench_table *table = &p->tables[run];
    status = cli_bench_table_read(w->csv, table, err);
    unlink(w->csv);
    if (status == PLUMB_OK) status = check_contexts(&p->tables[0], table, err);
    if (status != PLUMB_OK) return in_run(status, run, "its --csv", err);
    status = take_dump(p, w, run, err);
    /* What is wrong with the first dump is found when another one is compared with it. */
    bool in_first = status != PLUMB_OK && err != NULL && strcmp(err->file, w->first_dump) == 0;
    return in_run(status, in_first ? 0 : run, "its " CLI_BENCH_DUMP_VARIABLE, err);
}

/* ---- All runs ---- */

plumb_status cli_bench_pairs_run(cli_bench_pairs *pairs, plumb_error *err) {
    workplace w = {.folder = ""};
    pairs->tables = calloc((size_t)pairs->n_runs, sizeof *pairs->tables);
    pairs->bits = calloc((size_t)pairs->n_runs, sizeof *pairs->bits);
    if (pairs->tables == NULL || pairs->bits == NULL)
        return plumb__fail_memory(err, "runs", (size_t)pairs->n_runs * sizeof *pairs->bits);
    plumb_status status = make_workplace(&w, pairs->folder, err);
    for (int run = 0; run < pairs->n_runs && status == PLUMB_OK; run++)
        status = make_run(pairs, &w, run, err);
    remove_workplace(&w);
    return status;
}

void cli_bench_pairs_free(cli_bench_pairs *pairs) {
    for (int i = 0; pairs->tables != NULL && i < pairs->n_runs; i++)
        cli_bench_table_free(&pairs->tables[i]);
    free(pairs->tables);
    free(pairs->bits);
    pairs->tables = NULL;
    pairs->bits = NULL;
}

bool cli_bench_pairs_ratios(const cli_bench_pairs *pairs, double context, bool decode,
                            double *ratios) {
    for (int k = 0; k < pairs->n_runs / 2; k++) {
        double speed[2];
        for (int i = 0; i < 2; i++)
            speed[i] = cli_bench_speed(&pairs->tables[2 * k + i], context, decode);
        if (!(speed[0] > 0 && speed[1] > 0)) return false;
        ratios[k] = cli_bench_run_is_a(2 * k) ? speed[0] / speed[1] : speed[1] / speed[0];
    }
    return true;
}
