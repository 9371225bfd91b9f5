/* Out of memory while options are parsed: the line given is not at fault.  The parser is compiled
 * in here over an allocator that fails on demand. */
#include "t.h"

#include <stdbool.h>
#include <stdlib.h>

static int allocations_left;

static bool has_memory(void) {
    return allocations_left > 0 && allocations_left-- > 0;
}

static void *scarce_calloc(size_t count, size_t size) {
    return has_memory() ? calloc(count, size) : NULL;
}

static void *scarce_realloc(void *block, size_t size) {
    return has_memory() ? realloc(block, size) : NULL;
}

#define calloc scarce_calloc
#define realloc scarce_realloc
#include "cli/options.c"

const cli_command cli_commands[] = {{.bit = CLI_CHAT, .name = "chat"}};
const int cli_n_commands = 1;

static void test_every_allocation(void) {
    static const struct {
        int allocations;
        cli_exit status;
    } cases[] = {{0, CLI_FAILED}, {1, CLI_FAILED}, {2, CLI_FAILED}, {3, CLI_OK}};
    char *argv[] = {"--logit-bias", "1=2", "--logit-bias", "3=4"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cli_options options;
        char message[256] = "";
        allocations_left = cases[i].allocations;
        cli_exit status =
            cli_options_parse(&cli_commands[0], 4, argv, &options, message, sizeof message);
        T_CHECK(status == cases[i].status, "with %d: %d", cases[i].allocations, (int)status);
        T_CHECK(strcmp(message, status == CLI_OK ? "" : "no memory for the options") == 0,
                "with %d: %s", cases[i].allocations, message);
        cli_options_free(&options);
    }
}

T_MAIN({"every_allocation", test_every_allocation})
