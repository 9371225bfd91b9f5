/* The server's loop: what may be asked of it from other threads, and timers.
 *
 * Libevent is used without its locks: all of it belongs to the loop's thread.  Other threads append to a list
 * of jobs under a mutex and write a byte to a socket that the loop watches. */
#include "server/http_parts.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DEFAULT_HEADER_BYTES = 64 << 10,
    DEFAULT_BODY_BYTES = 64 << 20,
    LARGEST_BYTES = 1 << 30, /* of either */
    DEFAULT_CONNECTIONS = 4096,
    SPARE_FILES = 64, /* model files, sessions, logs */
    DEFAULT_REQUEST_SECONDS = 60,
    DEFAULT_IDLE_SECONDS = 120,
    DEFAULT_STALLED_SECONDS = 60
};

struct plumb_http_job {
    plumb_http_job *next;
    void (*call)(void *user);
    void *user;
};

struct plumb_http_clock {
    plumb_http_clock *next;
    struct event *event;
    void (*tick)(void *user);
    void *user;
};

/* ---- Other threads ---- */

static void wake(plumb_http *http) {
    ssize_t sent;
    do sent = send(http->wake[1], "", 1, 0);
    while (sent < 0 && errno == EINTR); /* a full socket wakes as well */
}

bool plumb__http_call(plumb_http *http, void (*call)(void *user), void *user) {
    plumb_http_job *job = malloc(sizeof *job);
    if (!job) return false;
    *job = (plumb_http_job){.call = call, .user = user};
    pthread_mutex_lock(&http->mutex);
    *http->last_job = job;
    http->last_job = &job->next;
    pthread_mutex_unlock(&http->mutex);
    wake(http);
    return true;
}

void plumb__http_stop(plumb_http *http) {
    atomic_store(&http->stop, true);
    wake(http);
}

static plumb_http_job *take_jobs(plumb_http *http) {
    pthread_mutex_lock(&http->mutex);
    plumb_http_job *jobs = http->jobs;
    http->jobs = NULL;
    http->last_job = &http->jobs;
    pthread_mutex_unlock(&http->mutex);
    return jobs;
}

/* Empties the socket first: a job that comes later writes to it again. */
static void on_woken(evutil_socket_t socket, short what, void *user) {
    (void)what;
    plumb_http *http = user;
    char bytes[256];
    while (recv(socket, bytes, sizeof bytes, 0) > 0) continue;
    bool stop = atomic_load(&http->stop); /* what was asked before it is done */
    for (plumb_http_job *job = take_jobs(http), *next; job; job = next) {
        next = job->next;
        job->call(job->user);
        free(job);
    }
    if (stop) event_base_loopbreak(http->base);
}

/* ---- Timers ---- */

static void on_tick(evutil_socket_t socket, short what, void *user) {
    (void)socket;
    (void)what;
    plumb_http_clock *clock = user;
    clock->tick(clock->user);
}

plumb_status plumb__http_every(plumb_http *http, int milliseconds, void (*tick)(void *user), void *user,
                               plumb_error *err) {
    const struct timeval period = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
    plumb_http_clock *clock = calloc(1, sizeof *clock);
    if (!clock) return plumb__fail_memory(err, "a timer", sizeof *clock);
    *clock = (plumb_http_clock){.tick = tick, .user = user, .next = http->clocks};
    clock->event = event_new(http->base, -1, EV_PERSIST, on_tick, clock);
    if (!clock->event || event_add(clock->event, &period)) {
        if (clock->event) event_free(clock->event);
        free(clock);
        return plumb__fail_memory(err, "a timer", sizeof *clock);
    }
    http->clocks = clock;
    return PLUMB_OK;
}

/* ---- The loop ---- */

/* A client that hangs up must not end the process: libevent writes without MSG_NOSIGNAL.  A SIGPIPE that came
 * meanwhile is taken away with the mask, unless the caller blocks it too. */
static bool block_sigpipe(sigset_t *before) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    return !pthread_sigmask(SIG_BLOCK, &blocked, before) && !sigismember(before, SIGPIPE);
}

static void unblock_sigpipe(const sigset_t *before) {
    sigset_t pending, blocked;
    sigemptyset(&pending);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    int taken;
    if (!sigpending(&pending) && sigismember(&pending, SIGPIPE)) sigwait(&blocked, &taken);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

plumb_status plumb__http_run(plumb_http *http, plumb_error *err) {
    sigset_t before;
    bool blocked = block_sigpipe(&before);
    int result = event_base_loop(http->base, EVLOOP_NO_EXIT_ON_EMPTY);
    if (blocked) unblock_sigpipe(&before);
    return result < 0 ? plumb__fail(err, PLUMB_ERROR_IO, NULL, "event loop", -1, strerror(errno), NULL) : PLUMB_OK;
}

int plumb__http_port(const plumb_http *http) { return http->port; }
void plumb__http_close_door(plumb_http *http) { http->door_closed = true; }
int plumb__http_open_exchanges(const plumb_http *http) { return http->n_exchanges; }
int plumb__http_connections(const plumb_http *http) { return http->n_connections; }

/* ---- Beginning and end ---- */

static int64_t given_or(int64_t value, int64_t standard, int64_t most) {
    if (value <= 0) value = standard;
    return value < most ? value : most;
}

/* What the process may open, less what else it needs. */
static int64_t most_sockets(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == RLIM_INFINITY) return INT32_MAX;
    int64_t most = files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur;
    return most > 2 * SPARE_FILES ? most - SPARE_FILES : SPARE_FILES;
}

static void fill_options(plumb_http *http) {
    plumb_http_options *options = &http->options;
    http->limits.most_header_bytes =
        (size_t)given_or(options->most_header_bytes, DEFAULT_HEADER_BYTES, LARGEST_BYTES);
    http->limits.most_body_bytes = (size_t)given_or(options->most_body_bytes, DEFAULT_BODY_BYTES, LARGEST_BYTES);
    options->most_connections = (int)given_or(options->most_connections, DEFAULT_CONNECTIONS, most_sockets());
    options->request_seconds = (int)given_or(options->request_seconds, DEFAULT_REQUEST_SECONDS, INT32_MAX);
    options->idle_seconds = (int)given_or(options->idle_seconds, DEFAULT_IDLE_SECONDS, INT32_MAX);
    options->stalled_seconds = (int)given_or(options->stalled_seconds, DEFAULT_STALLED_SECONDS, INT32_MAX);
}

static plumb_status open_wake(plumb_http *http, plumb_error *err) {
    if (evutil_socketpair(AF_UNIX, SOCK_STREAM, 0, http->wake))
        return plumb__fail(err, PLUMB_ERROR_IO, NULL, "event loop", -1, strerror(errno), "a pair of sockets");
    for (int i = 0; i < 2; i++) {
        evutil_make_socket_nonblocking(http->wake[i]);
        evutil_make_socket_closeonexec(http->wake[i]);
    }
    http->woken = event_new(http->base, http->wake[0], EV_READ | EV_PERSIST, on_woken, http);
    if (!http->woken || event_add(http->woken, NULL)) return plumb__fail_memory(err, "the event loop", 0);
    return PLUMB_OK;
}

static plumb_status open_evhttp(plumb_http *http, plumb_error *err) {
    http->base = event_base_new();
    http->evhttp = http->base ? evhttp_new(http->base) : NULL;
    if (!http->evhttp) return plumb__fail_memory(err, "the event loop", 0);
    evhttp_set_bevcb(http->evhttp, plumb__http_connection_open, http);
    evhttp_set_gencb(http->evhttp, plumb__http_exchange_begin, http);
    evhttp_set_allowed_methods(http->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
                                                 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_default_content_type(http->evhttp, NULL);
    return PLUMB_OK;
}

plumb_status plumb__http_create(const plumb_http_options *options, plumb_http **out, plumb_error *err) {
    *out = NULL;
    plumb_http *http = calloc(1, sizeof *http);
    if (!http) return plumb__fail_memory(err, "a server", sizeof *http);
    http->options = *options;
    http->last_job = &http->jobs;
    http->wake[0] = http->wake[1] = -1;
    pthread_mutex_init(&http->mutex, NULL);
    fill_options(http);
    plumb_status status = open_evhttp(http, err);
    if (status == PLUMB_OK) status = open_wake(http, err);
    if (status == PLUMB_OK) status = plumb__http_listen(http, err);
    if (status == PLUMB_OK) *out = http;
    else plumb__http_destroy(http);
    return status;
}

void plumb__http_destroy(plumb_http *http) {
    if (!http) return;
    http->listener = NULL; /* evhttp frees it; none is accepted in between */
    if (http->evhttp) evhttp_free(http->evhttp);
    plumb__http_connections_release(http);
    for (plumb_http_clock *clock = http->clocks, *next; clock; clock = next) {
        next = clock->next;
        event_free(clock->event);
        free(clock);
    }
    for (plumb_http_job *job = take_jobs(http), *next; job; job = next) {
        next = job->next;
        free(job);
    }
    if (http->woken) event_free(http->woken);
    for (int i = 0; i < 2; i++) {
        if (http->wake[i] >= 0) close(http->wake[i]);
    }
    if (http->base) event_base_free(http->base);
    pthread_mutex_destroy(&http->mutex);
    free(http);
}
