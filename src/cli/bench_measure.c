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

/* `logits` are those of the frontier's last token. */
static plumb_status generate(cli_bench *b, const float *logits, cli_bench_row *row,
                             plumb_error *err) {
    cli_runtime *runtime = b->runtime;
    plumb_session *session = runtime->session;
    bool forced = runtime->options->teacher_forced;
    runtime->progress.started = plumb__now();
    if (shows_output(b, row)) fprintf(stderr, "after %lld tokens: ", (long long)row->ctx_tokens);
    for (int64_t i = 0; i < row->gen_tokens; i++) {
        int64_t position = row->ctx_tokens + i;
        double started = plumb__now();
        int32_t token = forced
                            ? b->tokens[position]
                            : cli_likeliest(logits, runtime->info.vocab_size, runtime->info.eos_id);
        plumb_status status = plumb_session_eval(session, &token, 1, &logits, err);
        double seconds = plumb__now() - started;
        if (status != PLUMB_OK) return status;
        row->gen_seconds += seconds;
        if (i == 0) row->gen_first_seconds = seconds;
        status = cli_bench_logits_decode(&b->logits, position, logits, err);
        if (status != PLUMB_OK) return status;
        if (shows_output(b, row))
            cli_shown_token(&b->shown, token);
        else
            show_progress(&runtime->progress, i + 1, row->gen_tokens);
    }
    return PLUMB_OK;
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
    cli_progress_clear(&runtime->progress);
    if (status == PLUMB_OK && shows_output(b, row)) {
        cli_shown_text_finish(&b->shown);
        fputc('\n', stderr);
    }
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
