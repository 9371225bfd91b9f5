/* What `plumb inspect --json` prints. */
#include "cli/inspection.h"

#include "cli/json_report.h"
#include "cli/output.h"

/* A failed allocation leaves a NULL, which jansson's setters refuse: `ok` ends up false. */
typedef struct json_maker {
    bool ok;
} json_maker;

static void put(json_maker *m, json_t *object, const char *key, json_t *value) {
    m->ok &= json_object_set_new(object, key, value) == 0;
}

static void put_integer(json_maker *m, json_t *object, const char *key, int64_t value) {
    put(m, object, key, json_integer(value));
}

static json_t *tally_json(json_maker *m, const cli_tally *tally) {
    json_t *object = json_object();
    put_integer(m, object, "tensors", tally->tensors);
    put_integer(m, object, "parameters", tally->parameters);
    put_integer(m, object, "bytes", tally->bytes);
    return object;
}

static json_t *config_json(json_maker *m, const plumb_model_config *c) {
    json_t *object = json_object(), *engram = json_array();
    put_integer(m, object, "layers", c->layers);
    put_integer(m, object, "hidden", c->hidden);
    put_integer(m, object, "heads", c->heads);
    put_integer(m, object, "head_dim", c->head_dim);
    put_integer(m, object, "window", c->window);
    put_integer(m, object, "vocabulary", c->vocab);
    put_integer(m, object, "folded_vocabulary", c->engram_folded_vocab);
    put_integer(m, object, "max_positions", c->max_positions);
    put_integer(m, object, "experts", c->experts);
    put_integer(m, object, "experts_per_token", c->experts_per_token);
    put_integer(m, object, "expert_width", c->inter);
    put_integer(m, object, "candidate_source", c->candidate_source);
    put_integer(m, object, "draft_stages", c->draft_stages);
    put_integer(m, object, "vision_layers", c->vision.layers);
    for (int64_t i = 0; i < c->engram_layers; i++) {
        json_t *table = json_object();
        put_integer(m, table, "layer", c->engram_layer[i]);
        put_integer(m, table, "rows", c->engram_rows[i]);
        put_integer(m, table, "dim", c->engram_dim);
        m->ok &= json_array_append_new(engram, table) == 0;
    }
    put(m, object, "engram", engram);
    return object;
}

static json_t *revision_json(json_maker *m, const plumb_revision *revision) {
    json_t *object = json_object();
    put(m, object, "name", json_string(plumb__release_name(revision->release)));
    put(m, object, "evidence", json_string(revision->words));
    put(m, object, "config_sha256", json_string(revision->config_sha256));
    return object;
}

static json_t *layers_json(json_maker *m, const plumb_model_config *config) {
    json_t *array = json_array();
    for (int64_t layer = 0; layer < config->layers; layer++) {
        json_t *object = json_object();
        put_integer(m, object, "ratio", config->ratio[layer]);
        put_integer(m, object, "kv_source", config->kv_source[layer]);
        put_integer(m, object, "index_source", config->index_source[layer]);
        m->ok &= json_array_append_new(array, object) == 0;
    }
    return array;
}

static json_t *tensors_json(json_maker *m, const plumb_checkpoint *checkpoint) {
    json_t *array = json_array();
    int64_t count = plumb__checkpoint_count(checkpoint);
    for (int64_t i = 0; i < count && m->ok; i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        json_t *object = json_object(), *shape = json_array();
        for (int d = 0; d < t->rank; d++)
            m->ok &= json_array_append_new(shape, json_integer(t->shape[d])) == 0;
        put(m, object, "name", json_string(t->name));
        put(m, object, "dtype", json_string(plumb__dtype_name(t->dtype)));
        put(m, object, "shape", shape);
        put(m, object, "stored", json_string(plumb__stored_form_name(t->stored)));
        put(m, object, "class", json_string(plumb__tensor_class_name(t->tensor_class)));
        put_integer(m, object, "shard", t->shard);
        put_integer(m, object, "offset", t->offset);
        put_integer(m, object, "bytes", t->bytes);
        m->ok &= json_array_append_new(array, object) == 0;
    }
    return array;
}

static json_t *stored_json(json_maker *m, const cli_stored *stored) {
    json_t *object = json_object(), *matrices = json_object();
    put_integer(m, object, "tensors", stored->tensors);
    put_integer(m, object, "bytes", stored->file_bytes);
    for (int i = 0; i < PLUMB_DENSE_COUNT; i++)
        put_integer(m, matrices, plumb__dense_name(i), stored->matrices[i]);
    put(m, object, "dense_matrices", matrices);
    return object;
}

static json_t *digests_json(json_maker *m, const cli_digests *digests) {
    static const char *const states[CLI_DIGEST_STATES] = {
        [CLI_DIGESTS_NONE] = "none",           [CLI_DIGESTS_INTACT] = "intact",
        [CLI_DIGESTS_UNCHANGED] = "unchanged",
        [CLI_DIGESTS_CHANGED] = "changed",     [CLI_DIGESTS_UNUSABLE] = "unusable"};
    json_t *object = json_object();
    put(m, object, "state", json_string(states[digests->state]));
    put(m, object, "words", cli_json_text(digests->words));
    return object;
}

static json_t *report_json(json_maker *m, const cli_options *options,
                           const plumb_checkpoint *checkpoint, const cli_inspection *found) {
    const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
    json_t *report = json_object(), *classes = json_object(), *dtypes = json_object();
    put(m, report, "model", cli_json_text(plumb__checkpoint_path(checkpoint)));
    put(m, report, "digests", digests_json(m, &found->digests));
    if (found->stored.tensors > 0) put(m, report, "converted", stored_json(m, &found->stored));
    put(m, report, "release", revision_json(m, &found->revision));
    put(m, report, "config", config_json(m, config));
    put(m, report, "layers", layers_json(m, config));
    for (int i = 0; i < PLUMB_CLASS_COUNT; i++)
        put(m, classes, plumb__tensor_class_name(i), tally_json(m, &found->classes[i]));
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++)
        put(m, dtypes, plumb__dtype_name(i), tally_json(m, &found->dtypes[i]));
    put(m, report, "classes", classes);
    put(m, report, "dtypes", dtypes);
    put(m, report, "all", tally_json(m, &found->total));
    put_integer(m, report, "shards", plumb__checkpoint_shards(checkpoint));
    put_integer(m, report, "resident_bytes", found->resident_bytes);
    put(m, report, "draft", json_boolean(found->has_draft));
    put(m, report, "vision", json_boolean(found->has_vision));
    put(m, report, "tokenizer", json_boolean(found->has_tokenizer));
    put(m, report, "token_map", json_boolean(found->has_token_map));
    if (options->list_tensors) put(m, report, "tensors", tensors_json(m, checkpoint));
    return report;
}

int cli_inspection_print_json(const cli_options *options, const plumb_checkpoint *checkpoint,
                      const cli_inspection *found) {
    json_maker maker = {.ok = true};
    json_t *report = report_json(&maker, options, checkpoint, found);
    if (maker.ok) {
        cli_json_print(report, 15);
    } else {
        cli_complain(options, "no memory for the report");
    }
    json_decref(report);
    return maker.ok ? CLI_OK : CLI_FAILED;
}
