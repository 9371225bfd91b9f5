/* One checkpoint from its options: shape, plan, room on the disk, shards, and the small files that
 * make a folder of shards a model. */
#include "synth/synth.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/machine.h"
#include "synth/fold_map.h"
#include "synth/shard_writer.h"
#include "synth/variants.h"

enum {
    RELEASE_FOLDED = 99092, /* folded ids of the published vocabulary */
    MOST_THREADS = 16       /* more would only wait for the disk, each with its own buffer */
};

static const char *variant_name(const plumb_synth_options *options) {
    return plumb__synth_variant_name((int)options->variant);
}

static plumb_status check_options(const plumb_synth_options *options, plumb_error *err) {
    if (options->variant < 0 || options->variant >= PLUMB_SYNTH_VARIANTS)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "variant", -1,
                           plumb__format("%d", (int)options->variant).s, "one of %d",
                           PLUMB_SYNTH_VARIANTS);
    bool release = options->variant == PLUMB_SYNTH_RELEASE;
    bool full = options->payload == PLUMB_SYNTH_FULL;
    if (!release && (options->layers || !full))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, full ? "layers" : "sparse", -1,
                           plumb__format("variant %s", variant_name(options)).s, "variant release");
    int64_t most = release ? plumb__variant_depth(options) : 0;
    if (options->layers < 0 || options->layers > most)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "layers", -1,
                           plumb__format("%lld", (long long)options->layers).s, "1 to %lld",
                           (long long)most);
    return PLUMB_OK;
}

/* Writes `text` as the whole of file `name`. */
static plumb_status write_text(plumb__output *output, const char *name,
                               const plumb__json_text *text, plumb_error *err) {
    if (plumb__json_failed(text)) return plumb__fail_memory(err, name, (size_t)text->size);
    plumb_status status = plumb__output_create(output, name, err);
    if (status == PLUMB_OK) status = plumb__output_write(output, 0, text->bytes, text->size, err);
    if (status == PLUMB_OK) status = plumb__output_finish(output, err);
    return status;
}

static plumb_status write_fold_map(plumb__output *output, const plumb_model_config *shape,
                                   const int32_t *map, plumb_error *err) {
    plumb__json_text text = plumb__json_one_line();
    plumb__fold_map_write(map, shape->vocab, shape->engram_folded_vocab, &text);
    plumb_status status = write_text(output, "engram_token_map.json", &text, err);
    plumb__json_free(&text);
    if (status != PLUMB_OK) return status;
    plumb__json_text bytes = plumb__json_compact();
    for (int64_t id = 0; id < shape->vocab; id++) {
        uint32_t folded = (uint32_t)map[id];
        char word[4] = {(char)folded, (char)(folded >> 8), (char)(folded >> 16),
                        (char)(folded >> 24)};
        plumb__put_raw(&bytes, word, sizeof word);
    }
    status = write_text(output, "engram_token_map.i32", &bytes, err);
    plumb__json_free(&bytes);
    return status;
}

/* The index, then the config: a folder without its config does not open. */
static plumb_status write_index_and_config(plumb__output *output,
                                           const plumb_synth_options *options,
                                           const plumb__plan *plan, const plumb_model_config *shape,
                                           plumb_error *err) {
    /* The published index is indented and ends without a newline; those of the small models not. */
    bool release = options->variant == PLUMB_SYNTH_RELEASE;
    plumb__json_text text = plumb__json_indented(release ? 2 : 0);
    plumb_status status = plumb__plan_write_index(plan, &text, err);
    if (!release) plumb__put_raw(&text, "\n", 1);
    if (status == PLUMB_OK) status = write_text(output, "model.safetensors.index.json", &text, err);
    plumb__json_free(&text);
    if (status != PLUMB_OK) return status;
    text = plumb__json_indented(2);
    plumb__write_config(shape, &text);
    status = write_text(output, "config.json", &text, err);
    plumb__json_free(&text);
    return status;
}

/* Everything between the plan and the names; the output is committed or untouched. */
static plumb_status write_files(const plumb_synth_options *options, const plumb_model_config *shape,
                                const int32_t *map, const plumb__plan *plan, plumb_pool *pool,
                                plumb_error *err) {
    /* Headers, index and map: under 300 bytes a tensor and 32 a token. */
    int64_t room = plan->real_bytes + 300 * plan->count + 32 * shape->vocab;
    plumb__output output;
    plumb_status status = plumb__output_open(&output, options->folder, options->force, err);
    if (status == PLUMB_OK) status = plumb__output_check_room(&output, room, err);
    plumb__shard_writer writer = {.options = options,
                                  .shape = shape,
                                  .plan = plan,
                                  .output = &output,
                                  .pool = pool,
                                  .depth = plumb__variant_depth(options)};
    if (status == PLUMB_OK) status = plumb__write_shards(&writer, err);
    if (status == PLUMB_OK) status = write_fold_map(&output, shape, map, err);
    if (status == PLUMB_OK) status = write_index_and_config(&output, options, plan, shape, err);
    if (status == PLUMB_OK) status = plumb__output_commit(&output, err);
    plumb__output_close(&output);
    return status;
}

plumb_status plumb__synth_write(const plumb_synth_options *options, plumb_error *err) {
    plumb_status status = check_options(options, err);
    if (status != PLUMB_OK) return status;
    plumb_model_config shape;
    plumb__variant_shape(options, &shape);
    int32_t *map = malloc((size_t)shape.vocab * sizeof *map);
    if (!map) return plumb__fail_memory(err, "token map", (size_t)shape.vocab * sizeof *map);
    int64_t folded = options->variant == PLUMB_SYNTH_RELEASE ? RELEASE_FOLDED : 0;
    shape.engram_folded_vocab = plumb__fold_map_make(options->seed, shape.vocab, folded, map);

    plumb__plan plan;
    plumb_pool *pool = NULL;
    status = plumb__plan_make(options, &shape, &plan, err);
    int threads = options->threads > 0 ? options->threads : plumb__machine_cores();
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (status == PLUMB_OK) status = plumb__pool_create(threads, NULL, &pool, err);
    if (status == PLUMB_OK) status = write_files(options, &shape, map, &plan, pool, err);
    plumb__pool_destroy(pool);
    plumb__plan_free(&plan);
    free(map);
    return status;
}
