/* Which release a model is: by its place in a cache, by its receipt, by what was stored, by its config;
 * and that the evidence is told. */
#include "convert/revision.h"

#include "convert/convert.h"
#include "convert/receipt.h"
#include "t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT BUILD_DIR "/revision"
#define TINY BUILD_DIR "/checkpoints/tiny"
#define SEPTEMBERS "models--deepseek-ai--DeepSeek-V4.1-Flash"
/* sha256sum of the two files of TINY, as published for them (tests/data/oracle/checkpoints.sha256). */
#define TINY_CONFIG "42e1ec90055da387cae62fb50e1e82e6560141fea473ebc9f4417768231728ba"

static void tables(void) {
#define HUB "https://huggingface.co/deepseek-ai/DeepSeek-V4.1-Flash"
    static const struct {
        const char *url, *revision;
        plumb_release release;
    } snapshots[] = {
        {HUB, "dba1be0a40aa45a94ad051997016db3960a90277", PLUMB_RELEASE_SEPTEMBER},
        {HUB, "2cba9e42", PLUMB_RELEASE_UNKNOWN},
        {HUB, "dba1be0", PLUMB_RELEASE_UNKNOWN},
        {HUB, "", PLUMB_RELEASE_UNKNOWN},
        {HUB "-1017", "1bae0e10", PLUMB_RELEASE_1017},
        {HUB "-1017", "0123456789", PLUMB_RELEASE_1017},
        {HUB "-1018", "1bae0e10", PLUMB_RELEASE_UNKNOWN},
        {"https://huggingface.co/somebody/DeepSeek-V4.1-Flash-1017", "1bae0e10", PLUMB_RELEASE_UNKNOWN},
        {"", "", PLUMB_RELEASE_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof snapshots / sizeof snapshots[0]; i++)
        T_CHECK(plumb__release_of_snapshot(snapshots[i].url, snapshots[i].revision) ==
                    snapshots[i].release, "%s %s", snapshots[i].url, snapshots[i].revision);
    static const struct {
        const char *sha256;
        int64_t bytes;
        plumb_release release;
    } configs[] = {
        {"8be45ce000112233445566778899aabbccddeeff00112233445566778899aabb", 3311,
         PLUMB_RELEASE_SEPTEMBER},
        {"8be45ce000112233445566778899aabbccddeeff00112233445566778899aabb", 3312,
         PLUMB_RELEASE_UNKNOWN},
        {"8be45ce100112233445566778899aabbccddeeff00112233445566778899aabb", 3311,
         PLUMB_RELEASE_UNKNOWN},
        /* tests/data/config/released.json: the same values, other bytes */
        {"59e6df8ea9a56e8eae46fc2ceca29a7e52cc65ea3ffd1fb5296ef1ff3f41c5b2", 3311,
         PLUMB_RELEASE_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        T_CHECK(plumb__release_of_config(configs[i].sha256, configs[i].bytes) == configs[i].release,
                "%s", configs[i].sha256);
}

/* A folder of links to TINY's files, as a cache has them, under ROOT. */
static void make_snapshot(char path[512], const char *repository, const char *revision) {
    static const char *const files[] = {
        "config.json", "engram_token_map.i32", "model.safetensors.index.json",
        "model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
        "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors"};
    char target[512], link[640];
    (void)mkdir(ROOT, 0777);
    (void)snprintf(path, 512, ROOT "/%s", repository);
    (void)mkdir(path, 0777);
    (void)snprintf(path, 512, ROOT "/%s/snapshots", repository);
    (void)mkdir(path, 0777);
    (void)snprintf(path, 512, ROOT "/%s/snapshots/%s", repository, revision);
    (void)mkdir(path, 0777);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(target, sizeof target, TINY "/%s", files[i]);
        (void)snprintf(link, sizeof link, "%s/%s", path, files[i]);
        (void)unlink(link);
        T_CHECK(symlink(target, link) == 0, "%s: %s", link, strerror(errno));
    }
    char *receipt = plumb__receipt_path(path);
    (void)unlink(receipt);
    free(receipt);
}

static plumb_revision detect(const char *path) {
    plumb_revision revision = {0};
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err = {0};
    bool good = plumb__checkpoint_open(path, NULL, NULL, &checkpoint, &err) == PLUMB_OK &&
                plumb__revision_detect(checkpoint, &revision, &err) == PLUMB_OK;
    T_CHECK(good, "%s: %s %s", path, err.field, err.found);
    plumb__checkpoint_close(checkpoint);
    return revision;
}

static void paths_in_a_cache(void) {
    static const struct {
        const char *repository, *revision;
        plumb_release release;
        const char *words;
    } rows[] = {
        {SEPTEMBERS, "dba1be0a40aa45a94ad051997016db3960a90277", PLUMB_RELEASE_SEPTEMBER,
         "by the cache's snapshot dba1be0a40aa45a94ad051997016db3960a90277 of DeepSeek-V4.1-Flash"},
        {SEPTEMBERS "-1017", "1bae0e10", PLUMB_RELEASE_1017,
         "by the cache's snapshot 1bae0e10 of DeepSeek-V4.1-Flash-1017"},
        {SEPTEMBERS, "2cba9e42", PLUMB_RELEASE_UNKNOWN,
         "a config.json of digest 42e1ec90, in no snapshot that plumb knows"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];
        make_snapshot(path, rows[i].repository, rows[i].revision);
        plumb_revision found = detect(path);
        T_CHECK(found.release == rows[i].release, "%s", path);
        T_CHECK(found.evidence == (rows[i].release ? PLUMB_EVIDENCE_SNAPSHOT : PLUMB_EVIDENCE_NONE),
                "%s", path);
        T_CHECK(!strcmp(found.words, rows[i].words), "%s", found.words);
        T_CHECK(!strcmp(found.config_sha256, TINY_CONFIG), "%s", found.config_sha256);
        T_CHECK(strlen(found.index_sha256) == 64, "%s", found.index_sha256);
    }
    T_CHECK(!strcmp(plumb__release_name(PLUMB_RELEASE_1017), "1017"), "name");
}

static void record(const char *path, const char *release, const char *evidence) {
    plumb_checkpoint *checkpoint = NULL;
    plumb_receipt *receipt = NULL;
    plumb_error err = {0};
    char *beside = plumb__receipt_path(path);
    bool good = plumb__checkpoint_open(path, NULL, NULL, &checkpoint, &err) == PLUMB_OK &&
                plumb__receipt_create(&receipt, &err) == PLUMB_OK &&
                plumb__receipt_add_files(receipt, checkpoint, &err) == PLUMB_OK &&
                plumb__receipt_set_release(receipt, release, evidence, &err) == PLUMB_OK &&
                plumb__receipt_write(receipt, beside, &err) == PLUMB_OK;
    T_CHECK(good, "%s %s", err.field, err.found);
    plumb__receipt_destroy(receipt);
    plumb__checkpoint_close(checkpoint);
    free(beside);
}

/* What was known of a model where it came from goes with it. */
static void receipts(void) {
    char path[512], receipt[640];
    make_snapshot(path, "elsewhere", "copy");
    (void)snprintf(receipt, sizeof receipt, "%s.audit.json", path);
    record(path, "1017", "by a \"hand\"\n\033[31m");
    plumb_revision found = detect(path);
    T_CHECK(found.release == PLUMB_RELEASE_1017 && found.evidence == PLUMB_EVIDENCE_RECEIPT, "%s",
            found.words);
    T_CHECK(!strncmp(found.words, "by a \"hand\"??[31m, says the receipt of 20", 41), "%s", found.words);
    record(path, "unknown", "");
    T_CHECK(detect(path).evidence == PLUMB_EVIDENCE_NONE, "an unknown one stays unknown");
    record(path, "1018", "");
    T_CHECK(detect(path).evidence == PLUMB_EVIDENCE_NONE, "a name that nobody knows");

    record(path, "1017", "");
    char extra[640];
    (void)snprintf(extra, sizeof extra, "%s/tokenizer.json", path);
    int fd = open(extra, O_WRONLY | O_CREAT, 0666);
    (void)close(fd);
    T_CHECK(detect(path).evidence == PLUMB_EVIDENCE_NONE, "a receipt of other files");
    (void)unlink(extra);
    T_CHECK(detect(path).evidence == PLUMB_EVIDENCE_RECEIPT, "of these");
    T_CHECK(truncate(receipt, 100) == 0, "a damaged receipt");
    T_CHECK(detect(path).evidence == PLUMB_EVIDENCE_NONE, "is no evidence");

    /* The place in a cache is stronger. */
    make_snapshot(path, SEPTEMBERS "-1017", "1bae0e10");
    record(path, "September", "by mistake");
    found = detect(path);
    T_CHECK(found.release == PLUMB_RELEASE_1017 && found.evidence == PLUMB_EVIDENCE_SNAPSHOT, "%s",
            found.words);
}

static void converted_files(void) {
    static const struct {
        const char *repository, *revision;
        plumb_release release;
        const char *words;
    } rows[] = {
        {SEPTEMBERS "-1017", "1bae0e10", PLUMB_RELEASE_1017,
         "by the cache's snapshot 1bae0e10 of DeepSeek-V4.1-Flash-1017, when it was converted"},
        {"elsewhere", "copy", PLUMB_RELEASE_UNKNOWN,
         "a config.json of digest 42e1ec90, in no snapshot that plumb knows"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[512];
        plumb_convert_result result;
        plumb_error err = {0};
        const plumb_convert_options options = {.dense = PLUMB_DENSE_FP8, .force = true, .jobs = 1};
        make_snapshot(path, rows[i].repository, rows[i].revision);
        T_CHECK(plumb__convert(path, ROOT "/model.gguf", &options, &result, &err) == PLUMB_OK, "%s %s",
                err.field, err.found);
        plumb_revision found = detect(ROOT "/model.gguf");
        T_CHECK(found.release == rows[i].release, "%s", plumb__release_name(found.release));
        T_CHECK(found.evidence == (rows[i].release ? PLUMB_EVIDENCE_FILE : PLUMB_EVIDENCE_NONE), "%s",
                found.words);
        T_CHECK(!strcmp(found.words, rows[i].words), "%s", found.words);
        T_CHECK(!strcmp(found.config_sha256, TINY_CONFIG), "%s", found.config_sha256);
        T_CHECK(!*found.index_sha256, "%s", found.index_sha256);
    }
    (void)unlink(ROOT "/model.gguf");
}

T_MAIN({"tables", tables}, {"paths_in_a_cache", paths_in_a_cache}, {"receipts", receipts},
       {"converted_files", converted_files})
