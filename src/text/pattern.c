/* Patterns of tokenizer.json in PCRE2's words.
 *
 * The reference engine is Oniguruma.  The part of the language that both understand alike goes
 * through; \s becomes its explicit class, since PCRE2's own is ASCII only, or takes U+180E with
 * Unicode properties on; what the two read differently is refused. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/pretokenize.h"

/* Unicode White_Space, without brackets: it also goes inside a class. */
#define WHITE_SPACE                                                                                \
    "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}"             \
    "\\x{202F}\\x{205F}\\x{3000}"

typedef struct translation {
    plumb__slice pattern;
    size_t at;
    char *out;
    size_t written;
    const char *unknown; /* why the construct at `at` is refused */
} translation;

static void put(translation *t, const char *bytes, size_t size) {
    memcpy(t->out + t->written, bytes, size);
    t->written += size;
}

static void put_text(translation *t, const char *text) {
    put(t, text, strlen(text));
}

/* The byte `ahead` bytes on, or 0. */
static char look(const translation *t, size_t ahead) {
    return t->pattern.size - t->at > ahead ? t->pattern.bytes[t->at + ahead] : 0;
}

static void copy_bytes(translation *t, size_t size) {
    put(t, t->pattern.bytes + t->at, size);
    t->at += size;
}

static void copy_character(translation *t) {
    size_t length;
    (void)plumb__utf8_read(t->pattern.bytes + t->at, &length);
    copy_bytes(t, length);
}

/* \p{N}, \P{Lu}: general categories, of one or two letters. */
static void property(translation *t) {
    size_t size = 3;
    while (look(t, size) && look(t, size) != '}') size++;
    bool letters = size >= 4 && size <= 5;
    for (size_t i = 3; i < size && letters; i++) {
        char c = look(t, i);
        letters = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    }
    if (look(t, 2) != '{' || !letters || look(t, size) != '}')
        t->unknown = "a property other than a general category";
    else
        copy_bytes(t, size + 1);
}

static void escape(translation *t, bool in_class) {
    char c = look(t, 1);
    if (c == 's') {
        put_text(t, in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
        t->at += 2;
    } else if (c == 'S' && !in_class) {
        put_text(t, "[^" WHITE_SPACE "]");
        t->at += 2;
    } else if (c == 'p' || c == 'P') {
        property(t);
    } else if (c == 'r' || c == 'n' || c == 't') {
        copy_bytes(t, 2);
    } else if (c && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c)) {
        copy_bytes(t, 2);
    } else {
        t->unknown = "an escape";
    }
}

static void character_class(translation *t) {
    copy_bytes(t, 1);
    if (look(t, 0) == '^') copy_bytes(t, 1);
    bool empty = true;
    while (t->at < t->pattern.size && !t->unknown) {
        char c = look(t, 0);
        if (c == ']' && !empty) {
            copy_bytes(t, 1);
            return;
        }
        if (c == '[')
            t->unknown = "a class inside a class";
        else if (c == ']')
            t->unknown = "an empty class";
        else if (c == '&' && look(t, 1) == '&')
            t->unknown = "an intersection of classes";
        else if (c == '\\')
            escape(t, true);
        else
            copy_character(t);
        empty = false;
    }
    if (!t->unknown) t->unknown = "a class without an end";
}

/* Groups without names or options: (?:, (?!, (?=, (?>, and plain ones. */
static void group(translation *t) {
    if (look(t, 1) == '*' || (look(t, 1) == '?' && !(look(t, 2) && strchr(":!=>", look(t, 2)))))
        t->unknown = "this kind of group";
    else
        copy_bytes(t, look(t, 1) == '?' ? 3 : 1);
}

static void construct(translation *t) {
    char c = look(t, 0);
    if (c == '\\')
        escape(t, false);
    else if (c == '[')
        character_class(t);
    else if (c == '(')
        group(t);
    else if (c == '^' || c == '$' || c == '.')
        t->unknown = "'^', '$' or '.' outside a class";
    else if (c == '{' && look(t, 1) == ',')
        t->unknown = "a repeat without a lower bound";
    else if (c == '}' && look(t, 1) && strchr("+?", look(t, 1)))
        t->unknown = "a mark behind '}'";
    else
        copy_character(t);
}

plumb_status plumb__pattern_translate(plumb__slice pattern, const char *file, char **translated,
                                      plumb_error *err) {
    /* Two bytes (\s) grow most. */
    size_t room = pattern.size / 2 * sizeof "[^" WHITE_SPACE "]" + pattern.size + 1;
    translation t = {.pattern = pattern, .out = malloc(room)};
    if (!t.out) return plumb__fail_memory(err, "pattern", room);
    if (memchr(pattern.bytes, 0, pattern.size)) t.unknown = "a NUL character";
    while (t.at < pattern.size && !t.unknown) construct(&t);
    if (t.unknown) {
        free(t.out);
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file, "pre_tokenizer.pattern.Regex",
                           (int64_t)t.at, t.unknown,
                           "a construct that PCRE2 and Oniguruma read alike");
    }
    t.out[t.written] = 0;
    *translated = t.out;
    return PLUMB_OK;
}
