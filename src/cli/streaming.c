#include "cli/streaming.h"

#include "base/error.h"
#include "cli/files.h"
#include "cli/output.h"
#include "format/model_files.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- The hot list's place ---------------------------------------------------------------------
 * $XDG_CACHE_HOME/plumb/HASH.hot, or ~/.cache/plumb: the hash is of the model's config and index, so
 * that a copy or another path to it finds the same list. */

static void add_file(XXH3_state_t *hash, const char *model, const char *name) {
    char *text;
    int64_t size;
    plumb_error ignored; /* a model may have no index, and opening it will say what is wrong */
    if (plumb__model_file_load(model, name, CLI_MOST_INPUT_BYTES, &text, &size, &ignored) != PLUMB_OK)
        return;
    XXH3_64bits_update(hash, text, (size_t)size);
    free(text);
}

/* "" when there is no place for it. */
static void find_hot_list(const cli_options *options, const char *model, char *path) {
    path[0] = '\0';
    XXH3_state_t *hash = XXH3_createState();
    if (hash == NULL) return;
    XXH3_64bits_reset(hash);
    add_file(hash, model, "config.json");
    add_file(hash, model, "model.safetensors.index.json");
    unsigned long long key = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    /* A relative path means nothing, by the XDG base directory specification. */
    bool xdg = options->cache_home != NULL && options->cache_home[0] == '/';
    const char *root = xdg ? options->cache_home : options->home;
    if (root == NULL) return;
    int length = snprintf(path, CLI_PATH_SIZE, "%s%s/plumb/%016llx.hot", root,
                          xdg ? "" : "/.cache", key);
    if (length < 0 || length >= CLI_PATH_SIZE) path[0] = '\0';
}

/* ---- Options ---------------------------------------------------------------------------------- */

static void on_routes(void *user, int64_t position, int64_t layer, const int32_t *ids, int64_t n) {
    cli_streaming *s = user;
    (void)n;
    if (s->routes.stream == NULL || s->routes_err.status != PLUMB_OK) return;
    plumb_error err;
    if (plumb__route_trace_add(s->routes.stream, s->options->trace_routes, &s->shape, position,
                               layer, 1, ids, &err) != PLUMB_OK)
        s->routes_err = err;
}

plumb_status cli_streaming_prepare(const cli_options *options, const char *model_path,
                                   cli_streaming *s, plumb_model_options *model_options,
                                   plumb_error *err) {
    *s = (cli_streaming){.options = options};
    find_hot_list(options, model_path, s->hot_list);
    model_options->streaming = options->streaming || options->cache_experts.given ||
                               options->cold || options->layer_buffers;
    model_options->memory_bytes = options->cache_experts.bytes;
    model_options->cache_experts = options->cache_experts.count;
    model_options->layer_buffers = options->layer_buffers;
    model_options->cold = options->cold;
    model_options->hot_list = s->hot_list[0] != '\0' ? s->hot_list : NULL;
    if (options->trace_routes == NULL) return PLUMB_OK;
    model_options->routes = on_routes;
    model_options->routes_user = s;
    plumb_status status = cli_new_file_check(options->trace_routes, err);
    if (status == PLUMB_OK)
        status = cli_new_file_check_input(options->trace_routes, options->prompt_file, err);
    if (status == PLUMB_OK)
        status = cli_new_file_check_input(options->trace_routes, options->tokens_file, err);
    return status;
}

plumb_status cli_streaming_begin(cli_streaming *s, plumb_model *model, plumb_error *err) {
    plumb_model_info info;
    plumb_model_get_info(model, &info);
    if (info.streaming && s->hot_list[0] != '\0') cli_make_parents(s->hot_list, 0777);
    if (s->options->trace_routes == NULL) return PLUMB_OK;
    s->shape = (plumb_route_shape){info.layers, info.experts, info.experts_per_token};
    plumb_status status = cli_new_file_open(s->options->trace_routes, &s->routes, err);
    if (status == PLUMB_OK)
        status = plumb__route_trace_begin(s->routes.stream, s->options->trace_routes, &s->shape, err);
    return status;
}

int cli_streaming_end(cli_streaming *s, int status) {
    if (s->routes.stream == NULL || status != CLI_OK) {
        cli_new_file_abandon(&s->routes);
        return status;
    }
    plumb_status written = s->routes_err.status;
    if (written == PLUMB_OK) written = cli_new_file_commit(&s->routes, &s->routes_err);
    cli_new_file_abandon(&s->routes);
    return written == PLUMB_OK ? CLI_OK : cli_report(s->options, &s->routes_err);
}

/* ---- Figures ---------------------------------------------------------------------------------- */

static double per_second(int64_t bytes, double seconds) {
    return seconds > 0 ? (double)bytes / 1e9 / seconds : 0;
}

void cli_streaming_describe(cli_streaming *s, plumb_model *model, char *line, size_t size) {
    plumb_model_info info;
    plumb_model_get_info(model, &info);
    line[0] = '\0';
    if (!info.streaming) return;
    plumb_stream_stats now, was = s->shown;
    plumb_model_get_stream_stats(model, &now);
    s->shown = now;
    int64_t hits = now.hits - was.hits, asked = hits + now.misses - was.misses;
    double unpacked = now.unpack_seconds - was.unpack_seconds;
    char unpacking[48] = "";
    if (unpacked > 0) snprintf(unpacking, sizeof unpacking, ", unpacked for %.1f s", unpacked);
    snprintf(line, size,
             "streaming: %.1f %% of %lld experts were in memory; read %.2f GB at %.2f GB/s, waited "
             "%.1f s%s; ahead %lld useful, %lld wasted; Engram %lld rows, %lld reads; memory %.2f GB",
             asked > 0 ? 100.0 * (double)hits / (double)asked : 0.0, (long long)asked,
             (double)(now.bytes_read - was.bytes_read) / 1e9,
             per_second(now.read_bytes - was.read_bytes, now.read_seconds - was.read_seconds),
             now.wait_seconds - was.wait_seconds, unpacking,
             (long long)(now.ahead_useful - was.ahead_useful),
             (long long)(now.ahead_wasted - was.ahead_wasted),
             (long long)(now.engram_rows - was.engram_rows),
             (long long)(now.engram_reads - was.engram_reads),
             (double)now.peak_memory_bytes / 1e9);
}
