/* Small files of a model, in a folder and in a converted file: the same bytes, the same answers. */
#include "fixture.h"
#include "format/gguf.h"
#include "format/model_files.h"
#include "t.h"
#include "text/token_map.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char demo[] = PROJECT_DIR "/data/demo-model";
static const int32_t map[] = {0, 1, 0, 2};

/* In three pieces, the middle one empty; an empty file in none. */
static void write_pieces(plumb_gguf_writer *writer, const char *key, const char *text) {
    int64_t size = (int64_t)strlen(text), first = size < 7 ? size : 7;
    plumb__gguf_write_strings_begin(writer, key, size > 0 ? 3 : 0);
    if (size == 0) return;
    plumb__gguf_write_strings_add(writer, text, first);
    plumb__gguf_write_strings_add(writer, "", 0);
    plumb__gguf_write_strings_add(writer, text + first, size - first);
}

/* A converted file without tensors, of the given config and tokenizer (either may be NULL). */
static void write_converted(const char *path, const char *config, const char *tokenizer) {
    plumb_gguf_writer *writer = NULL;
    plumb_error err = {0};
    T_TRUE(plumb__gguf_writer_create(32, &writer, &err) == PLUMB_OK);
    if (config)
        plumb__gguf_write_string(writer, PLUMB_GGUF_CONFIG_KEY, config, (int64_t)strlen(config));
    if (tokenizer) write_pieces(writer, PLUMB_GGUF_FILE_KEY "tokenizer.json", tokenizer);
    write_pieces(writer, PLUMB_GGUF_FILE_KEY "empty", "");
    plumb__gguf_write_u32(writer, PLUMB_GGUF_FILE_KEY "number", 7);
    plumb__gguf_write_array(writer, PLUMB_GGUF_TOKEN_MAP_KEY, PLUMB_GGUF_I32, map, 4);
    uint8_t *header = NULL;
    int64_t bytes = 0, file_bytes = 0;
    T_CHECK(plumb__gguf_writer_finish(writer, &header, &bytes, NULL, &file_bytes, &err) == PLUMB_OK,
            "%s: %s", err.field, err.found);
    FILE *f = fopen(path, "wb");
    T_TRUE(f && fwrite(header, 1, (size_t)bytes, f) == (size_t)bytes);
    if (f) T_TRUE(fclose(f) == 0);
    free(header);
    plumb__gguf_writer_destroy(writer);
}

/* Paths below an empty folder; the converted file has another model's extension. */
typedef struct paths {
    char folder[256], converted[300], other[300];
} paths;

static paths prepare(const char *name) {
    paths p;
    fixture_folder(name, p.folder);
    (void)snprintf(p.converted, sizeof p.converted, "%s/model.bin", p.folder);
    (void)snprintf(p.other, sizeof p.other, "%s/other", p.folder);
    return p;
}

static void same_bytes(void) {
    paths p = prepare("model-files");
    char *config, *tokenizer, *text;
    int64_t config_size, tokenizer_size, size;
    plumb_error err = {0};
    T_TRUE(plumb__model_file_load(demo, "config.json", 1 << 20, &config, &config_size, &err) ==
           PLUMB_OK);
    T_TRUE(plumb__model_file_load(demo, "tokenizer.json", 1 << 20, &tokenizer, &tokenizer_size,
                                  &err) == PLUMB_OK);
    T_TRUE(config[config_size] == 0 && config_size == 2929 && tokenizer_size == 128240);
    write_converted(p.converted, config, tokenizer);

    T_TRUE(plumb__model_is_file(p.converted) && !plumb__model_is_file(demo));
    T_TRUE(plumb__model_file_load(p.converted, "config.json", config_size, &text, &size, &err) ==
           PLUMB_OK);
    T_TRUE(size == config_size && !memcmp(text, config, (size_t)size + 1));
    free(text);
    T_TRUE(plumb__model_file_load(p.converted, "tokenizer.json", 1 << 20, &text, &size, &err) ==
           PLUMB_OK);
    T_TRUE(size == tokenizer_size && !memcmp(text, tokenizer, (size_t)size + 1));
    free(text);
    T_TRUE(plumb__model_file_load(p.converted, "engram_token_map.i32", 16, &text, &size, &err) ==
           PLUMB_OK);
    T_TRUE(size == 16 && !memcmp(text, map, 16) && !text[16]);
    free(text);
    T_TRUE(plumb__model_file_load(p.converted, "empty", 0, &text, &size, &err) == PLUMB_OK);
    T_TRUE(size == 0 && !*text);
    free(text);

    static const struct {
        const char *name;
        bool in_demo, converted;
    } cases[] = {{"config.json", true, true},
                 {"tokenizer.json", true, true},
                 {"tokenizer_config.json", true, false},
                 {"engram_token_map.i32", false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        T_CHECK(plumb__model_file_exists(demo, cases[i].name) == cases[i].in_demo, "%s",
                cases[i].name);
        T_CHECK(plumb__model_file_exists(p.converted, cases[i].name) == cases[i].converted, "%s",
                cases[i].name);
    }
    free(config);
    free(tokenizer);
}

/* What reads through them takes either path. */
static void same_model(void) {
    paths p = prepare("model-files");
    char *config, *tokenizer;
    int64_t size;
    plumb_error err = {0};
    plumb_model_config a, b;
    T_TRUE(plumb__model_file_load(demo, "config.json", 1 << 20, &config, &size, &err) == PLUMB_OK);
    T_TRUE(plumb__model_file_load(demo, "tokenizer.json", 1 << 20, &tokenizer, &size, &err) ==
           PLUMB_OK);
    write_converted(p.converted, config, tokenizer);
    T_TRUE(plumb__config_load(demo, NULL, NULL, &a, &err) == PLUMB_OK);
    T_TRUE(plumb__config_load(p.converted, NULL, NULL, &b, &err) == PLUMB_OK);
    T_TRUE(a.hidden == 256 && !memcmp(&a, &b, sizeof a));
    plumb_text *text = NULL;
    T_CHECK(plumb_text_open(p.converted, &text, &err) == PLUMB_OK, "%s", err.found);
    T_TRUE(plumb_text_vocab_size(text) == 4096);
    plumb_text_close(text);
    int32_t *from_folder = NULL, *from_file = NULL;
    T_TRUE(plumb__token_map_load(demo, a.vocab, a.engram_folded_vocab, a.image_id, &from_folder,
                                 &err) == PLUMB_OK);
    T_TRUE(plumb__token_map_load(p.converted, a.vocab, a.engram_folded_vocab, a.image_id, &from_file,
                                 &err) == PLUMB_OK);
    T_TRUE(!memcmp(from_folder, from_file, (size_t)a.vocab * sizeof *from_file));
    free(from_folder);
    free(from_file);
    /* Without a tokenizer the map is the array. */
    write_converted(p.converted, config, NULL);
    T_TRUE(plumb__token_map_load(p.converted, 4, 3, 0, &from_file, &err) == PLUMB_OK);
    T_TRUE(!memcmp(from_file, map, sizeof map));
    free(from_file);
    T_TRUE(plumb_text_open(p.converted, &text, &err) == PLUMB_ERROR_FORMAT);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "model.bin", PLUMB_GGUF_FILE_KEY "tokenizer.json", "absent");
    free(config);
    free(tokenizer);
}

static void faults(void) {
    paths p = prepare("model-files");
    char *text = NULL;
    int64_t size;
    plumb_error err = {0};
    plumb_model_config config;
    write_converted(p.converted, "{\"text_config\": 5}", "[]");
    T_TRUE(plumb__model_file_load(p.converted, "config.json", 17, &text, &size, &err) ==
           PLUMB_ERROR_FORMAT);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "model.bin", PLUMB_GGUF_CONFIG_KEY, "too long");
    T_TRUE(plumb__model_file_load(p.converted, "number", 99, &text, &size, &err) ==
           PLUMB_ERROR_FORMAT);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "model.bin", PLUMB_GGUF_FILE_KEY "number", "another type");
    T_TRUE(plumb__config_load(p.converted, NULL, NULL, &config, &err) != PLUMB_OK);
    T_CHECK(strstr(err.file, "model.bin/config.json"), "%s", err.file);
    plumb_text *opened = NULL;
    T_TRUE(plumb_text_open(p.converted, &opened, &err) != PLUMB_OK && !opened);
    T_CHECK(strstr(err.file, "model.bin/tokenizer.json"), "%s", err.file);

    /* A damaged one has every file, so that somebody says what is wrong. */
    T_TRUE(truncate(p.converted, 100) == 0);
    T_TRUE(plumb__model_is_file(p.converted));
    T_TRUE(plumb__model_file_exists(p.converted, "tokenizer_config.json"));
    T_TRUE(plumb__model_file_load(p.converted, "config.json", 99, &text, &size, &err) != PLUMB_OK);
    T_CHECK(strstr(err.file, "model.bin") && err.found[0], "%s", err.file);
    T_TRUE(truncate(p.converted, 3) == 0);
    T_TRUE(!plumb__model_is_file(p.converted));
}

/* One named .gguf is one whatever its first bytes are, and the fault is theirs. */
static void damaged_magic(void) {
    static const char *const begins[] = {"", "GGU", "GGUE\3", "{}"};
    paths p = prepare("model-files");
    char *text, named[300];
    int64_t size;
    (void)snprintf(named, sizeof named, "%s/model.gguf", p.folder);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        plumb_error err = {0};
        plumb_checkpoint *checkpoint = NULL;
        fixture_write(p.folder, "model.gguf", begins[i], strlen(begins[i]));
        fixture_write(p.folder, "other", begins[i], strlen(begins[i]));
        T_CHECK(plumb__model_is_file(named) && !plumb__model_is_file(p.other), "%s", begins[i]);
        T_TRUE(plumb__model_file_load(named, "tokenizer.json", 99, &text, &size, &err) != PLUMB_OK);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "model.gguf", "magic", begins[i]);
        const char *const opened[] = {named, p.other};
        for (int k = 0; k < 2; k++) {
            T_TRUE(plumb__checkpoint_open(opened[k], NULL, NULL, &checkpoint, &err) != PLUMB_OK);
            T_ERROR(&err, PLUMB_ERROR_FORMAT, opened[k], "magic", begins[i]);
            T_CHECK(err.offset == 0, "%" PRId64, err.offset);
        }
    }
    T_TRUE(remove(named) == 0 && mkdir(named, 0777) == 0);
    T_TRUE(!plumb__model_is_file(named) && rmdir(named) == 0);
}

/* Which of the small files must be there on both sides, and where they differ. */
static void compared(void) {
    paths p = prepare("model-files");
    char source[300];
    (void)snprintf(source, sizeof source, "%s/source", p.folder);
    (void)mkdir(source, 0777);
    static const struct {
        const char *name, *ours, *theirs; /* NULL: none */
        int64_t offset;                   /* -2: equal */
        const char *found, *expected;
    } rows[] = {
        {"config.json", "abc", "abc", -2, NULL, NULL},
        {"config.json", "abc", "aXc", 1, "0x62", "0x58, as in "},
        {"tokenizer.json", "ab", "abc", 2, "end of file", "0x63, as in "},
        {"generation_config.json", NULL, "", -1, "no such file", "a file, as in "},
        {"tokenizer_config.json", "x", NULL, -1, "a file", "no such file, as in "},
        {"engram_token_map.i32", "x", NULL, -2, NULL, NULL},
        {"engram_token_map.i32", NULL, "x", -1, "no such file", "a file, as in "},
        {"model.safetensors.index.json", "x", "y", -2, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plumb_error err = {0};
        char ours[400], theirs[400];
        (void)snprintf(ours, sizeof ours, "%s/%s", p.folder, rows[i].name);
        (void)snprintf(theirs, sizeof theirs, "%s/%s", source, rows[i].name);
        if (rows[i].ours) fixture_write(p.folder, rows[i].name, rows[i].ours, strlen(rows[i].ours));
        if (rows[i].theirs)
            fixture_write(source, rows[i].name, rows[i].theirs, strlen(rows[i].theirs));
        plumb_status status = plumb__model_files_compare(p.folder, source, &err);
        if (rows[i].offset == -2) {
            T_CHECK(status == PLUMB_OK, "%zu: %s %s", i, err.file, err.found);
        } else {
            T_CHECK(status == PLUMB_ERROR_VALUE && strstr(err.file, rows[i].name), "%zu: %s", i,
                    err.file);
            T_CHECK(err.offset == rows[i].offset && !strcmp(err.found, rows[i].found), "%zu: %s", i,
                    err.found);
            T_CHECK(!strncmp(err.expected, rows[i].expected, strlen(rows[i].expected)), "%zu: %s", i,
                    err.expected);
        }
        (void)remove(ours);
        (void)remove(theirs);
    }
    T_TRUE(rmdir(source) == 0);
}

/* Neither a folder nor a converted file: the file that is asked for, or nothing. */
static void other_paths(void) {
    paths p = prepare("model-files");
    fixture_write(p.folder, "other", "{}", 2);
    char *text = NULL;
    int64_t size = 0;
    plumb_error err = {0};
    T_TRUE(!plumb__model_is_file(p.other));
    T_TRUE(plumb__model_file_load(p.other, "config.json", 99, &text, &size, &err) == PLUMB_OK);
    T_TRUE(size == 2 && !strcmp(text, "{}"));
    free(text);

    static const char *const kinds[] = {"FIFO", "link to nothing", "nothing", "empty folder"};
    for (int kind = 0; kind < 4; kind++) {
        T_CHECK(remove(p.other) == 0, "%s", kinds[kind]);
        int made = kind == 0   ? mkfifo(p.other, 0666)
                   : kind == 1 ? symlink("nowhere", p.other)
                   : kind == 3 ? mkdir(p.other, 0777)
                               : 0;
        T_CHECK(made == 0 && !plumb__model_is_file(p.other), "%s", kinds[kind]);
        T_CHECK(plumb__model_file_exists(p.other, "config.json") == (kind < 2), "%s", kinds[kind]);
        T_CHECK(plumb__model_file_load(p.other, "config.json", 99, &text, &size, &err) ==
                    PLUMB_ERROR_IO, "%s", kinds[kind]);
        bool named = strstr(err.file, "/other/config.json") != NULL;
        T_CHECK(named == (kind >= 2), "%s: %s", kinds[kind], err.file);
        if (kind == 2) T_TRUE(mkdir(p.other, 0777) == 0);
    }
    T_TRUE(rmdir(p.other) == 0);
}

T_MAIN({"same_bytes", same_bytes}, {"same_model", same_model}, {"faults", faults},
       {"damaged_magic", damaged_magic}, {"compared", compared}, {"other_paths", other_paths})
