/* Does a session reach the disk as fast as a plain write, and come back as fast as a plain read?
 *
 * Saving beside a write of as many bytes with one fsync, restoring beside a read from start to end, in
 * pairs of neighbours with the file's part of the page cache dropped before each (bench/README.md).  The
 * session has the released shape and no meaning: its caches are random bytes, and there are no weights.
 * With --model, the time of the digest that names a model, from cold files. */
#include "convert_report.h"
#include "measure.h"
#include "options.h"

#include "base/error.h"
#include "base/file.h"
#include "engine/model_digest.h"
#include "text/token_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

typedef struct snapshot_bench {
    const char *work, *model_path;
    int64_t tokens, pairs;
    bool csv;
    char path[1024], peer_path[1024 + 8];
    plumb_model_config config;
    plumb_model model;
    plumb_session session;
    uint8_t *piece;
    int64_t file_bytes;
} snapshot_bench;

/* One of the two sides of a pair; *rate in bytes per second. */
typedef plumb_status (*side)(snapshot_bench *b, double *rate, plumb_error *err);

/* ---- The session ----------------------------------------------------------------------------------- */

static void *allocate(plumb_backend *backend, int64_t bytes) {
    (void)backend;
    return calloc(1, (size_t)bytes);
}

static void release(plumb_backend *backend, void *memory) {
    (void)backend;
    free(memory);
}

static const plumb_backend_ops memory_only = {.name = "memory", .allocate = allocate, .release = release};
static plumb_backend memory_backend = {&memory_only};

/* xorshift64*: bytes that no file system can store in less room. */
static void fill(uint8_t *to, int64_t bytes, uint64_t seed) {
    uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
    for (int64_t i = 0; i < bytes; i++) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        to[i] = (uint8_t)(state * 2685821657736338717u >> 56);
    }
}

static void fill_session(snapshot_bench *b) {
    const plumb_model_config *c = &b->config;
    uint64_t seed = 1;
    for (int64_t l = 0; l < c->layers; l++) {
        plumb_layer_state *at = &b->session.state->layer[l];
        fill(at->ring, c->window * plumb__window_row_bytes(c->head_dim), seed++);
        if (!at->compressed) continue;
        int64_t rows = b->tokens / c->ratio[l];
        fill(at->compressed, rows * plumb__compressed_row_bytes(c->head_dim), seed++);
        fill(at->index_keys, rows * plumb__index_row_bytes(c->index_dim), seed++);
    }
}

static plumb_status make_session(snapshot_bench *b, plumb_error *err) {
    plumb_session *s = &b->session;
    plumb_status status = plumb__config_load(RELEASED_CONFIG, NULL, NULL, &b->config, err);
    if (status != PLUMB_OK) return status;
    b->model = (plumb_model){.has_digest = true};
    b->model.network.config = &b->config;
    pthread_mutex_init(&b->model.lock, NULL);
    pthread_mutex_init(&b->model.digest_lock, NULL);
    *s = (plumb_session){.model = &b->model, .options.context = b->tokens};
    status = plumb__state_create(&b->config, &memory_backend, &s->state, err);
    if (status == PLUMB_OK) status = plumb__state_reserve(s->state, b->tokens, err);
    if (status != PLUMB_OK) return status;
    s->state->length = b->tokens;
    s->tokens = calloc((size_t)b->tokens, sizeof *s->tokens);
    b->piece = malloc(PIECE);
    if (!s->tokens || !b->piece) return plumb__fail_memory(err, "tokens", (size_t)b->tokens * 4);
    fill(b->piece, PIECE, 0);
    fill_session(b);
    return PLUMB_OK;
}

static void free_session(snapshot_bench *b) {
    for (int i = 0; i < b->session.n_points; i++) free(b->session.point[i].fixed);
    plumb__state_destroy(b->session.state);
    free(b->session.tokens);
    free(b->piece);
}

/* ---- Sides ----------------------------------------------------------------------------------------- */

static plumb_status save(snapshot_bench *b, double *rate, plumb_error *err) {
    double start = bench_now();
    plumb_status status = plumb_session_save(&b->session, b->path, NULL, err);
    *rate = (double)b->file_bytes / (bench_now() - start);
    return status;
}

/* As many bytes, made to reach the disk under a new name in the same way. */
static plumb_status write_plainly(snapshot_bench *b, double *rate, plumb_error *err) {
    double start = bench_now();
    int fd = open(b->peer_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return plumb__fail(err, PLUMB_ERROR_IO, b->peer_path, "open", -1, strerror(errno), NULL);
    plumb_status status = PLUMB_OK;
    for (int64_t at = 0; at < b->file_bytes && status == PLUMB_OK; at += PIECE) {
        int64_t left = b->file_bytes - at;
        status = plumb__file_write_at(fd, b->peer_path, at, left < PIECE ? left : PIECE, b->piece, err);
    }
    if (status == PLUMB_OK && fsync(fd) != 0)
        status = plumb__fail(err, PLUMB_ERROR_IO, b->peer_path, "fsync", -1, strerror(errno), NULL);
    (void)close(fd);
    *rate = (double)b->file_bytes / (bench_now() - start);
    return status;
}

static plumb_status restore(snapshot_bench *b, double *rate, plumb_error *err) {
    double start = bench_now();
    plumb_snapshot *snapshot = NULL;
    plumb_status status = plumb_snapshot_open(b->path, &snapshot, err);
    if (status == PLUMB_OK) status = plumb_session_restore(&b->session, snapshot, err);
    plumb_snapshot_close(snapshot);
    *rate = (double)b->file_bytes / (bench_now() - start);
    return status;
}

/* Into memory that was not touched before either: a restored session's is new. */
static plumb_status read_plainly(snapshot_bench *b, double *rate, plumb_error *err) {
    double start = bench_now();
    int fd = -1;
    struct stat there;
    plumb_status status = plumb__file_open(b->path, &fd, &there, err);
    if (status != PLUMB_OK) return status;
    uint8_t *memory = malloc((size_t)b->file_bytes);
    if (!memory) status = plumb__fail_memory(err, "file", (size_t)b->file_bytes);
    for (int64_t at = 0; at < b->file_bytes && status == PLUMB_OK; at += PIECE) {
        int64_t left = b->file_bytes - at;
        status = plumb__file_read_at(fd, b->path, "file", at, left < PIECE ? left : PIECE, memory + at,
                                     err);
    }
    free(memory);
    (void)close(fd);
    *rate = (double)b->file_bytes / (bench_now() - start);
    return status;
}

/* ---- Pairs ----------------------------------------------------------------------------------------- */

static void drop_from_cache(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
#ifdef POSIX_FADV_DONTNEED
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
    (void)close(fd);
}

/* Neighbours, whose order turns around from pair to pair. */
static bool measure(snapshot_bench *b, bench_convert_report *report, side ours, side peer) {
    plumb_error err = {0};
    plumb_status status = PLUMB_OK;
    for (; report->pairs < b->pairs && status == PLUMB_OK; report->pairs++)
        for (int turn = 0; turn < 2 && status == PLUMB_OK; turn++) {
            bool mine = (report->pairs + turn) % 2 != 0;
            drop_from_cache(b->path);
            drop_from_cache(b->peer_path);
            status = (mine ? ours : peer)(b, mine ? &report->ours[report->pairs]
                                                  : &report->peer[report->pairs], &err);
        }
    if (!bench_explain(status, &err)) return false;
    bench_convert_report_print(report, b->csv);
    return true;
}

static bool measure_session(snapshot_bench *b) {
    plumb_error err = {0};
    struct stat there;
    plumb_status status = make_session(b, &err);
    if (status == PLUMB_OK) status = plumb_session_save(&b->session, b->path, NULL, &err);
    if (!bench_explain(status, &err) || stat(b->path, &there) != 0) return false;
    b->file_bytes = there.st_size;
    bench_convert_report saving = {.name = "save", .beside = "a plain write and fsync", .wanted = 0.8,
                                   .jobs = 1, .bytes = b->file_bytes};
    bench_convert_report restoring = {.name = "restore", .beside = "a plain read", .wanted = 0.8,
                                      .jobs = 1, .bytes = b->file_bytes};
    return measure(b, &saving, save, write_plainly) && measure(b, &restoring, restore, read_plainly);
}

/* ---- The digest ------------------------------------------------------------------------------------ */

/* Without loading a weight: as long as a first save waits, at worst. */
static bool measure_digest(const snapshot_bench *b) {
    plumb_error err = {0};
    plumb_model model = {0};
    pthread_mutex_init(&model.digest_lock, NULL);
    plumb_status status = plumb__checkpoint_open(b->model_path, NULL, NULL, &model.checkpoint, &err);
    if (status == PLUMB_OK) {
        const plumb_model_config *c = plumb__checkpoint_config(model.checkpoint);
        status = plumb__token_map_load(b->model_path, c->vocab, c->engram_folded_vocab, c->image_id,
                                       &model.token_map, &err);
    }
    for (int turn = 0; turn < 2 && status == PLUMB_OK; turn++) {
        uint8_t digest[PLUMB_MODEL_DIGEST_BYTES];
        for (int64_t i = 0; turn == 0 && i < plumb__checkpoint_shards(model.checkpoint); i++)
            drop_from_cache(plumb__checkpoint_shard_path(model.checkpoint, i));
        double start = bench_now();
        model.has_digest = false;
        status = plumb__model_digest(&model, digest, &err);
        if (status == PLUMB_OK)
            printf("digest of %lld tensors, %s: %.3f s\n",
                   (long long)plumb__checkpoint_count(model.checkpoint),
                   turn == 0 ? "from cold files" : "again", bench_now() - start);
    }
    plumb__checkpoint_close(model.checkpoint);
    free(model.token_map);
    return bench_explain(status, &err);
}

/* ---- The program ----------------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    static snapshot_bench b = {.tokens = 131072, .pairs = 7};
    const bench_option options[] = {
        {"work", BENCH_TEXT, &b.work, "a folder on the disk to measure"},
        {"tokens", BENCH_COUNT, &b.tokens, "length of the session (131072)"},
        {"pairs", BENCH_COUNT, &b.pairs, "of each measurement (7)"},
        {"model", BENCH_TEXT, &b.model_path, "also time the digest of this model"},
        {"csv", BENCH_FLAG, &b.csv, "lines for keeping"}};
    int status = 0;
    if (!bench_options_parse(argc, argv, options, sizeof options / sizeof options[0], &status))
        return status;
    if (!b.work || b.tokens < 1 || b.tokens > 1 << 20 || b.pairs < 1 ||
        b.pairs > BENCH_MAX_CONVERT_PAIRS) {
        fprintf(stderr, "--work is needed; --tokens: 1 to %d; --pairs: 1 to %d\n", 1 << 20,
                BENCH_MAX_CONVERT_PAIRS);
        return 2;
    }
    (void)snprintf(b.path, sizeof b.path, "%s/bench-snapshot.%ld", b.work, (long)getpid());
    (void)snprintf(b.peer_path, sizeof b.peer_path, "%s.peer", b.path);
    bool good = measure_session(&b);
    (void)unlink(b.path);
    (void)unlink(b.peer_path);
    free_session(&b);
    if (good && b.model_path) good = measure_digest(&b);
    return good ? 0 : 1;
}
