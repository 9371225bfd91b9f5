/* The released geometry against the published totals (checkpoint.md section 4): sums to the byte,
 * the published config.json, the size of the published index, and folders that open. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "format/checkpoint.h"
#include "synth/fold_map.h"
#include "synth/plan.h"
#include "synth/variants.h"
#include "t.h"

static const plumb_synth_options whole = {.variant = PLUMB_SYNTH_RELEASE, .seed = 1};

static void plan_of(const plumb_synth_options *options, plumb_model_config *shape,
                    plumb__plan *plan) {
    plumb_error err;
    plumb__variant_shape(options, shape);
    T_CHECK(plumb__plan_make(options, shape, plan, &err) == PLUMB_OK, "%s", err.found);
}

typedef struct total {
    int64_t tensors, bytes, parameters;
} total;

static void add(total *sum, const plumb_tensor_spec *spec) {
    int64_t elements = spec->shape[0] * spec->shape[1];
    sum->tensors++;
    sum->bytes += spec->bytes;
    if (spec->dtype == PLUMB_DTYPE_I8)
        sum->parameters += 2 * elements;
    else if (spec->dtype != PLUMB_DTYPE_F8_E8M0)
        sum->parameters += elements;
}

static void totals(void) {
    static const total dtypes[PLUMB_DTYPE_COUNT] = {
        [PLUMB_DTYPE_BF16] = {520, 3952883712, 0},
        [PLUMB_DTYPE_F32] = {387, 169229128, 0},
        [PLUMB_DTYPE_F8_E4M3] = {357, 204015223296, 0},
        [PLUMB_DTYPE_F8_E8M0] = {47589, 23563015184, 0},
        [PLUMB_DTYPE_I8] = {47232, 278585671680, 0},
    };
    static const total classes[PLUMB_CLASS_COUNT] = {
        [PLUMB_CLASS_EMBED] = {1, 1323827200, 661913600},
        [PLUMB_CLASS_HEAD] = {1, 1323827200, 661913600},
        [PLUMB_CLASS_DENSE] = {1252, 7199094208, 6975209584},
        [PLUMB_CLASS_EXPERT] = {92160, 288777830400, 543581798400},
        [PLUMB_CLASS_ENGRAM_TABLE] = {4, 202758032400, 196613849600},
        [PLUMB_CLASS_DRAFT_DENSE] = {97, 713428872, 635817570},
        [PLUMB_CLASS_DRAFT_EXPERT] = {2304, 7219445760, 13589544960},
        [PLUMB_CLASS_VISION] = {266, 970536960, 485268480},
    };
    plumb_model_config shape;
    plumb__plan plan;
    plan_of(&whole, &shape, &plan);
    total by_dtype[PLUMB_DTYPE_COUNT] = {0}, by_class[PLUMB_CLASS_COUNT] = {0};
    for (int64_t i = 0; i < plan.count; i++) {
        add(&by_dtype[plan.tensors[i].spec.dtype], &plan.tensors[i].spec);
        add(&by_class[plan.tensors[i].spec.tensor_class], &plan.tensors[i].spec);
    }
    T_CHECK(plan.count == 96085 && plan.total_bytes == 510286023000, "%" PRId64, plan.total_bytes);
    T_CHECK(plan.real_bytes == plan.total_bytes, "no holes");
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++)
        T_CHECK(by_dtype[i].tensors == dtypes[i].tensors && by_dtype[i].bytes == dtypes[i].bytes,
                "%s: %" PRId64 " bytes", plumb__dtype_name(i), by_dtype[i].bytes);
    for (int i = 0; i < PLUMB_CLASS_COUNT; i++)
        T_CHECK(!memcmp(&by_class[i], &classes[i], sizeof(total)),
                "%s: %" PRId64 " tensors, %" PRId64 " bytes, %" PRId64 " parameters",
                plumb__tensor_class_name(i), by_class[i].tensors, by_class[i].bytes,
                by_class[i].parameters);
    plumb__plan_free(&plan);
}

/* 48 shards, the two tables alone in the last two. */
static void shards(void) {
    plumb_model_config shape;
    plumb__plan plan;
    plan_of(&whole, &shape, &plan);
    T_CHECK(plan.n_shards == 48, "%d", plan.n_shards);
    T_CHECK(plan.shards[46].count == 2 && plan.shards[46].data_bytes == 98305579008 + 3072049344,
            "first table alone");
    T_CHECK(plan.shards[47].count == 2 && plan.shards[47].data_bytes == 98308270592 + 3072133456,
            "second table alone");
    T_CHECK(!strcmp(plan.shards[47].file, "model-00048-of-00048.safetensors"), "%s",
            plan.shards[47].file);
    plumb__json_text index = plumb__json_indented(2);
    plumb_error err;
    T_CHECK(plumb__plan_write_index(&plan, &index, &err) == PLUMB_OK, "index");
    T_CHECK(index.size == 7470294, "%" PRId64 ", the published index has 7470294", index.size);
    plumb__json_free(&index);
    plumb__plan_free(&plan);
}

static void published_config(void) {
    plumb_model_config shape;
    plumb__variant_shape(&whole, &shape);
    shape.engram_folded_vocab = 99092;
    plumb__json_text text = plumb__json_indented(2);
    plumb__write_config(&shape, &text);
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_Digest(text.bytes, (size_t)text.size, digest, NULL, EVP_sha256(), NULL);
    T_CHECK(text.size == 3311, "%" PRId64, text.size);
    T_CHECK(digest[0] == 0x8b && digest[1] == 0xe4 && digest[2] == 0x5c && digest[3] == 0xe0,
            "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
    plumb__json_free(&text);
}

/* Dense bytes of each layer, published; cuts keep them. */
static void cuts(void) {
    static const int64_t cases[] = {1, 2, 3, 8, 14, 15, 20, 21, 24, 25, 40};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        int64_t layers = cases[n];
        plumb_synth_options cut = whole;
        cut.layers = layers;
        plumb_model_config shape;
        plumb__plan plan;
        plan_of(&cut, &shape, &plan);
        int64_t dense = 0, expected = 10240;
        for (int64_t i = 0; i < plan.count; i++) {
            const plumb_tensor_spec *spec = &plan.tensors[i].spec;
            if (spec->tensor_class == PLUMB_CLASS_DENSE) dense += spec->bytes;
            T_CHECK(spec->tensor_class < PLUMB_CLASS_DRAFT_DENSE, "%s", plan.tensors[i].name);
        }
        for (int64_t layer = 0; layer < layers; layer++) {
            bool reindex = layer > 20 && layer % 4 == 0;
            expected += layer == 1                 ? 327577048
                        : layer == 2 || layer == 8 ? 186248920
                        : layer == 14              ? 343770840
                        : layer == 20              ? 181006040
                        : reindex                  ? 175630808
                                                   : 170055128;
        }
        T_CHECK(dense == expected, "%" PRId64 " layers: %" PRId64, layers, dense);
        T_CHECK(shape.candidate_source == (layers > 20 ? 20 : -1), "%" PRId64 " layers", layers);
        T_CHECK(shape.engram_layers == (layers > 14  ? 2
                                        : layers > 1 ? 1
                                                     : 0),
                "%" PRId64 " layers", layers);
        if (layers > 1) T_CHECK(shape.engram_rows[0] < 2500000, "small tables");
        plumb__plan_free(&plan);
    }
}

/* A sparse checkpoint keeps the backbone's BF16 and F32 tensors: little, and nothing quantised. */
static void sparse(void) {
    plumb_synth_options options = whole;
    options.payload = PLUMB_SYNTH_SPARSE;
    plumb_model_config shape;
    plumb__plan plan;
    plan_of(&options, &shape, &plan);
    T_CHECK(shape.engram_rows[0] == 384006168 && shape.engram_rows[1] == 384016682, "whole tables");
    for (int64_t i = 0; i < plan.count; i++) {
        const plumb__planned *tensor = &plan.tensors[i];
        bool plain =
            tensor->spec.dtype == PLUMB_DTYPE_BF16 || tensor->spec.dtype == PLUMB_DTYPE_F32;
        bool backbone = strncmp(tensor->name, "mtp.", 4) && strncmp(tensor->name, "vision.", 7) &&
                        strncmp(tensor->name, "aligner.", 8) && strncmp(tensor->name, "image_", 6);
        T_CHECK(tensor->real == (plain && backbone), "%s", tensor->name);
    }
    T_CHECK(plan.real_bytes > 3000000000 && plan.real_bytes < 3100000000, "%" PRId64,
            plan.real_bytes);
    plumb__plan_free(&plan);
}

/* Only the tables are holes; every other tensor is where and what the full payload has. */
static void sparse_tables(void) {
    static const int64_t cases[] = {0, 1, 4, 15};
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        plumb_synth_options full = whole, holes = whole;
        full.layers = holes.layers = cases[n];
        holes.payload = PLUMB_SYNTH_SPARSE_TABLES;
        plumb_model_config full_shape, shape;
        plumb__plan full_plan, plan;
        plan_of(&full, &full_shape, &full_plan);
        plan_of(&holes, &shape, &plan);
        T_CHECK(plan.count == full_plan.count, "%" PRId64, plan.count);
        int64_t tables = 0;
        for (int64_t i = 0; i < plan.count; i++) {
            const plumb__planned *tensor = &plan.tensors[i], *other = &full_plan.tensors[i];
            bool table = tensor->spec.tensor_class == PLUMB_CLASS_ENGRAM_TABLE;
            T_CHECK(tensor->real == !table && !strcmp(tensor->name, other->name), "%s",
                    tensor->name);
            if (table) tables += tensor->spec.bytes;
            else
                T_CHECK(tensor->spec.bytes == other->spec.bytes && tensor->begin == other->begin &&
                            tensor->shard == other->shard,
                        "%s", tensor->name);
        }
        T_CHECK(plan.real_bytes == plan.total_bytes - tables, "%" PRId64, plan.real_bytes);
        T_CHECK(shape.engram_layers == 0 || shape.engram_rows[0] == 384006168, "whole tables");
        if (cases[n] == 4)
            T_CHECK(plan.real_bytes > 32000000000 && plan.real_bytes < 33000000000,
                    "%" PRId64 ": a slice that fits a common disk", plan.real_bytes);
        plumb__plan_free(&full_plan);
        plumb__plan_free(&plan);
    }
}

/* Removes what a hollow checkpoint left: files of terabytes' size frighten backup programs. */
static void clear(const char *folder) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    T_CHECK(system(command) == 0, "%s", folder);
}

static void folders_open(void) {
    static const int64_t layers[] = {0, 1, 2, 20, 21};
    const char *folder = BUILD_DIR "/synth-release";
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        clear(folder);
        plumb_synth_options options = whole;
        options.folder = folder;
        options.layers = layers[i];
        options.payload = PLUMB_SYNTH_HOLLOW;
        plumb_error err;
        T_CHECK(plumb__synth_write(&options, &err) == PLUMB_OK, "%s", err.found);
        plumb_checkpoint *checkpoint = NULL;
        plumb_status status = plumb__checkpoint_open(folder, NULL, NULL, &checkpoint, &err);
        T_CHECK(status == PLUMB_OK, "%s: %s: %s", err.file, err.field, err.found);
        if (status != PLUMB_OK) continue;
        const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
        T_CHECK(config->layers == (layers[i] ? layers[i] : 40), "%" PRId64, config->layers);
        T_CHECK(config->draft_stages == (layers[i] ? 0 : 3), "%" PRId64, config->draft_stages);
        T_CHECK(config->engram_folded_vocab == 99092, "%" PRId64, config->engram_folded_vocab);
        if (!layers[i])
            T_CHECK(plumb__checkpoint_count(checkpoint) == 96085, "%" PRId64,
                    plumb__checkpoint_count(checkpoint));
        plumb__checkpoint_close(checkpoint);
        struct stat map, index;
        T_CHECK(stat(BUILD_DIR "/synth-release/model.safetensors.index.json", &index) == 0 &&
                    (layers[i] || index.st_size == 7470294),
                "size of the published index");
        T_CHECK(stat(BUILD_DIR "/synth-release/engram_token_map.i32", &map) == 0 &&
                    map.st_size == 4 * 129280,
                "the map's size");
    }
    clear(folder);
}

static void fold_map(void) {
    enum { VOCAB = 129280 };
    int32_t *map = malloc(VOCAB * sizeof *map);
    T_CHECK(map && plumb__fold_map_make(1, VOCAB, 99092, map) == 99092, "folds");
    int32_t next = 0;
    bool ordered = true;
    for (int i = 0; i < VOCAB && map; i++) {
        ordered &= map[i] >= 0 && map[i] <= next;
        next += map[i] == next;
    }
    T_CHECK(ordered && next == 99092, "%d folds in order of first use", next);
    free(map);
}

T_MAIN({"totals", totals}, {"shards", shards}, {"published_config", published_config},
       {"cuts", cuts}, {"sparse", sparse}, {"sparse_tables", sparse_tables}, {"folders_open", folders_open}, {"fold_map", fold_map})
