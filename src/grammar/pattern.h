/* Regular expressions as trees: the subset of ECMA-262 that README.md tells. */
#ifndef PLUMB_GRAMMAR_PATTERN_H
#define PLUMB_GRAMMAR_PATTERN_H

#include "grammar/automaton.h"

typedef enum plumb__pattern_kind {
    PLUMB__PATTERN_EMPTY,
    PLUMB__PATTERN_CLASS,  /* one character of ranges[a, a + b) */
    PLUMB__PATTERN_THEN,   /* a, then b */
    PLUMB__PATTERN_EITHER, /* a or b */
    PLUMB__PATTERN_REPEAT  /* a, least..most times (-1: without end) */
} plumb__pattern_kind;

typedef struct plumb__pattern_node {
    plumb__pattern_kind kind;
    int32_t a, b;
    int32_t least, most;
} plumb__pattern_node;

typedef struct plumb__character_range {
    uint32_t low, high;
} plumb__character_range;

typedef struct plumb__pattern {
    plumb__pool nodes, ranges;
    int32_t root;
    const char *fault;  /* what is not supported; NULL: nothing */
    bool out_of_memory;
} plumb__pattern;

/* Parses the whole text, anchors included; false: `fault` or out_of_memory is set.  Free it in any case. */
bool plumb__pattern_parse(const char *text, size_t size, plumb__pattern *pattern);
void plumb__pattern_free(plumb__pattern *pattern);

#endif
