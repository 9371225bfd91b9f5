/* Reading: see python_json.h for what and why.
 *
 * The text is copied once and strings are unescaped inside the copy (an escape is never shorter
 * than what it stands for), so that a document is two kinds of memory: the copy and blocks of
 * nodes.  Recursion is bounded by PLUMB__PYTHON_JSON_DEPTH_MAX. */
#include "text/python_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

#define NODES_PER_BLOCK 256

struct plumb__python_nodes {
    struct plumb__python_nodes *older;
    int used;
    plumb__python_value values[NODES_PER_BLOCK];
};

typedef struct reader {
    char *text; /* changed in place behind `at` */
    size_t size, at;
    bool strict;
    const char *field;
    plumb__python_json *json;
    plumb_error *err;
    plumb_status status;
} reader;

static bool read_value(reader *r, plumb__python_value *value, int depth);

static bool refuse(reader *r, size_t at, const char *expected) {
    plumb__text192 found = plumb__format("end of text");
    if (at < r->size) {
        size_t length;
        (void)plumb__utf8_judge(r->text + at, r->size - at, &length);
        found = plumb__format("\"%.*s\"", (int)length, r->text + at);
    }
    r->status =
        plumb__fail(r->err, PLUMB_ERROR_TEXT, NULL, r->field, (int64_t)at, found.s, "%s", expected);
    return false;
}

static bool refuse_memory(reader *r, size_t bytes) {
    r->status = plumb__fail_memory(r->err, r->field, bytes);
    return false;
}

static plumb__python_value *new_node(reader *r) {
    struct plumb__python_nodes *block = r->json->nodes;
    if (!block || block->used == NODES_PER_BLOCK) {
        block = malloc(sizeof *block);
        if (!block) {
            (void)refuse_memory(r, sizeof *block);
            return NULL;
        }
        block->used = 0;
        block->older = r->json->nodes;
        r->json->nodes = block;
    }
    plumb__python_value *node = &block->values[block->used++];
    *node = (plumb__python_value){0};
    return node;
}

static void skip_white(reader *r) {
    while (r->at < r->size && memchr(" \t\n\r", r->text[r->at], 4)) r->at++;
}

static bool take_char(reader *r, char wanted) {
    if (r->at >= r->size || r->text[r->at] != wanted) return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t length = strlen(word);
    if (r->size - r->at < length || memcmp(r->text + r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

/* Four hexadecimal digits after \u. */
static bool read_unit(reader *r, uint32_t *unit) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = r->at < r->size ? r->text[r->at] : 0;
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A' + 10);
        else
            return refuse(r, r->at, "four hexadecimal digits");
        value = value << 4 | digit;
        r->at++;
    }
    *unit = value;
    return true;
}

/* After "\u": writes the character, with the second half of a surrogate pair if it is one. */
static bool read_unicode_escape(reader *r, char **to) {
    size_t start = r->at - 2;
    uint32_t unit = 0, low = 0;
    if (!read_unit(r, &unit)) return false;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        if (unit >= 0xDC00 || !take_word(r, "\\u"))
            return refuse(r, start, "the escapes of a whole surrogate pair");
        if (!read_unit(r, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse(r, start, "the escapes of a whole surrogate pair");
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    *to += plumb__utf8_write(*to, unit);
    return true;
}

static bool read_escape(reader *r, char **to) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (take_char(r, 'u')) return read_unicode_escape(r, to);
    const char *letter = r->at < r->size && r->text[r->at] ? strchr(letters, r->text[r->at]) : NULL;
    if (!letter) return refuse(r, r->at, "an escape letter");
    *(*to)++ = meanings[letter - letters];
    r->at++;
    return true;
}

/* After the opening quote. */
static bool read_string(reader *r, const char **bytes, size_t *size) {
    char *start = r->text + r->at, *to = start;
    for (;;) {
        if (r->at >= r->size) return refuse(r, r->at, "the end of the string");
        char c = r->text[r->at];
        if ((unsigned char)c < 0x20) return refuse(r, r->at, "no control character in a string");
        r->at++;
        if (c == '"') break;
        if (c != '\\')
            *to++ = c;
        else if (!read_escape(r, &to))
            return false;
    }
    *bytes = start;
    *size = (size_t)(to - start);
    return true;
}

static void take_digits(reader *r) {
    while (r->at < r->size && r->text[r->at] >= '0' && r->text[r->at] <= '9') r->at++;
}

static bool read_digits(reader *r) {
    size_t start = r->at;
    take_digits(r);
    return r->at > start || refuse(r, r->at, "a digit");
}

static bool read_number(reader *r, plumb__python_value *value) {
    size_t start = r->at;
    value->kind = PLUMB__PYTHON_INT;
    (void)take_char(r, '-');
    if (!take_char(r, '0') && !read_digits(r)) return false;
    if (take_char(r, '.')) {
        value->kind = PLUMB__PYTHON_FLOAT;
        if (!read_digits(r)) return false;
    }
    if (take_char(r, 'e') || take_char(r, 'E')) {
        value->kind = PLUMB__PYTHON_FLOAT;
        if (!take_char(r, '+')) (void)take_char(r, '-');
        if (!read_digits(r)) return false;
    }
    value->bytes = r->text + start;
    value->size = r->at - start;
    return true;
}

/* After '['. */
static bool read_list(reader *r, plumb__python_value *list, int depth) {
    const plumb__python_value **link = &list->child;
    skip_white(r);
    if (take_char(r, ']')) return true;
    do {
        plumb__python_value *element = new_node(r);
        if (!element || !read_value(r, element, depth)) return false;
        *link = element;
        link = &element->next;
        list->count++;
    } while (take_char(r, ','));
    return take_char(r, ']') || refuse(r, r->at, "\",\" or \"]\"");
}

static int compare_keys(const plumb__python_value *a, const plumb__python_value *b) {
    size_t shorter = a->key_size < b->key_size ? a->key_size : b->key_size;
    int order = shorter ? memcmp(a->key, b->key, shorter) : 0;
    return order ? order : (a->key_size > b->key_size) - (a->key_size < b->key_size);
}

typedef struct member_place {
    plumb__python_value *member;
    int64_t place;
} member_place;

static int compare_members(const void *a, const void *b) {
    const member_place *x = a, *y = b;
    int order = compare_keys(x->member, y->member);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Of members with equal keys the first keeps its place and gets the last one's value.  Sorting
 * keeps this at n log n, whatever the keys are. */
static bool unite_duplicates(reader *r, plumb__python_value *dict) {
    if (dict->count < 2) return true;
    member_place *sorted = malloc((size_t)dict->count * sizeof *sorted);
    if (!sorted) return refuse_memory(r, (size_t)dict->count * sizeof *sorted);
    /* The tree was built here, so its nodes may be changed here. */
    plumb__python_value *member = (plumb__python_value *)dict->child;
    for (int64_t i = 0; i < dict->count; i++, member = (plumb__python_value *)member->next)
        sorted[i] = (member_place){member, i};
    qsort(sorted, (size_t)dict->count, sizeof *sorted, compare_members);
    bool found = false;
    for (int64_t i = 0, next; i < dict->count; i = next) {
        for (next = i + 1; next < dict->count; next++)
            if (compare_keys(sorted[i].member, sorted[next].member) != 0) break;
        if (next - i < 2) continue;
        found = true;
        plumb__python_value *first = sorted[i].member, united = *sorted[next - 1].member;
        united.next = first->next;
        *first = united;
        for (int64_t k = i + 1; k < next; k++) sorted[k].member->key = NULL; /* to be unlinked */
    }
    free(sorted);
    if (!found) return true;
    r->json->has_duplicates = true;
    dict->count = 0;
    const plumb__python_value **link = &dict->child;
    for (const plumb__python_value *m = dict->child; m; m = m->next) {
        if (!m->key) continue;
        *link = m;
        link = (const plumb__python_value **)&((plumb__python_value *)m)->next;
        dict->count++;
    }
    *link = NULL;
    return true;
}

/* After '{'. */
static bool read_dict(reader *r, plumb__python_value *dict, int depth) {
    const plumb__python_value **link = &dict->child;
    skip_white(r);
    if (take_char(r, '}')) return true;
    do {
        plumb__python_value *member = new_node(r);
        if (!member) return false;
        skip_white(r);
        if (!take_char(r, '"')) return refuse(r, r->at, "a key in quotes");
        if (!read_string(r, &member->key, &member->key_size)) return false;
        skip_white(r);
        if (!take_char(r, ':')) return refuse(r, r->at, "\":\"");
        if (!read_value(r, member, depth)) return false;
        *link = member;
        link = &member->next;
        dict->count++;
    } while (take_char(r, ','));
    if (!take_char(r, '}')) return refuse(r, r->at, "\",\" or \"}\"");
    return unite_duplicates(r, dict);
}

/* NaN and the infinities of Python. */
static bool take_python_float(reader *r, plumb__python_value *value) {
    size_t start = r->at;
    if (r->strict) return false;
    if (!take_word(r, "NaN") && !take_word(r, "Infinity") && !take_word(r, "-Infinity"))
        return false;
    value->kind = PLUMB__PYTHON_FLOAT;
    value->bytes = r->text + start;
    value->size = r->at - start;
    return true;
}

static bool read_one(reader *r, plumb__python_value *value, int depth) {
    if (take_char(r, '"')) {
        value->kind = PLUMB__PYTHON_STR;
        return read_string(r, &value->bytes, &value->size);
    }
    if (r->at < r->size && (r->text[r->at] == '{' || r->text[r->at] == '[')) {
        if (depth >= PLUMB__PYTHON_JSON_DEPTH_MAX) return refuse(r, r->at, "less nesting");
        bool dict = r->text[r->at++] == '{';
        value->kind = dict ? PLUMB__PYTHON_DICT : PLUMB__PYTHON_LIST;
        return dict ? read_dict(r, value, depth + 1) : read_list(r, value, depth + 1);
    }
    if (take_word(r, "null"))
        value->kind = PLUMB__PYTHON_NONE;
    else if (take_word(r, "true"))
        value->kind = PLUMB__PYTHON_TRUE;
    else if (take_word(r, "false"))
        value->kind = PLUMB__PYTHON_FALSE;
    else if (take_python_float(r, value))
        return true;
    else if (r->at < r->size &&
             (r->text[r->at] == '-' || (r->text[r->at] >= '0' && r->text[r->at] <= '9')))
        return read_number(r, value);
    else
        return refuse(r, r->at, "a JSON value");
    return true;
}

/* A value with the white space around it. */
static bool read_value(reader *r, plumb__python_value *value, int depth) {
    skip_white(r);
    if (!read_one(r, value, depth)) return false;
    skip_white(r);
    return true;
}

static bool read_document(reader *r) {
    size_t valid = plumb__utf8_valid_prefix(r->text, r->size);
    if (valid < r->size) {
        plumb__text192 found = plumb__format("byte 0x%02X", (unsigned char)r->text[valid]);
        r->status =
            plumb__fail(r->err, PLUMB_ERROR_TEXT, NULL, r->field, (int64_t)valid, found.s, "UTF-8");
        return false;
    }
    plumb__python_value *root = new_node(r);
    if (!root || !read_value(r, root, 0)) return false;
    if (r->at < r->size) return refuse(r, r->at, "the end of the text");
    r->json->root = root;
    return true;
}

plumb_status plumb__python_json_read(const char *bytes, size_t size, bool strict, const char *field,
                                     plumb__python_json *json, plumb_error *err) {
    plumb__python_json result = {0};
    result.text = malloc(size + 1);
    if (!result.text) return plumb__fail_memory(err, field, size);
    if (size) memcpy(result.text, bytes, size);
    reader r = {.text = result.text,
                .size = size,
                .strict = strict,
                .field = field,
                .json = &result,
                .err = err};
    if (!read_document(&r)) {
        plumb__python_json_free(&result);
        return r.status;
    }
    *json = result;
    return PLUMB_OK;
}

void plumb__python_json_free(plumb__python_json *json) {
    while (json->nodes) {
        struct plumb__python_nodes *older = json->nodes->older;
        free(json->nodes);
        json->nodes = older;
    }
    free(json->text);
    *json = (plumb__python_json){0};
}

const plumb__python_value *plumb__python_member(const plumb__python_value *dict, const char *key) {
    if (dict->kind != PLUMB__PYTHON_DICT) return NULL;
    size_t size = strlen(key);
    for (const plumb__python_value *m = dict->child; m; m = m->next)
        if (m->key_size == size && memcmp(m->key, key, size) == 0) return m;
    return NULL;
}

const char *plumb__python_kind_name(plumb__python_kind kind) {
    switch (kind) {
    case PLUMB__PYTHON_NONE: return "null";
    case PLUMB__PYTHON_FALSE: return "false";
    case PLUMB__PYTHON_TRUE: return "true";
    case PLUMB__PYTHON_INT: return "an integer";
    case PLUMB__PYTHON_FLOAT: return "a number";
    case PLUMB__PYTHON_STR: return "a string";
    case PLUMB__PYTHON_LIST: return "an array";
    case PLUMB__PYTHON_DICT: return "an object";
    }
    return "a value";
}
