/* tokenizer.json that must be refused: each fault names file, field, found and expected. */
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_test.h"

static plumb_status open_bytes(const char *bytes, size_t size, plumb_error *err) {
    plumb_text *text = NULL;
    *err = (plumb_error){0};
    plumb_status status = plumb__text_open_bytes("broken", bytes, size, &text, err);
    T_CHECK((status == PLUMB_OK) == (text != NULL), "handle only on success");
    plumb_text_close(text);
    return status;
}

/* Walks "a.b.3.c" down to the parent of its last part; *last is that part. */
static json_t *walk(json_t *value, const char *path, char *last) {
    for (const char *part = path;;) {
        size_t size = strcspn(part, ".");
        (void)snprintf(last, 64, "%.*s", (int)size, part);
        if (!part[size]) return value;
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(last))
                                     : json_object_get(value, last);
        part += size + 1;
    }
}

static void mutate(json_t *file, const char *path, const char *value) {
    char last[64];
    json_t *parent = walk(file, path, last);
    json_t *made = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    T_CHECK(parent && (made || !value), "%s", path);
    if (json_is_array(parent) && !strcmp(last, "+"))
        json_array_append_new(parent, made);
    else if (json_is_array(parent) && made)
        json_array_set_new(parent, (size_t)atoi(last), made);
    else if (json_is_array(parent))
        json_array_remove(parent, (size_t)atoi(last));
    else if (made)
        json_object_set_new(parent, last, made);
    else
        json_object_del(parent, last);
}

/* `value` NULL removes the property; `field` NULL: the change is harmless.  The demo has ids
 * 0..4095; "!" is 3, "the" comes from "t" and "he". */
static const struct {
    const char *path, *value, *field, *found, *expected;
} rows[] = {
    {"version", "\"1.0\"", NULL, "", ""},
    {"normalizer", "null", NULL, "", ""},
    {"post_processor", "null", NULL, "", ""},
    {"version", NULL, NULL, "", ""},
    {"model.ignore_merges", "false", NULL, "", ""},
    {"model.continuing_subword_prefix", "\"\"", NULL, "", ""},
    {"added_tokens.3.normalized", "true", NULL, "", ""},
    {"version", "\"2.0\"", "version", "\"2.0\"", "1.0"},
    {"truncation", "{}", "truncation", "a value that begins with '{'", "null"},
    {"padding", "5", "padding", "a value that begins with '5'", "null"},
    {"surprise", "1", "tokenizer", "unknown property \"surprise\"",
     "only properties that the tokenizer honours"},
    {"added_tokens", NULL, "tokenizer", "nothing", "property \"added_tokens\""},
    {"model", NULL, "tokenizer", "nothing", "property \"model\""},
    {"decoder", NULL, "tokenizer", "nothing", "property \"decoder\""},
    {"pre_tokenizer", NULL, "tokenizer", "nothing", "property \"pre_tokenizer\""},
    {"normalizer", "{\"type\": \"NFC\"}", "normalizer.type", "\"NFC\"", "Sequence"},
    {"normalizer.normalizers", "[{\"type\": \"NFC\"}]", "normalizer.normalizers", "a normalizer",
     "none"},
    {"normalizer.normalizers", NULL, "normalizer", "nothing", "property \"normalizers\""},
    {"decoder.type", "\"WordPiece\"", "decoder.type", "\"WordPiece\"", "ByteLevel"},
    {"decoder.extra", "1", "decoder", "unknown property \"extra\"",
     "only properties that the tokenizer honours"},
    {"post_processor.type", "\"TemplateProcessing\"", "post_processor.type",
     "\"TemplateProcessing\"", "ByteLevel"},
    {"pre_tokenizer.type", "\"Split\"", "pre_tokenizer.type", "\"Split\"", "Sequence"},
    {"pre_tokenizer.pretokenizers", "[]", "pre_tokenizer.pretokenizers", "no ByteLevel",
     "ByteLevel as the last"},
    {"pre_tokenizer.pretokenizers.3", NULL, "pre_tokenizer.pretokenizers", "no ByteLevel",
     "ByteLevel as the last"},
    {"pre_tokenizer.pretokenizers.0.type", "\"Digits\"", "pre_tokenizer.pretokenizers",
     "\"Digits\"", "Split or ByteLevel"},
    {"pre_tokenizer.pretokenizers.+", "{\"type\": \"ByteLevel\"}", "pre_tokenizer.pretokenizers",
     "a step after ByteLevel", "ByteLevel as the last"},
    {"pre_tokenizer.pretokenizers.0.behavior", "\"Removed\"", "pre_tokenizer.behavior",
     "\"Removed\"", "Isolated"},
    {"pre_tokenizer.pretokenizers.0.invert", "true", "pre_tokenizer.invert", "true", "false"},
    {"pre_tokenizer.pretokenizers.0.invert", NULL, "pre_tokenizer.pretokenizers", "nothing",
     "property \"invert\""},
    {"pre_tokenizer.pretokenizers.0.pattern", "{\"String\": \" \"}", "pre_tokenizer.pattern",
     "unknown property \"String\"", "only properties that the tokenizer honours"},
    {"pre_tokenizer.pretokenizers.0.pattern.Regex", "\"a*\"", "pre_tokenizer.pattern.Regex",
     "a pattern that matches nothing at all", "one that takes a character"},
    {"pre_tokenizer.pretokenizers.0.pattern.Regex", "\"(a\"", "pre_tokenizer.pattern.Regex",
     "missing closing parenthesis", "a valid pattern"},
    {"pre_tokenizer.pretokenizers.0.pattern.Regex", "\"\\\\d+\"", "pre_tokenizer.pattern.Regex",
     "an escape", "a construct that PCRE2 and Oniguruma read alike"},
    {"pre_tokenizer.pretokenizers.3.add_prefix_space", "true", "pre_tokenizer.add_prefix_space",
     "true", "false"},
    {"pre_tokenizer.pretokenizers.3.use_regex", "true", "pre_tokenizer.use_regex", "true", "false"},
    {"model.type", "\"Unigram\"", "model.type", "\"Unigram\"", "BPE"},
    {"model.dropout", "\"0.1\"", "model.dropout", "a value that begins with '\"'", "null"},
    {"model.unk_token", "\"<unk>\"", "model.unk_token", "a value that begins with '\"'", "null"},
    {"model.continuing_subword_prefix", "\"##\"", "model.continuing_subword_prefix", "\"##\"",
     "null or an empty string"},
    {"model.end_of_word_suffix", "\"</w>\"", "model.end_of_word_suffix", "\"</w>\"",
     "null or an empty string"},
    {"model.fuse_unk", "true", "model.fuse_unk", "true", "false"},
    {"model.byte_fallback", "true", "model.byte_fallback", "true", "false"},
    {"model.byte_fallback", "1", "model.byte_fallback", "\"1\"", "true or false"},
    {"model.ignore_merges", "true", "model.ignore_merges", "true", "false"},
    {"model.merges", NULL, "model", "nothing", "property \"merges\""},
    {"model.vocab", "[]", "model.vocab", "\"[\"", "an object"},
    {"model.merges", "{}", "model.merges", "\"{\"", "an array"},
    {"model.vocab.!", "4", "model.vocab", "id 4 again", "every id once"},
    {"model.vocab.!", "5000", "model.vocab", "id 5000", "ids without holes"},
    {"model.vocab.!", "4096", "model.vocab", "no token", "ids without holes"},
    {"model.vocab.!", "-3", "model.vocab", "\"-\"", "a whole number of at most 2^53"},
    {"model.vocab.!", "3.5", "model.vocab", "\".\"", "a whole number of at most 2^53"},
    {"model.vocab.!", "9007199254740993", "model.vocab", "\"3\"", "a whole number of at most 2^53"},
    {"model.vocab.!", "\"3\"", "model.vocab", "\"\"\"", "a whole number of at most 2^53"},
    {"model.vocab.!", NULL, "model.vocab", "no token", "ids without holes"},
    {"model.vocab.", "4096", "model.vocab", "an empty token", "text"},
    {"model.vocab.\xEF\xBD\x9C", "4096", "model.vocab", "a character that stands for no byte",
     "byte-level spelling, or an added token's text"},
    {"model.merges.0", "\"nospace\"", "model.merges", "\"nospace\"",
     "two parts with a space between"},
    {"model.merges.0", "\" t\"", "model.merges", "a part that spells no bytes",
     "two tokens in byte-level spelling"},
    {"model.merges.0", "\"a b c\"", "model.merges", "a part that spells no bytes",
     "two tokens in byte-level spelling"},
    {"model.merges.0", "[\"a\"]", "model.merges", "another number of parts", "two parts"},
    {"model.merges.0", "[\"a\", \"b\", \"c\"]", "model.merges", "another number of parts",
     "two parts"},
    {"model.merges.0", "5", "model.merges", "\"5\"", "a string"},
    {"model.merges.0", "\"qqqq t\"", "model.merges",
     "\"qqqq t\", whose left part is not in model.vocab", "merges of known tokens"},
    {"model.merges.0", "\"t qqqq\"", "model.merges",
     "\"t qqqq\", whose right part is not in model.vocab", "merges of known tokens"},
    {"model.merges.0", "\"! ~\"", "model.merges", "\"! ~\", whose result is not in model.vocab",
     "merges of known tokens"},
    {"model.merges.+", "\"h e\"", "model.merges", "the merge of rank 1 again", "every merge once"},
    {"added_tokens.3.id", "3", "model.vocab", "no token", "ids without holes"},
    {"added_tokens.+", "{\"id\": 3, \"content\": \"?\"}", "added_tokens.content",
     "a text unlike model.vocab's", "the same text"},
    {"added_tokens.3.id", "4083", "added_tokens.id", "id 4083 again", "every id once"},
    {"added_tokens.3.id", "9999", "added_tokens.id", "id 9999", "ids without holes"},
    {"added_tokens.3", NULL, "model.vocab", "no token", "ids without holes"},
    {"added_tokens.3.content", "\"<\xEF\xBD\x9CUser\xEF\xBD\x9C>\"", "added_tokens.content",
     "the text of id 4082 again", "every text once"},
    {"added_tokens.3.content", "\"!\"", "added_tokens.content",
     "\"!\", which model.vocab has under another id", "one id for one text"},
    {"added_tokens.3.content", "\"\"", "added_tokens.content", "empty text", "text"},
    {"added_tokens.3.content", NULL, "added_tokens", "nothing", "property \"content\""},
    {"added_tokens.3.id", NULL, "added_tokens", "nothing", "property \"id\""},
    {"added_tokens.0.content", "\"<bos>\"", "model.vocab", "a character that stands for no byte",
     "byte-level spelling, or an added token's text"},
    {"added_tokens.3.single_word", "true", "added_tokens.single_word", "true", "false"},
    {"added_tokens.3.lstrip", "true", "added_tokens.lstrip", "true", "false"},
    {"added_tokens.3.rstrip", "true", "added_tokens.rstrip", "true", "false"},
};

static void mutated(void) {
    json_t *demo = json_load_file(DEMO_MODEL "/tokenizer.json", 0, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *file = json_deep_copy(demo);
        mutate(file, rows[i].path, rows[i].value);
        char *bytes = json_dumps(file, JSON_COMPACT | JSON_REAL_PRECISION(17));
        plumb_error err;
        plumb_status status = open_bytes(bytes, strlen(bytes), &err);
        if (!rows[i].field) {
            T_CHECK(status == PLUMB_OK, "%s: %s: found %s", rows[i].path, err.field, err.found);
        } else {
            T_CHECK(status == PLUMB_ERROR_FORMAT, "%s = %s: %s", rows[i].path, rows[i].value,
                    plumb_status_name(status));
            T_CHECK(!strcmp(err.field, rows[i].field) && !strcmp(err.found, rows[i].found) &&
                        !strcmp(err.expected, rows[i].expected) && !strcmp(err.file, "broken"),
                    "%s = %s: %s: found %s, expected %s", rows[i].path, rows[i].value, err.field,
                    err.found, err.expected);
        }
        free(bytes);
        json_decref(file);
    }
    json_decref(demo);
}

/* Texts that are no JSON, or not what JSON readers agree on; the offset is that of the fault. */
static void malformed(void) {
    static const struct {
        const char *text, *field, *expected;
        int64_t offset;
    } texts[] = {
        {"", "tokenizer", "an object", 0},
        {"[]", "tokenizer", "an object", 0},
        {"{", "tokenizer", "a string", 1},
        {"{\"version\" \"1.0\"}", "tokenizer", "':'", 11},
        {"{\"version\": \"1.0\" \"model\"", "tokenizer", "',' or '}'", 18},
        {"{\"version\": \"1.0\",}", "tokenizer", "a string", 18},
        {"{\"version\": \"1.0\", \"version\": \"1.0\"}", "tokenizer", "once", 29},
        {"{\"version\": \"1.0", "version", "'\"' at the end of a string", 16},
        {"{\"version\": \"1.\n", "version", "'\"' at the end of a string", 15},
        {"{\"version\": \"\\q", "version", "a valid escape in a string", 14},
        {"{\"version\": \"\\u12", "version", "a valid escape in a string", 14},
        {"{\"version\": \"\\ud800\"", "version", "a valid escape in a string", 19},
        {"{\"version\": \"\\udc00\"", "version", "a valid escape in a string", 14},
        {"{\"version\": \"\\ud800\\u0041\"", "version", "a valid escape in a string", 19},
        {"{\"version\": \"\\u00312\"", "version", "1.0", 21},
        {"{\"version\": \"\xC3\"}", "text", "valid UTF-8", 13},
        {"{\"added_tokens\": [{\"id\": 01", "added_tokens.id", "a whole number of at most 2^53",
         27},
        {"{\"added_tokens\": [{\"id\": 1e2", "added_tokens.id", "a whole number of at most 2^53",
         26},
        {"{\"added_tokens\": [{\"id\": 99999999999999999999", "added_tokens.id",
         "a whole number of at most 2^53", 40},
        {"{\"added_tokens\": [{\"id\": 1, \"content\": \"a\\u0000\"}]", "added_tokens.content",
         "text", 49},
        {"{\"added_tokens\": [}", "added_tokens", "an object", 18},
        {"{\"added_tokens\": [{\"id\": 1, \"content\": \"a\"} 5", "added_tokens", "',' or ']'", 44},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        plumb_error err;
        plumb_status status = open_bytes(texts[i].text, strlen(texts[i].text), &err);
        T_CHECK(status == PLUMB_ERROR_FORMAT && !strcmp(err.field, texts[i].field) &&
                    !strcmp(err.expected, texts[i].expected) && err.offset == texts[i].offset,
                "%s: %s at %lld: found %s, expected %s", texts[i].text, err.field,
                (long long)err.offset, err.found, err.expected);
    }
}

static char *demo_bytes(size_t *size) {
    FILE *f = fopen(DEMO_MODEL "/tokenizer.json", "rb");
    char *bytes = malloc(1 << 20);
    *size = f && bytes ? fread(bytes, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    return bytes;
}

/* Files of other kinds beside which a tokenizer.json lies, and one that is almost a tokenizer. */
static void other_kinds(void) {
    static const struct {
        const char *text, *found, *expected;
        int64_t offset;
    } files[] = {
        {"{\"architectures\": [], \"version\": \"1.0\"}",
         "a file that begins with property \"architectures\"",
         "a tokenizer.json, or the folder that holds one", 17},
        {"{\"version\": \"1.0\", \"architectures\": []}", "unknown property \"architectures\"",
         "only properties that the tokenizer honours", 35},
        {"{}", "nothing", "property \"added_tokens\"", 2},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        plumb_error err;
        plumb_status status = open_bytes(files[i].text, strlen(files[i].text), &err);
        T_CHECK(status == PLUMB_ERROR_FORMAT && !strcmp(err.field, "tokenizer") &&
                    !strcmp(err.found, files[i].found) &&
                    !strcmp(err.expected, files[i].expected) && err.offset == files[i].offset,
                "%s: %s at %lld: found %s, expected %s", files[i].text, err.field,
                (long long)err.offset, err.found, err.expected);
    }
}

/* A cut file never opens, wherever it is cut; nor does one with something behind it. */
static void truncated(void) {
    size_t size;
    char *bytes = demo_bytes(&size);
    int opened = 0, vague = 0;
    while (size > 0 && bytes[size - 1] != '}') size--;
    for (size_t cut = 0; cut < size; cut += cut < 4000 || cut > size - 200 ? 7 : 997) {
        plumb_error err;
        opened += open_bytes(bytes, cut, &err) == PLUMB_OK;
        vague += !err.field[0] || !err.expected[0] || err.offset < 0;
    }
    T_CHECK(size > 100000 && opened == 0 && vague == 0, "%d opened, %d vague", opened, vague);
    plumb_error err;
    bytes[size] = '\n';
    T_CHECK(open_bytes(bytes, size + 1, &err) == PLUMB_OK, "white space behind");
    bytes[size] = '0';
    T_CHECK(open_bytes(bytes, size + 1, &err) == PLUMB_ERROR_FORMAT && err.offset == (int64_t)size,
            "%s", err.field);
    free(bytes);
}

/* One byte changed: opens or is refused, and what opens encodes. */
static void flipped_bytes(void) {
    size_t size;
    char *bytes = demo_bytes(&size);
    uint64_t state = 23;
    int refused = 0;
    for (int round = 0; round < 300; round++) {
        size_t at = random_below(&state, (uint32_t)(round % 2 ? size : 3500));
        char before = bytes[at];
        bytes[at] = (char)random_next(&state);
        plumb_error err;
        refused += open_bytes(bytes, size, &err) != PLUMB_OK;
        bytes[at] = before;
    }
    T_CHECK(refused > 100, "%d refused", refused);
    free(bytes);
}

static void absent(void) {
    plumb_text *text = NULL;
    plumb_error err = {0};
    T_CHECK(plumb_text_open(BUILD_DIR "/no-such-folder", &text, &err) == PLUMB_ERROR_IO && !text,
            "absent");
    T_CHECK(strstr(err.file, "no-such-folder") && err.found[0], "%s", err.file);
    T_CHECK(plumb_text_open(TEST_DATA, &text, &err) == PLUMB_ERROR_IO &&
                strstr(err.file, "/tokenizer.json"),
            "folder");
    T_CHECK(plumb_text_open(NULL, &text, &err) == PLUMB_ERROR_ARGUMENT, "NULL");
}

/* What is no regular file is refused by name, and nothing waits for a writer. */
static void irregular_files(void) {
    static const char folder[] = BUILD_DIR "/irregular-tokenizer";
    static const char path[] = BUILD_DIR "/irregular-tokenizer/tokenizer.json";
    static const char *const kinds[] = {"FIFO", "folder", "dangling link", "link to itself"};
    static const char *const found[] = {"not a regular file", "a folder",
                                        "No such file or directory", NULL};
    (void)mkdir(folder, 0777);
    (void)unlink(path);
    (void)rmdir(path);
    for (int kind = 0; kind < 4; kind++) {
        int made = kind == 0   ? mkfifo(path, 0666)
                   : kind == 1 ? mkdir(path, 0777)
                               : symlink(kind == 2 ? "nowhere" : "tokenizer.json", path);
        T_CHECK(made == 0, "%s", kinds[kind]);
        for (int by_folder = 0; by_folder < 2; by_folder++) {
            if (kind == 1 && !by_folder) continue; /* a folder without tokenizer.json */
            plumb_text *text = NULL;
            plumb_error err = {0};
            T_CHECK(plumb_text_open(by_folder ? folder : path, &text, &err) == PLUMB_ERROR_IO,
                    "%s", kinds[kind]);
            T_CHECK(!text && !strcmp(err.file, path) && err.expected[0], "%s", err.file);
            T_CHECK(!found[kind] || !strcmp(err.found, found[kind]), "%s", err.found);
        }
        T_CHECK((kind == 1 ? rmdir(path) : unlink(path)) == 0, "%s", kinds[kind]);
    }
}

T_MAIN({"mutated", mutated}, {"malformed", malformed}, {"other_kinds", other_kinds},
       {"truncated", truncated}, {"flipped_bytes", flipped_bytes}, {"absent", absent},
       {"irregular_files", irregular_files})
