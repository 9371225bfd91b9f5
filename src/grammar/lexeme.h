/* The inner states of lexemes: what a string, a number or a choice of words may go on with. */
#ifndef PLUMB_GRAMMAR_LEXEME_H
#define PLUMB_GRAMMAR_LEXEME_H

#include "grammar/automaton.h"

/* One way to read the text so far: a node, how far it got in it, and where the rule was called from. */
typedef struct plumb__reading {
    int64_t value;   /* with `phase`: the state within a lexeme; both 0 at its begin */
    uint32_t phase;
    int32_t node;
    int32_t frame;   /* machine.h */
    int32_t count;   /* items of the loop that is open in this rule */
} plumb__reading;

/* Consumes a byte; false, with *r undefined: it may not follow.  `room` is how many calls within calls may
 * still be made. */
bool plumb__lexeme_step(const plumb_grammar *g, plumb__reading *r, uint8_t byte, int32_t room);
/* The node that follows if the lexeme ends here, or -1. */
int32_t plumb__lexeme_end(const plumb_grammar *g, const plumb__reading *r);
/* Whether it may go on at all. */
bool plumb__lexeme_goes_on(const plumb_grammar *g, const plumb__reading *r);

/* Strings of an alphabet, by the byte: PLUMB__TEXT_BETWEEN is between two characters. */
enum { PLUMB__TEXT_BETWEEN = 0, PLUMB__TEXT_REFUSED = 255 };
uint32_t plumb__text_step(plumb__alphabet alphabet, uint32_t state, uint8_t byte);

#endif
