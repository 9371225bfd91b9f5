/* Numbers of JSON within a range, by the byte. */
#ifndef PLUMB_GRAMMAR_NUMBER_LEXEME_H
#define PLUMB_GRAMMAR_NUMBER_LEXEME_H

#include "grammar/lexeme.h"

enum {
    PLUMB__NUMBER_DIGITS = 17,  /* magnitudes of a range stay below 10^17, so that nothing overflows */
    PLUMB__NUMBER_DECIMALS = 6  /* after the point, where there are bounds */
};

bool plumb__number_step(const plumb__number_range *range, plumb__reading *r, uint8_t byte);
bool plumb__number_may_end(const plumb__number_range *range, const plumb__reading *r);

#endif
