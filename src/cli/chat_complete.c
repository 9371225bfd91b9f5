/* Completion; see chat_complete.h.  Names that fit are collected, what all of them begin with is inserted;
 * where that adds nothing they are shown.  Short of memory it proposes less. */
#include "cli/chat_complete.h"

#include "base/clean_text.h"
#include "cli/chat_commands.h"
#include "cli/files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_NAMES = 1000 };

typedef struct names {
    char *name[MOST_NAMES]; /* (count) owned */
    int count;
} names;

static void add(names *found, char *name) {
    if (name == NULL || found->count == MOST_NAMES)
        free(name);
    else
        found->name[found->count++] = name;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The longest beginning of all names. */
static size_t common_size(const names *found) {
    size_t size = strlen(found->name[0]);
    for (int i = 1; i < found->count; i++) {
        size_t same = 0;
        while (same < size && found->name[i][same] == found->name[0][same]) same++;
        size = same;
    }
    while (size > 0 && (found->name[0][size] & 0xC0) == 0x80) size--; /* whole characters */
    return size;
}

/* Names one a line, harmless. */
static char *list(const names *found) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL) return NULL;
    for (int i = 0; i < found->count; i++) {
        char clean[512];
        plumb__clean_text(found->name[i], "?", false, clean, sizeof clean);
        fprintf(stream, "%s\n", clean);
    }
    if (fclose(stream) == 0) return text;
    free(text);
    return NULL;
}

/* Of names that begin with the `typed` bytes that are there; a single one is followed by `end`, unless it is
 * a folder. */
static void propose(names *found, size_t typed, const char *end, cli_completion *completion) {
    if (found->count == 0) return;
    qsort(found->name, (size_t)found->count, sizeof found->name[0], by_bytes);
    size_t size = common_size(found);
    const char *name = found->name[0];
    if (found->count > 1 || (size > 0 && name[size - 1] == '/')) end = "";
    if (size == typed && *end == '\0') {
        if (found->count > 1) completion->choices = list(found);
        return;
    }
    size_t room = size - typed + strlen(end) + 1;
    completion->insert = malloc(room);
    if (completion->insert != NULL)
        snprintf(completion->insert, room, "%.*s%s", (int)(size - typed), name + typed, end);
}

#define COMMAND_NAME(name, text) #name,
static const char *const commands[] = {CLI_CHAT_COMMANDS(COMMAND_NAME)};

static void find_commands(const char *typed, names *found) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strncmp(commands[i], typed, strlen(typed)) == 0) add(found, strdup(commands[i]));
}

/* A name in the folder, with a slash after that of a folder. */
static char *entry_name(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL) return NULL;
    struct stat info;
    snprintf(path, size, "%s%s", folder, name);
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(path, size, "%s%s", name, is_folder ? "/" : "");
    return path;
}

/* Entries of `folder` (with its slash, or "") that begin with `typed`; hidden ones only if asked for. */
static void find_files(const char *folder, const char *typed, names *found) {
    DIR *open = opendir(*folder != '\0' ? folder : ".");
    if (open == NULL) return;
    for (const struct dirent *entry; (entry = readdir(open)) != NULL;) {
        const char *name = entry->d_name;
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (!dots && strncmp(name, typed, strlen(typed)) == 0 && (name[0] != '.' || typed[0] == '.'))
            add(found, entry_name(folder, name));
    }
    closedir(open);
}

static void complete_path(const char *path, const char *home, cli_completion *completion) {
    const char *slash = strrchr(path, '/');
    char *typed_folder = strndup(path, slash != NULL ? (size_t)(slash + 1 - path) : 0);
    char *folder = typed_folder != NULL ? cli_expand_home(typed_folder, home) : NULL;
    const char *name = slash != NULL ? slash + 1 : path;
    names found = {.count = 0};
    if (folder != NULL) find_files(folder, name, &found);
    propose(&found, strlen(name), "", completion);
    for (int i = 0; i < found.count; i++) free(found.name[i]);
    free(folder);
    free(typed_folder);
}

bool cli_chat_complete(void *user, const char *begin, cli_completion *completion) {
    if (begin[0] != '/' || begin[1] == '/') return false;
    const char *blank = strchr(begin, ' ');
    if (blank == NULL) {
        names found = {.count = 0};
        find_commands(begin + 1, &found);
        propose(&found, strlen(begin + 1), " ", completion);
        for (int i = 0; i < found.count; i++) free(found.name[i]);
        return true;
    }
    if (strncmp(begin, "/save ", 6) != 0 && strncmp(begin, "/load ", 6) != 0) return false;
    complete_path(blank + strspn(blank, " "), user, completion);
    return true;
}
