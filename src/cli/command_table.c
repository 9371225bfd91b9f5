/* The one table of commands.  Order here is the order of `plumb --help`. */
#include "cli/commands.h"

const cli_command cli_commands[] = {
    {CLI_TOKENIZE, "tokenize", "text to token ids and back", "[TEXT | ID...]", 0, CLI_ANY_NUMBER,
     "Prints the ids of TEXT, or with --decode the text of the IDs. Nothing is added: no "
     "begin-of-sentence token, no chat format. The model may also be a tokenizer.json.",
     cli_run_tokenize},
    {CLI_INSPECT, "inspect", "show what a model is made of", "[MODEL]", 0, 1,
     "Prints the configuration, which layers share what, and the tensors and bytes of each part, "
     "without reading any weights. MODEL is what -m takes.",
     cli_run_inspect},
    {CLI_SYNTH, "synth", "write a synthetic model", "VARIANT DIR", 2, 2,
     "Writes random weights in the released layout, byte for byte the same on every machine. "
     "VARIANT is one of\n\n"
     "  tiny     6 layers that meet every kind of layer, 2 MB\n"
     "  deep40   the released topology with narrow layers, 15 MB\n"
     "  dspark   tiny with draft stages\n"
     "  vision   tiny with an image tower\n"
     "  release  the released geometry, 510 GB (--sparse: 3 GB)\n\n"
     "DIR must be empty or absent. Nothing in it opens as a model before everything is written; "
     "Ctrl-C removes what there is.",
     cli_run_synth},
    {CLI_COMPLETION, "completion", "print shell completions", "bash|zsh", 1, 1,
     "Prints a script for the shell:\n\n  source <(plumb completion bash)", cli_run_completion},
    {CLI_HELP, "help", "show help for a command", "[COMMAND]", 0, 1, "", cli_run_help},
    {CLI_VERSION, "version", "print the version", "", 0, 0, "", cli_run_version},
};

const int cli_n_commands = (int)(sizeof cli_commands / sizeof cli_commands[0]);
