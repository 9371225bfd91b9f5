/* What the fuzzers of APIs share: a server that is not there, and a response that goes nowhere. */
#ifndef PLUMB_TESTS_FUZZ_DIALECT_H
#define PLUMB_TESTS_FUZZ_DIALECT_H

#include "server/api.h"
#include "server/job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int64_t dialect_now(void *user) {
    (void)user;
    return 1700000000;
}

static inline void dialect_id(void *user, const char *prefix, char *id) {
    (void)user;
    strcpy(id, prefix);
    strcat(id, "0123456789abcdefghijklmn");
}

static inline plumb_status dialect_prompt(void *user, const plumb_generation *g, plumb_tokens *tokens,
                                          plumb_error *err) {
    return plumb__messages_encode(g, user, NULL, tokens, err);
}

/* The demo model's tokenizer, opened once. */
static inline plumb_api_context dialect_context(void) {
    static plumb_text *text;
    static plumb_sampling sampling;
    sampling = plumb_sampling_default();
    if (!text && plumb_text_open(TOKENIZER, &text, NULL) != PLUMB_OK) abort();
    return (plumb_api_context){.model = "demo", .text = text, .context = 4096, .sampling = &sampling, .thinking = true,
                               .effort = 75, .most_runs = 4, .now = dialect_now, .new_id = dialect_id,
                               .encode = dialect_prompt, .user = text};
}

static inline void dialect_begin(plumb_response *response, int status, const char *content_type, bool streaming) {
    (void)response, (void)streaming;
    if (status < 200 || status > 599 || !content_type) abort();
}

static inline void dialect_write(plumb_response *response, const char *bytes, size_t size) {
    if (!response->begun || response->ended || (size > 0 && !bytes)) abort();
}

static inline void dialect_end(plumb_response *response) {
    if (!response->begun) abort();
}

/* An answer of each kind of event: it begins and ends once. */
static inline void dialect_tell(const plumb_api *api, plumb_api_request *request) {
    static const plumb_usage usage = {.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 5};
    static const struct {
        plumb_generation_event_kind kind;
        const char *bytes;
    } told[] = {{PLUMB_GENERATION_STARTED, ""},         {PLUMB_GENERATION_PROGRESS, ""},
                {PLUMB_GENERATION_REASONING, "Hm"},     {PLUMB_GENERATION_CONTENT, "A"},
                {PLUMB_GENERATION_CALL_BEGIN, "f"},     {PLUMB_GENERATION_CALL_ARGUMENTS, "{}"},
                {PLUMB_GENERATION_CALL_END, ""},        {PLUMB_GENERATION_FINISHED, "END"}};
    plumb_response response = {.begin = dialect_begin, .write = dialect_write, .end = dialect_end};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        plumb_generation_event event = {.kind = told[i].kind, .id = "call_1", .bytes = told[i].bytes,
                                        .size = strlen(told[i].bytes), .stop_string = told[i].bytes,
                                        .finish = PLUMB_FINISH_STOP_STRING, .usage = &usage};
        api->event(request, &event, &response);
    }
    if (!response.ended) abort();
}

/* A refusal says what is wrong, as a whole response. */
static inline void dialect_refuse(const plumb_api *api, const plumb_api_error *error) {
    plumb_response response = {.begin = dialect_begin, .write = dialect_write, .end = dialect_end};
    if (!error->message[0] || plumb__refusal_status(error->refusal) < 400) abort();
    api->refuse(error, &response);
    if (!response.ended) abort();
}

/* What was taken can be encoded: reading has checked all that the encoder does.  Returns the tokens. */
static inline int64_t dialect_encode(const plumb_api_context *context, const plumb_generation *g) {
    plumb_tokens tokens = {0};
    if (context->encode(context->user, g, &tokens, NULL) != PLUMB_OK) abort();
    int64_t count = tokens.count;
    plumb_tokens_free(&tokens);
    return count;
}

#endif
