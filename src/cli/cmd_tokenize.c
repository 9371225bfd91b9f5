/* plumb tokenize: text to ids and back, with the tokenizer alone. */
#include "cli/commands.h"

#include "cli/files.h"
#include "cli/model_lookup.h"
#include "cli/output.h"
#include "cli/shown_text.h"

#include <stdlib.h>
#include <string.h>

static plumb_status encode(const cli_options *options, const plumb_text *text, const char *bytes,
                           size_t size, plumb_tokens *tokens, plumb_error *err) {
    plumb_status status = plumb_text_encode(text, bytes, size, options->added, tokens, err);
    status = cli_name_input(status, options->text_file, err);
    if (status != PLUMB_OK) return status;
    if (options->count) {
        cli_print("%lld\n", (long long)tokens->count);
        return PLUMB_OK;
    }
    for (int64_t i = 0; i < tokens->count; i++) cli_print("%s%d", i > 0 ? " " : "", tokens->ids[i]);
    cli_print("\n");
    return PLUMB_OK;
}

static plumb_status decode(const cli_options *options, const plumb_text *text, const char *bytes,
                           size_t size, plumb_tokens *tokens, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    int64_t vocab_size = plumb_text_vocab_size(text);
    if (bytes != NULL)
        status = cli_parse_ids(bytes, size, cli_input_name(options->text_file), vocab_size, tokens,
                               err);
    for (int i = 0; i < options->n_arguments && status == PLUMB_OK; i++)
        status = cli_parse_ids(options->arguments[i], strlen(options->arguments[i]), "", vocab_size,
                               tokens, err);
    if (status != PLUMB_OK) return status;
    cli_shown_text shown;
    cli_shown_text_open(&shown, text);
    for (int64_t i = 0; i < tokens->count; i++) cli_shown_token(&shown, tokens->ids[i]);
    cli_shown_text_finish(&shown);
    if (shown.terminal) cli_print("\n");
    cli_shown_text_close(&shown);
    return PLUMB_OK;
}

static plumb_status tokenize(const cli_options *options, plumb_text **text, char **bytes,
                             plumb_tokens *tokens, plumb_error *err) {
    char path[CLI_PATH_SIZE];
    size_t size = 0;
    plumb_status status = cli_find_model(options, path, err);
    if (status == PLUMB_OK) status = plumb_text_open(path, text, err);
    if (status == PLUMB_OK && options->text_file != NULL)
        status = cli_read_file(options->text_file, bytes, &size, err);
    if (status != PLUMB_OK) return status;
    if (options->decode) return decode(options, *text, *bytes, size, tokens, err);
    if (*bytes != NULL) return encode(options, *text, *bytes, size, tokens, err);
    return encode(options, *text, options->arguments[0], strlen(options->arguments[0]), tokens,
                  err);
}

int cli_run_tokenize(const cli_options *options) {
    if ((options->text_file != NULL) == (options->n_arguments > 0)) {
        cli_complain(options, "needs the text (or the ids) as an argument, or --file FILE");
        return CLI_USAGE;
    }
    if (!options->decode && options->n_arguments > 1) {
        cli_complain(options, "found %d texts, expected one: put it in quotes",
                     options->n_arguments);
        return CLI_USAGE;
    }
    plumb_text *text = NULL;
    char *bytes = NULL;
    plumb_tokens tokens = {0};
    plumb_error err = {0};
    int status = CLI_OK;
    if (tokenize(options, &text, &bytes, &tokens, &err) != PLUMB_OK)
        status = cli_report(options, &err);
    plumb_tokens_free(&tokens);
    free(bytes);
    plumb_text_close(text);
    return status;
}
