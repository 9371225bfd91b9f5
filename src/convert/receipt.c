/* The receipt as a JSON object that is built or was parsed; see receipt.h.
 *
 * jansson's objects find tensors by name and keep the order in which they were added, so that the
 * file can be read and compared by people.  What parses has been checked: lookups need no care. */
#include "convert/receipt.h"

#include "base/error.h"
#include "base/file.h"
#include "convert/receipt_file.h"
#include "format/model_files.h"
#include "format/shard_file.h"

#include <errno.h>
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { FORMAT = 1, DIGITS = 32 };

struct plumb_receipt {
    json_t *root; /* owns the others */
    json_t *files, *tensors;
};

plumb_digest_text plumb__digest_text(XXH128_hash_t digest) {
    static const char digits[] = "0123456789abcdef";
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, digest);
    plumb_digest_text text;
    for (int i = 0; i < DIGITS; i++)
        text.hex[i] = digits[bytes.digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
    text.hex[DIGITS] = '\0';
    return text;
}

/* ---- Making one ------------------------------------------------------------------------------ */

/* jansson takes over the value, and refuses one that there was no memory for. */
static plumb_status put(json_t *object, const char *key, json_t *value, plumb_error *err) {
    if (json_object_set_new(object, key, value) == 0) return PLUMB_OK;
    return plumb__fail_memory(err, key, strlen(key));
}

static plumb_status fill_empty(plumb_receipt *receipt, plumb_error *err) {
    char made[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &parts);
    plumb_status status = put(receipt->root, "plumb_receipt", json_integer(FORMAT), err);
    if (status == PLUMB_OK) status = put(receipt->root, "made", json_string(made), err);
    if (status == PLUMB_OK) status = plumb__receipt_set_release(receipt, "", "", err);
    if (status == PLUMB_OK) status = put(receipt->root, "files", json_object(), err);
    if (status == PLUMB_OK) status = put(receipt->root, "tensors", json_object(), err);
    receipt->files = json_object_get(receipt->root, "files");
    receipt->tensors = json_object_get(receipt->root, "tensors");
    return status;
}

plumb_status plumb__receipt_create(plumb_receipt **receipt, plumb_error *err) {
    plumb_receipt *made = calloc(1, sizeof *made);
    if (!made) return plumb__fail_memory(err, "receipt", sizeof *made);
    made->root = json_object();
    plumb_status status = fill_empty(made, err);
    if (status == PLUMB_OK)
        *receipt = made;
    else
        plumb__receipt_destroy(made);
    return status;
}

void plumb__receipt_destroy(plumb_receipt *receipt) {
    if (!receipt) return;
    json_decref(receipt->root);
    free(receipt);
}

plumb_status plumb__receipt_add_tensors(plumb_receipt *receipt, const plumb_checkpoint *checkpoint,
                                        const XXH128_hash_t *digests, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint) && status == PLUMB_OK; i++)
        status = put(receipt->tensors, plumb__checkpoint_tensor(checkpoint, i)->name,
                     json_string(plumb__digest_text(digests[i]).hex), err);
    return status;
}

plumb_status plumb__receipt_set_release(plumb_receipt *receipt, const char *release,
                                        const char *evidence, plumb_error *err) {
    plumb_status status = put(receipt->root, "release", json_string(release), err);
    if (status == PLUMB_OK) status = put(receipt->root, "evidence", json_string(evidence), err);
    return status;
}

static int64_t nanoseconds(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static plumb_status put_content(json_t *file, const char *path, plumb_error *err) {
    char *text;
    int64_t size;
    plumb_status status = plumb__file_load(path, PLUMB_MODEL_FILE_BYTES, &text, &size, err);
    if (status != PLUMB_OK) return status;
    plumb_digest_text digest = plumb__digest_text(XXH3_128bits(text, (size_t)size));
    free(text);
    return put(file, "digest", json_string(digest.hex), err);
}

static plumb_status add_file(plumb_receipt *receipt, const char *path, const char *name,
                             bool with_content, plumb_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno), "a file");
    json_t *file = json_object();
    plumb_status status = put(file, "bytes", json_integer(info.st_size), err);
    if (status == PLUMB_OK) status = put(file, "mtime_ns", json_integer(nanoseconds(&info)), err);
    if (status == PLUMB_OK && with_content) status = put_content(file, path, err);
    if (status == PLUMB_OK) status = put(receipt->files, name, json_incref(file), err);
    json_decref(file);
    return status;
}

static char *join(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static plumb_status add_small_files(plumb_receipt *receipt, const char *folder, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < PLUMB_MODEL_FILES && status == PLUMB_OK; i++) {
        if (!plumb__model_file_exists(folder, plumb__model_files[i])) continue;
        char *path = join(folder, plumb__model_files[i]);
        status = path ? add_file(receipt, path, plumb__model_files[i], true, err)
                      : plumb__fail_memory(err, plumb__model_files[i], strlen(folder));
        free(path);
    }
    return status;
}

plumb_status plumb__receipt_add_files(plumb_receipt *receipt, const plumb_checkpoint *checkpoint,
                                      plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < plumb__checkpoint_shards(checkpoint) && status == PLUMB_OK; i++) {
        const plumb_shard_file *shard = plumb__checkpoint_shard(checkpoint, i);
        status = add_file(receipt, shard->path, shard->file, false, err);
    }
    if (status != PLUMB_OK || plumb__checkpoint_gguf(checkpoint)) return status;
    return add_small_files(receipt, plumb__checkpoint_path(checkpoint), err);
}

plumb_status plumb__receipt_write(const plumb_receipt *receipt, const char *path,
                                  plumb_error *err) {
    char *body = json_dumps(receipt->root, JSON_INDENT(2));
    if (!body) return plumb__fail_memory(err, "receipt", 0);
    plumb_status status = plumb__receipt_file_write(path, body, err);
    free(body);
    return status;
}

/* ---- Reading one ----------------------------------------------------------------------------- */

static plumb_status wrong(const char *path, const char *field, const char *expected,
                          plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, field, -1, "something else", "%s", expected);
}

static bool is_digest(const json_t *value) {
    const char *text = json_string_value(value);
    return text != NULL && strlen(text) == DIGITS && strspn(text, "0123456789abcdef") == DIGITS;
}

static bool is_file(const json_t *value) {
    const json_t *digest = json_object_get(value, "digest");
    return json_is_integer(json_object_get(value, "bytes")) &&
           json_is_integer(json_object_get(value, "mtime_ns")) && (!digest || is_digest(digest));
}

/* A name must stay within the folder. */
static bool is_name(const char *name) {
    return *name != '\0' && strchr(name, '/') == NULL && strcmp(name, "..") != 0;
}

/* "2026-11-30T12:00:00Z": what is shown to people must be nothing but that. */
static bool is_time(const char *text) {
    static const char form[] = "0000-00-00T00:00:00Z";
    size_t i = 0;
    while (form[i] != '\0' && (form[i] == '0' ? isdigit((unsigned char)text[i]) : text[i] == form[i])) i++;
    return form[i] == '\0' && text[i] == '\0';
}

static plumb_status check(const plumb_receipt *receipt, const char *path, plumb_error *err) {
    static const char *const texts[] = {"made", "release", "evidence"};
    if (json_integer_value(json_object_get(receipt->root, "plumb_receipt")) != FORMAT)
        return wrong(path, "plumb_receipt", "format 1, the only one so far", err);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!json_is_string(json_object_get(receipt->root, texts[i])))
            return wrong(path, texts[i], "a text", err);
    if (!is_time(json_string_value(json_object_get(receipt->root, "made"))))
        return wrong(path, "made", "a time, as 2026-11-30T12:00:00Z", err);
    if (!json_is_object(receipt->files)) return wrong(path, "files", "an object", err);
    if (!json_is_object(receipt->tensors)) return wrong(path, "tensors", "an object", err);
    const char *name;
    json_t *value;
    json_object_foreach(receipt->files, name, value) {
        if (!is_name(name)) return wrong(path, "files", "names of files in one folder", err);
        if (!is_file(value)) return wrong(path, name, "bytes, mtime_ns and perhaps a digest", err);
    }
    json_object_foreach(receipt->tensors, name, value) {
        if (!is_digest(value)) return wrong(path, name, "a digest of 32 digits", err);
    }
    return PLUMB_OK;
}

plumb_status plumb__receipt_parse(const char *text, size_t size, const char *path,
                                  plumb_receipt **receipt, plumb_error *err) {
    plumb_status status = plumb__receipt_file_check(text, size, path, err);
    if (status != PLUMB_OK) return status;
    plumb_receipt *parsed = calloc(1, sizeof *parsed);
    if (!parsed) return plumb__fail_memory(err, "receipt", sizeof *parsed);
    json_error_t fault;
    parsed->root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &fault);
    if (!parsed->root) {
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, path, "line", fault.line, fault.text, "JSON");
    } else {
        parsed->files = json_object_get(parsed->root, "files");
        parsed->tensors = json_object_get(parsed->root, "tensors");
        status = check(parsed, path, err);
    }
    if (status == PLUMB_OK)
        *receipt = parsed;
    else
        plumb__receipt_destroy(parsed);
    return status;
}

plumb_status plumb__receipt_read(const char *path, plumb_receipt **receipt, plumb_error *err) {
    char *text;
    int64_t size;
    plumb_status status = plumb__receipt_file_load(path, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = plumb__receipt_parse(text, (size_t)size, path, receipt, err);
    free(text);
    return status;
}

static const char *text_of(const plumb_receipt *receipt, const char *key) {
    return json_string_value(json_object_get(receipt->root, key));
}

const char *plumb__receipt_made(const plumb_receipt *receipt) {
    return text_of(receipt, "made");
}

const char *plumb__receipt_release(const plumb_receipt *receipt) {
    return text_of(receipt, "release");
}

const char *plumb__receipt_evidence(const plumb_receipt *receipt) {
    return text_of(receipt, "evidence");
}

int64_t plumb__receipt_tensors(const plumb_receipt *receipt) {
    return (int64_t)json_object_size(receipt->tensors);
}

const char *plumb__receipt_digest(const plumb_receipt *receipt, const char *tensor) {
    return json_string_value(json_object_get(receipt->tensors, tensor));
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static int64_t number_of(const json_t *file, const char *key) {
    return json_integer_value(json_object_get(file, key));
}

static plumb_status check_file(const char *path, const json_t *then, plumb_error *err) {
    struct stat now;
    if (stat(path, &now) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, path, "receipt", -1, strerror(errno),
                           "the file that was audited");
    if (now.st_size != number_of(then, "bytes"))
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "receipt", -1,
                           plumb__format("%lld bytes", (long long)now.st_size).s,
                           "the %lld bytes that were audited", (long long)number_of(then, "bytes"));
    if (nanoseconds(&now) != number_of(then, "mtime_ns"))
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "receipt", -1,
                           "a file written since, by its modification time",
                           "the file that was audited; plumb audit --record reads it again");
    return PLUMB_OK;
}

/* Of a converted file, the folder that it is in. */
static char *folder_of(const char *model, bool single) {
    const char *slash = strrchr(model, '/');
    if (!single) return strdup(model);
    if (!slash) return strdup(".");
    return strndup(model, slash > model ? (size_t)(slash - model) : 1);
}

static plumb_status check_files(const plumb_receipt *receipt, const char *folder,
                                plumb_error *err) {
    const char *name;
    json_t *file;
    json_object_foreach(receipt->files, name, file) {
        char *path = join(folder, name);
        if (!path) return plumb__fail_memory(err, name, strlen(folder));
        plumb_status status = check_file(path, file, err);
        free(path);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static bool lists(const plumb_receipt *receipt, const char *name) {
    return json_object_get(receipt->files, name) != NULL;
}

/* What there is must have been audited. */
static plumb_status check_listed(const plumb_receipt *receipt, const char *model, bool single,
                                 plumb_error *err) {
    const char *slash = strrchr(model, '/'), *unknown = NULL;
    if (single) {
        const char *name = slash ? slash + 1 : model;
        if (!lists(receipt, name)) unknown = name;
    }
    for (int i = 0; i < PLUMB_MODEL_FILES && !single && !unknown; i++)
        if (!lists(receipt, plumb__model_files[i]) &&
            plumb__model_file_exists(model, plumb__model_files[i]))
            unknown = plumb__model_files[i];
    if (!unknown) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, model, unknown, -1,
                       "a file that the receipt does not know", "none but those that were audited");
}

plumb_status plumb__receipt_check_unchanged(const plumb_receipt *receipt, const char *model,
                                            plumb_error *err) {
    bool single = plumb__model_is_file(model);
    char *folder = folder_of(model, single);
    if (!folder) return plumb__fail_memory(err, model, strlen(model));
    plumb_status status = check_files(receipt, folder, err);
    if (status == PLUMB_OK) status = check_listed(receipt, model, single, err);
    free(folder);
    return status;
}

static const char *content_of(const plumb_receipt *receipt, const char *name) {
    const char *digest =
        json_string_value(json_object_get(json_object_get(receipt->files, name), "digest"));
    return digest != NULL ? digest : "no such file";
}

plumb_status plumb__receipt_compare_small_files(const plumb_receipt *now, const plumb_receipt *then,
                                                const char *model, plumb_error *err) {
    for (int i = 0; i < PLUMB_MODEL_FILES; i++) {
        const char *name = plumb__model_files[i], *found = content_of(now, name);
        const char *recorded = content_of(then, name);
        if (strcmp(found, recorded) != 0)
            return plumb__fail(err, PLUMB_ERROR_VALUE, model, name, -1, found,
                               "%s, as its receipt says", recorded);
    }
    return PLUMB_OK;
}

plumb_status plumb__receipt_require(const char *model, plumb_error *err) {
    char *path = plumb__receipt_path(model);
    if (!path) return plumb__fail_memory(err, model, strlen(model));
    plumb_receipt *receipt = NULL;
    plumb_status status = PLUMB_OK;
    if (!plumb__receipt_exists(path))
        status = plumb__fail(err, PLUMB_ERROR_IO, path, "receipt", -1, "nothing",
                             "the receipt of an audit; plumb audit --record makes one");
    if (status == PLUMB_OK) status = plumb__receipt_read(path, &receipt, err);
    if (status == PLUMB_OK) status = plumb__receipt_check_unchanged(receipt, model, err);
    plumb__receipt_destroy(receipt);
    free(path);
    return status;
}
