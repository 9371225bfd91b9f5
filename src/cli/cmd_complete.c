/* plumb complete: the begin-of-sentence token, the prompt, and what the model makes of it. */
#include "cli/commands.h"

#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/prompt.h"
#include "cli/runtime.h"
#include "cli/shown_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct completion {
    cli_runtime runtime;
    cli_shown_text shown;
    bool as_json;
} completion;

/* {"token":..,"text":"..","logprob":..}; a token that is half a character shows U+FFFD. */
static json_t *logprob_json(const plumb_text *text, const plumb_logprob *entry) {
    plumb_detokenizer one;
    plumb_detokenizer_init(&one, text);
    size_t size = 0;
    (void)plumb_text_token_bytes(text, entry->token, &size);
    char *bytes = malloc(size * 3 + 16);
    if (bytes == NULL) return NULL;
    size_t n = plumb_detokenizer_push(&one, entry->token, bytes, size * 3 + 16);
    n += plumb_detokenizer_finish(&one, bytes + n, size * 3 + 16 - n);
    json_t *object = json_pack("{s:i,s:o,s:f}", "token", (int)entry->token, "text",
                               json_stringn(bytes, n), "logprob", (double)entry->logprob);
    free(bytes);
    return object;
}

static void print_logprobs(const completion *c, const cli_step *step) {
    json_t *line = logprob_json(c->runtime.text, &step->chosen);
    json_t *top = json_array();
    for (int32_t i = 0; i < step->n_top; i++)
        (void)json_array_append_new(top, logprob_json(c->runtime.text, &step->top[i]));
    if (line != NULL) (void)json_object_set(line, "top", top);
    char *printed = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (printed != NULL) cli_print("%s\n", printed);
    free(printed);
    json_decref(top);
    json_decref(line);
}

static bool on_token(void *user, const cli_step *step) {
    completion *c = user;
    bool stop = plumb_text_is_stop(c->runtime.text, step->token);
    if (c->as_json)
        print_logprobs(c, step);
    else if (!stop && !plumb_text_is_control(c->runtime.text, step->token))
        cli_shown_token(&c->shown, step->token);
    return cli_output_flush() && !stop;
}

static void end_text(completion *c) {
    cli_shown_text_finish(&c->shown);
    if (!c->as_json) cli_print("\n");
    cli_output_flush();
}

int cli_run_complete(const cli_options *options) {
    if (options->prompt == NULL && options->prompt_file == NULL) {
        cli_complain(options, "needs a prompt: -p TEXT or --prompt-file FILE");
        return CLI_USAGE;
    }
    completion c = {.as_json = cli_option_given(options, "logprobs")};
    int status = cli_runtime_open(options, true, &c.runtime);
    if (status != CLI_OK) return status;
    cli_shown_text_open(&c.shown, c.runtime.text);

    plumb_tokens tokens = {0};
    plumb_error err = {0};
    cli_generation generation = {0};
    plumb_status made = cli_read_prompt(&c.runtime, &tokens, &err);
    if (made == PLUMB_OK)
        made = cli_generate(&c.runtime, &tokens, on_token, &c, &generation, &err);
    if (made == PLUMB_OK || generation.n_answer > 0) end_text(&c);
    if (made != PLUMB_OK) {
        status = cli_report(options, &err);
    } else {
        cli_tell_speed(&c.runtime, &generation);
        if (cli_interrupted()) status = CLI_INTERRUPTED;
    }
    plumb_tokens_free(&tokens);
    cli_shown_text_close(&c.shown);
    return cli_runtime_close(&c.runtime, status);
}
