#include "cli/bench_csv.h"

#include "base/error.h"
#include "cli/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const char cli_bench_header[] =
    "ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,gen_first_ms,gen_steady_tokens,"
    "gen_steady_tps,kvcache_bytes,hit_rate,bytes_read,miss_ms,engram_rows,peak_rss_bytes,"
    "prefill_seconds,gen_seconds,repeat";

static double rate(int64_t tokens, double seconds) {
    return seconds > 0 ? (double)tokens / seconds : 0;
}

void cli_bench_line(const cli_bench_row *row, char line[CLI_BENCH_LINE_SIZE]) {
    int64_t steady = row->gen_tokens > 1 ? row->gen_tokens - 1 : 0;
    int64_t asked = row->stream.hits + row->stream.misses;
    char hit_rate[32] = "";
    if (row->streaming && asked > 0)
        snprintf(hit_rate, sizeof hit_rate, "%.4f", (double)row->stream.hits / (double)asked);
    snprintf(line, CLI_BENCH_LINE_SIZE,
             "%" PRId64 ",%" PRId64 ",%.3f,%" PRId64 ",%.3f,%.3f,%" PRId64 ",%.3f,%" PRId64
             ",%s,%" PRId64 ",%.3f,%" PRId64 ",%" PRId64 ",%.6f,%.6f,%" PRId64,
             row->ctx_tokens, row->prefill_tokens, rate(row->prefill_tokens, row->prefill_seconds),
             row->gen_tokens, rate(row->gen_tokens, row->gen_seconds), row->gen_first_seconds * 1e3,
             steady, rate(steady, row->gen_seconds - row->gen_first_seconds), row->kvcache_bytes,
             hit_rate, row->stream.bytes_read, row->stream.wait_seconds * 1e3,
             row->stream.engram_rows, row->stream.peak_memory_bytes, row->prefill_seconds,
             row->gen_seconds, row->repeat);
}

static plumb_status put_line(cli_bench_csv *csv, const char *line, plumb_error *err) {
    if (csv->path == NULL) {
        cli_print("%s\n", line);
        if (cli_output_flush()) return PLUMB_OK;
        return plumb__fail(err, PLUMB_ERROR_IO, "standard output", NULL, -1, NULL, NULL);
    }
    int written = fprintf(csv->file.stream, "%s\n", line);
    if (written > 0) {
        csv->bytes += written;
        return PLUMB_OK;
    }
    plumb_status status = plumb__fail(err, PLUMB_ERROR_IO, csv->path, NULL, -1, strerror(errno),
                                      "a file that takes every byte");
    /* Half a line may be there, with numbers cut in two; the lines before it are worth keeping. */
    if (ftruncate(fileno(csv->file.stream), csv->bytes) != 0) csv->rows = 0;
    return status;
}

plumb_status cli_bench_csv_open(cli_bench_csv *csv, const char *path, plumb_error *err) {
    *csv = (cli_bench_csv){.path = path};
    plumb_status status = path != NULL ? cli_new_file_open(path, &csv->file, err) : PLUMB_OK;
    if (status != PLUMB_OK) return status;
    /* A row is in the file once it was printed, or is known not to be: nothing waits in between. */
    if (path != NULL) setvbuf(csv->file.stream, NULL, _IONBF, 0);
    return put_line(csv, cli_bench_header, err);
}

plumb_status cli_bench_csv_add(cli_bench_csv *csv, const cli_bench_row *row, plumb_error *err) {
    char line[CLI_BENCH_LINE_SIZE];
    cli_bench_line(row, line);
    plumb_status status = put_line(csv, line, err);
    if (status == PLUMB_OK) csv->rows++;
    return status;
}

plumb_status cli_bench_csv_close(cli_bench_csv *csv, plumb_error *err) {
    if (csv->path != NULL && csv->rows > 0) return cli_new_file_commit(&csv->file, err);
    cli_new_file_abandon(&csv->file);
    return PLUMB_OK;
}
