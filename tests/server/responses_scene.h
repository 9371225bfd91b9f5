/* A server of /v1/responses in a test: its context with ids that are counted, and what it remembers. */
#ifndef PLUMB_TESTS_SERVER_RESPONSES_SCENE_H
#define PLUMB_TESTS_SERVER_RESPONSES_SCENE_H

#include "server/api.h"

#include "t.h"

#include "api_fixture.h"
#include "generation_json.h"
#include "recorder.h"
#include "script.h"

typedef struct server {
    plumb_text *text;
    plumb_sampling sampling;
    plumb_api_context context;
    void *state;
    int ids;
} server;

static inline void numbered_id(void *user, const char *prefix, char *id) {
    snprintf(id, 64, "%s%024d", prefix, ++((server *)user)->ids);
}

static inline void server_open(server *s) {
    plumb_error err;
    *s = (server){0};
    s->context = fixture_context(&s->text, &s->sampling);
    s->context.new_id = numbered_id;
    s->context.user = s;
    T_CHECK(plumb__openai_responses.create_state(&s->state, &err) == PLUMB_OK, "no state");
}

static inline void server_close(server *s) {
    plumb__openai_responses.destroy_state(s->state);
    plumb_text_close(s->text);
}

static inline bool server_read(server *s, const char *body, plumb_api_request **request, plumb_generation **g,
                        plumb_api_error *error) {
    plumb_status status = plumb__openai_responses.read(&s->context, s->state, body, strlen(body), request, g, error);
    return status == PLUMB_OK;
}

/* Answers a request by a script. */
static inline recorder answer(server *s, const char *body, const char *script) {
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    bool taken = server_read(s, body, &request, &g, &error);
    T_CHECK(taken, "%s: %s", body, error.message);
    if (taken) {
        script_play(&plumb__openai_responses, request, script, &r.response);
        T_CHECK(r.begins == 1 && r.ends == 1, "%s: begun %d times, ended %d", script, r.begins, r.ends);
    }
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
    return r;
}

#endif
