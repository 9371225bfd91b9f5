/* The order of reads, and what to make of their results.
 *
 * One lock guards everything; reads are started and loads reported without it.  A load is in one of
 * two lists while pieces of it have not begun.  It is finished when none has yet to begin and none
 * is in flight, which the load itself tells: no memory is allocated after open, and a finished load
 * is never looked at by the queue.  A piece that comes back short or interrupted keeps its place
 * and goes on. */
#include "stream/read_queue.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* A read that brings nothing new so many times in a row has failed. */
enum { MOST_STALLS = 16 };

typedef struct load_list {
    plumb_load *first, *last;
} load_list;

/* A part of an extent in flight. */
typedef struct piece {
    plumb_read read; /* what the reader works on: the piece, or the rest of it */
    plumb_read_queue *queue;
    plumb_load *load;
    struct piece *next; /* of those that are free */
    char *into;
    int64_t begin, size, needed, got; /* file offset, bytes */
    int extent, stalls;
    bool aligned; /* may be an uncached read, and must then stay aligned */
} piece;

/* The time during which something was going on. */
typedef struct stopwatch {
    double since, seconds;
} stopwatch;

struct plumb_read_queue {
    plumb_reader *reader;
    int64_t piece_bytes;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    load_list urgent, ahead;        /* loads with pieces that have not begun */
    int64_t unfinished;             /* loads whose `done` has not returned */
    int64_t urgent_loads, in_flight; /* unfinished ones, pieces */
    int64_t bytes, urgent_bytes;
    stopwatch urgent_time, busy_time;
    piece *free, *pieces; /* as many as the reader's depth */
};

/* ---- Lists and clocks ----------------------------------------------------------------------- */

static void append(load_list *list, plumb_load *load) {
    load->next = NULL;
    if (list->first) list->last->next = load;
    else list->first = load;
    list->last = load;
}

static void take_out(load_list *list, plumb_load *load) {
    plumb_load *before = NULL;
    for (plumb_load *at = list->first; at != load; at = at->next) before = at;
    if (before) before->next = load->next;
    else list->first = load->next;
    if (list->last == load) list->last = before;
}

static load_list *list_of(plumb_read_queue *queue, const plumb_load *load) {
    return load->urgent ? &queue->urgent : &queue->ahead;
}

/* Counts what is going on up or down; its stopwatch runs while that is above 0. */
static void count(int64_t *going_on, int change, stopwatch *watch) {
    if (*going_on == 0) watch->since = plumb__now();
    *going_on += change;
    if (*going_on == 0) watch->seconds += plumb__now() - watch->since;
}

static double seconds_of(const stopwatch *watch, int64_t going_on) {
    return watch->seconds + (going_on > 0 ? plumb__now() - watch->since : 0);
}

/* ---- The life of a load, under the lock --------------------------------------------------------- */

static bool all_begun(const plumb_load *load) { return load->extent_now == load->n_extents; }

static bool is_finished(const plumb_load *load) { return all_begun(load) && load->pieces == 0; }

/* The first fault counts; with it nothing more of the load begins. */
static void fail_load(plumb_read_queue *queue, plumb_load *load, int error, int extent,
                      int64_t offset) {
    if (load->error) return;
    load->error = error;
    load->error_extent = extent;
    load->error_offset = offset;
    if (all_begun(load)) return;
    take_out(list_of(queue, load), load);
    load->extent_now = load->n_extents;
}

/* A load that is finished by now leaves the books; it is to be reported. */
static plumb_load *finished(plumb_read_queue *queue, plumb_load *load) {
    if (!is_finished(load)) return NULL;
    if (load->urgent) count(&queue->urgent_loads, -1, &queue->urgent_time);
    return load;
}

/* Without the lock.  The load may be gone afterwards, and where none is left, the queue as well. */
static void report(plumb_read_queue *queue, plumb_load *load) {
    if (load->error) load->done(load, load->error, load->error_extent, load->error_offset);
    else load->done(load, 0, -1, -1);
    pthread_mutex_lock(&queue->lock);
    if (--queue->unfinished == 0) pthread_cond_broadcast(&queue->idle);
    pthread_mutex_unlock(&queue->lock);
}

/* ---- Pieces ------------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Makes the piece what comes next of the load. */
static void cut(plumb_read_queue *queue, plumb_load *load, piece *p) {
    const plumb_extent *extent = &load->extent[load->extent_now];
    int64_t at = load->offset_now, left = extent->needed - at;
    p->load = load;
    p->extent = load->extent_now;
    p->begin = extent->offset + at;
    p->size = least(extent->size - at, queue->piece_bytes);
    p->needed = left < 0 ? 0 : least(left, p->size);
    p->into = (char *)extent->into + at;
    p->got = 0;
    p->stalls = 0;
    p->aligned = (p->begin | p->size | (int64_t)(uintptr_t)p->into) % PLUMB_READ_ALIGNMENT == 0;
    p->read.fd = extent->fd;
    p->read.offset = p->begin;
    p->read.size = p->size;
    p->read.into = p->into;
    load->pieces++;
    load->offset_now += p->size;
    if (load->offset_now < extent->size) return;
    load->offset_now = 0;
    if (++load->extent_now == load->n_extents) take_out(list_of(queue, load), load);
}

/* The load that a piece may be started of. */
static plumb_load *next_load(plumb_read_queue *queue) {
    if (queue->urgent.first) return queue->urgent.first;
    return queue->urgent_loads == 0 ? queue->ahead.first : NULL;
}

/* Keeps the reader full.  Gives the lock away while it starts a read. */
static void start_pieces(plumb_read_queue *queue) {
    plumb_load *load;
    while (queue->free && (load = next_load(queue))) {
        piece *p = queue->free;
        queue->free = p->next;
        cut(queue, load, p);
        count(&queue->in_flight, 1, &queue->busy_time);
        pthread_mutex_unlock(&queue->lock);
        queue->reader->ops->start(queue->reader, &p->read);
        pthread_mutex_lock(&queue->lock);
    }
}

/* Sets the read to the rest of the piece.  Where the file may be open for uncached reading it begins
 * at a whole block. */
static void set_rest(piece *p) {
    int64_t skip = p->aligned ? p->got - p->got % PLUMB_READ_ALIGNMENT : p->got;
    p->read.offset = p->begin + skip;
    p->read.size = p->size - skip;
    p->read.into = p->into + skip;
}

/* Notes what the reader answered.  True: the piece has to go on. */
static bool goes_on(plumb_read_queue *queue, piece *p, int64_t result) {
    int64_t reached = p->read.offset - p->begin + (result > 0 ? result : 0);
    int64_t news = reached - p->got;
    if (news > 0) {
        p->got = reached;
        p->stalls = 0;
        queue->bytes += news;
        if (queue->urgent_loads > 0) queue->urgent_bytes += news;
    } else {
        p->stalls++;
    }
    int error = 0;
    if (result < 0) {
        bool again = result == -EINTR || result == -EAGAIN;
        if (!again || p->stalls >= MOST_STALLS) error = (int)-result;
    } else if (p->got >= p->needed) {
        return false; /* the rest is alignment */
    } else if (result == 0 || p->stalls >= MOST_STALLS) {
        error = ENODATA; /* or the file ends inside a block that is read again and again */
    }
    if (error) fail_load(queue, p->load, error, p->extent, p->begin + p->got);
    return !p->load->error;
}

static void piece_done(plumb_read *read, int64_t result) {
    piece *p = read->user;
    plumb_read_queue *queue = p->queue;
    pthread_mutex_lock(&queue->lock);
    if (goes_on(queue, p, result)) {
        set_rest(p);
        pthread_mutex_unlock(&queue->lock);
        queue->reader->ops->start(queue->reader, &p->read);
        return;
    }
    p->load->pieces--;
    plumb_load *load = finished(queue, p->load);
    count(&queue->in_flight, -1, &queue->busy_time);
    p->next = queue->free;
    queue->free = p;
    start_pieces(queue);
    pthread_mutex_unlock(&queue->lock);
    if (load) report(queue, load);
}

/* ---- What callers ask for ------------------------------------------------------------------------- */

void plumb__read_queue_add(plumb_read_queue *queue, plumb_load *load, bool urgent) {
    load->extent_now = load->pieces = load->error = load->error_extent = 0;
    load->offset_now = load->error_offset = 0;
    load->urgent = urgent;
    pthread_mutex_lock(&queue->lock);
    queue->unfinished++;
    if (urgent) count(&queue->urgent_loads, 1, &queue->urgent_time);
    append(list_of(queue, load), load);
    start_pieces(queue);
    pthread_mutex_unlock(&queue->lock);
}

void plumb__read_queue_urge(plumb_read_queue *queue, plumb_load *load) {
    pthread_mutex_lock(&queue->lock);
    if (!load->urgent && !is_finished(load)) {
        count(&queue->urgent_loads, 1, &queue->urgent_time);
        if (!all_begun(load)) {
            take_out(&queue->ahead, load);
            append(&queue->urgent, load);
        }
        load->urgent = true;
        start_pieces(queue);
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Under the lock.  The load, when nothing of it is in flight: it is to be reported. */
static plumb_load *drop(plumb_read_queue *queue, plumb_load *load) {
    bool at_end = all_begun(load);
    int extent = at_end ? load->n_extents - 1 : load->extent_now;
    int64_t offset = load->extent[extent].offset + (at_end ? 0 : load->offset_now);
    fail_load(queue, load, ECANCELED, extent, offset);
    return finished(queue, load);
}

bool plumb__read_queue_cancel(plumb_read_queue *queue, plumb_load *load) {
    pthread_mutex_lock(&queue->lock);
    bool dropped = !is_finished(load) && drop(queue, load);
    if (dropped && --queue->unfinished == 0) pthread_cond_broadcast(&queue->idle);
    pthread_mutex_unlock(&queue->lock);
    return dropped;
}

static void wait_idle(plumb_read_queue *queue) {
    while (queue->unfinished > 0) pthread_cond_wait(&queue->idle, &queue->lock);
}

void plumb__read_queue_wait_idle(plumb_read_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    wait_idle(queue);
    pthread_mutex_unlock(&queue->lock);
}

void plumb__read_queue_stats(plumb_read_queue *queue, plumb_read_stats *stats) {
    pthread_mutex_lock(&queue->lock);
    *stats = (plumb_read_stats){
        .bytes = queue->bytes,
        .urgent_seconds = seconds_of(&queue->urgent_time, queue->urgent_loads),
        .urgent_bytes = queue->urgent_bytes,
        .busy_seconds = seconds_of(&queue->busy_time, queue->in_flight),
    };
    pthread_mutex_unlock(&queue->lock);
}

plumb_reader *plumb__read_queue_reader(plumb_read_queue *queue) { return queue->reader; }

/* ---- Open and close ------------------------------------------------------------------------------- */

plumb_status plumb__read_queue_open(plumb_reader *reader, int64_t piece_bytes,
                                    plumb_read_queue **out, plumb_error *err) {
    if (piece_bytes < PLUMB_READ_ALIGNMENT || piece_bytes % PLUMB_READ_ALIGNMENT != 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "bytes of a read", -1,
                           plumb__format("%lld", (long long)piece_bytes).s, "a multiple of %d",
                           (int)PLUMB_READ_ALIGNMENT);
    plumb_read_queue *queue = calloc(1, sizeof *queue);
    size_t depth = (size_t)reader->depth;
    piece *pieces = calloc(depth, sizeof *pieces);
    if (!queue || !pieces) {
        free(queue);
        free(pieces);
        return plumb__fail_memory(err, "read queue", sizeof *queue + depth * sizeof *pieces);
    }
    queue->reader = reader;
    queue->piece_bytes = piece_bytes;
    queue->pieces = pieces;
    for (size_t i = 0; i < depth; i++) {
        pieces[i].queue = queue;
        pieces[i].read.done = piece_done;
        pieces[i].read.user = &pieces[i];
        pieces[i].next = queue->free;
        queue->free = &pieces[i];
    }
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->idle, NULL);
    *out = queue;
    return PLUMB_OK;
}

void plumb__read_queue_close(plumb_read_queue *queue) {
    if (!queue) return;
    pthread_mutex_lock(&queue->lock);
    plumb_load *load;
    load_list dropped = {0};
    while ((load = queue->urgent.first) || (load = queue->ahead.first))
        if (drop(queue, load)) append(&dropped, load);
    pthread_mutex_unlock(&queue->lock);
    for (load = dropped.first; load; load = dropped.first) {
        dropped.first = load->next;
        report(queue, load);
    }
    pthread_mutex_lock(&queue->lock);
    wait_idle(queue);
    pthread_mutex_unlock(&queue->lock);
    queue->reader->ops->close(queue->reader); /* its threads have left the queue then */
    pthread_cond_destroy(&queue->idle);
    pthread_mutex_destroy(&queue->lock);
    free(queue->pieces);
    free(queue);
}
