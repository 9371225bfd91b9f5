/* References and allOf: what stands beside each other becomes one schema, where that is plain to see. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/schema.h"

enum {
    MOST_MERGES = 2000,
    MOST_REFERENCES = 32,
    COPY_STEPS = 16 /* of work: what a member that is copied costs, in memory too */
};

static const char *const annotations[] = {
    "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment",
    "$schema", "$id", "$defs", "definitions", "discriminator", "contentEncoding", "contentMediaType",
};

bool plumb__is_annotation(const char *keyword) {
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
        if (!strcmp(keyword, annotations[i])) return true;
    return !strncmp(keyword, "x-", 2);
}

/* ---- References ---- */

static const json_t *step_into(const json_t *value, const char *token, size_t size) {
    char *key = malloc(size + 1);
    const json_t *inner = NULL;
    size_t n = 0;
    for (size_t i = 0; key && i < size; i++) {
        bool escape = token[i] == '~' && i + 1 < size && (token[i + 1] == '0' || token[i + 1] == '1');
        key[n++] = escape ? token[i + 1] == '0' ? '~' : '/' : token[i];
        i += escape;
    }
    if (key) {
        key[n] = '\0';
        inner = json_object_get(value, key);
        if (json_is_array(value) && n > 0 && strspn(key, "0123456789") == n && n < 9)
            inner = json_array_get(value, (size_t)strtoul(key, NULL, 10));
    }
    free(key);
    return inner;
}

const json_t *plumb__resolve(plumb__builder *b, const json_t *reference) {
    plumb__schemas *s = b->schemas;
    const char *text = json_string_value(reference);
    const json_t *at = s->root;
    if (!text || text[0] != '#' || (text[1] != '\0' && text[1] != '/')) {
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "$ref", plumb__format("%.100s", text ? text : "no string").s,
                            "# and a JSON pointer within the schema");
        return NULL;
    }
    for (text++; at && *text == '/';) {
        size_t size = strcspn(++text, "/");
        at = step_into(at, text, size);
        text += size;
    }
    if (!at)
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "$ref", plumb__format("%.100s", json_string_value(reference)).s,
                            "a place that is there");
    return at;
}

/* ---- Merging ---- */

static void refuse_merge(plumb__builder *b, const char *key) {
    plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, key, plumb__format("two of %.60s that must both hold", key).s,
                        "one, or equal ones");
}

static int64_t size_of(const json_t *value) { return (int64_t)(json_array_size(value) + json_object_size(value)); }

static void merge_required(plumb__builder *b, json_t *into, const json_t *more) {
    const json_t *there = json_object_get(into, "required");
    if (!plumb__builder_work(b, (size_of(there) + size_of(more)) * (1 + size_of(more)))) return;
    json_t *all = json_copy((json_t *)(uintptr_t)there), *name;
    size_t i, k;
    json_array_foreach(more, i, name) {
        for (k = 0; k < json_array_size(all) && !json_equal(json_array_get(all, k), name); k++) {}
        if (k == json_array_size(all)) (void)json_array_append(all, name);
    }
    (void)json_object_set_new(into, "required", all);
}

static void merge_properties(plumb__builder *b, json_t *into, const json_t *more) {
    json_t *before = json_object_get(into, "properties");
    if (!plumb__builder_work(b, COPY_STEPS * (size_of(before) + size_of(more)))) return;
    json_t *all = json_copy(before), *property;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)more, key, property) {
        const json_t *there = json_object_get(all, key);
        if (there && !json_equal(there, property)) refuse_merge(b, key);
        else if (!there) (void)json_object_set(all, key, property);
    }
    (void)json_object_set_new(into, "properties", all);
}

/* "additionalProperties" speaks of the properties beside it only. */
static void check_closed(plumb__builder *b, const json_t *closed, const json_t *other) {
    const json_t *additional = json_object_get(closed, "additionalProperties");
    const char *key;
    json_t *property;
    if (!additional || json_is_true(additional)) return;
    json_object_foreach(json_object_get(other, "properties"), key, property) {
        if (!json_object_get(json_object_get(closed, "properties"), key)) refuse_merge(b, "additionalProperties");
    }
}

static void merge_into(plumb__builder *b, json_t *into, const json_t *more) {
    const char *key;
    json_t *value;
    check_closed(b, into, more);
    check_closed(b, more, into);
    json_object_foreach((json_t *)(uintptr_t)more, key, value) {
        const json_t *there = json_object_get(into, key);
        if (plumb__is_annotation(key) || (there && json_equal(there, value))) continue;
        if (!there) (void)json_object_set(into, key, value);
        else if (!strcmp(key, "required") && json_is_array(there)) merge_required(b, into, value);
        else if (!strcmp(key, "properties") && json_is_object(there)) merge_properties(b, into, value);
        else refuse_merge(b, key);
    }
}

static const json_t *flatten(plumb__builder *b, const json_t *schema, int references);

static void merge_flat(plumb__builder *b, json_t *into, const json_t *more, int references) {
    if (json_is_true(more)) return;
    if (!json_is_object(more)) {
        plumb__builder_fail(b, json_is_false(more) ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT, NULL, NULL,
                            "a schema that is an object");
        return;
    }
    const json_t *flat = flatten(b, more, references);
    if (flat) merge_into(b, into, flat);
}

static const json_t *flatten(plumb__builder *b, const json_t *schema, int references) {
    plumb__schemas *s = b->schemas;
    const json_t *reference = json_object_get(schema, "$ref"), *all = json_object_get(schema, "allOf");
    if (!reference && !all) return schema;
    if (++s->merges > MOST_MERGES || references == MOST_REFERENCES) {
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, reference ? "$ref" : "allOf", "references to references",
                            "at most 32 in a row, 2000 in all");
        return NULL;
    }
    if (!plumb__builder_work(b, s->values)) return NULL; /* parts are compared, and may be all there is */
    json_t *into = json_copy((json_t *)(uintptr_t)schema);
    if (!into || json_array_append_new(s->merged, into) != 0) {
        b->status = plumb__fail_memory(&b->error, "a schema", sizeof *into);
        return NULL;
    }
    (void)json_object_del(into, "$ref");
    (void)json_object_del(into, "allOf");
    if (reference) {
        const json_t *target = plumb__resolve(b, reference);
        if (target) merge_flat(b, into, target, references + 1);
    }
    size_t before = plumb__enter_pointer(b, "allOf");
    if (all && json_array_size(all) == 0) plumb__builder_fail(b, PLUMB_ERROR_FORMAT, NULL, NULL, "an array of schemas");
    for (size_t i = 0; i < json_array_size(all) && b->status == PLUMB_OK; i++) {
        size_t within = plumb__enter_index(b, i);
        merge_flat(b, into, json_array_get(all, i), references + 1);
        plumb__leave_pointer(b, within);
    }
    plumb__leave_pointer(b, before);
    return b->status == PLUMB_OK ? into : NULL;
}

const json_t *plumb__flat_schema(plumb__builder *b, const json_t *schema) { return flatten(b, schema, 0); }

/* ---- Whether two schemas share values ---- */

static const char *const types[] = {"object", "array", "string", "number", "boolean", "null"};

/* The values that a schema lists, as an array that the caller owns; NULL: it lists none. */
static json_t *listed(const json_t *schema) {
    json_t *only = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    if (only) return json_pack("[O]", only);
    return json_is_array(list) ? json_incref(list) : NULL;
}

static const char *type_of(const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "object", [JSON_ARRAY] = "array",  [JSON_STRING] = "string", [JSON_INTEGER] = "number",
        [JSON_REAL] = "number",   [JSON_TRUE] = "boolean", [JSON_FALSE] = "boolean", [JSON_NULL] = "null",
    };
    return names[json_typeof(value)];
}

static bool may_be(const json_t *schema, const char *type) {
    json_t *list = listed(schema);
    bool lists = list != NULL, found = false;
    for (size_t i = 0; !found && i < json_array_size(list); i++)
        found = !strcmp(type_of(json_array_get(list, i)), type);
    json_decref(list);
    if (lists) return found;
    if (json_object_get(schema, "anyOf") || json_object_get(schema, "oneOf")) return true;
    if (json_is_true(json_object_get(schema, "nullable")) && !strcmp(type, "null")) return true;
    return plumb__schema_has_type(schema, type) ||
           (!strcmp(type, "number") && plumb__schema_has_type(schema, "integer"));
}

static bool lists_disjoint(plumb__builder *b, const json_t *one, const json_t *other) {
    json_t *first = listed(one), *second = listed(other);
    bool disjoint = first && second;
    for (size_t i = 0; disjoint && i < json_array_size(first); i++) {
        const json_t *value = json_array_get(first, i);
        disjoint = plumb__builder_work(b, (1 + size_of(value)) * size_of(second));
        for (size_t k = 0; disjoint && k < json_array_size(second); k++)
            disjoint = !json_equal(value, json_array_get(second, k));
    }
    json_decref(first);
    json_decref(second);
    return disjoint;
}

static bool requires(plumb__builder *b, const json_t *schema, const char *key) {
    const json_t *required = json_object_get(schema, "required");
    if (!plumb__builder_work(b, size_of(required))) return false;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (name && !strcmp(name, key)) return true;
    }
    return false;
}

bool plumb__schemas_disjoint(plumb__builder *b, const json_t *one, const json_t *other) {
    const char *key;
    json_t *property;
    if (!json_is_object(one) || !json_is_object(other)) return false;
    one = plumb__flat_schema(b, one);
    other = plumb__flat_schema(b, other);
    if (!one || !other) return false;
    if (lists_disjoint(b, one, other)) return true;
    bool shared = false, objects_only = true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bool both = may_be(one, types[i]) && may_be(other, types[i]);
        shared |= both;
        if (both && i > 0) objects_only = false;
    }
    if (!shared) return true;
    if (!objects_only) return false;
    json_object_foreach(json_object_get(one, "properties"), key, property) {
        const json_t *there = json_object_get(json_object_get(other, "properties"), key);
        if (there && requires(b, one, key) && requires(b, other, key) && lists_disjoint(b, property, there))
            return true;
    }
    return false;
}
