/* Rules that any JSON needs. */
#ifndef PLUMB_GRAMMAR_JSON_RULES_H
#define PLUMB_GRAMMAR_JSON_RULES_H

#include "grammar/automaton.h"

/* Each is a rule, made once. */
int32_t plumb__rule_any_string(plumb__builder *b);
int32_t plumb__rule_any_value(plumb__builder *b);
int32_t plumb__rule_any_object(plumb__builder *b);

/* What begins with the first node and goes on to `next`. */
int32_t plumb__add_string_text(plumb__builder *b, int32_t least, int32_t most, int32_t next); /* with its marks */
int32_t plumb__add_number(plumb__builder *b, const plumb__number_range *range, int32_t next);
/* Items in brackets: each rule of `rules` for a place, `rest` (-1: none) for those beyond; least..most items. */
int32_t plumb__add_array(plumb__builder *b, const int32_t *rules, int32_t n_rules, int32_t rest, int32_t least,
                         int32_t most, int32_t next);
/* Any members whose values are of rule `value`. */
int32_t plumb__add_map(plumb__builder *b, int32_t value, int32_t next);

#endif
