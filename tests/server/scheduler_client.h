/* For tests of the scheduler: clients that note what they are told. */
#ifndef PLUMB_TESTS_SERVER_SCHEDULER_CLIENT_H
#define PLUMB_TESTS_SERVER_SCHEDULER_CLIENT_H

#include "scheduler_scene.h"

enum { MOST_RUNS = 4, MOST_TOKENS = 700, MOST_PROGRESS = 64, MOST_TEXT = 4096 };

typedef struct told_token {
    int32_t id;
    float logprob;
    bool has_logprob, of_prompt;
    plumb_logprob best; /* token -1: none was told */
    int64_t place;      /* among all events of all clients */
} told_token;

typedef struct client_run {
    char content[MOST_TEXT], reasoning[MOST_TEXT], call_id[64], function[64], arguments[MOST_TEXT];
    told_token token[MOST_TOKENS];
    int n_tokens, n_calls;
    bool started, finished;
    int64_t cached_at_start;
    plumb_finish finish;
    plumb_usage usage;
} client_run;

typedef struct client {
    plumb_scheduler *scheduler;
    plumb_job *job;
    int runs, runs_finished;
    bool failed, ended, cancelled;
    plumb_api_error error;
    client_run run[MOST_RUNS];
    int64_t progress[MOST_PROGRESS], progress_place[MOST_PROGRESS];
    int n_progress;
    int events;
    plumb_generation_event_kind cancels_at; /* with `cancels` */
    bool cancels;
} client;

static int64_t places;

static inline void add_text(char *to, const plumb_generation_event *e) {
    size_t used = strlen(to);
    T_CHECK(used + e->size < MOST_TEXT, "%zu bytes", used + e->size);
    if (used + e->size >= MOST_TEXT) return;
    memcpy(to + used, e->bytes, e->size);
    to[used + e->size] = 0;
}

static inline void add_token(client_run *r, const plumb_generation_event *e) {
    CHECK(r->n_tokens < MOST_TOKENS);
    if (r->n_tokens == MOST_TOKENS) return;
    r->token[r->n_tokens++] = (told_token){.id = e->token.token, .logprob = e->token.logprob,
                                           .has_logprob = e->has_logprob, .of_prompt = e->of_prompt,
                                           .best = e->n_top > 0 ? e->top[0] : (plumb_logprob){-1, 0},
                                           .place = places};
}

static inline void on_call(client_run *r, const plumb_generation_event *e) {
    if (e->kind == PLUMB_GENERATION_CALL_BEGIN) {
        r->n_calls++;
        (void)snprintf(r->call_id, sizeof r->call_id, "%s", e->id);
        (void)snprintf(r->function, sizeof r->function, "%.*s", (int)e->size, e->bytes);
    } else if (e->kind == PLUMB_GENERATION_CALL_ARGUMENTS) {
        add_text(r->arguments, e);
    }
}

static inline void on_event(void *user, const plumb_generation_event *e) {
    client *c = user;
    client_run *r = &c->run[e->run];
    places++;
    c->events++;
    T_CHECK(!c->ended && !c->cancelled, "told after the end");
    switch (e->kind) {
    case PLUMB_GENERATION_STARTED:
        CHECK(!r->started);
        r->started = true;
        r->cached_at_start = e->usage->cached_tokens;
        break;
    case PLUMB_GENERATION_PROGRESS:
        if (c->n_progress < MOST_PROGRESS) {
            c->progress[c->n_progress] = e->done;
            c->progress_place[c->n_progress++] = places;
        }
        break;
    case PLUMB_GENERATION_TOKEN: add_token(r, e); break;
    case PLUMB_GENERATION_REASONING: add_text(r->reasoning, e); break;
    case PLUMB_GENERATION_CONTENT: add_text(r->content, e); break;
    case PLUMB_GENERATION_FINISHED:
        CHECK(r->started && !r->finished);
        r->finished = true;
        r->finish = e->finish;
        r->usage = *e->usage;
        c->ended = ++c->runs_finished == c->runs;
        break;
    case PLUMB_GENERATION_FAILED:
        c->error = *e->error;
        c->failed = c->ended = true;
        break;
    default: on_call(r, e); break;
    }
    if (c->cancels && e->kind == c->cancels_at) {
        c->cancelled = true;
        plumb__scheduler_cancel(c->scheduler, c->job);
    }
}

static inline client *new_client(void) {
    client *c = calloc(1, sizeof *c);
    if (!c) exit(1);
    return c;
}

/* False: refused, and c->error says why. */
static inline bool submit(plumb_scheduler *s, client *c, plumb_generation *g) {
    *c = (client){.scheduler = s, .runs = g->runs, .cancels = c->cancels, .cancels_at = c->cancels_at};
    c->job = plumb__scheduler_submit(s, g, on_event, c, &c->error);
    return c->job != NULL;
}

static inline void cancel(client *c) {
    c->cancelled = true;
    plumb__scheduler_cancel(c->scheduler, c->job);
}

static inline void until_ended(client *c) {
    while (!c->ended) turn(c->scheduler);
}

static inline void run(plumb_scheduler *s, client *c, plumb_generation *g) {
    T_CHECK(submit(s, c, g), "%s", c->error.message);
    if (c->job) until_ended(c);
}

#endif
