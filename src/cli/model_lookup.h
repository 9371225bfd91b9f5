/* From what people write after -m to a folder (or file) that can be opened. */
#ifndef PLUMB_CLI_MODEL_LOOKUP_H
#define PLUMB_CLI_MODEL_LOOKUP_H

#include "cli/options.h"

enum { CLI_PATH_SIZE = 4096 };

/* In this order: no -m is the demo model, installed or in the source tree; an existing path is
 * itself; `org/name` is the snapshot that refs/main of the Hugging Face cache names.  Looks
 * only, opens nothing but refs/main. */
PLUMB_MUST_CHECK plumb_status cli_find_model(const cli_options *options, char path[CLI_PATH_SIZE],
                                             plumb_error *err);

/* How many tokens the model's vocabulary has: one number of each row of its logits.  Reads its config. */
PLUMB_MUST_CHECK plumb_status cli_find_vocabulary(const cli_options *options, int64_t *vocab,
                                                  plumb_error *err);

#endif
