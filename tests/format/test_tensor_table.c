/* The table of tensors against the published totals (spec: checkpoint.md sections 3 and 4) and
 * against the names in the demo model's index. */
#include "fixture.h"
#include "format/checkpoint_index.h"
#include "t.h"

#include <stdlib.h>

static plumb_model_config load(const char *path) {
    plumb_model_config config;
    plumb_error err = {0};
    T_CHECK(plumb__config_load(path, NULL, NULL, &config, &err) == PLUMB_OK, "%s: %s", err.field,
            err.found);
    return config;
}

typedef struct sums {
    const plumb_model_config *config;
    int64_t count[PLUMB_CLASS_COUNT], bytes[PLUMB_CLASS_COUNT];
    int64_t dtype_count[PLUMB_DTYPE_COUNT], dtype_bytes[PLUMB_DTYPE_COUNT];
    int64_t layer_dense_bytes[PLUMB_MAX_LAYERS];
    int wrong;
} sums;

static int add(void *user, const char *name, const plumb_tensor_spec *spec) {
    sums *s = user;
    s->count[spec->tensor_class]++;
    s->bytes[spec->tensor_class] += spec->bytes;
    s->dtype_count[spec->dtype]++;
    s->dtype_bytes[spec->dtype] += spec->bytes;
    if (spec->tensor_class == PLUMB_CLASS_DENSE && !strncmp(name, "layers.", 7))
        s->layer_dense_bytes[atoi(name + 7)] += spec->bytes;
    plumb_tensor_spec found;
    memset(&found, 0, sizeof found);
    plumb_tensor_lookup lookup = plumb__tensor_table_find(s->config, name, &found);
    bool same = lookup == PLUMB_TENSOR_NEEDED && found.shape[0] == spec->shape[0] &&
                found.shape[1] == spec->shape[1] && found.bytes == spec->bytes &&
                found.rank == spec->rank && found.dtype == spec->dtype &&
                found.tensor_class == spec->tensor_class;
    s->wrong += !same;
    return 0;
}

static void released_totals(void) {
    static const struct {
        int64_t count, bytes;
    } classes[PLUMB_CLASS_COUNT] = {
        [PLUMB_CLASS_EMBED] = {1, 1323827200},
        [PLUMB_CLASS_HEAD] = {1, 1323827200},
        [PLUMB_CLASS_DENSE] = {1252, 7199094208},
        [PLUMB_CLASS_EXPERT] = {92160, 288777830400},
        [PLUMB_CLASS_ENGRAM_TABLE] = {4, 202758032400},
        [PLUMB_CLASS_DRAFT_DENSE] = {97, 713428872},
        [PLUMB_CLASS_DRAFT_EXPERT] = {2304, 7219445760},
        [PLUMB_CLASS_VISION] = {266, 970536960},
    };
    static const struct {
        int64_t count, bytes;
    } dtypes[PLUMB_DTYPE_COUNT] = {
        [PLUMB_DTYPE_BF16] = {520, 3952883712},
        [PLUMB_DTYPE_F32] = {387, 169229128},
        [PLUMB_DTYPE_F8_E4M3] = {357, 204015223296},
        [PLUMB_DTYPE_F8_E8M0] = {47589, 23563015184},
        [PLUMB_DTYPE_I8] = {47232, 278585671680},
    };
    plumb_model_config config = load(TEST_DATA "/config/released.json");
    sums s = {.config = &config};
    T_TRUE(plumb__tensor_table_visit(&config, add, &s) == 0);
    T_CHECK(s.wrong == 0, "%d names looked up differ from those visited", s.wrong);
    int64_t count = 0, bytes = 0;
    for (int i = 0; i < PLUMB_CLASS_COUNT; i++) {
        T_CHECK(s.count[i] == classes[i].count && s.bytes[i] == classes[i].bytes,
                "%s: %lld tensors, %lld bytes", plumb__tensor_class_name(i), (long long)s.count[i],
                (long long)s.bytes[i]);
        count += s.count[i];
        bytes += s.bytes[i];
    }
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++)
        T_CHECK(s.dtype_count[i] == dtypes[i].count && s.dtype_bytes[i] == dtypes[i].bytes,
                "%s: %lld tensors, %lld bytes", plumb__dtype_name(i), (long long)s.dtype_count[i],
                (long long)s.dtype_bytes[i]);
    T_TRUE(count == 96085 && bytes == 510286023000);
    for (int layer = 0; layer < 40; layer++) {
        int64_t expected = layer == 1                 ? 327577048
                           : layer == 2 || layer == 8 ? 186248920
                           : layer == 14              ? 343770840
                           : layer == 20              ? 181006040
                           : layer > 20 && layer % 4 == 0 ? 175630808
                                                          : 170055128;
        T_CHECK(s.layer_dense_bytes[layer] == expected, "layer %d: %lld", layer,
                (long long)s.layer_dense_bytes[layer]);
    }
}

static void shapes(void) {
    static const struct {
        const char *name;
        int dtype, rank;
        int64_t shape[2];
    } cases[] = {
        {"embed.weight", PLUMB_DTYPE_BF16, 2, {129280, 5120}},
        {"image_newline", PLUMB_DTYPE_BF16, 1, {5120, 1}},
        {"layers.39.attn.wq_b.weight", PLUMB_DTYPE_F8_E4M3, 2, {32768, 1280}},
        {"layers.39.attn.wq_b.scale", PLUMB_DTYPE_F8_E8M0, 2, {1024, 40}},
        {"layers.0.attn.wo_a.weight", PLUMB_DTYPE_F8_E4M3, 2, {8192, 4096}},
        {"layers.0.attn.wo_a.scale", PLUMB_DTYPE_F8_E8M0, 2, {256, 128}},
        {"layers.0.attn.attn_sink", PLUMB_DTYPE_F32, 1, {64, 1}},
        {"layers.0.hc_ffn_fn", PLUMB_DTYPE_F32, 2, {24, 20480}},
        {"layers.0.ffn.gate.bias_vl", PLUMB_DTYPE_F32, 1, {384, 1}},
        {"mtp.1.ffn.gate.bias", PLUMB_DTYPE_F32, 1, {128, 1}},
        {"layers.7.ffn.experts.383.w2.weight", PLUMB_DTYPE_I8, 2, {5120, 1152}},
        {"layers.7.ffn.experts.383.w2.scale", PLUMB_DTYPE_F8_E8M0, 2, {5120, 72}},
        {"mtp.2.ffn.experts.127.w1.weight", PLUMB_DTYPE_I8, 2, {2304, 2560}},
        {"layers.14.engram.embed.weight", PLUMB_DTYPE_F8_E4M3, 2, {384016682, 256}},
        {"layers.14.engram.embed.scale", PLUMB_DTYPE_F8_E8M0, 2, {384016682, 8}},
        {"layers.1.engram.wkv.weight", PLUMB_DTYPE_F8_E4M3, 2, {25600, 6144}},
        {"layers.36.attn.indexer.wq_b.scale", PLUMB_DTYPE_F8_E8M0, 2, {128, 40}},
        {"layers.20.attn.indexer.wk.weight", PLUMB_DTYPE_BF16, 2, {128, 512}},
        {"mtp.0.main_proj.weight", PLUMB_DTYPE_F8_E4M3, 2, {5120, 15360}},
        {"mtp.2.confidence_head.proj.weight", PLUMB_DTYPE_BF16, 2, {1, 5376}},
        {"mtp.2.markov_head.embed.weight", PLUMB_DTYPE_BF16, 2, {129280, 256}},
        {"vision.patch_embed.proj.weight", PLUMB_DTYPE_BF16, 2, {1024, 588}},
        {"vision.blocks.31.mlp.w1.weight", PLUMB_DTYPE_BF16, 2, {5632, 1024}},
        {"aligner.w1.weight", PLUMB_DTYPE_BF16, 2, {5120, 9216}},
    };
    plumb_model_config config = load(TEST_DATA "/config/released.json");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_tensor_spec spec;
        T_CHECK(plumb__tensor_table_find(&config, cases[i].name, &spec) == PLUMB_TENSOR_NEEDED,
                "%s", cases[i].name);
        T_CHECK(spec.dtype == cases[i].dtype && spec.rank == cases[i].rank &&
                    spec.shape[0] == cases[i].shape[0] && spec.shape[1] == cases[i].shape[1],
                "%s: %s [%lld, %lld]", cases[i].name, plumb__dtype_name(spec.dtype),
                (long long)spec.shape[0], (long long)spec.shape[1]);
    }
}

static void unknown_names(void) {
    static const char *const names[] = {
        "", "x", "embed", "embed.scale", "embed.weight.", "embed.weight.weight", "layers",
        "layers.",
        "layers.0", "layers.0.", "layers.40.attn_norm.weight", "layers.00.attn_norm.weight",
        "layers.+1.attn_norm.weight", "layers.-1.attn_norm.weight", "layers. 1.attn_norm.weight",
        "layers.4294967296.attn_norm.weight", "layers.99999999999999999999.attn_norm.weight",
        "layers.0.attn_norm", "layers.0.attn.wq_a", "layers.0.attn.wq_a.bias",
        "layers.0.attn.attn_sink.weight", "layers.0.ffn.experts.384.w1.weight",
        "layers.0.ffn.experts.w1.weight", "layers.0.ffn.experts.0.w4.weight",
        "layers.0.ffn.experts.0.w1", "layers.0.w1.weight", "layers.0.norm1.weight",
        "layers.0.attn.compressor.wkv.weight",   /* no kv source */
        "layers.20.attn.compressor.wgate.weight", /* ratio 1 */
        "layers.24.attn.indexer.wk.weight",      /* index source only */
        "layers.3.attn.indexer.wq_b.weight", "layers.0.engram.wkv.weight",
        "layers.39.norm.weight", "layers.39.main_norm.weight", "mtp.3.attn_norm.weight",
        "mtp.1.main_proj.weight", "mtp.0.markov_head.embed.weight", "mtp.0.norm.weight",
        "mtp.0.ffn.experts.128.w1.weight", "mtp.0.engram.wkv.weight", "mtp.3.embed.weight",
        "vision.blocks.32.norm1.weight", "vision.blocks.0.mlp.w3.weight", "vision.x", "image_",
        "aligner.w3.weight", "image_start.weight", "attn_norm.weight", "w1.weight",
    };
    plumb_model_config config = load(TEST_DATA "/config/released.json");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        plumb_tensor_spec spec;
        T_CHECK(plumb__tensor_table_find(&config, names[i], &spec) == PLUMB_TENSOR_UNKNOWN, "%s",
                names[i]);
    }
}

static void ignored_names(void) {
    static const struct {
        const char *name;
        plumb_tensor_lookup on, off;
    } cases[] = {
        {"mtp.0.embed.weight", PLUMB_TENSOR_IGNORED, PLUMB_TENSOR_IGNORED},
        {"mtp.2.head.weight", PLUMB_TENSOR_IGNORED, PLUMB_TENSOR_IGNORED},
        {"mtp.0.attn_norm.weight", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_IGNORED},
        {"vision.norm.weight", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_IGNORED},
        {"vision.blocks.7.norm1.weight", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_IGNORED},
        {"aligner.w2.bias", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_IGNORED},
        {"image_end", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_IGNORED},
        {"norm.weight", PLUMB_TENSOR_NEEDED, PLUMB_TENSOR_NEEDED},
    };
    plumb_model_config on = load(TEST_DATA "/config/released.json"), off = on;
    off.draft_stages = 0;
    off.vision.layers = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_tensor_spec spec;
        T_CHECK(plumb__tensor_table_find(&on, cases[i].name, &spec) == cases[i].on, "%s",
                cases[i].name);
        T_CHECK(plumb__tensor_table_find(&off, cases[i].name, &spec) == cases[i].off, "%s off",
                cases[i].name);
    }
    sums s = {.config = &off};
    T_TRUE(plumb__tensor_table_visit(&off, add, &s) == 0);
    T_TRUE(s.count[PLUMB_CLASS_DRAFT_DENSE] == 0 && s.count[PLUMB_CLASS_DRAFT_EXPERT] == 0);
    T_TRUE(s.count[PLUMB_CLASS_VISION] == 0 && s.count[PLUMB_CLASS_DENSE] == 1252);
}

/* The visit and the demo model's index must be the same set: each name visited is in it, and there
 * are as many. */
typedef struct against_index {
    const plumb_index *index;
    int64_t visited, absent;
} against_index;

static int by_name(const void *a, const void *b) {
    const plumb_index_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static int compare(void *user, const char *name, const plumb_tensor_spec *spec) {
    (void)spec;
    against_index *a = user;
    const plumb_index_entry key = {.name = name};
    a->visited++;
    a->absent += !bsearch(&key, a->index->entries, (size_t)a->index->count, sizeof key, by_name);
    return 0;
}

static void demo_model_names(void) {
    const char *folder = PROJECT_DIR "/data/demo-model";
    char path[512];
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    plumb_model_config config = load(path);
    plumb_index index;
    plumb_error err = {0};
    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    T_CHECK(plumb__index_load(path, &index, &err) == PLUMB_OK, "%s", err.found);
    against_index a = {.index = &index};
    T_TRUE(plumb__tensor_table_visit(&config, compare, &a) == 0);
    T_CHECK(a.absent == 0, "%lld not in the index", (long long)a.absent);
    T_CHECK(a.visited == index.count, "%lld visited, %lld in the index", (long long)a.visited,
            (long long)index.count);
    plumb__index_free(&index);
}

static int stop_at_norm(void *user, const char *name, const plumb_tensor_spec *spec) {
    (void)spec;
    ++*(int *)user;
    return !strcmp(name, "layers.0.attn_norm.weight") ? 7 : 0;
}

static void visit_stops(void) {
    plumb_model_config config = load(TEST_DATA "/config/released.json");
    int calls = 0;
    T_TRUE(plumb__tensor_table_visit(&config, stop_at_norm, &calls) == 7);
    T_CHECK(calls == 2, "%d", calls);
}

T_MAIN({"released_totals", released_totals}, {"shapes", shapes}, {"unknown_names", unknown_names},
       {"ignored_names", ignored_names}, {"demo_model_names", demo_model_names},
       {"visit_stops", visit_stops})
