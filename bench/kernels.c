/* Speed of every kernel at the released shapes, beside what this machine can read and what ggml
 * makes of the same product, all in one run (bench/README.md explains the columns). */
#include "backend/cpu/cpu_backend.h"
#include "base/memory_read.h"
#include "kernel_rows.h"
#include "measure.h"
#include "options.h"
#include "peer_ggml.h"
#include "product.h"

#include <stdio.h>
#include <string.h>

typedef struct product_case {
    const char *name;
    bench_shape shape;
} product_case;

#define QUANTISED(type, n, k, tokens) {PLUMB_MATRIX_##type, n, k, tokens, false, 1}
#define LANES(type, n, k) {PLUMB_MATRIX_##type, n, k, 1, true, 1}

static const product_case products[] = {
    {"expert w1, w3", QUANTISED(FP4, 2304, 5120, 1)},
    {"expert w2", QUANTISED(FP4, 5120, 2304, 1)},
    {"wq_a", QUANTISED(FP8, 1280, 5120, 1)},
    {"wq_b", QUANTISED(FP8, 32768, 1280, 1)},
    {"wkv", QUANTISED(FP8, 512, 5120, 1)},
    {"wo_a", {PLUMB_MATRIX_FP8, 8192, 4096, 1, true, 8}},
    {"wo_b", QUANTISED(FP8, 5120, 8192, 1)},
    {"shared w1, w3", QUANTISED(FP8, 2304, 5120, 1)},
    {"shared w2", QUANTISED(FP8, 5120, 2304, 1)},
    {"index wq_b", QUANTISED(FP8, 4096, 1280, 1)},
    {"engram wkv", QUANTISED(FP8, 25600, 6144, 1)},
    {"router", LANES(BF16, 384, 5120)},
    {"head, 16384 rows", LANES(BF16, 16384, 5120)},
    {"compressor", LANES(BF16, 512, 5120)},
    {"hc fn", LANES(F32, 24, 20480)},
    {"expert w1, w3", QUANTISED(FP4, 2304, 5120, 8)},
    {"expert w1, w3", QUANTISED(FP4, 2304, 5120, 64)},
    {"expert w1, w3", QUANTISED(FP4, 2304, 5120, 512)},
    {"expert w2", QUANTISED(FP4, 5120, 2304, 8)},
    {"expert w2", QUANTISED(FP4, 5120, 2304, 64)},
    {"expert w2", QUANTISED(FP4, 5120, 2304, 512)},
    {"shared w1, w3", QUANTISED(FP8, 2304, 5120, 8)},
    {"shared w1, w3", QUANTISED(FP8, 2304, 5120, 64)},
    {"shared w1, w3", QUANTISED(FP8, 2304, 5120, 512)},
    {"wq_b", QUANTISED(FP8, 32768, 1280, 8)},
    {"wq_b", QUANTISED(FP8, 32768, 1280, 64)},
    {"wq_b", QUANTISED(FP8, 32768, 1280, 512)},
    {"wo_a", {PLUMB_MATRIX_FP8, 8192, 4096, 512, true, 8}},
};

typedef struct bench {
    double seconds, sweep_bytes;
    const char *only, *level, *peer_folder;
    bool csv;
    int threads;
    plumb_backend *backend;
    const plumb_cpu_kernels *kernels;
    plumb_pool *pool; /* reads with it */
    bench_peer *peer; /* or NULL */
    bench_random random;
} bench;

static const char *type_name(plumb_matrix_type type) {
    switch (type) {
    case PLUMB_MATRIX_BF16: return "BF16";
    case PLUMB_MATRIX_F32: return "F32";
    case PLUMB_MATRIX_FP8: return "FP8";
    case PLUMB_MATRIX_FP4: return "FP4";
    }
    return "";
}

/* ---- Output: one line a measurement; a negative number is one that does not apply ----------- */

typedef struct line {
    const char *name, *type, *shape;
    int64_t tokens;
    double microseconds, spread, rate, read, per_read, peer, per_peer;
    const char *unit, *peer_name;
} line;

static void print_header(const bench *b) {
    if (b->csv)
        printf("op,weights,shape,tokens,threads,us,spread,rate,unit,read_gbs,per_read,peer_rate,"
               "per_peer,peer_kernel\n");
    else
        printf("\n%-17s %-4s %-18s %6s %2s %11s %5s %7s %-7s %6s %6s %7s %6s  %s\n", "op", "", "shape",
               "tokens", "t", "us", "+-%", "rate", "", "read", "/read", "ggml", "/ggml",
               "ggml's kernel");
}

static void print_number(const bench *b, int width, int digits, double value) {
    if (b->csv) {
        if (value >= 0) printf(",%.*f", digits, value);
        else printf(",");
    } else if (value >= 0) {
        printf(" %*.*f", width, digits, value);
    } else {
        printf(" %*s", width, "-");
    }
}

static void print_line(const bench *b, const line *l) {
    printf(b->csv ? "\"%s\",%s,\"%s\",%lld,%d" : "%-17s %-4s %-18s %6lld %2d", l->name, l->type, l->shape,
           (long long)l->tokens, b->threads);
    print_number(b, 11, 1, l->microseconds);
    print_number(b, 5, 1, 100 * l->spread);
    print_number(b, 7, 2, l->rate);
    printf(b->csv ? ",%s" : " %-7s", l->unit);
    print_number(b, 6, 1, l->read);
    print_number(b, 6, 2, l->per_read);
    print_number(b, 7, 1, l->peer);
    print_number(b, 6, 2, l->per_peer);
    printf(b->csv ? ",%s\n" : "  %s\n", l->peer_name);
    (void)fflush(stdout);
}

static bool wanted(const bench *b, const char *name, const char *type, const char *shape) {
    return !b->only || strstr(name, b->only) || strstr(type, b->only) || strstr(shape, b->only);
}

static bool check(const bench *b, const char *name) {
    plumb_status status = b->backend->ops->check(b->backend);
    if (status != PLUMB_OK) fprintf(stderr, "%s: %s\n", name, plumb_status_name(status));
    return status == PLUMB_OK;
}

/* ---- Products -------------------------------------------------------------------------------- */

typedef struct read_task {
    plumb_pool *pool;
    const void *memory;
    int64_t bytes;
    uint64_t sum;
} read_task;

static void run_read(void *arg) {
    read_task *task = arg;
    task->sum += plumb__memory_read(task->pool, task->memory, task->bytes);
}

static void run_peer(void *arg) { bench_peer_product_run(arg); }

/* One token is bound by memory and counted in bytes, many by arithmetic and counted in operations;
 * the read beside them is of the same weights and stays meaningful for a few tokens only. */
enum { FEW_TOKENS = 8 };

static void report_product(const bench *b, const char *name, const bench_product *product,
                           bench_peer_product *peer, const bench_result *result) {
    const bench_shape *s = &product->shape;
    int64_t weights = bench_matrix_bytes(s->type, s->n, s->k) * product->copies;
    bool by_bytes = s->tokens == 1;
    double work = by_bytes ? (double)weights : bench_product_flops(product);
    char shape[32];
    (void)snprintf(shape, sizeof shape, "%lldx%lld", (long long)s->n, (long long)s->k);
    line l = {.name = name, .type = type_name(s->type), .shape = shape, .tokens = s->tokens,
              .microseconds = 1e6 * result->seconds[0] / (double)product->copies,
              .spread = result->spread, .rate = 1e-9 * work / result->seconds[0],
              .unit = by_bytes ? "GB/s" : "GFLOP/s",
              .read = 1e-9 * (double)product->bytes / result->seconds[1],
              .per_read = s->tokens <= FEW_TOKENS ? result->speed[1] : -1, .peer = -1, .per_peer = -1,
              .peer_name = "not given"};
    /* speed[] is contender's time over ours, which is our rate over the contender's. */
    if (peer) {
        double peer_work = by_bytes ? (double)bench_peer_product_bytes(peer) : work;
        l.peer = 1e-9 * peer_work / result->seconds[2];
        l.per_peer = result->speed[2];
        l.peer_name = bench_peer_product_name(peer);
    }
    print_line(b, &l);
}

static bool run_product(bench *b, const product_case *c) {
    enum { MOST_FLOPS_LOG2 = 33 }; /* in a sweep: a fraction of a second */
    bench_product product;
    int64_t copies = bench_product_copies(&c->shape, b->sweep_bytes, (double)(1LL << MOST_FLOPS_LOG2));
    if (!bench_product_create(b->backend, &b->random, &c->shape, copies, &product)) {
        fprintf(stderr, "%s: no memory\n", c->name);
        return false;
    }
    const bench_shape *s = &c->shape;
    bench_peer_product *peer = NULL;
    if (b->peer)
        peer = bench_peer_product_create(b->peer, s->type, s->n, s->k, s->tokens, copies, b->threads);
    read_task read = {b->pool, product.memory, product.bytes, 0};
    bench_contender contenders[] = {
        {bench_product_run, &product}, {run_read, &read}, {run_peer, peer}};
    bench_result result;
    bench_compare(contenders, peer ? 3 : 2, b->seconds, &result);
    bool good = check(b, c->name);
    if (good) report_product(b, c->name, &product, peer, &result);
    bench_peer_product_destroy(peer);
    bench_product_destroy(&product);
    return good;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

typedef struct rows_task {
    plumb_backend *backend;
    bench_rows *rows;
    const bench_row_case *which;
    int64_t calls; /* a run: long beside the clock's own time */
} rows_task;

static void run_rows(void *arg) {
    rows_task *task = arg;
    task->backend->ops->begin(task->backend);
    for (int64_t i = 0; i < task->calls; i++) task->which->run(task->rows, task->which->tokens);
    task->backend->ops->end(task->backend);
}

static bool run_row_case(bench *b, bench_rows *rows, const bench_row_case *c) {
    static const double enough = 2e-3;
    rows_task task = {b->backend, rows, c, 1};
    for (;;) {
        double start = bench_now();
        run_rows(&task);
        if (bench_now() - start > enough) break;
        task.calls *= 2;
    }
    bench_contender contender = {run_rows, &task};
    bench_result result;
    bench_compare(&contender, 1, b->seconds, &result);
    double seconds = result.seconds[0] / (double)task.calls;
    line l = {.name = c->name, .type = "", .shape = c->shape, .tokens = c->tokens,
              .microseconds = 1e6 * seconds / (double)c->tokens, .spread = result.spread,
              .rate = c->operations > 0 ? 1e-9 * c->operations / seconds : -1,
              .unit = c->operations > 0 ? "GFLOP/s" : "", .read = -1, .per_read = -1, .peer = -1,
              .per_peer = -1, .peer_name = ""};
    if (!check(b, c->name)) return false;
    print_line(b, &l);
    return true;
}

/* ---- Program --------------------------------------------------------------------------------- */

static bool run_all(bench *b) {
    bool good = true;
    print_header(b);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const bench_shape *s = &products[i].shape;
        char shape[32];
        (void)snprintf(shape, sizeof shape, "%lldx%lld", (long long)s->n, (long long)s->k);
        if (wanted(b, products[i].name, type_name(s->type), shape))
            good &= run_product(b, &products[i]);
    }
    bench_rows *rows = bench_rows_create(b->backend, b->kernels, &b->random);
    if (!rows) fprintf(stderr, "rows: no memory\n");
    for (int i = 0; rows && i < bench_row_case_count; i++)
        if (wanted(b, bench_row_cases[i].name, "", bench_row_cases[i].shape))
            good &= run_row_case(b, rows, &bench_row_cases[i]);
    good &= rows != NULL;
    bench_rows_destroy(rows);
    return good;
}

/* The table of the level that the backend has chosen. */
static const plumb_cpu_kernels *kernels_of(const char *level) {
    const plumb_cpu_kernels *levels[PLUMB_MAX_LEVELS];
    int n = plumb__cpu_kernel_levels(levels);
    for (int i = 0; i < n; i++)
        if (!strcmp(levels[i]->level, level)) return levels[i];
    return NULL;
}

static bool run_with_threads(bench *b, int threads) {
    plumb_error err = {0};
    const char *level = NULL;
    plumb_status status =
        plumb__cpu_backend_create(threads, b->level, &b->backend, &level, &err);
    if (status == PLUMB_OK) {
        status = plumb__pool_create(threads, NULL, &b->pool, &err);
        if (status != PLUMB_OK) b->backend->ops->close(b->backend);
    }
    if (status != PLUMB_OK) {
        char text[1024];
        plumb_error_line(&err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        return false;
    }
    b->threads = threads;
    b->kernels = kernels_of(level);
    if (!b->csv)
        printf("plumb %s, %d thread%s, ggml: %s\n", level, threads, threads > 1 ? "s" : "",
               b->peer ? bench_peer_level(b->peer) : "not given");
    bool good = run_all(b);
    plumb__pool_destroy(b->pool);
    b->backend->ops->close(b->backend);
    return good;
}

int main(int argc, char **argv) {
    bench b = {.seconds = 1};
    bench_list threads = {.value = {1, 2}, .count = 2};
    int64_t sweep_megabytes = 256;
    const bench_option options[] = {
        {"threads", BENCH_LIST, &threads, "how many, one table for each (1,2)"},
        {"seconds", BENCH_SECONDS, &b.seconds, "to measure each line for (1)"},
        {"only", BENCH_TEXT, &b.only, "lines whose op, weights or shape contain it"},
        {"peer", BENCH_TEXT, &b.peer_folder, "folder with ggml's libraries (scripts/fetch-peer)"},
        {"level", BENCH_LEVEL, &b.level, "kernels to use, of those this machine has"},
        {"sweep", BENCH_COUNT, &sweep_megabytes, "megabytes of weights, many times the caches (256)"},
        {"csv", BENCH_FLAG, &b.csv, "comma separated"},
    };
    int status;
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof options[0], &status))
        return status;
    if (!bench_threads_valid(&threads)) return 2;
    b.sweep_bytes = 1e6 * (double)sweep_megabytes;
    bool good = bench_random_open(&b.random);
    if (b.peer_folder) {
        b.peer = bench_peer_open(b.peer_folder);
        good &= b.peer != NULL;
    }
    for (int64_t i = 0; good && i < threads.count; i++)
        good &= run_with_threads(&b, (int)threads.value[i]);
    bench_peer_close(b.peer);
    bench_random_close(&b.random);
    return good ? 0 : 1;
}
