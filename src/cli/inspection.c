/* Counting by class and dtype, as the published totals are (spec: checkpoint.md section 4). */
#include "cli/inspection.h"

#include "base/error.h"
#include "convert/receipt.h"
#include "format/model_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(cli_tally *tally, const plumb_tensor *tensor) {
    int64_t elements = tensor->shape[0] * tensor->shape[1];
    tally->tensors++;
    tally->bytes += tensor->bytes;
    if (tensor->dtype == PLUMB_DTYPE_I8)
        tally->parameters += 2 * elements;
    else if (tensor->dtype != PLUMB_DTYPE_F8_E8M0)
        tally->parameters += elements;
}

/* ---- How it is stored ------------------------------------------------------------------------ */

static bool is_dense_matrix(const plumb_tensor *t) {
    return (t->dtype == PLUMB_DTYPE_F8_E4M3 && t->stored != PLUMB_STORED_ROWS) ||
           (t->dtype == PLUMB_DTYPE_F32 && t->rank == 2);
}

static int dense_kind(const plumb_tensor *t) {
    if (t->stored == PLUMB_STORED_BF16) return PLUMB_DENSE_BF16;
    bool f32 = t->stored == PLUMB_STORED_F32 || t->dtype == PLUMB_DTYPE_F32;
    return f32 ? PLUMB_DENSE_F32 : PLUMB_DENSE_FP8;
}

static void inspect_stored(const plumb_checkpoint *checkpoint, cli_stored *stored) {
    const plumb_gguf *gguf = plumb__checkpoint_gguf(checkpoint);
    if (!gguf) return;
    stored->tensors = gguf->tensors;
    stored->file_bytes = gguf->file_bytes;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (is_dense_matrix(t)) stored->matrices[dense_kind(t)]++;
    }
}

/* ---- Digests --------------------------------------------------------------------------------- */

static void describe(cli_digests *digests, cli_digest_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void describe(cli_digests *digests, cli_digest_state state, const char *format, ...) {
    va_list list;
    va_start(list, format);
    (void)vsnprintf(digests->words, sizeof digests->words, format, list);
    va_end(list);
    digests->state = state;
}

/* "of DATE", and whether the files are as they were then. */
static void describe_receipt(const char *path, const char *model, cli_digests *digests) {
    plumb_receipt *receipt = NULL;
    plumb_error err;
    char line[384] = "";
    plumb_status status = plumb__receipt_read(path, &receipt, &err);
    if (status == PLUMB_OK) status = plumb__receipt_check_unchanged(receipt, model, &err);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    if (!receipt)
        describe(digests, CLI_DIGESTS_UNUSABLE, "a receipt that cannot be used: %s", line);
    else if (status != PLUMB_OK)
        describe(digests, CLI_DIGESTS_CHANGED, "receipt of %s, but %s",
                 plumb__receipt_made(receipt), line);
    else
        describe(digests, CLI_DIGESTS_UNCHANGED, "receipt of %s, files unchanged since",
                 plumb__receipt_made(receipt));
    plumb__receipt_destroy(receipt);
}

static plumb_status describe_digests(const plumb_checkpoint *checkpoint, cli_digests *digests,
                                     plumb_error *err) {
    const char *model = plumb__checkpoint_path(checkpoint);
    const plumb_gguf *gguf = plumb__checkpoint_gguf(checkpoint);
    char *receipt = plumb__receipt_path(model);
    if (!receipt) return plumb__fail_memory(err, "path", strlen(model));
    describe(digests, CLI_DIGESTS_NONE, "none: no receipt of an audit");
    /* A file whose header is damaged does not open. */
    if (gguf)
        describe(digests, CLI_DIGESTS_INTACT,
                 "of every tensor inside the file, header intact; no receipt");
    if (plumb__receipt_exists(receipt))
        describe_receipt(receipt, model, digests);
    free(receipt);
    return PLUMB_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

plumb_status cli_inspect(const plumb_checkpoint *checkpoint, cli_inspection *inspection,
                         plumb_error *err) {
    *inspection = (cli_inspection){0};
    int64_t count = plumb__checkpoint_count(checkpoint);
    for (int64_t i = 0; i < count; i++) {
        const plumb_tensor *tensor = plumb__checkpoint_tensor(checkpoint, i);
        add(&inspection->dtypes[tensor->dtype], tensor);
        add(&inspection->classes[tensor->tensor_class], tensor);
        add(&inspection->total, tensor);
    }
    const cli_tally *classes = inspection->classes;
    inspection->resident_bytes = classes[PLUMB_CLASS_DENSE].bytes + classes[PLUMB_CLASS_HEAD].bytes;
    inspection->has_draft = classes[PLUMB_CLASS_DRAFT_DENSE].tensors > 0;
    inspection->has_vision = classes[PLUMB_CLASS_VISION].tensors > 0;
    const char *model = plumb__checkpoint_path(checkpoint);
    inspection->has_tokenizer = plumb__model_file_exists(model, "tokenizer.json");
    inspection->has_token_map = plumb__model_file_exists(model, "engram_token_map.i32");
    inspect_stored(checkpoint, &inspection->stored);
    plumb_status status = describe_digests(checkpoint, &inspection->digests, err);
    if (status != PLUMB_OK) return status;
    return plumb__revision_detect(checkpoint, &inspection->revision, err);
}

cli_layer_span cli_layer_span_at(const plumb_model_config *config, int64_t first) {
    cli_layer_span span = {first, first, config->ratio[first], config->kv_source[first],
                           config->index_source[first]};
    for (int64_t layer = first + 1; layer < config->layers; layer++) {
        if (config->ratio[layer] != span.ratio || config->kv_source[layer] != span.kv_source ||
            config->index_source[layer] != span.index_source)
            break;
        span.last = layer;
    }
    return span;
}
