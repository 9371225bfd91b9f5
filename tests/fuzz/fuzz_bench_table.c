/* The CSV of a benchmark, and the picture of what could be read. */
#include "cli/bench_svg.h"
#include "cli/options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const cli_command cli_commands[] = {{.bit = CLI_BENCH, .name = "bench"}};
const int cli_n_commands = 1;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    FILE *out = fopen("/dev/null", "w");
    if (text == NULL || out == NULL) abort();
    memcpy(text, data, size);
    text[size] = '\0';
    cli_bench_table table;
    cli_bench_plot plot;
    plumb_error err;
    if (cli_bench_table_parse(text, (int64_t)size, "file.csv", &table, &err) != PLUMB_OK) {
        if (!err.found[0] || !err.expected[0]) abort();
    } else {
        if (cli_bench_plot_make(&table, 1, &plot, NULL) == PLUMB_OK && !cli_bench_svg(&plot, out)) abort();
        cli_bench_plot_free(&plot);
    }
    cli_bench_table_free(&table);
    fclose(out);
    free(text);
    return 0;
}
