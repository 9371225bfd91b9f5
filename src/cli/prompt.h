/* The tokens that a command was given, as text or as ids. */
#ifndef PLUMB_CLI_PROMPT_H
#define PLUMB_CLI_PROMPT_H

#include "cli/runtime.h"

/* The begin-of-sentence token and the text of --prompt or --prompt-file, without any chat format.
 * `tokens` is empty before; the runtime has its text handle. */
PLUMB_MUST_CHECK plumb_status cli_read_prompt(const cli_runtime *runtime, plumb_tokens *tokens,
                                              plumb_error *err);
/* The ids of --tokens-file, appended. */
PLUMB_MUST_CHECK plumb_status cli_read_ids(const cli_runtime *runtime, plumb_tokens *tokens,
                                           plumb_error *err);

#endif
