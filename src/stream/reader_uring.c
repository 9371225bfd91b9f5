/* A reader over io_uring: one system call hands a read to the kernel, one thread collects what has
 * arrived.
 *
 * Whoever starts a read submits it, one at a time under a lock; the reaper alone looks at the
 * completions, takes each out of the ring and calls `done` with no lock held, so that `done` can
 * start the next read.  The completion ring has twice the places of the submission ring, so it
 * cannot overflow.
 *
 * Memory that many reads go to is registered: the kernel then need not find and hold its pages
 * anew for each read.  The table of registered ranges is made empty when the reader opens and
 * filled one range at a time.  Where the kernel refuses (its version, the limit of locked memory)
 * the range is left out and reads into it are ordinary ones. */
#include "base/error.h"
#include "stream/reader_kinds.h"

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* The kernel's limits: entries of the table, bytes of an entry.  It reads at most about 2 GiB at
 * once; a short read goes on. */
enum { TABLE_ENTRIES = 16384, ENTRY_BYTES = 1 << 30, MOST_BYTES = 1 << 30 };

typedef struct memory_range {
    char *begin;
    int64_t bytes;
    int entry; /* of the kernel's table */
} memory_range;

typedef struct uring_reader {
    plumb_reader reader;
    struct io_uring ring;
    pthread_t reaper;
    pthread_mutex_t lock;  /* submission, and what follows */
    int n_ranges, n_free;
    memory_range *ranges;  /* [n_ranges] of TABLE_ENTRIES, ascending; NULL: nothing is registered */
    int *free_entry;       /* [n_free] of TABLE_ENTRIES, a stack */
} uring_reader;

/* ---- Registered memory, under the lock ---------------------------------------------------------- */

/* How many ranges begin at or before `memory`. */
static int ranges_up_to(const uring_reader *self, const char *memory) {
    int low = 0, high = self->n_ranges;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (self->ranges[middle].begin <= memory) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The table's entry that holds all of the memory, or -1. */
static int entry_of(const uring_reader *self, const char *memory, int64_t bytes) {
    int i = ranges_up_to(self, memory) - 1;
    if (i < 0) return -1;
    const memory_range *range = &self->ranges[i];
    return memory - range->begin <= range->bytes - bytes ? range->entry : -1;
}

static bool set_entry(uring_reader *self, int entry, void *memory, int64_t bytes) {
    struct iovec range = {memory, (size_t)bytes};
    __u64 tag = 0;
    return io_uring_register_buffers_update_tag(&self->ring, (unsigned)entry, &range, &tag, 1) == 1;
}

static bool register_range(uring_reader *self, char *memory, int64_t bytes) {
    if (self->n_free == 0) return false;
    int entry = self->free_entry[self->n_free - 1];
    if (!set_entry(self, entry, memory, bytes)) return false;
    self->n_free--;
    int at = ranges_up_to(self, memory);
    memory_range *place = self->ranges + at;
    memmove(place + 1, place, (size_t)(self->n_ranges - at) * sizeof *place);
    *place = (memory_range){memory, bytes, entry};
    self->n_ranges++;
    return true;
}

static void add_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    uring_reader *self = (uring_reader *)reader;
    pthread_mutex_lock(&self->lock);
    char *begin = memory, *end = begin + bytes;
    while (self->ranges && begin < end) {
        int64_t part = end - begin < ENTRY_BYTES ? end - begin : ENTRY_BYTES;
        if (!register_range(self, begin, part)) break;
        begin += part;
    }
    pthread_mutex_unlock(&self->lock);
}

/* The ranges that begin inside the memory. */
static void forget_ranges(uring_reader *self, char *memory, int64_t bytes) {
    int end = ranges_up_to(self, memory + bytes - 1), first = end;
    while (first > 0 && self->ranges[first - 1].begin >= memory) first--;
    for (int i = first; i < end; i++) {
        /* An entry that the kernel will not empty keeps its pages, and is not used again. */
        if (set_entry(self, self->ranges[i].entry, NULL, 0))
            self->free_entry[self->n_free++] = self->ranges[i].entry;
    }
    memmove(self->ranges + first, self->ranges + end,
            (size_t)(self->n_ranges - end) * sizeof *self->ranges);
    self->n_ranges -= end - first;
}

static void remove_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    uring_reader *self = (uring_reader *)reader;
    pthread_mutex_lock(&self->lock);
    if (self->ranges && bytes > 0) forget_ranges(self, memory, bytes);
    pthread_mutex_unlock(&self->lock);
}

/* ---- Reads ---------------------------------------------------------------------------------------- */

/* The kernel may be short of memory for a moment.  What was prepared stays in the ring until it is
 * taken. */
static void submit(uring_reader *self) {
    while (io_uring_submit(&self->ring) < 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void start(plumb_reader *reader, plumb_read *read) {
    uring_reader *self = (uring_reader *)reader;
    unsigned size = (unsigned)(read->size < MOST_BYTES ? read->size : MOST_BYTES);
    pthread_mutex_lock(&self->lock);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring); /* each is taken before the next */
    int entry = entry_of(self, read->into, size);
    if (entry >= 0)
        io_uring_prep_read_fixed(sqe, read->fd, read->into, size, (__u64)read->offset, entry);
    else
        io_uring_prep_read(sqe, read->fd, read->into, size, (__u64)read->offset);
    io_uring_sqe_set_data(sqe, read);
    submit(self);
    pthread_mutex_unlock(&self->lock);
}

static void *reap_loop(void *arg) {
    uring_reader *self = arg;
    for (;;) {
        struct io_uring_cqe *cqe;
        if (io_uring_wait_cqe(&self->ring, &cqe) != 0) continue; /* interrupted */
        plumb_read *read = io_uring_cqe_get_data(cqe);
        int64_t result = cqe->res;
        io_uring_cqe_seen(&self->ring, cqe);
        /* The kernel stands between the thread that submitted and this one; the lock tells the
         * memory model, and whoever checks it, that one came before the other. */
        pthread_mutex_lock(&self->lock);
        pthread_mutex_unlock(&self->lock);
        if (!read) return NULL; /* the end */
        /* The kernel calls off what waits when the thread that submitted it ends. */
        read->done(read, result == -ECANCELED ? -EINTR : result);
    }
}

/* A completion without a read. */
static void submit_nothing(uring_reader *self) {
    pthread_mutex_lock(&self->lock);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_data(sqe, NULL);
    submit(self);
    pthread_mutex_unlock(&self->lock);
}

/* ---- Open and close --------------------------------------------------------------------------------- */

static void release(uring_reader *self) {
    io_uring_queue_exit(&self->ring); /* and with it the registered memory */
    pthread_mutex_destroy(&self->lock);
    free(self->ranges);
    free(self->free_entry);
    free(self);
}

static void close_reader(plumb_reader *reader) {
    uring_reader *self = (uring_reader *)reader;
    submit_nothing(self);
    pthread_join(self->reaper, NULL);
    release(self);
}

/* An empty table; 0 or a negated errno, and then nothing will be registered. */
static int make_table(uring_reader *self) {
    int refused = io_uring_register_buffers_sparse(&self->ring, TABLE_ENTRIES);
    if (refused < 0) return refused;
    self->ranges = calloc(TABLE_ENTRIES, sizeof *self->ranges);
    self->free_entry = calloc(TABLE_ENTRIES, sizeof *self->free_entry);
    if (!self->ranges || !self->free_entry) {
        free(self->ranges);
        self->ranges = NULL;
        return -ENOMEM;
    }
    for (int i = TABLE_ENTRIES - 1; i >= 0; i--) self->free_entry[self->n_free++] = i;
    return 0;
}

static void say_why(int refused, char *why, size_t why_size) {
    struct rlimit limit;
    if (!why) return;
    if (refused < 0)
        (void)snprintf(why, why_size, "io_uring: memory is not registered (%s)", strerror(-refused));
    else if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        (void)snprintf(why, why_size,
                       "io_uring: memory is registered as far as the system allows (%lld KiB without "
                       "privileges)",
                       (long long)(limit.rlim_cur >> 10));
    else
        (void)snprintf(why, why_size, "io_uring: memory is registered");
}

/* Setting up may be allowed where entering is not: let the kernel do nothing once. */
static int try_ring(struct io_uring *ring) {
    struct io_uring_cqe *cqe;
    io_uring_prep_nop(io_uring_get_sqe(ring));
    int status = io_uring_submit(ring);
    if (status >= 0) status = io_uring_wait_cqe(ring, &cqe);
    if (status == 0) io_uring_cqe_seen(ring, cqe);
    return status;
}

plumb_status plumb__reader_open_uring(int depth, plumb_reader **reader, char *why, size_t why_size,
                                      plumb_error *err) {
    static const plumb_reader_ops ops = {"io_uring", start, add_memory, remove_memory, close_reader};
    uring_reader *self = calloc(1, sizeof *self);
    if (!self) return plumb__fail_memory(err, "reader", sizeof *self);
    self->reader = (plumb_reader){&ops, depth};
    int status = io_uring_queue_init((unsigned)depth, &self->ring, 0);
    if (status < 0) {
        free(self);
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "io_uring", -1,
                           plumb__format("no io_uring (%s)", strerror(-status)).s,
                           "a system that allows io_uring");
    }
    pthread_mutex_init(&self->lock, NULL);
    status = try_ring(&self->ring);
    if (status < 0) {
        release(self);
        return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, NULL, "io_uring", -1,
                           plumb__format("no io_uring (%s)", strerror(-status)).s,
                           "a system that allows io_uring");
    }
    say_why(make_table(self), why, why_size);
    if (pthread_create(&self->reaper, NULL, reap_loop, self) != 0) {
        release(self);
        return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, "reader threads", -1,
                           "the system starts no more", "1 thread");
    }
    *reader = &self->reader;
    return PLUMB_OK;
}
