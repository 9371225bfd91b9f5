/* Time of one token through the whole model, and of a prompt through some of its layers, with
 * weights of the released shapes in memory; beside it the least time that their bytes or their
 * operations allow, and where the difference goes (bench/README.md). */
#include "backend/cpu/cpu_backend.h"
#include "base/memory_read.h"
#include "measure.h"
#include "options.h"
#include "product.h"
#include "resident_network.h"
#include "step_report.h"
#include "timed_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 200, LEAST_DECODES = 3, SAMPLE_BYTES = 512 << 20 };

typedef struct step {
    double seconds;
    const char *only, *level;
    int64_t context, prefill, experts;
    bench_list layers, prefill_layers;
    bool csv;
    int threads;
    plumb_backend *backend;
    plumb_pool *pool; /* reads with it */
    bench_random random;
    plumb_model_config config;
} step;

/* ---- One run --------------------------------------------------------------------------------- */

/* Follows a forward pass from point to point. */
typedef struct watch {
    bench_timed_backend *timed;
    bench_run *run;
    double time, bytes, flops[BENCH_WORK_KINDS]; /* at the latest point */
} watch;

static void pass(watch *w, bench_layer_kind kind) {
    double now = bench_now();
    w->run->kind_seconds[kind] += now - w->time;
    w->run->kind_bytes[kind] += w->timed->bytes - w->bytes;
    for (int i = 0; i < BENCH_WORK_KINDS; i++) {
        w->run->kind_flops[kind][i] += w->timed->flops[i] - w->flops[i];
        w->flops[i] = w->timed->flops[i];
    }
    w->time = now;
    w->bytes = w->timed->bytes;
}

static void at_point(void *user, plumb_network *network, plumb_point point, int64_t layer,
                     int64_t rows) {
    (void)rows;
    switch (point) {
    case PLUMB_POINT_LAYER_IN: pass(user, BENCH_HEAD); break;
    case PLUMB_POINT_ENGRAM_OUT: pass(user, BENCH_ENGRAM); break;
    case PLUMB_POINT_LAYER_OUT: pass(user, bench_kind_of(network->config, layer)); break;
    default: break;
    }
}

static int ignore_logits(void *user, int64_t position, const float *logits) {
    (void)user;
    (void)position;
    (void)logits;
    return 0;
}

static double read_rate(const step *s, const bench_network *network) {
    int64_t bytes;
    const void *sample = bench_network_sample(network, &bytes);
    if (bytes > SAMPLE_BYTES) bytes = SAMPLE_BYTES;
    double start = bench_now();
    uint64_t volatile sum = plumb__memory_read(s->pool, sample, bytes);
    (void)sum;
    return (double)bytes / (bench_now() - start);
}

/* `rows` tokens after those that the state holds; one alone goes through the head, a prompt stops
 * after the layers. */
static plumb_status run_once(const step *s, bench_network *network, bench_timed_backend *timed,
                             int64_t rows, bench_run *run, plumb_error *err) {
    *run = (bench_run){.read_rate = read_rate(s, network)};
    bench_timed_backend_clear(timed);
    watch w = {.timed = timed, .run = run};
    /* An end at the first row: every layer works on every row, even above the last layer that makes
     * keys, where a prompt needs a few trailing rows only. */
    plumb_batch batch = {.state = network->state, .tokens = network->tokens, .rows = rows,
                         .end = network->state->length + 1,
                         .first_logits = rows > 1 ? rows : 0, .sink = ignore_logits, .observe = at_point,
                         .observe_user = &w};
    double start = w.time = bench_now();
    plumb_status status = plumb__network_forward(&network->network, &batch, err);
    pass(&w, BENCH_HEAD);
    run->seconds = w.time - start;
    run->bytes = timed->bytes;
    run->ops = timed->ops;
    memcpy(run->op, timed->op, (size_t)timed->ops * sizeof *timed->op);
    return status;
}

/* Runs until the time is up; positions move on from `length`, or stay there for a prompt. */
static plumb_status run_many(const step *s, bench_network *network, bench_timed_backend *timed,
                             int64_t rows, int64_t least, bench_report *report, plumb_error *err) {
    bench_run warm;
    bool prompt = rows > 1;
    network->state->length = prompt ? 0 : s->context;
    plumb_status status = PLUMB_OK;
    if (!prompt) status = run_once(s, network, timed, rows, &warm, err);
    double start = bench_now();
    while (status == PLUMB_OK && report->runs < MOST_RUNS &&
           (report->runs < least || bench_now() - start < s->seconds)) {
        if (prompt) plumb__state_clear(network->state);
        status = run_once(s, network, timed, rows, &report->run[report->runs++], err);
    }
    return status;
}

/* ---- Decode and prefill ---------------------------------------------------------------------- */

/* Runs of a network of `layers`, printed under `title`.  work_rate as in bench_report. */
static bool measure(step *s, const char *title, const bench_list *layers, int64_t rows,
                    int64_t least, const double *work_rate) {
    plumb_model_config config = s->config;
    plumb_error err = {0};
    const char *reason = "";
    if (layers->count > 0 && !bench_keep_layers(&config, layers->value, layers->count, &reason)) {
        fprintf(stderr, "layers: %s\n", reason);
        return false;
    }
    bench_timed_backend timed;
    bench_timed_backend_init(&timed, s->backend);
    bench_network *network = NULL;
    int64_t positions = rows > 1 ? rows : s->context + MOST_RUNS + 1;
    bench_report report = {.config = &config, .whole = &s->config, .rows = rows,
                           .work_rate = work_rate, .csv = s->csv, .threads = s->threads,
                           .run = calloc(MOST_RUNS, sizeof *report.run)};
    if (!report.run) return false;
    bool good = bench_explain(bench_network_create(&timed.base, &config, s->experts, positions, &s->random,
                                             &network, &err), &err);
    if (good)
        good = bench_explain(run_many(s, network, &timed, rows, least, &report, &err), &err);
    if (good) {
        if (!s->csv)
            printf("\n%s; %.2f GB of weights in memory, read at %.1f GB/s\n", title,
                   1e-9 * (double)network->weight_bytes,
                   1e-9 * report.run[report.runs / 2].read_rate);
        bench_report_print(&report);
    }
    bench_network_destroy(network);
    free(report.run);
    return good;
}

/* Speed of one kind of product by itself, in operations per second; 0: no memory. */
static double product_rate(step *s, const bench_shape *shape) {
    static const double sweep_bytes = 64e6, most_flops = 3e10;
    bench_product product;
    bench_result result;
    int64_t copies = bench_product_copies(shape, sweep_bytes, most_flops);
    if (!bench_product_create(s->backend, &s->random, shape, copies, &product)) return 0;
    bench_contender contender = {bench_product_run, &product};
    bench_compare(&contender, 1, s->seconds / 4, &result);
    double rate = bench_product_flops(&product) / result.seconds[0];
    bench_product_destroy(&product);
    return rate;
}

static bool measure_prefill(step *s) {
    enum { MANY = 512 }; /* rows beyond which a product's rate no longer changes */
    const plumb_model_config *c = &s->config;
    int64_t rows = s->prefill < MANY ? s->prefill : MANY;
    int64_t per_expert = s->prefill * c->experts_per_token / c->experts;
    if (per_expert < 1) per_expert = 1;
    const bench_shape shape[BENCH_WORK_KINDS] = {
        [BENCH_WORK_FP4] = {PLUMB_MATRIX_FP4, c->inter, c->hidden, per_expert, false, 1},
        [BENCH_WORK_FP8] = {PLUMB_MATRIX_FP8, c->hidden, c->o_groups * c->o_rank, rows, false, 1},
        [BENCH_WORK_LANES_FP8] = {PLUMB_MATRIX_FP8, c->o_groups * c->o_rank,
                                  c->heads * c->head_dim / c->o_groups, rows, true, c->o_groups},
        [BENCH_WORK_LANES] = {PLUMB_MATRIX_BF16, c->experts, c->hidden, rows, true, 1},
    };
    static const char *const name[BENCH_WORK_KINDS] = {"FP4", "FP8", "FP8 as bf16", "BF16"};
    double rate[BENCH_WORK_KINDS];
    if (!s->csv) printf("\nproducts alone:");
    for (int i = 0; i < BENCH_WORK_KINDS; i++) {
        rate[i] = product_rate(s, &shape[i]);
        if (rate[i] <= 0) {
            fprintf(stderr, "products: no memory\n");
            return false;
        }
        if (!s->csv)
            printf(" %s at %lld rows %.1f%s", name[i], (long long)shape[i].tokens, 1e-9 * rate[i],
                   i + 1 < BENCH_WORK_KINDS ? "," : " GFLOP/s\n");
    }
    char title[64];
    (void)snprintf(title, sizeof title, "prefill of %lld tokens", (long long)s->prefill);
    return measure(s, title, &s->prefill_layers, s->prefill, 1, rate);
}

static bool run_with_threads(step *s, int threads) {
    plumb_error err = {0};
    const char *level = NULL;
    s->threads = threads;
    plumb_status status = plumb__cpu_backend_create(threads, s->level, &s->backend, &level, &err);
    if (status == PLUMB_OK) {
        status = plumb__pool_create(threads, NULL, &s->pool, &err);
        if (status != PLUMB_OK) s->backend->ops->close(s->backend);
    }
    if (!bench_explain(status, &err)) return false;
    if (!s->csv) printf("plumb %s, %d thread%s\n", level, threads, threads > 1 ? "s" : "");
    bool good = true;
    if (!s->only || strstr("decode", s->only)) {
        char title[64];
        (void)snprintf(title, sizeof title, "decode of one token after %lld", (long long)s->context);
        good = measure(s, title, &s->layers, 1, LEAST_DECODES, NULL);
    }
    if (good && s->prefill > 0 && (!s->only || strstr("prefill", s->only)))
        good = measure_prefill(s);
    plumb__pool_destroy(s->pool);
    s->backend->ops->close(s->backend);
    return good;
}

int main(int argc, char **argv) {
    step s = {.seconds = 10, .context = 8192, .prefill = 512, .experts = 48,
              .prefill_layers = {.value = {20, 21}, .count = 2}};
    bench_list threads = {.value = {1, 2}, .count = 2};
    const bench_option options[] = {
        {"threads", BENCH_LIST, &threads, "how many, one report for each (1,2)"},
        {"seconds", BENCH_SECONDS, &s.seconds, "to run decode, and prefill, for (10)"},
        {"only", BENCH_TEXT, &s.only, "decode or prefill"},
        {"context", BENCH_COUNT, &s.context, "positions before the decoded token (8192)"},
        {"prefill", BENCH_COUNT, &s.prefill, "tokens of the prompt, 0: none (512)"},
        {"layers", BENCH_LIST, &s.layers, "of the released forty, to decode through (all)"},
        {"prefill-layers", BENCH_LIST, &s.prefill_layers, "to run the prompt through (20,21)"},
        {"experts", BENCH_COUNT, &s.experts, "different ones in memory (48)"},
        {"level", BENCH_LEVEL, &s.level, "kernels to use, of those this machine has"},
        {"csv", BENCH_FLAG, &s.csv, "comma separated"},
    };
    int status;
    plumb_error err = {0};
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof options[0], &status))
        return status;
    if (!bench_threads_valid(&threads)) return 2;
    if (s.prefill == 1 || s.experts < 1) {
        fprintf(stderr, "--prefill: 0, or 2 and more; --experts: 1 and more\n");
        return 2;
    }
    bool good = bench_explain(plumb__config_load(RELEASED_CONFIG, NULL, NULL, &s.config, &err), &err) &&
                bench_random_open(&s.random);
    for (int64_t i = 0; good && i < threads.count; i++)
        good = run_with_threads(&s, (int)threads.value[i]);
    bench_random_close(&s.random);
    return good ? 0 : 1;
}
