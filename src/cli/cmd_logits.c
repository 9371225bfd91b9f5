/* plumb logits: token ids in, float32 logits out, with a hash that two machines can compare. */
#include "cli/commands.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/runtime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct rows {
    cli_new_file file;
    XXH3_state_t *hash;
    int64_t from, vocab_size;
    unsigned char *row; /* (vocab_size) little-endian float32 */
    int error;          /* errno of a failed write */
} rows;

static int on_row(void *user, int64_t position, const float *logits) {
    rows *r = user;
    if (position < r->from) return 0;
    for (int64_t i = 0; i < r->vocab_size; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        for (int b = 0; b < 4; b++) r->row[4 * i + b] = (unsigned char)(bits >> (8 * b));
    }
    size_t size = (size_t)r->vocab_size * 4;
    XXH3_64bits_update(r->hash, r->row, size);
    if (fwrite(r->row, 1, size, r->file.stream) == size) return 0;
    r->error = errno;
    return 1;
}

static plumb_status read_ids(const cli_runtime *runtime, plumb_tokens *tokens, plumb_error *err) {
    const cli_options *options = runtime->options;
    const char *name = cli_input_name(options->tokens_file);
    int64_t context = plumb_session_context(runtime->session);
    char *text = NULL;
    size_t size = 0;
    plumb_status status = cli_read_file(options->tokens_file, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = cli_parse_ids(text, size, name, runtime->info.vocab_size, tokens, err);
    free(text);
    if (status == PLUMB_OK && tokens->count <= options->from)
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, name, "token ids", -1,
                             plumb__format("%lld", (long long)tokens->count).s,
                             "more than --from %lld", (long long)options->from);
    if (status == PLUMB_OK && tokens->count > context)
        status = plumb__fail(err, PLUMB_ERROR_CONTEXT, name, "token ids", -1,
                             plumb__format("%lld", (long long)tokens->count).s,
                             "at most the context of %lld (-c sets it)", (long long)context);
    return status;
}

/* Tokens from the session's length up to `end` in one call. */
static plumb_status advance(cli_runtime *runtime, const plumb_tokens *tokens, int64_t end, rows *r,
                            plumb_error *err) {
    int64_t begin = plumb_session_length(runtime->session);
    const int32_t *ids = tokens->ids + begin;
    if (end <= begin) return PLUMB_OK;
    if (end <= r->from) return plumb_session_eval(runtime->session, ids, end - begin, NULL, err);
    return plumb_session_eval_all(runtime->session, ids, end - begin, on_row, r, err);
}

/* Positions before --decode-from at once, those whose logits nobody asked for without them; the others
 * one at a time. */
static plumb_status evaluate(cli_runtime *runtime, const plumb_tokens *tokens, rows *r,
                             plumb_error *err) {
    const cli_options *options = runtime->options;
    int64_t together = tokens->count;
    if (cli_option_given(options, "decode-from") && options->decode_from < together)
        together = options->decode_from;
    plumb_status status =
        advance(runtime, tokens, r->from < together ? r->from : together, r, err);
    if (status == PLUMB_OK) status = advance(runtime, tokens, together, r, err);
    for (int64_t i = together; i < tokens->count && status == PLUMB_OK; i++)
        status = advance(runtime, tokens, i + 1, r, err);
    if (r->error != 0)
        status = plumb__fail(err, PLUMB_ERROR_IO, options->out, NULL, -1, strerror(r->error),
                             "a file that takes every byte");
    return status;
}

static plumb_status write_logits(cli_runtime *runtime, plumb_tokens *tokens, rows *r,
                                 plumb_error *err) {
    const cli_options *options = runtime->options;
    r->from = options->from;
    r->vocab_size = runtime->info.vocab_size;
    plumb_status status = read_ids(runtime, tokens, err);
    if (status != PLUMB_OK) return status;
    r->row = malloc((size_t)r->vocab_size * 4);
    r->hash = XXH3_createState();
    if (r->row == NULL || r->hash == NULL)
        return plumb__fail_memory(err, "one row of logits", (size_t)r->vocab_size * 4);
    XXH3_64bits_reset(r->hash);
    status = cli_new_file_open(options->out, &r->file, err);
    if (status == PLUMB_OK) status = evaluate(runtime, tokens, r, err);
    if (status == PLUMB_OK) status = cli_new_file_commit(&r->file, err);
    return status;
}

int cli_run_logits(const cli_options *options) {
    if (options->tokens_file == NULL || options->out == NULL) {
        cli_complain(options, "needs --tokens-file IDS and --out FILE");
        return CLI_USAGE;
    }
    plumb_error err = {0};
    if (cli_new_file_check(options->out, &err) != PLUMB_OK) return cli_report(options, &err);
    cli_runtime runtime;
    int status = cli_runtime_open(options, false, &runtime);
    if (status != CLI_OK) return status;
    runtime.progress.started = plumb__now();
    plumb_tokens tokens = {0};
    rows r = {0};
    plumb_status written = write_logits(&runtime, &tokens, &r, &err);
    cli_progress_clear(&runtime.progress);
    if (written == PLUMB_OK)
        cli_print("%016" PRIx64 "\n", (uint64_t)XXH3_64bits_digest(r.hash));
    else
        status = cli_report(options, &err);
    cli_tell_streaming(&runtime);
    cli_new_file_abandon(&r.file);
    XXH3_freeState(r.hash);
    free(r.row);
    plumb_tokens_free(&tokens);
    return cli_runtime_close(&runtime, status);
}
