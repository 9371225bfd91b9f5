/* The opened model and the generation loop; see runtime.h. */
#include "cli/runtime.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/model_lookup.h"
#include "cli/output.h"
#include "convert/receipt.h"

#include <stdio.h>
#include <unistd.h>

enum { MOST_LOGPROBS = 64 }; /* the range of --logprobs */

/* ---- Progress of long evaluations ---- */

static int on_progress(void *user, int64_t done, int64_t total) {
    static const double patience = 0.5; /* seconds before a line is worth showing */
    cli_progress *progress = user;
    if (progress->wanted && total > 1 && plumb__now() - progress->started > patience) {
        fprintf(stderr, "\rreading: %lld of %lld tokens", (long long)done, (long long)total);
        fflush(stderr);
        progress->shown = true;
    }
    return cli_interrupted();
}

void cli_progress_clear(cli_progress *progress) {
    if (progress->shown) fprintf(stderr, "\r\033[K");
    progress->shown = false;
}

/* ---- Opening ---- */

static plumb_sampling sampling_of(const cli_options *options) {
    plumb_sampling sampling = plumb_sampling_default();
    sampling.temperature = (float)options->temperature;
    sampling.top_k = (int32_t)options->top_k;
    sampling.top_p = (float)options->top_p;
    sampling.min_p = (float)options->min_p;
    sampling.seed = options->seed;
    sampling.bias = options->bias;
    sampling.n_bias = options->n_bias;
    return sampling;
}

static plumb_status check_bias(const cli_runtime *runtime, plumb_error *err) {
    for (int32_t i = 0; i < runtime->sampling.n_bias; i++) {
        int32_t token = runtime->sampling.bias[i].token;
        if (token >= runtime->info.vocab_size)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "--logit-bias", -1,
                               plumb__format("token %d", (int)token).s, "an id below %lld",
                               (long long)runtime->info.vocab_size);
    }
    return PLUMB_OK;
}

static plumb_status open_model(cli_runtime *runtime, bool wants_text, plumb_error *err) {
    const cli_options *options = runtime->options;
    char path[CLI_PATH_SIZE];
    plumb_status status = cli_find_model(options, path, err);
    if (status != PLUMB_OK) return status;
    if (options->verified) status = plumb__receipt_require(path, err);
    if (status == PLUMB_OK && wants_text) status = plumb_text_open(path, &runtime->text, err);
    if (status != PLUMB_OK) return status;

    plumb_model_options model_options = {
        .device = options->metal ? PLUMB_DEVICE_METAL : options->cpu ? PLUMB_DEVICE_CPU
                                                                     : PLUMB_DEVICE_BEST,
        .threads = (int)options->threads, .log = cli_log, .log_user = (void *)options};
    status = cli_streaming_prepare(options, path, &runtime->streaming, &model_options, err);
    if (status == PLUMB_OK) status = plumb_model_open(path, &model_options, &runtime->model, err);
    if (status != PLUMB_OK) return status;
    plumb_model_get_info(runtime->model, &runtime->info);
    return check_bias(runtime, err);
}

plumb_status cli_runtime_begin(cli_runtime *runtime, plumb_error *err) {
    plumb_status status = cli_streaming_begin(&runtime->streaming, runtime->model, err);
    return status == PLUMB_OK ? cli_interrupt_catch(err) : status;
}

static plumb_status open_session(cli_runtime *runtime, int64_t context, plumb_error *err) {
    const plumb_session_options session_options = {.context = context,
                                                   .chunk = runtime->options->chunk,
                                                   .progress = on_progress,
                                                   .progress_user = &runtime->progress};
    plumb_status status =
        plumb_session_create(runtime->model, &session_options, &runtime->session, err);
    return status == PLUMB_OK ? cli_runtime_begin(runtime, err) : status;
}

/* What does not open by --metal may well do without it. */
static int report_opening(const cli_options *options, const plumb_error *err) {
    int status = cli_report(options, err);
    /* What is refused of a model names its file. */
    if (options->metal && err->status == PLUMB_ERROR_UNSUPPORTED && err->file[0] == '\0')
        cli_complain(options, "without --metal the CPU computes, with the same results");
    return status;
}

int cli_runtime_open_model(const cli_options *options, bool wants_text, cli_runtime *runtime) {
    *runtime = (cli_runtime){.options = options, .sampling = sampling_of(options)};
    runtime->progress.wanted = !options->quiet && isatty(STDERR_FILENO);
    plumb_error err = {0};
    if (open_model(runtime, wants_text, &err) == PLUMB_OK) return CLI_OK;
    return cli_runtime_close(runtime, report_opening(options, &err));
}

int cli_runtime_open_session(cli_runtime *runtime, int64_t context) {
    plumb_error err = {0};
    if (open_session(runtime, context, &err) == PLUMB_OK) return CLI_OK;
    return cli_runtime_close(runtime, cli_report(runtime->options, &err));
}

int cli_runtime_open(const cli_options *options, bool wants_text, cli_runtime *runtime) {
    int status = cli_runtime_open_model(options, wants_text, runtime);
    return status == CLI_OK ? cli_runtime_open_session(runtime, options->context) : status;
}

int cli_runtime_close(cli_runtime *runtime, int status) {
    plumb_session_destroy(runtime->session);
    plumb_model_close(runtime->model);
    status = cli_streaming_end(&runtime->streaming, status);
    plumb_text_close(runtime->text);
    runtime->session = NULL;
    runtime->model = NULL;
    runtime->text = NULL;
    return status;
}

/* ---- Generation ---- */

static plumb_status read_prompt(cli_runtime *runtime, const plumb_tokens *prompt,
                                const float **logits, cli_generation *generation,
                                plumb_error *err) {
    double started = plumb__now();
    runtime->progress.started = started;
    plumb_status status = plumb_session_sync(runtime->session, prompt->ids, prompt->count, logits,
                                             &generation->prompt, err);
    cli_progress_clear(&runtime->progress);
    generation->n_prompt = prompt->count;
    generation->prompt_seconds = plumb__now() - started;
    return status;
}

static plumb_status sample_answer(cli_runtime *runtime, const float *logits, cli_token_sink sink,
                                  void *user, cli_generation *generation, plumb_error *err) {
    int64_t limit = runtime->options->n_tokens;
    plumb_session *session = runtime->session;
    for (;;) {
        plumb_logprob top[MOST_LOGPROBS];
        cli_step step = {.top = top, .n_top = (int32_t)runtime->options->logprobs};
        if (step.n_top > runtime->info.vocab_size) step.n_top = (int32_t)runtime->info.vocab_size;
        plumb_status status = plumb_sample(logits, runtime->info.vocab_size, &runtime->sampling,
                                           plumb_session_length(session), &step.token, &step.chosen,
                                           step.n_top > 0 ? top : NULL, step.n_top, err);
        if (status != PLUMB_OK) return status;
        generation->n_answer++;
        generation->ending = CLI_ENDED_BY_SINK;
        if (!sink(user, &step)) return PLUMB_OK;
        generation->ending = CLI_ENDED_BY_LIMIT;
        if (limit > 0 && generation->n_answer >= limit) return PLUMB_OK;
        generation->ending = CLI_ENDED_BY_CONTEXT;
        if (plumb_session_length(session) >= plumb_session_context(session)) return PLUMB_OK;
        generation->ending = CLI_ENDED_BY_INTERRUPT;
        if (cli_interrupted()) return PLUMB_OK;
        status = plumb_session_eval(session, &step.token, 1, &logits, err);
        if (status != PLUMB_OK) return status;
    }
}

plumb_status cli_generate(cli_runtime *runtime, const plumb_tokens *prompt, cli_token_sink sink,
                          void *user, cli_generation *generation, plumb_error *err) {
    *generation = (cli_generation){.ending = CLI_ENDED_BY_INTERRUPT};
    int64_t context = plumb_session_context(runtime->session);
    if (prompt->count > context)
        return plumb__fail(err, PLUMB_ERROR_CONTEXT, NULL, "prompt", -1,
                           plumb__format("%lld tokens", (long long)prompt->count).s,
                           "at most the context of %lld (-c sets it)", (long long)context);
    const float *logits = NULL;
    plumb_status status = read_prompt(runtime, prompt, &logits, generation, err);
    if (status != PLUMB_OK) return status;
    double started = plumb__now();
    runtime->progress.started = started;
    status = sample_answer(runtime, logits, sink, user, generation, err);
    generation->answer_seconds = plumb__now() - started;
    /* An answer that was cut short by Ctrl-C is an ending, not a fault. */
    if (status == PLUMB_ERROR_CANCELLED && generation->n_answer > 0) status = PLUMB_OK;
    return status;
}

static double rate(int64_t tokens, double seconds) {
    return seconds > 0 ? (double)tokens / seconds : 0;
}

void cli_describe_speed(const cli_generation *generation, char *line, size_t size) {
    const plumb_sync_report *prompt = &generation->prompt;
    char replayed[48] = "";
    if (prompt->replayed > 0)
        snprintf(replayed, sizeof replayed, ", %lld replayed", (long long)prompt->replayed);
    snprintf(line, size,
             "prompt %lld token%s (%lld reused%s), %.1f tokens/s; answer %lld token%s, %.1f tokens/s",
             (long long)generation->n_prompt, generation->n_prompt == 1 ? "" : "s", (long long)prompt->cached, replayed,
             rate(prompt->replayed + prompt->evaluated, generation->prompt_seconds),
             (long long)generation->n_answer, generation->n_answer == 1 ? "" : "s",
             rate(generation->n_answer, generation->answer_seconds));
}

void cli_tell_streaming(cli_runtime *runtime) {
    char line[320];
    if (runtime->options->quiet) return;
    cli_streaming_describe(&runtime->streaming, runtime->model, line, sizeof line);
    if (line[0] != '\0') cli_complain(runtime->options, "%s", line);
}

void cli_tell_speed(cli_runtime *runtime, const cli_generation *generation) {
    char line[320];
    if (runtime->options->quiet) return;
    cli_describe_speed(generation, line, sizeof line);
    cli_complain(runtime->options, "%s", line);
    cli_tell_streaming(runtime);
}
