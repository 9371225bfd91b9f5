/* Parts of plumb bench that need no model: the walk, rows of CSV, the comparison of walks.  Expected
 * values are worked out by hand. */
#include "t.h"

#include "cli/bench_csv.h"
#include "cli/bench_logits.h"
#include "cli/bench_walk.h"

const cli_command cli_commands[] = {{.bit = CLI_BENCH, .name = "bench"}};
const int cli_n_commands = 1;

static void walk(void) {
    static const struct {
        int64_t start, most, increment;
        double multiplier;
        int64_t frontiers[8]; /* 0 ends them */
    } rows[] = {
        {2048, 4096, 2048, 1, {2048, 4096}},
        {2048, 8192, 2048, 1, {2048, 4096, 6144, 8192}},
        {100, 350, 100, 1, {100, 200, 300, 350}},
        {100, 301, 100, 1, {100, 200, 300, 301}},
        {100, 300, 16777216, 1, {100, 300}},
        {5, 5, 1, 1, {5}},
        {1, 3, 1, 1, {1, 2, 3}},
        /* 1.5, 3, 4.5, 7.5, 12: the increment is not used */
        {1, 10, 7, 1.5, {1, 2, 3, 5, 8, 10}},
        {1, 64, 1, 4, {1, 4, 16, 64}},
        {3, 9, 1, 1.0000000000000002, {3, 4, 5, 6, 7, 8, 9}},
        {16777215, 16777216, 1, 1e6, {16777215, 16777216}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_walk w = {rows[i].start, rows[i].most, rows[i].increment, rows[i].multiplier};
        int64_t at = 0;
        for (int j = 0; j == 0 || at > 0; j++) {
            at = cli_walk_next(&w, at);
            T_CHECK(at == rows[i].frontiers[j], "row %zu, frontier %d: %" PRId64, i, j, at);
            if (at != rows[i].frontiers[j]) break;
        }
    }
}

static void room(void) {
    static const struct {
        cli_walk_room room;
        int64_t end, frontier, generates;
    } rows[] = {
        {{.tokens = 5000, .context = 4096, .gen_tokens = 128, .from_sequence = false}, 5000, 2048, 128},
        {{.tokens = 5000, .context = 4096, .gen_tokens = 128, .from_sequence = true}, 4872, 3968, 128},
        {{.tokens = 5000, .context = 4096, .gen_tokens = 128, .from_sequence = true}, 4872, 3969, 127},
        {{.tokens = 100, .context = 4096, .gen_tokens = 128, .from_sequence = true}, -28, 4096, 0},
        {{.tokens = 100, .context = 50, .gen_tokens = 0, .from_sequence = true}, 100, 50, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        T_CHECK(cli_walk_tokens_end(&rows[i].room) == rows[i].end, "row %zu", i);
        T_CHECK(cli_walk_generates(&rows[i].room, rows[i].frontier) == rows[i].generates, "row %zu", i);
    }
}

static void csv(void) {
    static const struct {
        cli_bench_row row;
        const char *line;
    } rows[] = {
        {{.ctx_tokens = 4096, .prefill_tokens = 2048, .gen_tokens = 128, .prefill_seconds = 4,
          .gen_seconds = 16.5, .gen_first_seconds = 0.5, .kvcache_bytes = 12345, .streaming = true,
          .stream = {.hits = 2, .misses = 1, .bytes_read = 100, .wait_seconds = 0.25,
                     .engram_rows = 7, .peak_memory_bytes = 99},
          .repeat = 2},
         "4096,2048,512.000,128,7.758,500.000,127,7.938,12345,0.6667,100,250.000,7,99,4.000000,16.500000,2"},
        {{.ctx_tokens = 5, .prefill_tokens = 5, .gen_tokens = 1, .prefill_seconds = 0.5,
          .gen_seconds = 0.004, .gen_first_seconds = 0.004, .stream = {.hits = 1}, .repeat = 1},
         "5,5,10.000,1,250.000,4.000,0,0.000,0,,0,0.000,0,0,0.500000,0.004000,1"},
        {{.ctx_tokens = 5, .prefill_tokens = 5, .prefill_seconds = 0.5, .streaming = true, .repeat = 1},
         "5,5,10.000,0,0.000,0.000,0,0.000,0,,0,0.000,0,0,0.500000,0.000000,1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[CLI_BENCH_LINE_SIZE];
        cli_bench_line(&rows[i].row, line);
        T_CHECK(strcmp(line, rows[i].line) == 0, "%s", line);
    }
}

/* Two walks of two rows; one bit of each row of the second in turn is another. */
static void walks_that_differ(void) {
    for (int changed = 0; changed <= 2; changed++) {
        const cli_options options = {.repeat = 2};
        cli_bench_logits logits;
        plumb_error err = {0};
        float row[3] = {1, 2, 3}, other[3] = {1, 2, 3};
        plumb_status status = cli_bench_logits_open(&logits, &options, 3, &err);
        for (int repeat = 1; repeat <= 2 && status == PLUMB_OK; repeat++) {
            cli_bench_logits_begin_walk(&logits, repeat);
            other[2] = repeat == 2 && changed > 0 ? 3.0000002f : 3;
            status = cli_bench_logits_frontier(&logits, 7, changed == 1 ? other : row, &err);
            if (status == PLUMB_OK)
                status = cli_bench_logits_decode(&logits, 7, changed == 2 ? other : row, &err);
        }
        char line[512] = "";
        if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
        static const char *const said[] = {
            "", "logits at 6: found other bits in walk 2, expected those of the first",
            "logits at 7: found other bits in walk 2, expected those of the first"};
        T_CHECK(status == (changed > 0 ? PLUMB_ERROR_VALUE : PLUMB_OK), "%d", (int)status);
        T_CHECK(strcmp(line, said[changed]) == 0, "%s", line);
        cli_bench_logits_close(&logits);
    }
}

static void greedy(void) {
    static const struct {
        float row[5];
        int64_t excluded;
        int32_t token;
    } rows[] = {
        {{1, 2, 3, 2, 1}, 0, 2},    {{1, 2, 3, 2, 1}, 2, 1},   {{3, 2, 3, 2, 3}, 4, 0},
        {{3, 2, 3, 2, 3}, 0, 2},    {{3, 2, 1, 0, -1}, 0, 1},  {{-5, -4, -4, -3, -2}, 4, 3},
        {{-0.0f, 0, 0, 0, 0}, 1, 0}, {{1, 1, 1, 1, 2}, -1, 4}, {{0, 9, 0, 0, 0}, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int32_t token = cli_likeliest(rows[i].row, 5, rows[i].excluded);
        T_CHECK(token == rows[i].token, "row %zu: %" PRId32, i, token);
    }
}

static void limits(void) {
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } rows[] = {
        {"0", 0}, {"1073741824", 1073741824}, {"1.5GB", 1500000000}, {"unlimited", INT64_MAX},
        {"inf", INT64_MAX}, {"UNLIMITED", INT64_MAX}, {"infinite", -1}, {"-1", -1}, {"", -1}, {"1GiB", -1}, {"0GB", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = -1;
        T_CHECK(cli_parse_limit(rows[i].text, &bytes) == (rows[i].bytes >= 0), "'%s'", rows[i].text);
        T_CHECK(bytes == rows[i].bytes, "'%s': %" PRId64, rows[i].text, bytes);
    }
}

T_MAIN({"walk", walk}, {"room", room}, {"csv", csv}, {"walks_that_differ", walks_that_differ},
       {"greedy", greedy}, {"limits", limits})
