/* What the commands that compute have in common: an opened model, its text handle, one session,
 * and the loop that evaluates a prompt and then samples token after token. */
#ifndef PLUMB_CLI_RUNTIME_H
#define PLUMB_CLI_RUNTIME_H

#include "cli/options.h"
#include "cli/streaming.h"

typedef struct cli_progress {
    bool shown;         /* a line is on the terminal */
    bool wanted;        /* standard error is a terminal and nobody asked for quiet */
    double started;     /* plumb__now() when the current evaluation began */
} cli_progress;

typedef struct cli_runtime {
    const cli_options *options;
    plumb_model *model;
    plumb_text *text; /* NULL unless asked for */
    plumb_session *session;
    plumb_model_info info;
    plumb_sampling sampling;
    cli_progress progress;
    cli_streaming streaming;
} cli_runtime;

/* Opens all of it and catches Ctrl-C.  Reports a failure itself and returns the exit status. */
int cli_runtime_open(const cli_options *options, bool wants_text, cli_runtime *runtime);
/* The same in two steps, for a command that chooses the context by what the model is. */
int cli_runtime_open_model(const cli_options *options, bool wants_text, cli_runtime *runtime);
int cli_runtime_open_session(cli_runtime *runtime, int64_t context);
/* What opening a session does besides, for who makes sessions otherwise: streaming begins, Ctrl-C is
 * caught. */
PLUMB_MUST_CHECK plumb_status cli_runtime_begin(cli_runtime *runtime, plumb_error *err);
/* Closes all of it and returns the exit status: `status`, unless a route trace cannot be written. */
int cli_runtime_close(cli_runtime *runtime, int status);

void cli_progress_clear(cli_progress *progress); /* takes its line off the terminal */

/* One chosen token.  `top` holds n_top entries, best first. */
typedef struct cli_step {
    int32_t token;
    plumb_logprob chosen;
    const plumb_logprob *top;
    int32_t n_top;
} cli_step;

/* Sees every chosen token, stop tokens too; false ends the answer. */
typedef bool (*cli_token_sink)(void *user, const cli_step *step);

typedef enum cli_ending {
    CLI_ENDED_BY_SINK,
    CLI_ENDED_BY_LIMIT,       /* options->n_tokens */
    CLI_ENDED_BY_CONTEXT,     /* the session is full */
    CLI_ENDED_BY_INTERRUPT
} cli_ending;

typedef struct cli_generation {
    cli_ending ending;
    int64_t n_prompt, n_answer; /* tokens */
    plumb_sync_report prompt;   /* how the session came to it */
    double prompt_seconds, answer_seconds;
} cli_generation;

/* Brings the session to `prompt`, keeping the longest common beginning, then samples up to
 * options->n_tokens tokens.  The session stays usable whatever happens. */
PLUMB_MUST_CHECK plumb_status cli_generate(cli_runtime *runtime, const plumb_tokens *prompt,
                                           cli_token_sink sink, void *user,
                                           cli_generation *generation, plumb_error *err);
/* "prompt 40 tokens (31 reused, 8 replayed), 312.5 tokens/s; answer 12 tokens, 40.1 tokens/s" */
void cli_describe_speed(const cli_generation *generation, char *line, size_t size);
/* What streaming did since the last time, on standard error unless --quiet. */
void cli_tell_streaming(cli_runtime *runtime);
/* Both. */
void cli_tell_speed(cli_runtime *runtime, const cli_generation *generation);

#endif
