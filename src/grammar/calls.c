/* Blocks of calls (tokenizer-and-chat.md section 5.1): markup with control tokens around raw strings and JSON.
 * Parameters come in the order of the schema; what JSON would call a string is raw text. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/json_rules.h"
#include "grammar/schema.h"

enum { MOST_FUNCTIONS = 1024, MOST_CALLS = 64 };

/* Choices of a name, which is what KEYS are: words, and where each leads. */
typedef struct choices {
    int32_t count;
    char **words; /* owned */
    size_t *sizes;
    int32_t *starts;
    bool *required;
    int32_t list, links;
} choices;

static void close_choices(choices *c) {
    for (int32_t i = 0; i < c->count; i++) free(c->words[i]);
    free(c->words);
    free(c->sizes);
    free(c->starts);
    free(c->required);
}

static bool open_choices(plumb__builder *b, choices *c, size_t most) {
    *c = (choices){.words = calloc(most + 1, sizeof *c->words), .sizes = calloc(most + 1, sizeof *c->sizes),
                   .starts = calloc(most + 1, sizeof *c->starts), .required = calloc(most + 1, sizeof *c->required)};
    if (c->words && c->sizes && c->starts && c->required) return true;
    close_choices(c);
    *c = (choices){0};
    b->status = plumb__fail_memory(&b->error, "calls", most * sizeof *c->words);
    return false;
}

/* Names have no escapes, so some cannot be said. */
static void take_name(plumb__builder *b, choices *c, const char *name, const char *after) {
    size_t size = strlen(name), after_size = strlen(after);
    bool right = size > 0;
    for (size_t i = 0; i < size; i++) right &= (unsigned char)name[i] >= 0x20 && !strchr("\"<>", name[i]);
    char *word = malloc(size + after_size + 1);
    if (!word) {
        b->status = plumb__fail_memory(&b->error, "calls", size);
        return;
    }
    memcpy(word, name, size);
    memcpy(word + size, after, after_size + 1);
    c->words[c->count] = word;
    c->sizes[c->count++] = size + after_size;
    if (!right)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, NULL, plumb__format("the name %.60s", name).s,
                            "one without quotation marks, angle brackets and control characters");
}

/* "<" or "</", the control token, and `text`. */
static int32_t add_tag(plumb__builder *b, const char *open, const char *text, int32_t next) {
    return plumb__add_text(b, open, plumb__add_control(b, plumb__add_text(b, text, next)));
}

static int32_t add_choice(plumb__builder *b, const choices *c, int32_t first, int32_t last) {
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_KEYS, .first = c->list, .count = c->links,
                                             .least = first, .most = last});
}

/* ---- Parameters ---- */

static void take_parameters(plumb__builder *b, choices *c, const json_t *schema) {
    const json_t *required = json_object_get(schema, "required");
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(json_object_get(schema, "properties"), key, value) {
        size_t before = plumb__enter_pointer(b, key);
        take_name(b, c, key, "\"");
        plumb__leave_pointer(b, before);
        if (b->status != PLUMB_OK) return;
    }
    json_array_foreach(required, i, value) {
        int32_t found = -1;
        if (!plumb__builder_work(b, c->count)) return;
        for (int32_t k = 0; k < c->count; k++)
            if (json_is_string(value) && strlen(json_string_value(value)) + 1 == c->sizes[k] &&
                !strncmp(c->words[k], json_string_value(value), c->sizes[k] - 1))
                found = k;
        if (found >= 0) c->required[found] = true;
        else
            plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "required", "a name without a schema",
                                "names of properties");
    }
}

/* A parameter behind its key: the value in each form that it can have. */
static int32_t add_value(plumb__builder *b, const json_t *schema, int32_t after) {
    int32_t close = add_tag(b, "</", " parameter>", after), ways[2], n = 0;
    int32_t raw = json_is_false(schema) ? -1 : plumb__rule_of_schema(b, schema, PLUMB__FORM_RAW_STRINGS);
    int32_t json = json_is_false(schema) ? -1 : plumb__rule_of_schema(b, schema, PLUMB__FORM_NO_STRINGS);
    if (raw >= 0) ways[n++] = plumb__add_text(b, "true\">", plumb__add_call(b, raw, close));
    if (json >= 0) ways[n++] = plumb__add_text(b, "false\">", plumb__add_call(b, json, close));
    return plumb__add_text(b, " string=\"", n ? plumb__add_split(b, ways, n) : plumb__add_never(b));
}

/* A parameter from `from` on or the end of the call, behind a line feed. */
static int32_t add_rest(plumb__builder *b, const choices *c, int32_t from, int32_t end) {
    int32_t last = from;
    while (last < c->count - 1 && !c->required[last]) last++;
    if (from == c->count) return end;
    int32_t more = add_tag(b, "<", " parameter name=\"", add_choice(b, c, from, last));
    return c->required[last] ? more : plumb__add_either(b, more, end);
}

/* A call behind its name; on to `after`. */
static int32_t add_invocation(plumb__builder *b, const json_t *schema, int32_t after) {
    const json_t *properties = json_object_get(schema, "properties");
    choices c;
    if (!open_choices(b, &c, json_object_size(properties))) return 0;
    size_t before = plumb__enter_pointer(b, "properties");
    take_parameters(b, &c, schema);
    c.list = plumb__add_list(b, (const char *const *)c.words, c.sizes, c.count);
    c.links = plumb__append(b, &b->grammar->links, c.starts, c.count, sizeof *c.starts);
    int32_t end = add_tag(b, "</", " invoke>", after), i = c.count;
    const char *key;
    json_t *value;
    /* Schemas in their order, so that faults are told in it, but nodes need what follows them: each
     * parameter's way on is an entry that is set afterwards. */
    json_object_foreach((json_t *)(uintptr_t)properties, key, value) {
        size_t within = plumb__enter_pointer(b, key);
        int32_t rest = plumb__add_text(b, "\n", add_rest(b, &c, c.count - i + 1, end));
        if (b->status == PLUMB_OK) c.starts[c.count - i] = add_value(b, value, rest);
        i--;
        plumb__leave_pointer(b, within);
    }
    if (b->status == PLUMB_OK && c.count > 0)
        memcpy((int32_t *)b->grammar->links.items + c.links, c.starts, (size_t)c.count * sizeof *c.starts);
    /* Without parameters an empty line stands in their place. */
    int32_t none = plumb__add_text(b, "\n", end), last = 0;
    while (last < c.count - 1 && !c.required[last]) last++;
    if (c.count > 0) {
        int32_t first = add_tag(b, "<", " parameter name=\"", add_choice(b, &c, 0, last));
        none = c.required[last] ? first : plumb__add_either(b, first, none);
    }
    plumb__leave_pointer(b, before);
    close_choices(&c);
    return plumb__add_text(b, "\n", none);
}

/* ---- Functions ---- */

static int32_t add_function(plumb__builder *b, const json_t *parameters, int32_t after) {
    plumb__schemas schemas;
    int32_t node = 0;
    json_t *none = json_object();
    if (!parameters || json_is_null(parameters)) parameters = none;
    size_t before = plumb__enter_pointer(b, "parameters");
    if (!json_is_object(parameters))
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, NULL, NULL, "a schema that is an object");
    if (plumb__schemas_open(b, &schemas, parameters)) {
        const json_t *flat = plumb__flat_schema(b, parameters), *type = json_object_get(flat, "type");
        static const char *const refused[] = {"anyOf", "oneOf", "enum", "const", "not", "if", "patternProperties"};
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            if (json_object_get(flat, refused[i]))
                plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, refused[i], refused[i],
                                    "properties and required alone");
        if (type && (!json_is_string(type) || strcmp(json_string_value(type), "object")))
            plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "type", NULL, "object");
        if (b->status == PLUMB_OK) node = add_invocation(b, flat, after);
    }
    plumb__schemas_close(&schemas);
    b->schemas = NULL;
    plumb__leave_pointer(b, before);
    json_decref(none);
    return node;
}

static int32_t add_functions(plumb__builder *b, const json_t *functions, choices *c, bool several) {
    int32_t close = plumb__add_text(b, "\n", add_tag(b, "</", " calls>", b->end));
    int32_t after = several ? plumb__add_loop(b, 0, 0, MOST_CALLS - 1, close) : close;
    const json_t *function;
    size_t i;
    json_array_foreach(functions, i, function) {
        size_t before = plumb__enter_index(b, i);
        const char *name = json_string_value(json_object_get(function, "name"));
        if (name) take_name(b, c, name, "\">");
        else plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "name", NULL, "the name of a function");
        if (b->status == PLUMB_OK) c->starts[i] = add_function(b, json_object_get(function, "parameters"), after);
        plumb__leave_pointer(b, before);
        if (b->status != PLUMB_OK) return 0;
    }
    c->list = plumb__add_list(b, (const char *const *)c->words, c->sizes, c->count);
    c->links = plumb__append(b, &b->grammar->links, c->starts, c->count, sizeof *c->starts);
    int32_t invoke = plumb__add_control(b, plumb__add_text(b, " invoke name=\"", add_choice(b, c, 0, c->count - 1)));
    invoke = plumb__add_text(b, "<", invoke);
    if (several) plumb__set_target(b, after, plumb__add_text(b, "\n", invoke));
    return plumb__add_text(b, "\n\n<", plumb__add_control(b, plumb__add_text(b, " calls>\n", invoke)));
}

static int32_t add_block(plumb__builder *b, const json_t *functions, bool several) {
    choices c = {.count = 0};
    size_t n = json_array_size(functions);
    int32_t start = 0;
    if (n == 0 || n > MOST_FUNCTIONS)
        plumb__builder_fail(b, n ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT, NULL,
                            plumb__format("%zu functions", n).s, "an array of 1 to 1024 functions");
    else if (open_choices(b, &c, n))
        start = add_functions(b, functions, &c, several);
    close_choices(&c);
    return start;
}

plumb_status plumb__grammar_calls(const json_t *functions, bool several, plumb_grammar **grammar, plumb_error *err) {
    plumb__builder b;
    if (!plumb__builder_open(&b)) return plumb__fail_memory(err, "a grammar", sizeof **grammar);
    return plumb__builder_close(&b, add_block(&b, functions, several), grammar, err);
}

/* The first byte tells: calls begin with a line feed, which no JSON text does here. */
plumb_status plumb__grammar_json_or_calls(const json_t *schema, const json_t *functions, bool several,
                                          plumb_grammar **grammar, plumb_error *err) {
    plumb__builder b;
    if (!plumb__builder_open(&b)) return plumb__fail_memory(err, "a grammar", sizeof **grammar);
    int32_t text = schema ? plumb__add_document(&b, schema) : plumb__rule_any_object(&b), calls = 0;
    if (b.status == PLUMB_OK) calls = add_block(&b, functions, several);
    if (b.status == PLUMB_OK) text = plumb__add_either(&b, text, calls);
    return plumb__builder_close(&b, text, grammar, err);
}
