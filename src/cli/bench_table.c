/* Reading benchmarks; see bench_table.h.  Cells are plain numbers: no quotes, no spaces. */
#include "cli/bench_table.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

enum { NOWHERE = -1, CELL_SIZE = 64 };
static const double least_value = 1e-9, most_value = 1e18; /* where an axis can be drawn */

static const char *const names[CLI_BENCH_COLUMNS] = {
    [CLI_BENCH_CTX_TOKENS] = "ctx_tokens",
    [CLI_BENCH_PREFILL_TPS] = "prefill_tps",
    [CLI_BENCH_GEN_TPS] = "gen_tps",
    [CLI_BENCH_STEADY_TOKENS] = "gen_steady_tokens",
    [CLI_BENCH_STEADY_TPS] = "gen_steady_tps",
    [CLI_BENCH_KVCACHE_BYTES] = "kvcache_bytes",
    [CLI_BENCH_HIT_RATE] = "hit_rate",
    [CLI_BENCH_PEAK_RSS_BYTES] = "peak_rss_bytes",
};

typedef struct reader {
    cli_bench_table *table;
    const char *at;                  /* what is not read yet; NUL after the end */
    int64_t line;                    /* from 1 */
    int64_t cells;                   /* of the header */
    int64_t place[CLI_BENCH_COLUMNS]; /* cell of each column, or NOWHERE */
} reader;

const char *cli_bench_column_name(cli_bench_column column) {
    return names[column];
}

/* ---- Lines and cells ---- */

/* The next line that is not empty, without its end; false after the last one. */
static bool next_line(reader *r, const char **line, size_t *size) {
    while (*r->at != '\0') {
        *line = r->at;
        *size = strcspn(r->at, "\n");
        r->at += *size + (r->at[*size] == '\n');
        r->line++;
        if (*size > 0 && (*line)[*size - 1] == '\r') --*size;
        if (*size > 0) return true;
    }
    return false;
}

/* Takes a cell off the front of a line.  Cut where it is longer than any cell that is good for
 * anything. */
static void take_cell(const char **line, size_t *size, char cell[CELL_SIZE]) {
    const char *comma = memchr(*line, ',', *size);
    size_t length = comma != NULL ? (size_t)(comma - *line) : *size;
    size_t kept = length < CELL_SIZE ? length : CELL_SIZE - 1;
    memcpy(cell, *line, kept);
    cell[kept] = '\0';
    size_t taken = length + (comma != NULL);
    *line += taken;
    *size -= taken;
}

static int64_t count_cells(const char *line, size_t size) {
    int64_t cells = 1;
    for (size_t i = 0; i < size; i++) cells += line[i] == ',';
    return cells;
}

static plumb_status fail_line(const reader *r, const char *found, const char *expected,
                              plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, r->table->path,
                       plumb__format("line %lld", (long long)r->line).s, -1, found, "%s", expected);
}

static plumb_status fail_cell(const reader *r, int column, const char *found, const char *expected,
                              plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, r->table->path,
                       plumb__format("line %lld, column %s", (long long)r->line, names[column]).s,
                       -1, found, "%s", expected);
}

/* ---- The header and the rows ---- */

static plumb_status read_header(reader *r, plumb_error *err) {
    const char *line;
    size_t size;
    for (int c = 0; c < CLI_BENCH_COLUMNS; c++) r->place[c] = NOWHERE;
    if (!next_line(r, &line, &size))
        return plumb__fail(err, PLUMB_ERROR_FORMAT, r->table->path, NULL, -1, "an empty file",
                           "the CSV of a benchmark");
    r->cells = count_cells(line, size);
    for (int64_t i = 0; i < r->cells; i++) {
        char cell[CELL_SIZE];
        take_cell(&line, &size, cell);
        for (int c = 0; c < CLI_BENCH_COLUMNS; c++) {
            if (strcmp(cell, names[c]) != 0) continue;
            if (r->place[c] != NOWHERE)
                return fail_cell(r, c, "it twice", "each column once", err);
            r->place[c] = i;
        }
    }
    for (int c = 0; c < CLI_BENCH_REQUIRED; c++)
        if (r->place[c] == NOWHERE)
            return fail_cell(r, c, "no such column", "the header of a benchmark", err);
    return PLUMB_OK;
}

static plumb_status read_row(reader *r, const char *line, size_t size, cli_bench_record *record,
                             plumb_error *err) {
    for (int c = 0; c < CLI_BENCH_COLUMNS; c++) record->value[c] = -1;
    int64_t cells = count_cells(line, size);
    if (cells != r->cells)
        return fail_line(r, plumb__format("%lld cells", (long long)cells).s,
                         plumb__format("%lld, as in the header", (long long)r->cells).s, err);
    for (int64_t i = 0; i < cells; i++) {
        char cell[CELL_SIZE];
        take_cell(&line, &size, cell);
        for (int c = 0; c < CLI_BENCH_COLUMNS; c++) {
            if (r->place[c] != i || (cell[0] == '\0' && c >= CLI_BENCH_REQUIRED)) continue;
            double value;
            if (!cli_parse_number(cell, 0, most_value, &value) || (value > 0 && value < least_value))
                return fail_cell(r, c, plumb__format("'%s'", cell).s,
                                 "a number: 0, or from 1e-9 to 1e18", err);
            record->value[c] = value;
        }
    }
    return PLUMB_OK;
}

static plumb_status read_rows(reader *r, plumb_error *err) {
    cli_bench_table *t = r->table;
    const char *line;
    size_t size;
    while (next_line(r, &line, &size)) {
        if (t->n_records == CLI_BENCH_MOST_ROWS)
            return fail_line(r, "one more row", plumb__format("at most %d", CLI_BENCH_MOST_ROWS).s,
                             err);
        cli_bench_record *grown =
            plumb__grow(t->records, &t->room, t->n_records + 1, sizeof *grown);
        if (grown == NULL) return plumb__fail_memory(err, t->path, sizeof *grown);
        t->records = grown;
        plumb_status status = read_row(r, line, size, &grown[t->n_records], err);
        if (status != PLUMB_OK) return status;
        t->n_records++;
    }
    if (t->n_records > 0) return PLUMB_OK;
    return fail_line(r, "the end of the file", "a row after the header", err);
}

plumb_status cli_bench_table_parse(const char *text, int64_t size, const char *path,
                                   cli_bench_table *table, plumb_error *err) {
    static const char byte_order_mark[] = "\xEF\xBB\xBF"; /* spreadsheets write one */
    *table = (cli_bench_table){.path = strdup(path)};
    if (table->path == NULL) return plumb__fail_memory(err, path, strlen(path) + 1);
    if (strlen(text) != (size_t)size)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "byte", (int64_t)strlen(text),
                           "a zero byte", "text");
    size_t mark = strncmp(text, byte_order_mark, 3) == 0 ? 3 : 0;
    reader r = {.table = table, .at = text + mark};
    plumb_status status = read_header(&r, err);
    return status == PLUMB_OK ? read_rows(&r, err) : status;
}

plumb_status cli_bench_table_read(const char *path, cli_bench_table *table, plumb_error *err) {
    *table = (cli_bench_table){0};
    char *text = NULL;
    int64_t size = 0;
    plumb_status status = plumb__file_load(path, CLI_BENCH_MOST_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = cli_bench_table_parse(text, size, path, table, err);
    free(text);
    return status;
}

void cli_bench_table_free(cli_bench_table *table) {
    free(table->path);
    free(table->records);
    *table = (cli_bench_table){0};
}

double cli_bench_decode_tps(const cli_bench_record *record) {
    bool steady = record->value[CLI_BENCH_STEADY_TPS] >= 0 &&
                  record->value[CLI_BENCH_STEADY_TOKENS] > 0;
    return record->value[steady ? CLI_BENCH_STEADY_TPS : CLI_BENCH_GEN_TPS];
}
