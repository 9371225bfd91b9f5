/* Counting by class and dtype, as the published totals are (spec: checkpoint.md section 4). */
#include "cli/inspection.h"

#include "format/model_files.h"

static void add(cli_tally *tally, const plumb_tensor *tensor) {
    int64_t elements = tensor->shape[0] * tensor->shape[1];
    tally->tensors++;
    tally->bytes += tensor->bytes;
    if (tensor->dtype == PLUMB_DTYPE_I8)
        tally->parameters += 2 * elements;
    else if (tensor->dtype != PLUMB_DTYPE_F8_E8M0)
        tally->parameters += elements;
}

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
