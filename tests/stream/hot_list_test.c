/* The file of the experts used most: what is written is read again, what is not such a file changes
 * nothing, and what cannot be written leaves nothing behind. */
#include "stream/hot_list.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

#define FOLDER BUILD_DIR "/hot_list_test"
#define LIST FOLDER "/list"
enum { LAYERS = 3, EXPERTS = 5, KEYS = LAYERS * EXPERTS };

static const plumb_model_config config = {.layers = LAYERS, .experts = EXPERTS};

static void write_file(const char *text, size_t size) {
    mkdir(FOLDER, 0777);
    FILE *file = fopen(LIST, "wb");
    if (!file || fwrite(text, 1, size, file) != size || fclose(file) != 0) {
        perror(LIST);
        exit(1);
    }
}

static int count_files(const char *folder) {
    int count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) count += e->d_name[0] != '.';
    if (d) closedir(d);
    return count;
}

static void round_trip(void) {
    static const uint32_t uses[KEYS] = {0, 7, 0, UINT32_MAX, 1, 0, 0, 7, 0, 0, 12, 0, 0, 0, 3};
    static const char text[] = "plumb hot experts 1 3 5\n0 3 4294967295\n2 0 12\n0 1 7\n1 2 7\n2 4 3\n0 4 1\n";
    plumb_error err = {0};
    mkdir(FOLDER, 0777);
    T_CHECK(plumb__hot_list_write(LIST, &config, uses, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__hot_list_write(LIST, &config, uses, &err) == PLUMB_OK, "again: %s", err.found);
    T_CHECK(count_files(FOLDER) == 1, "%d files", count_files(FOLDER));
    char held[256] = {0};
    FILE *file = fopen(LIST, "rb");
    size_t size = file ? fread(held, 1, sizeof held - 1, file) : 0;
    if (file) fclose(file);
    T_CHECK(size == sizeof text - 1 && !strcmp(held, text), "%s", held);
    uint32_t read[KEYS];
    memset(read, 0xA5, sizeof read);
    T_CHECK(plumb__hot_list_read(LIST, &config, read, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(!memcmp(read, uses, sizeof uses), "other uses");
}

static void keys_in_order(void) {
    static const uint32_t uses[KEYS] = {2, 0, 9, 2, 0, 9, 1, 0, 0, 0, 10, 0, 0, 0, 2};
    static const int32_t expected[] = {10, 2, 5, 0, 3, 14, 6};
    int32_t keys[KEYS];
    int64_t n = plumb__hot_list_keys(&config, uses, keys);
    T_CHECK(n == 7 && !memcmp(keys, expected, sizeof expected), "%" PRId64 " keys, first %d", n,
            (int)keys[0]);
    static const uint32_t none[KEYS] = {0};
    T_CHECK(plumb__hot_list_keys(&config, none, keys) == 0, "none were used");
}

#define FIRST "plumb hot experts 1 3 5\n"
static void bad_files(void) {
    static const struct {
        const char *text;
        size_t size; /* 0: of the text */
        int64_t line;
    } cases[] = {
        {"", 0, 1},
        {"plumb hot experts 1 3 5", 0, 1},
        {"plumb hot experts 2 3 5\n", 0, 1},
        {"plumb hot experts 1 3 6\n0 0 1\n", 0, 1},
        {"plumb hot experts 1 33 5\n", 0, 1},
        {"\n" FIRST, 0, 1},
        {FIRST "0 0 1", 0, 2},
        {FIRST "0 0\n", 0, 2},
        {FIRST "0 0 1 \n", 0, 2},
        {FIRST "0  0 1\n", 0, 2},
        {FIRST " 0 0 1\n", 0, 2},
        {FIRST "0 0 1\r\n", 0, 2},
        {FIRST "0 0 1\n\n", 0, 3},
        {FIRST "0 0 1\n3 0 1\n", 0, 3},
        {FIRST "0 0 1\n0 5 1\n", 0, 3},
        {FIRST "0 0 1\n0 1 4294967296\n", 0, 3},
        {FIRST "0 0 1\n0 1 99999999999999999999999999\n", 0, 3},
        {FIRST "18446744073709551616 0 1\n", 0, 2},
        {FIRST "0 -1 1\n", 0, 2},
        {FIRST "0 0 -1\n", 0, 2},
        {FIRST "0 +1 1\n", 0, 2},
        {FIRST "0 0 1.5\n", 0, 2},
        {FIRST "0 0 0x1\n", 0, 2},
        {FIRST "a b c\n", 0, 2},
        {FIRST "0 0 1\n\0000 1 1\n", sizeof FIRST - 1 + 13, 3},
        {"plumb hot experts 1 3 5\0\n", 25, 1},
    };
    static const uint32_t none[KEYS] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t uses[KEYS];
        plumb_error err = {0};
        memset(uses, 0xA5, sizeof uses);
        write_file(cases[i].text, cases[i].size ? cases[i].size : strlen(cases[i].text));
        plumb_status status = plumb__hot_list_read(LIST, &config, uses, &err);
        T_CHECK(status == PLUMB_ERROR_FORMAT && !strcmp(err.file, LIST) && !strcmp(err.field, "line") &&
                    err.offset == cases[i].line && err.expected[0],
                "case %zu: status %d, line %" PRId64, i, (int)status, err.offset);
        T_CHECK(!memcmp(uses, none, sizeof none), "case %zu: uses of a refused file", i);
    }
    write_file(FIRST, sizeof FIRST - 1);
    uint32_t uses[KEYS];
    plumb_error err = {0};
    T_CHECK(plumb__hot_list_read(LIST, &config, uses, &err) == PLUMB_OK, "a list of none: %s", err.found);
    T_CHECK(unlink(LIST) == 0 && plumb__hot_list_read(LIST, &config, uses, &err) == PLUMB_ERROR_IO &&
                !memcmp(uses, none, sizeof none),
            "no file");
}

/* A folder that is not there, and one in the file's place. */
static void cannot_be_written(void) {
    static const uint32_t uses[KEYS] = {1};
    plumb_error err = {0};
    mkdir(FOLDER, 0777);
    (void)unlink(LIST);
    T_CHECK(plumb__hot_list_write(FOLDER "/none/list", &config, uses, &err) == PLUMB_ERROR_IO &&
                !strcmp(err.file, FOLDER "/none/list") && err.found[0],
            "%s: %s", err.file, err.found);
    int before = count_files(FOLDER);
    mkdir(FOLDER "/taken", 0777);
    T_CHECK(plumb__hot_list_write(FOLDER "/taken", &config, uses, &err) == PLUMB_ERROR_IO, "%s",
            err.found);
    T_CHECK(count_files(FOLDER) == before + 1, "%d files, before %d", count_files(FOLDER), before);
    (void)rmdir(FOLDER "/taken");
}

T_MAIN({"round_trip", round_trip}, {"keys_in_order", keys_in_order}, {"bad_files", bad_files},
       {"cannot_be_written", cannot_be_written})
