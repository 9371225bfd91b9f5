/* Help, manual pages and completions, printed from the tables of options.h. */
#ifndef PLUMB_CLI_HELP_H
#define PLUMB_CLI_HELP_H

#include "cli/options.h"

/* All commands, as `plumb --help` shows them, or one command; to standard output. */
void cli_help_overview(void);
void cli_help_command(const cli_command *command);

/* man(7) source: of plumb(1), or of plumb-NAME(1). */
void cli_man_overview(void);
void cli_man_command(const cli_command *command);

/* A completion script for bash; zsh loads the same one through its bash emulation. */
void cli_completion(bool zsh);

#endif
