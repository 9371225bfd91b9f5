/* plumb COMMAND: finds the command, parses its options, runs it, turns the outcome into an exit
 * status.  The only place that ends the process. */
#include "cli/help.h"
#include "cli/output.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int run(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: plumb COMMAND [options]; `plumb --help` lists the commands\n");
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0) name = "version";
    const cli_command *command = cli_command_find(name);
    if (command == NULL) {
        const cli_command *nearest = cli_command_nearest(name);
        fprintf(stderr, "plumb: unknown command '%s'", name);
        if (nearest != NULL) fprintf(stderr, "; did you mean '%s'?", nearest->name);
        fprintf(stderr, "\n");
        return CLI_USAGE;
    }
    cli_options options;
    char message[256];
    int status =
        (int)cli_options_parse(command, argc - 2, argv + 2, &options, message, sizeof message);
    if (status != CLI_OK) {
        cli_complain(&options, "%s", message);
        fprintf(stderr, "`plumb %s --help` lists the options\n", command->name);
    } else if (options.help) {
        cli_help_command(command);
    } else {
        status = command->run(&options);
    }
    cli_options_free(&options);
    return status;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, see output.h */
    return cli_output_finish(run(argc, argv));
}
