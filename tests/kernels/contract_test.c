/* The orders and roundings of docs/arithmetic.md sections 4, 6, 8 and 10, written a second time and
 * as plainly as the page writes them, against the kernels of every level, bit for bit.
 *
 * Published data cannot tell these orders apart (the published code leaves them to a library); only
 * the elementary functions are shared with the kernels, since tests/arith proves them. */
#include "arith/float_env.h"
#include "arith/functions.h"
#include "backend/cpu/kernels/kernels.h"
#include "kernels/arena.h"

#include <math.h>

#include "t.h"

static const plumb_cpu_kernels *level;

/* ---- The page, in code ------------------------------------------------------------------------
 */

/* The nearer of the two bf16 neighbours, the even one of two equally near. */
static float bf16(float x) {
    if (x == 0.0f || isinf(x)) return x;
    uint32_t bits = plumb__bits_of(x), below = bits & 0xFFFF0000u;
    double low = (double)plumb__float_of(below), high = (double)plumb__float_of(below + 0x10000u);
    double to_low = fabs((double)x - low), to_high = fabs(high - (double)x);
    bool up = to_high < to_low || (to_high == to_low && (below >> 16 & 1));
    return plumb__float_of(up ? below + 0x10000u : below);
}

static plumb_act stored(float x) {
    return (plumb_act)(plumb__bits_of(bf16(x)) >> 16);
}
static float loaded(plumb_act x) {
    return plumb__float_of((uint32_t)x << 16);
}

/* a_i = a_i + a_(i + half), and so on: the value of lane i after the steps from `half` down. */
static float joined(const float *lane, int i, int half) {
    if (half == 32) return lane[i];
    return joined(lane, i, 2 * half) + joined(lane, i + half, 2 * half);
}

/* x . y, or the sum of x where y is NULL. */
static float lanes(const float *x, const float *y, int64_t n) {
    float lane[32];
    for (int64_t j = 0; j < 32; j++) {
        lane[j] = 0.0f;
        for (int64_t k = j; k < n; k += 32)
            lane[j] = y ? fmaf(x[k], y[k], lane[j]) : lane[j] + x[k];
    }
    return joined(lane, 0, 1);
}

/* ---- Cases
 * --------------------------------------------------------------------------------------- */

enum { MOST = 256 };

static bool same(float a, float b) {
    return plumb__bits_of(a) == plumb__bits_of(b);
}

static void inner_products(void) {
    for (int64_t n = 1; n < MOST; n += 3) {
        const float *x = arena_float_block(n, ARENA_PLAIN), *w = arena_float_block(n, ARENA_PLAIN);
        plumb_matrix m = {.type = PLUMB_MATRIX_F32, .n = 1, .k = n, .codes = w};
        float y = 0.0f;
        level->linear(x, n, 1, &m, 0, 1, NULL, &y, 1,
                      arena_scratch(plumb__linear_scratch_bytes(n)));
        T_CHECK(same(y, lanes(x, w, n)), "%s: linear, k %" PRId64, level->level, n);
        T_CHECK(same(level->mean_square(x, n), lanes(x, x, n) / (float)n), "%s: mean of squares",
                level->level);
    }
}

static void many_inner_products(void) {
    enum { ROWS = 3, COLUMNS = 5 };
    static const int64_t lengths[] = {32, 64, 512, 1024, 1056, 2080};
    int64_t n = ARENA_PICK(lengths);
    const float *x = arena_float_block(ROWS * n, ARENA_PLAIN);
    const float *y = arena_float_block(COLUMNS * n, ARENA_PLAIN);
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        float out[ROWS * COLUMNS];
        level->lane_products(x, rows, y, COLUMNS, n, out, COLUMNS);
        for (int64_t i = 0; i < rows * COLUMNS; i++)
            T_CHECK(same(out[i], lanes(x + i / COLUMNS * n, y + i % COLUMNS * n, n)),
                    "%s: product %" PRId64 " of %" PRId64 " rows, k %" PRId64, level->level, i,
                    rows, n);
    }
}

static void rms_norm(void) {
    for (int64_t n = 1; n < MOST; n += 5) {
        float wide[MOST], scratch[MOST];
        plumb_act y[MOST];
        const plumb_act *x = arena_act_block(n, ARENA_PLAIN);
        const float *w = arena_float_block(n, ARENA_PLAIN);
        for (int64_t i = 0; i < n; i++) wide[i] = loaded(x[i]);
        float r = 1.0f / sqrtf(lanes(wide, wide, n) / (float)n + 1e-6f);
        level->rms_norm(x, n, w, 1e-6f, y, scratch);
        int64_t differ = 0;
        for (int64_t i = 0; i < n; i++) differ += y[i] != stored(w[i] * (wide[i] * r));
        T_CHECK(differ == 0, "%s: norm of %" PRId64, level->level, n);
    }
}

static void hyper_connections(void) {
    enum { N = 70 };
    const plumb_act *h = arena_act_block(4 * N, ARENA_PLAIN), *a = arena_act_block(N, ARENA_PLAIN);
    const float *post = arena_float_block(4, ARENA_PLAIN), *c = arena_float_block(16, ARENA_PLAIN);
    plumb_act *updated = arena_copy(h, 4 * N, sizeof *updated), x[N];
    level->hc_update(updated, a, post, c, N);
    level->hc_collapse(h, post, N, x);
    int64_t differ = 0;
    for (int i = 0; i < N; i++) {
        float h0 = loaded(h[i]), h1 = loaded(h[N + i]), h2 = loaded(h[2 * N + i]);
        float h3 = loaded(h[3 * N + i]);
        for (int k = 0; k < 4; k++) {
            float mixed = ((c[k] * h0 + c[4 + k] * h1) + c[8 + k] * h2) + c[12 + k] * h3;
            differ += updated[k * N + i] != stored((post[k] * loaded(a[i])) + mixed);
        }
        differ += x[i] != stored(((post[0] * h0 + post[1] * h1) + post[2] * h2) + post[3] * h3);
    }
    T_CHECK(differ == 0, "%s: %" PRId64 " of %d", level->level, differ, 5 * N);
}

static void compressor_pair(void) {
    enum { N = 90 };
    const float *u = arena_float_block(2 * N, ARENA_PLAIN),
                *g = arena_float_block(2 * N, ARENA_PLAIN);
    plumb_act latent[N];
    level->compress_pair(u, g, N, latent);
    int64_t differ = 0;
    for (int d = 0; d < N; d++) {
        float most = fmaxf(g[d], g[N + d]);
        float e0 = plumb__exp(g[d] - most), e1 = plumb__exp(g[N + d] - most);
        float w0 = e0 / (e0 + e1), w1 = e1 / (e0 + e1);
        differ += latent[d] != stored(w0 * u[d] + w1 * u[N + d]);
    }
    T_CHECK(differ == 0, "%s: %" PRId64 " of %d", level->level, differ, N);
}

/* Three roundings to bf16; heads in order. */
static void index_scores(void) {
    enum { HEADS = 7, DIM = 64, KEYS = 61 };
    int64_t row_bytes = plumb__index_row_bytes(DIM);
    uint8_t query[HEADS * DIM], keys[KEYS * DIM];
    float wide[DIM], q[HEADS][DIM], k[KEYS][DIM], score[KEYS];
    for (int i = 0; i < HEADS + KEYS; i++) {
        uint8_t *row = i < HEADS ? query + i * row_bytes : keys + (i - HEADS) * row_bytes;
        arena_floats(wide, DIM, ARENA_PLAIN);
        level->pack_index(wide, DIM, row);
        plumb__index_unpack(row, DIM, i < HEADS ? q[i] : k[i - HEADS]);
    }
    float weight[HEADS];
    for (int h = 0; h < HEADS; h++) {
        arena_floats(&weight[h], 1, ARENA_PLAIN);
        weight[h] = bf16(weight[h]);
    }
    plumb_index_args args = {
        .query = query, .weight = weight, .keys = keys, .heads = HEADS, .dim = DIM};
    float *scratch = arena_scratch(4 * plumb__index_scratch(HEADS, DIM));
    T_CHECK(level->index_scores(&args, 0, NULL, KEYS, score, scratch), "%s", level->level);
    for (int j = 0; j < KEYS; j++) {
        float sum = 0.0f;
        for (int h = 0; h < HEADS; h++) {
            float t = bf16(lanes(q[h], k[j], DIM));
            t = t > 0.0f ? t : 0.0f;
            sum = sum + bf16(t * weight[h]);
        }
        T_CHECK(same(score[j], bf16(sum)), "%s: key %d: %a instead of %a", level->level, j,
                (double)score[j], (double)bf16(sum));
    }
}

/* Some heads of one row whose window lies partly in the ring, and some compressed positions: more keys
 * than a tile has, and not a multiple of anything.  The scale spreads the probabilities: where one key has them all, no order shows.  Rounded to bf16 it rarely
 * shows at all, but it does where two keys of equal probability cancel and what came between them
 * is lost. */
static void attention_of(bool cancelling) {
    enum { HEADS = 7, BEGIN = 1, END = 6, DIM = 64, WINDOW = 140, POSITION = 157, LATENTS = 30 };
    enum { KEYS = WINDOW + 9, ROW = HEADS * DIM };
    static const int32_t selected[9] = {0, 1, 4, 5, 11, 12, 20, 28, 29}, count[2] = {0, 9};
    uint8_t ring[WINDOW * 2 * DIM], chunk[2 * 2 * DIM], latents[LATENTS * 2 * DIM];
    float wide[DIM], key[KEYS][DIM];
    int64_t window_bytes = plumb__window_row_bytes(DIM);
    int64_t latent_bytes = plumb__compressed_row_bytes(DIM);
    /* Positions 0..158; the row at 158 is the chunk's second. */
    for (int p = 0; p <= POSITION + 1; p++) {
        uint8_t *row = p >= POSITION ? chunk + (p - POSITION) * window_bytes
                                     : ring + p % WINDOW * window_bytes;
        int place = p - (POSITION + 1 - (WINDOW - 1));
        arena_floats(wide, DIM, ARENA_PLAIN);
        if (cancelling && (place == 5 || place == 30))
            for (int d = 0; d < DIM; d++) wide[d] = place == 5 ? 0x1p26f : -0x1p26f;
        level->pack_window(wide, DIM, row);
        if (place >= 0) plumb__window_unpack(row, DIM, key[place]);
    }
    for (int i = 0; i < LATENTS; i++) {
        arena_floats(wide, DIM, ARENA_PLAIN);
        level->pack_compressed(wide, DIM, latents + i * latent_bytes);
    }
    for (int i = 0; i < 9; i++)
        plumb__compressed_unpack(latents + selected[i] * latent_bytes, DIM, key[WINDOW + i]);
    plumb_act *query = arena_block(2 * ROW, sizeof *query);
    arena_acts(query, 2 * ROW, ARENA_PLAIN);
    if (cancelling) memset(query, 0, 2 * ROW * sizeof *query);
    int32_t lists[18] = {0};
    memcpy(lists + 9, selected, sizeof selected);
    plumb_act out[2 * ROW] = {0};
    const float *sink = arena_float_block(HEADS, ARENA_PLAIN);
    plumb_attention_args args = {.query = query,
                                 .heads = HEADS,
                                 .dim = DIM,
                                 .window = WINDOW,
                                 .position = POSITION,
                                 .ring = ring,
                                 .chunk = chunk,
                                 .chunk_position = POSITION,
                                 .compressed = latents,
                                 .selected = lists,
                                 .selected_count = count,
                                 .selected_stride = 9,
                                 .sink = sink,
                                 .scale = 0.004f,
                                 .out = out};
    level->attention(&args, 1, BEGIN, END,
                     arena_scratch(4 * plumb__attention_scratch(DIM, END - BEGIN, KEYS)));
    int64_t differ = 0;
    for (int h = BEGIN; h < END; h++) {
        float q[DIM], p[KEYS], most = -INFINITY;
        for (int d = 0; d < DIM; d++) q[d] = loaded(query[ROW + h * DIM + d]);
        for (int j = 0; j < KEYS; j++) {
            p[j] = lanes(q, key[j], DIM) * args.scale;
            most = p[j] > most ? p[j] : most;
        }
        for (int j = 0; j < KEYS; j++) p[j] = plumb__exp(p[j] - most);
        float denominator = lanes(p, NULL, KEYS) + plumb__exp(sink[h] - most);
        for (int d = 0; d < DIM; d++) {
            float sum = 0.0f;
            for (int j = 0; j < KEYS; j++) sum = fmaf(bf16(p[j]), key[j][d], sum);
            differ += out[ROW + h * DIM + d] != stored(sum / denominator);
        }
        T_CHECK(denominator > 2.0f, "%s: one key has it all", level->level);
    }
    T_CHECK(differ == 0, "%s: %" PRId64 " of %d", level->level, differ, (END - BEGIN) * DIM);
}

static void attention(void) {
    attention_of(false);
    attention_of(true);
}

static void router_and_sum(void) {
    enum { EXPERTS = 40, K = 6, N = 64 };
    const float *logits = arena_float_block(EXPERTS, ARENA_PLAIN);
    const float *bias = arena_float_block(EXPERTS, ARENA_PLAIN);
    int32_t ids[K];
    float weights[K], scratch[2 * EXPERTS], score[EXPERTS], sum = 0.0f;
    T_CHECK(level->route(logits, bias, EXPERTS, K, 1.5f, ids, weights, scratch), "%s",
            level->level);
    for (int e = 0; e < EXPERTS; e++) score[e] = sqrtf(plumb__softplus(logits[e]));
    for (int i = 0; i < K; i++) {
        int better = 0;
        for (int e = 0; e < EXPERTS; e++)
            better += score[e] + bias[e] > score[ids[i]] + bias[ids[i]];
        T_CHECK(better < K && (i == 0 || ids[i] > ids[i - 1]), "%s: expert %d", level->level,
                ids[i]);
        sum = sum + score[ids[i]];
    }
    for (int i = 0; i < K; i++)
        T_CHECK(same(weights[i], score[ids[i]] / (sum + 1e-20f) * 1.5f), "%s: weight %d",
                level->level, i);
    const plumb_act *y[3];
    plumb_act out[N];
    for (int s = 0; s < 3; s++) y[s] = arena_act_block(N, ARENA_PLAIN);
    level->moe_sum(y, 3, N, out);
    for (int i = 0; i < N; i++)
        T_CHECK(out[i] == stored((loaded(y[0][i]) + loaded(y[1][i])) + loaded(y[2][i])), "%s: sum",
                level->level);
}

static void engram_gate(void) {
    enum { N = 75 };
    const plumb_act *h = arena_act_block(4 * N, ARENA_PLAIN),
                    *kv = arena_act_block(5 * N, ARENA_PLAIN);
    const float *qw = arena_float_block(4 * N, ARENA_PLAIN),
                *kw = arena_float_block(4 * N, ARENA_PLAIN);
    plumb_act *got = arena_copy(h, 4 * N, sizeof *got);
    float scratch[3 * N], copy[N], key[N], term[N], factor = 0.11547005f;
    level->engram_gate(got, kv, qw, kw, N, 1e-6f, factor, scratch);
    int64_t differ = 0;
    for (int c = 0; c < 4; c++) {
        for (int i = 0; i < N; i++) {
            copy[i] = loaded(h[c * N + i]);
            key[i] = loaded(kv[c * N + i]);
            term[i] = (copy[i] * (qw[c * N + i] * kw[c * N + i])) * key[i];
        }
        float rs = 1.0f / sqrtf(lanes(copy, copy, N) / (float)N + 1e-6f);
        rs = rs * (1.0f / sqrtf(lanes(key, key, N) / (float)N + 1e-6f));
        float dot = (lanes(term, NULL, N) * rs) * factor;
        float root = sqrtf(fmaxf(fabsf(dot), 1e-6f));
        float gate = 1.0f / (1.0f + plumb__exp(dot < 0.0f ? root : -root));
        for (int i = 0; i < N; i++)
            differ += got[c * N + i] != stored(copy[i] + gate * loaded(kv[4 * N + i]));
    }
    T_CHECK(differ == 0, "%s: %" PRId64 " of %d", level->level, differ, 4 * N);
}

/* Runs a case a few times at every level, under the contract's modes. */
static void at_every_level(void (*run)(void)) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n_levels = plumb__cpu_kernel_levels(levels);
    for (int l = 0; l < n_levels; l++) {
        level = levels[l];
        arena_seed(11);
        for (int round = 0; round < 20; round++) {
            uint64_t modes;
            plumb__float_env_enter(&modes);
            run();
            plumb__float_env_leave(modes);
            T_CHECK(arena_free_all(), "%s wrote outside", level->level);
        }
    }
}

#define CASE(name)                                                                                 \
    static void test_##name(void) {                                                                \
        at_every_level(name);                                                                      \
    }
CASE(inner_products)
CASE(many_inner_products)
CASE(rms_norm)
CASE(hyper_connections)
CASE(compressor_pair)
CASE(index_scores)
CASE(attention)
CASE(router_and_sum)
CASE(engram_gate)

T_MAIN({"inner_products", test_inner_products},
       {"many_inner_products", test_many_inner_products}, {"rms_norm", test_rms_norm},
       {"hyper_connections", test_hyper_connections}, {"compressor_pair", test_compressor_pair},
       {"index_scores", test_index_scores}, {"attention", test_attention},
       {"router_and_sum", test_router_and_sum}, {"engram_gate", test_engram_gate})
