#include "stream/scripted_reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 2 };

struct scripted_reader {
    plumb_reader base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread[THREADS];
    plumb_read **waiting; /* [n_waiting] */
    int n_waiting, unfinished, most;
    int64_t started, until_fault;
    scripted_fault fault;
    uint32_t random;
    bool held, closing;
};

static void *must_have(void *memory) {
    if (memory) return memory;
    perror("scripted reader");
    exit(1);
}

/* Any of those that wait.  Under the lock. */
static plumb_read *take(scripted_reader *r) {
    r->random = r->random * 1664525u + 1013904223u;
    int at = (int)(r->random >> 16) % r->n_waiting;
    plumb_read *read = r->waiting[at];
    r->waiting[at] = r->waiting[--r->n_waiting];
    return read;
}

/* What this answer is to be.  Under the lock. */
static scripted_fault next_fault(scripted_reader *r) {
    if (r->fault == SCRIPTED_NONE || r->until_fault-- > 0) return SCRIPTED_NONE;
    scripted_fault fault = r->fault;
    if (fault == SCRIPTED_SHORT) r->until_fault = 0;
    else r->fault = SCRIPTED_NONE;
    return fault;
}

static int64_t answer(const plumb_read *read, scripted_fault fault) {
    switch (fault) {
    case SCRIPTED_EIO: return -EIO;
    case SCRIPTED_INTERRUPTED: return -EINTR;
    case SCRIPTED_END_OF_FILE: return 0;
    default: break;
    }
    size_t size = fault == SCRIPTED_SHORT ? 1 : (size_t)read->size;
    ssize_t got = pread(read->fd, read->into, size, (off_t)read->offset);
    return got < 0 ? -(int64_t)errno : got;
}

static void *serve(void *arg) {
    scripted_reader *r = arg;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while ((!r->n_waiting || r->held) && !r->closing)
            pthread_cond_wait(&r->changed, &r->lock);
        if (!r->n_waiting) break;
        plumb_read *read = take(r);
        scripted_fault fault = next_fault(r);
        pthread_mutex_unlock(&r->lock);
        int64_t result = answer(read, fault);
        pthread_mutex_lock(&r->lock);
        r->unfinished--;
        pthread_mutex_unlock(&r->lock);
        read->done(read, result);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void start(plumb_reader *reader, plumb_read *read) {
    scripted_reader *r = (scripted_reader *)reader;
    pthread_mutex_lock(&r->lock);
    r->started++;
    if (++r->unfinished > r->most) r->most = r->unfinished;
    if (r->n_waiting == r->base.depth) {
        fprintf(stderr, "scripted reader: more than %d reads unfinished\n", r->base.depth);
        exit(1);
    }
    r->waiting[r->n_waiting++] = read;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void ignore_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    (void)reader, (void)memory, (void)bytes;
}

static void close_reader(plumb_reader *reader) {
    scripted_reader *r = (scripted_reader *)reader;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < THREADS; i++) pthread_join(r->thread[i], NULL);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r->waiting);
    free(r);
}

scripted_reader *scripted_reader_open(int depth) {
    static const plumb_reader_ops ops = {"scripted", start, ignore_memory, ignore_memory,
                                         close_reader};
    scripted_reader *r = must_have(calloc(1, sizeof *r));
    r->base = (plumb_reader){&ops, depth};
    r->waiting = must_have(calloc((size_t)depth, sizeof *r->waiting));
    r->random = 1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&r->thread[i], NULL, serve, r) != 0) must_have(NULL);
    return r;
}

plumb_reader *scripted_reader_base(scripted_reader *reader) { return &reader->base; }

void scripted_reader_fail(scripted_reader *reader, int64_t at, scripted_fault fault) {
    pthread_mutex_lock(&reader->lock);
    reader->until_fault = at;
    reader->fault = fault;
    pthread_mutex_unlock(&reader->lock);
}

void scripted_reader_hold(scripted_reader *reader, bool held) {
    pthread_mutex_lock(&reader->lock);
    reader->held = held;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

int64_t scripted_reader_started(scripted_reader *reader) {
    pthread_mutex_lock(&reader->lock);
    int64_t started = reader->started;
    pthread_mutex_unlock(&reader->lock);
    return started;
}

int scripted_reader_unfinished(scripted_reader *reader) {
    pthread_mutex_lock(&reader->lock);
    int unfinished = reader->unfinished;
    pthread_mutex_unlock(&reader->lock);
    return unfinished;
}

int scripted_reader_most(scripted_reader *reader) {
    pthread_mutex_lock(&reader->lock);
    int most = reader->most;
    pthread_mutex_unlock(&reader->lock);
    return most;
}
