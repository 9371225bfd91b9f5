/* Objects and arrays.  Members come in the order of "properties", then others where they are allowed: of many
 * orders a model needs one, and one can be checked with little state. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grammar/json_rules.h"
#include "grammar/schema.h"

typedef struct members {
    int32_t count;
    char **words;       /* keys as JSON, owned */
    size_t *sizes;
    int32_t *rules;     /* of the values; -1: there is none */
    bool *required;
    int32_t list, links; /* of the grammar */
    int32_t others;     /* the rule of other members' values; -1: none */
} members;

static void take_member(plumb__builder *b, members *m, const char *key, int32_t rule) {
    json_t *name = json_string(key);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    json_decref(name);
    if (!text) {
        b->status = plumb__fail_memory(&b->error, "a schema", sizeof *text);
        return;
    }
    m->words[m->count] = text;
    m->sizes[m->count] = strlen(text);
    m->rules[m->count++] = rule;
}

static void take_properties(plumb__builder *b, members *m, const json_t *properties) {
    const char *key;
    json_t *value;
    size_t before = plumb__enter_pointer(b, "properties");
    json_object_foreach((json_t *)(uintptr_t)properties, key, value) {
        size_t within = plumb__enter_pointer(b, key);
        int32_t rule = json_is_false(value) ? -1 : plumb__rule_of_schema(b, value, PLUMB__FORM_JSON);
        if (b->status == PLUMB_OK) take_member(b, m, key, rule);
        plumb__leave_pointer(b, within);
    }
    plumb__leave_pointer(b, before);
}

/* Marks what is required; a name without a schema of its own has that of other members. */
static void take_required(plumb__builder *b, members *m, const json_t *schema) {
    const json_t *required = json_object_get(schema, "required"), *properties = json_object_get(schema, "properties");
    if (required && !json_is_array(required)) plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "required", NULL, "an array");
    for (size_t i = 0; i < json_array_size(required) && b->status == PLUMB_OK; i++) {
        const char *name = json_string_value(json_array_get(required, i));
        int32_t at = 0;
        const char *key;
        json_t *value;
        if (!name) {
            plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "required", NULL, "names of properties");
            return;
        }
        json_object_foreach((json_t *)(uintptr_t)properties, key, value) {
            if (!strcmp(key, name)) break;
            at++;
        }
        if (!plumb__builder_work(b, at)) return;
        if (at == (int32_t)json_object_size(properties)) {
            bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
            at = m->count;
            take_member(b, m, name, closed ? -1 : m->others >= 0 ? m->others : plumb__rule_any_value(b));
        }
        if (b->status == PLUMB_OK && m->rules[at] < 0)
            plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "required",
                                plumb__format("%.60s, which has no value", name).s, "properties that can be there");
        if (b->status == PLUMB_OK) m->required[at] = true;
    }
}

static bool any_required(const members *m, int32_t from) {
    for (int32_t i = from; i < m->count; i++)
        if (m->required[i]) return true;
    return false;
}

/* The node that takes a key from `from` on, or another member's; -1: there is none. */
static int32_t add_keys(plumb__builder *b, const members *m, int32_t from, int32_t others) {
    int32_t last = from, keys = -1;
    while (last < m->count - 1 && !m->required[last]) last++;
    if (from < m->count)
        keys = plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_KEYS, .first = m->list, .count = m->links,
                                                 .least = from, .most = last});
    if (others < 0 || any_required(m, from)) return keys;
    return keys < 0 ? others : plumb__add_either(b, keys, others);
}

/* Other members: their first key, which leads to more of them. */
static int32_t add_others(plumb__builder *b, const members *m, int32_t close) {
    if (m->others < 0) return -1;
    int32_t loop = plumb__add_loop(b, m->others, 0, PLUMB__NO_LIMIT, close);
    int32_t colon = plumb__add_text(b, ":", plumb__add_space(b, false, plumb__add_call(b, m->others, loop)));
    int32_t key = plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_OTHER_KEY, .first = m->list, .next = colon});
    plumb__set_target(b, loop, plumb__add_text(b, ",", plumb__add_space(b, true, key)));
    return key;
}

static int32_t add_members(plumb__builder *b, members *m) {
    int32_t brace = plumb__add_text(b, "}", b->end), close = plumb__add_space(b, true, brace);
    int32_t *starts = calloc((size_t)m->count + 1, sizeof *starts); /* of each member, behind its key */
    if (!starts) {
        b->status = plumb__fail_memory(&b->error, "a schema", (size_t)m->count * sizeof *starts);
        return 0;
    }
    m->list = plumb__add_list(b, (const char *const *)m->words, m->sizes, m->count);
    m->links = plumb__append(b, &b->grammar->links, starts, m->count, sizeof *starts);
    int32_t others = add_others(b, m, close);
    for (int32_t i = m->count - 1; i >= 0 && b->status == PLUMB_OK; i--) {
        int32_t more = add_keys(b, m, i + 1, others), after = close;
        if (more >= 0) more = plumb__add_text(b, ",", plumb__add_space(b, true, more));
        if (more >= 0) after = any_required(m, i + 1) ? more : plumb__add_either(b, more, close);
        /* A member without a value is one that no depth has room for. */
        int32_t value = m->rules[i] >= 0 ? plumb__add_call(b, m->rules[i], after) : plumb__add_never(b);
        starts[i] = plumb__add_text(b, ":", plumb__add_space(b, false, value));
    }
    if (b->status == PLUMB_OK && m->count > 0)
        memcpy((int32_t *)b->grammar->links.items + m->links, starts, (size_t)m->count * sizeof *starts);
    free(starts);
    int32_t first = add_keys(b, m, 0, others);
    if (first < 0) first = brace;
    else if (!any_required(m, 0)) first = plumb__add_either(b, first, brace);
    return plumb__add_text(b, "{", plumb__add_space(b, true, first));
}

/* Without "properties" an object is a map of anything; with them it has no others unless the schema says so. */
static int32_t others_of(plumb__builder *b, const json_t *schema) {
    const json_t *additional = json_object_get(schema, "additionalProperties");
    if (!additional) return json_object_get(schema, "properties") ? -1 : plumb__rule_any_value(b);
    if (json_is_false(additional)) return -1;
    size_t before = plumb__enter_pointer(b, "additionalProperties");
    int32_t rule = plumb__rule_of_schema(b, additional, PLUMB__FORM_JSON);
    plumb__leave_pointer(b, before);
    return rule;
}

int32_t plumb__compile_object(plumb__builder *b, const json_t *schema) {
    plumb__schemas *s = b->schemas;
    const json_t *properties = json_object_get(schema, "properties");
    size_t most = json_object_size(properties) + json_array_size(json_object_get(schema, "required"));
    if (properties && !json_is_object(properties)) {
        plumb__builder_fail(b, PLUMB_ERROR_FORMAT, "properties", NULL, "an object of schemas");
        return 0;
    }
    if (!properties && !json_object_get(schema, "required") && !json_object_get(schema, "additionalProperties"))
        return plumb__rule_any_object(b);
    members m = {.words = calloc(most + 1, sizeof *m.words), .sizes = calloc(most + 1, sizeof *m.sizes),
                 .rules = calloc(most + 1, sizeof *m.rules), .required = calloc(most + 1, sizeof *m.required)};
    int32_t node = 0;
    s->level++;
    if (!m.words || !m.sizes || !m.rules || !m.required) {
        b->status = plumb__fail_memory(&b->error, "a schema", most * sizeof *m.words);
    } else {
        m.others = others_of(b, schema);
        take_properties(b, &m, properties);
        take_required(b, &m, schema);
        if (b->status == PLUMB_OK && m.count == 0 && m.others >= 0) node = plumb__add_map(b, m.others, b->end);
        else if (b->status == PLUMB_OK) node = add_members(b, &m);
    }
    s->level--;
    for (int32_t i = 0; i < m.count; i++) free(m.words[i]);
    free(m.words);
    free(m.sizes);
    free(m.rules);
    free(m.required);
    return node;
}

int32_t plumb__compile_array(plumb__builder *b, const json_t *schema) {
    plumb__schemas *s = b->schemas;
    const json_t *items = json_object_get(schema, "items"), *places = json_object_get(schema, "prefixItems");
    int32_t least = plumb__count_keyword(b, schema, "minItems", 0);
    int32_t most = plumb__count_keyword(b, schema, "maxItems", PLUMB__NO_LIMIT);
    int32_t rules[PLUMB__MOST_READINGS], n_rules = (int32_t)json_array_size(places), rest = -1;
    if (places && (!json_is_array(places) || n_rules == 0 || n_rules > PLUMB__MOST_READINGS)) {
        plumb__builder_fail(b, json_is_array(places) ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT, "prefixItems",
                            NULL, "an array of 1 to 64 schemas");
        return 0;
    }
    s->level++;
    for (int32_t i = 0; i < n_rules && b->status == PLUMB_OK; i++) {
        size_t before = plumb__enter_pointer(b, "prefixItems"), within = plumb__enter_index(b, (size_t)i);
        rules[i] = plumb__rule_of_schema(b, json_array_get(places, (size_t)i), PLUMB__FORM_JSON);
        if (rules[i] < 0) rules[i] = plumb__add_never(b);
        plumb__leave_pointer(b, within);
        plumb__leave_pointer(b, before);
    }
    size_t before = plumb__enter_pointer(b, "items");
    /* As with properties: what no schema speaks of is left out where others are spoken of. */
    if (items ? !json_is_false(items) : !places)
        rest = items ? plumb__rule_of_schema(b, items, PLUMB__FORM_JSON) : plumb__rule_any_value(b);
    plumb__leave_pointer(b, before);
    s->level--;
    if (rest < 0 && most > n_rules) most = n_rules;
    if (b->status == PLUMB_OK && least > most)
        plumb__builder_fail(b, PLUMB_ERROR_UNSUPPORTED, "minItems", "more items than there can be", "fewer");
    return b->status == PLUMB_OK ? plumb__add_array(b, rules, n_rules, rest, least, most, b->end) : 0;
}
