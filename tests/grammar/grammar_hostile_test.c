/* Schemas made to be expensive: each is refused, or compiled and walked, within the limits that README.md states. */
#include "grammar_test.h"

#define FITS PLUMB_OK
#define REFUSED PLUMB_ERROR_UNSUPPORTED

/* Compiles; where that is right the grammar is walked some tokens far, wherever it leads. */
static void check(const vocabulary *v, const char *what, json_t *schema, plumb_status expected) {
    plumb_grammar *grammar = NULL;
    plumb_matcher *m = NULL;
    plumb_error err = {0};
    uint64_t random = 1;
    plumb_status status = plumb__grammar_json_schema(schema, &grammar, &err);
    T_CHECK(status == expected, "%s: %s at %s: %s", what, plumb_status_name(status), err.field, err.found);
    json_decref(schema);
    if (status != PLUMB_OK) return;
    bool made = plumb__matcher_create(grammar, v->trie, &m, &err) == PLUMB_OK;
    for (int step = 0; made && step < 24; step++) {
        const uint32_t *allowed = plumb__matcher_allowed(m);
        int32_t chosen = -1;
        uint32_t seen = 0;
        for (int32_t token = 0; token < v->n; token++)
            if (allowed[token / 32] >> token % 32 & 1 && next_random(&random) % ++seen == 0) chosen = token;
        T_CHECK(chosen >= 0, "%s: no token after %d", what, step);
        made = chosen >= 0 && plumb__matcher_accept(m, chosen);
        T_CHECK(made, "%s: token %d was told and is refused", what, chosen);
        if (chosen == v->eos) break;
    }
    plumb__matcher_destroy(m);
    plumb__grammar_release(grammar);
}

static json_t *parsed(const char *text) { return json_loads(text, JSON_DECODE_ANY, NULL); }

static json_t *reference(int definition) {
    char target[32];
    snprintf(target, sizeof target, "#/$defs/d%d", definition);
    return json_pack("{s:s}", "$ref", target);
}

/* d0 is null, and each definition `keyword`: `copies` of the one before, with `type` where that is given. */
static json_t *tower(int height, const char *keyword, int copies, const char *type) {
    json_t *definitions = json_object();
    for (int i = 0; i <= height; i++) {
        char name[16];
        json_t *list = json_array(), *definition = i ? json_object() : parsed("{\"type\": \"null\"}");
        snprintf(name, sizeof name, "d%d", i);
        for (int k = 0; k < copies && i; k++) json_array_append_new(list, reference(i - 1));
        if (i) json_object_set(definition, keyword, list);
        if (i && type) json_object_set_new(definition, "type", json_string(type));
        json_decref(list);
        json_object_set_new(definitions, name, definition);
    }
    json_t *schema = reference(height);
    json_object_set_new(schema, "$defs", definitions);
    return schema;
}

static json_t *nested_arrays(int depth, int least) {
    json_t *schema = parsed("{\"type\": \"null\"}");
    for (int i = 0; i < depth; i++)
        schema = json_pack("{s:s, s:i, s:o}", "type", "array", "minItems", least, "items", schema);
    return schema;
}

static json_t *strings_up_to(int n) {
    json_t *list = json_array();
    for (int i = 1; i <= n; i++) json_array_append_new(list, json_pack("{s:s, s:i}", "type", "string", "maxLength", i));
    return json_pack("{s:o}", "anyOf", list);
}

static json_t *long_enumeration(int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_sprintf("value %d", i * 7919));
    return json_pack("{s:o}", "enum", list);
}

static json_t *many_properties(int n, bool required) {
    json_t *properties = json_object(), *names = json_array();
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        json_object_set_new(properties, name, json_pack("{s:s}", "type", "integer"));
        if (required) json_array_append_new(names, json_string(name));
    }
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required", names);
}

static void expensive(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    check(&v, "64 alternatives", strings_up_to(64), FITS);
    check(&v, "65 alternatives", strings_up_to(65), REFUSED);
    check(&v, "arrays in arrays", nested_arrays(63, 1), FITS);
    check(&v, "arrays in arrays too deep", nested_arrays(66, 1), REFUSED);
    check(&v, "arrays in arrays that may be empty", nested_arrays(90, 0), FITS);
    check(&v, "schemas in schemas", nested_arrays(120, 0), REFUSED);
    check(&v, "JSON in JSON", nested_arrays(400, 0), REFUSED);
    check(&v, "a long enumeration", long_enumeration(15000), FITS);
    check(&v, "too many values", long_enumeration(25000), REFUSED);
    check(&v, "many properties", many_properties(2000, false), FITS);
    check(&v, "many properties, required", many_properties(2000, true), FITS);
    check(&v, "anyOf of anyOf", tower(40, "anyOf", 3, NULL), FITS);
    check(&v, "anyOf of anyOf, merged", tower(40, "anyOf", 3, "null"), REFUSED);
    check(&v, "allOf of allOf", tower(40, "allOf", 2, NULL), REFUSED);
    check(&v, "arrays of places", tower(30, "prefixItems", 3, NULL), FITS);
    close_vocabulary(&v);
}

static void ambiguous(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    /* Every level could be read in each way, so readings would double with the depth. */
    check(&v, "recursive arrays",
          parsed("{\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"anyOf\": [{\"type\": \"array\", \"items\": {\"$ref\":"
                 " \"#/$defs/x\"}}, {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/x\"}, \"maxItems\": 9},"
                 " {\"type\": \"array\", \"prefixItems\": [{\"$ref\": \"#/$defs/x\"}, {\"$ref\": \"#/$defs/x\"}]}]}}}"),
          FITS);
    check(&v, "merged into itself",
          parsed("{\"type\": \"object\", \"anyOf\": [{\"$ref\": \"#\"}, {\"$ref\": \"#\"}]}"), REFUSED);
    check(&v, "many items", parsed("{\"type\": \"array\", \"items\": {\"type\": \"integer\"}, \"minItems\": 1000000}"), FITS);
    check(&v, "too many items", parsed("{\"type\": \"array\", \"items\": {}, \"maxItems\": 1000001}"), REFUSED);
    check(&v, "many characters", parsed("{\"type\": \"string\", \"minLength\": 999999, \"maxLength\": 1000000}"), FITS);
    check(&v, "exponential subsets", parsed("{\"type\": \"string\", \"pattern\": \"(a|b)*a(a|b){40}\"}"), REFUSED);
    check(&v, "repeated repeats", parsed("{\"type\": \"string\", \"pattern\": \"((a{100}){100}){100}\"}"), REFUSED);
    check(&v, "optional repeats", parsed("{\"type\": \"string\", \"pattern\": \"^(a?){200}$\"}"), FITS);
    check(&v, "optional characters", parsed("{\"type\": \"string\", \"pattern\": \"^(.?){1000}$\"}"), REFUSED);
    check(&v, "stars in stars", parsed("{\"type\": \"string\", \"pattern\": \"^(((a*)*b*)*)*$\"}"), FITS);
    close_vocabulary(&v);
}

/* n names "`prefix`0", "`prefix`1"..., or an object of so many members that may be anything. */
static json_t *names(const char *prefix, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_sprintf("%s%d", prefix, i));
    return list;
}

static json_t *members(const char *prefix, int n) {
    json_t *list = names(prefix, n), *object = json_object(), *name;
    size_t i;
    json_array_foreach(list, i, name) json_object_set_new(object, json_string_value(name), json_true());
    json_decref(list);
    return object;
}

static json_t *strings_with(const char *keyword, json_t *value) {
    return json_pack("{s:s, s:o}", "type", "string", keyword, value);
}

/* An object of n properties, each `keyword` of references to both definitions (two may be NULL). */
static json_t *again(int n, const char *keyword, json_t *one, json_t *two) {
    json_t *properties = json_object(), *definitions = json_pack("{s:o}", "d1", one);
    if (two) json_object_set_new(definitions, "d2", two);
    for (int i = 0; i < n; i++) {
        char name[16];
        json_t *list = json_array();
        snprintf(name, sizeof name, "k%d", i);
        json_array_append_new(list, reference(1));
        if (two) json_array_append_new(list, reference(2));
        json_object_set_new(properties, name, json_pack("{s:o}", keyword, list));
    }
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "$defs", definitions);
}

/* 200 times up to 80 characters: about five million steps. */
static json_t *slow_pattern(void) {
    char text[200 * 11 + 1] = "";
    for (int i = 0; i < 200; i++) strcat(text, i ? "|(?:a?){80}" : "(?:a?){80}");
    return strings_with("pattern", json_string(text));
}

/* What is dear once, and said many times in few words. */
static void repeated(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    check(&v, "a slow pattern", again(2, "allOf", slow_pattern(), NULL), FITS);
    check(&v, "a slow pattern, often", again(60, "allOf", slow_pattern(), NULL), REFUSED);
    json_t *one = strings_with("required", names("a", 1500)), *two = strings_with("required", names("b", 1500));
    check(&v, "lists of names that are joined", again(2, "allOf", json_incref(one), json_incref(two)), FITS);
    check(&v, "lists of names that are joined, often", again(20, "allOf", one, two), REFUSED);
    one = strings_with("properties", members("a", 3000));
    two = strings_with("properties", members("b", 3000));
    check(&v, "properties that are joined", again(20, "allOf", json_incref(one), json_incref(two)), FITS);
    check(&v, "properties that are joined, often", again(250, "allOf", one, two), REFUSED);
    one = json_pack("{s:o}", "enum", names("a", 1000));
    two = json_pack("{s:o}", "enum", names("b", 1000));
    check(&v, "lists that are told apart", again(5, "oneOf", json_incref(one), json_incref(two)), FITS);
    check(&v, "lists that are told apart, often", again(40, "oneOf", one, two), REFUSED);
    one = json_pack("{s:s, s:o}", "type", "object", "properties", members("a", 9000));
    two = json_array();
    for (int i = 0; i < 9000; i++) json_array_append_new(two, json_string("a8999"));
    json_object_set_new(one, "required", two);
    check(&v, "a name required often", one, REFUSED);
    json_t *types = json_array();
    for (int i = 0; i < 5000; i++) json_array_append_new(types, json_string(i ? "null" : "string"));
    check(&v, "a type said often", json_pack("{s:o, s:o}", "type", types, "enum", names("a", 5000)), PLUMB_ERROR_FORMAT);
    close_vocabulary(&v);
}

/* A place stays usable and its memory bounded over more frames than are kept. */
static void long_answers(void) {
    vocabulary v = open_vocabulary(DEMO_MODEL);
    json_t *schema = parsed("{\"type\": \"array\", \"items\": {\"type\": \"array\", \"items\": {\"type\": \"object\"}},"
                            " \"maxItems\": 100000}");
    plumb_grammar *grammar = NULL;
    plumb_matcher *m = NULL;
    plumb_tokens open = {0}, more = {0};
    bool made = plumb__grammar_json_schema(schema, &grammar, NULL) == PLUMB_OK &&
                plumb__matcher_create(grammar, v.trie, &m, NULL) == PLUMB_OK &&
                plumb_text_encode(v.text, "[[{}]", 5, false, &open, NULL) == PLUMB_OK &&
                plumb_text_encode(v.text, ",[{}]", 5, false, &more, NULL) == PLUMB_OK;
    T_CHECK(made, "setting up");
    int64_t accepted = 0;
    for (int64_t i = 0; made && i < open.count; i++) made = plumb__matcher_accept(m, open.ids[i]);
    for (int round = 0; made && round < 30000; round++) {
        /* Masks make frames too; a few of them are enough. */
        if (round % 64 == 0) made = plumb__matcher_allowed(m) != NULL;
        for (int64_t i = 0; made && i < more.count; i++, accepted++) made = plumb__matcher_accept(m, more.ids[i]);
    }
    T_CHECK(made, "refused after %lld tokens", (long long)accepted);
    T_CHECK(made && plumb__matcher_allowed(m), "no mask at the end");
    plumb_tokens_free(&open);
    plumb_tokens_free(&more);
    plumb__matcher_destroy(m);
    plumb__grammar_release(grammar);
    json_decref(schema);
    close_vocabulary(&v);
}

T_MAIN({"expensive", expensive}, {"ambiguous", ambiguous}, {"repeated", repeated}, {"long_answers", long_answers})
