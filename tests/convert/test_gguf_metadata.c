/* Metadata of converted files: written, read back, refused; the constants of Engram against the
 * published code's.  gguf_metadata_values.py compares every other value with the models' files, from
 * the headers that this program leaves in BUILD_DIR/gguf-metadata. */
#include "convert/gguf_metadata.h"
#include "convert/model_origin.h"
#include "fixture.h"
#include "format/model_files.h"
#include "goldens.h"
#include "t.h"

#include <sys/stat.h>
#include <unistd.h>

#define OUT BUILD_DIR "/gguf-metadata"

static const char demo[] = PROJECT_DIR "/data/demo-model";
static const char tiny[] = BUILD_DIR "/checkpoints/tiny";
static const char deep40[] = BUILD_DIR "/checkpoints/deep40";

static void copy_file(const char *from, const char *folder, const char *name) {
    size_t size;
    char *bytes = fixture_load(from, &size);
    fixture_write(folder, name, bytes, size);
    free(bytes);
}

/* The folder and those above it, as far as they are below BUILD_DIR; an earlier run may have left them. */
static void make_folders(char *path) {
    for (char *at = path + sizeof BUILD_DIR; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        (void)mkdir(path, 0777);
    }
    (void)mkdir(path, 0777);
    T_CHECK(access(path, W_OK) == 0, "%s", path);
}

/* The released config and tokenizer, where the Hugging Face cache would have them. */
static void released_folder(char folder[512]) {
    (void)snprintf(folder, 512, "%s", OUT "/hub/models--deepseek-ai--DeepSeek-V4.1-Flash/snapshots/dba1be0a");
    make_folders(folder);
    copy_file(TEST_DATA "/config/released.json", folder, "config.json");
    copy_file(TEST_DATA "/tokenizer/tokenizer.json", folder, "tokenizer.json");
    copy_file(TEST_DATA "/tokenizer/tokenizer_config.json", folder, "tokenizer_config.json");
}

static plumb_status write_metadata(const char *model, const plumb_model_config *config,
                                   plumb_gguf_writer **writer, plumb_error *err) {
    plumb_status status = plumb__gguf_writer_create(16384, writer, err);
    return status == PLUMB_OK ? plumb__gguf_metadata_write(*writer, model, config, err) : status;
}

/* Writes OUT/NAME.gguf and a link to the model beside it, and reads the file back. */
static void write_and_read(const char *model, const char *name, plumb_model_config *config,
                           plumb_gguf *gguf) {
    plumb_gguf_writer *writer = NULL;
    plumb_error err = {0};
    uint8_t *header = NULL;
    int64_t bytes = 0, file_bytes = 0;
    T_CHECK(plumb__config_load(model, NULL, NULL, config, &err) == PLUMB_OK, "%s: %s", model,
            err.found);
    T_CHECK(write_metadata(model, config, &writer, &err) == PLUMB_OK, "%s: %s: %s", err.file,
            err.field, err.found);
    T_CHECK(plumb__gguf_writer_finish(writer, &header, &bytes, NULL, &file_bytes, &err) == PLUMB_OK,
            "%s: %s", err.field, err.found);
    char path[512];
    (void)mkdir(OUT, 0777);
    (void)snprintf(path, sizeof path, OUT "/%s.model", name);
    (void)unlink(path);
    T_CHECK(symlink(model, path) == 0, "%s", path);
    (void)snprintf(path, sizeof path, "%s.gguf", name);
    fixture_write(OUT, path, header, (size_t)bytes);
    T_CHECK(plumb__gguf_parse(header, bytes, file_bytes, name, gguf, &err) == PLUMB_OK, "%s",
            err.found);
    free(header);
    plumb__gguf_writer_destroy(writer);
}

/* The array holds these. */
static void check_u64(const plumb_gguf *gguf, const char *key, golden expected) {
    const plumb_gguf_value *value;
    plumb_error err = {0};
    T_CHECK(plumb__gguf_array(gguf, key, PLUMB_GGUF_U64, expected.count, &value, &err) == PLUMB_OK,
            "%s: %s", key, err.found);
    T_CHECK(!memcmp(value->bytes, expected.data, expected.bytes), "%s", key);
}

static void released(void) {
    char folder[512];
    plumb_model_config config;
    plumb_gguf gguf;
    released_folder(folder);
    write_and_read(folder, "released", &config, &gguf);
    goldens *g = goldens_open("oracle/units.safetensors");
    check_u64(&gguf, "deepseek41.engram.multipliers", goldens_get(g, "engram.multipliers", "I64"));
    check_u64(&gguf, "deepseek41.engram.primes", goldens_get(g, "engram.primes", "I64"));
    goldens_close(g);
    plumb__gguf_free(&gguf);
}

static void synthetic(void) {
    plumb_model_config config;
    plumb_gguf gguf;
    goldens *g = goldens_open("oracle/units.safetensors");
    write_and_read(deep40, "deep40", &config, &gguf);
    check_u64(&gguf, "deepseek41.engram.multipliers",
              goldens_get(g, "engram.multipliers.small694", "I64"));
    T_TRUE(!plumb__gguf_find(&gguf, "tokenizer.ggml.model"));
    plumb__gguf_free(&gguf);
    write_and_read(tiny, "tiny", &config, &gguf);
    plumb__gguf_free(&gguf);
    goldens_close(g);
}

static bool same_file(const char *a, const char *b, const char *name) {
    char *left = NULL, *right = NULL;
    int64_t left_size = 0, right_size = 0;
    plumb_error err = {0};
    bool same =
        plumb__model_file_load(a, name, 1 << 28, &left, &left_size, &err) == PLUMB_OK &&
        plumb__model_file_load(b, name, 1 << 28, &right, &right_size, &err) == PLUMB_OK &&
        left_size == right_size && !memcmp(left, right, (size_t)left_size);
    free(left);
    free(right);
    return same;
}

/* The small files come back; a file's metadata written again is the same, but for its name. */
static void small_files_come_back(void) {
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json"};
    plumb_model_config config;
    plumb_gguf first, second;
    write_and_read(demo, "demo", &config, &first);
    for (int i = 0; i < 4; i++) T_CHECK(same_file(demo, OUT "/demo.gguf", files[i]), "%s", files[i]);
    T_TRUE(same_file(tiny, OUT "/tiny.gguf", "engram_token_map.i32"));
    T_TRUE(!plumb__model_file_exists(OUT "/tiny.gguf", "tokenizer.json"));
    write_and_read(OUT "/demo.gguf", "again", &config, &second);
    T_TRUE(first.values == second.values);
    for (int64_t i = 0; i < first.values; i++) {
        const plumb_gguf_value *a = &first.value[i], *b = &second.value[i];
        bool same = !strcmp(a->key, b->key) && a->type == b->type && a->item == b->item &&
                    a->size == b->size && !memcmp(a->bytes, b->bytes, (size_t)a->size);
        T_CHECK(same || !strcmp(a->key, "general.name"), "%s", a->key);
    }
    plumb__gguf_free(&first);
    plumb__gguf_free(&second);
    T_TRUE(unlink(OUT "/again.gguf") == 0 && unlink(OUT "/again.model") == 0);
}

/* ---- Edges of the config ----------------------------------------------------------------------- */

/* A copy of the demo model's small files with one text replaced in one of them. */
static void bent_model(char folder[256], const char *file, const char *from, const char *to) {
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    fixture_folder("bent", folder);
    for (int i = 0; i < 3; i++) {
        char path[512];
        size_t size;
        (void)snprintf(path, sizeof path, "%s/%s", demo, files[i]);
        char *text = fixture_load(path, &size), *at = strstr(text, from);
        if (strcmp(file, files[i]) != 0) {
            fixture_write(folder, files[i], text, size);
        } else if (!at) {
            T_CHECK(at, "%s is not in %s", from, file);
        } else {
            char *bent = malloc(size + strlen(to) + 1);
            int length = sprintf(bent, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
            fixture_write(folder, file, bent, (size_t)length);
            free(bent);
        }
        free(text);
    }
}

static void uncommon_values(void) {
    char folder[256];
    plumb_model_config config;
    plumb_gguf gguf;
    bent_model(folder, "config.json", "\"rope_theta\": 10000", "\"rope_theta\": 10000.5");
    write_and_read(folder, "theta", &config, &gguf);
    const plumb_gguf_value *value = plumb__gguf_find(&gguf, "deepseek41.rope_theta");
    float theta = 0;
    T_TRUE(value && value->type == PLUMB_GGUF_F32);
    if (value) memcpy(&theta, value->bytes, sizeof theta);
    T_TRUE(theta == 10000.5f);
    value = plumb__gguf_find(&gguf, "deepseek41.compress_rope_theta");
    T_TRUE(value && value->type == PLUMB_GGUF_U32);
    plumb__gguf_free(&gguf);
    T_TRUE(unlink(OUT "/theta.gguf") == 0 && unlink(OUT "/theta.model") == 0);
}

static void faults(void) {
    static const struct {
        const char *file, *from, *to;
        plumb_status status;
        const char *field;
    } cases[] = {
        {"config.json", "\"hidden_size\": 256", "\"hidden_size\": 256.5", PLUMB_ERROR_CONFIG,
         "hidden_size"},
        {"config.json", "\"hidden_size\": 256", "\"hidden_size\": -256", PLUMB_ERROR_CONFIG,
         "hidden_size"},
        {"config.json", "\"hidden_size\": 256", "\"hidden_size\": 4294967296", PLUMB_ERROR_CONFIG,
         "hidden_size"},
        {"config.json", "\"hc_eps\": ", "\"hc_eps\": true, \"x\": ", PLUMB_ERROR_CONFIG, "hc_eps"},
        {"config.json", "\"scoring_func\": ", "\"scoring\": ", PLUMB_ERROR_CONFIG, "scoring_func"},
        {"config.json", "\"norm_topk_prob\": true", "\"norm_topk_prob\": 1", PLUMB_ERROR_CONFIG,
         "norm_topk_prob"},
        {"config.json", "\"factor\": 4", "\"factor\": \"4\"", PLUMB_ERROR_CONFIG, "factor"},
        {"config.json", "\"compress_ratios\": [", "\"compress_ratios\": [-1,", PLUMB_ERROR_CONFIG,
         "compress_ratios"},
        {"tokenizer_config.json", "\"add_bos_token\"", "add_bos_token", PLUMB_ERROR_FORMAT,
         "tokenizer_config.json"},
        {"tokenizer.json", "\"id\": 0", "\"id\": 5000", PLUMB_ERROR_FORMAT, "added_tokens.id"},
    };
    plumb_model_config config;
    plumb_error err = {0};
    T_TRUE(plumb__config_load(demo, NULL, NULL, &config, &err) == PLUMB_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char folder[256];
        plumb_gguf_writer *writer = NULL;
        bent_model(folder, cases[i].file, cases[i].from, cases[i].to);
        T_CHECK(write_metadata(folder, &config, &writer, &err) == cases[i].status, "%s",
                cases[i].to);
        T_ERROR(&err, cases[i].status, "bent", cases[i].field, cases[i].to);
        plumb__gguf_writer_destroy(writer);
    }
}

/* ---- Where a model came from ------------------------------------------------------------------- */

static void origins(void) {
    static const struct {
        const char *folder, *name_or_path;
        const char *name, *url, *revision;
    } cases[] = {
        {"plain", NULL, "plain", "", ""},
        {"plain", "org/Name-1.5", "Name-1.5", "https://huggingface.co/org/Name-1.5", ""},
        {"plain", "/srv/models/secret", "plain", "", ""},
        {"plain", "models/a/b", "plain", "", ""},
        {"plain", "../x", "plain", "", ""},
        {"plain", "org/", "plain", "", ""},
        {"plain", "", "plain", "", ""},
        {"models--org--a--b/snapshots/0123abcd", NULL, "a--b", "https://huggingface.co/org/a--b",
         "0123abcd"},
        /* The folder's own id, not that of the model it was tuned from. */
        {"models--org--tuned/snapshots/7f", "base/model", "tuned",
         "https://huggingface.co/org/tuned", "7f"},
        {"models--lone/snapshots/7f", NULL, "7f", "", ""},
        {"models--org--x/refs/7f", NULL, "7f", "", ""},
        {"other--org--x/snapshots/7f", NULL, "7f", "", ""},
        {"models--org--x/snapshots/not a revision", NULL, "not a revision", "", ""},
        {"no \xFF utf-8", NULL, "deepseek41", "", ""},
        {"nowhere/at/all", NULL, "deepseek41", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, OUT "/origins/%s", cases[i].folder);
        if (strcmp(cases[i].folder, "nowhere/at/all") != 0) make_folders(path);
        plumb_model_origin origin;
        plumb__model_origin(path, cases[i].name_or_path, &origin);
        T_CHECK(!strcmp(origin.name, cases[i].name), "%zu: %s", i, origin.name);
        T_CHECK(!strcmp(origin.url, cases[i].url), "%zu: %s", i, origin.url);
        T_CHECK(!strcmp(origin.revision, cases[i].revision), "%zu: %s", i, origin.revision);
    }
}

T_MAIN({"released", released}, {"synthetic", synthetic},
       {"small_files_come_back", small_files_come_back}, {"uncommon_values", uncommon_values},
       {"faults", faults}, {"origins", origins})
