#include "streamed_model.h"

#include "backend/cpu/cpu_backend.h"
#include "measure.h"
#include "text/token_map.h"

#include <stdlib.h>

const plumb_model_config *bench_streamed_config(const bench_streamed *m) {
    return plumb__checkpoint_config(m->checkpoint);
}

plumb_status bench_streamed_open(const char *folder, int threads, const char *level,
                                 bench_streamed *m, plumb_error *err) {
    const char *chosen;
    *m = (bench_streamed){0};
    plumb_status status = plumb__checkpoint_open(folder, NULL, NULL, &m->checkpoint, err);
    if (status != PLUMB_OK) return status;
    const plumb_model_config *c = bench_streamed_config(m);
    status = plumb__token_map_load(folder, c->vocab, c->engram_folded_vocab, c->image_id,
                                   &m->token_map, err);
    if (status == PLUMB_OK)
        status = plumb__cpu_backend_create(threads, level, &m->backend, &chosen, err);
    if (status == PLUMB_OK) {
        bench_timed_backend_init(&m->timed, m->backend);
        m->timed.even_routes = true;
        status = plumb__network_open(m->checkpoint, &m->timed.base, NULL, m->token_map, &m->network,
                                     err);
    }
    if (status == PLUMB_OK) status = plumb__state_create(c, &m->timed.base, &m->state, err);
    if (status != PLUMB_OK) bench_streamed_close(m);
    return status;
}

void bench_streamed_close(bench_streamed *m) {
    plumb__state_destroy(m->state);
    plumb__network_close(&m->network);
    if (m->backend) m->backend->ops->close(m->backend);
    free(m->token_map);
    plumb__checkpoint_close(m->checkpoint);
    *m = (bench_streamed){0};
}

void bench_streamed_begin(bench_streamed *m, plumb_weight_source *source, const int32_t *tokens) {
    m->network.source = source;
    m->tokens = tokens;
    plumb__state_clear(m->state);
}

/* ---- One batch ------------------------------------------------------------------------------- */

typedef struct watch {
    bench_streamed *model;
    bench_pass *pass;
    double operations; /* seconds of operations at the latest end of a layer */
    double bytes;      /* read by then */
} watch;

static double bytes_read(const bench_streamed *m) {
    plumb_expert_cache_stats stats;
    plumb__expert_cache_get_stats(plumb__source_cache(m->network.source), &stats);
    return (double)stats.reads.bytes;
}

static void at_point(void *user, plumb_network *network, plumb_point point, int64_t layer,
                     int64_t rows) {
    watch *w = user;
    (void)network;
    (void)rows;
    bench_timed_backend *timed = &w->model->timed;
    if (point == PLUMB_POINT_LAYER_IN) {
        if (layer == 0) w->pass->outside = w->operations = timed->seconds;
        timed->seconds_routed = -1;
    } else if (point == PLUMB_POINT_LAYER_OUT) {
        double bytes = bytes_read(w->model);
        w->pass->layer[layer] = (bench_layer_pass){
            .before = timed->seconds_routed - w->operations,
            .after = timed->seconds - timed->seconds_routed,
            .bytes = bytes - w->bytes};
        w->operations = timed->seconds;
        w->bytes = bytes;
    }
}

static int ignore_logits(void *user, int64_t position, const float *logits) {
    (void)user;
    (void)position;
    (void)logits;
    return 0;
}

plumb_status bench_streamed_run(bench_streamed *m, int64_t rows, bench_pass *pass,
                                plumb_error *err) {
    *pass = (bench_pass){0};
    bench_timed_backend_clear(&m->timed);
    watch w = {.model = m, .pass = pass, .bytes = bytes_read(m)};
    /* An end at the first row: every layer works on every row, as the first twenty of the model do;
     * in a slice, the last ones would need a few trailing rows only. */
    plumb_batch batch = {.state = m->state, .tokens = m->tokens, .rows = rows,
                         .end = m->state->length + 1, .first_logits = rows - 1,
                         .sink = ignore_logits, .observe = at_point, .observe_user = &w};
    double start = bench_now();
    plumb_status status = plumb__network_forward(&m->network, &batch, err);
    pass->seconds = bench_now() - start;
    pass->outside += m->timed.seconds - w.operations;
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

const char *bench_streamed_shard(const bench_streamed *m, int64_t layer) {
    const plumb_tensor *codes = plumb__checkpoint_find(
        m->checkpoint, "layers.%lld.ffn.experts.0.w1.weight", (long long)layer);
    return plumb__checkpoint_shard_path(m->checkpoint, codes->shard);
}
