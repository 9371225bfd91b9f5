/* The one table of commands.  Order here is the order of `plumb --help`. */
#include "cli/commands.h"

const cli_command cli_commands[] = {
    {CLI_TOKENIZE, "tokenize", "text to token ids and back", "[TEXT | ID...]", 0, CLI_ANY_NUMBER,
     "Prints the ids of TEXT, or with --decode the text of the IDs. Nothing is added: no "
     "begin-of-sentence token, no chat format. The model may also be a tokenizer.json.",
     cli_run_tokenize},
    {CLI_COMPLETION, "completion", "print shell completions", "bash|zsh", 1, 1,
     "Prints a script for the shell:\n\n  source <(plumb completion bash)", cli_run_completion},
    {CLI_HELP, "help", "show help for a command", "[COMMAND]", 0, 1, "", cli_run_help},
    {CLI_VERSION, "version", "print the version", "", 0, 0, "", cli_run_version},
};

const int cli_n_commands = (int)(sizeof cli_commands / sizeof cli_commands[0]);
