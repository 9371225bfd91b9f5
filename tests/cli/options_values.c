/* Sizes of memory as people write them. */
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

T_MAIN({"sizes", sizes}, {"experts", experts})
