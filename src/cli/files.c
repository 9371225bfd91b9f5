/* Reading prompts and id lists, writing results whole; see files.h. */
#include "cli/files.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A wait for a pipe that a signal ended is no fault of the pipe. */
static plumb_status fail_errno(plumb_error *err, const char *path, const char *expected) {
    if (errno == EINTR && cli_interrupted())
        return plumb__fail(err, PLUMB_ERROR_CANCELLED, path, NULL, -1, NULL, NULL);
    return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno), "%s", expected);
}

static plumb_status read_all(int fd, const char *name, char **bytes, size_t *size,
                             plumb_error *err) {
    plumb_status status = PLUMB_OK;
    char *buffer = NULL;
    int64_t capacity = 0;
    size_t used = 0;
    ssize_t got = 0;
    do {
        used += (size_t)got;
        void *grown = plumb__grow(buffer, &capacity, (int64_t)used + 65536, 1);
        if (grown == NULL) {
            status = plumb__fail_memory(err, name, used + 65536);
            goto done;
        }
        buffer = grown;
        got = used > CLI_MOST_INPUT_BYTES ? 0 : cli_read(fd, buffer + used, 65535);
    } while (got > 0);
    if (got < 0)
        status = fail_errno(err, name, "a readable file");
    else if (used > CLI_MOST_INPUT_BYTES)
        status = plumb__fail(err, PLUMB_ERROR_IO, name, NULL, -1, "more", "at most %d bytes",
                             CLI_MOST_INPUT_BYTES);
    if (status != PLUMB_OK) goto done;
    buffer[used] = '\0';
    *bytes = buffer;
    *size = used;
    buffer = NULL;
done:
    free(buffer);
    return status;
}

const char *cli_input_name(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

plumb_status cli_name_input(plumb_status status, const char *path, plumb_error *err) {
    if (status == PLUMB_ERROR_TEXT && path != NULL && err != NULL && err->file[0] == '\0')
        snprintf(err->file, sizeof err->file, "%s", cli_input_name(path));
    return status;
}

/* A FIFO that nobody writes yet would hold open() where a signal that came just before is not seen.
 * Elsewhere than on Linux such a FIFO, opened without blocking, reads as one at its end. */
#ifdef __linux__
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK };
#else
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC };
#endif

plumb_status cli_read_file(const char *path, char **bytes, size_t *size, plumb_error *err) {
    int fd = strcmp(path, "-") == 0 ? cli_input_open() : open(path, OPEN_FLAGS);
    if (fd < 0) return fail_errno(err, cli_input_name(path), "a readable file");
    plumb_status status = read_all(fd, cli_input_name(path), bytes, size, err);
    close(fd);
    return status;
}

plumb_status cli_parse_ids(const char *text, size_t size, const char *source, int64_t vocab_size,
                           plumb_tokens *tokens, plumb_error *err) {
    static const char space[] = " \t\r\n\f\v";
    if (strlen(text) != size)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, source, "byte", (int64_t)strlen(text),
                           "a zero byte", "token ids separated by white space");
    for (text += strspn(text, space); *text != '\0'; text += strspn(text, space)) {
        size_t length = strcspn(text, space);
        char word[24] = "";
        memcpy(word, text, length < sizeof word ? length : sizeof word - 1);
        int64_t id;
        if (length >= sizeof word || !cli_parse_integer(word, 0, vocab_size - 1, &id))
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, source, "token", tokens->count, word,
                               "an id from 0 to %lld", (long long)vocab_size - 1);
        void *grown =
            plumb__grow(tokens->ids, &tokens->capacity, tokens->count + 1, sizeof *tokens->ids);
        if (grown == NULL) return plumb__fail_memory(err, "token ids", (size_t)tokens->count * 4);
        tokens->ids = grown;
        tokens->ids[tokens->count++] = (int32_t)id;
        text += length;
    }
    return PLUMB_OK;
}

/* What is printed would go to the old file, which has no name any more once the new one has its. */
static bool takes_standard_output(const struct stat *file) {
    struct stat output;
    return fstat(STDOUT_FILENO, &output) == 0 && output.st_dev == file->st_dev &&
           output.st_ino == file->st_ino;
}

void cli_make_parents(char *path, mode_t mode) {
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, mode);
        *at = '/';
    }
}

char *cli_expand_home(const char *path, const char *home) {
    bool relative = home != NULL && path[0] == '~' && (path[1] == '/' || path[1] == '\0');
    if (!relative) return strdup(path);
    size_t size = strlen(home) + strlen(path);
    char *expanded = malloc(size);
    if (expanded != NULL) snprintf(expanded, size, "%s%s", home, path + 1);
    return expanded;
}

/* The name to write under: a symbolic link stays and the file that it leads to is replaced. */
static plumb_status resolve(const char *path, char **resolved, plumb_error *err) {
    struct stat info;
    bool there = lstat(path, &info) == 0;
    bool link = there && S_ISLNK(info.st_mode);
    if (link) {
        *resolved = realpath(path, NULL);
        if (*resolved == NULL) return fail_errno(err, path, "a link that leads to a file");
        there = stat(*resolved, &info) == 0;
    } else {
        *resolved = strdup(path);
        if (*resolved == NULL) return plumb__fail_memory(err, path, strlen(path) + 1);
    }
    const char *found = NULL;
    if (there && !S_ISREG(info.st_mode))
        found = "something that is no plain file";
    else if (there && takes_standard_output(&info))
        found = "the file that standard output goes to";
    if (found == NULL) return PLUMB_OK;
    free(*resolved);
    *resolved = NULL;
    return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, found, "a new file or one to replace");
}

plumb_status cli_new_file_check(const char *path, plumb_error *err) {
    char *resolved = NULL;
    plumb_status status = resolve(path, &resolved, err);
    free(resolved);
    return status;
}

plumb_status cli_new_file_check_input(const char *path, const char *input, plumb_error *err) {
    struct stat old, read;
    if (input == NULL || stat(path, &old) != 0) return PLUMB_OK;
    int missing = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &read) : stat(input, &read);
    if (missing != 0 || old.st_dev != read.st_dev || old.st_ino != read.st_ino) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, "a file that is read",
                       "a new file or one to replace");
}

/* A new file of this mode, less the umask, from its first moment. */
static FILE *create(const char *path, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return NULL;
    FILE *stream = fdopen(fd, "wb");
    if (stream == NULL) {
        int error = errno;
        close(fd);
        unlink(path);
        errno = error;
    }
    return stream;
}

static plumb_status open_new(const char *path, mode_t mode, cli_new_file *file, plumb_error *err) {
    *file = (cli_new_file){0};
    plumb_status status = resolve(path, &file->path, err);
    if (status != PLUMB_OK) return status;
    size_t size = strlen(file->path) + 32;
    file->temporary = malloc(size);
    if (file->temporary == NULL) {
        cli_new_file_abandon(file);
        return plumb__fail_memory(err, path, size);
    }
    snprintf(file->temporary, size, "%s.%ld.part", file->path, (long)getpid());
    file->stream = create(file->temporary, mode);
    if (file->stream != NULL) return PLUMB_OK;
    status = fail_errno(err, file->temporary, "a file that can be created");
    /* Not ours to remove. */
    free(file->temporary);
    file->temporary = NULL;
    cli_new_file_abandon(file);
    return status;
}

plumb_status cli_new_file_open(const char *path, cli_new_file *file, plumb_error *err) {
    return open_new(path, 0666, file, err);
}

plumb_status cli_new_file_open_private(const char *path, cli_new_file *file, plumb_error *err) {
    return open_new(path, 0600, file, err);
}

plumb_status cli_new_file_commit(cli_new_file *file, plumb_error *err) {
    bool written = fflush(file->stream) == 0 && fsync(fileno(file->stream)) == 0;
    int error = errno;
    bool closed = fclose(file->stream) == 0;
    if (written && !closed) error = errno;
    file->stream = NULL;
    bool moved = written && closed && rename(file->temporary, file->path) == 0;
    if (written && closed && !moved) error = errno;
    plumb_status status = PLUMB_OK;
    if (moved) {
        free(file->temporary);
        file->temporary = NULL;
    } else {
        errno = error;
        status = fail_errno(err, file->path, "a file that takes every byte");
    }
    cli_new_file_abandon(file);
    return status;
}

void cli_new_file_abandon(cli_new_file *file) {
    if (file->stream != NULL) fclose(file->stream);
    if (file->temporary != NULL) unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (cli_new_file){0};
}
