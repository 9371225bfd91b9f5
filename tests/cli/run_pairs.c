/* Runs two shell command lines in turns, as `plumb bench --vs` does, and prints what became of it, for
 * bench_pairs.py: run_pairs RUNS THRESHOLD VOCAB FOLDER A B. */
#include "cli/bench_pairs.h"
#include "cli/bench_verdict.h"
#include "cli/interrupt.h"
#include "cli/options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

const cli_command cli_commands[] = {{.bit = CLI_BENCH, .name = "bench"}};
const int cli_n_commands = 1;

static void print_results(const cli_bench_pairs *p, double threshold) {
    double ratios[64];
    for (double context = -1; cli_bench_next_context(&p->tables[0], &context);) {
        for (int decode = 0; decode < 2; decode++) {
            if (!cli_bench_pairs_ratios(p, context, decode != 0, ratios)) continue;
            printf("%g %s", context, decode ? "decode" : "prefill");
            for (int k = 0; k < p->n_runs / 2; k++) printf(" %.6f", ratios[k]);
            cli_bench_verdict v = cli_bench_judge(ratios, p->n_runs / 2, threshold);
            printf(": %.6f %s\n", v.median, cli_bench_outcome_words(v.outcome));
        }
    }
    for (int run = 1; run < p->n_runs; run++)
        if (p->bits[run].differ) printf("run %d differs: %s\n", run + 1, p->bits[run].words);
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    const char *none[] = {NULL};
    char line[2][1024];
    for (int i = 0; i < 2; i++) snprintf(line[i], sizeof line[i], "%s \"$@\"", argv[5 + i]);
    const char *a[] = {"/bin/sh", "-c", line[0], "sh", NULL}, *b[] = {"/bin/sh", "-c", line[1], "sh", NULL};
    cli_bench_pairs pairs = {.a = {.before = a, .after = none},
                             .b = {.before = b, .after = none},
                             .n_runs = atoi(argv[1]),
                             .vocab = atoi(argv[3]),
                             .folder = argv[4]};
    plumb_error err;
    signal(SIGPIPE, SIG_IGN);
    if (cli_interrupt_catch(&err) != PLUMB_OK) return 2;
    plumb_status status = cli_bench_pairs_run(&pairs, &err);
    int result = 0;
    if (status == PLUMB_ERROR_CANCELLED) {
        result = 130;
    } else if (status != PLUMB_OK) {
        char words[1024];
        plumb_error_line(&err, words, sizeof words);
        fprintf(stderr, "%s\n", words);
        result = 1;
    } else {
        print_results(&pairs, atof(argv[2]));
    }
    cli_bench_pairs_free(&pairs);
    return result;
}
