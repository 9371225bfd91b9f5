/* What the numbers of each tensor look like: the statistics of a synthetic model.
 *
 * Plain noise would make a useless test model: it amplifies rounding noise until no two correct
 * programs agree.  So the weights carry a little structure that trained models have as well.  All
 * embeddings share a common direction; queries and index queries pick up a fixed part from it, and
 * that part meets the first dimensions of the compressed latents, so that the indexer prefers the
 * positions attention prefers.  Each sublayer adds only a little to the residual. */
#ifndef PLUMB_SYNTH_RECIPE_H
#define PLUMB_SYNTH_RECIPE_H

#include "format/model_config.h"

enum { PLUMB_SALIENT = 8 }; /* leading dimensions of a latent that say how wanted it is */

/* value(row, column) = normal * spread [* the tile's magnitude] + offset + the structure. */
typedef struct plumb__recipe {
    double spread;         /* standard deviation */
    double salient_spread; /* of the first PLUMB_SALIENT rows */
    double offset;
    double common; /* times the common direction's sign, in rows below common_rows */
    int64_t common_rows;
    double diagonal;        /* where row % diagonal_width == column < PLUMB_SALIENT */
    int64_t diagonal_width; /* 0: no diagonal */
    bool varied_tiles;      /* tiles of magnitude 1/2, 1 and 2: a misplaced scale shows */
    bool zero_corner;       /* the first tile or group is zero */
    bool absolute;          /* keeps the magnitude only */
    bool mixing_base;       /* hyper-connection base: its three parts have offsets of their own */
} plumb__recipe;

/* The recipe of tensor `name` (rows, columns; a vector is one row; columns count elements, not
 * packed bytes).  `depth` is the number of layers that share the residual's growth.  False when the
 * name has no recipe. */
bool plumb__recipe_find(const plumb_model_config *config, const char *name, int64_t rows,
                        int64_t columns, int64_t depth, plumb__recipe *recipe);

#endif
