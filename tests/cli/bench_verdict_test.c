/* Verdicts on pairs of runs, by hand calculations. */
#include "t.h"

#include "cli/bench_verdict.h"
#include "cli/options.h"

#include <math.h>
#include <stdlib.h>

const cli_command cli_commands[] = {{.bit = CLI_BENCH, .name = "bench"}};
const int cli_n_commands = 1;

static void verdicts(void) {
    static const struct {
        int pairs;
        double ratios[16], median, least, most;
        cli_bench_outcome outcome; /* at 3 % */
    } rows[] = {
        {4, {1, 1, 1, 1}, 1, 1, 1, CLI_BENCH_SAME},
        {4, {0.90, 0.95, 0.94, 0.96}, 0.945, 0.90, 0.96, CLI_BENCH_SLOWER},
        /* One pair that is no slower: noise. */
        {4, {0.90, 0.95, 0.94, 0.98}, 0.945, 0.90, 0.98, CLI_BENCH_NOISE},
        /* Half of them far below, but the median is not. */
        {4, {0.5, 0.5, 1.5, 1.5}, 1, 0.5, 1.5, CLI_BENCH_SAME},
        {4, {0.97, 0.97, 0.97, 0.97}, 0.97, 0.97, 0.97, CLI_BENCH_SAME},
        {3, {1.2, 1.04, 1.1}, 1.1, 1.04, 1.2, CLI_BENCH_FASTER},
        {3, {1.2, 1.02, 1.1}, 1.1, 1.02, 1.2, CLI_BENCH_NOISE},
        {2, {0.5, 0.9}, 0.7, 0.5, 0.9, CLI_BENCH_SLOWER},
        {1, {0.96}, 0.96, 0.96, 0.96, CLI_BENCH_SLOWER},
        /* One of eight may stand out, two may not. */
        {8, {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.3}, 0.9, 0.9, 1.3, CLI_BENCH_SLOWER},
        {8, {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.2, 1.3}, 0.9, 0.9, 1.3, CLI_BENCH_NOISE},
        {7, {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 1.3}, 0.9, 0.9, 1.3, CLI_BENCH_NOISE},
        {8, {1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 0.5}, 1.1, 0.5, 1.1, CLI_BENCH_FASTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double ratios[16];
        memcpy(ratios, rows[i].ratios, sizeof ratios);
        cli_bench_verdict v = cli_bench_judge(ratios, rows[i].pairs, 0.03);
        T_CHECK(v.outcome == rows[i].outcome, "row %zu: %s", i, cli_bench_outcome_words(v.outcome));
        T_CHECK(fabs(v.median - rows[i].median) < 1e-12, "row %zu: %g", i, v.median);
        T_CHECK(v.least == rows[i].least && v.most == rows[i].most && v.pairs == rows[i].pairs,
                "row %zu", i);
    }
    double even[] = {1, 0.999};
    T_CHECK(cli_bench_judge(even, 2, 0).outcome == CLI_BENCH_NOISE, "no threshold");
}

static void order(void) {
    static const char turns[] = "ABBAABBAABBA";
    for (int i = 0; i < 12; i++)
        T_CHECK(cli_bench_run_is_a(i) == (turns[i] == 'A'), "run %d", i);
    for (int k = 0; k < 6; k++)
        T_CHECK(cli_bench_run_is_a(2 * k) != cli_bench_run_is_a(2 * k + 1), "pair %d", k);
}

static cli_bench_record record(double context, double prefill, double gen, double steady_tokens,
                               double steady) {
    return (cli_bench_record){.value = {[CLI_BENCH_CTX_TOKENS] = context,
                                        [CLI_BENCH_PREFILL_TPS] = prefill,
                                        [CLI_BENCH_GEN_TPS] = gen,
                                        [CLI_BENCH_STEADY_TOKENS] = steady_tokens,
                                        [CLI_BENCH_STEADY_TPS] = steady}};
}

static void speeds(void) {
    cli_bench_record records[] = {
        record(4096, 90, 9, 127, 9.5), record(2048, 100, 10, 127, 12), record(2048, 130, 11, 127, 10),
        record(2048, 110, 12, 127, 13), record(8192, 80, 8, 0, 0), record(512, 50, 5, -1, -1),
    };
    cli_bench_table run = {.records = records, .n_records = 6};
    static const double contexts[] = {512, 2048, 4096, 8192};
    double context = -1;
    for (int i = 0; i < 4; i++)
        T_CHECK(cli_bench_next_context(&run, &context) && context == contexts[i], "%g", context);
    T_CHECK(!cli_bench_next_context(&run, &context) && context == 8192.0, "the last");
    T_CHECK(cli_bench_speed(&run, 2048, false) == 110.0, "prefill");
    T_CHECK(cli_bench_speed(&run, 2048, true) == 12.0, "decode");
    /* Without steady tokens, or columns that tell of them, all generated ones count. */
    T_CHECK(cli_bench_speed(&run, 8192, true) == 8.0, "no steady tokens");
    T_CHECK(cli_bench_speed(&run, 512, true) == 5.0, "no such columns");
    T_CHECK(cli_bench_speed(&run, 1024, true) <= 0, "no such context");
    records[1].value[CLI_BENCH_CTX_TOKENS] = 2047; /* two are left: their mean */
    T_CHECK(cli_bench_speed(&run, 2048, false) == 120.0, "an even number");
}

T_MAIN({"verdicts", verdicts}, {"order", order}, {"speeds", speeds})
