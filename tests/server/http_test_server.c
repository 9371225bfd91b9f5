/* A server for hostile clients: a test's own requests say what it does with others.  It prints a line for
 * each thing that happens: "port N", "request METHOD PATH", "gone NAME", "stopped".
 *
 *   /echo           the body, and as headers what was understood of the request
 *   /big/N          N bytes
 *   /hold/NAME      no answer until one is asked for
 *   /tell/NAME      the body is what to do with that one: "whole TEXT", "begin", "piece TEXT", "flood N",
 *                   "end", "thread TEXT" (as whole, from another thread), "unsent" (tells bytes)
 *   /figures        "CONNECTIONS EXCHANGES"
 *   /close-door     from now on 503
 *   /stop */
#include "server/http.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct held {
    struct held *next;
    char *name, *text;
    plumb_http_exchange *exchange;
    plumb_http *http;
    pthread_t thread;
} held;

typedef struct test_server {
    plumb_http *http;
    held *held;
} test_server;

static void answer(plumb_http_exchange *exchange, int status, const char *bytes, size_t size) {
    plumb__http_begin(exchange, status, "text/plain", false);
    plumb__http_write(exchange, bytes, size);
    plumb__http_end(exchange);
}

static void answer_text(plumb_http_exchange *exchange, int status, const char *text) {
    answer(exchange, status, text, strlen(text));
}

static void on_gone(void *user) {
    held *one = user;
    printf("gone %s\n", one->name);
    one->exchange = NULL;
}

static void hold(test_server *server, plumb_http_exchange *exchange, const char *name) {
    held *one = calloc(1, sizeof *one);
    if (!one || !(one->name = strdup(name))) {
        free(one);
        answer_text(exchange, 500, "no memory");
        return;
    }
    one->exchange = exchange;
    one->http = server->http;
    one->next = server->held;
    server->held = one;
    plumb__http_on_gone(exchange, on_gone, one);
}

static void flood(plumb_http_exchange *exchange, long long size) {
    char piece[4096];
    memset(piece, 'x', sizeof piece);
    for (; size > 0; size -= (long long)sizeof piece)
        plumb__http_write(exchange, piece, size < (long long)sizeof piece ? (size_t)size : sizeof piece);
}

static void answer_whole(void *user) {
    held *one = user;
    if (one->exchange) answer_text(one->exchange, 200, one->text);
    one->exchange = NULL;
    free(one->text);
    one->text = NULL;
}

static void *call_from_thread(void *user) {
    held *one = user;
    if (!plumb__http_call(one->http, answer_whole, one)) puts("no memory for a call");
    return NULL;
}

/* Does to `one` what `order` says; returns what to tell the teller. */
static const char *tell(held *one, const char *order, char *told, size_t room) {
    plumb_http_exchange *exchange = one->exchange;
    const char *text = strchr(order, ' ');
    text = text ? text + 1 : "";
    if (!strncmp(order, "whole", 5) || !strncmp(order, "thread", 6)) {
        one->text = strdup(text);
        if (!one->text) return "no memory";
        if (*order == 'w') answer_whole(one);
        else if (pthread_create(&one->thread, NULL, call_from_thread, one)) return "no thread";
        else pthread_detach(one->thread);
    } else if (!strncmp(order, "begin", 5)) {
        plumb__http_begin(exchange, 200, "text/event-stream", true);
    } else if (!strncmp(order, "piece", 5)) {
        plumb__http_write(exchange, text, strlen(text));
    } else if (!strncmp(order, "flood", 5)) {
        flood(exchange, atoll(text));
    } else if (!strncmp(order, "end", 3)) {
        one->exchange = NULL;
        plumb__http_end(exchange);
    } else if (!strncmp(order, "unsent", 6)) {
        snprintf(told, room, "%lld", (long long)plumb__http_unsent(exchange));
        return told;
    } else {
        return "unknown order";
    }
    return "done";
}

static void tell_held(test_server *server, plumb_http_exchange *teller, const char *name) {
    size_t size;
    const char *body = plumb__http_body(teller, &size);
    char *order = strndup(body, size), told[32];
    held *one = server->held;
    while (one && strcmp(one->name, name)) one = one->next;
    if (!order) answer_text(teller, 500, "no memory");
    else if (!one || !one->exchange) answer_text(teller, 404, "not held");
    else answer_text(teller, 200, tell(one, order, told, sizeof told));
    free(order);
}

static void echo(plumb_http_exchange *exchange) {
    size_t size;
    const char *body = plumb__http_body(exchange, &size);
    const char *value = plumb__http_header(exchange, "X-Value");
    plumb__http_set_header(exchange, "X-Method", plumb__http_method(exchange));
    plumb__http_set_header(exchange, "X-Value", value ? value : "none");
    /* What must not get into a head. */
    if (plumb__http_set_header(exchange, "X-Split", "a\r\nb: c") || plumb__http_set_header(exchange, "a\nb", "c"))
        puts("a header was split");
    answer(exchange, 200, body, size);
}

static void big(plumb_http_exchange *exchange, long long size) {
    plumb__http_begin(exchange, 200, "text/plain", false);
    flood(exchange, size);
    plumb__http_end(exchange);
}

static void figures(test_server *server, plumb_http_exchange *exchange) {
    char text[64];
    snprintf(text, sizeof text, "%d %d", plumb__http_connections(server->http),
             plumb__http_open_exchanges(server->http));
    answer_text(exchange, 200, text);
}

static void on_request(void *user, plumb_http_exchange *exchange) {
    test_server *server = user;
    const char *path = plumb__http_path(exchange);
    printf("request %s %s\n", plumb__http_method(exchange), path);
    if (!strncmp(path, "/hold/", 6)) hold(server, exchange, path + 6);
    else if (!strncmp(path, "/tell/", 6)) tell_held(server, exchange, path + 6);
    else if (!strncmp(path, "/big/", 5)) big(exchange, atoll(path + 5));
    else if (!strcmp(path, "/echo")) echo(exchange);
    else if (!strcmp(path, "/figures")) figures(server, exchange);
    else if (!strcmp(path, "/empty")) answer_text(exchange, 204, "");
    else if (!strcmp(path, "/stop") || !strcmp(path, "/close-door")) {
        if (path[1] == 's') plumb__http_stop(server->http);
        else plumb__http_close_door(server->http);
        answer_text(exchange, 200, "done");
    } else {
        answer_text(exchange, 404, path);
    }
}

/* Ends the program when whoever drives it has died: a request is then missing on its standard input. */
static void *watch_parent(void *user) {
    while (getchar() != EOF) continue;
    plumb__http_stop(user);
    return NULL;
}

static int count(const char *text) { return text ? atoi(text) : 0; }

/* HEADER_BYTES BODY_BYTES CONNECTIONS REQUEST_SECONDS IDLE_SECONDS STALLED_SECONDS: 0 for the default. */
int main(int argc, char **argv) {
    if (argc != 7) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_server server = {0};
    plumb_http_options options = {.host = "127.0.0.1", .most_header_bytes = count(argv[1]),
                                  .most_body_bytes = count(argv[2]), .most_connections = count(argv[3]),
                                  .request_seconds = count(argv[4]), .idle_seconds = count(argv[5]),
                                  .stalled_seconds = count(argv[6]), .request = on_request, .user = &server};
    plumb_error err = {0};
    if (plumb__http_create(&options, &server.http, &err) != PLUMB_OK) {
        printf("%s: %s\n", err.file, err.found);
        return 1;
    }
    printf("port %d\n", plumb__http_port(server.http));
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch_parent, server.http)) return 1;
    plumb_status status = plumb__http_run(server.http, &err);
    pthread_join(watcher, NULL);
    plumb__http_destroy(server.http);
    for (held *one = server.held, *next; one; one = next) {
        next = one->next;
        free(one->text);
        free(one->name);
        free(one);
    }
    puts("stopped");
    return status != PLUMB_OK;
}
