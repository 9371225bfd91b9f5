/* The tokenizer against encodings and maps made by others: the goldens of the release's tokenizer,
 * the demo model's prompts and folded map, the digest of the release's folded map. */
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/token_map.h"
#include "text_test.h"

static void check_ids(const plumb_text *text, const json_t *string, const json_t *ids,
                      bool match_added) {
    plumb_tokens tokens = {0};
    plumb_error err;
    const char *bytes = json_string_value(string);
    size_t size = json_string_length(string), decoded_size;
    plumb_status status = plumb_text_encode(text, bytes, size, match_added, &tokens, &err);
    T_CHECK(status == PLUMB_OK, "%s", bytes);
    bool same = tokens.count == (int64_t)json_array_size(ids);
    for (int64_t i = 0; same && i < tokens.count; i++)
        same = tokens.ids[i] == json_integer_value(json_array_get(ids, (size_t)i));
    T_CHECK(same, "%lld ids instead of %zu for: %s", (long long)tokens.count, json_array_size(ids),
            bytes);
    char *decoded = bytes_of(text, &tokens, &decoded_size);
    T_CHECK(decoded_size == size && memcmp(decoded, bytes, size) == 0, "decoding: %s", bytes);
    free(decoded);
    plumb_tokens_free(&tokens);
}

static void goldens(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    FILE *f = fopen(TEST_DATA "/tokenizer/goldens.jsonl", "r");
    T_CHECK(text && f, "test data");
    char *line = NULL;
    size_t capacity = 0;
    int count = 0;
    while (text && f && getline(&line, &capacity, f) > 0) {
        json_t *golden = json_loads(line, JSON_ALLOW_NUL, NULL);
        check_ids(text, json_object_get(golden, "text"), json_object_get(golden, "ids"), true);
        json_decref(golden);
        count++;
    }
    T_CHECK(count == 300, "%d goldens", count);
    free(line);
    if (f) fclose(f);
    plumb_text_close(text);
}

static void demo_prompts(void) {
    plumb_text *text = open_text(DEMO_MODEL);
    json_t *file = json_load_file(TEST_DATA "/demo-model/prompts.json", 0, NULL), *prompt;
    size_t i;
    json_array_foreach(json_object_get(file, "prompts"), i, prompt) {
        check_ids(text, json_object_get(prompt, "text"), json_object_get(prompt, "ids"), true);
        check_ids(text, json_object_get(prompt, "continuation_text"),
                  json_object_get(prompt, "continuation"), true);
    }
    T_CHECK(json_array_size(json_object_get(file, "prompts")) > 0, "no prompts");
    json_decref(file);
    plumb_text_close(text);
}

static void release_map(void) {
    static const char expected[] =
        "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481";
    int32_t *map = NULL;
    plumb_error err;
    T_CHECK(plumb__token_map_load(TEST_DATA "/tokenizer", 129280, 99092, 129264, &map, &err) == PLUMB_OK,
            "%s", err.found);
    if (!map) return;
    unsigned char *bytes = malloc(129280 * 4), digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    for (size_t i = 0; i < 129280; i++)
        for (size_t b = 0; b < 4; b++)
            bytes[4 * i + b] = (unsigned char)((uint32_t)map[i] >> (8 * b));
    SHA256(bytes, 129280 * 4, digest);
    for (size_t i = 0; i < sizeof digest; i++) (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    T_CHECK(strcmp(hex, expected) == 0, "%s", hex);
    free(bytes);
    free(map);
}

static void demo_map(void) {
    json_t *file = json_load_file(TEST_DATA "/demo-model/engram_token_map.json", 0, NULL);
    json_t *expected = json_object_get(file, "map");
    int64_t folded = json_integer_value(json_object_get(file, "compressed_vocab_size"));
    int32_t *map = NULL;
    plumb_error err;
    T_CHECK(folded == 3417 && json_array_size(expected) == 4096, "test data");
    T_CHECK(plumb__token_map_load(DEMO_MODEL, 4096, folded, 4095, &map, &err) == PLUMB_OK, "%s",
            err.found);
    for (size_t i = 0; map && i < json_array_size(expected); i++)
        T_CHECK(map[i] == json_integer_value(json_array_get(expected, i)), "id %zu folds to %d", i,
                map[i]);
    free(map);
    json_decref(file);
}

static void map_that_does_not_fit(void) {
    int32_t *map = NULL;
    plumb_error err;
    T_CHECK(plumb__token_map_load(DEMO_MODEL, 4095, 3417, 4095, &map, &err) == PLUMB_ERROR_FORMAT,
            "vocabulary");
    T_CHECK(strcmp(err.found, "4096 ids") == 0 && strcmp(err.expected, "4095") == 0, "%s",
            err.found);
    T_CHECK(plumb__token_map_load(DEMO_MODEL, 4096, 3416, 4095, &map, &err) == PLUMB_ERROR_FORMAT,
            "folded");
    T_CHECK(strcmp(err.found, "3417 folded ids") == 0 && strcmp(err.expected, "3416") == 0, "%s",
            err.found);
    T_CHECK(plumb__token_map_load(DEMO_MODEL, 4096, 3417, 4094, &map, &err) == PLUMB_ERROR_FORMAT,
            "image token");
    T_CHECK(strcmp(err.found, "id 4095") == 0 && strstr(err.expected, "4094"), "%s", err.found);
    T_CHECK(plumb__token_map_load(DEMO_MODEL, 0, 0, 0, &map, &err) == PLUMB_ERROR_ARGUMENT, "none");
    T_CHECK(map == NULL, "untouched");
}

/* A folder without tokenizer.json. */
static void map_from_file(void) {
    static const struct {
        const char *name;
        unsigned char bytes[20];
        size_t size;
        int64_t folded;
        plumb_status status;
        const char *field;
        int64_t offset;
    } rows[] = {
        {"good", {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}, 16, 3, PLUMB_OK, "", 0},
        {"short",
         {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0},
         15,
         3,
         PLUMB_ERROR_FORMAT,
         "file size",
         -1},
        {"long",
         {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0},
         17,
         3,
         PLUMB_ERROR_FORMAT,
         "file size",
         -1},
        {"gap",
         {0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0},
         16,
         3,
         PLUMB_ERROR_FORMAT,
         "folded id",
         4},
        {"huge",
         {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 2, 0, 0, 0},
         16,
         3,
         PLUMB_ERROR_FORMAT,
         "folded id",
         8},
        {"count",
         {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0},
         16,
         4,
         PLUMB_ERROR_FORMAT,
         "folded ids",
         -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = fopen(BUILD_DIR "/engram_token_map.i32", "wb");
        T_CHECK(f && fwrite(rows[i].bytes, 1, rows[i].size, f) == rows[i].size, "write");
        if (f) fclose(f);
        int32_t *map = NULL;
        plumb_error err = {0};
        T_CHECK(plumb__token_map_load(BUILD_DIR, 4, rows[i].folded, 3, &map, &err) == rows[i].status,
                "%s", rows[i].name);
        if (rows[i].status == PLUMB_OK)
            T_CHECK(map && map[0] == 0 && map[1] == 1 && map[2] == 0 && map[3] == 2, "%s",
                    rows[i].name);
        else
            T_CHECK(!strcmp(err.field, rows[i].field) && err.offset == rows[i].offset, "%s: %s",
                    rows[i].name, err.field);
        free(map);
    }
    remove(BUILD_DIR "/engram_token_map.i32");
    int32_t *map = NULL;
    plumb_error err;
    T_CHECK(plumb__token_map_load(BUILD_DIR "/no-such-folder", 4, 3, 3, &map, &err) == PLUMB_ERROR_IO,
            "absent");
}

/* A FIFO in the place of either file neither hangs nor lets the other one stand in, and a link that
 * leads nowhere is named itself. */
static void irregular_map(void) {
    static const char folder[] = BUILD_DIR "/irregular-map";
    static const char *const files[] = {BUILD_DIR "/irregular-map/engram_token_map.i32",
                                        BUILD_DIR "/irregular-map/tokenizer.json"};
    (void)mkdir(folder, 0777);
    for (int i = 0; i < 4; i++) {
        const char *path = files[i % 2];
        (void)unlink(path);
        T_CHECK((i < 2 ? mkfifo(path, 0666) : symlink("nowhere", path)) == 0, "%s", path);
        int32_t *map = NULL;
        plumb_error err = {0};
        T_CHECK(plumb__token_map_load(folder, 4, 3, 3, &map, &err) == PLUMB_ERROR_IO, "%s", path);
        T_CHECK(!map && !strcmp(err.file, path), "%s instead of %s", err.file, path);
        T_CHECK(!strcmp(err.found, i < 2 ? "not a regular file" : "No such file or directory"),
                "%s", err.found);
        T_CHECK(unlink(path) == 0, "%s", path);
    }
    plumb_error err = {0};
    int32_t *map = NULL;
    T_CHECK(plumb__token_map_load(folder, 4, 3, 3, &map, &err) == PLUMB_ERROR_IO, "none");
    T_CHECK(strstr(err.expected, "tokenizer.json"), "%s", err.expected);
}

/* The published ids of tokenizer-and-chat.md section 3. */
static void special_ids(void) {
    static const struct {
        const char *text;
        int32_t id;
        bool control, stop;
    } rows[] = {
        {"<｜begin▁of▁sentence｜>", 0, true, true},
        {"<｜end▁of▁sentence｜>", 1, true, true},
        {"<｜▁pad▁｜>", 2, true, false},
        {"<｜System｜>", 128799, true, true},
        {"<｜User｜>", 128803, true, true},
        {"<｜Assistant｜>", 128804, true, true},
        {"<|EOT|>", 128805, true, false},
        {"<think>", 128821, true, false},
        {"</think>", 128822, true, false},
        {"｜DSML｜", 128825, true, false},
        {"<｜latest_reminder｜>", 128828, true, true},
        {"<｜title｜>", 128836, true, false},
        {"<｜deepseek_image｜>", 129264, true, false},
        {"<｜/polygon｜>", 129271, false, false},
        {"<｜polygon｜>", 129272, false, false},
        {"<｜/point｜>", 129273, false, false},
        {"<｜point｜>", 129274, false, false},
        {"<｜/box｜>", 129275, false, false},
        {"<｜box｜>", 129276, false, false},
        {"<｜/ref｜>", 129277, false, false},
        {"<｜ref｜>", 129278, false, false},
        {"<|place_holder_mm_span_0442|>", 129279, true, false},
        {"think", -1, false, false},
        {"", -1, false, false},
        {"<｜User", -1, false, false},
        {"<｜User｜>x", -1, false, false},
    };
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    for (size_t i = 0; text && i < sizeof rows / sizeof *rows; i++) {
        T_CHECK(plumb_text_token_id(text, rows[i].text) == rows[i].id, "%s", rows[i].text);
        T_CHECK(plumb_text_is_control(text, rows[i].id) == rows[i].control, "%s", rows[i].text);
        T_CHECK(plumb_text_is_stop(text, rows[i].id) == rows[i].stop, "%s", rows[i].text);
    }
    T_CHECK(text && !plumb_text_is_control(text, 3085) && !plumb_text_is_control(text, 129280),
            "plain");
    plumb_text_close(text);
}

/* Added tokens: leftmost, then longest; any byte may begin one; people's text has none. */
static void added_tokens(void) {
    static const struct {
        const char *text;
        bool match;
        int64_t count;
        int32_t ids[4];
    } rows[] = {
        {"｜DSML｜", true, 1, {128825}},
        {"<｜DSML｜ ", true, 3, {30, 128825, 223}},
        {"<<think>", true, 2, {30, 128821}},
        {"<｜place▁holder▁no▁1｜>", true, 1, {128001}},
        {"<｜place▁holder▁no▁10｜>", true, 1, {128010}},
        {"<｜User｜><｜Assistant｜>", true, 2, {128803, 128804}},
        {"<｜User｜>", false, 5, {0}}, /* observed at the public API, as the two below */
        {"<think>", false, 3, {0}},
        {"</think>", false, 3, {0}},
        {"", true, 0, {0}},
    };
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    for (size_t i = 0; text && i < sizeof rows / sizeof *rows; i++) {
        plumb_tokens tokens = {0};
        T_CHECK(plumb_text_encode(text, rows[i].text, strlen(rows[i].text), rows[i].match, &tokens,
                                  NULL) == PLUMB_OK,
                "%s", rows[i].text);
        T_CHECK(tokens.count == rows[i].count, "%s: %lld ids", rows[i].text,
                (long long)tokens.count);
        for (int64_t k = 0; rows[i].ids[0] && k < tokens.count && k < rows[i].count; k++)
            T_CHECK(tokens.ids[k] == rows[i].ids[k], "%s: %d", rows[i].text, tokens.ids[k]);
        plumb_tokens_free(&tokens);
    }
    plumb_text_close(text);
}

/* Added tokens that begin, end and overlap one another. */
static void leftmost_longest(void) {
    static const char *const contents[] = {"[QX",  "[QXZJ",        "QX",           "XZJ]",
                                           "]]]]", "\xEF\xBD\x9C", "\xEF\xBD\x9Cz"};
    static const struct {
        const char *text;
        int64_t count;
        int32_t ids[4]; /* 4082 + index in contents; 0: any token; count 0: not compared */
    } cases[] = {
        {"[QXZJ", 1, {4083}},
        {"[QXZ[QX", 3, {4082, 0, 4082}},
        {"[[QXZJ", 2, {0, 4083}},
        {"zQXZJ]", 0, {0, 4084}},
        {"XZJ]]]]]", 2, {4085, 4086}},
        {"[QXZJ]]]]", 2, {4083, 4086}},
        {"\xEF\xBD\x9C\xEF\xBD\x9Cz", 2, {4087, 4088}},
    };
    json_t *file = json_load_file(DEMO_MODEL "/tokenizer.json", 0, NULL);
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        json_object_set_new(json_array_get(json_object_get(file, "added_tokens"), 3 + i), "content",
                            json_string(contents[i]));
    plumb_text *text = open_json(file);
    for (size_t i = 0; text && i < sizeof cases / sizeof *cases; i++) {
        plumb_tokens tokens = {0};
        T_CHECK(plumb_text_encode(text, cases[i].text, strlen(cases[i].text), true, &tokens,
                                  NULL) == PLUMB_OK,
                "%s", cases[i].text);
        T_CHECK(cases[i].count == 0 || tokens.count == cases[i].count, "%s: %lld", cases[i].text,
                (long long)tokens.count);
        for (int64_t k = 0; k < tokens.count && k < 4; k++)
            T_CHECK(!cases[i].ids[k] || tokens.ids[k] == cases[i].ids[k], "%s: %d", cases[i].text,
                    tokens.ids[k]);
        plumb_tokens_free(&tokens);
    }
    plumb_text_close(text);
}

/* Ids are appended; a failed call leaves the list as it was. */
static void invalid_utf8(void) {
    static const struct {
        const char *name, *bytes;
        size_t size;
        int64_t offset;
    } rows[] = {
        {"stray continuation", "ab\x80", 3, 2},
        {"lead without continuation", "abc\xC3", 4, 3},
        {"lead before ASCII", "\xC3z", 2, 0},
        {"overlong slash", "x\xC0\xAF", 3, 1},
        {"overlong of three", "\xE0\x9F\xBF", 3, 0},
        {"overlong of four", "\xF0\x8F\xBF\xBF", 4, 0},
        {"surrogate", "\xED\xA0\x80", 3, 0},
        {"beyond U+10FFFF", "\xF4\x90\x80\x80", 4, 0},
        {"lead F5", "\xF5\x80\x80\x80", 4, 0},
        {"FF behind eight ASCII", "01234567\xFF", 9, 8},
        {"cut emoji", "hello \xF0\x9F\x98", 9, 6},
        {"behind NUL", "a\0b\xFE", 4, 3},
    };
    plumb_text *text = open_text(DEMO_MODEL);
    plumb_tokens tokens = {0};
    T_CHECK(plumb_text_encode(text, "a", 1, false, &tokens, NULL) == PLUMB_OK, "good text");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plumb_error err = {0};
        plumb_status status =
            plumb_text_encode(text, rows[i].bytes, rows[i].size, i % 2, &tokens, &err);
        T_CHECK(status == PLUMB_ERROR_TEXT && err.offset == rows[i].offset, "%s: %s at %lld",
                rows[i].name, plumb_status_name(status), (long long)err.offset);
        T_CHECK(tokens.count == 1, "%s", rows[i].name);
    }
    T_CHECK(plumb_text_encode(text, "\0b\xF4\x8F\xBF\xBF", 6, false, &tokens, NULL) == PLUMB_OK,
            "NUL is text");
    size_t size;
    char *bytes = bytes_of(text, &tokens, &size);
    T_CHECK(size == 7 && !memcmp(bytes, "a\0b\xF4\x8F\xBF\xBF", 7), "appended");
    free(bytes);
    plumb_tokens_free(&tokens);
    plumb_text_close(text);
}

/* Every id has bytes.  Encoding the bytes of a token that text can end in gives text with those
 * bytes again; ids outside have none. */
static void every_id(void) {
    plumb_text *text = open_text(RELEASE_TOKENIZER);
    int64_t whole = 0;
    for (int32_t id = 0; text && id < plumb_text_vocab_size(text); id++) {
        size_t size, back_size;
        const char *bytes = plumb_text_token_bytes(text, id, &size);
        plumb_tokens tokens = {0};
        if (!bytes || size == 0) T_CHECK(false, "id %d has no bytes", id);
        if (plumb__utf8_valid_prefix(bytes, size) < size) continue;
        plumb_status status = plumb_text_encode(text, bytes, size, true, &tokens, NULL);
        char *back = bytes_of(text, &tokens, &back_size);
        if (status != PLUMB_OK || back_size != size || memcmp(back, bytes, size) != 0)
            T_CHECK(false, "id %d", id);
        if (plumb_text_is_control(text, id) && !(tokens.count == 1 && tokens.ids[0] == id))
            T_CHECK(false, "control id %d", id);
        whole += tokens.count == 1 && tokens.ids[0] == id;
        free(back);
        plumb_tokens_free(&tokens);
    }
    T_CHECK(whole > 100000, "%lld tokens encode to themselves", (long long)whole);
    size_t size = 1;
    T_CHECK(!plumb_text_token_bytes(text, -1, &size) && size == 0, "-1");
    T_CHECK(!plumb_text_token_bytes(text, 129280, &size), "one too many");
    plumb_text_close(text);
}

T_MAIN({"goldens", goldens}, {"demo_prompts", demo_prompts}, {"release_map", release_map},
       {"demo_map", demo_map}, {"map_that_does_not_fit", map_that_does_not_fit},
       {"map_from_file", map_from_file}, {"irregular_map", irregular_map},
       {"special_ids", special_ids},
       {"added_tokens", added_tokens}, {"leftmost_longest", leftmost_longest},
       {"invalid_utf8", invalid_utf8}, {"every_id", every_id})
