/* plumb COMMAND: finds the command, parses its options, runs it, turns the outcome into an exit
 * status.  The only place that ends the process. */
#include "cli/help.h"
#include "cli/output.h"

#include <fcntl.h>
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
        if (nearest != NULL)
            cli_complain(NULL, "unknown command '%s'; did you mean '%s'?", name, nearest->name);
        else
            cli_complain(NULL, "unknown command '%s'", name);
        return CLI_USAGE;
    }
    cli_options options;
    char message[256];
    int status =
        (int)cli_options_parse(command, argc - 2, argv + 2, &options, message, sizeof message);
    if (status != CLI_OK) {
        cli_complain(&options, "%s", message);
        if (status == CLI_USAGE)
            fprintf(stderr, "`plumb %s --help` lists the options\n", command->name);
    } else if (options.help) {
        cli_help_command(command);
    } else {
        status = command->run(&options);
    }
    cli_options_free(&options);
    return status;
}

/* A standard stream that the caller closed would give its number to the next file opened, and a
 * weight shard would be read as a prompt.  Its stand-in keeps the number and behaves as closed:
 * input has ended, output takes nothing. */
static bool hold_standard_streams(void) {
    static const int mode[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd) return false;
    return true;
}

int main(int argc, char **argv) {
    if (!hold_standard_streams()) return CLI_FAILED;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, see output.h */
    signal(SIGXFSZ, SIG_IGN); /* so is a file as large as the limit allows: EFBIG */
    return cli_output_finish(run(argc, argv));
}
