/* A loaded model: the public face of checkpoint, backend, weight source and network. */
#include "engine/engine.h"

#include "arith/float_env.h"
#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "base/machine.h"
#include "text/token_map.h"

#include <stdlib.h>

static void log_line(const plumb_model_options *options, plumb_log_level level, const char *line) {
    if (options->log) options->log(options->log_user, level, line);
}

/* All weights of the backbone end up in memory: refuse at start what cannot. */
static plumb_status check_memory(const plumb_checkpoint *checkpoint, plumb_error *err) {
    int64_t needed = 0, memory = plumb__machine_memory_bytes();
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (t->tensor_class == PLUMB_CLASS_HEAD || t->tensor_class == PLUMB_CLASS_DENSE ||
            t->tensor_class == PLUMB_CLASS_EXPERT)
            needed += t->bytes;
    }
    if (memory == 0 || needed <= memory) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, plumb__checkpoint_folder(checkpoint),
                       "resident weights", -1,
                       plumb__format("%.1f GB", (double)needed / 1e9).s,
                       "at most this machine's %.1f GB (experts are kept in memory)",
                       (double)memory / 1e9);
}

static plumb_status open_parts(plumb_model *model, const plumb_model_options *options,
                               plumb_error *err) {
    plumb_status status = plumb__checkpoint_open(model->path, options->log, options->log_user,
                                                 &model->checkpoint, err);
    if (status != PLUMB_OK) return status;
    const plumb_model_config *config = plumb__checkpoint_config(model->checkpoint);
    status = check_memory(model->checkpoint, err);
    if (status == PLUMB_OK)
        status = plumb__token_map_load(model->path, config->vocab, config->engram_folded_vocab,
                                       config->image_id, &model->token_map, err);
    const char *level = plumb__machine_level_from_environment();
    if (status == PLUMB_OK)
        status = plumb__cpu_backend_create(model->threads, level ? level : options->cpu_level,
                                           &model->backend, &model->cpu_level, err);
    if (status == PLUMB_OK) status = plumb__source_open(model->checkpoint, &model->source, err);
    if (status == PLUMB_OK)
        status = plumb__network_open(model->checkpoint, model->backend, model->source,
                                     model->token_map, &model->network, err);
    return status;
}

plumb_status plumb_model_open(const char *path, const plumb_model_options *options,
                              plumb_model **out, plumb_error *err) {
    static const plumb_model_options defaults = {0};
    if (!options) options = &defaults;
    if (!path || options->threads < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, path ? "threads" : "path", -1,
                           path ? plumb__format("%d", options->threads).s : "NULL",
                           path ? "0 or more" : "a folder");
    plumb_model *model = calloc(1, sizeof *model);
    if (!model) return plumb__fail_memory(err, "model", sizeof *model);
    pthread_mutex_init(&model->lock, NULL);
    model->threads = options->threads ? options->threads : plumb__machine_cores();
    model->path = strdup(path);
    /* Numbers of the config and rotary tables are rounded too: not in the caller's mode. */
    uint64_t modes;
    plumb__float_env_enter(&modes);
    plumb_status status = model->path ? open_parts(model, options, err)
                                      : plumb__fail_memory(err, "path", strlen(path));
    plumb__float_env_leave(modes);
    if (status != PLUMB_OK) {
        plumb_model_close(model);
        return status;
    }
    log_line(options, PLUMB_LOG_INFO,
             plumb__format("cpu: %s kernels, %d threads", model->cpu_level, model->threads).s);
    *out = model;
    return PLUMB_OK;
}

void plumb_model_close(plumb_model *model) {
    if (!model) return;
    plumb__network_close(&model->network);
    plumb__source_close(model->source);
    if (model->backend) model->backend->ops->close(model->backend);
    free(model->token_map);
    plumb__checkpoint_close(model->checkpoint);
    free(model->path);
    pthread_mutex_destroy(&model->lock);
    free(model);
}

void plumb_model_get_info(const plumb_model *model, plumb_model_info *info) {
    const plumb_model_config *c = model->network.config;
    *info = (plumb_model_info){
        .vocab_size = c->vocab, .hidden_size = c->hidden, .layers = c->layers,
        .experts = c->experts, .experts_per_token = c->experts_per_token,
        .max_positions = c->max_positions, .bos_id = c->bos_id, .eos_id = c->eos_id,
        .resident_bytes =
            model->network.weights.bytes + plumb__source_resident_bytes(model->source),
        .threads = model->threads, .cpu_level = model->cpu_level, .path = model->path};
}
