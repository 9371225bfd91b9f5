#include "convert/receipt_file.h"

#include "base/error.h"
#include "base/file.h"
#include "convert/receipt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_FILE = 1 << 28 };

/* ",\n  "digest": "HEX"\n}\n" */
static const char before_digest[] = ",\n  \"digest\": \"", after_digest[] = "\"\n}\n";
enum {
    BEFORE = sizeof before_digest - 1,
    DIGITS = 32,
    AFTER = sizeof after_digest - 1,
    ENDING = BEFORE + DIGITS + AFTER
};

/* ---- Name ------------------------------------------------------------------------------------ */

/* "." and ".." say nothing of the folder's name, nor does "x/..". */
static bool is_relative_part(const char *model, size_t size) {
    size_t begin = size;
    while (begin > 0 && model[begin - 1] != '/') begin--;
    size_t length = size - begin;
    return length == 0 || (length == 1 && model[begin] == '.') ||
           (length == 2 && model[begin] == '.' && model[begin + 1] == '.');
}

char *plumb__receipt_path(const char *model) {
    static const char ending[] = ".audit.json";
    size_t size = strlen(model);
    while (size > 1 && model[size - 1] == '/') size--;
    char *real = is_relative_part(model, size) ? realpath(model, NULL) : NULL;
    if (real != NULL) {
        model = real;
        size = strlen(real);
    }
    char *path = malloc(size + sizeof ending);
    if (path) (void)snprintf(path, size + sizeof ending, "%.*s%s", (int)size, model, ending);
    free(real);
    return path;
}

bool plumb__receipt_exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 || errno != ENOENT;
}

/* ---- Content --------------------------------------------------------------------------------- */

plumb_status plumb__receipt_file_load(const char *path, char **text, int64_t *size,
                                      plumb_error *err) {
    return plumb__file_load(path, LARGEST_FILE, text, size, err);
}

plumb_status plumb__receipt_file_check(const char *text, size_t size, const char *path,
                                       plumb_error *err) {
    size_t body = size < ENDING ? 0 : size - ENDING;
    const char *ending = text + body, *digest = ending + BEFORE;
    if (size < ENDING || memcmp(ending, before_digest, BEFORE) != 0 ||
        memcmp(digest + DIGITS, after_digest, AFTER) != 0)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "digest", -1, "another last line",
                           "a receipt that ends with its digest");
    plumb_digest_text expected = plumb__digest_text(XXH3_128bits(text, body));
    if (memcmp(digest, expected.hex, DIGITS) != 0)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "digest", -1,
                           plumb__format("%.*s", DIGITS, digest).s, "%s, that of its text",
                           expected.hex);
    return PLUMB_OK;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static plumb_status fail_write(const char *path, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, "receipt", -1, strerror(errno),
                       "a file that can be written");
}

/* The body, `size` bytes of it, and the ending. */
static plumb_status write_new(const char *path, const char *body, int64_t size, const char *ending,
                              plumb_error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return fail_write(path, err);
    plumb_status status = plumb__file_write_at(fd, path, 0, size, body, err);
    if (status == PLUMB_OK) status = plumb__file_write_at(fd, path, size, ENDING, ending, err);
    if (status == PLUMB_OK && fsync(fd) != 0) status = fail_write(path, err);
    if (close(fd) != 0 && status == PLUMB_OK) status = fail_write(path, err);
    if (status != PLUMB_OK) (void)unlink(path);
    return status;
}

plumb_status plumb__receipt_file_write(const char *path, const char *body, plumb_error *err) {
    size_t size = strlen(body) - 2; /* without "\n}" */
    char ending[ENDING + 1];
    (void)snprintf(ending, sizeof ending, "%s%s%s", before_digest,
                   plumb__digest_text(XXH3_128bits(body, size)).hex, after_digest);
    size_t length = strlen(path) + 32;
    char *beside = malloc(length);
    if (!beside) return plumb__fail_memory(err, path, length);
    (void)snprintf(beside, length, "%s.%ld.part", path, (long)getpid());
    plumb_status status = write_new(beside, body, (int64_t)size, ending, err);
    if (status == PLUMB_OK && rename(beside, path) != 0) {
        status = fail_write(path, err);
        (void)unlink(beside);
    }
    free(beside);
    return status == PLUMB_OK ? plumb__file_sync_folder(path, err) : status;
}
