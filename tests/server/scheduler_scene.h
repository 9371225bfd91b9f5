/* For tests of the scheduler: the demo model, clients that note what they are told, and a loop.
 *
 * The worker can be held at the moment when it wakes the loop.  So a test decides what has happened when it
 * submits or cancels something, on any machine and under any load. */
#ifndef PLUMB_TESTS_SERVER_SCHEDULER_SCENE_H
#define PLUMB_TESTS_SERVER_SCHEDULER_SCENE_H

#include "server/scheduler.h"
#include "t.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define DEMO PROJECT_DIR "/data/demo-model"

enum { MOST_RUNS = 4, MOST_TOKENS = 700, MOST_PROGRESS = 64, MOST_TEXT = 4096 };

#define CHECK(condition) T_CHECK(condition, "is false")

/* ---- The model -------------------------------------------------------------------------------- */

static plumb_model *model;
static plumb_model_info info;
static plumb_text *text;

static inline void must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s: %s\n", what, line);
    exit(1);
}

static inline void open_demo(void) {
    const plumb_model_options options = {.device = PLUMB_DEVICE_CPU, .threads = 1};
    plumb_error err;
    if (model) return;
    must(plumb_model_open(DEMO, &options, &model, &err), &err, "model");
    must(plumb_text_open(DEMO, &text, &err), &err, "text");
    plumb_model_get_info(model, &info);
}

static inline void close_demo(void) {
    plumb_text_close(text);
    plumb_model_close(model);
    model = NULL;
    text = NULL;
}

/* ---- The loop --------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread; /* the loop's */
    bool woken, held, holds;
    int let_go; /* how often */
} loop = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static inline void wake(void *user) {
    (void)user;
    pthread_mutex_lock(&loop.lock);
    loop.woken = true;
    pthread_cond_broadcast(&loop.changed);
    bool is_worker = !pthread_equal(pthread_self(), loop.thread);
    int let_go = loop.let_go;
    while (is_worker && loop.holds && let_go == loop.let_go) {
        loop.held = true;
        pthread_cond_broadcast(&loop.changed);
        pthread_cond_wait(&loop.changed, &loop.lock);
    }
    loop.held = false;
    pthread_mutex_unlock(&loop.lock);
}

/* From now on the worker stops when it tells something while nothing waits to be delivered. */
static inline void hold(void) {
    pthread_mutex_lock(&loop.lock);
    loop.holds = true;
    pthread_mutex_unlock(&loop.lock);
}

static inline void wait_until_held(void) {
    pthread_mutex_lock(&loop.lock);
    while (!loop.held) pthread_cond_wait(&loop.changed, &loop.lock);
    pthread_mutex_unlock(&loop.lock);
}

static inline void let_go(void) {
    pthread_mutex_lock(&loop.lock);
    loop.holds = false;
    loop.let_go++;
    pthread_cond_broadcast(&loop.changed);
    pthread_mutex_unlock(&loop.lock);
}

static inline void turn(plumb_scheduler *s) {
    pthread_mutex_lock(&loop.lock);
    while (!loop.woken) pthread_cond_wait(&loop.changed, &loop.lock);
    loop.woken = false;
    pthread_mutex_unlock(&loop.lock);
    plumb__scheduler_deliver(s);
}

static inline plumb_scheduler_stats stats_of(plumb_scheduler *s) {
    plumb_scheduler_stats stats;
    plumb__scheduler_get_stats(s, &stats);
    return stats;
}

/* What is told nobody: the worker has seen a cancellation. */
static inline void until_idle(plumb_scheduler *s) {
    const struct timespec moment = {.tv_nsec = 1000000};
    while (stats_of(s).busy > 0) (void)nanosleep(&moment, NULL);
}

/* ---- Schedulers ------------------------------------------------------------------------------- */

static char said[4096]; /* the lines of the log */

static inline void note(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    size_t used = strlen(said);
    (void)snprintf(said + used, sizeof said - used, "%s\n", line);
}

static inline void new_id(void *user, const char *prefix, char *id) {
    static int next; /* the worker's alone */
    (void)user;
    (void)snprintf(id, 64, "%s%d", prefix, next++);
}

static inline plumb_scheduler *open_scheduler(plumb_scheduler_options options) {
    plumb_scheduler *s = NULL;
    plumb_error err;
    open_demo();
    said[0] = 0;
    loop.thread = pthread_self();
    loop.woken = loop.held = loop.holds = false;
    if (!options.model) options.model = model;
    options.text = text;
    options.new_id = new_id;
    options.wake = wake;
    options.log = note;
    must(plumb__scheduler_create(&options, &s, &err), &err, "scheduler");
    return s;
}

static inline void close_scheduler(plumb_scheduler *s) {
    let_go();
    plumb__scheduler_destroy(s);
}

/* ---- Clients ---------------------------------------------------------------------------------- */

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

/* ---- Generations: greedy, with log-probabilities ------------------------------------------------ */

static inline plumb_generation *new_generation(int64_t most_tokens) {
    plumb_generation *g = plumb__generation_create();
    if (!g) exit(1);
    g->sampling.temperature = 0;
    g->most_tokens = most_tokens;
    g->logprobs = true;
    return g;
}

static inline plumb_generation *chat(const char *messages, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->messages = strdup(messages);
    return g;
}

static inline plumb_generation *ask(const char *question, int64_t most_tokens) {
    char messages[MOST_TEXT];
    (void)snprintf(messages, sizeof messages, "[{\"role\": \"user\", \"content\": \"%s\"}]", question);
    return chat(messages, most_tokens);
}

static inline plumb_generation *continue_text(const char *prompt, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->prompt = strdup(prompt);
    g->prompt_size = strlen(prompt);
    return g;
}

/* `count` ids, others for each seed from the place `same` on. */
static inline plumb_generation *continue_ids(int64_t count, int64_t same, int32_t seed, int64_t most_tokens) {
    plumb_generation *g = new_generation(most_tokens);
    g->ids.ids = malloc((size_t)count * sizeof *g->ids.ids);
    if (!g->ids.ids) exit(1);
    g->ids.count = g->ids.capacity = count;
    for (int32_t i = 0; i < count; i++)
        g->ids.ids[i] = i == 0 ? 0 : 300 + (i * 37 + i / 5 + (i < same ? 0 : seed * 11)) % 3000;
    return g;
}

static inline plumb_generation *with_seed(plumb_generation *g, uint64_t seed) {
    g->sampling.temperature = 1;
    g->sampling.top_p = 1;
    g->sampling.seed = seed;
    g->seed_given = true;
    return g;
}

/* ---- What it should have been: one session, by hand ---------------------------------------------- */

static inline void encode(const plumb_generation *g, plumb_tokens *prompt) {
    plumb_error err;
    if (g->messages) {
        const plumb_chat_options options = {.thinking = g->thinking, .effort = g->effort,
                                            .keep_reasoning = g->keep_reasoning};
        must(plumb_chat_encode(text, g->messages, &options, prompt, &err), &err, "chat");
        return;
    }
    prompt->capacity = 1 + (int64_t)g->prompt_size + g->ids.count;
    prompt->ids = malloc((size_t)prompt->capacity * sizeof *prompt->ids);
    if (!prompt->ids) exit(1);
    prompt->ids[prompt->count++] = (int32_t)info.bos_id;
    if (g->prompt)
        must(plumb_text_encode(text, g->prompt, g->prompt_size, false, prompt, &err), &err, "text");
    else
        memcpy(prompt->ids, g->ids.ids, (size_t)(prompt->count = g->ids.count) * sizeof *prompt->ids);
}

/* Checks tokens and log-probabilities of a run, bit for bit; returns how long the prompt was. */
static inline int64_t check_by_hand(const plumb_generation *g, const client_run *r, uint64_t seed) {
    plumb_session *session = NULL;
    plumb_tokens prompt = {0};
    plumb_sampling sampling = g->sampling;
    const float *logits = NULL;
    plumb_error err;
    sampling.seed = seed;
    encode(g, &prompt);
    must(plumb_session_create(model, NULL, &session, &err), &err, "session");
    must(plumb_session_eval(session, prompt.ids, prompt.count, &logits, &err), &err, "prompt");
    for (int i = 0; i < r->n_tokens; i++) {
        plumb_logprob chosen;
        int32_t token;
        must(plumb_sample(logits, info.vocab_size, &sampling, prompt.count + i, &token, &chosen, NULL, 0, &err),
             &err, "sample");
        T_CHECK(r->token[i].id == token, "token %d: %d, not %d", i, (int)r->token[i].id, (int)token);
        T_CHECK(!memcmp(&r->token[i].logprob, &chosen.logprob, sizeof chosen.logprob), "token %d: %g, not %g", i,
                (double)r->token[i].logprob, (double)chosen.logprob);
        if (i + 1 < r->n_tokens) must(plumb_session_eval(session, &token, 1, &logits, &err), &err, "token");
    }
    int64_t count = prompt.count;
    plumb_tokens_free(&prompt);
    plumb_session_destroy(session);
    return count;
}

#endif
