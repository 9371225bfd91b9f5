/* Small files of a model.
 *
 * A converted file is opened anew for each of them: they are few, its header is in the page cache
 * after the first, and nobody has to carry an open model around to read a tokenizer. */
#include "format/model_files.h"

#include "base/error.h"
#include "base/file.h"
#include "format/gguf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_FILE "model.safetensors.index.json"
#define TOKEN_MAP_FILE "engram_token_map.i32"

const char *const plumb__model_files[PLUMB_MODEL_FILES] = {
    "config.json",           INDEX_FILE,     "tokenizer.json", "tokenizer_config.json",
    "generation_config.json", TOKEN_MAP_FILE};

static bool is_named_gguf(const char *model) {
    static const char ending[] = ".gguf";
    size_t size = strlen(model), length = sizeof ending - 1;
    return size > length && !strcmp(model + size - length, ending);
}

static bool begins_as_gguf(int fd) {
    static const char magic[4] = {'G', 'G', 'U', 'F'};
    char begin[sizeof PLUMB_GGUF_PART_MARK - 1];
    ssize_t size = pread(fd, begin, sizeof begin, 0);
    /* An unfinished one is refused by whoever reads its header. */
    return (size >= (ssize_t)sizeof magic && !memcmp(begin, magic, sizeof magic)) ||
           (size == (ssize_t)sizeof begin && !memcmp(begin, PLUMB_GGUF_PART_MARK, sizeof begin));
}

bool plumb__model_is_file(const char *model) {
    struct stat opened;
    int fd = open(model, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO has no writer yet */
    if (fd < 0) return false;
    bool regular = fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode);
    bool is_file = regular && (is_named_gguf(model) || begins_as_gguf(fd));
    (void)close(fd);
    return is_file;
}

/* Something that is neither a folder nor a converted file; a link that leads nowhere is something. */
static bool stands_for_itself(const char *model) {
    struct stat found;
    if (lstat(model, &found) != 0) return false;
    bool folder = stat(model, &found) == 0 && S_ISDIR(found.st_mode);
    return !folder && !plumb__model_is_file(model);
}

char *plumb__model_file_name(const char *model, const char *name) {
    if (stands_for_itself(model)) return strdup(model);
    size_t size = strlen(model) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) (void)snprintf(path, size, "%s/%s", model, name);
    return path;
}

/* ---- In a converted file ----------------------------------------------------------------------- */

/* Free *gguf in any case. */
static plumb_status read_header(const char *model, plumb_gguf *gguf, plumb_error *err) {
    int fd;
    struct stat opened;
    *gguf = (plumb_gguf){0};
    plumb_status status = plumb__file_open(model, &fd, &opened, err);
    if (status != PLUMB_OK) return status;
    status = plumb__gguf_read(fd, opened.st_size, model, gguf, err);
    (void)close(fd);
    return status;
}

static bool is_token_map(const char *name) { return !strcmp(name, TOKEN_MAP_FILE); }

static plumb__text192 key_of(const char *name) {
    if (is_token_map(name)) return plumb__format("%s", PLUMB_GGUF_TOKEN_MAP_KEY);
    if (!strcmp(name, "config.json")) return plumb__format("%s", PLUMB_GGUF_CONFIG_KEY);
    return plumb__format("%s%s", PLUMB_GGUF_FILE_KEY, name);
}

static bool exists_as_metadata(const char *model, const char *name) {
    plumb_gguf gguf;
    plumb_error ignored; /* loading it meets the same fault */
    bool found = read_header(model, &gguf, &ignored) != PLUMB_OK ||
                 plumb__gguf_find(&gguf, key_of(name).s) != NULL;
    plumb__gguf_free(&gguf);
    return found;
}

/* The value that holds the file, and the file's size. */
static plumb_status find_value(const plumb_gguf *gguf, const char *name,
                               const plumb_gguf_value **value, int64_t *size, plumb_error *err) {
    plumb__text192 key = key_of(name);
    plumb_status status;
    if (!strcmp(key.s, PLUMB_GGUF_CONFIG_KEY)) {
        const char *text;
        status = plumb__gguf_string(gguf, key.s, &text, size, err);
        if (status == PLUMB_OK) *value = plumb__gguf_find(gguf, key.s);
        return status;
    }
    plumb_gguf_type item = is_token_map(name) ? PLUMB_GGUF_I32 : PLUMB_GGUF_STRING;
    status = plumb__gguf_array(gguf, key.s, item, -1, value, err);
    if (status != PLUMB_OK) return status;
    *size = (*value)->size;
    if (item == PLUMB_GGUF_STRING) *size -= (*value)->count * (int64_t)sizeof(uint64_t);
    return PLUMB_OK;
}

static void copy_value(const plumb_gguf_value *value, int64_t size, char *copy) {
    if (value->type != PLUMB_GGUF_ARRAY || value->item != PLUMB_GGUF_STRING) {
        if (size > 0) memcpy(copy, value->bytes, (size_t)size);
        return;
    }
    const uint8_t *at = value->bytes;
    for (int64_t i = 0; i < value->count; i++) {
        uint64_t piece;
        memcpy(&piece, at, sizeof piece);
        memcpy(copy, at + sizeof piece, piece);
        at += sizeof piece + piece;
        copy += piece;
    }
}

static plumb_status load_metadata(const char *model, const char *name, int64_t limit, char **text,
                                  int64_t *size, plumb_error *err) {
    plumb_gguf gguf;
    const plumb_gguf_value *value = NULL;
    int64_t found = 0;
    char *copy = NULL;
    plumb_status status = read_header(model, &gguf, err);
    if (status == PLUMB_OK) status = find_value(&gguf, name, &value, &found, err);
    if (status == PLUMB_OK && found > limit)
        status = plumb__fail(err, PLUMB_ERROR_FORMAT, model, key_of(name).s, -1,
                             plumb__format("%lld bytes", (long long)found).s, "at most %lld bytes",
                             (long long)limit);
    if (status == PLUMB_OK && !(copy = malloc((size_t)found + 1)))
        status = plumb__fail_memory(err, model, (size_t)found + 1);
    if (status == PLUMB_OK) {
        copy_value(value, found, copy);
        copy[found] = 0;
        *text = copy;
        *size = found;
    }
    plumb__gguf_free(&gguf);
    return status;
}

/* ---- Anywhere ---------------------------------------------------------------------------------- */

bool plumb__model_file_exists(const char *model, const char *name) {
    if (plumb__model_is_file(model)) return exists_as_metadata(model, name);
    char *path = plumb__model_file_name(model, name);
    struct stat found;
    bool exists = path && lstat(path, &found) == 0;
    free(path);
    return exists;
}

plumb_status plumb__model_file_load(const char *model, const char *name, int64_t limit, char **text,
                                    int64_t *size, plumb_error *err) {
    if (plumb__model_is_file(model)) return load_metadata(model, name, limit, text, size, err);
    char *path = plumb__model_file_name(model, name);
    if (!path) return plumb__fail_memory(err, name, strlen(model));
    plumb_status status = plumb__file_load(path, limit, text, size, err);
    free(path);
    return status;
}

/* ---- Two models -------------------------------------------------------------------------------- */

/* A small file of one side. */
typedef struct content {
    char *text; /* NULL: the model has no such file */
    int64_t size;
} content;

static plumb_status load_content(const char *model, const char *name, content *into,
                                 plumb_error *err) {
    *into = (content){0};
    if (!plumb__model_file_exists(model, name)) return PLUMB_OK;
    return plumb__model_file_load(model, name, PLUMB_MODEL_FILE_BYTES, &into->text, &into->size,
                                  err);
}

/* at: -1 where only one side has the file. */
static plumb__text192 byte_text(const content *c, int64_t at) {
    if (at < 0) return plumb__format("%s", c->text ? "a file" : "no such file");
    if (at == c->size) return plumb__format("end of file");
    return plumb__format("0x%02X", (unsigned char)c->text[at]);
}

static plumb_status compare_content(const char *model, const char *source, const char *name,
                                    const content *ours, const content *theirs, plumb_error *err) {
    int64_t at = -1, shorter = ours->size < theirs->size ? ours->size : theirs->size;
    if (ours->text && theirs->text) {
        for (at = 0; at < shorter && ours->text[at] == theirs->text[at];) at++;
        if (at == ours->size && at == theirs->size) return PLUMB_OK;
    }
    char *path = plumb__model_file_name(model, name);
    if (!path) return plumb__fail_memory(err, name, strlen(model));
    plumb_status status =
        plumb__fail(err, PLUMB_ERROR_VALUE, path, NULL, at, byte_text(ours, at).s,
                    "%s, as in %.120s", byte_text(theirs, at).s, source);
    free(path);
    return status;
}

static plumb_status compare_file(const char *model, const char *source, const char *name,
                                 plumb_error *err) {
    content ours, theirs;
    plumb_status status = load_content(source, name, &theirs, err);
    if (status != PLUMB_OK || (is_token_map(name) && !theirs.text)) return status;
    status = load_content(model, name, &ours, err);
    if (status == PLUMB_OK && (ours.text || theirs.text))
        status = compare_content(model, source, name, &ours, &theirs, err);
    free(ours.text);
    free(theirs.text);
    return status;
}

plumb_status plumb__model_files_compare(const char *model, const char *source, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < PLUMB_MODEL_FILES && status == PLUMB_OK; i++)
        if (strcmp(plumb__model_files[i], INDEX_FILE) != 0)
            status = compare_file(model, source, plumb__model_files[i], err);
    return status;
}
