/* Answers of each kind of event, in all runs of a request, which begin and end once. */
#ifndef PLUMB_TESTS_FUZZ_OPENAI_H
#define PLUMB_TESTS_FUZZ_OPENAI_H

#include "fuzz_dialect.h"

static inline void openai_tell(const plumb_api *api, plumb_api_request *request, const plumb_generation *g) {
    static const plumb_usage usage = {.prompt_tokens = 9, .cached_tokens = 4, .completion_tokens = 5};
    static const plumb_logprob top[] = {{1, -1.0f}, {200, -2.0f}, {-7, -3.0f}};
    static const struct {
        plumb_generation_event_kind kind;
        const char *bytes;
        bool of_prompt, of_content;
    } told[] = {{PLUMB_GENERATION_STARTED, "", 0, 0},        {PLUMB_GENERATION_PROGRESS, "", 0, 0},
                {PLUMB_GENERATION_TOKEN, "p\xc3", 1, 0},     {PLUMB_GENERATION_TOKEN, "\xa9", 1, 0},
                {PLUMB_GENERATION_REASONING, "Hm", 0, 0},    {PLUMB_GENERATION_TOKEN, "\xe2\x82", 0, 1},
                {PLUMB_GENERATION_TOKEN, "\xac", 0, 1},      {PLUMB_GENERATION_CONTENT, "\xe2\x82\xac", 0, 0},
                {PLUMB_GENERATION_CALL_BEGIN, "f", 0, 0},    {PLUMB_GENERATION_CALL_ARGUMENTS, "{}", 0, 0},
                {PLUMB_GENERATION_CALL_END, "", 0, 0},       {PLUMB_GENERATION_CALL_BEGIN, "g", 0, 0},
                {PLUMB_GENERATION_CALL_ARGUMENTS, "{", 0, 0}, {PLUMB_GENERATION_CALL_DROPPED, "", 0, 0},
                {PLUMB_GENERATION_TOKEN, "x", 0, 1},         {PLUMB_GENERATION_FINISHED, "END", 0, 0}};
    plumb_response response = {.begin = dialect_begin, .write = dialect_write, .end = dialect_end};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        for (int run = 0; run < g->runs; run++) {
            plumb_generation_event event = {.kind = told[i].kind, .run = run, .id = "call_1", .bytes = told[i].bytes,
                                            .size = strlen(told[i].bytes), .stop_string = told[i].bytes,
                                            .has_logprob = i > 2, .of_prompt = told[i].of_prompt,
                                            .of_content = told[i].of_content, .top = top,
                                            .n_top = g->top_logprobs < 3 ? g->top_logprobs : 3,
                                            .finish = run % 2 ? PLUMB_FINISH_STOP_STRING : PLUMB_FINISH_CALLS,
                                            .usage = &usage};
            api->event(request, &event, &response);
        }
    }
    if (!response.ended) abort();
}

/* The whole life of a request; NULL: it was refused. */
static inline plumb_generation *openai_serve(const plumb_api *api, const uint8_t *data, size_t size) {
    plumb_api_context context = dialect_context();
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    if (api->read(&context, NULL, (const char *)data, size, &request, &g, &error) != PLUMB_OK) {
        if (request || g) abort();
        dialect_refuse(api, &error);
        return NULL;
    }
    if (g->runs < 1 || g->runs > context.most_runs || g->most_tokens < -1 || g->top_logprobs > 20) abort();
    if (g->messages && dialect_encode(&context, g) == 0) abort();
    openai_tell(api, request, g);
    api->destroy(request);
    return g;
}

#endif
