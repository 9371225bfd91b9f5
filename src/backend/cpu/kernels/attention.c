/* Attention core and compressor of one row (model.md 4.4, 4.5; docs/arithmetic.md section 6).
 *
 * Keys are visited in the contract's order: window positions, oldest first, then the selected
 * compressed positions, ascending.  They are unpacked tile by tile and used by all heads of the
 * call; scores are kept, so that probabilities are taken against the final maximum. */
#include "arith/functions.h"
#include "arith/lanes.h"
#include "backend/cpu/kernels/kernels.h"

enum { TILE = PLUMB_ATTENTION_TILE };

/* Key j of the row's list as floats. */
static void unpack_key(const plumb_attention_args *a, int64_t row, int64_t n_window, int64_t j,
                       float *key) {
    int64_t position = a->position + row;
    if (j >= n_window) {
        int64_t index = a->selected[row * a->selected_stride + (j - n_window)];
        plumb__compressed_unpack(a->compressed + index * plumb__compressed_row_bytes(a->dim),
                                 a->dim, key);
        return;
    }
    int64_t at = position - (n_window - 1) + j;
    const uint8_t *packed =
        at >= a->chunk_position
            ? a->chunk + (at - a->chunk_position) * plumb__window_row_bytes(a->dim)
            : a->ring + at % a->window * plumb__window_row_bytes(a->dim);
    plumb__window_unpack(packed, a->dim, key);
}

/* Turns scores into probabilities and returns the denominator: 32-lane sum of p, plus the sink. */
static float softmax(float *score, int64_t keys, float sink) {
    float most = score[0];
    for (int64_t j = 1; j < keys; j++) most = score[j] > most ? score[j] : most;
    for (int64_t j = 0; j < keys; j++) score[j] = plumb__exp(score[j] - most);
    float denominator = plumb__lanes_sum(score, keys) + plumb__exp(sink - most);
    for (int64_t j = 0; j < keys; j++) score[j] = plumb__load(plumb__store(score[j]));
    return denominator;
}

/* sum[d] = fma(p_j, v_j[d], sum[d]) over the tile's keys in order; a few d at a time stay in
 * registers for all of them. */
static void add_weighted(const float *tile, int64_t n, const float *p, int64_t dim, float *sum) {
    enum { STRIP = 32 };
    int64_t d = 0;
    for (; d + STRIP <= dim; d += STRIP) {
        float strip[STRIP];
        for (int i = 0; i < STRIP; i++) strip[i] = sum[d + i];
        for (int64_t j = 0; j < n; j++)
            for (int i = 0; i < STRIP; i++)
                strip[i] = plumb__fma(p[j], tile[j * dim + d + i], strip[i]);
        for (int i = 0; i < STRIP; i++) sum[d + i] = strip[i];
    }
    for (; d < dim; d++)
        for (int64_t j = 0; j < n; j++) sum[d] = plumb__fma(p[j], tile[j * dim + d], sum[d]);
}

/* scratch: tile [TILE][dim], query [heads][dim], numerator [heads][dim], denominator [heads],
 * score [heads][keys]: plumb__attention_scratch. */
void PLUMB_KERNEL(attention)(const plumb_attention_args *a, int64_t row, int64_t begin,
                             int64_t end, float *scratch) {
    int64_t dim = a->dim, heads = end - begin, position = a->position + row;
    int64_t n_window = position + 1 < a->window ? position + 1 : a->window;
    int64_t keys = n_window + (a->compressed ? a->selected_count[row] : 0);
    float *tile = scratch, *query = tile + TILE * dim, *numerator = query + heads * dim;
    float *denominator = numerator + heads * dim, *score = denominator + heads;
    const plumb_act *q = a->query + (row * a->heads + begin) * dim;
    for (int64_t i = 0; i < heads * dim; i++) query[i] = plumb__load(q[i]);
    memset(numerator, 0, (size_t)(heads * dim) * sizeof *numerator);

    for (int64_t j = 0; j < keys; j++) {
        unpack_key(a, row, n_window, j, tile);
        for (int64_t h = 0; h < heads; h++)
            score[h * keys + j] = plumb__lanes_dot(query + h * dim, tile, dim) * a->scale;
    }
    for (int64_t h = 0; h < heads; h++)
        denominator[h] = softmax(score + h * keys, keys, a->sink[begin + h]);
    for (int64_t first = 0; first < keys; first += TILE) {
        int64_t n = keys - first < TILE ? keys - first : TILE;
        for (int64_t j = 0; j < n; j++) unpack_key(a, row, n_window, first + j, tile + j * dim);
        for (int64_t h = 0; h < heads; h++)
            add_weighted(tile, n, score + h * keys + first, dim, numerator + h * dim);
    }
    plumb_act *out = a->out + (row * a->heads + begin) * dim;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t d = 0; d < dim; d++)
            out[h * dim + d] = plumb__store(numerator[h * dim + d] / denominator[h]);
}

/* Softmax over the two tokens of a pair, per channel; no fused multiply-add. */
void PLUMB_KERNEL(compress_pair)(const float *value, const float *gate, int64_t dim,
                                 plumb_act *latent) {
    for (int64_t d = 0; d < dim; d++) {
        float g0 = gate[d], g1 = gate[dim + d];
        float most = g0 > g1 ? g0 : g1;
        float e0 = plumb__exp(g0 - most), e1 = plumb__exp(g1 - most);
        float sum = e0 + e1;
        latent[d] = plumb__store((e0 / sum) * value[d] + (e1 / sum) * value[dim + d]);
    }
}
