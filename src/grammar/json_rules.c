/* Rules that any JSON needs.  White space is what people and models write: a space or a line feed with
 * indentation, where they stand in pretty-printed texts, and never two runs in a row, so that an answer cannot
 * consist of it. */
#include "grammar/json_rules.h"

#include "base/error.h"
#include "grammar/grammar.h"

int32_t plumb__add_string_text(plumb__builder *b, int32_t least, int32_t most, int32_t next) {
    int32_t end = plumb__add_text(b, "\"", next);
    int32_t text = plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_TEXT, .alphabet = PLUMB__ALPHABET_JSON,
                                                     .least = least, .most = most, .next = end});
    return plumb__add_text(b, "\"", text);
}

int32_t plumb__add_number(plumb__builder *b, const plumb__number_range *range, int32_t next) {
    int32_t first = plumb__append(b, &b->grammar->ranges, range, 1, sizeof *range);
    return plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_NUMBER, .first = first, .next = next});
}

/* "," and the item `rule`, and on to `next`. */
static int32_t add_item(plumb__builder *b, int32_t rule, int32_t next) {
    return plumb__add_text(b, ",", plumb__add_space(b, true, plumb__add_call(b, rule, next)));
}

/* What follows item number `done` of an array. */
static int32_t add_after_items(plumb__builder *b, int32_t n_rules, int32_t rest, int32_t done, int32_t least,
                               int32_t most, int32_t close) {
    if (done < n_rules || rest < 0 || done >= most) return close;
    int32_t loop_least = least > done ? least - done : 0;
    int32_t loop_most = most == PLUMB__NO_LIMIT ? most : most - done;
    int32_t loop = plumb__add_loop(b, rest, loop_least, loop_most, close);
    plumb__set_target(b, loop, add_item(b, rest, loop));
    return loop;
}

int32_t plumb__add_array(plumb__builder *b, const int32_t *rules, int32_t n_rules, int32_t rest, int32_t least,
                         int32_t most, int32_t next) {
    int32_t bracket = plumb__add_text(b, "]", next), close = plumb__add_space(b, true, bracket);
    if (n_rules > most) n_rules = most;
    int32_t first_rest = n_rules > 0 ? n_rules : 1; /* items before those of the loop */
    int32_t after = add_after_items(b, n_rules, rest, first_rest, least, most, close);
    int32_t empty = least == 0 ? bracket : -1, item = -1;
    for (int32_t i = n_rules - 1; i > 0; i--) {
        int32_t more = add_item(b, rules[i], after);
        after = i >= least ? plumb__add_either(b, more, close) : more;
    }
    if (n_rules > 0) item = plumb__add_call(b, rules[0], after);
    else if (rest >= 0 && most > 0) item = plumb__add_call(b, rest, after);
    int32_t open = item < 0 ? empty : empty < 0 ? item : plumb__add_either(b, item, empty);
    return plumb__add_text(b, "[", plumb__add_space(b, true, open));
}

int32_t plumb__add_map(plumb__builder *b, int32_t value, int32_t next) {
    int32_t brace = plumb__add_text(b, "}", next), close = plumb__add_space(b, true, brace);
    int32_t loop = plumb__add_loop(b, value, 0, PLUMB__NO_LIMIT, close);
    int32_t colon = plumb__add_text(b, ":", plumb__add_space(b, false, plumb__add_call(b, value, loop)));
    int32_t key = plumb__add_call(b, plumb__rule_any_string(b), colon);
    plumb__set_target(b, loop, plumb__add_text(b, ",", plumb__add_space(b, true, key)));
    return plumb__add_text(b, "{", plumb__add_space(b, true, plumb__add_either(b, key, brace)));
}

int32_t plumb__rule_any_string(plumb__builder *b) {
    if (!b->any_string) b->any_string = plumb__add_string_text(b, 0, PLUMB__NO_LIMIT, b->end);
    return b->any_string;
}

int32_t plumb__rule_any_object(plumb__builder *b) {
    if (b->any_object || b->status != PLUMB_OK) return b->any_object;
    int32_t entry = b->any_object = plumb__add_entry(b);
    plumb__set_entry(b, entry, plumb__add_map(b, plumb__rule_any_value(b), b->end));
    return entry;
}

int32_t plumb__rule_any_value(plumb__builder *b) {
    if (b->any_value || b->status != PLUMB_OK) return b->any_value;
    static const char *const literals[] = {"true", "false", "null"};
    static const size_t sizes[] = {4, 5, 4};
    int32_t entry = b->any_value = plumb__add_entry(b);
    int32_t list = plumb__add_list(b, literals, sizes, 3);
    const int32_t kinds[] = {
        plumb__rule_any_object(b),
        plumb__add_array(b, NULL, 0, entry, 0, PLUMB__NO_LIMIT, b->end),
        plumb__rule_any_string(b),
        plumb__add_number(b, &(plumb__number_range){.free = true, .decimals = 1}, b->end),
        plumb__add_node(b, &(plumb__node){.kind = PLUMB__NODE_WORDS, .first = list, .next = b->end}),
    };
    plumb__set_entry(b, entry, plumb__add_split(b, kinds, sizeof kinds / sizeof *kinds));
    return entry;
}

plumb_status plumb__grammar_json_object(plumb_grammar **grammar, plumb_error *err) {
    plumb__builder b;
    if (!plumb__builder_open(&b)) return plumb__fail_memory(err, "a grammar", sizeof **grammar);
    return plumb__builder_close(&b, plumb__rule_any_object(&b), grammar, err);
}
