/* Splitting: the scanner against PCRE2, pieces of the specification, patterns, very long runs. */
#include "text_test.h"

typedef struct pieces {
    size_t ends[4096];
    size_t count;
    const char *last; /* where the piece before ended */
    const char *text;
    bool joined; /* pieces follow one another and none is empty */
} pieces;

static plumb_status note_piece(void *user, const char *piece, size_t size, plumb_error *err) {
    pieces *p = user;
    (void)err;
    p->joined &= piece == p->last && size > 0;
    p->last = piece + size;
    if (p->count < 4096) p->ends[p->count] = (size_t)(piece + size - p->text);
    p->count++;
    return PLUMB_OK;
}

/* Both ways; the pieces must be the same.  Leaves them in *general. */
static bool both_ways(const plumb_text *text, const char *bytes, size_t size, pieces *general) {
    pieces known = {.last = bytes, .text = bytes, .joined = true};
    plumb__split_scratch scratch = {0};
    *general = known;
    bool ok = plumb__split_known(text->splitter.classes, bytes, size, note_piece, &known, NULL) ==
              PLUMB_OK;
    ok &= plumb__split_general(&text->splitter, bytes, size, &scratch, note_piece, general, NULL) ==
          PLUMB_OK;
    plumb__split_scratch_free(&scratch);
    size_t kept = known.count < 4096 ? known.count : 4096;
    return ok && known.joined && general->joined && known.count == general->count &&
           known.last == bytes + size &&
           !memcmp(known.ends, general->ends, kept * sizeof *known.ends);
}

static void spec_pieces(void) {
    /* '|' between pieces, written by hand from tokenizer-and-chat.md section 2. */
    static const char *const rows[] = {
        "What| is| |2|+|2|?",
        "123|456|78",
        "a|   | b",
        "a|  ",
        "a| |1",
        " |\xE4\xB8\xAD\xE6\x96\x87|1|\xE3\x81\x82",
        "\xE3\x81\x82|\xE3\x83\xBB|\xE3\x82\xB9", /* the third split works on kana too */
        "x|\n\n|  | y",
        "x|  \n|y",
        "\r|y",
        " .)\r\n\n| z",
        "'ll| #|abc|!!",
        "\x01\x02|3",
        "\x01\x02|\x03z",
        "\tz|\t|\t|.",
        "\xC2\xA0z|\xC2\xA0|.",
        "e\xCC\x81\xCC\x81|-|\xCC\x81",
    };
    plumb_text *text = open_text(DEMO_MODEL);
    for (size_t i = 0; text && i < sizeof rows / sizeof *rows; i++) {
        char bytes[128];
        size_t size = 0, ends[64], count = 0;
        for (const char *c = rows[i]; *c; c++) {
            if (*c == '|')
                ends[count++] = size;
            else
                bytes[size++] = *c;
        }
        if (count == 0 || ends[count - 1] != size) ends[count++] = size;
        pieces found;
        T_CHECK(both_ways(text, bytes, size, &found), "%s", rows[i]);
        T_CHECK(found.count == count && !memcmp(found.ends, ends, count * sizeof *ends),
                "%s: %zu pieces", rows[i], found.count);
    }
    plumb_text_close(text);
}

static void scanner_equals_pcre2(void) {
    plumb_text *text = open_text(DEMO_MODEL);
    uint64_t state = 7;
    char bytes[1024];
    int unlike = 0;
    for (int round = 0; text && round < 20000; round++) {
        size_t size = random_text(&state, bytes, 1 + random_below(&state, 200));
        pieces found;
        unlike += !both_ways(text, bytes, size, &found);
    }
    T_CHECK(unlike == 0, "%d of 20000 random texts", unlike);
    plumb_text_close(text);
}

/* Every character of planes 0 and 1 between letters, spaces and at the ends: its class is PCRE2's.
 */
static void every_character(void) {
    plumb_text *text = open_text(DEMO_MODEL);
    int unlike = 0;
    for (uint32_t c = 0; text && c < PLUMB_CLASSES; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        char bytes[32];
        size_t size = 0;
        pieces found;
        size += plumb__utf8_write(bytes, c);
        bytes[size++] = 'a';
        size += plumb__utf8_write(bytes + size, c);
        bytes[size++] = ' ';
        size += plumb__utf8_write(bytes + size, c);
        size += plumb__utf8_write(bytes + size, c);
        bytes[size++] = '\n';
        bytes[size++] = ' ';
        size += plumb__utf8_write(bytes + size, c);
        unlike += !both_ways(text, bytes, size, &found);
        unlike += !plumb__known_scope(bytes, size);
    }
    T_CHECK(unlike == 0, "%d characters", unlike);
    T_CHECK(!plumb__known_scope("\xF0\xA0\x80\x80", 4) &&
                !plumb__known_scope("a\xF4\x8F\xBF\xBF", 5),
            "planes beyond");
    plumb_text_close(text);
}

/* PCRE2's limit of steps is proportional to the text, so that success is linear work. */
static void long_runs(void) {
    static const char *const units[] = {
        "a",
        "\xC3\xA9",
        "\xE4\xB8\xAD",
        "\xE3\x81\x82",
        "\xED\x95\x9C",
        "<",
        " ",
        "\n",
        "\t",
        "7",
        "\xD9\xA3",
        "\xF0\x9F\x98\x80",
        "\xCC\x81",
        "\x01",
        "\xE3\x80\x80",
        "\xC2\xA0",
        "\r\n",
        " \n",
        "\xEF\xBC\x8C",
        "e\xCC\x81",
        "\xF0\xA0\x80\x80",
        "\x01 ",
        "!a",
        " !",
    };
    plumb_text *text = open_text(DEMO_MODEL);
    const size_t n = 100000;
    char *run = malloc(n * 4 + 2);
    for (size_t u = 0; text && run && u < sizeof units / sizeof *units; u++) {
        size_t unit = strlen(units[u]), size = 0;
        for (; size < n * unit; size += unit) memcpy(run + size, units[u], unit);
        run[size++] = 'z';
        pieces general = {.last = run, .text = run, .joined = true};
        plumb__split_scratch scratch = {0};
        plumb_error err = {0};
        plumb_status status =
            plumb__split_general(&text->splitter, run, size, &scratch, note_piece, &general, &err);
        T_CHECK(status == PLUMB_OK && general.joined && general.last == run + size, "\"%s\": %s",
                units[u], err.found);
        plumb__split_scratch_free(&scratch);
        if (plumb__known_scope(run, size))
            T_CHECK(both_ways(text, run, size, &general), "\"%s\"", units[u]);
    }
    free(run);
    plumb_text_close(text);
}

/* A repeated group keeps every repetition on the stack of the compiled code, which must grow. */
static void deep_pattern(void) {
    json_t *file = json_load_file(DEMO_MODEL "/tokenizer.json", 0, NULL);
    json_t *steps = json_object_get(json_object_get(file, "pre_tokenizer"), "pretokenizers");
    json_object_set_new(json_object_get(json_array_get(steps, 0), "pattern"), "Regex",
                        json_string("(?:a\\s|a|\\S)+(?!\\S)"));
    plumb_text *text = open_json(file);
    const size_t size = 300000;
    char *run = malloc(size);
    if (run) memset(run, 'a', size);
    pieces found = {.last = run, .text = run, .joined = true};
    plumb__split_scratch scratch = {0};
    plumb_error err = {0};
    T_CHECK(text && !text->splitter.classes, "the scanner is for the release's splits");
    plumb_status status =
        plumb__split(&text->splitter, run, size, &scratch, note_piece, &found, &err);
    T_CHECK(status == PLUMB_OK && found.count == 1 && found.joined, "%s", err.found);
    T_CHECK(scratch.stack_size > 0, "no stack was needed");
    plumb__split_scratch_free(&scratch);
    free(run);
    plumb_text_close(text);
}

/* A pattern that tries every way to cut a run is given up; what was encoded before is taken back.
 */
static void hopeless_pattern(void) {
    json_t *file = json_load_file(DEMO_MODEL "/tokenizer.json", 0, NULL);
    json_t *steps = json_object_get(json_object_get(file, "pre_tokenizer"), "pretokenizers");
    json_object_set_new(json_object_get(json_array_get(steps, 0), "pattern"), "Regex",
                        json_string("(?:a+)+(?:b|c)"));
    plumb_text *text = open_json(file);
    static const char bytes[] =
        "\x3C\xEF\xBD\x9CUser\xEF\xBD\x9C>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    plumb_tokens tokens = {0};
    plumb_error err = {0};
    T_CHECK(text && plumb_text_encode(text, "x", 1, true, &tokens, &err) == PLUMB_OK, "%s",
            err.found);
    int64_t before = tokens.count;
    plumb_status status = plumb_text_encode(text, bytes, sizeof bytes - 1, true, &tokens, &err);
    T_CHECK(status == PLUMB_ERROR_TEXT && !strcmp(err.field, "pre-tokenizer"), "%s", err.field);
    T_CHECK(tokens.count == before, "%lld ids", (long long)tokens.count);
    plumb_tokens_free(&tokens);
    plumb_text_close(text);
}

static plumb_status fail_at_third(void *user, const char *piece, size_t size, plumb_error *err) {
    (void)piece;
    (void)size;
    (void)err;
    return ++*(int *)user == 3 ? PLUMB_ERROR_CANCELLED : PLUMB_OK;
}

static void failing_sink(void) {
    plumb_text *text = open_text(DEMO_MODEL);
    plumb__split_scratch scratch = {0};
    int known = 0, general = 0;
    static const char bytes[] = "one two three four five";
    T_CHECK(plumb__split(&text->splitter, bytes, 23, &scratch, fail_at_third, &known, NULL) ==
                    PLUMB_ERROR_CANCELLED &&
                known == 3,
            "%d", known);
    T_CHECK(plumb__split_general(&text->splitter, bytes, 23, &scratch, fail_at_third, &general,
                                 NULL) == PLUMB_ERROR_CANCELLED &&
                general == 3,
            "%d", general);
    plumb__split_scratch_free(&scratch);
    plumb_text_close(text);
}

static void patterns(void) {
    static const struct {
        const char *pattern, *refused; /* NULL: translated */
        int64_t offset;
    } rows[] = {
        {"\\p{N}{1,3}", NULL, 0},
        {"[^\\s\\p{L}]+|\\s+(?!\\S)|(?:a|b)*", NULL, 0},
        {"[]a]", "an empty class", 1},
        {"a\\d", "an escape", 1},
        {"\\", "an escape", 0},
        {"[\\S]", "an escape", 1},
        {"\\p{Greek}", "a property other than a general category", 0},
        {"\\pL", "a property other than a general category", 0},
        {"\\p{L", "a property other than a general category", 0},
        {"[a[b]]", "a class inside a class", 2},
        {"[a&&b]", "an intersection of classes", 2},
        {"x[ab", "a class without an end", 4},
        {"(?i)a", "this kind of group", 0},
        {"(?<n>a)", "this kind of group", 0},
        {"(*F)", "this kind of group", 0},
        {"^a", "'^', '$' or '.' outside a class", 0},
        {"a{,3}", "a repeat without a lower bound", 1},
        {"a{3}+", "a mark behind '}'", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *translated = NULL;
        plumb_error err = {0};
        plumb__slice pattern = {rows[i].pattern, strlen(rows[i].pattern)};
        plumb_status status = plumb__pattern_translate(pattern, "f", &translated, &err);
        if (!rows[i].refused)
            T_CHECK(status == PLUMB_OK && translated && !strstr(translated, "\\s"), "%s",
                    rows[i].pattern);
        else
            T_CHECK(status == PLUMB_ERROR_FORMAT && !strcmp(err.found, rows[i].refused) &&
                        err.offset == rows[i].offset,
                    "%s: %s at %lld", rows[i].pattern, err.found, (long long)err.offset);
        free(translated);
    }
}

T_MAIN({"spec_pieces", spec_pieces}, {"scanner_equals_pcre2", scanner_equals_pcre2},
       {"every_character", every_character}, {"long_runs", long_runs},
       {"deep_pattern", deep_pattern}, {"hopeless_pattern", hopeless_pattern},
       {"failing_sink", failing_sink}, {"patterns", patterns})
