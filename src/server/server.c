/* The server's life, and which function answers which path. */
#include "server/anthropic.h"
#include "server/server_parts.h"

#include "base/clock.h"
#include "base/error.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    TICK_MILLISECONDS = 100,
    TICKS_A_SECOND = 1000 / TICK_MILLISECONDS,
    DEFAULT_KEEP_ALIVE = 10,
    DEFAULT_PATIENCE = 30,
    LAST_SECONDS = 3, /* for clients to take what is left, when nothing runs any more */
    MOST_RUNS = 16
};

const plumb_api *const plumb__apis[] = {&plumb__openai_chat, &plumb__openai_completions,
                                        &plumb__openai_responses, &plumb__anthropic_messages,
                                        &plumb__anthropic_count_tokens};
const int plumb__n_apis = sizeof plumb__apis / sizeof plumb__apis[0];

/* ---- Routes ---- */

typedef struct route {
    const char *method, *path; /* a path that ends in a slash stands for all below it */
    plumb_endpoint *endpoint;
    bool is_open; /* answered without a key */
} route;

static const route routes[] = {
    {"GET", "/health", plumb__endpoint_health, true},
    {"GET", "/metrics", plumb__endpoint_metrics, false},
    {"GET", "/props", plumb__endpoint_props, false},
    {"GET", "/slots", plumb__endpoint_slots, false},
    {"POST", "/tokenize", plumb__endpoint_tokenize, false},
    {"POST", "/detokenize", plumb__endpoint_detokenize, false},
    {"GET", "/v1/models", plumb__endpoint_models, false},
    {"GET", "/v1/models/", plumb__endpoint_model, false},
    {"GET", "/", plumb__endpoint_page, true},
    {"GET", "/page/", plumb__endpoint_page, true},
};

/* Addresses that are put together by hand often end in a slash more. */
static bool is_at(const char *path, const char *wanted) {
    size_t size = strlen(wanted);
    return strncmp(wanted, path, size) == 0 && (!path[size] || (size > 1 && strcmp(path + size, "/") == 0));
}

static bool fits(const char *pattern, const char *path) {
    size_t size = strlen(pattern);
    if (size > 1 && pattern[size - 1] == '/') return strncmp(pattern, path, size) == 0;
    return is_at(path, pattern);
}

/* What a request is for: a route, or an API by its index. */
typedef struct target {
    const route *route;
    int api;           /* -1: none */
    bool wrong_method; /* the path is known */
} target;

static target find_target(const char *method, const char *path) {
    target found = {.api = -1};
    for (int i = 0; i < plumb__n_apis; i++) {
        if (!is_at(path, plumb__apis[i]->path)) continue;
        found.wrong_method = strcmp(plumb__apis[i]->method, method) != 0;
        found.api = i;
        return found;
    }
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!fits(routes[i].path, path)) continue;
        found.wrong_method = strcmp(routes[i].method, "GET") == 0 ? !is_get : strcmp(routes[i].method, method) != 0;
        found.route = &routes[i];
        return found;
    }
    return found;
}

/* ---- Requests ---- */

static void refuse(plumb_served *s, const target *to, plumb_refusal refusal, const char *message) {
    plumb_api_error error = {.refusal = refusal};
    if (refusal == PLUMB_REFUSAL_UNAUTHORIZED) plumb__http_set_header(s->exchange, "WWW-Authenticate", "Bearer");
    snprintf(error.message, sizeof error.message, "%s", message);
    if (to->api >= 0) plumb__apis[to->api]->refuse(&error, &s->response);
    else if (plumb__http_header(s->exchange, "anthropic-version")) plumb__anthropic_refuse(&error, &s->response);
    else plumb__openai_refuse(&error, &s->response);
    plumb__served_destroy(s);
}

/* The methods of a path, for OPTIONS and for those that come with another (RFC 9110, 10.2.1). */
static void tell_methods(plumb_http_exchange *exchange, const target *to) {
    if (to->api < 0 && !to->route) return;
    const char *method = to->api >= 0 ? plumb__apis[to->api]->method : to->route->method;
    bool is_get = strcmp(method, "GET") == 0;
    (void)plumb__http_set_header(exchange, "Allow", is_get ? "GET, HEAD, OPTIONS" : "POST, OPTIONS");
}

static void answer_preflight(plumb_served *s) {
    plumb__response_text(&s->response, 204, "text/plain", "", 0);
    plumb__served_destroy(s);
}

static void on_request(void *user, plumb_http_exchange *exchange) {
    plumb_server *server = user;
    plumb_served *s = plumb__served_create(server, exchange);
    if (!s) {
        plumb__http_begin(exchange, 500, "text/plain", false);
        plumb__http_end(exchange);
        return;
    }
    server->requests++;
    const char *method = plumb__http_method(exchange);
    const target to = find_target(method, plumb__http_path(exchange));
    plumb__access_set_headers(server, exchange);
    if (to.wrong_method) tell_methods(exchange, &to);
    if (plumb__access_is_foreign(server, exchange))
        refuse(s, &to, PLUMB_REFUSAL_FORBIDDEN,
               "this page or name may not ask; --cors allows an origin, --api-key any name");
    else if (strcmp(method, "OPTIONS") == 0)
        answer_preflight(s);
    else if (!(to.route && to.route->is_open) && !plumb__access_has_key(server, exchange))
        refuse(s, &to, PLUMB_REFUSAL_UNAUTHORIZED, "no valid API key was given");
    else if (to.wrong_method)
        refuse(s, &to, PLUMB_REFUSAL_METHOD, "this path does not take this method");
    else if (to.api >= 0)
        plumb__served_generate(s, to.api);
    else if (!to.route)
        refuse(s, &to, PLUMB_REFUSAL_NOT_FOUND, "there is nothing at this path");
    else {
        to.route->endpoint(server, exchange, &s->response);
        plumb__served_destroy(s);
    }
}

/* ---- What APIs are given ---- */

static int64_t now(void *user) {
    (void)user;
    return (int64_t)time(NULL);
}

/* 36^24 possibilities: nobody guesses another's. */
static void new_id(void *user, const char *prefix, char *id) {
    static const char symbols[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    (void)user;
    size_t at = (size_t)snprintf(id, 40, "%s", prefix);
    if (at > 39) at = 39;
    for (int kept = 0; kept < 24;) {
        uint8_t bytes[32];
        if (getentropy(bytes, sizeof bytes) != 0) continue; /* it does not do without */
        for (size_t i = 0; i < sizeof bytes && kept < 24; i++)
            if (bytes[i] < 252) id[at + (size_t)kept++] = symbols[bytes[i] % 36]; /* each as often */
    }
    id[at + 24] = '\0';
}

static plumb_status encode(void *user, const plumb_generation *generation, plumb_tokens *tokens, plumb_error *err) {
    const plumb_server *server = user;
    return plumb__scheduler_encode(server->scheduler, generation, tokens, err);
}

static void deliver(void *user) {
    plumb_server *server = user;
    if (server->scheduler) plumb__scheduler_deliver(server->scheduler);
}

static void wake(void *user) {
    plumb_server *server = user;
    (void)plumb__http_call(server->http, deliver, server);
}

void plumb__server_log(const plumb_server *server, plumb_log_level level, const char *format, ...) {
    if (!server->options.log) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    server->options.log(server->options.log_user, level, line);
}

/* ---- Stopping ---- */

/* Ends what runs.  A client that takes its answer slowly, or not at all, is not waited for much longer. */
static void cancel_all(plumb_server *server) {
    static const plumb_api_error stopping = {.refusal = PLUMB_REFUSAL_STOPPING, .message = "the server is stopping"};
    while (server->first) plumb__served_cancel(server->first, &stopping);
    if (server->cut_at == 0) server->cut_at = plumb__now() + LAST_SECONDS;
}

static void begin_stopping(plumb_server *server) {
    server->stopping = true;
    int patience = server->options.patience_seconds;
    server->stop_at = plumb__now() + (patience > 0 ? patience : DEFAULT_PATIENCE);
    plumb__scheduler_close_door(server->scheduler);
    plumb__http_close_door(server->http);
    int running = plumb__http_open_exchanges(server->http);
    if (running > 0)
        plumb__server_log(server, PLUMB_LOG_INFO, "stopping: %d %s being finished", running,
                          running == 1 ? "answer is" : "answers are");
}

static void tick(void *user) {
    plumb_server *server = user;
    plumb_server_wish wish = server->options.wish ? server->options.wish(server->options.user)
                                                  : PLUMB_SERVER_GO_ON;
    plumb__scheduler_deliver(server->scheduler); /* what nobody was woken for: `wake` takes memory */
    for (plumb_served *s = server->first, *next; s; s = next) {
        next = s->next;
        plumb__served_tick(s);
    }
    int seconds = server->options.keep_alive_seconds;
    if (++server->ticks % (TICKS_A_SECOND * (seconds > 0 ? seconds : DEFAULT_KEEP_ALIVE)) == 0)
        for (plumb_served *s = server->first, *next; s; s = next) {
            next = s->next;
            plumb__served_keep_alive(s);
        }
    if (wish != PLUMB_SERVER_GO_ON && !server->stopping) begin_stopping(server);
    if (!server->stopping) return;
    if (wish == PLUMB_SERVER_STOP_NOW || plumb__now() > server->stop_at) cancel_all(server);
    bool cut = server->cut_at > 0 && plumb__now() > server->cut_at;
    if (cut || plumb__http_open_exchanges(server->http) == 0) plumb__http_stop(server->http);
}

/* ---- Life ---- */

static plumb_status create_states(plumb_server *server, plumb_error *err) {
    server->api_state = calloc((size_t)plumb__n_apis, sizeof *server->api_state);
    if (!server->api_state) return plumb__fail_memory(err, "server", 0);
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < plumb__n_apis && status == PLUMB_OK; i++)
        if (plumb__apis[i]->create_state) status = plumb__apis[i]->create_state(&server->api_state[i], err);
    return status;
}

static plumb_status open_parts(plumb_server *server, plumb_error *err) {
    const plumb_server_options *o = &server->options;
    const plumb_http_options http = {.host = o->host, .port = o->port, .most_body_bytes = o->most_body_bytes,
                                     .request = on_request, .user = server};
    plumb_status status = create_states(server, err);
    if (status == PLUMB_OK) status = plumb__http_create(&http, &server->http, err);
    if (status != PLUMB_OK) return status;
    const plumb_scheduler_options scheduler = {
        .model = o->model, .text = o->text, .slots = o->slots, .context = o->context, .quantum = o->quantum,
        .most_waiting = o->most_waiting, .session_dir = o->session_dir,
        .session_dir_size = o->session_dir_size, .session_dir_daily = o->session_dir_daily,
        .new_id = new_id, .wake = wake, .wake_user = server, .log = o->log, .log_user = o->log_user};
    status = plumb__scheduler_create(&scheduler, &server->scheduler, err);
    if (status != PLUMB_OK) return status;
    return plumb__http_every(server->http, TICK_MILLISECONDS, tick, server, err);
}

plumb_status plumb__server_create(const plumb_server_options *options, plumb_server **out, plumb_error *err) {
    plumb_server *server = calloc(1, sizeof *server);
    if (!server) return plumb__fail_memory(err, "server", sizeof *server);
    server->options = *options;
    server->sampling = *options->sampling;
    server->started = now(NULL);
    server->context = (plumb_api_context){
        .model = options->model_id, .text = options->text, .context = options->context,
        .sampling = &server->sampling, .thinking = options->thinking, .effort = options->effort,
        .most_runs = MOST_RUNS, .now = now, .new_id = new_id, .encode = encode, .user = server};
    plumb_status status = open_parts(server, err);
    if (status == PLUMB_OK) *out = server;
    else plumb__server_destroy(server);
    return status;
}

int plumb__server_port(const plumb_server *server) { return plumb__http_port(server->http); }

plumb_status plumb__server_run(plumb_server *server, plumb_error *err) {
    return plumb__http_run(server->http, err);
}

void plumb__server_destroy(plumb_server *server) {
    if (!server) return;
    while (server->first) plumb__served_destroy(server->first);
    plumb__scheduler_destroy(server->scheduler);
    plumb__http_destroy(server->http);
    for (int i = 0; server->api_state && i < plumb__n_apis; i++)
        if (plumb__apis[i]->destroy_state) plumb__apis[i]->destroy_state(server->api_state[i]);
    free(server->api_state);
    free(server);
}
