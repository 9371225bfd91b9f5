/* A model that is read from its files while it computes: does it read as fast as the drive can be
 * read, and does it wait for nothing else?  Streamed runs, each between two pure reads of the same
 * file with the same block size and depth (bench/README.md). */
#include "base/machine.h"
#include "busy_memory.h"
#include "drive.h"
#include "made_weights.h"
#include "measure.h"
#include "options.h"
#include "stream_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    const char *folder, *only, *reader, *level;
    int64_t threads, tokens, prefill, cache_experts, pairs, peer_megabytes;
    bench_list depths, blocks_kib; /* of streamed and pure reads alike; every one with every other */
    int64_t depth, block_kib;      /* of these, the ones being measured */
    int64_t busy;
    bool no_fio, guess, csv;
    bool fio;
    plumb_reader_kind kind;
    bench_streamed model;
    bench_random random;
    int32_t *sequence;         /* tokens of the pair at work */
    bench_pass *run, *compute; /* its passes, streamed and from memory */
} stream;

/* ---- Streamed runs --------------------------------------------------------------------------- */

/* How a mode evaluates its tokens: one at a time, or all at once. */
typedef struct mode {
    const char *name;
    int64_t tokens, passes;
    plumb_source_options source;
} mode;

/* The whole sequence from its beginning. */
static plumb_status run_passes(stream *s, const mode *m, plumb_weight_source *source,
                               bench_pass *passes, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    bench_streamed_begin(&s->model, source, s->sequence);
    for (int64_t i = 0; i < m->passes && status == PLUMB_OK; i++)
        status = bench_streamed_run(&s->model, m->tokens / m->passes, &passes[i], err);
    return status;
}

/* The second of two runs from a source that holds every expert of the sequence: it only computes. */
static plumb_status run_resident(stream *s, const mode *m, plumb_error *err) {
    plumb_source_options options = m->source;
    plumb_weight_source *source = NULL;
    options.slots = 0;
    plumb_status status = plumb__source_open(s->model.checkpoint, &options, &source, err);
    for (int i = 0; i < 2 && status == PLUMB_OK; i++)
        status = run_passes(s, m, source, s->compute, err);
    plumb__source_close(source);
    return status;
}

/* Whether every expert that the tokens may ask for fits into half of the memory. */
static bool fits_memory(const stream *s, const mode *m) {
    const plumb_model_config *c = bench_streamed_config(&s->model);
    int64_t each = m->tokens * c->experts_per_token;
    int64_t most = c->layers * (each < c->experts ? each : c->experts);
    int64_t bytes = plumb__expert_layout_bytes(c, PLUMB_READ_ALIGNMENT);
    return most * bytes <= plumb__machine_memory_bytes() / 2;
}

static bench_drive drive_of(const stream *s, int64_t number) {
    const plumb_model_config *c = bench_streamed_config(&s->model);
    return (bench_drive){.path = bench_streamed_shard(&s->model, number / 2 % c->layers),
                         .block_bytes = s->block_kib * 1024,
                         .depth = (int)s->depth,
                         .uring = s->kind == PLUMB_READER_URING,
                         .bytes = s->peer_megabytes * 1000000,
                         .seed = (uint64_t)number};
}

static const char *peer_name(const stream *s) {
    const bench_drive drive = drive_of(s, 0);
    if (!s->fio) return "a plain loop";
    return bench_drive_fio_takes_huge_pages(&drive) ? "fio in huge pages" : "fio in small pages";
}

static plumb_status read_peer(const stream *s, int64_t number, double *rate, plumb_error *err) {
    const bench_drive drive = drive_of(s, number);
    bench_busy_memory *busy = bench_busy_memory_start((int)s->busy);
    plumb_status status = bench_drive_read(&drive, s->fio, rate, err);
    bench_busy_memory_stop(busy);
    return status;
}

/* Whatever else the machine does makes operations longer, never shorter: of both runs, the lesser
 * times are nearer to the truth and give the lower bound. */
static void take_lesser(bench_pass *into, const bench_pass *other, int64_t layers) {
    if (other->outside < into->outside) into->outside = other->outside;
    for (int64_t l = 0; l < layers; l++) {
        bench_layer_pass *a = &into->layer[l];
        const bench_layer_pass *b = &other->layer[l];
        if (b->before < a->before) a->before = b->before;
        if (b->after < a->after) a->after = b->after;
    }
}

/* stats: of the streamed run alone. */
static void fill_pair(stream *s, const mode *m, bool resident, const plumb_read_stats *stats,
                      bench_pair *pair) {
    int64_t layers = bench_streamed_config(&s->model)->layers;
    const bench_pass *compute = resident ? s->compute : s->run;
    for (int64_t i = 0; i < m->passes; i++) {
        if (resident) take_lesser(&s->compute[i], &s->run[i], layers);
        pair->seconds += s->run[i].seconds;
        pair->computed += bench_pass_operations(&compute[i], layers);
    }
    pair->bytes = (double)stats->bytes;
    pair->rate = (double)stats->urgent_bytes / stats->urgent_seconds;
    double drive = 0.5 * (pair->before + pair->after);
    if (m->passes > 1) {
        pair->bound = bench_decode_bound(s->run, compute, m->passes, layers, pair->rate);
        pair->drive_bound = bench_decode_bound(s->run, compute, m->passes, layers, drive);
    } else {
        pair->bound = bench_prefill_bound(s->run, compute, layers, pair->rate);
        pair->drive_bound = bench_prefill_bound(s->run, compute, layers, drive);
    }
}

static void draw_sequence(stream *s, const mode *m) {
    int64_t vocab = bench_streamed_config(&s->model)->vocab;
    for (int64_t i = 0; i < m->tokens; i++)
        s->sequence[i] = (int32_t)(bench_draw(&s->random) % (uint64_t)vocab);
}

/* A streamed run, and what was read in it. */
static plumb_status run_streamed(stream *s, const mode *m, plumb_weight_source *source,
                                 plumb_read_stats *reads, double *waited, plumb_error *err) {
    plumb_expert_cache_stats before, after;
    plumb__expert_cache_get_stats(plumb__source_cache(source), &before);
    plumb_status status = run_passes(s, m, source, s->run, err);
    plumb__expert_cache_get_stats(plumb__source_cache(source), &after);
    *reads = (plumb_read_stats){
        .bytes = after.reads.bytes - before.reads.bytes,
        .urgent_bytes = after.reads.urgent_bytes - before.reads.urgent_bytes,
        .urgent_seconds = after.reads.urgent_seconds - before.reads.urgent_seconds,
        .busy_seconds = after.reads.busy_seconds - before.reads.busy_seconds};
    *waited = after.wait_seconds - before.wait_seconds;
    return status;
}

/* Pure read, streamed run, pure read; then the same tokens from memory, if their experts fit.  Every
 * pair has tokens of its own, thus other experts: whatever caches a drive keeps know as little of
 * these as of the blocks that a pure read draws. */
static plumb_status measure_pair(stream *s, const mode *m, plumb_weight_source *source,
                                 bool resident, int64_t number, bench_pair *pair,
                                 plumb_error *err) {
    plumb_read_stats reads = {0};
    *pair = (bench_pair){0};
    draw_sequence(s, m);
    plumb_status status = read_peer(s, 2 * number, &pair->before, err);
    if (status == PLUMB_OK) status = run_streamed(s, m, source, &reads, &pair->waited, err);
    if (status == PLUMB_OK) status = read_peer(s, 2 * number + 1, &pair->after, err);
    if (status == PLUMB_OK && resident) status = run_resident(s, m, err);
    if (status == PLUMB_OK) fill_pair(s, m, resident, &reads, pair);
    return status;
}

/* A run before the first pair touches all memory once, which the system hands out slowly. */
static bool measure(stream *s, const mode *m) {
    plumb_error err = {0};
    plumb_weight_source *source = NULL;
    bench_stream_report report = {.mode = m->name, .peer = peer_name(s),
                                  .reader = s->reader, .depth = (int)s->depth,
                                  .block_bytes = s->block_kib * 1024, .tokens = m->tokens,
                                  .slots = m->source.slots, .computed_apart = fits_memory(s, m)};
    plumb_status status = plumb__source_open(s->model.checkpoint, &m->source, &source, &err);
    draw_sequence(s, m);
    if (status == PLUMB_OK) status = run_passes(s, m, source, s->run, &err);
    for (; report.pairs < s->pairs && status == PLUMB_OK; report.pairs++)
        status = measure_pair(s, m, source, report.computed_apart, report.pairs,
                              &report.pair[report.pairs], &err);
    plumb__source_close(source);
    if (!bench_explain(status, &err)) return false;
    bench_stream_report_print(&report, s->csv);
    return true;
}

/* ---- Modes ----------------------------------------------------------------------------------- */

static bool measure_modes(stream *s) {
    const plumb_model_config *c = bench_streamed_config(&s->model);
    plumb_source_options source = {.slots = s->cache_experts, .uncached = true,
                                   .eviction = PLUMB_EVICT_AGE_OVER_USE, .read_ahead = s->guess,
                                   .reader = s->kind, .depth = (int)s->depth,
                                   .piece_bytes = s->block_kib * 1024};
    if (source.slots == 0) source.slots = 2 * c->experts_per_token;
    const mode decode = {.name = "decode", .tokens = s->tokens, .passes = s->tokens,
                         .source = source};
    source.eviction = PLUMB_EVICT_OLDEST;
    source.read_ahead = true;
    if (s->cache_experts == 0) source.slots = c->experts; /* half of them read ahead */
    const mode prefill = {.name = "prefill", .tokens = s->prefill, .passes = 1, .source = source};
    bool good = true;
    if (s->tokens > 0 && (!s->only || strstr("decode", s->only))) good = measure(s, &decode);
    if (good && s->prefill > 0 && (!s->only || strstr("prefill", s->only)))
        good = measure(s, &prefill);
    return good;
}

static bool measure_all(stream *s) {
    bool good = true;
    for (int64_t d = 0; d < s->depths.count; d++)
        for (int64_t b = 0; good && b < s->blocks_kib.count; b++) {
            s->depth = s->depths.value[d];
            s->block_kib = s->blocks_kib.value[b];
            good = measure_modes(s);
        }
    return good;
}

static bool allocate(stream *s) {
    int64_t n = s->tokens > s->prefill ? s->tokens : s->prefill;
    s->sequence = calloc((size_t)n + 1, sizeof *s->sequence);
    s->run = calloc((size_t)s->tokens + 1, sizeof *s->run);
    s->compute = calloc((size_t)s->tokens + 1, sizeof *s->compute);
    if (s->sequence && s->run && s->compute && bench_random_open(&s->random)) return true;
    fprintf(stderr, "no memory for %lld tokens\n", (long long)n);
    return false;
}

static bool options_valid(stream *s) {
    s->kind = !strcmp(s->reader, "pread") ? PLUMB_READER_PREAD : PLUMB_READER_URING;
    if (s->kind == PLUMB_READER_URING && strcmp(s->reader, "io_uring")) {
        fprintf(stderr, "--reader: %s is neither io_uring nor pread\n", s->reader);
        return false;
    }
    bool good = s->threads >= 1 && s->threads <= 256 && s->pairs >= 1 &&
                s->pairs <= BENCH_MAX_PAIRS && s->tokens != 1;
    for (int64_t i = 0; i < s->depths.count; i++)
        good &= s->depths.value[i] >= 1 && s->depths.value[i] <= 256;
    for (int64_t i = 0; i < s->blocks_kib.count; i++)
        good &= s->blocks_kib.value[i] >= 16 && s->blocks_kib.value[i] % 16 == 0;
    if (!good)
        fprintf(stderr, "--threads and --depth: 1 to 256; --pairs: 1 to %d; --block: multiples of "
                        "16; --tokens: 0, or 2 and more\n", BENCH_MAX_PAIRS);
    return good;
}

int main(int argc, char **argv) {
    stream s = {.threads = plumb__machine_cores(), .tokens = 16, .prefill = 512, .pairs = 5,
                .peer_megabytes = 2000, .depths = {.value = {16}, .count = 1},
                .blocks_kib = {.value = {4096}, .count = 1}, .reader = "io_uring"};
    const bench_option options[] = {
        {"MODEL", BENCH_OPERAND, &s.folder, "a checkpoint's folder or converted file, on the drive to be measured"},
        {"only", BENCH_TEXT, &s.only, "decode or prefill"},
        {"threads", BENCH_COUNT, &s.threads, "that compute (one per core)"},
        {"tokens", BENCH_COUNT, &s.tokens, "to decode one at a time, 0: none (16)"},
        {"prefill", BENCH_COUNT, &s.prefill, "tokens of the prompt, 0: none (512)"},
        {"cache-experts", BENCH_COUNT, &s.cache_experts,
         "slots (decode: two layers' choices; prefill: a whole layer)"},
        {"guess", BENCH_FLAG, &s.guess, "read the next layer's likely experts ahead; in vain here"},
        {"reader", BENCH_TEXT, &s.reader, "io_uring or pread (io_uring)"},
        {"depth", BENCH_LIST, &s.depths, "most unfinished reads (16, as in the engine)"},
        {"block", BENCH_LIST, &s.blocks_kib, "KiB of one read (4096, as in the engine)"},
        {"pairs", BENCH_COUNT, &s.pairs, "of a streamed run and two pure reads (5)"},
        {"peer-megabytes", BENCH_COUNT, &s.peer_megabytes, "of one pure read (2000)"},
        {"no-fio", BENCH_FLAG, &s.no_fio, "a plain loop makes the pure reads"},
        {"busy", BENCH_COUNT, &s.busy,
         "threads that stream memory beside the pure reads, as a computing model does (0)"},
        {"level", BENCH_LEVEL, &s.level, "kernels to use, of those this machine has"},
        {"csv", BENCH_FLAG, &s.csv, "comma separated"},
    };
    int status;
    plumb_error err = {0};
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof options[0], &status))
        return status;
    if (!options_valid(&s)) return 2;
    s.fio = !s.no_fio && bench_drive_has_fio();
    if (!s.fio && !s.no_fio && !s.csv)
        printf("fio is not here: a plain loop makes the pure reads\n");
    bool good = bench_explain(bench_streamed_open(s.folder, (int)s.threads, s.level, &s.model, &err), &err);
    if (good) good = allocate(&s) && measure_all(&s);
    if (s.model.checkpoint) bench_streamed_close(&s.model);
    bench_random_close(&s.random);
    free(s.sequence);
    free(s.run);
    free(s.compute);
    return good ? 0 : 1;
}
