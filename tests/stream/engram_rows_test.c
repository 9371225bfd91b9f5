/* The Engram row fetcher against rows read plainly, on `deep40`, which has two tables: every order,
 * duplicates, cache sizes and depths, a fault at every read, batches that are dropped, files that
 * change. */
#include "stream/engram_rows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "stream/scripted_reader.h"
#include "t.h"

enum { TABLES = 2, DIM = 32, SCALES = 1, MOST = 4096, EVERY = 1 << 20 };
#define DEEP40 BUILD_DIR "/checkpoints/deep40"

static void must(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "engram_rows_test: %s\n", what);
    exit(1);
}

/* A checkpoint, its tables as they should come out, and a fetcher with its reader. */
typedef struct fixture {
    plumb_checkpoint *checkpoint;
    const plumb_tensor *tensor[TABLES][2]; /* codes, scales */
    int64_t rows[TABLES];
    uint8_t *codes[TABLES], *scales[TABLES];
    scripted_reader *reader;
    plumb_engram_rows *fetcher;
} fixture;

static void open_checkpoint(fixture *f, const char *folder) {
    static const char *const names[2] = {"weight", "scale"};
    *f = (fixture){0};
    must(plumb__checkpoint_open(folder, NULL, NULL, &f->checkpoint, NULL) == PLUMB_OK, folder);
    const plumb_model_config *config = plumb__checkpoint_config(f->checkpoint);
    must(config->engram_layers == TABLES && config->engram_dim == DIM, "another shape");
    for (int t = 0; t < TABLES; t++) {
        f->rows[t] = config->engram_rows[t];
        uint8_t **into[2] = {&f->codes[t], &f->scales[t]};
        for (int i = 0; i < 2; i++) {
            f->tensor[t][i] =
                plumb__checkpoint_find(f->checkpoint, "layers.%d.engram.embed.%s",
                                       (int)config->engram_layer[t], names[i]);
            must(f->tensor[t][i] != NULL, "no table");
            *into[i] = malloc((size_t)f->tensor[t][i]->bytes);
            must(*into[i] && plumb__checkpoint_read(f->checkpoint, f->tensor[t][i], 0,
                                                    f->tensor[t][i]->bytes, *into[i],
                                                    NULL) == PLUMB_OK,
                 "table");
        }
    }
}

static void open_fetcher(fixture *f, int depth, int64_t cache_rows) {
    f->reader = scripted_reader_open(depth);
    must(plumb__engram_rows_open(f->checkpoint, scripted_reader_base(f->reader), cache_rows,
                                 &f->fetcher, NULL) == PLUMB_OK,
         "fetcher");
}

static fixture open_fixture(int depth, int64_t cache_rows) {
    fixture f;
    open_checkpoint(&f, DEEP40);
    open_fetcher(&f, depth, cache_rows);
    return f;
}

static void close_fixture(fixture *f) {
    plumb__engram_rows_close(f->fetcher);
    plumb__checkpoint_close(f->checkpoint);
    for (int t = 0; t < TABLES; t++) {
        free(f->codes[t]);
        free(f->scales[t]);
    }
}

static plumb_engram_row_stats stats_of(const fixture *f) {
    plumb_engram_row_stats stats;
    plumb__engram_rows_stats(f->fetcher, &stats);
    return stats;
}

/* Asked-for rows that came out wrong, or -1 when the call failed.  The room is poisoned first. */
static int64_t finish(const fixture *f, int table, const int64_t *numbers, int64_t n,
                      plumb_error *err) {
    static uint8_t codes[MOST * DIM], scales[MOST * SCALES];
    memset(codes, 0xA5, sizeof codes);
    memset(scales, 0xA5, sizeof scales);
    if (plumb__engram_rows_finish(f->fetcher, table, codes, scales, err) != PLUMB_OK) return -1;
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += memcmp(codes + i * DIM, f->codes[table] + numbers[i] * DIM, DIM) != 0 ||
                 memcmp(scales + i * SCALES, f->scales[table] + numbers[i] * SCALES, SCALES) != 0;
    if (n < MOST) wrong += codes[n * DIM] != 0xA5 || scales[n * SCALES] != 0xA5;
    return wrong;
}

static void begin(const fixture *f, int table, const int64_t *numbers, int64_t n) {
    plumb_error err;
    T_CHECK(plumb__engram_rows_begin(f->fetcher, table, numbers, n, &err) == PLUMB_OK, "%s",
            err.found);
}

static uint32_t random_below(uint32_t *random, int64_t n) {
    *random = *random * 1664525u + 1013904223u;
    return (uint32_t)((*random >> 8) % (uint64_t)n);
}

/* Drops a shard from the page cache, where the system takes the hint. */
static void forget(const fixture *f, int64_t shard) {
    int fd = open(plumb__checkpoint_shard_path(f->checkpoint, shard), O_RDONLY);
    must(fd >= 0, "shard");
#if defined(POSIX_FADV_DONTNEED)
    (void)fsync(fd); /* pages not yet written are not dropped */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
#endif
    close(fd);
}

/* ---- What is asked for ----------------------------------------------------------------------- */

typedef enum order { RISING, FALLING, RANDOM, FEW, ENDS, NOTHING, ORDERS } order;
static const char *const order_names[ORDERS] = {"rising", "falling", "random",
                                                "few",    "ends",    "nothing"};

/* Numbers of a table with `rows` rows in that order; returns how many. */
static int64_t fill(order o, int64_t rows, uint32_t seed, int64_t *numbers) {
    int64_t n = o == NOTHING ? 0 : o == ENDS ? 5 : o == FEW ? 200 : rows;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = o == RISING    ? i
                     : o == FALLING ? rows - 1 - i
                     : o == ENDS    ? (i % 2 ? 0 : rows - 1)
                                    : random_below(&seed, o == FEW ? 9 : rows);
    return n;
}

static int64_t count_distinct(const int64_t *numbers, int64_t n) {
    static bool seen[MOST];
    memset(seen, 0, sizeof seen);
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i++) {
        distinct += !seen[numbers[i]];
        seen[numbers[i]] = true;
    }
    return distinct;
}

static void every_order(void) {
    static const struct {
        int depth;
        int64_t cache_rows;
    } shapes[] = {{1, 0}, {3, 1}, {16, 97}, {128, EVERY}};
    static int64_t numbers[TABLES][MOST];
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        fixture f = open_fixture(shapes[s].depth, shapes[s].cache_rows);
        int64_t asked = 0, distinct = 0;
        for (int round = 0; round < 2 * ORDERS; round++) {
            int64_t n[TABLES];
            for (int t = 0; t < TABLES; t++) {
                n[t] = fill((order)((round + t) % ORDERS), f.rows[t], (uint32_t)round, numbers[t]);
                begin(&f, t, numbers[t], n[t]);
                asked += n[t];
                distinct += count_distinct(numbers[t], n[t]);
            }
            for (int i = 0; i < TABLES; i++) { /* collected in either order */
                int t = round % 2 ? TABLES - 1 - i : i;
                int64_t wrong = finish(&f, t, numbers[t], n[t], NULL);
                T_CHECK(wrong == 0, "depth %d, %s, table %d: %" PRId64, shapes[s].depth,
                        order_names[(round + t) % ORDERS], t, wrong);
            }
        }
        plumb_engram_row_stats stats = stats_of(&f);
        int64_t read = distinct - stats.cached;
        T_CHECK(stats.asked == asked && stats.distinct == distinct, "%" PRId64 ", %" PRId64,
                stats.asked, stats.distinct);
        T_CHECK(stats.reads == 2 * read && stats.bytes == read * (DIM + SCALES),
                "%" PRId64 " reads of %" PRId64 " rows", stats.reads, read);
        T_CHECK(scripted_reader_started(f.reader) == stats.reads, "%" PRId64, stats.reads);
        T_CHECK((stats.cached == 0) == (shapes[s].cache_rows == 0), "%" PRId64, stats.cached);
        /* With room for every row, each is read once in all. */
        if (shapes[s].cache_rows == EVERY)
            T_CHECK(read == f.rows[0] + f.rows[1], "%" PRId64 " rows read", read);
        close_fixture(&f);
    }
}

/* Rows push each other out; a row just collected is not read again.  The same number of another
 * table is another row. */
static void small_cache(void) {
    fixture f = open_fixture(4, 64);
    uint32_t random = 7;
    for (int batch = 0; batch < 400; batch++) {
        int64_t numbers[24];
        for (int i = 0; i < 24; i++) numbers[i] = random_below(&random, 150);
        int t = batch % TABLES;
        for (int again = 0; again < 2; again++) {
            int64_t started = scripted_reader_started(f.reader);
            begin(&f, t, numbers, again ? 1 : 24);
            T_CHECK(finish(&f, t, numbers, again ? 1 : 24, NULL) == 0, "batch %d", batch);
            begin(&f, t, numbers, 1);
            T_CHECK(finish(&f, t, numbers, 1, NULL) == 0, "batch %d", batch);
            T_CHECK(scripted_reader_started(f.reader) == started || !again, "batch %d", batch);
        }
    }
    plumb_engram_row_stats stats = stats_of(&f);
    T_CHECK(stats.cached > 0 && stats.reads == 2 * (stats.distinct - stats.cached), "%" PRId64,
            stats.cached);
    close_fixture(&f);
}

/* The readers that a model uses, from files that the system has let go of as far as it does. */
static void real_readers(void) {
    static const plumb_reader_kind kinds[] = {PLUMB_READER_BEST, PLUMB_READER_PREAD,
                                              PLUMB_READER_URING};
    static int64_t numbers[MOST];
    for (int k = 0; k < 3; k++) {
        fixture f;
        open_checkpoint(&f, DEEP40);
        plumb_reader *reader = NULL;
        plumb_status status = plumb__engram_rows_reader(kinds[k], &reader, NULL);
        if (status == PLUMB_ERROR_UNSUPPORTED) printf("io_uring: skipped\n");
        else T_CHECK(status == PLUMB_OK, "status %d", (int)status);
        if (status == PLUMB_OK) {
            must(plumb__engram_rows_open(f.checkpoint, reader, 97, &f.fetcher, NULL) == PLUMB_OK,
                 "fetcher");
            for (int t = 0; t < TABLES; t++) forget(&f, f.tensor[t][0]->shard);
            int64_t n = fill(RANDOM, f.rows[0], 5, numbers);
            for (int t = 0; t < TABLES; t++) begin(&f, t, numbers, n);
            for (int t = 0; t < TABLES; t++)
                T_CHECK(finish(&f, t, numbers, n, NULL) == 0, "table %d", t);
        }
        close_fixture(&f);
    }
}

/* Reads start with the batch, as many as the reader takes, the earlier layer's first. */
static void reads_in_flight(void) {
    static const int depths[] = {1, 5, 128};
    static int64_t numbers[MOST];
    for (int d = 0; d < 3; d++) {
        fixture f = open_fixture(depths[d], 0);
        int64_t n = fill(RISING, f.rows[0], 0, numbers);
        scripted_reader_hold(f.reader, true);
        begin(&f, 0, numbers, n);
        begin(&f, 1, numbers, n);
        T_CHECK(scripted_reader_unfinished(f.reader) == depths[d], "%d unfinished",
                scripted_reader_unfinished(f.reader));
        memset(numbers, 0xFF, sizeof numbers); /* they were copied */
        fill(RISING, f.rows[0], 0, numbers);
        scripted_reader_hold(f.reader, false);
        for (int t = 0; t < TABLES; t++)
            T_CHECK(finish(&f, t, numbers, n, NULL) == 0, "table %d", t);
        T_CHECK(scripted_reader_most(f.reader) == depths[d], "%d at once",
                scripted_reader_most(f.reader));
        close_fixture(&f);
    }
}

static void numbers_outside(void) {
    fixture f = open_fixture(4, 0);
    for (int t = 0; t < TABLES; t++) {
        const int64_t bad[] = {-1, f.rows[t], INT64_MAX, INT64_MIN};
        for (int i = 0; i < 4; i++) {
            int64_t numbers[] = {0, bad[i]};
            plumb_error err = {0};
            T_CHECK(plumb__engram_rows_begin(f.fetcher, t, numbers, 2, &err) ==
                        PLUMB_ERROR_ARGUMENT,
                    "row %" PRId64, bad[i]);
            T_CHECK(!strcmp(err.field, f.tensor[t][0]->name), "%s", err.field);
        }
    }
    T_CHECK(scripted_reader_started(f.reader) == 0, "%s", "nothing is read");
    close_fixture(&f);
}

/* ---- Faults ---------------------------------------------------------------------------------- */

/* The error names a table's file, one of its tensors, and an offset inside the row. */
static void check_fault(const fixture *f, int table, int64_t number, const plumb_error *err,
                        const char *found) {
    int part = !strcmp(err->field, f->tensor[table][1]->name);
    const plumb_tensor *tensor = f->tensor[table][part];
    int64_t bytes = part ? SCALES : DIM, at = err->offset - tensor->offset;
    T_CHECK(err->status == PLUMB_ERROR_IO, "status %d", (int)err->status);
    T_CHECK(!strcmp(err->field, tensor->name), "%s", err->field);
    T_CHECK(!strcmp(err->file, plumb__checkpoint_shard_path(f->checkpoint, tensor->shard)), "%s",
            err->file);
    T_CHECK(number < 0 ? at >= 0 && at < tensor->bytes && at % bytes == 0 : at == number * bytes,
            "%s at %" PRId64, err->field, at);
    T_CHECK(strstr(err->found, found) != NULL, "%s", err->found);
}

static void a_fault_at_every_read(void) {
    static const struct {
        scripted_fault fault;
        const char *found; /* NULL: read on */
    } faults[] = {{SCRIPTED_EIO, "nput/output error"}, {SCRIPTED_END_OF_FILE, "end of file"},
                  {SCRIPTED_SHORT, NULL},              {SCRIPTED_INTERRUPTED, NULL}};
    enum { N = 12 };
    for (int i = 0; i < 4; i++) {
        fixture f = open_fixture(3, 0);
        for (int64_t at = 0; at < 2 * TABLES * N; at++) {
            int64_t numbers[TABLES][N];
            uint32_t random = (uint32_t)at;
            for (int t = 0; t < TABLES; t++)
                for (int j = 0; j < N; j++) /* all different */
                    numbers[t][j] = j * 200 + (int64_t)random_below(&random, 200);
            scripted_reader_fail(f.reader, at, faults[i].fault);
            for (int t = 0; t < TABLES; t++) begin(&f, t, numbers[t], N);
            int failed = 0;
            for (int t = 0; t < TABLES; t++) {
                plumb_error err = {0};
                int64_t wrong = finish(&f, t, numbers[t], N, &err);
                T_CHECK(wrong <= 0, "%" PRId64 " wrong rows", wrong);
                failed += wrong < 0;
                if (wrong < 0 && faults[i].found) check_fault(&f, t, -1, &err, faults[i].found);
            }
            T_CHECK(failed == (faults[i].found != NULL), "read %" PRId64 ": %d failed", at, failed);
            /* The same again, in full. */
            scripted_reader_fail(f.reader, 0, SCRIPTED_NONE);
            for (int t = 0; t < TABLES; t++) begin(&f, t, numbers[t], N);
            for (int t = 0; t < TABLES; t++)
                T_CHECK(finish(&f, t, numbers[t], N, NULL) == 0, "read %" PRId64, at);
        }
        close_fixture(&f);
    }
}

/* Where one row is asked for, the place is known. */
static void faults_say_where(void) {
    fixture f = open_fixture(1, EVERY);
    for (int t = 0; t < TABLES; t++) {
        const int64_t numbers[] = {0, 1, f.rows[t] - 1};
        for (int i = 0; i < 3; i++)
            for (int part = 0; part < 2; part++) {
                plumb_error err = {0};
                scripted_reader_fail(f.reader, part, SCRIPTED_EIO);
                begin(&f, t, &numbers[i], 1);
                T_CHECK(finish(&f, t, &numbers[i], 1, &err) < 0, "row %" PRId64, numbers[i]);
                check_fault(&f, t, numbers[i], &err, "nput/output error");
                T_CHECK(!strcmp(err.field, f.tensor[t][part]->name), "%s", err.field);
            }
    }
    T_CHECK(stats_of(&f).cached == 0, "%s", "what failed is not in the cache");
    close_fixture(&f);
}

/* ---- Dropped batches ------------------------------------------------------------------------- */

static void abandoned(void) {
    static int64_t numbers[MOST], others[MOST];
    fixture f = open_fixture(8, EVERY);
    uint32_t random = 3;
    plumb__engram_rows_abandon(f.fetcher);
    for (int round = 0; round < 60; round++) {
        int64_t n = fill(RANDOM, f.rows[0], (uint32_t)round, numbers);
        int64_t m = 1 + random_below(&random, f.rows[1] / 50);
        fill(RANDOM, f.rows[1], (uint32_t)round + 1, others);
        begin(&f, 0, numbers, n);
        if (round % 3) begin(&f, 1, others, m);
        if (round % 4 == 3) T_CHECK(finish(&f, 0, numbers, n, NULL) == 0, "round %d", round);
        int64_t cached = stats_of(&f).cached;
        plumb__engram_rows_abandon(f.fetcher);
        T_CHECK(scripted_reader_unfinished(f.reader) == 0, "round %d", round);
        /* What was dropped is neither in the cache nor in the way; others are what is asked. */
        int64_t started = scripted_reader_started(f.reader), reads = stats_of(&f).reads;
        T_CHECK(started == reads, "round %d: %" PRId64 " of %" PRId64, round, reads, started);
        begin(&f, 1, others, m);
        if (round == 0) T_CHECK(stats_of(&f).cached == cached, "%s", "nothing is cached yet");
        T_CHECK(finish(&f, 1, others, m, NULL) == 0, "round %d", round);
        plumb__engram_rows_abandon(f.fetcher); /* nothing is left to drop */
    }
    fill(RISING, f.rows[0], 0, numbers);
    begin(&f, 0, numbers, f.rows[0]); /* closing drops it */
    close_fixture(&f);
}

/* ---- Files that change, values that may not be ----------------------------------------------- */

static void copy_of_deep40(const char *name, char folder[512]) {
    char command[8192];
    snprintf(folder, 512, BUILD_DIR "/engram_rows/%s", name);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s' && cp '%s'/* '%s'", folder,
             folder, DEEP40, folder);
    must(system(command) == 0, command);
}

static void changed_files(void) {
    static const struct {
        const char *name, *command, *found; /* $0 is the shard */
    } cases[] = {
        {"truncated", "truncate -s 20000 \"$0\"", ""},
        {"rewritten", "touch -t 200102030405 \"$0\"", "a file changed since it was opened"},
        {"replaced", "cp \"$0\" \"$0.new\" && mv \"$0.new\" \"$0\"", "another file of that name"},
        {"removed", "rm \"$0\"", "No such file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char folder[512], command[8192];
        copy_of_deep40(cases[i].name, folder);
        fixture f;
        open_checkpoint(&f, folder);
        open_fetcher(&f, 4, EVERY);
        int64_t first = 1, second = f.rows[1] - 1;
        begin(&f, 1, &first, 1);
        T_CHECK(finish(&f, 1, &first, 1, NULL) == 0, "%s", cases[i].name);
        const char *path =
            plumb__checkpoint_shard_path(f.checkpoint, f.tensor[1][0]->shard);
        snprintf(command, sizeof command, "sh -c '%s' '%s'", cases[i].command, path);
        must(system(command) == 0, command);
        for (int attempt = 0; attempt < 2; attempt++) {
            plumb_error err = {0};
            begin(&f, 1, &second, 1);
            T_CHECK(finish(&f, 1, &second, 1, &err) < 0 && err.status == PLUMB_ERROR_IO, "%s",
                    cases[i].name);
            T_CHECK(!strcmp(err.file, path) && strstr(err.field, "layers.14.engram.embed") &&
                        strstr(err.found, cases[i].found),
                    "%s: %s, %s, %s", cases[i].name, err.file, err.field, err.found);
        }
        close_fixture(&f);
    }
}

/* NaN is refused every time: it never gets into the cache. */
static void nan_codes(void) {
    for (int part = 0; part < 2; part++) {
        char folder[512];
        copy_of_deep40("nan", folder);
        fixture f;
        open_checkpoint(&f, folder);
        const plumb_tensor *tensor = f.tensor[0][part];
        int64_t bytes = part ? SCALES : DIM, place = tensor->offset + 77 * bytes + bytes - 1;
        FILE *file = fopen(plumb__checkpoint_shard_path(f.checkpoint, tensor->shard), "r+b");
        must(file && fseek(file, (long)place, SEEK_SET) == 0 && fputc(0xFF, file) == 0xFF &&
                 fclose(file) == 0,
             "damage");
        close_fixture(&f);
        open_checkpoint(&f, folder);
        open_fetcher(&f, 4, EVERY);
        tensor = f.tensor[0][part];
        const int64_t numbers[] = {76, 77, 78}, good[] = {76, 78};
        for (int attempt = 0; attempt < 2; attempt++) {
            plumb_error err = {0};
            begin(&f, 0, numbers, 3);
            T_CHECK(finish(&f, 0, numbers, 3, &err) < 0 && err.status == PLUMB_ERROR_VALUE,
                    "part %d", part);
            T_CHECK(!strcmp(err.field, tensor->name) && err.offset == place &&
                        strstr(err.found, "0xFF in row 77"),
                    "%s, %" PRId64 ", %s", err.field, err.offset, err.found);
            begin(&f, 0, good, 2);
            T_CHECK(finish(&f, 0, good, 2, NULL) == 0, "part %d", part);
        }
        close_fixture(&f);
    }
}

T_MAIN({"every_order", every_order}, {"small_cache", small_cache},
       {"real_readers", real_readers}, {"reads_in_flight", reads_in_flight}, {"numbers_outside", numbers_outside},
       {"a_fault_at_every_read", a_fault_at_every_read}, {"faults_say_where", faults_say_where},
       {"abandoned", abandoned}, {"changed_files", changed_files}, {"nan_codes", nan_codes})
