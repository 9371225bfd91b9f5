/* The file of the history: what is added comes back, old entries give way, other people's files stay. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/chat_history.h"
#include "t.h"

/* The table of commands that options.c looks into. */
const cli_command cli_commands[] = {{.name = "chat"}};
const int cli_n_commands = 1;

typedef struct taken {
    int count;
    size_t bytes;
    char first[64], last[64];
} taken;

static void take(void *user, const char *entry) {
    taken *t = user;
    if (t->count++ == 0) snprintf(t->first, sizeof t->first, "%s", entry);
    snprintf(t->last, sizeof t->last, "%s", entry);
    t->bytes += strlen(entry);
}

static char folder[] = "/tmp/plumb-history-XXXXXX", file[64], deep[96];

static void write_file(const char *bytes, size_t size) {
    FILE *stream = fopen(file, "wb");
    T_CHECK(stream && fwrite(bytes, 1, size, stream) == size && fclose(stream) == 0, "%s", file);
}

static int64_t file_size(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : -1;
}

static taken read_back(void) {
    taken t = {0};
    plumb_error err = {0};
    T_CHECK(cli_history_read(file, take, &t, &err) == PLUMB_OK, "%s", err.found);
    return t;
}

static void add(const char *entry) {
    plumb_error err = {0};
    T_CHECK(cli_history_add(file, entry, &err) == PLUMB_OK, "%s", err.found);
}

static void entries_come_back(void) {
    static const char *const entries[] = {"a", "two\nlines\n", "\\", "\\n", "\\\n\\\\n", "\xC3\xA9", " /x ", "\n"};
    unlink(file);
    T_CHECK(read_back().count == 0, "no file, no entries");
    for (int i = 0; i < (int)(sizeof entries / sizeof entries[0]); i++) {
        add(entries[i]);
        add(entries[i]); /* the newest already */
        add("");
        taken t = read_back();
        T_CHECK(t.count == i + 1 && !strcmp(t.last, entries[i]) && !strcmp(t.first, "a"), "%d: %s", t.count, t.last);
    }
    struct stat info;
    T_CHECK(stat(file, &info) == 0 && (info.st_mode & 0777) == 0600, "only the owner may read");
}

static void folders_are_made(void) {
    plumb_error err = {0};
    T_CHECK(cli_history_add(deep, "x", &err) == PLUMB_OK, "%s", err.found);
    *strrchr(deep, '/') = '\0';
    struct stat info;
    T_CHECK(stat(deep, &info) == 0 && (info.st_mode & 0777) == 0700, "%s", deep);
    deep[strlen(deep)] = '/';
}

/* A file of `count` entries of `size` bytes each, numbered, and one more that is added. */
static taken filled(int count, int size) {
    FILE *stream = fopen(file, "wb");
    fputs("plumb-chat-history 1\n", stream);
    for (int i = 0; i < count; i++) fprintf(stream, "%0*d\n", size, i);
    fclose(stream);
    add("new");
    return read_back();
}

static void old_entries_give_way(void) {
    taken t = filled(CLI_HISTORY_ENTRIES - 1, 4);
    T_CHECK(t.count == CLI_HISTORY_ENTRIES && !strcmp(t.first, "0000"), "%d", t.count);
    t = filled(CLI_HISTORY_ENTRIES, 4);
    T_CHECK(t.count == CLI_HISTORY_ENTRIES && !strcmp(t.first, "0001") && !strcmp(t.last, "new"), "%s", t.first);
    t = filled(CLI_HISTORY_BYTES / 4096 - 1, 4095); /* there is room for it */
    T_CHECK(t.count == CLI_HISTORY_BYTES / 4096 && file_size(file) <= CLI_HISTORY_BYTES, "%d", t.count);
    char *large = malloc(CLI_HISTORY_ENTRY_BYTES + 2);
    memset(large, '\n', CLI_HISTORY_ENTRY_BYTES + 1);
    large[CLI_HISTORY_ENTRY_BYTES + 1] = '\0';
    add(large); /* too large: not kept */
    T_CHECK(read_back().count == t.count, "kept");
    add(large + 1); /* two bytes for each of its own: others give way, and no more of them than must */
    t = read_back();
    T_CHECK(t.count == CLI_HISTORY_BYTES / 4096 - 32 + 1 && file_size(file) <= CLI_HISTORY_BYTES &&
                file_size(file) > CLI_HISTORY_BYTES - 4096, "%d entries, %lld bytes", t.count, (long long)file_size(file));
    free(large);
}

static void what_was_damaged(void) {
    static const struct {
        const char *text;
        int size, count;
        const char *last;
    } cases[] = {
        {"", 0, 0, ""},
        {"plumb-chat-history 1\n", 21, 0, ""},
        {"plumb-chat-history 1\na\nb", 24, 2, "b"},                /* cut off */
        {"plumb-chat-history 1\na\n\nb\0c\n\xFF\n", 30, 1, "a"}, /* empty, with a zero byte, no UTF-8 */
        {"plumb-chat-history 1\n\\x\\", 24, 1, "\\x\\"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i].text, (size_t)cases[i].size);
        taken t = read_back();
        T_CHECK(t.count == cases[i].count && !strcmp(t.last, cases[i].last), "%zu: %d, %s", i, t.count, t.last);
        add("z");
        t = read_back();
        T_CHECK(t.count == cases[i].count + 1 && !strcmp(t.last, "z"), "%zu: %d", i, t.count);
    }
}

static void refused(char *path, const char *found) {
    taken t = {0};
    plumb_error err = {0};
    T_CHECK(cli_history_add(path, "x", &err) != PLUMB_OK && strstr(err.found, found), "%s: %s", path, err.found);
    err = (plumb_error){0};
    T_CHECK(cli_history_read(path, take, &t, &err) != PLUMB_OK && !t.count, "%s: %s", path, err.found);
}

static void other_files_stay(void) {
    static const char notes[] = "my notes, which are longer than a first line\n";
    write_file(notes, sizeof notes - 1);
    refused(file, "a file that is none");
    T_CHECK(file_size(file) == sizeof notes - 1, "written over");
    refused(folder, "no plain file");
    char inside[96];
    snprintf(inside, sizeof inside, "%s/x", file);
    refused(inside, "Not a directory");
    char *large = calloc(1, CLI_HISTORY_BYTES + 1);
    memcpy(large, "plumb-chat-history 1\n", 21);
    write_file(large, CLI_HISTORY_BYTES + 1);
    free(large);
    refused(file, "a file that is none");
}

static void where_it_is(void) {
    static const struct {
        cli_options options;
        const char *path; /* NULL: nowhere */
    } cases[] = {
        {{.home = "/h"}, "/h/.local/state/plumb/chat_history"},
        {{.home = "/h", .state_home = "/s"}, "/s/plumb/chat_history"},
        {{.home = "/h", .state_home = "s"}, "/h/.local/state/plumb/chat_history"},
        {{.home = "/h", .history = "f"}, "f"},
        {{.home = "/h", .state_home = "/s", .no_history = true}, NULL},
        {{.home = NULL}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *path = cli_history_path(&cases[i].options);
        T_CHECK((path == NULL) == (cases[i].path == NULL) && (!path || !strcmp(path, cases[i].path)), "%zu: %s", i,
                path ? path : "none");
        free(path);
    }
}

static const t_test tests[] = {{"entries_come_back", entries_come_back}, {"folders_are_made", folders_are_made},
    {"old_entries_give_way", old_entries_give_way}, {"what_was_damaged", what_was_damaged},
    {"other_files_stay", other_files_stay}, {"where_it_is", where_it_is}};

int main(int argc, char **argv) {
    if (mkdtemp(folder) == NULL) return 1;
    snprintf(file, sizeof file, "%s/history", folder);
    snprintf(deep, sizeof deep, "%s/a/b/history", folder);
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    unlink(file);
    unlink(deep);
    for (int up = 0; up < 3; up++) {
        *strrchr(deep, '/') = '\0';
        rmdir(deep);
    }
    return status;
}
