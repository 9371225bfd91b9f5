/* What streams from a converted file is what the released folder has: experts unpacked on arrival, whole
 * Engram rows; what is wrong with the file is named by payload and place.  On `tiny`. */
#include "convert/convert.h"
#include "stream/engram_rows.h"
#include "stream/expert_cache_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER BUILD_DIR "/stream_converted"
#define CONVERTED FOLDER "/tiny.gguf"

/* A matrix of an expert of tiny: 288 blocks; its reads of 4096 bytes. */
enum { SLICE = 4896, MATRIX_PIECES = 2 };

static void convert_once(void) {
    static bool done;
    if (done) return;
    plumb_error err = {0};
    plumb_convert_result result;
    const plumb_convert_options options = {.dense = PLUMB_DENSE_FP8, .force = true, .jobs = 1};
    must(mkdir(FOLDER, 0777) == 0 || errno == EEXIST, FOLDER);
    must(plumb__convert(TINY, CONVERTED, &options, &result, &err) == PLUMB_OK, err.found);
    done = true;
}

static fixture open_converted(void) {
    convert_once();
    fixture f = open_files_of(CONVERTED);
    must(plumb__checkpoint_open(TINY, NULL, NULL, &f.plain, NULL) == PLUMB_OK, TINY);
    return f;
}

static fixture open_converted_scripted(int64_t slots, int depth) {
    fixture f = open_converted();
    f.script = scripted_reader_open(depth);
    f.reader = scripted_reader_base(f.script);
    open_cache(&f, slots, PLUMB_EVICT_LRU, false);
    return f;
}

/* Writes over one byte of the file, whose time changes; the byte that was there. */
static uint8_t put_byte(int64_t offset, uint8_t byte) {
    uint8_t was = 0;
    int fd = open(CONVERTED, O_RDWR);
    must(fd >= 0 && pread(fd, &was, 1, (off_t)offset) == 1 &&
             pwrite(fd, &byte, 1, (off_t)offset) == 1,
         "byte");
    close(fd);
    return was;
}

/* ---- Experts ---------------------------------------------------------------------------------- */

/* Every thread that unpacks has room of its own, and gave it back. */
static void check_rooms(const fixture *f) {
    const plumb_expert_cache *c = f->cache;
    int64_t bytes = plumb__expert_unpack_room(c->config);
    T_CHECK(c->n_rooms == PLUMB_UNPACKERS, "%d rooms", c->n_rooms);
    for (int i = 0; i < c->n_rooms; i++)
        for (int j = 0; j < i; j++)
            T_CHECK(c->room[i] >= c->room[j] + bytes || c->room[j] >= c->room[i] + bytes,
                    "rooms %d and %d overlap", i, j);
}

static void every_expert(void) {
    static const int64_t slots[] = {1, 3, 8, 48};
    static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_BEST};
    for (int i = 0; i < 4; i++)
        for (int uncached = 0; uncached < 2; uncached++)
            for (int kind = 0; kind < 2; kind++) {
                fixture f = open_converted();
                must(plumb__reader_open(kinds[kind], DEPTH, &f.reader, NULL, 0, NULL) == PLUMB_OK,
                     "reader");
                open_cache(&f, slots[i], PLUMB_EVICT_LRU, uncached);
                for (int round = 0; round < 2; round++)
                    for (int64_t layer = 0; layer < f.layers; layer++) use(&f, layer, all, 8);
                check_whole(&f, slots[i], "converted");
                check_rooms(&f);
                plumb_expert_cache_stats stats = stats_of(&f);
                T_CHECK(stats.unpack_seconds > 0 && stats.misses > 0, "%g s, %" PRId64 " misses",
                        stats.unpack_seconds, stats.misses);
                close_fixture(&f);
            }
}

/* One slice of each stack, and nothing else. */
static void three_runs(void) {
    fixture f = open_converted_scripted(8, DEPTH);
    static const int32_t ids[] = {0, 3, 7};
    for (int i = 0; i < 3; i++) {
        plumb_expert_layout layout;
        must(plumb__expert_layout_find(f.checkpoint, 2, ids[i], 1, &layout, NULL) == PLUMB_OK,
             "layout");
        T_CHECK(layout.n_runs == 3, "%d runs", layout.n_runs);
        for (int r = 0; r < layout.n_runs; r++)
            T_CHECK(layout.run[r].size == SLICE && layout.run[r].needed == SLICE,
                    "%" PRId64 " bytes", layout.run[r].size);
    }
    use(&f, 2, ids, 3);
    T_CHECK(scripted_reader_started(f.script) == 3 * 3 * MATRIX_PIECES, "%" PRId64 " reads",
            scripted_reader_started(f.script));
    T_CHECK(stats_of(&f).reads.bytes == 3 * 3 * SLICE, "%" PRId64 " bytes",
            stats_of(&f).reads.bytes);
    close_fixture(&f);
}

/* A read that fails is named by the matrix it was for, inside its slice; nothing is unpacked, and the
 * next request reads it all again. */
static void reads_fail(void) {
    static const int32_t ids[] = {5};
    fixture f = open_converted_scripted(1, 1);
    for (int64_t nth = 0; nth < 3 * MATRIX_PIECES; nth++) {
        plumb_error err = {0};
        double unpacked = stats_of(&f).unpack_seconds;
        scripted_reader_fail(f.script, nth, SCRIPTED_EIO);
        T_CHECK(request(&f, nth, ids, 1, &err) == PLUMB_OK, "request");
        T_CHECK(take_all(&f, nth, ids, 1, MOST, &err) == -1, "no fault");
        T_CHECK(!(stats_of(&f).unpack_seconds > unpacked), "half an expert was unpacked");
        const plumb_tensor *t = plumb__checkpoint_find(f.checkpoint, "%s", err.field);
        T_CHECK(t && err.offset >= t->offset && err.offset < t->offset + SLICE,
                "%s at %" PRId64, err.field, err.offset);
        plumb__expert_cache_abandon(f.cache);
        use(&f, nth, ids, 1);
        check_whole(&f, 1, "failed");
    }
    close_fixture(&f);
}

/* A scale that is no number is named as the scale, where its block begins. */
static void scales_are_checked(void) {
    static const int32_t ids[] = {2};
    static const int blocks[] = {0, 100, SLICE / 17 - 1};
    for (int w = 1; w <= 3; w++) {
        char name[64];
        snprintf(name, sizeof name, "layers.4.ffn.experts.2.w%d.scale", w);
        fixture f = open_converted();
        const plumb_tensor *t = plumb__checkpoint_find(f.checkpoint, "%s", name);
        must(t != NULL, name);
        int64_t offset = t->offset + blocks[w - 1] * 17;
        plumb__checkpoint_close(f.checkpoint);
        uint8_t was = put_byte(offset, 0xFF);
        must(plumb__checkpoint_open(CONVERTED, NULL, NULL, &f.checkpoint, NULL) == PLUMB_OK, "open");
        must(plumb__reader_open(PLUMB_READER_PREAD, DEPTH, &f.reader, NULL, 0, NULL) == PLUMB_OK,
             "reader");
        open_cache(&f, 2, PLUMB_EVICT_LRU, false);
        plumb_error err = {0};
        T_CHECK(request(&f, 4, ids, 1, &err) == PLUMB_OK, "request");
        T_CHECK(take_all(&f, 4, ids, 1, MOST, &err) == -1 && err.status == PLUMB_ERROR_VALUE,
                "%s", name);
        T_CHECK(!strcmp(err.field, name) && err.offset == offset,
                "%s at %" PRId64 ", not %s at %" PRId64, err.field, err.offset, name, offset);
        plumb__expert_cache_abandon(f.cache);
        use(&f, 3, ids, 1);
        close_fixture(&f);
        (void)put_byte(offset, was);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------- */

typedef struct table {
    plumb_checkpoint *checkpoint, *plain;
    const plumb_tensor *codes, *scales; /* of the converted file */
    int64_t rows, dim, row_bytes;
    scripted_reader *reader;
    plumb_engram_rows *fetcher;
} table;

static table open_table(void) {
    table t = {0};
    convert_once();
    must(plumb__checkpoint_open(CONVERTED, NULL, NULL, &t.checkpoint, NULL) == PLUMB_OK &&
             plumb__checkpoint_open(TINY, NULL, NULL, &t.plain, NULL) == PLUMB_OK,
         "open");
    const plumb_model_config *c = plumb__checkpoint_config(t.checkpoint);
    t.codes = plumb__checkpoint_find(t.checkpoint, "layers.%d.engram.embed.weight",
                                     (int)c->engram_layer[0]);
    t.scales = plumb__checkpoint_find(t.checkpoint, "layers.%d.engram.embed.scale",
                                      (int)c->engram_layer[0]);
    must(t.codes && t.scales, "table");
    t.rows = c->engram_rows[0];
    t.dim = c->engram_dim;
    t.row_bytes = t.dim + t.dim / 32;
    t.reader = scripted_reader_open(3);
    must(plumb__engram_rows_open(t.checkpoint, scripted_reader_base(t.reader), 0, &t.fetcher,
                                 NULL) == PLUMB_OK,
         "fetcher");
    return t;
}

static void close_table(table *t) {
    plumb__engram_rows_close(t->fetcher);
    plumb__checkpoint_close(t->checkpoint);
    plumb__checkpoint_close(t->plain);
}

/* A payload of the released folder. */
static uint8_t *load(const plumb_checkpoint *plain, const char *name) {
    const plumb_tensor *t = plumb__checkpoint_find(plain, "%s", name);
    uint8_t *bytes = t ? malloc((size_t)t->bytes) : NULL;
    must(bytes && plumb__checkpoint_read(plain, t, 0, t->bytes, bytes, NULL) == PLUMB_OK, name);
    return bytes;
}

static plumb_status fetch(const table *t, const int64_t *numbers, int64_t n, uint8_t *codes,
                          uint8_t *scales, plumb_error *err) {
    must(plumb__engram_rows_begin(t->fetcher, 0, numbers, n, err) == PLUMB_OK, "begin");
    return plumb__engram_rows_finish(t->fetcher, 0, codes, scales, err);
}

static void rows_in_one_read(void) {
    table t = open_table();
    uint8_t *codes = load(t.plain, t.codes->name), *scales = load(t.plain, t.scales->name);
    uint8_t *code = calloc((size_t)t.rows, (size_t)t.dim);
    uint8_t *scale = calloc((size_t)t.rows, (size_t)t.dim / 32);
    int64_t *numbers = malloc((size_t)t.rows * sizeof *numbers);
    must(code && scale && numbers, "memory");
    for (int64_t i = 0; i < t.rows; i++) numbers[i] = i;
    plumb_error err = {0};
    T_CHECK(fetch(&t, numbers, t.rows, code, scale, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(!memcmp(code, codes, (size_t)(t.rows * t.dim)) &&
                !memcmp(scale, scales, (size_t)(t.rows * t.dim / 32)),
            "other rows");
    plumb_engram_row_stats stats;
    plumb__engram_rows_stats(t.fetcher, &stats);
    T_CHECK(stats.reads == t.rows && stats.bytes == t.rows * t.row_bytes,
            "%" PRId64 " reads, %" PRId64 " bytes", stats.reads, stats.bytes);
    free(codes), free(scales), free(code), free(scale), free(numbers);
    close_table(&t);
}

static void rows_fail(void) {
    enum { ROW = 77 };
    static const int64_t number[] = {ROW};
    uint8_t code[256], scale[8];
    table t = open_table();
    const int64_t row = t.codes->offset + ROW * t.row_bytes;
    plumb_error err = {0};
    scripted_reader_fail(t.reader, 0, SCRIPTED_EIO);
    T_CHECK(fetch(&t, number, 1, code, scale, &err) == PLUMB_ERROR_IO, "no fault");
    T_CHECK(!strcmp(err.field, t.codes->name) && err.offset == row, "%s at %" PRId64, err.field,
            err.offset);
    T_CHECK(fetch(&t, number, 1, code, scale, &err) == PLUMB_OK, "%s", err.found);
    close_table(&t);
    for (int of_scale = 0; of_scale < 2; of_scale++) {
        int64_t offset = row + (of_scale ? t.dim : 5);
        uint8_t was = put_byte(offset, 0xFF);
        t = open_table();
        T_CHECK(fetch(&t, number, 1, code, scale, &err) == PLUMB_ERROR_VALUE, "no NaN");
        T_CHECK(!strcmp(err.field, of_scale ? t.scales->name : t.codes->name) &&
                    err.offset == offset,
                "%s at %" PRId64 ", not %" PRId64, err.field, err.offset, offset);
        close_table(&t);
        (void)put_byte(offset, was);
    }
}

T_MAIN({"every_expert", every_expert}, {"three_runs", three_runs}, {"reads_fail", reads_fail},
       {"scales_are_checked", scales_are_checked}, {"rows_in_one_read", rows_in_one_read},
       {"rows_fail", rows_fail})
