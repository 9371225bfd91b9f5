/* plumb help, plumb version, plumb completion: what plumb knows about itself. */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/output.h"

#include <string.h>

int cli_run_help(const cli_options *options) {
    if (options->n_arguments == 0) {
        if (options->man)
            cli_man_overview();
        else
            cli_help_overview();
        return CLI_OK;
    }
    const cli_command *command = cli_command_find(options->arguments[0]);
    if (command == NULL) {
        cli_complain(options, "unknown command '%s'", options->arguments[0]);
        return CLI_USAGE;
    }
    if (options->man)
        cli_man_command(command);
    else
        cli_help_command(command);
    return CLI_OK;
}

int cli_run_version(const cli_options *options) {
    (void)options;
    cli_print("plumb " PLUMB_VERSION ", arithmetic revision %d\n", PLUMB_ARITHMETIC_REVISION);
    return CLI_OK;
}

int cli_run_completion(const cli_options *options) {
    const char *shell = options->arguments[0];
    bool zsh = strcmp(shell, "zsh") == 0;
    if (!zsh && strcmp(shell, "bash") != 0) {
        cli_complain(options, "found '%s', expected bash or zsh", shell);
        return CLI_USAGE;
    }
    cli_completion(zsh);
    return CLI_OK;
}
