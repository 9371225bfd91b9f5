/* plumb inspect: what a checkpoint is made of.  Reads the config and the headers, no payload. */
#include "cli/commands.h"

#include "cli/inspection.h"
#include "cli/model_lookup.h"
#include "cli/output.h"

#include <inttypes.h>
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

static void print_stored(const cli_inspection *found) {
    const cli_stored *s = &found->stored;
    if (s->tensors > 0)
        cli_print("file        converted, %s tensors, %s bytes; dense matrices: %lld f32, %lld bf16, "
                  "%lld fp8\n",
                  cli_grouped(s->tensors).text, cli_grouped(s->file_bytes).text,
                  (long long)s->matrices[PLUMB_DENSE_F32], (long long)s->matrices[PLUMB_DENSE_BF16],
                  (long long)s->matrices[PLUMB_DENSE_FP8]);
    cli_print("digests     %s\n", found->digests.words);
}

static void print_config(const plumb_checkpoint *checkpoint, const cli_inspection *found) {
    const plumb_model_config *c = plumb__checkpoint_config(checkpoint);
    cli_print("model       %s\n", plumb__checkpoint_path(checkpoint));
    cli_print("release     %s: %s\n", plumb__release_name(found->revision.release),
              found->revision.words);
    print_stored(found);
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
    cli_print("\ntensor\tdtype\tshape\tbytes\tclass\tstored\tfile\toffset\n");
    int64_t count = plumb__checkpoint_count(checkpoint);
    for (int64_t i = 0; i < count; i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        cli_print("%s\t%s\t%" PRId64, t->name, plumb__dtype_name(t->dtype), t->shape[0]);
        if (t->rank > 1) cli_print("x%" PRId64, t->shape[1]);
        cli_print("\t%" PRId64 "\t%s\t%s\t%s\t%" PRId64 "\n", t->bytes,
                  plumb__tensor_class_name(t->tensor_class), plumb__stored_form_name(t->stored),
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
        result = cli_inspection_print_json(options, checkpoint, &found);
    else
        print_report(options, checkpoint, &found);
    plumb__checkpoint_close(checkpoint);
    return result;
}
