/* Values as people write them: sizes of memory, numbers of experts; and the words of a line. */
#include "t.h"

#include "cli/options.c"

const cli_command cli_commands[] = {{.bit = CLI_CHAT, .name = "chat"}};
const int cli_n_commands = 1;

static void sizes(void) {
    static const struct {
        const char *text;
        int64_t bytes; /* 0: refused */
    } rows[] = {
        {"12GB", INT64_C(12000000000)},
        {"12.5GB", INT64_C(12500000000)},
        {"0.000000001GB", 1},
        {"012GB", INT64_C(12000000000)},
        {"9223372036.854775807GB", INT64_MAX},
        {"9223372036.854775808GB", 0},
        {"9223372037GB", 0},
        {"99999999999999999999999GB", 0},
        {"1.0000000000GB", 0}, /* less than a byte */
        {"0GB", 0},
        {"0.0GB", 0},
        {"12.GB", 0},
        {".5GB", 0},
        {"GB", 0},
        {"12gb", 0},
        {"12 GB", 0},
        {"12GiB", 0},
        {"12GBs", 0},
        {"-12GB", 0},
        {"+12GB", 0},
        {"1e3GB", 0},
        {"12.5", 0},
        {"", 0},
        {"12000000000", INT64_C(12000000000)},
        {"1", 1},
        {"0", 0},
        {"-1", 0},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t bytes = -1;
        bool taken = cli_parse_bytes(rows[i].text, &bytes);
        T_CHECK(taken == (rows[i].bytes > 0), "'%s'", rows[i].text);
        T_CHECK(bytes == (taken ? rows[i].bytes : -1), "'%s': %" PRId64, rows[i].text, bytes);
    }
}

static void experts(void) {
    static const struct {
        const char *text;
        bool taken;
        int64_t count, bytes;
    } rows[] = {
        {"240", true, 240, 0},
        {"1", true, 1, 0},
        {"4GB", true, 0, INT64_C(4000000000)},
        {"0.5GB", true, 0, 500000000},
        {"0", false, 0, 0},
        {"0GB", false, 0, 0},
        {"2.5", false, 0, 0},
        {"all", false, 0, 0},
        {"", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_experts found = {.given = false, .count = 0, .bytes = 0};
        bool taken = cli_parse_experts(rows[i].text, &found);
        T_CHECK(taken == rows[i].taken && found.given == taken, "'%s'", rows[i].text);
        T_CHECK(found.count == rows[i].count && found.bytes == rows[i].bytes,
                "'%s': %" PRId64 ", %" PRId64, rows[i].text, found.count, found.bytes);
    }
}

/* A line goes on to another process without some of its options, however they are written. */
static void words_without(void) {
    static const struct {
        const char *line, *left;
    } rows[] = {
        {"-p text --seed 3 -n 4 -q", "-p text -q"},
        {"-p text --seed=3 --tokens=4 -q", "-p text -q"},
        {"-n 4", ""},
        {"-p --seed -n 4", "-p --seed"}, /* a value that looks like an option */
        {"--quiet --seed 3 --temp 1", "--quiet --temp 1"},
        {"-p -n --seed 3", "-p -n"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[128], message[256], left[128] = "";
        char *words[16];
        const char *kept[17];
        int n = 0;
        snprintf(line, sizeof line, "%s", rows[i].line);
        for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) words[n++] = word;
        cli_options options;
        cli_exit status =
            cli_options_parse(&cli_commands[0], n, words, &options, message, sizeof message);
        T_CHECK(status == CLI_OK, "row %zu: %s", i, message);
        cli_options_without(&options, "seed tokens", kept);
        for (int k = 0; kept[k] != NULL; k++)
            snprintf(left + strlen(left), sizeof left - strlen(left), "%s%s", k > 0 ? " " : "", kept[k]);
        T_CHECK(strcmp(left, rows[i].left) == 0, "row %zu: %s", i, left);
        cli_options_free(&options);
    }
}

T_MAIN({"sizes", sizes}, {"experts", experts}, {"words_without", words_without})
