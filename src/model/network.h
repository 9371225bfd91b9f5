/* The network: weights, the working memory of a batch, and the forward pass.
 *
 * There is one forward pass.  Prefill and decode are the same call with many rows or with one, and
 * give the same bits, because every operation treats rows independently and the lists each row
 * attends to do not depend on how positions were grouped (docs/arithmetic.md section 6).
 *
 * Read forward.c first: it is the page "order of a layer" of the specification.  attention.c,
 * indexer.c, experts.c and engram.c hold the parts it names. */
#ifndef PLUMB_MODEL_NETWORK_H
#define PLUMB_MODEL_NETWORK_H

#include "model/batch.h"
#include "model/engram_hash.h"
#include "model/state.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "stream/weight_source.h"

enum { PLUMB_HEAD_ROWS = 8 }; /* rows that go through the head at a time */

struct plumb_network {
    const plumb_model_config *config;
    plumb_backend *backend;
    plumb_weight_source *source;
    const int32_t *token_map;  /* [vocab] folded ids */
    plumb_weights weights;
    plumb_engram_hash engram[PLUMB_MAX_ENGRAM_LAYERS];
    float *frequency[2];       /* [rope_dim/2]: plain, YaRN */
    float attention_scale, index_factor, hidden_factor; /* fl32 constants of docs/arithmetic.md */
    int64_t top_k, pool_blocks; /* the config's, or all there can be if that is less */
    /* The backend finds experts by itself (held.c): the layers whose experts may have been missing, and
     * how many of them there may be before we look. */
    bool holding, missed_lately;
    int64_t first_unsettled, most_unsettled;
    plumb_route_fn routes;     /* sees every row's experts; may be NULL */
    void *routes_user;
    plumb_workspace work;
};

/* The checkpoint, source and token map are kept and must outlive the network. */
PLUMB_MUST_CHECK plumb_status plumb__network_open(const plumb_checkpoint *checkpoint,
                                                  plumb_backend *backend,
                                                  plumb_weight_source *source,
                                                  const int32_t *token_map, plumb_network *network,
                                                  plumb_error *err);
void plumb__network_close(plumb_network *network);

/* Evaluates the batch and, when all went well, moves its states forward by their rows.  On any error they
 * are as before. */
PLUMB_MUST_CHECK plumb_status plumb__network_forward(plumb_network *network,
                                                     const plumb_batch *batch, plumb_error *err);

/* ---- Parts of the forward pass, one file each ------------------------------------------------- */

/* Working memory for at least `rows` rows (workspace.c). */
PLUMB_MUST_CHECK plumb_status plumb__workspace_reserve(plumb_network *network, int64_t rows,
                                                       plumb_error *err);
void plumb__workspace_free(plumb_network *network);
/* What evaluating `rows` rows takes, the backend's own working memory included. */
int64_t plumb__workspace_bytes(plumb_network *network, int64_t rows);

/* Which rows of a batch a layer works on (needed_rows.c, model.md section 7): decoder layers are
 * asked about a few trailing rows only. */
typedef struct plumb_needed_rows {
    int64_t input; /* first row whose normalised attention input is needed */
    int64_t key;   /* first row whose window key is needed */
    int64_t full;  /* first row that goes through the whole layer; rows: none */
    int64_t compress; /* first row that is compressed: where a pair begins, or row 0 */
} plumb_needed_rows;
plumb_needed_rows plumb__needed_rows(const plumb_model_config *config, const plumb_batch *batch,
                                     int64_t layer);
/* First position, at most `cached`, that any layer needs for the rows from `full` on, and the state after
 * them, when positions before `cached` are in the compressed caches.  From there on nothing reads the
 * rings. */
int64_t plumb__first_needed(const plumb_model_config *config, int64_t cached, int64_t full);
/* Whether the positions before `done`, evaluated on the way to a length of `end`, are all that the way to `other`
 * needs of them. */
bool plumb__serves_end(const plumb_model_config *config, int64_t cached, int64_t done, int64_t end, int64_t other);

/* work.out = attention of layer over work.x, for the rows needed (attention.c). */
void plumb__attention(plumb_network *network, const plumb_batch *batch, int64_t layer,
                      plumb_needed_rows needed);
/* Compresses rows from `first` on: appends to each sequence's caches what they do not hold (indexer.c). */
void plumb__compress(plumb_network *network, const plumb_batch *batch, int64_t layer, int64_t first);
/* Selects the lists of rows from `first` on (indexer.c). */
void plumb__index(plumb_network *network, const plumb_batch *batch, int64_t layer, int64_t first);
/* work.out = mixture of experts of layer over work.x, rows from `first` on (experts.c). */
PLUMB_MUST_CHECK plumb_status plumb__experts(plumb_network *network, const plumb_batch *batch,
                                             int64_t layer, int64_t first, plumb_error *err);
/* The same after the router, with experts from the source (experts.c). */
PLUMB_MUST_CHECK plumb_status plumb__experts_from_source(plumb_network *network,
                                                         const plumb_batch *batch, int64_t layer,
                                                         int64_t first, plumb_error *err);
/* What the router chose in a layer: [][k], of the rows that went through it, of a batch of `rows`. */
int32_t *plumb__expert_ids(const plumb_network *network, int64_t rows, int64_t layer);
/* Tells who listens, and the source when the backend found them by itself, which experts a layer's rows
 * from `first` on use. */
void plumb__experts_tell(plumb_network *network, const plumb_batch *batch, int64_t layer,
                         int64_t first);

/* Steps of the forward pass that a layer which was held up needs again (forward.c): the input mix of this
 * sublayer and of the next change places; what follows a layer's experts, rows from `first` on; faults
 * that operations met since the last look. */
void plumb__swap_mixes(plumb_network *network);
void plumb__layer_output(plumb_network *network, const plumb_batch *batch, int64_t layer,
                         int64_t first);
PLUMB_MUST_CHECK plumb_status plumb__network_check(plumb_network *network, const char *where,
                                                   int64_t layer, plumb_error *err);

/* Asks for the table rows of all Engram layers (engram.c). */
PLUMB_MUST_CHECK plumb_status plumb__engram_begin(plumb_network *network, const plumb_batch *batch,
                                                  plumb_error *err);
/* Batches' worth of gathered rows that there is room for. */
int64_t plumb__engram_stages(const plumb_network *network);
/* Adds the gated n-gram lookup to work.h, rows from `first` on. */
PLUMB_MUST_CHECK plumb_status plumb__engram(plumb_network *network, const plumb_batch *batch,
                                            int64_t layer, int64_t first, plumb_error *err);

#endif
