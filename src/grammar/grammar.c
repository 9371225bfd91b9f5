/* Life of a grammar. */
#include "grammar/grammar.h"

#include <stdatomic.h>
#include <stdlib.h>

struct plumb_grammar {
    atomic_int references;
};

void plumb__grammar_retain(plumb_grammar *grammar) { atomic_fetch_add(&grammar->references, 1); }

void plumb__grammar_release(plumb_grammar *grammar) {
    if (grammar && atomic_fetch_sub(&grammar->references, 1) == 1) free(grammar);
}
