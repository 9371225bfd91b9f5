#include "cli/bench_measure.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>

static void show_progress(cli_progress *progress, int64_t done, int64_t total) {
    static const double patience = 0.5; /* seconds before a line is worth showing */
    if (!progress->wanted || plumb__now() - progress->started < patience) return;
    fprintf(stderr, "\rgenerating: %lld of %lld tokens\033[K", (long long)done, (long long)total);
    fflush(stderr);
    progress->shown = true;
}

/* Later walks generate the same. */
static bool shows_output(const cli_bench *b, const cli_bench_row *row) {
    return b->runtime->options->show_output && b->logits.repeat == 1 && row->gen_tokens > 0;
}

/* Chooses the token after `*logits`, evaluates it and counts the time of both. */
static plumb_status step(cli_bench *b, int64_t position, int32_t *token, const float **logits,
                         cli_bench_row *row, plumb_error *err) {
    const plumb_model_info *info = &b->runtime->info;
    double started = plumb__now();
    *token = b->runtime->options->teacher_forced
                 ? b->tokens[position]
                 : cli_likeliest(*logits, info->vocab_size, info->eos_id);
    plumb_status status = plumb_session_eval(b->runtime->session, token, 1, logits, err);
    double seconds = plumb__now() - started;
    row->gen_seconds += seconds;
    if (position == row->ctx_tokens) row->gen_first_seconds = seconds;
    return status;
}

/* `logits` are those of the frontier's last token. */
static plumb_status generate(cli_bench *b, const float *logits, cli_bench_row *row,
                             plumb_error *err) {
    bool shows = shows_output(b, row);
    plumb_status status = PLUMB_OK;
    b->runtime->progress.started = plumb__now();
    if (shows) fprintf(stderr, "after %lld tokens: ", (long long)row->ctx_tokens);
    for (int64_t i = 0; i < row->gen_tokens && status == PLUMB_OK; i++) {
        int64_t position = row->ctx_tokens + i;
        int32_t token = 0;
        status = step(b, position, &token, &logits, row, err);
        if (status != PLUMB_OK) break;
        if (shows)
            cli_shown_token(&b->shown, token);
        else
            show_progress(&b->runtime->progress, i + 1, row->gen_tokens);
        status = cli_bench_logits_decode(&b->logits, position, logits, err);
    }
    cli_progress_clear(&b->runtime->progress);
    if (!shows) return status;
    cli_shown_text_finish(&b->shown);
    fputc('\n', stderr);
    return status;
}

static plumb_stream_stats difference(const plumb_stream_stats *now, const plumb_stream_stats *was) {
    plumb_stream_stats d = *now;
    d.hits -= was->hits;
    d.misses -= was->misses;
    d.bytes_read -= was->bytes_read;
    d.wait_seconds -= was->wait_seconds;
    d.engram_rows -= was->engram_rows;
    return d;
}

plumb_status cli_bench_measure(cli_bench *b, int64_t frontier, int64_t gen_tokens,
                               cli_bench_row *row, plumb_error *err) {
    cli_runtime *runtime = b->runtime;
    plumb_session *session = runtime->session;
    int64_t begin = plumb_session_length(session);
    *row = (cli_bench_row){.ctx_tokens = frontier,
                           .prefill_tokens = frontier - begin,
                           .gen_tokens = gen_tokens,
                           .streaming = runtime->info.streaming};
    plumb_stream_stats before, after;
    plumb_model_get_stream_stats(runtime->model, &before);
    const float *logits = NULL;
    double started = plumb__now();
    runtime->progress.started = started;
    plumb_status status =
        plumb_session_eval(session, b->tokens + begin, frontier - begin, &logits, err);
    row->prefill_seconds = plumb__now() - started;
    cli_progress_clear(&runtime->progress);
    row->kvcache_bytes = plumb_session_state_bytes(session);
    if (status == PLUMB_OK) status = cli_bench_logits_frontier(&b->logits, frontier, logits, err);
    if (status == PLUMB_OK) status = generate(b, logits, row, err);
    plumb_model_get_stream_stats(runtime->model, &after);
    row->stream = difference(&after, &before);
    return status;
}

plumb_status cli_bench_go_back(cli_bench *b, int64_t frontier, plumb_error *err) {
    plumb_session *session = b->runtime->session;
    /* With nothing generated there is nothing to replay. */
    if (!b->replays || plumb_session_length(session) == frontier)
        return plumb_session_rewind(session, frontier, err);
    b->runtime->progress.started = plumb__now();
    plumb_status status = plumb_session_rewind(session, 0, err);
    if (status == PLUMB_OK) status = plumb_session_eval(session, b->tokens, frontier, NULL, err);
    cli_progress_clear(&b->runtime->progress);
    return status;
}
