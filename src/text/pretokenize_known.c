/* The release's three splits, written by hand.
 *
 * The first split takes numbers, which the others leave alone.  The second cuts runs of Han and
 * kana from what is around them.  The third works on both, and to it a piece ends where the text
 * changes between the two or to a number.  The text is therefore read once, piece by piece, with
 * the third split's alternatives in the pattern's order, named a to f as in tokenizer-and-chat.md.
 */
#include "text/pretokenize.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/utf8.h"

static const char *const known_splits[] = {
    "\\p{N}{1,3}",
    "[\xE4\xB8\x80-\xE9\xBE\xA5\xE3\x81\x80-\xE3\x82\x9F\xE3\x82\xA0-\xE3\x83\xBF]+",
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
     "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
     "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
};
#define KNOWN_SPLITS ((int)(sizeof known_splits / sizeof known_splits[0]))

bool plumb__splits_are_known(const plumb__tokenizer_json *file) {
    if (file->n_splits != KNOWN_SPLITS) return false;
    for (int i = 0; i < KNOWN_SPLITS; i++)
        if (!plumb__slice_is(file->splits[i], known_splits[i])) return false;
    return true;
}

/* ---- Classes ---- */

enum {
    WORD = 1,     /* letters and marks */
    SIGN = 2,     /* punctuation and symbols */
    NUMBER = 4,   /* taken by the first split */
    HAN_KANA = 8, /* of the second split; may be WORD or SIGN (as U+30FB) as well */
    SPACE = 16,   /* White_Space */
    BREAK = 32    /* CR and LF */
};

static bool is_han_kana(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

/* Every character of planes 0 and 1, in order. */
static char *all_characters(size_t *size) {
    char *text = malloc((size_t)PLUMB_CLASSES * 4);
    *size = 0;
    for (uint32_t c = 0; text && c < PLUMB_CLASSES; c++)
        if (c < 0xD800 || c > 0xDFFF) *size += plumb__utf8_write(text + *size, c);
    return text;
}

/* One pass of PCRE2 over all characters; the group that matched names the class of the run. */
static void class_runs(const pcre2_code *code, pcre2_match_data *match, const char *text,
                       size_t size, unsigned char *classes) {
    static const unsigned char class_of_group[] = {0, WORD, NUMBER, SIGN};
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
    PCRE2_SIZE at = 0;
    for (int group; (group = pcre2_match(code, (PCRE2_SPTR)text, size, at, PCRE2_NO_UTF_CHECK,
                                         match, NULL)) > 0;) {
        size_t length;
        for (at = span[0]; at < span[1]; at += length)
            classes[plumb__utf8_read(text + at, &length)] = class_of_group[group - 1];
    }
}

plumb_status plumb__classes_build(unsigned char *classes, plumb_error *err) {
    static const char pattern[] = "([\\p{L}\\p{M}]+)|(\\p{N}+)|([\\p{P}\\p{S}]+)";
    int error;
    PCRE2_SIZE offset, size = 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset, NULL);
    pcre2_match_data *match = pcre2_match_data_create(4, NULL);
    char *text = all_characters(&size);
    plumb_status status = PLUMB_OK;
    if (code && match && text) {
        (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        class_runs(code, match, text, size, classes);
        for (uint32_t c = 0; c < PLUMB_CLASSES; c++) {
            if (classes[c] != NUMBER && is_han_kana(c)) classes[c] |= HAN_KANA;
            if (is_space(c)) classes[c] |= SPACE;
        }
        classes['\r'] |= BREAK;
        classes['\n'] |= BREAK;
    } else {
        status = plumb__fail_memory(err, "classes of characters", PLUMB_CLASSES);
    }
    free(text);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return status;
}

/* In valid UTF-8, U+20000 and beyond begin with F0 A0 or more. */
bool plumb__known_scope(const char *text, size_t size) {
    const char *end = text + size;
    for (const char *p = text; p < end; p++) {
        unsigned char lead = (unsigned char)*p;
        if (lead >= 0xF0 && (lead > 0xF0 || (unsigned char)p[1] >= 0xA0)) return false;
    }
    return true;
}

/* ---- Scanning ---- */

#define KINDS (NUMBER | HAN_KANA)

typedef struct scanner {
    const unsigned char *classes;
    const char *text;
    size_t size;
    unsigned kind; /* NUMBER, HAN_KANA or 0: what the stretch being read consists of */
} scanner;

/* The class of the character at `at` and its length; at the end of the stretch, no class and no
 * length. */
static inline unsigned class_at(const scanner *s, size_t at, size_t *length) {
    *length = 0;
    if (at == s->size) return 0;
    size_t size;
    unsigned c = s->classes[plumb__utf8_read(s->text + at, &size)];
    if ((c & KINDS) != s->kind) return 0;
    *length = size;
    return c;
}

/* The end of the run of characters that have one of these classes. */
static inline size_t run_end(const scanner *s, size_t at, unsigned classes) {
    size_t length;
    while (class_at(s, at, &length) & classes) at += length;
    return at;
}

static bool is_ascii_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* d, e and f: white space. */
static size_t space_end(const scanner *s, size_t at) {
    size_t length, end = at, last = at, behind_break = at;
    for (unsigned c; (c = class_at(s, end, &length)) & SPACE;) {
        last = end;
        end += length;
        if (c & BREAK) behind_break = end;
    }
    if (behind_break > at) return behind_break; /* d: up to the last line break */
    if (length == 0 || last == at) return end;  /* e at the end of the stretch; f */
    return last;                                /* e: the last one stays with what follows */
}

/* The end of the third split's match at `at`, whose class is `c`; `at` itself if there is none. */
static size_t match_end(const scanner *s, size_t at, unsigned c, size_t length) {
    char first = s->text[at];
    size_t next_length, next = at + length;
    if (c & WORD) return run_end(s, next, WORD); /* b */
    if (c & SIGN) {
        if (length == 1 && next < s->size && is_ascii_letter(s->text[next])) { /* a */
            while (next < s->size && is_ascii_letter(s->text[next])) next++;
            return next;
        }
        return run_end(s, run_end(s, next, SIGN), BREAK); /* c */
    }
    unsigned next_class = class_at(s, next, &next_length);
    if (next_class & WORD && !(c & BREAK)) return run_end(s, next, WORD); /* b behind one other */
    if (next_class & SIGN && first == ' ')
        return run_end(s, run_end(s, next, SIGN), BREAK); /* c behind a space */
    return c & SPACE ? space_end(s, at) : at;
}

static size_t number_end(const scanner *s, size_t at) {
    size_t length;
    for (int i = 0; i < 3 && class_at(s, at, &length) & NUMBER; i++) at += length;
    return at;
}

/* The end of the piece that begins at `at`, which is not the end of text. */
static size_t piece_end(scanner *s, size_t at) {
    size_t length;
    s->kind = s->classes[plumb__utf8_read(s->text + at, &length)] & KINDS;
    if (s->kind == NUMBER) return number_end(s, at);
    unsigned c = class_at(s, at, &length);
    size_t end = match_end(s, at, c, length);
    if (end > at) return end;
    /* What matches nothing stays together up to the next match or the end of the stretch. */
    do {
        at += length;
        c = class_at(s, at, &length);
    } while (length > 0 && match_end(s, at, c, length) == at);
    return at;
}

plumb_status plumb__split_known(const unsigned char *classes, const char *text, size_t size,
                                plumb__piece_sink sink, void *user, plumb_error *err) {
    scanner s = {classes, text, size, 0};
    for (size_t at = 0, end; at < size; at = end) {
        end = piece_end(&s, at);
        plumb_status status = sink(user, text + at, end - at, err);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}
