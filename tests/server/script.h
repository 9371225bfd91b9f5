/* Events of a generation from a script, for tests of what APIs make of them.  A line is an event:
 *
 *   start | progress | think TEXT | say TEXT | call N NAME | args N TEXT | end N | drop N
 *   stop | length | calls | stopped TEXT | fail busy | fail internal
 *   token TEXT | best TEXT | hidden TEXT | first TEXT | prompt TEXT
 *
 * TEXT is all that follows one blank; the id of call N is call_N.  "best" is a token with the two best ones,
 * "hidden" one that is no visible text; "first" and "prompt" are of the prompt.  A line that begins with @N and a
 * blank is of run N. */
#ifndef PLUMB_TESTS_SERVER_SCRIPT_H
#define PLUMB_TESTS_SERVER_SCRIPT_H

#include "server/api.h"

#include "t.h"

#include <stdlib.h>

enum { SCRIPT_TOKEN_A = 35, SCRIPT_TOKEN_HALF = 161 };

static const plumb_usage script_usage = {
    .prompt_tokens = 100, .cached_tokens = 40, .completion_tokens = 20, .reasoning_tokens = 5};
static const plumb_api_error script_busy = {PLUMB_REFUSAL_BUSY, "", "the queue is full"};
static const plumb_api_error script_internal = {PLUMB_REFUSAL_INTERNAL, "", "a NaN"};

/* "A" of the demo model, and half a character. */
static const plumb_logprob script_top[] = {{SCRIPT_TOKEN_A, -0.25f}, {SCRIPT_TOKEN_HALF, -2.0f}};

typedef struct script_word {
    const char *word;
    plumb_generation_event_kind kind;
    plumb_finish finish;
    bool has_call;
} script_word;

static const script_word script_words[] = {
    {"start", PLUMB_GENERATION_STARTED, 0, false},
    {"progress", PLUMB_GENERATION_PROGRESS, 0, false},
    {"think", PLUMB_GENERATION_REASONING, 0, false},
    {"say", PLUMB_GENERATION_CONTENT, 0, false},
    {"call", PLUMB_GENERATION_CALL_BEGIN, 0, true},
    {"args", PLUMB_GENERATION_CALL_ARGUMENTS, 0, true},
    {"end", PLUMB_GENERATION_CALL_END, 0, true},
    {"drop", PLUMB_GENERATION_CALL_DROPPED, 0, true},
    {"stop", PLUMB_GENERATION_FINISHED, PLUMB_FINISH_STOP, false},
    {"length", PLUMB_GENERATION_FINISHED, PLUMB_FINISH_LENGTH, false},
    {"calls", PLUMB_GENERATION_FINISHED, PLUMB_FINISH_CALLS, false},
    {"stopped", PLUMB_GENERATION_FINISHED, PLUMB_FINISH_STOP_STRING, false},
    {"fail", PLUMB_GENERATION_FAILED, 0, false},
    {"token", PLUMB_GENERATION_TOKEN, 0, false},
    {"best", PLUMB_GENERATION_TOKEN, 0, false},
    {"hidden", PLUMB_GENERATION_TOKEN, 0, false},
    {"first", PLUMB_GENERATION_TOKEN, 0, false},
    {"prompt", PLUMB_GENERATION_TOKEN, 0, false},
};

static inline void script_token(const char *word, plumb_generation_event *event) {
    bool best = strcmp(word, "best") == 0;
    event->of_prompt = strcmp(word, "prompt") == 0 || strcmp(word, "first") == 0;
    event->of_content = best || strcmp(word, "token") == 0;
    event->has_logprob = strcmp(word, "first") != 0;
    event->token.logprob = event->has_logprob ? -0.5f : 0.0f;
    event->top = best ? script_top : NULL;
    event->n_top = best ? 2 : 0;
}

/* `line` is NUL-terminated. */
static inline void script_event(const plumb_api *api, plumb_api_request *request, const char *line,
                                plumb_response *response) {
    int run = line[0] == '@' ? line[1] - '0' : 0;
    if (line[0] == '@') line += 3;
    size_t length = strcspn(line, " ");
    const char *text = line[length] ? line + length + 1 : "";
    for (size_t i = 0; i < sizeof script_words / sizeof script_words[0]; i++) {
        const script_word *w = &script_words[i];
        if (strlen(w->word) != length || strncmp(w->word, line, length) != 0) continue;
        char id[32];
        plumb_generation_event event = {.kind = w->kind, .finish = w->finish, .usage = &script_usage,
                                        .done = 64, .total = 100, .run = run};
        if (w->kind == PLUMB_GENERATION_TOKEN) script_token(w->word, &event);
        if (w->has_call) {
            event.call = text[0] - '0';
            text += text[1] ? 2 : 1;
        }
        snprintf(id, sizeof id, "call_%d", event.call);
        event.id = id;
        event.bytes = event.stop_string = text;
        event.size = strlen(text);
        event.error = strcmp(text, "busy") == 0 ? &script_busy : &script_internal;
        api->event(request, &event, response);
        return;
    }
    T_CHECK(false, "no event is called '%s'", line);
}

static inline void script_play(const plumb_api *api, plumb_api_request *request, const char *script,
                               plumb_response *response) {
    char line[256];
    while (*script) {
        size_t length = strcspn(script, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, script);
        script_event(api, request, line, response);
        script += length + (script[length] == '\n');
    }
}

#endif
