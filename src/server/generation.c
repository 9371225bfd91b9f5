/* Life of a generation request. */
#include "server/generation.h"

#include <stdlib.h>

enum { DEFAULT_EFFORT = 75 };

plumb_generation *plumb__generation_create(void) {
    plumb_generation *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->sampling = plumb_sampling_default();
    g->effort = DEFAULT_EFFORT;
    g->call_prefix = "call_";
    g->most_tokens = -1;
    g->runs = 1;
    return g;
}

void plumb__generation_destroy(plumb_generation *g) {
    if (!g) return;
    free(g->messages);
    free(g->prompt);
    plumb_tokens_free(&g->ids);
    free(g->bias);
    plumb__grammar_release(g->grammar);
    for (int i = 0; i < g->n_stop; i++) free(g->stop[i].bytes);
    free(g->stop);
    free(g);
}
