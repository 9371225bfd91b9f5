#include "stream/slot_memory.h"

#include "base/error.h"
#include "base/pages.h"

#include <pthread.h>
#include <stdlib.h>

struct plumb_slot_memory {
    plumb_reader *reader;
    plumb_backend *device; /* whose memory pieces are; NULL: the system's */
    int64_t bytes, ahead;
    pthread_t thread; /* when ahead > 0 */
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    void **ready;     /* [ahead] */
    int64_t n_ready, pieces, limit;
    bool stop, failed; /* failed: the system had no memory; nothing is made ahead any more */
};

static void *make(plumb_slot_memory *m) {
    void *piece = m->device ? m->device->ops->allocate(m->device, m->bytes) : plumb__pages_map(m->bytes);
    if (!piece) return NULL;
    if (!m->device) plumb__pages_touch(piece, m->bytes);
    m->reader->ops->add_memory(m->reader, piece, m->bytes);
    return piece;
}

static void unmake(plumb_slot_memory *m, void *piece) {
    m->reader->ops->remove_memory(m->reader, piece, m->bytes);
    if (m->device) m->device->ops->release(m->device, piece);
    else plumb__pages_unmap(piece, m->bytes);
}

static bool has_work(const plumb_slot_memory *m) {
    return !m->failed && m->n_ready < m->ahead && m->pieces < m->limit;
}

static void *make_ahead(void *arg) {
    plumb_slot_memory *m = arg;
    pthread_mutex_lock(&m->lock);
    for (;;) {
        while (!m->stop && !has_work(m)) pthread_cond_wait(&m->wanted, &m->lock);
        if (m->stop) break;
        m->pieces++;
        pthread_mutex_unlock(&m->lock);
        void *piece = make(m);
        pthread_mutex_lock(&m->lock);
        m->failed = !piece;
        if (piece && m->pieces <= m->limit) { /* it may have been lowered meanwhile */
            m->ready[m->n_ready++] = piece;
            continue;
        }
        if (piece) unmake(m, piece);
        m->pieces--;
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

plumb_status plumb__slot_memory_open(plumb_reader *reader, plumb_backend *backend, int64_t bytes,
                                     int64_t ahead, plumb_slot_memory **out, plumb_error *err) {
    plumb_slot_memory *m = calloc(1, sizeof *m);
    if (!m) return plumb__fail_memory(err, "slots", sizeof *m);
    *m = (plumb_slot_memory){.reader = reader, .bytes = bytes, .ahead = ahead};
    if (backend && backend->ops->address) m->device = backend;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wanted, NULL);
    m->ready = calloc((size_t)ahead + 1, sizeof *m->ready);
    /* Without a thread, pieces are made when they are taken. */
    m->has_thread = m->ready && ahead > 0 && pthread_create(&m->thread, NULL, make_ahead, m) == 0;
    *out = m;
    return PLUMB_OK;
}

void plumb__slot_memory_close(plumb_slot_memory *m) {
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wanted);
    pthread_mutex_unlock(&m->lock);
    if (m->has_thread) pthread_join(m->thread, NULL);
    while (m->n_ready > 0) unmake(m, m->ready[--m->n_ready]);
    free(m->ready);
    pthread_cond_destroy(&m->wanted);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void plumb__slot_memory_limit(plumb_slot_memory *m, int64_t pieces) {
    pthread_mutex_lock(&m->lock);
    m->limit = pieces;
    while (m->pieces > m->limit && m->n_ready > 0) {
        unmake(m, m->ready[--m->n_ready]);
        m->pieces--;
    }
    if (has_work(m)) pthread_cond_signal(&m->wanted);
    pthread_mutex_unlock(&m->lock);
}

void *plumb__slot_memory_take(plumb_slot_memory *m) {
    pthread_mutex_lock(&m->lock);
    void *piece = m->n_ready > 0 ? m->ready[--m->n_ready] : NULL;
    if (!piece) m->pieces++;
    if (has_work(m)) pthread_cond_signal(&m->wanted);
    pthread_mutex_unlock(&m->lock);
    if (piece || (piece = make(m))) return piece;
    pthread_mutex_lock(&m->lock);
    m->pieces--;
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

void plumb__slot_memory_give_back(plumb_slot_memory *m, void *piece) {
    unmake(m, piece);
    pthread_mutex_lock(&m->lock);
    m->pieces--;
    pthread_mutex_unlock(&m->lock);
}

int64_t plumb__slot_memory_bytes(plumb_slot_memory *m) {
    pthread_mutex_lock(&m->lock);
    int64_t bytes = m->pieces * m->bytes;
    pthread_mutex_unlock(&m->lock);
    return bytes;
}
