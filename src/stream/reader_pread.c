/* A reader for every system: `depth` threads that call pread.
 *
 * Reads wait in a ring of `depth` places, which cannot overflow: the caller keeps at most so many
 * unfinished.  A thread is in one system call at a time, so as many threads as reads. */
#include "base/error.h"
#include "stream/reader_kinds.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* One system call moves at most about 2 GiB; a short read goes on. */
enum { MOST_BYTES = 1 << 30 };

typedef struct pread_reader {
    plumb_reader reader;
    pthread_mutex_t lock;
    pthread_cond_t work;
    plumb_read **waiting; /* [depth] from `first` on, a ring */
    int first, count;
    bool stop;
    pthread_t *threads; /* [depth] */
} pread_reader;

static int64_t read_once(const plumb_read *read) {
    int64_t size = read->size < MOST_BYTES ? read->size : MOST_BYTES;
    ssize_t got = pread(read->fd, read->into, (size_t)size, (off_t)read->offset);
    return got < 0 ? -errno : got;
}

static void *work_loop(void *arg) {
    pread_reader *self = arg;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (self->count == 0 && !self->stop) pthread_cond_wait(&self->work, &self->lock);
        if (self->count == 0) break;
        plumb_read *read = self->waiting[self->first];
        self->first = (self->first + 1) % self->reader.depth;
        self->count--;
        pthread_mutex_unlock(&self->lock);
        read->done(read, read_once(read));
        pthread_mutex_lock(&self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void start(plumb_reader *reader, plumb_read *read) {
    pread_reader *self = (pread_reader *)reader;
    pthread_mutex_lock(&self->lock);
    self->waiting[(self->first + self->count++) % reader->depth] = read;
    pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->lock);
}

/* The system needs to know nothing of the memory that pread fills. */
static void ignore_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    (void)reader, (void)memory, (void)bytes;
}

static void stop_threads(pread_reader *self, int started) {
    pthread_mutex_lock(&self->lock);
    self->stop = true;
    pthread_cond_broadcast(&self->work);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < started; i++) pthread_join(self->threads[i], NULL);
    pthread_cond_destroy(&self->work);
    pthread_mutex_destroy(&self->lock);
}

static void release(pread_reader *self) {
    free(self->threads);
    free(self->waiting);
    free(self);
}

static void close_reader(plumb_reader *reader) {
    pread_reader *self = (pread_reader *)reader;
    stop_threads(self, reader->depth);
    release(self);
}

plumb_status plumb__reader_open_pread(int depth, plumb_reader **reader, plumb_error *err) {
    static const plumb_reader_ops ops = {"pread", start, ignore_memory, ignore_memory, close_reader};
    pread_reader *self = calloc(1, sizeof *self);
    if (!self) return plumb__fail_memory(err, "reader", sizeof *self);
    self->reader = (plumb_reader){&ops, depth};
    self->waiting = calloc((size_t)depth, sizeof *self->waiting);
    self->threads = calloc((size_t)depth, sizeof *self->threads);
    if (!self->waiting || !self->threads) {
        release(self);
        return plumb__fail_memory(err, "reader", (size_t)depth * sizeof *self->threads);
    }
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->work, NULL);
    for (int i = 0; i < depth; i++) {
        if (pthread_create(&self->threads[i], NULL, work_loop, self) == 0) continue;
        stop_threads(self, i);
        release(self);
        return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, "reader threads", i,
                           "the system starts no more", "%d threads", depth);
    }
    *reader = &self->reader;
    return PLUMB_OK;
}
