/* Each Engram layer has one request, whose buffers last from batch to batch.  The evaluating thread
 * prepares a request, publishes it under the lock, and touches it again when the last piece has
 * landed; in between it belongs to the reader's threads.  A piece is one read: one part of one row, of
 * which a released table has two and a converted one, that keeps rows whole, has one.
 * Whoever finishes a piece starts the next, so the reader stays full without a thread of our own.
 * The cache is filled from checked rows only, by the evaluating thread. */
#include "stream/engram_rows.h"

#include "backend/backend.h"
#include "base/error.h"
#include "base/file.h"
#include "stream/row_cache.h"
#include "stream/row_set.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOADS = 2, URING_DEPTH = 128, PREAD_DEPTH = 16 }; /* payloads: codes, scales */
static const int64_t most_rows = (int64_t)1 << 30; /* of one request */

/* Bytes of a row that lie together in a file.  Row r's are bytes [r * bytes, (r + 1) * bytes) from the
 * tensor's place on, and go to `at` of the row's buffer: codes [dim], then scales [dim/32]. */
typedef struct row_part {
    const plumb_tensor *tensor; /* of a whole row: its codes */
    int fd;
    int64_t bytes, at;
} row_part;

typedef struct row_table {
    int64_t rows;
    const plumb_tensor *payload[PAYLOADS];
    row_part part[PAYLOADS];
    int n_parts;
} row_table;

typedef struct row_request {
    const row_table *table;
    plumb_row_set set;
    uint8_t *bytes;                 /* [distinct][row_bytes] */
    int32_t *missing;               /* [n_missing] of the distinct rows, those not in the cache */
    int64_t n_missing, capacity;    /* distinct rows that there is room for */
    /* Under the lock. */
    int64_t pieces, started, landed; /* pieces to read, given to the reader, done with */
    bool stopped;                    /* by a fault or abandoned: no further read */
    const row_part *fault_part;      /* where the first fault was, or NULL */
    int64_t fault_offset, fault_left; /* in the file; bytes still to come */
    int fault;                       /* errno, 0 for the end of the file */
} row_request;

typedef struct row_read {
    plumb_read read;
    plumb_engram_rows *owner;
    row_request *request;
    const row_part *part;
} row_read;

struct plumb_engram_rows {
    const plumb_checkpoint *checkpoint;
    plumb_reader *reader;
    int64_t engrams, code_bytes, scale_bytes, row_bytes;
    row_table table[PLUMB_MAX_ENGRAM_LAYERS];
    row_request request[PLUMB_MAX_ENGRAM_LAYERS];
    plumb_row_cache cache;
    pthread_mutex_t lock;
    pthread_cond_t landed; /* all pieces of a request */
    row_read *reads;       /* [depth] */
    row_read **idle;       /* [n_idle] */
    int n_idle;
    plumb_engram_row_stats stats;
};

/* ---- Tables ---------------------------------------------------------------------------------- */

/* Descriptors of their own: advice holds for all reads through a descriptor, and weights that are
 * read whole from the same shard want read-ahead.  And blocking ones: io_uring hands reads of others
 * back unread when the bytes are not in memory. */
static plumb_status open_part(const plumb_checkpoint *checkpoint, row_part *part,
                              plumb_error *err) {
    const char *path = plumb__checkpoint_shard_path(checkpoint, part->tensor->shard);
    struct stat opened;
    plumb_status status = plumb__file_open(path, &part->fd, &opened, err);
    if (status != PLUMB_OK) return status;
    if (fcntl(part->fd, F_SETFL, O_RDONLY) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, path, part->tensor->name, -1, strerror(errno),
                           "a blocking descriptor");
#if defined(POSIX_FADV_RANDOM)
    (void)posix_fadvise(part->fd, 0, 0, POSIX_FADV_RANDOM); /* advice: slower without it */
#endif
    return plumb__checkpoint_check_unchanged(checkpoint, part->tensor, err);
}

static plumb_status open_table(plumb_engram_rows *rows, int64_t engram, plumb_error *err) {
    static const char *const names[] = {"weight", "scale"};
    const plumb_model_config *config = plumb__checkpoint_config(rows->checkpoint);
    row_table *table = &rows->table[engram];
    table->rows = config->engram_rows[engram];
    for (int i = 0; i < PAYLOADS; i++) {
        plumb__text192 name = plumb__format("layers.%lld.engram.embed.%s",
                                            (long long)config->engram_layer[engram], names[i]);
        table->payload[i] = plumb__checkpoint_find(rows->checkpoint, "%s", name.s);
        if (!table->payload[i])
            return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(rows->checkpoint),
                               name.s, -1, "no such tensor", "it to be present");
    }
    const plumb_tensor *codes = table->payload[0], *scales = table->payload[1];
    const row_part whole = {codes, -1, rows->row_bytes, 0},
                   halves[PAYLOADS] = {{codes, -1, rows->code_bytes, 0},
                                       {scales, -1, rows->scale_bytes, rows->code_bytes}};
    bool joined = codes->stored == PLUMB_STORED_ROWS;
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < (joined ? 1 : PAYLOADS) && status == PLUMB_OK; i++) {
        table->part[table->n_parts++] = joined ? whole : halves[i];
        status = open_part(rows->checkpoint, &table->part[i], err);
    }
    rows->request[engram].table = table;
    return status;
}

/* A row's place among the rows of all tables. */
static int64_t cache_key(const plumb_engram_rows *rows, int engram, int64_t number) {
    return number * rows->engrams + engram;
}

static plumb_status open_tables(plumb_engram_rows *rows, int64_t cache_rows, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    int64_t keys = 0;
    for (int i = 0; i < rows->engrams && status == PLUMB_OK; i++) {
        status = open_table(rows, i, err);
        int64_t end = cache_key(rows, i, rows->table[i].rows);
        if (keys < end) keys = end;
    }
    if (status != PLUMB_OK) return status;
    return plumb__row_cache_init(&rows->cache, cache_rows < keys ? cache_rows : keys,
                                 rows->row_bytes, err);
}

/* ---- Reads ----------------------------------------------------------------------------------- */

static void stop(row_request *request) {
    request->stopped = true;
    request->pieces = request->started;
}

/* Prepares `read` for the next piece of the earliest layer that has one.  Under the lock. */
static bool next_piece(plumb_engram_rows *rows, row_read *read) {
    for (int i = 0; i < rows->engrams; i++) {
        row_request *request = &rows->request[i];
        if (request->started == request->pieces) continue;
        const row_table *table = request->table;
        int64_t piece = request->started++, index = request->missing[piece / table->n_parts];
        const row_part *part = &table->part[piece % table->n_parts];
        read->request = request;
        read->part = part;
        read->read.fd = part->fd;
        read->read.offset = part->tensor->offset + request->set.distinct[index] * part->bytes;
        read->read.size = part->bytes;
        read->read.into = request->bytes + index * rows->row_bytes + part->at;
        return true;
    }
    return false;
}

/* Takes the system's answer in; true when the rest of the piece has to be asked for.  Under the
 * lock. */
static bool is_unfinished(row_read *r, int64_t result) {
    plumb_engram_rows *rows = r->owner;
    row_request *request = r->request;
    bool interrupted = result == -EINTR || result == -EAGAIN;
    rows->stats.reads++;
    if (result > 0) {
        rows->stats.bytes += result;
        r->read.offset += result;
        r->read.size -= result;
        r->read.into = (uint8_t *)r->read.into + result;
    } else if (!interrupted && !request->stopped) {
        stop(request);
        request->fault_part = r->part;
        request->fault_offset = r->read.offset;
        request->fault_left = r->read.size;
        request->fault = (int)-result;
    }
    if (r->read.size > 0 && !request->stopped) return true;
    if (++request->landed == request->pieces) pthread_cond_broadcast(&rows->landed);
    return false;
}

static void on_read(plumb_read *read, int64_t result) {
    row_read *r = read->user;
    plumb_engram_rows *rows = r->owner;
    pthread_mutex_lock(&rows->lock);
    bool more = is_unfinished(r, result) || next_piece(rows, r);
    if (!more) rows->idle[rows->n_idle++] = r;
    pthread_mutex_unlock(&rows->lock);
    if (more) rows->reader->ops->start(rows->reader, read);
}

/* Gives the reader as much as it takes. */
static void start_reads(plumb_engram_rows *rows) {
    for (;;) {
        row_read *r = NULL;
        pthread_mutex_lock(&rows->lock);
        if (rows->n_idle > 0 && next_piece(rows, rows->idle[rows->n_idle - 1]))
            r = rows->idle[--rows->n_idle];
        pthread_mutex_unlock(&rows->lock);
        if (!r) return;
        rows->reader->ops->start(rows->reader, &r->read);
    }
}

/* Until nothing of the request is left with the reader.  Under the lock. */
static void wait_for(plumb_engram_rows *rows, const row_request *request) {
    while (request->landed < request->pieces) pthread_cond_wait(&rows->landed, &rows->lock);
}

/* ---- Open and close -------------------------------------------------------------------------- */

plumb_status plumb__engram_rows_reader(plumb_reader_kind kind, plumb_reader **reader,
                                       plumb_error *err) {
    if (kind != PLUMB_READER_PREAD) {
        plumb_status status = plumb__reader_open(PLUMB_READER_URING, URING_DEPTH, reader, NULL, 0, err);
        if (status != PLUMB_ERROR_UNSUPPORTED || kind == PLUMB_READER_URING) return status;
    }
    return plumb__reader_open(PLUMB_READER_PREAD, PREAD_DEPTH, reader, NULL, 0, err);
}

static plumb_status make_reads(plumb_engram_rows *rows, plumb_error *err) {
    size_t depth = (size_t)rows->reader->depth;
    rows->reads = calloc(depth, sizeof *rows->reads);
    rows->idle = calloc(depth, sizeof *rows->idle);
    if (!rows->reads || !rows->idle)
        return plumb__fail_memory(err, "row reads", depth * sizeof *rows->reads);
    for (size_t i = 0; i < depth; i++) {
        row_read *r = &rows->reads[i];
        *r = (row_read){.read = {.done = on_read, .user = r}, .owner = rows};
        rows->idle[rows->n_idle++] = r;
    }
    return PLUMB_OK;
}

plumb_status plumb__engram_rows_open(const plumb_checkpoint *checkpoint, plumb_reader *reader,
                                     int64_t cache_rows, plumb_engram_rows **out,
                                     plumb_error *err) {
    plumb_engram_rows *rows = calloc(1, sizeof *rows);
    if (!rows) {
        reader->ops->close(reader);
        return plumb__fail_memory(err, "Engram rows", sizeof *rows);
    }
    const plumb_model_config *config = plumb__checkpoint_config(checkpoint);
    rows->checkpoint = checkpoint;
    rows->reader = reader;
    rows->engrams = config->engram_layers;
    rows->code_bytes = config->engram_dim;
    rows->scale_bytes = config->engram_dim / PLUMB_BLOCK;
    rows->row_bytes = rows->code_bytes + rows->scale_bytes;
    pthread_mutex_init(&rows->lock, NULL);
    pthread_cond_init(&rows->landed, NULL);
    plumb_status status = make_reads(rows, err);
    if (status == PLUMB_OK) status = open_tables(rows, cache_rows, err);
    if (status == PLUMB_OK) *out = rows;
    else plumb__engram_rows_close(rows);
    return status;
}

void plumb__engram_rows_close(plumb_engram_rows *rows) {
    if (!rows) return;
    plumb__engram_rows_abandon(rows);
    rows->reader->ops->close(rows->reader);
    for (int i = 0; i < rows->engrams; i++) {
        row_request *request = &rows->request[i];
        plumb__row_set_free(&request->set);
        free(request->bytes);
        free(request->missing);
        for (int j = 0; j < rows->table[i].n_parts; j++)
            if (rows->table[i].part[j].fd >= 0) (void)close(rows->table[i].part[j].fd);
    }
    plumb__row_cache_free(&rows->cache);
    pthread_cond_destroy(&rows->landed);
    pthread_mutex_destroy(&rows->lock);
    free(rows->reads);
    free(rows->idle);
    free(rows);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

static plumb_status check_numbers(const plumb_engram_rows *rows, const row_table *table,
                                  const int64_t *numbers, int64_t n, plumb_error *err) {
    const plumb_tensor *tensor = table->part[0].tensor;
    const char *path = plumb__checkpoint_shard_path(rows->checkpoint, tensor->shard);
    if (n > most_rows)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, tensor->name, -1,
                           plumb__format("%lld rows", (long long)n).s, "at most %lld at a time",
                           (long long)most_rows);
    for (int64_t i = 0; i < n; i++)
        if (numbers[i] < 0 || numbers[i] >= table->rows)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, path, tensor->name, -1,
                               plumb__format("row %lld", (long long)numbers[i]).s,
                               "a row of %lld", (long long)table->rows);
    return PLUMB_OK;
}

/* Room for the distinct rows; what was there before is of no use any more. */
static plumb_status reserve(row_request *request, int64_t row_bytes, plumb_error *err) {
    int64_t n = request->set.n_distinct;
    if (n <= request->capacity) return PLUMB_OK;
    free(request->bytes);
    free(request->missing);
    request->bytes = malloc((size_t)(n * row_bytes));
    request->missing = malloc((size_t)n * sizeof *request->missing);
    request->capacity = request->bytes && request->missing ? n : 0;
    if (request->capacity == n) return PLUMB_OK;
    return plumb__fail_memory(err, "Engram rows", (size_t)(n * row_bytes));
}

plumb_status plumb__engram_rows_begin(plumb_engram_rows *rows, int engram, const int64_t *numbers,
                                      int64_t n, plumb_error *err) {
    row_request *request = &rows->request[engram];
    plumb_status status = check_numbers(rows, request->table, numbers, n, err);
    if (status == PLUMB_OK) status = plumb__row_set_make(&request->set, numbers, n, err);
    if (status == PLUMB_OK) status = reserve(request, rows->row_bytes, err);
    if (status != PLUMB_OK) return status;
    request->n_missing = 0;
    for (int64_t i = 0; i < request->set.n_distinct; i++)
        if (!plumb__row_cache_get(&rows->cache, cache_key(rows, engram, request->set.distinct[i]),
                                  request->bytes + i * rows->row_bytes))
            request->missing[request->n_missing++] = (int32_t)i;
    pthread_mutex_lock(&rows->lock);
    request->stopped = false;
    request->fault_part = NULL;
    request->started = request->landed = 0;
    request->pieces = request->n_missing * request->table->n_parts;
    rows->stats.asked += n;
    rows->stats.distinct += request->set.n_distinct;
    rows->stats.cached += request->set.n_distinct - request->n_missing;
    pthread_mutex_unlock(&rows->lock);
    start_reads(rows);
    return PLUMB_OK;
}

/* ---- Finish ---------------------------------------------------------------------------------- */

static plumb_status fault_of(const plumb_engram_rows *rows, const row_request *request,
                             plumb_error *err) {
    const plumb_tensor *tensor = request->fault_part->tensor;
    return plumb__fail(err, PLUMB_ERROR_IO,
                       plumb__checkpoint_shard_path(rows->checkpoint, tensor->shard), tensor->name,
                       request->fault_offset,
                       request->fault ? strerror(request->fault) : "end of file",
                       "%lld more bytes", (long long)request->fault_left);
}

/* What was read is of the files that were opened, and holds numbers. */
static plumb_status check_read(const plumb_engram_rows *rows, const row_request *request,
                               plumb_error *err) {
    plumb_status status = PLUMB_OK;
    if (request->n_missing == 0) return status;
    const row_table *table = request->table;
    const int64_t bytes[PAYLOADS] = {rows->code_bytes, rows->scale_bytes};
    for (int i = 0; i < table->n_parts && status == PLUMB_OK; i++)
        status = plumb__checkpoint_check_unchanged(rows->checkpoint, table->part[i].tensor, err);
    for (int64_t m = 0; m < request->n_missing; m++) {
        int64_t index = request->missing[m], row = request->set.distinct[index];
        const uint8_t *at = request->bytes + index * rows->row_bytes;
        for (int i = 0; i < PAYLOADS && status == PLUMB_OK; at += bytes[i++])
            status = plumb__checkpoint_check_values(rows->checkpoint, table->payload[i],
                                                    row * bytes[i], bytes[i], at, err);
    }
    return status;
}

plumb_status plumb__engram_rows_finish(plumb_engram_rows *rows, int engram, uint8_t *codes,
                                       uint8_t *scales, plumb_error *err) {
    row_request *request = &rows->request[engram];
    pthread_mutex_lock(&rows->lock);
    wait_for(rows, request);
    pthread_mutex_unlock(&rows->lock);
    plumb_status status = request->fault_part ? fault_of(rows, request, err)
                                              : check_read(rows, request, err);
    if (status != PLUMB_OK) return status;
    for (int64_t m = 0; m < request->n_missing; m++) {
        int64_t index = request->missing[m];
        plumb__row_cache_put(&rows->cache, cache_key(rows, engram, request->set.distinct[index]),
                             request->bytes + index * rows->row_bytes);
    }
    for (int64_t i = 0; i < request->set.n; i++) {
        const uint8_t *row = request->bytes + request->set.place[i] * rows->row_bytes;
        memcpy(codes + i * rows->code_bytes, row, (size_t)rows->code_bytes);
        memcpy(scales + i * rows->scale_bytes, row + rows->code_bytes, (size_t)rows->scale_bytes);
    }
    return PLUMB_OK;
}

void plumb__engram_rows_abandon(plumb_engram_rows *rows) {
    pthread_mutex_lock(&rows->lock);
    for (int i = 0; i < rows->engrams; i++) stop(&rows->request[i]);
    for (int i = 0; i < rows->engrams; i++) wait_for(rows, &rows->request[i]);
    pthread_mutex_unlock(&rows->lock);
}

int64_t plumb__engram_rows_bytes(const plumb_model_config *config, int64_t n) {
    enum { OF_LISTS = 24 }; /* place, number, up to two buckets of four bytes, index */
    return n * (config->engram_dim + config->engram_dim / PLUMB_BLOCK + OF_LISTS);
}

void plumb__engram_rows_stats(plumb_engram_rows *rows, plumb_engram_row_stats *stats) {
    pthread_mutex_lock(&rows->lock);
    *stats = rows->stats;
    pthread_mutex_unlock(&rows->lock);
}
