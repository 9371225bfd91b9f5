/* Life of a grammar. */
#include "grammar/grammar.h"

#include <stdlib.h>

#include "grammar/automaton.h"

void plumb__grammar_retain(plumb_grammar *grammar) { atomic_fetch_add(&grammar->references, 1); }

void plumb__grammar_release(plumb_grammar *grammar) {
    if (!grammar || atomic_fetch_sub(&grammar->references, 1) != 1) return;
    free(grammar->nodes.items);
    free(grammar->links.items);
    free(grammar->bytes.items);
    free(grammar->words.items);
    free(grammar->lists.items);
    free(grammar->ranges.items);
    free(grammar->states.items);
    free(grammar->edges.items);
    free(grammar);
}
