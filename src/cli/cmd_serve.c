/* plumb serve: the model over HTTP, until Ctrl-C. */
#include "cli/commands.h"

#include "cli/chat_sessions.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/runtime.h"
#include "server/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct serving {
    cli_runtime runtime;
    char *api_keys; /* NULL: none */
    char id[256];   /* of the model, where it is made of its path */
    plumb_server *server;
    plumb_server_wish wish;
} serving;

enum {
    DEFAULT_CONTEXT = 131072,
    QUANTUM = 256
};

/* The first Ctrl-C finishes what runs, the second does not wait. */
static plumb_server_wish wish(void *user) {
    serving *s = user;
    if (!cli_interrupted()) return s->wish;
    if (!cli_asked_to_end() || s->wish == PLUMB_SERVER_GO_ON)
        s->wish = s->wish == PLUMB_SERVER_GO_ON ? PLUMB_SERVER_STOP : PLUMB_SERVER_STOP_NOW;
    cli_interrupt_clear();
    return s->wish;
}

/* What editors leave and no header can hold: a mark of UTF-8 before all, blanks around a key, empty lines. */
static void tidy_keys(char *keys) {
    static const char mark[] = "\xEF\xBB\xBF";
    const char *from = keys + (strncmp(keys, mark, strlen(mark)) == 0 ? strlen(mark) : 0);
    char *to = keys;
    for (from += strspn(from, " \t\r\n"); *from; from += strspn(from, " \t\r\n")) {
        size_t size = strcspn(from, "\r\n"), kept = size;
        while (from[kept - 1] == ' ' || from[kept - 1] == '\t') kept--;
        if (to > keys) *to++ = '\n';
        memmove(to, from, kept);
        to += kept;
        from += size;
    }
    *to = '\0';
}

/* A file without a key would let nobody in. */
static int read_keys(serving *s) {
    const cli_options *options = s->runtime.options;
    if (!options->api_key) return CLI_OK;
    size_t size;
    plumb_error err = {0};
    if (cli_read_file(options->api_key, &s->api_keys, &size, &err) != PLUMB_OK)
        return cli_report(options, &err);
    bool has_nul = strlen(s->api_keys) != size;
    tidy_keys(s->api_keys);
    if (!has_nul && s->api_keys[0]) return CLI_OK;
    cli_complain(options, "--api-key: found %s in %s, expected a key on a line", has_nul ? "a NUL byte" : "nothing",
                 options->api_key);
    return CLI_FAILED;
}

/* As browsers write an origin: with a path, or only a slash, behind it none would ever fit. */
static bool check_origin(const cli_options *options) {
    if (!options->cors || strcmp(options->cors, "*") == 0) return true;
    const char *mark = strstr(options->cors, "://");
    if (mark && mark > options->cors && mark[3] != '\0' && !strpbrk(mark + 3, "/?#@ ")) return true;
    cli_complain(options, "--cors: found '%s', expected * or an origin such as https://example.org", options->cors);
    return false;
}

/* The last part of the path, as clients will call it. */
static const char *model_id(const cli_options *options, const plumb_model_info *info, char *id, size_t size) {
    if (options->model_name) return options->model_name;
    if (!options->model) return "plumb-demo";
    const char *path = info->path, *end = path + strlen(path);
    while (end > path && end[-1] == '/') end--;
    const char *start = end;
    while (start > path && start[-1] != '/') start--;
    snprintf(id, size, "%.*s", (int)(end - start), start);
    return id[0] ? id : "model";
}

static int64_t context_of(const cli_options *options, const plumb_model_info *info) {
    if (options->context > 0) return options->context;
    return info->max_positions < DEFAULT_CONTEXT ? info->max_positions : DEFAULT_CONTEXT;
}

static int create(serving *s) {
    const cli_options *o = s->runtime.options;
    const plumb_model_info *info = &s->runtime.info;
    const plumb_server_options options = {
        .model = s->runtime.model, .text = s->runtime.text, .model_id = model_id(o, info, s->id, sizeof s->id),
        .host = o->host, .port = (int)o->port, .api_keys = s->api_keys, .cors_origin = o->cors,
        .slots = (int)o->parallel, .most_waiting = (int)o->queue, .context = context_of(o, info),
        .quantum = o->chunk > 0 ? o->chunk : QUANTUM, .session_dir = o->session_dir,
        .session_dir_size = o->session_dir_size, .session_dir_daily = o->session_dir_daily,
        .sampling = &s->runtime.sampling, .thinking = !o->nothink && o->think_level > 0,
        .effort = (int)o->think_level, .keep_alive_seconds = (int)o->keep_alive, .wish = wish, .user = s,
        .log = cli_log, .log_user = (void *)(uintptr_t)o};
    plumb_error err = {0};
    return plumb__server_create(&options, &s->server, &err) == PLUMB_OK ? CLI_OK : cli_report(o, &err);
}

static void announce(serving *s) {
    const cli_options *o = s->runtime.options;
    const plumb_model_info *info = &s->runtime.info;
    const char *left = strchr(o->host, ':') ? "[" : "", *right = *left ? "]" : "";
    cli_complain(o, "%s at http://%s%s%s:%d, up to %s at a time, %lld tokens each",
                 model_id(o, info, s->id, sizeof s->id), left, o->host, right, plumb__server_port(s->server),
                 cli_count(o->parallel, "answer", "answers").text, (long long)context_of(o, info));
    if (!s->api_keys && strcmp(o->host, "127.0.0.1") != 0 && strcmp(o->host, "localhost") != 0 &&
        strcmp(o->host, "::1") != 0)
        cli_complain(o, "anybody who reaches %s may ask; --api-key FILE asks for a key", o->host);
}

int cli_run_serve(const cli_options *options) {
    serving s = {0};
    if (!check_origin(options) || !cli_sessions_check(options)) return CLI_USAGE;
    int status = cli_runtime_open_model(options, true, &s.runtime);
    if (status != CLI_OK) return status;
    (void)signal(SIGPIPE, SIG_IGN); /* clients that go are told of by the writes that fail */
    status = read_keys(&s);
    if (status == CLI_OK) status = create(&s);
    plumb_error err = {0};
    if (status == CLI_OK && cli_runtime_begin(&s.runtime, &err) != PLUMB_OK) status = cli_report(options, &err);
    if (status == CLI_OK) announce(&s); /* signals are caught: whoever reads it may stop the server at once */
    if (status == CLI_OK && plumb__server_run(s.server, &err) != PLUMB_OK) status = cli_report(options, &err);
    plumb__server_destroy(s.server);
    free(s.api_keys);
    return cli_runtime_close(&s.runtime, status);
}
