#include "cli/prompt.h"

#include "base/error.h"
#include "cli/files.h"

#include <stdlib.h>
#include <string.h>

plumb_status cli_read_prompt(const cli_runtime *runtime, plumb_tokens *tokens, plumb_error *err) {
    const cli_options *options = runtime->options;
    char *bytes = NULL;
    size_t size = options->prompt != NULL ? strlen(options->prompt) : 0;
    plumb_status status = PLUMB_OK;
    if (options->prompt == NULL) status = cli_read_file(options->prompt_file, &bytes, &size, err);
    if (status != PLUMB_OK) return status;
    tokens->ids = malloc(sizeof *tokens->ids);
    if (tokens->ids == NULL) {
        free(bytes);
        return plumb__fail_memory(err, "prompt", sizeof *tokens->ids);
    }
    tokens->capacity = tokens->count = 1;
    tokens->ids[0] = (int32_t)runtime->info.bos_id;
    status = plumb_text_encode(runtime->text, bytes != NULL ? bytes : options->prompt, size, false,
                               tokens, err);
    status = cli_name_input(status, options->prompt == NULL ? options->prompt_file : NULL, err);
    free(bytes);
    return status;
}

plumb_status cli_read_ids(const cli_runtime *runtime, plumb_tokens *tokens, plumb_error *err) {
    const char *path = runtime->options->tokens_file;
    char *text = NULL;
    size_t size = 0;
    plumb_status status = cli_read_file(path, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = cli_parse_ids(text, size, cli_input_name(path), runtime->info.vocab_size, tokens, err);
    free(text);
    return status;
}
