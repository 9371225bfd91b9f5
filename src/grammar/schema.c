/* The compiler of JSON Schemas: dispatch, memory of what was compiled, alternatives.
 *
 * Every subschema becomes one rule, found again by its address; so recursion is a call.  A reference that
 * comes back to a schema without an object or array between would be a call that consumes nothing, and is
 * refused.  Sizes are limited beforehand, so that the time is bounded whatever the schema says. */
#include "grammar/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_rules.h"

enum {
    MOST_VALUES = 20000, /* in a schema document, */
    MOST_TEXT = 1 << 20, /* bytes of its strings and keys, */
    MOST_NESTING = 128,  /* levels of JSON, */
    MOST_DEPTH = 100     /* schemas within schemas, through references too */
};

/* ---- Pointers ---- */

size_t plumb__enter_pointer(plumb__builder *b, const char *key) {
    size_t before = strlen(b->pointer), at = before, room = sizeof b->pointer - 3;
    if (at < room) b->pointer[at++] = '/';
    for (; *key && at < room; key++) {
        if (*key == '~' || *key == '/') {
            b->pointer[at++] = '~';
            b->pointer[at++] = *key == '~' ? '0' : '1';
        } else {
            b->pointer[at++] = *key;
        }
    }
    b->pointer[at] = '\0';
    return before;
}

size_t plumb__enter_index(plumb__builder *b, size_t index) {
    return plumb__enter_pointer(b, plumb__format("%zu", index).s);
}

void plumb__leave_pointer(plumb__builder *b, size_t length) { b->pointer[length] = '\0'; }

/* ---- Limits ---- */

static bool within_limits(const json_t *value, int64_t *values, int64_t *text, int depth) {
    const char *key;
    size_t i;
    json_t *inner;
    if (++*values > MOST_VALUES || depth > MOST_NESTING) return false;
    if (json_is_string(value)) *text += (int64_t)json_string_length(value);
    json_array_foreach(value, i, inner) {
        if (!within_limits(inner, values, text, depth + 1)) return false;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) {
        *text += (int64_t)strlen(key);
        if (!within_limits(inner, values, text, depth + 1)) return false;
    }
    return *text <= MOST_TEXT;
}

/* ---- What was compiled ---- */

static plumb__compiled *slot_of(plumb__schemas *s, const json_t *schema, plumb__form form) {
    uint64_t hash = ((uint64_t)(uintptr_t)schema >> 4) * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)form;
    uint64_t mask = (uint64_t)s->n_slots - 1, at = (hash ^ hash >> 32) & mask;
    while (s->table[at].schema && (s->table[at].schema != schema || s->table[at].form != form)) at = (at + 1) & mask;
    return &s->table[at];
}

static bool double_table(plumb__schemas *s) {
    plumb__schemas larger = *s;
    larger.n_slots = s->n_slots ? 2 * s->n_slots : 64;
    larger.table = calloc((size_t)larger.n_slots, sizeof *larger.table);
    if (!larger.table) return false;
    for (int64_t i = 0; i < s->n_slots; i++)
        if (s->table[i].schema) *slot_of(&larger, s->table[i].schema, s->table[i].form) = s->table[i];
    free(s->table);
    *s = larger;
    return true;
}

bool plumb__schemas_open(plumb__builder *b, plumb__schemas *schemas, const json_t *root) {
    int64_t text = 0;
    *schemas = (plumb__schemas){.root = root, .merged = json_array(), .root_pointer = malloc(sizeof b->pointer)};
    b->schemas = schemas;
    if (!schemas->merged || !schemas->root_pointer || !double_table(schemas)) {
        b->status = plumb__fail_memory(&b->error, "a schema", sizeof *schemas);
        return false;
    }
    memcpy(schemas->root_pointer, b->pointer, sizeof b->pointer);
    if (!within_limits(root, &schemas->values, &text, 0))
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema that is too large",
                            "at most 20000 values, 1 MiB of text and 128 levels");
    return b->status == PLUMB_OK;
}

void plumb__schemas_close(plumb__schemas *schemas) {
    json_decref(schemas->merged);
    free(schemas->root_pointer);
    free(schemas->table);
}

/* ---- Types ---- */

static const struct {
    const char *keyword, *type;
} speaks_of[] = {
    {"properties", "object"}, {"required", "object"},   {"additionalProperties", "object"}, {"items", "array"},
    {"prefixItems", "array"}, {"minItems", "array"},    {"maxItems", "array"},              {"uniqueItems", "array"},
    {"minLength", "string"},  {"maxLength", "string"},  {"pattern", "string"},              {"format", "string"},
    {"minimum", "number"},    {"maximum", "number"},    {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"},
};
enum { N_SPEAKS_OF = sizeof speaks_of / sizeof *speaks_of };

bool plumb__schema_has_type(const json_t *schema, const char *type) {
    const json_t *types = json_object_get(schema, "type");
    bool spoken = false;
    if (json_is_string(types)) return !strcmp(json_string_value(types), type);
    if (types) {
        for (size_t i = 0; i < json_array_size(types); i++)
            if (!strcmp(json_string_value(json_array_get(types, i)), type)) return true;
        return false;
    }
    for (int i = 0; i < N_SPEAKS_OF; i++) {
        if (!json_object_get(schema, speaks_of[i].keyword)) continue;
        if (!strcmp(speaks_of[i].type, type)) return true;
        spoken = true;
    }
    return !spoken;
}

static const char *const type_names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
enum { N_TYPES = sizeof type_names / sizeof *type_names };

static bool is_type_name(const json_t *name) {
    for (int i = 0; json_is_string(name) && i < N_TYPES; i++)
        if (!strcmp(json_string_value(name), type_names[i])) return true;
    return false;
}

static void check_type(plumb__builder *b, const json_t *types) {
    size_t n = json_array_size(types);
    bool right = !types || is_type_name(types) || (n > 0 && n <= N_TYPES); /* each once */
    for (size_t i = 0; right && i < n; i++) right &= is_type_name(json_array_get(types, i));
    if (!right)
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "type", NULL, "the name of a type of JSON, or an array of them");
}

/* ---- Keywords ---- */

static const char *const supported[] = {
    "type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems",
    "uniqueItems", "enum", "const", "anyOf", "oneOf", "minLength", "maxLength", "pattern", "format", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "nullable",
};

static void check_keywords(plumb__builder *b, const json_t *schema) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, key, value) {
        bool known = plumb__is_annotation(key);
        for (size_t i = 0; !known && i < sizeof supported / sizeof *supported; i++) known = !strcmp(key, supported[i]);
        if (!known)
            plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, key, plumb__format("the keyword %.60s", key).s,
                                "keywords of the supported subset of JSON Schema");
    }
    if (json_is_true(json_object_get(schema, "uniqueItems")))
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "uniqueItems", "true", "false");
    check_type(b, json_object_get(schema, "type"));
}

/* ---- Alternatives ---- */

typedef struct alternatives {
    int32_t nodes[PLUMB__MOST_READINGS];
    int32_t count;
} alternatives;

static void add_alternative(plumb__builder *b, alternatives *to, int32_t node) {
    if (node < 0) return;
    if (to->count == PLUMB__MOST_READINGS)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "too many alternatives", "at most 64");
    else
        to->nodes[to->count++] = node;
}

static int32_t close_alternatives(plumb__builder *b, const alternatives *from) {
    return from->count == 0 ? -1 : plumb__add_split(b, from->nodes, from->count);
}

static int32_t add_word(plumb__builder *b, const char *word) { return plumb__add_text(b, word, b->end); }

static int32_t compile_types(plumb__builder *b, const json_t *schema, plumb__form form) {
    alternatives types = {.count = 0};
    bool number = plumb__schema_has_type(schema, "number");
    if (plumb__schema_has_type(schema, "string") && form != PLUMB__FORM_NO_STRINGS)
        add_alternative(b, &types, plumb__compile_string(b, schema, form));
    if (form == PLUMB__FORM_RAW_STRINGS) return close_alternatives(b, &types);
    if (plumb__schema_has_type(schema, "object")) add_alternative(b, &types, plumb__compile_object(b, schema));
    if (plumb__schema_has_type(schema, "array")) add_alternative(b, &types, plumb__compile_array(b, schema));
    if (number || plumb__schema_has_type(schema, "integer"))
        add_alternative(b, &types, plumb__compile_number(b, schema, !number));
    if (plumb__schema_has_type(schema, "boolean"))
        add_alternative(b, &types, plumb__add_either(b, add_word(b, "true"), add_word(b, "false")));
    if (plumb__schema_has_type(schema, "null")) add_alternative(b, &types, add_word(b, "null"));
    return close_alternatives(b, &types);
}

/* The schema without anyOf, oneOf and nullable: what stands beside them, or NULL if that says nothing. */
static json_t *beside_alternatives(const json_t *schema, const char *keyword) {
    json_t *beside = json_object(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)schema, key, value) {
        if (strcmp(key, keyword) && strcmp(key, "nullable") && !plumb__is_annotation(key))
            (void)json_object_set(beside, key, value);
    }
    if (json_object_size(beside) > 0) return beside;
    json_decref(beside);
    return NULL;
}

static int32_t compile_alternatives(plumb__builder *b, const json_t *schema, const char *keyword, plumb__form form) {
    plumb__schemas *s = b->schemas;
    const json_t *list = json_object_get(schema, keyword);
    json_t *beside = beside_alternatives(schema, keyword);
    alternatives all = {.count = 0};
    size_t before = plumb__enter_pointer(b, keyword);
    if (json_array_size(list) == 0)
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, NULL, NULL, "an array of schemas, at least one");
    for (size_t i = 0; i < json_array_size(list) && b->status == PLUMB_OK; i++) {
        const json_t *one = json_array_get(list, i);
        size_t within = plumb__enter_index(b, i);
        for (size_t k = 0; !strcmp(keyword, "oneOf") && k < i; k++) {
            if (!plumb__schemas_disjoint(b, one, json_array_get(list, k)))
                plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "an alternative that may overlap another",
                                    "types or constants that tell them apart, or anyOf");
        }
        if (beside) {
            json_t *both = json_pack("{s:[O,O]}", "allOf", beside, one);
            if (!both || json_array_append_new(s->merged, both) != 0)
                b->status = plumb__fail_memory(&b->error, "a schema", sizeof *both);
            else
                one = both;
        }
        add_alternative(b, &all, plumb__rule_of_schema(b, one, form));
        plumb__leave_pointer(b, within);
    }
    plumb__leave_pointer(b, before);
    json_decref(beside);
    return close_alternatives(b, &all);
}

static int32_t compile_flat(plumb__builder *b, const json_t *schema, plumb__form form) {
    alternatives all = {.count = 0};
    const char *keyword = json_object_get(schema, "anyOf")   ? "anyOf"
                          : json_object_get(schema, "oneOf") ? "oneOf"
                                                             : NULL;
    check_keywords(b, schema);
    if (b->status != PLUMB_OK) return 0;
    if (keyword && json_object_get(schema, "anyOf") && json_object_get(schema, "oneOf"))
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "oneOf", "anyOf beside it", "one of them");
    if (keyword) add_alternative(b, &all, compile_alternatives(b, schema, keyword, form));
    else if (json_object_get(schema, "enum") || json_object_get(schema, "const"))
        add_alternative(b, &all, plumb__compile_enum(b, schema, form));
    else add_alternative(b, &all, compile_types(b, schema, form));
    if (json_is_true(json_object_get(schema, "nullable")) && form != PLUMB__FORM_RAW_STRINGS)
        add_alternative(b, &all, add_word(b, "null"));
    return close_alternatives(b, &all);
}

/* ---- Rules ---- */

static int32_t any_of_form(plumb__builder *b, plumb__form form) {
    json_t *nothing = json_object();
    int32_t node = form == PLUMB__FORM_JSON ? plumb__rule_any_value(b) : compile_types(b, nothing, form);
    json_decref(nothing);
    return node;
}

/* What a schema refers to that says nothing else, or NULL. */
static const json_t *sole_reference(const json_t *schema) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)schema, key, value) {
        if (strcmp(key, "$ref") && !plumb__is_annotation(key)) return NULL;
    }
    return json_object_get(schema, "$ref");
}

/* The rule of what is referred to; faults in it are told by its own pointer. */
static int32_t follow(plumb__builder *b, const json_t *reference, plumb__form form) {
    plumb__schemas *s = b->schemas;
    const json_t *target = plumb__resolve(b, reference);
    char before[sizeof b->pointer];
    if (!target) return 0;
    memcpy(before, b->pointer, sizeof before);
    memcpy(b->pointer, plumb__format("%s%s", s->root_pointer, json_string_value(reference) + 1).s, sizeof before);
    int32_t rule = plumb__rule_of_schema(b, target, form);
    memcpy(b->pointer, before, sizeof before);
    return rule;
}

static int32_t compile_once(plumb__builder *b, const json_t *schema, plumb__form form) {
    plumb__schemas *s = b->schemas;
    int32_t entry = plumb__add_entry(b);
    *slot_of(s, schema, form) = (plumb__compiled){schema, form, entry, s->level};
    s->count++;
    const json_t *reference = sole_reference(schema), *flat = reference ? NULL : plumb__flat_schema(b, schema);
    int32_t rule = reference ? follow(b, reference, form) : flat ? compile_flat(b, flat, form) : 0;
    if (rule >= 0) plumb__set_entry(b, entry, rule);
    else entry = -1;
    plumb__compiled *compiled = slot_of(s, schema, form); /* the table may have grown */
    compiled->rule = entry;
    compiled->level = -1;
    return entry;
}

int32_t plumb__rule_of_schema(plumb__builder *b, const json_t *schema, plumb__form form) {
    plumb__schemas *s = b->schemas;
    if (b->status != PLUMB_OK) return 0;
    if (json_is_true(schema) || (json_is_object(schema) && json_object_size(schema) == 0)) return any_of_form(b, form);
    if (!json_is_object(schema)) {
        plumb__builder_fail(b, json_is_false(schema) ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT, NULL,
                            json_is_false(schema) ? "false, which has no value" : NULL, "a schema");
        return 0;
    }
    plumb__compiled *before = slot_of(s, schema, form);
    if (before->schema) {
        if (before->level == s->level)
            plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema that refers to itself at the same place",
                                "an object or an array between them");
        return before->rule;
    }
    if (2 * s->count >= s->n_slots && !double_table(s)) {
        b->status = plumb__fail_memory(&b->error, "a schema", (size_t)s->n_slots * sizeof *s->table);
        return 0;
    }
    if (s->depth == MOST_DEPTH) {
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "schemas within schemas", "at most 100 levels");
        return 0;
    }
    s->depth++;
    int32_t rule = compile_once(b, schema, form);
    s->depth--;
    return rule;
}

int32_t plumb__add_document(plumb__builder *b, const json_t *root) {
    plumb__schemas schemas;
    int32_t start = 0;
    if (plumb__schemas_open(b, &schemas, root)) start = plumb__rule_of_schema(b, root, PLUMB__FORM_JSON);
    if (b->status == PLUMB_OK && start < 0)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, "a schema that no value fits", "one that has values");
    plumb__schemas_close(&schemas);
    b->schemas = NULL;
    return start < 0 ? 0 : start;
}

plumb_status plumb__grammar_json_schema(const json_t *schema, plumb_grammar **grammar, plumb_error *err) {
    plumb__builder b;
    if (!plumb__builder_open(&b)) return plumb__fail_memory(err, "a grammar", sizeof **grammar);
    return plumb__builder_close(&b, plumb__add_document(&b, schema), grammar, err);
}
