#include "step_report.h"

#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_name[BENCH_LAYER_KINDS] = {
    "window only", "kv source, ratio 2", "reuse, ratio 2", "kv source, ratio 1",
    "index source, ratio 1", "reuse, ratio 1", "engram", "embedding, head"};

bench_layer_kind bench_kind_of(const plumb_model_config *c, int64_t layer) {
    if (c->ratio[layer] == 0) return BENCH_WINDOW_ONLY;
    if (c->ratio[layer] > 1) return c->is_kv_source[layer] ? BENCH_SOURCE_2 : BENCH_REUSE_2;
    if (c->is_kv_source[layer]) return BENCH_SOURCE_1;
    return c->is_index_source[layer] ? BENCH_INDEX_1 : BENCH_REUSE_1;
}

static int64_t kind_count(const plumb_model_config *c, bench_layer_kind kind) {
    if (kind == BENCH_ENGRAM) return c->engram_layers;
    if (kind == BENCH_HEAD) return 1;
    int64_t n = 0;
    for (int64_t l = 0; l < c->layers; l++) n += bench_kind_of(c, l) == kind;
    return n;
}

static double flops_of(const bench_op *op) {
    double flops = 0;
    for (int i = 0; i < BENCH_WORK_KINDS; i++) flops += op->flops[i];
    return flops;
}

/* The least time that reading so much, or computing so much, could take. */
static double bound_of(const bench_report *r, const bench_run *run, double bytes,
                       const double *flops) {
    if (!r->work_rate) return bytes / run->read_rate;
    double seconds = 0;
    for (int i = 0; i < BENCH_WORK_KINDS; i++) seconds += flops[i] / r->work_rate[i];
    return seconds;
}

static double op_bound(const bench_report *r, const bench_run *run, const bench_op *op) {
    return bound_of(r, run, op->bytes, op->flops);
}

static double total_bound(const bench_report *r, const bench_run *run) {
    double bound = 0;
    for (int i = 0; i < run->ops; i++) bound += op_bound(r, run, &run->op[i]);
    return bound;
}

/* Medians over the runs of: a kind's time, bytes and bound; the whole time; bound / time. */
typedef enum figure { KIND_SECONDS, KIND_BYTES, KIND_BOUND, WHOLE, SHARE } figure;

static double median_of(const bench_report *r, figure what, bench_layer_kind kind) {
    double *values = malloc((size_t)r->runs * sizeof *values);
    if (!values) return 0;
    for (int64_t i = 0; i < r->runs; i++) {
        const bench_run *run = &r->run[i];
        switch (what) {
        case KIND_SECONDS: values[i] = run->kind_seconds[kind]; break;
        case KIND_BYTES: values[i] = run->kind_bytes[kind]; break;
        case KIND_BOUND:
            values[i] = bound_of(r, run, run->kind_bytes[kind], run->kind_flops[kind]);
            break;
        case WHOLE: values[i] = run->seconds; break;
        case SHARE: values[i] = total_bound(r, run) / run->seconds; break;
        }
    }
    double median = bench_quantile(values, r->runs, 0.5);
    free(values);
    return median;
}

/* ---- Layers ---------------------------------------------------------------------------------- */

static void print_kinds(const bench_report *r) {
    if (r->csv)
        printf("kind,threads,rows,layers,ms_each,ms_all,mb_each,bound_ms_each\n");
    else
        printf("\n%-22s %6s %9s %9s %9s %9s %6s\n", "", "layers", "ms each", "ms all", "MB each",
               "bound ms", "bound");
    for (int k = 0; k < BENCH_LAYER_KINDS; k++) {
        int64_t n = kind_count(r->config, (bench_layer_kind)k);
        if (n == 0) continue;
        double all = 1e3 * median_of(r, KIND_SECONDS, (bench_layer_kind)k), each = all / (double)n;
        double megabytes = 1e-6 * median_of(r, KIND_BYTES, (bench_layer_kind)k) / (double)n;
        double bound = 1e3 * median_of(r, KIND_BOUND, (bench_layer_kind)k) / (double)n;
        if (r->csv)
            printf("\"%s\",%d,%lld,%lld,%.3f,%.3f,%.2f,%.3f\n", kind_name[k], r->threads,
                   (long long)r->rows, (long long)n, each, all, megabytes, bound);
        else
            printf("%-22s %6lld %9.2f %9.2f %9.2f %9.2f %5.0f%%\n", kind_name[k], (long long)n, each,
                   all, megabytes, bound, each > 0 ? 100 * bound / each : 0);
    }
}

/* What the whole model would take, if every kind of layer in it has run. */
static void print_projection(const bench_report *r) {
    double seconds = 0;
    if (r->csv || r->rows > 1 || r->config->layers == r->whole->layers) return;
    for (int k = 0; k < BENCH_LAYER_KINDS; k++) {
        bench_layer_kind kind = (bench_layer_kind)k;
        int64_t ran = kind_count(r->config, kind), wanted = kind_count(r->whole, kind);
        if (wanted > 0 && ran == 0) return;
        if (wanted > 0) seconds += median_of(r, KIND_SECONDS, kind) / (double)ran * (double)wanted;
    }
    printf("%-22s %6lld %9s %9.2f   projected; %.3g tokens/s\n", "the whole model",
           (long long)r->whole->layers, "", 1e3 * seconds, 1 / seconds);
}

/* ---- Operations ------------------------------------------------------------------------------ */

typedef struct item {
    const bench_op *op;
    double loss;
} item;

static int most_loss_first(const void *a, const void *b) {
    const item *x = a, *y = b;
    return (x->loss < y->loss) - (x->loss > y->loss);
}

static void name_op(const bench_op *op, char *name, size_t size) {
    static const char *const type[] = {"BF16", "F32", "FP8", "FP4"};
    if (op->n == 0) (void)snprintf(name, size, "%s", op->name);
    else
        (void)snprintf(name, size, "%s %s %lldx%lld", op->name, type[op->type], (long long)op->n,
                       (long long)op->k);
}

/* Milliseconds of a run, and the loss's share of the whole loss. */
static void print_op(const bench_report *r, const char *name, int64_t calls, double seconds,
                     double amount, double bound, double whole_loss) {
    double loss = seconds - bound;
    double rate = amount > 0 && seconds > 0 ? 1e-9 * amount / seconds : 0;
    if (r->csv)
        printf("\"%s\",%d,%lld,%lld,%.4f,%.4f,%.3f,%.4f,%.4f,%.2f\n", name, r->threads,
               (long long)r->rows, (long long)calls, 1e3 * seconds, 1e-6 * amount, rate, 1e3 * bound,
               1e3 * loss, 100 * loss / whole_loss);
    else
        printf("%-34s %6lld %9.2f %10.1f %8.2f %9.2f %9.2f %6.1f%%\n", name, (long long)calls,
               1e3 * seconds, 1e-6 * amount, rate, 1e3 * bound, 1e3 * loss, 100 * loss / whole_loss);
}

static void print_ops(const bench_report *r, const bench_run *run) {
    item items[BENCH_MAX_OPS];
    double inside = 0, whole_bound = total_bound(r, run), whole_loss = run->seconds - whole_bound;
    double whole_amount = 0;
    for (int i = 0; i < run->ops; i++) {
        inside += run->op[i].seconds;
        items[i] = (item){&run->op[i], run->op[i].seconds - op_bound(r, run, &run->op[i])};
    }
    qsort(items, (size_t)run->ops, sizeof *items, most_loss_first);
    if (r->csv)
        printf("op,threads,rows,calls,ms,%s,bound_ms,loss_ms,loss_percent\n",
               r->work_rate ? "mflop,gflops" : "mb,gbs");
    else
        printf("\n%-34s %6s %9s %10s %8s %9s %9s %7s\n", "the median run, most loss first", "calls",
               "ms", r->work_rate ? "MFLOP" : "MB", r->work_rate ? "GFLOP/s" : "GB/s", "bound ms",
               "loss ms", "loss");
    for (int i = 0; i < run->ops; i++) {
        const bench_op *op = items[i].op;
        char name[96];
        name_op(op, name, sizeof name);
        double amount = r->work_rate ? flops_of(op) : op->bytes;
        whole_amount += amount;
        print_op(r, name, op->calls, op->seconds, amount, op_bound(r, run, op), whole_loss);
    }
    print_op(r, "outside the operations", 1, run->seconds - inside, 0, 0, whole_loss);
    print_op(r, "total", 1, run->seconds, whole_amount, whole_bound, whole_loss);
}

static int shortest_first(const void *a, const void *b) {
    const bench_run *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

void bench_report_print(bench_report *r) {
    print_kinds(r);
    double whole = median_of(r, WHOLE, BENCH_HEAD), share = median_of(r, SHARE, BENCH_HEAD);
    if (!r->csv)
        printf("%-22s %6lld %9s %9.2f   %.0f%% of the bound; %.3g tokens/s (median of %lld runs)\n",
               "all", (long long)r->config->layers, "", 1e3 * whole, 100 * share,
               (double)r->rows / whole, (long long)r->runs);
    print_projection(r);
    qsort(r->run, (size_t)r->runs, sizeof *r->run, shortest_first);
    print_ops(r, &r->run[r->runs / 2]);
    (void)fflush(stdout);
}
