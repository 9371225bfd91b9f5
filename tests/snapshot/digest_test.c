/* The digest that tells one model from another: equal for a folder and for what was converted from it,
 * however it is opened; another for other weights, another config, another table of ids.  What its
 * sample sees is what docs/snapshots.md says, no more and no less. */
#include "engine/model_digest.h"
#include "convert/converted.h"
#include "equal/specimen_copy.h"
#include "snapshot/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "t.h"

typedef struct digest_bytes {
    uint8_t byte[PLUMB_MODEL_DIGEST_BYTES];
} digest_bytes;

static digest_bytes digest_of(plumb_model *model) {
    digest_bytes digest;
    plumb_error err;
    specimen_must(plumb__model_digest(model, digest.byte, &err), &err, "digest");
    return digest;
}

static digest_bytes digest_at(const char *path, const plumb_model_options *options) {
    plumb_model *model = NULL;
    plumb_error err;
    specimen_must(plumb_model_open(path, options, &model, &err), &err, path);
    digest_bytes digest = digest_of(model);
    plumb_model_close(model);
    return digest;
}

static bool equal(digest_bytes a, digest_bytes b) { return !memcmp(a.byte, b.byte, sizeof a.byte); }

/* ---- The same model -------------------------------------------------------------------------------- */

static const plumb_model_options ways[] = {
    {.threads = 1},
    {.threads = 2, .cpu_level = "portable"},
    {.threads = 1, .streaming = true, .cache_experts = 19},
    {.threads = 2, .streaming = true, .layer_buffers = true}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* A snapshot of the folder goes on in the converted file, and the other way round. */
static void check_exchange(const specimen *s, const char *file, const float *fresh) {
    enum { AT = 61 };
    plumb_model *model[2] = {specimen_model(s, 1, NULL), NULL};
    plumb_error err;
    specimen_must(plumb_model_open(file, &ways[2], &model[1], &err), &err, file);
    float *logits = specimen_logits(s);
    for (int from = 0; from < 2; from++) {
        plumb_session *source = specimen_session(model[from], 8);
        plumb_session *target = specimen_session(model[1 - from], 64);
        const char *path = snapshot_path("digest.exchange");
        specimen_advance(s, source, AT, logits);
        snapshot_save(source, path, NULL);
        snapshot_restore(target, path);
        specimen_advance(s, target, s->count, logits);
        T_CHECK(specimen_first_difference(s, fresh, logits, AT, s->count) < 0, "%s %d", file, from);
        (void)unlink(path);
        plumb_session_destroy(source);
        plumb_session_destroy(target);
    }
    free(logits);
    plumb_model_close(model[0]);
    plumb_model_close(model[1]);
}

static void every_form(const char *name) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", name);
    digest_bytes wanted = digest_at(s.folder, &ways[0]);
    float *fresh = specimen_logits(&s);
    plumb_model *model = specimen_model(&s, 2, NULL);
    plumb_session *session = specimen_session(model, 0);
    specimen_advance(&s, session, s.count, fresh);
    for (int i = 1; i < WAYS; i++) T_CHECK(equal(digest_at(s.folder, &ways[i]), wanted), "way %d", i);
    for (flavour f = 0; f < FLAVOURS; f++) {
        converted c = converted_make("snapshots-converted", name, f);
        for (int i = 0; i < WAYS; i++)
            T_CHECK(equal(digest_at(c.path, &ways[i]), wanted), "%s, way %d", flavour_name(f), i);
        check_exchange(&s, c.path, fresh);
    }
    converted_remove("snapshots-converted", name);
    free(fresh);
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&s);
}

static void every_form_of_tiny(void) { every_form("tiny"); }

/* Its table of ids is made from its tokenizer. */
static void demo_model(void) {
    digest_bytes wanted = digest_at(PROJECT_DIR "/data/demo-model", &ways[0]);
    converted c = converted_make("snapshots-converted", "demo", FLAVOUR_FP8);
    T_CHECK(equal(digest_at(c.path, &ways[2]), wanted), "%s", c.path);
    converted_remove("snapshots-converted", "demo");
}

/* ---- Another model --------------------------------------------------------------------------------- */

static void another_seed(void) {
    digest_bytes one = digest_at(BUILD_DIR "/checkpoints/tiny", &ways[0]);
    T_CHECK(!equal(one, digest_at(BUILD_DIR "/checkpoints/tiny-seed2", &ways[0])), "other weights");
    T_CHECK(equal(one, digest_at(BUILD_DIR "/checkpoints/tiny", &ways[0])), "the same again");
}

static specimen copy_of_tiny(const char *name) {
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    specimen copy = specimen_copy(&s, BUILD_DIR "/snapshots-models", name);
    specimen_close(&s);
    return copy;
}

/* One text in config.json for another. */
static void edit_config(const specimen *s, const char *old, const char *new) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/config.json", s->folder);
    file_bytes config = file_load(path);
    config.bytes[config.size] = 0;
    char *at = strstr((char *)config.bytes, old);
    file_must(at && strlen(old) == strlen(new), old);
    memcpy(at, new, strlen(new));
    file_store(path, config.bytes, config.size);
    free(config.bytes);
}

static void another_config(void) {
    static const struct {
        const char *old, *new;
        bool matters;
    } edits[] = {{"\"rms_norm_eps\": 1e-20", "\"rms_norm_eps\": 1e-19", true},
                 {"\"rope_theta\": 10000", "\"rope_theta\": 20000", true},
                 {"\"beta_fast\": 32", "\"beta_fast\": 31", true},
                 {"\"routed_scaling_factor\": 1.5", "\"routed_scaling_factor\": 1.4", true},
                 {"\"swiglu_limit\": 1.5", "\"swiglu_limit\": 1.4", true},
                 {"\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 3", true},
                 {"\"max_position_embeddings\": 4096", "\"max_position_embeddings\": 8192", false},
                 {"\"attention_dropout\": 0.0", "\"attention_dropout\": 0.5", false}};
    digest_bytes wanted = digest_at(BUILD_DIR "/checkpoints/tiny", &ways[0]);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        specimen s = copy_of_tiny("config");
        edit_config(&s, edits[i].old, edits[i].new);
        T_CHECK(equal(digest_at(s.folder, &ways[0]), wanted) == !edits[i].matters, "%s", edits[i].new);
        specimen_close(&s);
    }
}

/* The digest of the files as they are, without opening the model: its weights may be anything. */
static digest_bytes digest_of_files(const specimen *s, int32_t *token_map) {
    plumb_model model = {.token_map = token_map};
    plumb_error err;
    specimen_must(plumb__checkpoint_open(s->folder, NULL, NULL, &model.checkpoint, &err), &err,
                  s->folder);
    pthread_mutex_init(&model.digest_lock, NULL);
    digest_bytes digest = digest_of(&model);
    pthread_mutex_destroy(&model.digest_lock);
    plumb__checkpoint_close(model.checkpoint);
    return digest;
}

static void another_token_map(void) {
    specimen s = copy_of_tiny("map");
    int32_t map[512] = {0};
    digest_bytes one = digest_of_files(&s, map);
    map[511] = 1;
    T_CHECK(!equal(one, digest_of_files(&s, map)), "the last id");
    specimen_close(&s);
}

/* Layer and number of an expert's tensor. */
static bool is_shown_expert(const char *name) {
    int layer, expert;
    return sscanf(name, "layers.%d.ffn.experts.%d.", &layer, &expert) == 2 &&
           expert == 37 * layer % 8;
}

static bool flips_digest(const specimen *s, const plumb_tensor *t, const char *shard, int64_t at,
                         int32_t *map, digest_bytes wanted) {
    uint8_t byte = 0;
    int fd = open(shard, O_RDWR);
    file_must(fd >= 0 && pread(fd, &byte, 1, (off_t)(t->offset + at)) == 1, shard);
    byte ^= 1;
    file_must(pwrite(fd, &byte, 1, (off_t)(t->offset + at)) == 1, shard);
    bool flipped = !equal(digest_of_files(s, map), wanted);
    byte ^= 1;
    file_must(pwrite(fd, &byte, 1, (off_t)(t->offset + at)) == 1, shard);
    (void)close(fd);
    return flipped;
}

/* One bit at the beginning, in the middle and at the end of every tensor. */
static void every_tensor(void) {
    specimen s = copy_of_tiny("bits");
    int32_t map[512] = {0};
    digest_bytes wanted = digest_of_files(&s, map);
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err;
    specimen_must(plumb__checkpoint_open(s.folder, NULL, NULL, &checkpoint, &err), &err, s.folder);
    int64_t seen = 0, unseen = 0;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        const int64_t places[] = {0, (t->bytes - 1) / 2, t->bytes - 1};
        bool shown = t->tensor_class != PLUMB_CLASS_EXPERT || is_shown_expert(t->name);
        for (int p = 0; p < 3; p++) {
            if (p == 1 && t->tensor_class == PLUMB_CLASS_ENGRAM_TABLE) continue; /* between two ranges */
            const char *shard = plumb__checkpoint_shard_path(checkpoint, t->shard);
            bool flipped = flips_digest(&s, t, shard, places[p], map, wanted);
            T_CHECK(flipped == shown, "%s at %" PRId64, t->name, places[p]);
            *(flipped ? &seen : &unseen) += 1;
            if (!shown) break; /* one bit tells */
        }
    }
    T_CHECK(seen > 100 && unseen > 100, "%" PRId64 " seen, %" PRId64 " not", seen, unseen);
    plumb__checkpoint_close(checkpoint);
    specimen_close(&s);
}

/* ---- Threads --------------------------------------------------------------------------------------- */

typedef struct saving {
    plumb_model *model;
    const specimen *s;
    char path[600];
} saving;

static void *save_one(void *argument) {
    saving *own = argument;
    plumb_session *session = specimen_session(own->model, 16);
    const float *logits;
    plumb_error err;
    specimen_must(plumb_session_eval(session, own->s->tokens, 20, &logits, &err), &err, "eval");
    for (int i = 0; i < 3; i++) snapshot_save(session, own->path, NULL);
    snapshot_restore(session, own->path);
    plumb_session_destroy(session);
    return NULL;
}

/* Sessions of one model saved at once: the first to come computes the digest, no other sees half. */
static void threads_at_once(void) {
    enum { THREADS = 4 };
    specimen s = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *model = specimen_model(&s, 2, NULL);
    pthread_t thread[THREADS];
    saving own[THREADS];
    for (int i = 0; i < THREADS; i++) {
        own[i] = (saving){.model = model, .s = &s};
        char name[32];
        (void)snprintf(name, sizeof name, "digest.thread-%d", i);
        (void)snprintf(own[i].path, sizeof own[i].path, "%s", snapshot_path(name));
    }
    for (int i = 0; i < THREADS; i++)
        file_must(pthread_create(&thread[i], NULL, save_one, &own[i]) == 0, "thread");
    for (int i = 0; i < THREADS; i++) (void)pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        T_CHECK(files_same(own[0].path, own[i].path), "thread %d", i);
        if (i > 0) (void)unlink(own[i].path);
    }
    (void)unlink(own[0].path);
    plumb_model_close(model);
    specimen_close(&s);
}

T_MAIN({"every_form_of_tiny", every_form_of_tiny}, {"demo_model", demo_model},
       {"another_seed", another_seed}, {"another_config", another_config},
       {"another_token_map", another_token_map}, {"every_tensor", every_tensor}, {"threads_at_once", threads_at_once})
