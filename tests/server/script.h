/* Events of a generation from a script, for tests of what APIs make of them.  A line is an event:
 *
 *   start | progress | think TEXT | say TEXT | call N NAME | args N TEXT | end N | drop N
 *   stop | length | calls | stopped TEXT | fail busy | fail internal
 *
 * TEXT is all that follows one blank; the id of call N is call_N. */
#ifndef PLUMB_TESTS_SERVER_SCRIPT_H
#define PLUMB_TESTS_SERVER_SCRIPT_H

#include "server/api.h"

#include "t.h"

#include <stdlib.h>

static const plumb_usage script_usage = {
    .prompt_tokens = 100, .cached_tokens = 40, .completion_tokens = 20, .reasoning_tokens = 5};
static const plumb_api_error script_busy = {PLUMB_REFUSAL_BUSY, "", "the queue is full"};
static const plumb_api_error script_internal = {PLUMB_REFUSAL_INTERNAL, "", "a NaN"};

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
};

/* `line` is NUL-terminated. */
static inline void script_event(const plumb_api *api, plumb_api_request *request, const char *line,
                                plumb_response *response) {
    size_t length = strcspn(line, " ");
    const char *text = line[length] ? line + length + 1 : "";
    for (size_t i = 0; i < sizeof script_words / sizeof script_words[0]; i++) {
        const script_word *w = &script_words[i];
        if (strlen(w->word) != length || strncmp(w->word, line, length) != 0) continue;
        char id[32];
        plumb_generation_event event = {.kind = w->kind, .finish = w->finish, .usage = &script_usage,
                                        .done = 64, .total = 100};
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
