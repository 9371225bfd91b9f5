/* plumb inspect: what a checkpoint is made of.  Reads the config and the headers, no payload. */
#include "cli/commands.h"

#include "base/clean_text.h"
#include "cli/inspection.h"
#include "cli/model_lookup.h"
#include "cli/output.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

/* ---- For people ----------------------------------------------------------------------------- */

static const char *presence(bool present) {
    return present ? "present, not read" : "absent";
}

static void print_engram(const plumb_model_config *config) {
    if (config->engram_layers == 0) {
        cli_print("engram      none\n");
        return;
    }
    cli_print("engram     ");
    for (int64_t i = 0; i < config->engram_layers; i++)
        cli_print("%s layer %" PRId64 ": %s rows", i > 0 ? "," : "", config->engram_layer[i],
                  cli_grouped(config->engram_rows[i]).text);
    cli_print(" of %" PRId64 "; vocabulary folded to %" PRId64 "\n", config->engram_dim,
              config->engram_folded_vocab);
}

static void print_config(const plumb_checkpoint *checkpoint, const cli_inspection *found) {
    const plumb_model_config *c = plumb__checkpoint_config(checkpoint);
    cli_print("model       %s\n", plumb__checkpoint_path(checkpoint));
    cli_print("release     %s: %s\n", plumb__release_name(found->revision.release),
              found->revision.words);
    cli_print("network     %" PRId64 " layers of width %" PRId64 ", %" PRId64 " heads of %" PRId64
              ", window %" PRId64 "\n",
              c->layers, c->hidden, c->heads, c->head_dim, c->window);
    cli_print("vocabulary  %" PRId64 " ids, context %" PRId64 "\n", c->vocab, c->max_positions);
    cli_print("experts     %" PRId64 " a layer of width %" PRId64 ", %" PRId64 " per token, and 1 "
              "shared\n",
              c->experts, c->inter, c->experts_per_token);
    print_engram(c);
    if (c->draft_stages > 0)
        cli_print("draft       %" PRId64 " stages of %" PRId64 " experts, %" PRId64
                  " tokens a step: %s\n",
                  c->draft_stages, c->draft_experts, c->draft_block, presence(found->has_draft));
    else
        cli_print("draft       none\n");
    if (c->vision.layers > 0)
        cli_print("vision      %" PRId64 " layers of width %" PRId64 ": %s\n", c->vision.layers,
                  c->vision.hidden, presence(found->has_vision));
    else
        cli_print("vision      none\n");
    cli_print("tokenizer   %s%s\n", found->has_tokenizer ? "tokenizer.json" : "none",
              found->has_token_map ? ", engram_token_map.i32" : "");
}

static void print_source(int64_t layer) {
    if (layer >= 0)
        cli_print("%10" PRId64, layer);
    else
        cli_print("%10s", "-");
}

static void print_layers(const plumb_model_config *config) {
    cli_print("\n%-12s%10s%10s%10s\n", "layers", "ratio", "KV of", "index of");
    for (int64_t layer = 0; layer < config->layers;) {
        cli_layer_span span = cli_layer_span_at(config, layer);
        char range[48];
        if (span.first == span.last)
            snprintf(range, sizeof range, "%" PRId64, span.first);
        else
            snprintf(range, sizeof range, "%" PRId64 "-%" PRId64, span.first, span.last);
        cli_print("%-12s%10" PRId64, range, span.ratio);
        print_source(span.kv_source);
        print_source(span.index_source);
        cli_print("%s\n", span.index_source >= 0 && span.index_source == config->candidate_source
                              ? "  chooses the candidates"
                              : "");
        layer = span.last + 1;
    }
}

static void print_tally(const char *name, const cli_tally *tally) {
    cli_print("%-26s%10s%20s%20s\n", name, cli_grouped(tally->tensors).text,
              cli_grouped(tally->parameters).text, cli_grouped(tally->bytes).text);
}

static void print_tallies(const cli_inspection *found) {
    cli_print("\n%-26s%10s%20s%20s\n", "class", "tensors", "parameters", "bytes");
    for (int i = 0; i < PLUMB_CLASS_COUNT; i++)
        if (found->classes[i].tensors > 0)
            print_tally(plumb__tensor_class_name(i), &found->classes[i]);
    print_tally("all", &found->total);
    cli_print("\n%-26s%10s%20s%20s\n", "dtype", "tensors", "parameters", "bytes");
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++)
        if (found->dtypes[i].tensors > 0) print_tally(plumb__dtype_name(i), &found->dtypes[i]);
}

/* One line per tensor, its columns separated by tabs. */
static void print_tensors(const plumb_checkpoint *checkpoint) {
    cli_print("\ntensor\tdtype\tshape\tbytes\tclass\tfile\toffset\n");
    int64_t count = plumb__checkpoint_count(checkpoint);
    for (int64_t i = 0; i < count; i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        cli_print("%s\t%s\t%" PRId64, t->name, plumb__dtype_name(t->dtype), t->shape[0]);
        if (t->rank > 1) cli_print("x%" PRId64, t->shape[1]);
        cli_print("\t%" PRId64 "\t%s\t%s\t%" PRId64 "\n", t->bytes,
                  plumb__tensor_class_name(t->tensor_class),
                  plumb__checkpoint_shard_path(checkpoint, t->shard), t->offset);
    }
}

static void print_report(const cli_options *options, const plumb_checkpoint *checkpoint,
                         const cli_inspection *found) {
    print_config(checkpoint, found);
    print_layers(plumb__checkpoint_config(checkpoint));
    print_tallies(found);
    cli_print("\nin memory   %s bytes always (backbone dense and head); experts, Engram and "
              "embedding rows as needed\n",
              cli_grouped(found->resident_bytes).text);
    if (options->list_tensors) print_tensors(checkpoint);
}

/* ---- For programs --------------------------------------------------------------------------- */

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
        put(m, object, "class", json_string(plumb__tensor_class_name(t->tensor_class)));
        put_integer(m, object, "shard", t->shard);
        put_integer(m, object, "offset", t->offset);
        put_integer(m, object, "bytes", t->bytes);
        m->ok &= json_array_append_new(array, object) == 0;
    }
    return array;
}

static int write_json(const char *bytes, size_t size, void *user) {
    (void)user;
    return cli_write(bytes, size) ? 0 : -1;
}

static json_t *report_json(json_maker *m, const cli_options *options,
                           const plumb_checkpoint *checkpoint, const cli_inspection *found) {
    const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
    json_t *report = json_object(), *classes = json_object(), *dtypes = json_object();
    /* A path need not be UTF-8; JSON must be: U+FFFD stands for each byte that is not. */
    char path[3 * CLI_PATH_SIZE];
    plumb__clean_text(plumb__checkpoint_path(checkpoint), "\xEF\xBF\xBD", true, path, sizeof path);
    put(m, report, "model", json_string(path));
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

static int print_json(const cli_options *options, const plumb_checkpoint *checkpoint,
                      const cli_inspection *found) {
    json_maker maker = {.ok = true};
    json_t *report = report_json(&maker, options, checkpoint, found);
    if (maker.ok) {
        (void)json_dump_callback(report, write_json, NULL, JSON_INDENT(2));
        cli_print("\n");
    } else {
        cli_complain(options, "no memory for the report");
    }
    json_decref(report);
    return maker.ok ? CLI_OK : CLI_FAILED;
}

/* ---- The command ---------------------------------------------------------------------------- */

int cli_run_inspect(const cli_options *options) {
    cli_options named = *options;
    if (options->n_arguments > 0) {
        if (options->model != NULL) {
            cli_complain(options, "found '%s' and -m %s, expected one model", options->arguments[0],
                         options->model);
            return CLI_USAGE;
        }
        named.model = options->arguments[0];
    }
    char path[CLI_PATH_SIZE];
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err;
    plumb_status status = cli_find_model(&named, path, &err);
    if (status == PLUMB_OK)
        status = plumb__checkpoint_open(path, cli_log, &named, &checkpoint, &err);
    if (status != PLUMB_OK) return cli_report(options, &err);
    cli_inspection found;
    status = cli_inspect(checkpoint, &found, &err);
    int result = CLI_OK;
    if (status != PLUMB_OK)
        result = cli_report(options, &err);
    else if (options->json)
        result = print_json(options, checkpoint, &found);
    else
        print_report(options, checkpoint, &found);
    plumb__checkpoint_close(checkpoint);
    return result;
}
