/* Attention core and compressor of one row (model.md 4.4, 4.5; docs/arithmetic.md section 6).
 *
 * Keys are visited in the contract's order: window positions, oldest first, then the selected
 * compressed positions, ascending.  They are read packed, twice.  Scores need whole keys: a few are
 * unpacked into a tile that every head of the call uses.  Values need many keys of the same few
 * elements: a strip of thirty-two is unpacked for a long run of keys, so that the sums of a strip stay
 * where they are. */
#include "arith/functions.h"
#include "arith/lanes.h"
#include "backend/cpu/kernels/tiles.h"

enum { SCORE_KEYS = PLUMB_SCORE_KEYS, VALUE_KEYS = PLUMB_VALUE_KEYS };

/* The packed keys of a row, in order; the first n_window are window keys. */
typedef struct key_list {
    const uint8_t **key;
    int64_t count, n_window, dim;
} key_list;

static key_list list_keys(const plumb_attention_args *a, int64_t row, const uint8_t **key) {
    int64_t position = a->position + row;
    int64_t window_bytes = plumb__window_row_bytes(a->dim);
    int64_t compressed_bytes = plumb__compressed_row_bytes(a->dim);
    int64_t n_window = position + 1 < a->window ? position + 1 : a->window;
    int64_t n_compressed = a->compressed ? a->selected_count[row] : 0;
    for (int64_t j = 0; j < n_window; j++) {
        int64_t at = position - (n_window - 1) + j;
        key[j] = at >= a->chunk_position ? a->chunk + (at - a->chunk_position) * window_bytes
                                         : a->ring + at % a->window * window_bytes;
    }
    for (int64_t j = 0; j < n_compressed; j++)
        key[n_window + j] =
            a->compressed + a->selected[row * a->selected_stride + j] * compressed_bytes;
    return (key_list){key, n_window + n_compressed, n_window, a->dim};
}

/* Blocks [begin, end) of keys [first, first + n): out [n][end - begin][32]. */
static void unpack_keys(const key_list *list, int64_t first, int64_t n, int64_t begin, int64_t end,
                        float *out) {
    int64_t width = (end - begin) * PLUMB_BLOCK;
    for (int64_t j = first; j < first + n; j++, out += width) {
        if (j < list->n_window)
            PLUMB_KERNEL(unpack_window)(list->key[j], list->dim, begin, end, out);
        else
            PLUMB_KERNEL(unpack_compressed)(list->key[j], list->dim, begin, end, out);
    }
}

/* score[h][j] = query h . key j, not yet scaled. */
static void score_keys(const key_list *list, const float *query, int64_t heads, float *tile,
                       float *score) {
    for (int64_t first = 0; first < list->count; first += SCORE_KEYS) {
        int64_t n = list->count - first < SCORE_KEYS ? list->count - first : SCORE_KEYS;
        unpack_keys(list, first, n, 0, list->dim / PLUMB_BLOCK, tile);
        PLUMB_KERNEL(lane_products)(query, heads, tile, n, list->dim, score + first, list->count);
    }
}

static float most_of(const float *x, int64_t n) {
    float lane[PLUMB_LANES], most = x[0];
    for (int i = 0; i < PLUMB_LANES; i++) lane[i] = x[0];
    int64_t j = 0;
    for (; j + PLUMB_LANES <= n; j += PLUMB_LANES)
        for (int i = 0; i < PLUMB_LANES; i++) lane[i] = x[j + i] > lane[i] ? x[j + i] : lane[i];
    for (int i = 0; j + i < n; i++) lane[i] = x[j + i] > lane[i] ? x[j + i] : lane[i];
    for (int i = 0; i < PLUMB_LANES; i++) most = lane[i] > most ? lane[i] : most;
    return most;
}

/* Turns products into probabilities and returns the denominator: 32-lane sum of p, plus the sink. */
static float softmax(float *score, int64_t keys, float scale, float sink) {
    for (int64_t j = 0; j < keys; j++) score[j] = score[j] * scale;
    float most = most_of(score, keys);
    for (int64_t j = 0; j < keys; j++) score[j] = plumb__exp(score[j] - most);
    float denominator = plumb__lanes_sum(score, keys) + plumb__exp(sink - most);
    for (int64_t j = 0; j < keys; j++) score[j] = plumb__load(plumb__store(score[j]));
    return denominator;
}

/* Strip b of every head's output.  sum [heads][32]. */
static void sum_strip(const key_list *list, int64_t b, const float *p, const float *denominator,
                      int64_t heads, float *tile, float *sum, plumb_act *out) {
    memset(sum, 0, (size_t)(heads * PLUMB_STRIP) * sizeof *sum);
    for (int64_t first = 0; first < list->count; first += VALUE_KEYS) {
        int64_t n = list->count - first < VALUE_KEYS ? list->count - first : VALUE_KEYS;
        unpack_keys(list, first, n, b, b + 1, tile);
        PLUMB_KERNEL(add_weighted)(p + first, list->count, heads, tile, n, sum);
    }
    for (int64_t h = 0; h < heads; h++)
        for (int i = 0; i < PLUMB_STRIP; i++)
            out[h * list->dim + b * PLUMB_STRIP + i] =
                plumb__store(sum[h * PLUMB_STRIP + i] / denominator[h]);
}

/* scratch: tile, sum [heads][32], query [heads][dim], keys, score [heads][keys], denominator [heads]:
 * plumb__attention_scratch. */
void PLUMB_KERNEL(attention)(const plumb_attention_args *a, int64_t row, int64_t begin,
                             int64_t end, float *scratch) {
    int64_t dim = a->dim, heads = end - begin;
    float *tile = scratch, *sum = tile + plumb__attention_tile(dim);
    float *query = sum + heads * PLUMB_STRIP, *packed = query + heads * dim;
    key_list list = list_keys(a, row, (const uint8_t **)(void *)packed);
    float *score = packed + list.count * PLUMB_POINTER_FLOATS;
    float *denominator = score + heads * list.count;
    const plumb_act *q = a->query + (row * a->heads + begin) * dim;
    for (int64_t i = 0; i < heads * dim; i++) query[i] = plumb__load(q[i]);

    score_keys(&list, query, heads, tile, score);
    for (int64_t h = 0; h < heads; h++)
        denominator[h] = softmax(score + h * list.count, list.count, a->scale, a->sink[begin + h]);
    for (int64_t b = 0; b < dim / PLUMB_STRIP; b++)
        sum_strip(&list, b, score, denominator, heads, tile, sum,
                  a->out + (row * a->heads + begin) * dim);
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
