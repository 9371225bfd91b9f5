/* Values that are listed. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/schema.h"

/* Scalars become one list of words; arrays and objects, whose white space is free, nodes of their own. */
typedef struct words {
    char **texts; /* owned */
    size_t *sizes;
    int32_t count;
} words;

/* The text of a number that reads as the same double, the shortest; free() it. */
static char *real_text(const json_t *real) {
    char *text = NULL;
    for (size_t digits = 1; digits <= 17; digits++) {
        free(text);
        text = json_dumps(real, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        bool same = back && json_equal(back, real);
        json_decref(back);
        if (same) break;
    }
    return text;
}

static char *scalar_text(const json_t *value) {
    return json_is_real(value) ? real_text(value) : json_dumps(value, JSON_ENCODE_ANY);
}

static bool is_scalar(const json_t *value) { return !json_is_object(value) && !json_is_array(value); }

static int32_t add_literal(plumb__builder *b, const json_t *value, int32_t next);

static int32_t add_scalar(plumb__builder *b, const json_t *value, int32_t next) {
    char *text = scalar_text(value);
    if (!text) b->status = plumb__fail_memory(&b->error, "a schema", sizeof *text);
    int32_t node = text ? plumb__add_text(b, text, next) : 0;
    free(text);
    return node;
}

static int32_t add_array_literal(plumb__builder *b, const json_t *value, int32_t next) {
    int32_t close = plumb__add_text(b, "]", next), node = plumb__add_space(b, true, close);
    for (size_t i = json_array_size(value); i-- > 0;) {
        node = plumb__add_space(b, true, add_literal(b, json_array_get(value, i), node));
        if (i > 0) node = plumb__add_text(b, ",", node);
    }
    return plumb__add_text(b, "[", node);
}

static int32_t add_object_literal(plumb__builder *b, const json_t *value, int32_t next) {
    int32_t node = plumb__add_space(b, true, plumb__add_text(b, "}", next));
    size_t count = json_object_size(value), i = 0;
    const char **keys = calloc(count + 1, sizeof *keys);
    const char *key;
    json_t *member;
    if (!keys) {
        b->status = plumb__fail_memory(&b->error, "a schema", count * sizeof *keys);
        return 0;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, member) keys[i++] = key;
    while (i-- > 0) {
        json_t *name = json_string(keys[i]);
        node = add_literal(b, json_object_get(value, keys[i]), node);
        node = plumb__add_text(b, ":", plumb__add_space(b, false, node));
        node = plumb__add_space(b, true, add_scalar(b, name, node));
        if (i > 0) node = plumb__add_text(b, ",", node);
        json_decref(name);
    }
    free(keys);
    return plumb__add_text(b, "{", node);
}

static int32_t add_literal(plumb__builder *b, const json_t *value, int32_t next) {
    if (b->status != PLUMB_OK) return 0;
    if (json_is_array(value)) return add_array_literal(b, value, next);
    if (json_is_object(value)) return add_object_literal(b, value, next);
    return add_scalar(b, value, next);
}

static bool fits_type(const json_t *schema, const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "object", [JSON_ARRAY] = "array", [JSON_STRING] = "string",  [JSON_INTEGER] = "integer",
        [JSON_REAL] = "number",   [JSON_TRUE] = "boolean", [JSON_FALSE] = "boolean", [JSON_NULL] = "null",
    };
    if (!json_object_get(schema, "type")) return true;
    return plumb__schema_has_type(schema, names[json_typeof(value)]) ||
           (json_is_integer(value) && plumb__schema_has_type(schema, "number"));
}

static bool fits_form(const json_t *value, plumb__form form) {
    return form == PLUMB__FORM_JSON || json_is_string(value) == (form == PLUMB__FORM_RAW_STRINGS);
}

/* What else such a schema may say; the keywords of bounds would have to be applied to each value. */
static void check_beside(plumb__builder *b, const json_t *schema) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, key, value) {
        if (!strcmp(key, "enum") || !strcmp(key, "const") || !strcmp(key, "type") || !strcmp(key, "nullable") ||
            plumb__is_annotation(key))
            continue;
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, key, plumb__format("%.60s beside listed values", key).s,
                            "the list alone");
    }
    if (json_object_get(schema, "enum") && json_object_get(schema, "const"))
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "const", "enum beside it", "one of them");
}

static void take_word(plumb__builder *b, words *w, const json_t *value, plumb__form form) {
    char *text = form == PLUMB__FORM_RAW_STRINGS ? strdup(json_string_value(value)) : scalar_text(value);
    if (!text) {
        b->status = plumb__fail_memory(&b->error, "a schema", sizeof *text);
        return;
    }
    w->texts[w->count] = text;
    w->sizes[w->count++] = strlen(text);
}

static bool is_empty_raw(const words *w, int32_t i, plumb__form form) {
    return form == PLUMB__FORM_RAW_STRINGS && w->sizes[i] == 0;
}

int32_t plumb__compile_enum(plumb__builder *b, const json_t *schema, plumb__form form) {
    json_t *only = json_object_get(schema, "const"), *value;
    json_t *list = only ? json_pack("[O]", only) : json_incref(json_object_get(schema, "enum"));
    size_t i, size = json_array_size(list);
    words w = {.texts = calloc(size + 1, sizeof *w.texts), .sizes = calloc(size + 1, sizeof *w.sizes)};
    int32_t *nodes = calloc(size + 2, sizeof *nodes), count = 0;
    bool empty = false;
    check_beside(b, schema);
    if (!w.texts || !w.sizes || !nodes) b->status = plumb__fail_memory(&b->error, "a schema", size * sizeof *nodes);
    if (b->status == PLUMB_OK && size == 0)
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "enum", NULL, "an array of values, at least one");
    json_array_foreach(list, i, value) {
        if (b->status != PLUMB_OK) break;
        if (!fits_type(schema, value) || !fits_form(value, form)) continue;
        if (!is_scalar(value)) {
            nodes[count++] = add_literal(b, value, b->end);
            continue;
        }
        take_word(b, &w, value, form);
        if (b->status == PLUMB_OK && is_empty_raw(&w, w.count - 1, form)) {
            empty = true; /* no word of a list, since it consumes nothing */
            free(w.texts[--w.count]);
        }
    }
    if (b->status == PLUMB_OK && w.count > 0) {
        int32_t words_list = plumb__add_list(b, (const char *const *)w.texts, w.sizes, w.count);
        nodes[count++] =
            plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_WORDS, .first = words_list, .next = b->end});
    }
    if (empty) nodes[count++] = b->end;
    int32_t node = b->status != PLUMB_OK ? 0 : count ? plumb__add_split(b, nodes, count) : -1;
    for (int32_t k = 0; k < w.count; k++) free(w.texts[k]);
    free(w.texts);
    free(w.sizes);
    free(nodes);
    json_decref(list);
    return node;
}
