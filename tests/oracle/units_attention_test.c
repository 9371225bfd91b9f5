/* Attention against the published kernel (sparse_attn of units.safetensors): nine rows of three heads
 * over up to 150 keys, in the order given, with holes, with a sink of 30 and of -50.
 *
 * Compiled twice.  With roundings: `o` is bf16 and the probabilities are rounded to bf16 for the sum
 * of values.  The published kernel rounds them against a running maximum over blocks of 64 keys and
 * ours against the final one, which is worth an ulp of o here and there.  Without roundings: against
 * `o_exact`, which the published formula gives with float32 probabilities. */
#include "backend/cpu/cpu_backend.h"
#include "bits.h"
#include "goldens.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>

#ifdef PLUMB_ROUNDING_OFF
enum { KEY_BYTES = 4 };
static void put_key(uint8_t *row, uint16_t value) {
    float wide = plumb__bf16_decode(value);
    memcpy(row, &wide, sizeof wide);
}
static void attend(const plumb_attention_args *a, float *scratch) {
    plumb__cpu_kernels_portable.attention(a, 0, 0, a->heads, scratch);
}
#else
#include "attention_bf16_keys.h"
enum { KEY_BYTES = 2 };
static void put_key(uint8_t *row, uint16_t value) { memcpy(row, &value, sizeof value); }
static void attend(const plumb_attention_args *a, float *scratch) {
    plumb__attention_bf16_keys(a, 0, 0, a->heads, scratch);
}
#endif

/* How far the outputs are from the goldens. */
typedef struct attention_result {
    int64_t rows;
    ulp_count short_rows, long_rows; /* bf16 outputs of rows with at most one block of keys, with more */
    double largest_step; /* of those that differ: in bf16 ulps of the head's largest output */
    double error;        /* largest difference from o_exact */
} attention_result;

#ifndef PLUMB_ROUNDING_OFF
/* fmax, on a loop of which gcc 12 for aarch64 breaks down. */
static double larger(double a, double b) {
    return b > a ? b : a;
}

/* One head.  An output close to zero has tiny ulps of its own, so the difference is measured in those of
 * the head's largest output. */
static void compare_head(attention_result *result, const plumb_act *out, const uint16_t *want,
                         int64_t dim, int64_t keys) {
    double most = 0;
    for (int64_t i = 0; i < dim; i++) most = larger(most, fabs((double)plumb__bf16_decode(want[i])));
    double ulp = ldexp(1, ilogb(most) - 7);
    ulp_count_bf16(keys <= 64 ? &result->short_rows : &result->long_rows, out, want, dim);
    for (int64_t i = 0; i < dim; i++) {
        double off = (double)plumb__load(out[i]) - (double)plumb__bf16_decode(want[i]);
        result->largest_step = larger(result->largest_step, fabs(off) / ulp);
    }
}
#endif

/* The row's keys in the golden's order: the first valid one stands in the window, which then holds
 * one position, the others in the compressed cache. */
static int64_t valid_keys(const int32_t *index, int64_t n, int32_t *list) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (index[i] >= 0) list[count++] = index[i];
    return count;
}

static void compare(attention_result *result, const plumb_act *out, golden o, golden exact,
                    int64_t row, int64_t keys) {
    int64_t heads = o.shape[1], dim = o.shape[2], first = row * heads * dim;
    result->rows++;
    for (int64_t i = 0; i < heads * dim; i++) {
        double off = fabs((double)plumb__load(out[i]) - (double)exact.f32[first + i]);
        if (!(off <= result->error)) result->error = off;
    }
#ifdef PLUMB_ROUNDING_OFF
    (void)keys;
#else
    for (int64_t h = 0; h < heads; h++)
        compare_head(result, out + h * dim, o.bf16 + first + h * dim, dim, keys);
#endif
}

static attention_result run_rows(goldens *g) {
    golden q = goldens_get(g, "sparse_attn.q", "BF16"), kv = goldens_get(g, "sparse_attn.kv", "BF16");
    golden index = goldens_get(g, "sparse_attn.idx", "I32");
    golden sink = goldens_get(g, "sparse_attn.sink", "F32");
    golden o = goldens_get(g, "sparse_attn.o", "BF16");
    golden exact = goldens_get(g, "sparse_attn.o_exact", "F32");
    int64_t heads = q.shape[1], dim = q.shape[2], slots = index.shape[1];
    uint8_t *keys = malloc((size_t)(kv.count * KEY_BYTES));
    int32_t *list = malloc((size_t)slots * sizeof *list);
    plumb_act *query = malloc((size_t)(heads * dim) * sizeof *query);
    plumb_act *out = malloc((size_t)(heads * dim) * sizeof *out);
    float *scratch = malloc((size_t)plumb__attention_scratch(dim, heads, slots) * sizeof *scratch);
    for (int64_t i = 0; i < kv.count; i++) put_key(keys + i * KEY_BYTES, kv.bf16[i]);
    attention_result result = {0};
    for (int64_t r = 0; r < q.shape[0]; r++) {
        int64_t count = valid_keys(index.i32 + r * slots, slots, list);
        if (count == 0) continue; /* the engine always has the position itself */
        for (int64_t i = 0; i < heads * dim; i++)
            query[i] = plumb__store(plumb__bf16_decode(q.bf16[r * heads * dim + i]));
        int32_t selected = (int32_t)(count - 1);
        plumb_attention_args args = {
            .query = query, .heads = heads, .dim = dim, .window = 1,
            .chunk = keys + list[0] * dim * KEY_BYTES, .compressed = keys, .selected = list + 1,
            .selected_count = &selected, .selected_stride = slots, .sink = sink.f32,
            .scale = 0.125f, .out = out};
        attend(&args, scratch);
        compare(&result, out, o, exact, r, count);
    }
    free(keys);
    free(list);
    free(query);
    free(out);
    free(scratch);
    return result;
}

static void attention(void) {
    goldens *g = goldens_open("oracle/units.safetensors");
    attention_result result = run_rows(g);
    goldens_close(g);
    printf("  %d rows, from o_exact at most %.2e\n", (int)result.rows, result.error);
    T_CHECK(result.rows == 8, "%d", (int)result.rows);
#ifdef PLUMB_ROUNDING_OFF
    T_CHECK(result.error <= 1e-6, "%g", result.error);
#else
    printf("  up to 64 keys: %d of %d outputs differ; more keys: %d of %d, by at most %.2f ulps\n",
           (int)result.short_rows.different, (int)result.short_rows.compared,
           (int)result.long_rows.different, (int)result.long_rows.compared, result.largest_step);
    T_CHECK(result.short_rows.compared > 0 && result.short_rows.different == 0, "%d",
            (int)result.short_rows.different);
    T_CHECK(result.long_rows.different * 10 <= result.long_rows.compared, "%d",
            (int)result.long_rows.different);
    T_CHECK(result.largest_step <= 1, "%g", result.largest_step);
    T_CHECK(result.error <= 1e-2, "%g", result.error);
#endif
}

T_MAIN({"attention", attention})
