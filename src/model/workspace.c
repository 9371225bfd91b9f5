/* Working memory of a batch: allocated for the largest batch so far, reused by every layer. */
#include "model/network.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

void plumb__workspace_free(plumb_network *n) {
    plumb_workspace *w = &n->work;
    for (int64_t i = 0; i < w->n_blocks; i++) n->backend->ops->release(n->backend, w->blocks[i]);
    free(w->blocks);
    *w = (plumb_workspace){0};
}

/* A request: `count` items of `size` bytes for *where. */
typedef struct request {
    void *where; /* address of a pointer member */
    int64_t count;
    size_t size;
} request;

static plumb_status allocate_all(plumb_network *n, const request *requests, int64_t count,
                                 plumb_error *err) {
    plumb_workspace *w = &n->work;
    w->blocks = plumb__grow(NULL, &w->block_capacity, count, sizeof *w->blocks);
    if (!w->blocks) return plumb__fail_memory(err, "workspace", (size_t)count * sizeof(void *));
    for (int64_t i = 0; i < count; i++) {
        int64_t bytes = requests[i].count * (int64_t)requests[i].size;
        void *memory = n->backend->ops->allocate(n->backend, bytes);
        if (!memory) {
            plumb__workspace_free(n);
            return plumb__fail_memory(err, "workspace", (size_t)bytes);
        }
        w->blocks[w->n_blocks++] = memory;
        memcpy(requests[i].where, &memory, sizeof memory);
    }
    return PLUMB_OK;
}

enum { MOST_REQUESTS = 64 };

/* Everything a batch of `rows` rows needs; returns the number of requests. */
static int64_t list_requests(plumb_network *n, int64_t rows, request list[MOST_REQUESTS]) {
    const plumb_model_config *c = n->config;
    plumb_workspace *w = &n->work;
    plumb_backend *b = n->backend;
    int64_t hidden = c->hidden, dim = c->head_dim, k = c->experts_per_token;
    int64_t pairs = c->rope_dim / 2, columns = (c->engram_ngram - 1) * c->engram_heads;
    int64_t engram_width = columns * c->engram_dim, grouped = c->o_groups * c->o_rank;
    int64_t index_rows = rows * c->index_heads;
    int64_t steps = rows < PLUMB_MOST_STEPS ? rows : PLUMB_MOST_STEPS; /* of so many sequences at once */
    int64_t kept = rows < c->window ? rows : c->window;
    if (kept < steps) kept = steps;
    int64_t (*q_bytes)(plumb_backend *, int64_t, int64_t) = b->ops->quantized_bytes;
    const size_t act = sizeof(plumb_act), f32 = sizeof(float), i32 = sizeof(int32_t);
    const request requests[] = {
        {&w->embedding, rows * hidden, sizeof(uint16_t)},
        {&w->h, rows * PLUMB_HC * hidden, act},
        {&w->x, rows * hidden, act},
        {&w->out, rows * hidden, act},
        {&w->xq, q_bytes(b, rows, hidden), 1},
        {&w->pre, rows * PLUMB_HC, f32},
        {&w->pre_next, rows * PLUMB_HC, f32},
        {&w->post, rows * PLUMB_HC, f32},
        {&w->comb, rows * PLUMB_HC * PLUMB_HC, f32},
        {&w->q_low, rows * c->q_rank, act},
        {&w->q_low_q, q_bytes(b, rows, c->q_rank), 1},
        {&w->query, rows * c->heads * dim, act},
        {&w->attended, rows * c->heads * dim, act},
        {&w->kv, rows * dim, act},
        {&w->chunk, rows * plumb__window_row_bytes(dim), 1},
        {&w->group_out, rows * grouped, act},
        {&w->group_out_q, q_bytes(b, rows, grouped), 1},
        {&w->pair_value, (1 + rows) * dim, f32},
        {&w->pair_gate, (1 + rows) * dim, f32},
        {&w->latent, (1 + rows) * dim, act},
        {&w->index_key, (1 + rows) * c->index_dim, act},
        {&w->index_query, index_rows * c->index_dim, act},
        {&w->index_query_packed, index_rows * plumb__index_row_bytes(c->index_dim), 1},
        {&w->index_proj, index_rows, act},
        {&w->index_weight, index_rows, f32},
        {&w->selected, rows * n->top_k, i32},
        {&w->selected_count, rows, i32},
        {&w->pool, rows * n->pool_blocks, i32},
        {&w->pool_count, rows, i32},
        {&w->router_logits, rows * c->experts, f32},
        {&w->expert_ids, c->layers * rows * k, i32},
        {&w->expert_weights, rows * k, f32},
        {&w->slot_weights, rows * (k + 1), f32},
        {&w->slots, rows * (k + 1), i32},
        {&w->slot_end, c->experts, i32},
        {&w->slot_where, rows * (k + 1), i32},
        {&w->distinct, c->experts, i32},
        {&w->distinct_rows, c->experts, i32},
        {&w->groups, c->experts, sizeof(plumb_expert_group)},
        {&w->expert_out, rows * (k + 1) * hidden, act},
        {&w->guessed_ids, rows * k, i32},
        {&w->guessed_weights, rows * k, f32},
        {&w->engram_rows, c->engram_layers * rows * columns, sizeof(int64_t)},
        {&w->engram_codes, rows * engram_width, 1},
        {&w->engram_scales, rows * engram_width / PLUMB_BLOCK, 1},
        {&w->engram_in, plumb__engram_stages(n) * rows * engram_width, act},
        {&w->engram_in_q, q_bytes(b, rows, engram_width), 1},
        {&w->engram_kv, rows * (PLUMB_HC + 1) * hidden, act},
        {&w->live, rows, 1},
        {&w->cosine[0], rows * pairs, f32},
        {&w->cosine[1], rows * pairs, f32},
        {&w->sine[0], rows * pairs, f32},
        {&w->sine[1], rows * pairs, f32},
        {&w->pair_cosine, (1 + rows) * pairs, f32},
        {&w->pair_sine, (1 + rows) * pairs, f32},
        {&w->pending_ring, c->layers * kept * plumb__window_row_bytes(dim), 1},
        {&w->pending_carry, c->layers * steps * 2 * dim, f32},
        {&w->logits, PLUMB_HEAD_ROWS * c->vocab, f32},
    };
    _Static_assert(sizeof requests <= MOST_REQUESTS * sizeof *requests, "room for the list");
    memcpy(list, requests, sizeof requests);
    return (int64_t)(sizeof requests / sizeof requests[0]);
}

int64_t plumb__workspace_bytes(plumb_network *n, int64_t rows) {
    request list[MOST_REQUESTS];
    int64_t bytes = 0, count = list_requests(n, rows, list);
    for (int64_t i = 0; i < count; i++) bytes += list[i].count * (int64_t)list[i].size;
    const plumb_model_config *c = n->config;
    int64_t grouped = c->heads * c->head_dim / c->o_groups;
    bytes += c->engram_layers * plumb__engram_rows_bytes(
                                    c, rows * (c->engram_ngram - 1) * c->engram_heads);
    return bytes + n->backend->ops->working_bytes(n->backend, rows,
                                                  grouped > c->hidden ? grouped : c->hidden,
                                                  rows * (c->experts_per_token + 1), c->inter);
}

plumb_status plumb__workspace_reserve(plumb_network *n, int64_t rows, plumb_error *err) {
    if (rows <= n->work.rows) return PLUMB_OK;
    plumb__workspace_free(n);
    request list[MOST_REQUESTS];
    plumb_status status = allocate_all(n, list, list_requests(n, rows, list), err);
    if (status != PLUMB_OK) return status;
    n->work.rows = rows;
    /* Every position of text is live; positions inside an image span are not. */
    memset(n->work.live, 1, (size_t)rows);
    return PLUMB_OK;
}
