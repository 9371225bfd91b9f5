/* Finding the model that the command line names; see model_lookup.h.
 *
 * The cache is laid out as HUB/models--ORG--NAME/{refs/main,snapshots/REVISION}; refs/main holds
 * the revision's name.  That name comes from a file, so it is checked before it becomes a path. */
#include "cli/model_lookup.h"

#include "base/error.h"
#include "base/file.h"
#include "cli/executable.h"
#include "format/checkpoint.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Formats into `path`; false if it does not fit. */
static bool set_path(char path[CLI_PATH_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool set_path(char path[CLI_PATH_SIZE], const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, CLI_PATH_SIZE, format, list);
    va_end(list);
    return length > 0 && length < CLI_PATH_SIZE;
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

static bool holds_model(const char *folder) {
    char config[CLI_PATH_SIZE];
    return set_path(config, "%s/config.json", folder) && exists(config);
}

static plumb_status find_demo(char path[CLI_PATH_SIZE], plumb_error *err) {
    char folder[CLI_PATH_SIZE];
    if (cli_executable_folder(folder, sizeof folder) &&
        set_path(path, "%s/../share/plumb/demo-model", folder) && holds_model(path))
        return PLUMB_OK;
    if (set_path(path, "%s", PLUMB_SOURCE_DIR "/data/demo-model") && holds_model(path))
        return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, NULL, "demo model", -1, "nothing",
                       "share/plumb/demo-model beside the program's folder, or -m MODEL");
}

/* One part of an id or a revision: letters, digits, '-', '_', '.', not starting with a dot. */
static bool is_plain_name(const char *text, size_t size) {
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    return size > 0 && size < 256 && text[0] != '.' && strspn(text, allowed) >= size;
}

/* The revision that refs/main names, one line. */
static plumb_status read_revision(const char *reference, char revision[258], plumb_error *err) {
    char *text;
    int64_t length;
    plumb_status status = plumb__file_load(reference, 257, &text, &length, err);
    if (status != PLUMB_OK) return status;
    size_t size = (size_t)length;
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) size--;
    memcpy(revision, text, size);
    revision[size] = '\0';
    free(text);
    if (is_plain_name(revision, size)) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_FORMAT, reference, NULL, -1, "another text",
                       "the name of a snapshot");
}

static plumb_status find_in_cache(const cli_options *options, const char *id, size_t org_size,
                                  char path[CLI_PATH_SIZE], plumb_error *err) {
    char cache[CLI_PATH_SIZE];
    bool fits =
        options->hf_home != NULL
            ? set_path(cache, "%s", options->hf_home)
            : options->home != NULL && set_path(cache, "%s/.cache/huggingface", options->home);
    char repository[CLI_PATH_SIZE], reference[CLI_PATH_SIZE];
    fits = fits && set_path(repository, "%s/hub/models--%.*s--%s", cache, (int)org_size, id,
                            id + org_size + 1);
    fits = fits && set_path(reference, "%s/refs/main", repository);
    if (!fits || !exists(reference))
        return plumb__fail(err, PLUMB_ERROR_IO, id, NULL, -1, "no such folder or cached model",
                           "a model folder, or an id in the Hugging Face cache");
    char revision[258];
    plumb_status status = read_revision(reference, revision, err);
    if (status != PLUMB_OK) return status;
    if (!set_path(path, "%s/snapshots/%s", repository, revision) || !exists(path))
        return plumb__fail(err, PLUMB_ERROR_IO, reference, NULL, -1, revision,
                           "a snapshot that is in the cache");
    return PLUMB_OK;
}

plumb_status cli_find_model(const cli_options *options, char path[CLI_PATH_SIZE],
                            plumb_error *err) {
    const char *model = options->model;
    if (model == NULL) return find_demo(path, err);
    size_t size = strlen(model);
    if (size >= CLI_PATH_SIZE)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "--model", -1,
                           plumb__format("%zu bytes", size).s, "a path below %d bytes",
                           CLI_PATH_SIZE);
    struct stat info;
    if (stat(model, &info) == 0) {
        memcpy(path, model, size + 1);
        return PLUMB_OK;
    }
    int fault = errno;
    const char *slash = strchr(model, '/');
    if (slash != NULL && is_plain_name(model, (size_t)(slash - model)) &&
        is_plain_name(slash + 1, strlen(slash + 1)))
        return find_in_cache(options, model, (size_t)(slash - model), path, err);
    return plumb__fail(err, PLUMB_ERROR_IO, model, *model == '\0' ? "model" : NULL, -1,
                       fault == ENOENT ? "nothing" : strerror(fault), "a model's folder or file");
}

plumb_status cli_find_vocabulary(const cli_options *options, int64_t *vocab, plumb_error *err) {
    char path[CLI_PATH_SIZE];
    plumb_checkpoint *checkpoint = NULL;
    plumb_status status = cli_find_model(options, path, err);
    if (status == PLUMB_OK) status = plumb__checkpoint_open(path, NULL, NULL, &checkpoint, err);
    if (status != PLUMB_OK) return status;
    *vocab = plumb__checkpoint_config(checkpoint)->vocab;
    plumb__checkpoint_close(checkpoint);
    return PLUMB_OK;
}
