/* Hit rates and bounds on speed, against the published figures and against arithmetic done here. */
#include "plan/bounds.h"

#include "plan/speed_plan.h"
#include "released.h"

#include <math.h>

static const double giga = 1e9;

/* ---- Hit rates ---------------------------------------------------------------------------------- */

static void published_curve(void) {
    static const struct {
        int64_t slots;
        double rate;
    } rows[] = {{0, 0},        {500, 0.287},  {1000, 0.574}, {2000, 0.728}, {3000, 0.808}, {4000, 0.855},
                {4500, 0.874}, {5000, 0.893}, {6000, 0.922}, {8000, 0.960}, {11680, 0.98}, {15360, 1},
                {20000, 1}};
    plumb_hit_curve curve = plumb__hit_curve_published();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(fabs(plumb__hit_rate(&curve, rows[i].slots, 15360) - rows[i].rate) < 1e-12,
                "%" PRId64 " slots: %.6f", rows[i].slots, plumb__hit_rate(&curve, rows[i].slots, 15360));
    /* Another model: the same share of its experts. */
    T_CHECK(fabs(plumb__hit_rate(&curve, 50, 768) - 0.574) < 1e-12, "a share");
    T_CHECK(!curve.recorded, "published");
}

static void recorded_curve(void) {
    static const plumb_replay replays[] = {
        {.slots = 10, .decode = {.wanted = 100, .hits = 20}, .prefill = {.wanted = 100, .hits = 99}},
        {.slots = 40, .decode = {.wanted = 100, .hits = 80}}};
    plumb_hit_curve curve = plumb__hit_curve_recorded(replays, 2, 100);
    static const struct {
        int64_t slots;
        double rate;
    } rows[] = {{0, 0}, {5, 0.1}, {10, 0.2}, {20, 0.4}, {40, 0.8}, {100, 0.8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(fabs(plumb__hit_rate(&curve, rows[i].slots, 100) - rows[i].rate) < 1e-12,
                "%" PRId64 " slots: %.6f", rows[i].slots, plumb__hit_rate(&curve, rows[i].slots, 100));
    T_CHECK(curve.recorded, "recorded");
}

/* ---- Work and bytes, docs/model.md sections 7.1, 8.2 and 8.3 -------------------------------------- */

static void token(void) {
    static const struct {
        int64_t length;
        double index_gflop, index_mb;
    } rows[] = {{4096, 0.2, 1.8}, {32768, 1.2, 10.0}, {131072, 3.3, 26.7}, {1048576, 22.2, 182.7}};
    plumb_model_sizes s = released_sizes();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double flop = plumb__model_token_flop(&s, rows[i].length - 1);
        T_CHECK(near(flop, (32.3 + 3.2 + rows[i].index_gflop) * 1e9, 0.003), "%.2f GFLOP", flop / 1e9);
        /* Rings 2.70 MB, compressed rows 5.60 MB. */
        double bytes = (double)plumb__model_cache_read_bytes(&s.config, rows[i].length - 1);
        T_CHECK(fabs(bytes / 1e6 - (2.70 + 5.60 + rows[i].index_mb)) < 0.06, "%.2f MB", bytes / 1e6);
    }
}

static void prompt_work(void) {
    static const struct {
        int64_t rows;
        double lower, upper; /* TFLOP: encoder and head; the decoder's trapezoid */
    } table[] = {{2048, 34.89, 19.71}, {8192, 141.8, 20.76}, {32768, 574.0, 21.59}};
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 1, .memory = 1};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        /* In one chunk and in several: the rows that are left out do not depend on it. */
        for (int64_t chunk = table[i].rows; chunk >= 1024; chunk /= 4) {
            plumb_prompt prompt = {.rows = table[i].rows, .end = table[i].rows, .chunk = chunk};
            double flop = plumb__bound_prefill(&s, &rates, &prompt).cost.flop;
            T_CHECK(near(flop, (table[i].lower + table[i].upper) * 1e12, 0.002),
                    "%" PRId64 " by %" PRId64 ": %.2f TFLOP", table[i].rows, chunk, flop / 1e12);
        }
    }
}

static void touched(void) {
    plumb_model_sizes s = released_sizes();
    static const struct {
        int64_t rows;
        double experts;
    } rows[] = {{1, 6}, {6, 34.6}, {32, 152}, {128, 333}, {2048, 384}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        T_CHECK(fabs(plumb__experts_touched(&s.config, rows[i].rows) - rows[i].experts) < 0.6,
                "%" PRId64 " rows: %.2f", rows[i].rows, plumb__experts_touched(&s.config, rows[i].rows));
}

/* ---- Bounds -------------------------------------------------------------------------------------- */

enum { ROW_READS = 2 * 24 * 2 * 4096 + 3 * 4096 }; /* Engram and embedding, in blocks */

static void decode_by_hand(void) {
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 10 * giga, .memory = 500 * giga};
    double experts = 240.0 * 18800640, cache = (double)plumb__model_cache_read_bytes(&s.config, 4095);
    /* A quarter is missing: 1.128 GB from the drive, 112.8 ms; 13.05 GB from memory, 26.1 ms. */
    double disk = (0.25 * experts + ROW_READS) / (10 * giga);
    double memory = (8522921408.0 + experts + cache) / (500 * giga);
    plumb_bound b = plumb__bound_decode(&s, &rates, (plumb_hits){0.75, 0.75}, 4095);
    T_CHECK(near(b.serial, 1 / (disk + memory), 1e-9), "%.4f", b.serial);
    T_CHECK(near(b.overlapped, 1 / disk, 1e-9), "%.4f", b.overlapped);
    T_CHECK(near(b.cost.disk_seconds, 0.1128, 0.001) && near(b.cost.memory_seconds, 0.0261, 0.001) &&
                b.cost.compute_seconds == 0 && b.cost.link_bytes == 0,
            "%.4f s, %.4f s", b.cost.disk_seconds, b.cost.memory_seconds);

    /* Arithmetic at 0.1 TFLOPS takes 0.357 s and hides what memory takes. */
    rates.compute = 0.1e12;
    double compute = plumb__model_token_flop(&s, 4095) / 0.1e12;
    b = plumb__bound_decode(&s, &rates, (plumb_hits){0.75, 0.75}, 4095);
    T_CHECK(near(compute, 0.357, 0.005) && near(b.serial, 1 / (disk + compute), 1e-9) &&
                near(b.overlapped, 1 / compute, 1e-9),
            "%.4f, %.4f", b.serial, b.overlapped);

    /* A device: half of the experts are there, a quarter behind it, a quarter on the drive. */
    rates = (plumb_rates){.disk = 10 * giga, .memory = 300 * giga, .device = 2000 * giga, .link = 50 * giga};
    double device = memory * 500 / 2000, link = 0.5 * experts / (50 * giga);
    b = plumb__bound_decode(&s, &rates, (plumb_hits){0.5, 0.75}, 4095);
    T_CHECK(near(b.serial, 1 / (disk + device + link), 1e-9) && near(b.overlapped, 1 / disk, 1e-9),
            "%.4f, %.4f", b.serial, b.overlapped);
}

static void prefill_by_hand(void) {
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 10 * giga, .memory = 500 * giga};
    /* 8,192 rows, of which upper layers need none: all of 20 layers' experts. */
    plumb_prompt prompt = {.rows = 8192, .end = 1 << 20, .chunk = 8192, .kept_computing = 4000,
                           .kept_anywhere = 4000};
    double experts = 20.0 * 384 * 18800640, rows = 8192.0 * ROW_READS;
    double disk = (experts + rows) / (10 * giga);
    plumb_bound b = plumb__bound_prefill(&s, &rates, &prompt);
    T_CHECK(near(b.overlapped, 8192 / disk, 1e-6), "%.2f", b.overlapped);
    /* Memory: the encoder's dense weights, 3.765 GB, and the experts. */
    T_CHECK(near(b.cost.memory_bytes, 3764727776.0 + experts, 1e-6), "%.0f", b.cost.memory_bytes);

    /* Of 7,680 experts 4,000 have stayed. */
    prompt.warm = true;
    disk = (3680.0 * 18800640 + rows) / (10 * giga);
    b = plumb__bound_prefill(&s, &rates, &prompt);
    T_CHECK(near(b.overlapped, 8192 / disk, 1e-6), "%.2f", b.overlapped);

    /* Two chunks: the first reads all, the second what has not stayed. */
    prompt.warm = false;
    prompt.rows = 16384;
    disk = ((7680.0 + 3680) * 18800640 + 2 * rows) / (10 * giga);
    b = plumb__bound_prefill(&s, &rates, &prompt);
    T_CHECK(near(b.overlapped, 16384 / disk, 1e-6) && b.tokens == 16384, "%.2f", b.overlapped);

    /* With a device whatever is not on it is carried, from wherever it comes. */
    rates.device = 4000 * giga, rates.link = 5 * giga;
    prompt.rows = 8192, prompt.warm = true, prompt.kept_computing = 1000;
    b = plumb__bound_prefill(&s, &rates, &prompt);
    T_CHECK(near(b.cost.link_bytes, 6680.0 * 18800640, 1e-6) &&
                near(b.cost.disk_bytes, 3680.0 * 18800640 + rows, 1e-6),
            "%.0f, %.0f", b.cost.link_bytes, b.cost.disk_bytes);
    T_CHECK(near(b.overlapped, 8192 / (6680.0 * 18800640 / (5 * giga)), 1e-6), "%.2f", b.overlapped);
}

/* A small model's tables are read once, however many rows ask. */
static void tables_are_read_once(void) {
    plumb_model_sizes s = released_sizes();
    s.engram_bytes = 1000, s.embed_bytes = 24;
    plumb_rates rates = {.disk = giga, .memory = giga};
    plumb_prompt prompt = {.rows = 8192, .end = 1 << 20, .chunk = 8192, .kept_anywhere = 15360, .warm = true};
    T_CHECK(plumb__bound_prefill(&s, &rates, &prompt).cost.disk_bytes == 1024, "rows");
}

/* ---- Plans: the machines of docs/plan.md ----------------------------------------------------------- */

static plumb_speed_plan plan_of(const plumb_model_sizes *s, const plumb_budget_request *request,
                                const plumb_rates *rates) {
    plumb_speed_plan plan = {.slots = -1};
    plumb_error err = {0};
    plumb_hit_curve curve = plumb__hit_curve_published();
    T_CHECK(plumb__speed_plan_make(s, request, rates, &curve, &plan, &err) == PLUMB_OK, "%s: %s", err.field,
            err.found);
    return plan;
}

static void laptop(void) {
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 13 * giga, .memory = 614 * giga};
    plumb_budget_request request = {.memory = 128 * (int64_t)giga};
    plumb_speed_plan p = plan_of(&s, &request, &rates);
    /* 112 GB less 8.52 of weights, 0.11 of session and 8,192 rows of 0.98 MB are 95.3 GB: 5,067 slots of
     * 18.81 MB, where the curve stands at 0.893 + 0.029 x 0.067 = 0.895.  0.105 x 4.512 + 0.0004 GB over
     * 13 GB/s are 36.5 ms, 13.06 GB over 614 are 21.3 ms. */
    T_CHECK(p.mode == PLUMB_PLAN_CACHE && near((double)p.slots, 5067, 0.01), "%" PRId64, p.slots);
    T_CHECK(fabs(p.hits.anywhere - 0.895) < 0.002, "%.4f", p.hits.anywhere);
    T_CHECK(near(p.decode.serial, 1 / (0.0365 + 0.0213), 0.02), "%.2f", p.decode.serial);
    T_CHECK(near(p.decode.overlapped, 1 / 0.0365, 0.02), "%.2f", p.decode.overlapped);
    /* 2,048 rows want 384 experts in the 34 layers 0 to 33, then 384.0, 383.9, 383.1, 377.1, 332.9 and,
     * for the last row alone, 6: 14,923 in all, 280.6 GB, and 0.83 GB of rows: 21.65 s. */
    T_CHECK(near(p.cold.overlapped, 2048 / 21.645, 0.001), "%.2f", p.cold.overlapped);
    /* 8,192 rows: 144.4 GB and 3.3 of rows, 11.36 s. */
    T_CHECK(near(p.chunk.overlapped, 8192 / 11.362, 0.001), "%.2f", p.chunk.overlapped);
    /* Two layers of slots are in motion; the others need not be read again. */
    double kept = (7680.0 - (double)(p.slots - 768)) * 18800640 + 8192.0 * ROW_READS;
    T_CHECK(near(p.kept.overlapped, 8192 / (kept / (13 * giga)), 1e-4), "%.2f", p.kept.overlapped);
}

static void modes(void) {
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 4 * giga, .memory = 50 * giga};
    plumb_budget_request request = {.memory = 16 * (int64_t)giga, .chunk = 512};
    plumb_speed_plan p = plan_of(&s, &request, &rates);
    T_CHECK(p.mode == PLUMB_PLAN_LAYERS && p.slots < 240 && p.hits.anywhere == 0, "%" PRId64, p.slots);
    T_CHECK(near(p.decode.cost.disk_bytes, 240.0 * 18800640 + ROW_READS, 1e-9), "everything is read");

    /* The first change that is offered makes it a cache, just. */
    plumb_change changes[PLUMB_CHANGES];
    plumb_hit_curve curve = plumb__hit_curve_published();
    int n = plumb__speed_plan_changes(&s, &request, &rates, &curve, &p, changes);
    T_CHECK(n > 1 && changes[0].kind == PLUMB_CHANGE_CACHE && changes[0].plan.mode == PLUMB_PLAN_CACHE &&
                changes[0].plan.slots == 240,
            "%d changes", n);
    request.memory = (int64_t)changes[0].value - 8;
    T_CHECK(plan_of(&s, &request, &rates).mode == PLUMB_PLAN_LAYERS, "any less is no cache");

    request.memory = 512 * (int64_t)giga;
    p = plan_of(&s, &request, &rates);
    T_CHECK(p.mode == PLUMB_PLAN_RESIDENT && p.hits.anywhere == 1, "%" PRId64, p.slots);
    T_CHECK(near(p.decode.cost.disk_bytes, ROW_READS, 1e-9) && p.kept.overlapped > p.chunk.overlapped, "read once");
    /* Memory for the tables as well: nothing is read any more. */
    request.memory = 1024 * (int64_t)giga;
    p = plan_of(&s, &request, &rates);
    T_CHECK(p.decode.cost.disk_bytes == 0 && p.chunk.cost.disk_bytes > 0, "%.0f", p.decode.cost.disk_bytes);
}

static void changes_help(void) {
    plumb_model_sizes s = released_sizes();
    plumb_rates rates = {.disk = 13 * giga, .memory = 614 * giga};
    plumb_budget_request request = {.memory = 128 * (int64_t)giga};
    plumb_speed_plan p = plan_of(&s, &request, &rates);
    plumb_change changes[PLUMB_CHANGES];
    plumb_hit_curve curve = plumb__hit_curve_published();
    int n = plumb__speed_plan_changes(&s, &request, &rates, &curve, &p, changes);
    static const plumb_change_kind kinds[] = {PLUMB_CHANGE_MEMORY, PLUMB_CHANGE_MEMORY, PLUMB_CHANGE_DISK,
                                              PLUMB_CHANGE_CHUNK};
    T_CHECK(n == 4, "%d changes", n);
    for (int i = 0; i < 4 && i < n; i++) T_CHECK(changes[i].kind == kinds[i], "change %d", i);
    T_CHECK(changes[0].plan.hits.anywhere > p.hits.anywhere && changes[0].value == 192 * giga, "memory");
    T_CHECK(near(changes[2].plan.cold.cost.disk_seconds, p.cold.cost.disk_seconds / 2, 1e-9), "drive");
    /* Memory bounds decoding: neither a faster drive nor more memory is worth a line. */
    rates.disk = 1e6 * giga;
    request.chunk = 65536;
    p = plan_of(&s, &request, &rates);
    n = plumb__speed_plan_changes(&s, &request, &rates, &curve, &p, changes);
    for (int i = 0; i < n; i++)
        T_CHECK(changes[i].kind != PLUMB_CHANGE_DISK && changes[i].kind != PLUMB_CHANGE_CHUNK, "change %d", i);
}

T_MAIN({"published_curve", published_curve}, {"recorded_curve", recorded_curve}, {"token", token},
       {"prompt_work", prompt_work}, {"touched", touched}, {"decode_by_hand", decode_by_hand},
       {"prefill_by_hand", prefill_by_hand}, {"tables_are_read_once", tables_are_read_once},
       {"laptop", laptop}, {"modes", modes}, {"changes_help", changes_help})
