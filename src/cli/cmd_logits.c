/* plumb logits: token ids in, float32 logits out, with a hash that two machines can compare. */
#include "cli/commands.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/logits_rows.h"
#include "cli/output.h"
#include "cli/prompt.h"

#include <inttypes.h>

typedef struct writing {
    cli_logits_rows rows;
    int64_t from;
    plumb_error err; /* of a failed write */
} writing;

static int on_row(void *user, int64_t position, const float *logits) {
    writing *w = user;
    if (position < w->from) return 0;
    return cli_logits_rows_add(&w->rows, logits, &w->err) != PLUMB_OK;
}

static plumb_status read_ids(const cli_runtime *runtime, plumb_tokens *tokens, plumb_error *err) {
    const cli_options *options = runtime->options;
    const char *name = cli_input_name(options->tokens_file);
    int64_t context = plumb_session_context(runtime->session);
    plumb_status status = cli_read_ids(runtime, tokens, err);
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
static plumb_status advance(cli_runtime *runtime, const plumb_tokens *tokens, int64_t end,
                            writing *w, plumb_error *err) {
    int64_t begin = plumb_session_length(runtime->session);
    const int32_t *ids = tokens->ids + begin;
    if (end <= begin) return PLUMB_OK;
    if (end <= w->from) return plumb_session_eval(runtime->session, ids, end - begin, NULL, err);
    return plumb_session_eval_all(runtime->session, ids, end - begin, on_row, w, err);
}

/* Positions before --decode-from at once, those whose logits nobody asked for without them; the
 * others one at a time. */
static plumb_status evaluate(cli_runtime *runtime, const plumb_tokens *tokens, writing *w,
                             plumb_error *err) {
    const cli_options *options = runtime->options;
    int64_t together = tokens->count;
    if (cli_option_given(options, "decode-from") && options->decode_from < together)
        together = options->decode_from;
    plumb_status status = advance(runtime, tokens, w->from < together ? w->from : together, w, err);
    if (status == PLUMB_OK) status = advance(runtime, tokens, together, w, err);
    for (int64_t i = together; i < tokens->count && status == PLUMB_OK; i++)
        status = advance(runtime, tokens, i + 1, w, err);
    if (w->err.status == PLUMB_OK) return status;
    *err = w->err;
    return w->err.status;
}

static plumb_status write_logits(cli_runtime *runtime, plumb_tokens *tokens, writing *w,
                                 plumb_error *err) {
    const cli_options *options = runtime->options;
    w->from = options->from;
    plumb_status status = read_ids(runtime, tokens, err);
    if (status == PLUMB_OK)
        status = cli_logits_rows_open(&w->rows, options->out, runtime->info.vocab_size, err);
    if (status == PLUMB_OK) status = evaluate(runtime, tokens, w, err);
    if (status == PLUMB_OK) status = cli_logits_rows_commit(&w->rows, err);
    return status;
}

int cli_run_logits(const cli_options *options) {
    if (options->tokens_file == NULL || options->out == NULL) {
        cli_complain(options, "needs --tokens-file IDS and --out FILE");
        return CLI_USAGE;
    }
    plumb_error err = {0};
    if (cli_new_file_check(options->out, &err) != PLUMB_OK ||
        cli_new_file_check_input(options->out, options->tokens_file, &err) != PLUMB_OK)
        return cli_report(options, &err);
    cli_runtime runtime;
    int status = cli_runtime_open(options, false, &runtime);
    if (status != CLI_OK) return status;
    runtime.progress.started = plumb__now();
    plumb_tokens tokens = {0};
    writing w = {0};
    plumb_status written = write_logits(&runtime, &tokens, &w, &err);
    cli_progress_clear(&runtime.progress);
    if (written == PLUMB_OK)
        cli_print("%016" PRIx64 "\n", cli_logits_rows_hash(&w.rows));
    else
        status = cli_report(options, &err);
    cli_tell_streaming(&runtime);
    cli_logits_rows_close(&w.rows);
    plumb_tokens_free(&tokens);
    return cli_runtime_close(&runtime, status);
}
