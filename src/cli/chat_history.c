/* The history file; see chat_history.h. */
#include "cli/chat_history.h"

#include "base/error.h"
#include "base/utf8.h"
#include "cli/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char first_line[] = "plumb-chat-history 1\n";

char *cli_history_path(const cli_options *options) {
    if (options->no_history) return NULL;
    if (options->history != NULL) return strdup(options->history);
    /* A relative path means nothing, by the XDG base directory specification. */
    bool xdg = options->state_home != NULL && options->state_home[0] == '/';
    const char *root = xdg ? options->state_home : options->home;
    if (root == NULL) return NULL;
    static const char in_home[] = "/.local/state", name[] = "/plumb/chat_history";
    size_t size = strlen(root) + sizeof in_home + sizeof name;
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%s%s%s", root, xdg ? "" : in_home, name);
    return path;
}

/* ---- The file as a whole ---- */

static plumb_status refuse(const char *path, const char *found, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, NULL, -1, found, "a new name, or a history of plumb chat");
}

/* The lines after the first one, each ended by a line break, and a NUL; "" if there is no file. */
static plumb_status load(const char *path, char **lines, size_t *size, plumb_error *err) {
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return refuse(path, "something that is no plain file", err);
    size_t room = CLI_HISTORY_BYTES + 2;
    char *bytes = malloc(room);
    if (bytes == NULL) return plumb__fail_memory(err, path, room);
    FILE *file = fopen(path, "rbe");
    int error = file == NULL ? errno : 0;
    size_t filled = file != NULL ? fread(bytes, 1, room - 1, file) : 0;
    if (file != NULL && ferror(file)) error = errno;
    if (file != NULL) fclose(file);
    plumb_status status = PLUMB_OK;
    size_t head = strlen(first_line);
    if (error == ENOENT || (error == 0 && filled == 0))
        filled = head; /* as if it had no entries */
    else if (error != 0)
        status = plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(error), "a readable file");
    else if (filled > CLI_HISTORY_BYTES || filled < head || memcmp(bytes, first_line, head) != 0)
        status = refuse(path, "a file that is none", err);
    if (status != PLUMB_OK) {
        free(bytes);
        return status;
    }
    if (filled > head && bytes[filled - 1] != '\n') bytes[filled++] = '\n';
    *size = filled - head;
    memmove(bytes, bytes + head, *size);
    bytes[*size] = '\0';
    *lines = bytes;
    return PLUMB_OK;
}

/* Replaces the file by those lines and another one. */
static plumb_status store(char *path, const char *lines, size_t size, const char *last, plumb_error *err) {
    cli_new_file file;
    cli_make_parents(path, 0700);
    plumb_status status = cli_new_file_open_private(path, &file, err);
    if (status != PLUMB_OK) return status;
    if (fputs(first_line, file.stream) >= 0 && fwrite(lines, 1, size, file.stream) == size &&
        fprintf(file.stream, "%s\n", last) >= 0)
        return cli_new_file_commit(&file, err);
    status = plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno), "a file that takes every byte");
    cli_new_file_abandon(&file);
    return status;
}

/* ---- Entries ---- */

/* An entry on one line; NULL: no memory. */
static char *encode(const char *entry) {
    char *line = malloc(2 * strlen(entry) + 1), *to = line;
    if (line == NULL) return NULL;
    for (; *entry != '\0'; entry++) {
        if (*entry == '\n' || *entry == '\\') *to++ = '\\';
        *to++ = *entry == '\n' ? 'n' : *entry;
    }
    *to = '\0';
    return line;
}

/* In place, up to the NUL. */
static void decode(char *line) {
    char *to = line;
    for (; *line != '\0'; line++) {
        bool escaped = line[0] == '\\' && (line[1] == 'n' || line[1] == '\\');
        if (escaped) line++;
        *to++ = escaped && *line == 'n' ? '\n' : *line;
    }
    *to = '\0';
}

plumb_status cli_history_read(const char *path, void (*take)(void *user, const char *entry), void *user,
                              plumb_error *err) {
    char *lines = NULL;
    size_t size = 0;
    plumb_status status = load(path, &lines, &size, err);
    if (status != PLUMB_OK) return status;
    for (char *line = lines, *end; (end = memchr(line, '\n', (size_t)(lines + size - line))) != NULL;
         line = end + 1) {
        *end = '\0';
        size_t length = (size_t)(end - line);
        if (length == 0 || strlen(line) != length || plumb__utf8_valid_prefix(line, length) != length)
            continue; /* nothing that was typed */
        decode(line);
        take(user, line);
    }
    free(lines);
    return PLUMB_OK;
}

static bool ends_with_line(const char *lines, size_t size, const char *line) {
    size_t length = strlen(line);
    if (size < length + 1) return false;
    size_t at = size - length - 1;
    return memcmp(lines + at, line, length) == 0 && (at == 0 || lines[at - 1] == '\n');
}

/* Where the lines begin that stay beside a new one of `added` bytes. */
static size_t first_to_keep(const char *lines, size_t size, size_t added) {
    size_t at = size, room = CLI_HISTORY_BYTES - strlen(first_line) - added;
    for (int kept = 0; at > 0 && kept < CLI_HISTORY_ENTRIES - 1; kept++) {
        size_t begin = at - 1;
        while (begin > 0 && lines[begin - 1] != '\n') begin--;
        if (size - begin > room) break;
        at = begin;
    }
    return at;
}

plumb_status cli_history_add(char *path, const char *entry, plumb_error *err) {
    size_t length = strlen(entry);
    if (length == 0 || length > CLI_HISTORY_ENTRY_BYTES) return PLUMB_OK;
    char *line = encode(entry), *lines = NULL;
    size_t size = 0;
    if (line == NULL) return plumb__fail_memory(err, path, 2 * length);
    plumb_status status = load(path, &lines, &size, err);
    if (status == PLUMB_OK && !ends_with_line(lines, size, line)) {
        size_t first = first_to_keep(lines, size, strlen(line) + 1);
        status = store(path, lines + first, size - first, line, err);
    }
    free(lines);
    free(line);
    return status;
}
