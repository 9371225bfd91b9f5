/* Recognising releases; see revision.h.
 *
 * Of the digests only these first digits are published, so that they tell files apart, but would
 * not stop a forger; the exact size goes with them. */
#include "convert/revision.h"

#include "base/clean_text.h"
#include "base/error.h"
#include "convert/model_origin.h"
#include "convert/receipt.h"
#include "format/model_files.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define REPOSITORY "https://huggingface.co/deepseek-ai/DeepSeek-V4.1-Flash"
enum { MOST_BYTES = 1 << 28 };

/* September's repository has other revisions; what changed in them is not published. */
static const struct known_snapshot {
    const char *url, *revision; /* revision: its first digits */
    plumb_release release;
} snapshots[] = {
    {REPOSITORY, "dba1be0a", PLUMB_RELEASE_SEPTEMBER},
    {REPOSITORY "-1017", "", PLUMB_RELEASE_1017}, /* 1bae0e10 is the one known */
};

static const struct known_config {
    const char *sha256; /* its first digits */
    int64_t bytes;
    const char *index_sha256;
    plumb_release release;
} configs[] = {
    {"8be45ce0", 3311, "74b0686a3d28", PLUMB_RELEASE_SEPTEMBER},
};

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const struct known_config *find_config(const char *sha256, int64_t bytes) {
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++)
        if (bytes == configs[i].bytes && begins_with(sha256, configs[i].sha256)) return &configs[i];
    return NULL;
}

plumb_release plumb__release_of_snapshot(const char *repository_url, const char *revision) {
    for (size_t i = 0; i < sizeof snapshots / sizeof snapshots[0]; i++)
        if (strcmp(repository_url, snapshots[i].url) == 0 &&
            begins_with(revision, snapshots[i].revision))
            return snapshots[i].release;
    return PLUMB_RELEASE_UNKNOWN;
}

plumb_release plumb__release_of_config(const char *config_sha256, int64_t config_bytes) {
    const struct known_config *known = find_config(config_sha256, config_bytes);
    return known ? known->release : PLUMB_RELEASE_UNKNOWN;
}

static const char *const names[] = {[PLUMB_RELEASE_UNKNOWN] = "unknown",
                                    [PLUMB_RELEASE_SEPTEMBER] = "September",
                                    [PLUMB_RELEASE_1017] = "1017"};
enum { RELEASES = sizeof names / sizeof names[0] };

const char *plumb__release_name(plumb_release release) {
    return names[release];
}

static plumb_release release_named(const char *name, size_t size) {
    for (int i = 0; i < RELEASES; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return (plumb_release)i;
    return PLUMB_RELEASE_UNKNOWN;
}

/* ---- Evidence -------------------------------------------------------------------------------- */

/* Each of these either knows the release, or leaves it unknown.  Words come from files, in part. */

static void conclude(plumb_revision *revision, plumb_release release,
                     plumb_release_evidence evidence, const char *words) {
    revision->release = release;
    revision->evidence = evidence;
    plumb__clean_text(words, "?", false, revision->words, sizeof revision->words);
}

static void look_at_path(const char *path, plumb_revision *revision) {
    plumb_model_origin origin;
    plumb__model_origin(path, NULL, &origin);
    plumb_release release = plumb__release_of_snapshot(origin.url, origin.revision);
    if (release != PLUMB_RELEASE_UNKNOWN)
        conclude(revision, release, PLUMB_EVIDENCE_SNAPSHOT,
                 plumb__format("by the cache's snapshot %s of %s", origin.revision, origin.name).s);
}

static void read_receipt(const char *receipt_path, const char *model, plumb_revision *revision) {
    plumb_receipt *receipt;
    plumb_error ignored; /* then there is no such evidence */
    if (plumb__receipt_read(receipt_path, &receipt, &ignored) != PLUMB_OK) return;
    const char *name = plumb__receipt_release(receipt);
    plumb_release release = release_named(name, strlen(name));
    if (release != PLUMB_RELEASE_UNKNOWN &&
        plumb__receipt_check_unchanged(receipt, model, &ignored) == PLUMB_OK)
        conclude(revision, release, PLUMB_EVIDENCE_RECEIPT,
                 plumb__format("%s, says the receipt of %s", plumb__receipt_evidence(receipt),
                               plumb__receipt_made(receipt))
                     .s);
    plumb__receipt_destroy(receipt);
}

static void look_at_receipt(const char *model, plumb_revision *revision) {
    char *path = plumb__receipt_path(model);
    if (path && plumb__receipt_exists(path)) read_receipt(path, model, revision);
    free(path);
}

static void look_at_header(const plumb_gguf *gguf, plumb_revision *revision) {
    const char *name, *words;
    int64_t name_size, words_size;
    plumb_error ignored;
    if (plumb__gguf_string(gguf, PLUMB_KEY_RELEASE, &name, &name_size, &ignored) != PLUMB_OK ||
        plumb__gguf_string(gguf, PLUMB_KEY_RELEASE_EVIDENCE, &words, &words_size, &ignored) !=
            PLUMB_OK)
        return;
    plumb_release release = release_named(name, (size_t)name_size);
    int shown = words_size < 150 ? (int)words_size : 150;
    if (release != PLUMB_RELEASE_UNKNOWN)
        conclude(revision, release, PLUMB_EVIDENCE_FILE,
                 plumb__format("%.*s, when it was converted", shown, words).s);
}

static void look_at_config(int64_t config_bytes, plumb_revision *revision) {
    const struct known_config *known = find_config(revision->config_sha256, config_bytes);
    if (!known) return;
    bool index = begins_with(revision->index_sha256, known->index_sha256);
    conclude(revision, known->release, PLUMB_EVIDENCE_CONFIG,
             plumb__format("by the digest of config.json%s; the weights may be of another release",
                           index ? " and the index" : "")
                 .s);
}

/* ---- Digests --------------------------------------------------------------------------------- */

static plumb_status sha256_of(const char *model, const char *name, char hex[65], int64_t *size,
                              plumb_error *err) {
    char *text;
    plumb_status status = plumb__model_file_load(model, name, MOST_BYTES, &text, size, err);
    if (status != PLUMB_OK) return status;
    unsigned char digest[32];
    bool good = EVP_Digest(text, (size_t)*size, digest, NULL, EVP_sha256(), NULL) == 1;
    free(text);
    if (!good)
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "SHA-256", -1,
                           "a libcrypto that refuses it", NULL);
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned)digest[i]);
    return PLUMB_OK;
}

plumb_status plumb__revision_detect(const plumb_checkpoint *checkpoint, plumb_revision *revision,
                                    plumb_error *err) {
    static const char index[] = "model.safetensors.index.json";
    const char *model = plumb__checkpoint_path(checkpoint);
    plumb_revision found = {0};
    int64_t config_bytes = 0, index_bytes;
    plumb_status status = sha256_of(model, "config.json", found.config_sha256, &config_bytes, err);
    if (status == PLUMB_OK && plumb__model_file_exists(model, index))
        status = sha256_of(model, index, found.index_sha256, &index_bytes, err);
    if (status != PLUMB_OK) return status;
    if (plumb__checkpoint_gguf(checkpoint)) {
        look_at_header(plumb__checkpoint_gguf(checkpoint), &found);
    } else {
        look_at_path(model, &found);
        if (found.release == PLUMB_RELEASE_UNKNOWN) look_at_receipt(model, &found);
    }
    if (found.release == PLUMB_RELEASE_UNKNOWN) look_at_config(config_bytes, &found);
    if (found.release == PLUMB_RELEASE_UNKNOWN)
        conclude(&found, PLUMB_RELEASE_UNKNOWN, PLUMB_EVIDENCE_NONE,
                 plumb__format("a config.json of digest %.8s, in no snapshot that plumb knows",
                               found.config_sha256)
                     .s);
    *revision = found;
    return PLUMB_OK;
}

plumb_status plumb__revision_write(plumb_gguf_writer *writer, const plumb_checkpoint *checkpoint,
                                   plumb_error *err) {
    plumb_revision revision;
    plumb_status status = plumb__revision_detect(checkpoint, &revision, err);
    if (status != PLUMB_OK) return status;
    const char *name = plumb__release_name(revision.release);
    plumb__gguf_write_string(writer, PLUMB_KEY_RELEASE, name, (int64_t)strlen(name));
    plumb__gguf_write_string(writer, PLUMB_KEY_RELEASE_EVIDENCE, revision.words,
                             (int64_t)strlen(revision.words));
    return PLUMB_OK;
}
