/* One function per command; each is defined in the file of its name. */
#ifndef PLUMB_CLI_COMMANDS_H
#define PLUMB_CLI_COMMANDS_H

#include "cli/options.h"

int cli_run_chat(const cli_options *options);
int cli_run_complete(const cli_options *options);
int cli_run_serve(const cli_options *options);
int cli_run_logits(const cli_options *options);
int cli_run_tokenize(const cli_options *options);
int cli_run_inspect(const cli_options *options);
int cli_run_plan(const cli_options *options);
int cli_run_bench(const cli_options *options);
int cli_run_compare(const cli_options *options);
int cli_run_audit(const cli_options *options);
int cli_run_convert(const cli_options *options);
int cli_run_pack(const cli_options *options);
int cli_run_synth(const cli_options *options);
int cli_run_completion(const cli_options *options);
int cli_run_help(const cli_options *options);
int cli_run_version(const cli_options *options);

#endif
