/* The queue over a reader that completes nothing until it is told: order, faults one by one, and that
 * nothing is lost by ten thousand faulty loads.  Threads come in read_faults_test.c. */
#include "stream/read_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "t.h"

enum { PIECE = PLUMB_READ_ALIGNMENT, MOST_READS = 64, MOST_LOADS = 16 };

static unsigned char byte_at(int64_t offset) {
    return (unsigned char)((uint64_t)offset * 0x9E3779B97F4A7C15u >> 56);
}

static int random_below(uint64_t *state, int n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

/* ---- A reader that waits to be told ---------------------------------------------------------------- */

typedef struct told_reader {
    plumb_reader reader;
    plumb_read *waiting[MOST_READS]; /* in the order they were started */
    int n, started, most;            /* waiting; since it opened; most at once */
    bool closed;
} told_reader;

static void told_start(plumb_reader *reader, plumb_read *read) {
    told_reader *self = (told_reader *)reader;
    if (self->n == MOST_READS) exit(1);
    self->waiting[self->n++] = read;
    self->started++;
    if (self->n > self->most) self->most = self->n;
}

static void told_memory(plumb_reader *reader, void *memory, int64_t bytes) {
    (void)reader, (void)memory, (void)bytes;
}

static void told_close(plumb_reader *reader) { ((told_reader *)reader)->closed = true; }

static const plumb_reader_ops told_ops = {"told", told_start, told_memory, told_memory, told_close};

/* Completes the i-th of those waiting.  result > 0: with so many right bytes, at most all. */
static int64_t tell(told_reader *self, int i, int64_t result) {
    plumb_read *read = self->waiting[i];
    for (int j = i + 1; j < self->n; j++) self->waiting[j - 1] = self->waiting[j];
    self->n--;
    if (result > read->size) result = read->size;
    for (int64_t b = 0; b < result; b++) ((unsigned char *)read->into)[b] = byte_at(read->offset + b);
    read->done(read, result);
    return result;
}

/* ---- Loads ----------------------------------------------------------------------------------------- */

typedef struct test_load {
    plumb_load load;
    int times, error, extent;
    int64_t offset;
    int rank; /* how many loads were reported before it */
    unsigned char *memory;
} test_load;

static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER; /* of what note_done writes */
static pthread_cond_t report_come = PTHREAD_COND_INITIALIZER;
static int reported;

static void note_done(plumb_load *load, int error, int extent, int64_t offset) {
    test_load *l = load->user;
    pthread_mutex_lock(&report_lock);
    l->times++;
    l->error = error;
    l->extent = extent;
    l->offset = offset;
    l->rank = reported++;
    pthread_cond_signal(&report_come);
    pthread_mutex_unlock(&report_lock);
}

static void await(const test_load *l) {
    pthread_mutex_lock(&report_lock);
    while (l->times == 0) pthread_cond_wait(&report_come, &report_lock);
    pthread_mutex_unlock(&report_lock);
}

typedef struct stage {
    told_reader reader;
    plumb_read_queue *queue;
    test_load loads[MOST_LOADS];
} stage;

static void set_up(stage *s, int depth) {
    plumb_error err = {0};
    *s = (stage){.reader.reader = {&told_ops, depth}};
    reported = 0;
    T_CHECK(plumb__read_queue_open(&s->reader.reader, PIECE, &s->queue, &err) == PLUMB_OK, "%s",
            err.found);
    if (!s->queue) exit(1);
}

/* What is wrong with the queue by now would keep the test waiting for ever. */
static void give_up_unless(bool sound, const char *what) {
    if (sound) return;
    fprintf(stderr, "%s: the tests end here\n", what);
    exit(1);
}

static void take_down(stage *s) {
    int unreported = 0;
    for (int i = 0; i < MOST_LOADS; i++) unreported += s->loads[i].memory && !s->loads[i].times;
    give_up_unless(s->reader.n == 0 && unreported == 0, "a load is unfinished");
    plumb__read_queue_close(s->queue);
    T_CHECK(s->reader.closed, "%s", "the reader is closed");
    for (int i = 0; i < MOST_LOADS; i++) free(s->loads[i].memory);
}

/* Load i is `pieces` pieces of file i, from offset 0. */
static test_load *new_load(stage *s, int i, int pieces) {
    test_load *l = &s->loads[i];
    free(l->memory);
    *l = (test_load){.memory = aligned_alloc(PLUMB_READ_ALIGNMENT, (size_t)pieces * PIECE)};
    if (!l->memory) exit(1);
    memset(l->memory, 0xEE, (size_t)pieces * PIECE);
    l->load.extent[0] = (plumb_extent){i, 0, (int64_t)pieces * PIECE, (int64_t)pieces * PIECE,
                                       l->memory};
    l->load.n_extents = 1;
    l->load.done = note_done;
    l->load.user = l;
    return l;
}

static void add(stage *s, int i, int pieces, bool urgent) {
    plumb__read_queue_add(s->queue, &new_load(s, i, pieces)->load, urgent);
}

/* A load that comes back at once is over, and `done` must not be called. */
static bool cancel(stage *s, int i) {
    test_load *l = &s->loads[i];
    int before = reported;
    bool dropped = plumb__read_queue_cancel(s->queue, &l->load);
    T_CHECK(reported == before, "%d reported", reported - before);
    if (dropped) {
        l->times++;
        l->error = ECANCELED;
        reported++;
    }
    return dropped;
}

/* The files being read, oldest first: "0 0 3". */
static const char *in_flight(const stage *s) {
    static char text[MOST_READS * 4];
    char *at = text;
    *at = 0;
    for (int i = 0; i < s->reader.n; i++)
        at += snprintf(at, 4, "%s%d", i ? " " : "", s->reader.waiting[i]->fd);
    return text;
}

#define T_FLIGHT(s, expected)                                                             \
    do {                                                                                  \
        const char *now_ = in_flight(s);                                                  \
        T_CHECK(!strcmp(now_, expected), "in flight %s, not %s", now_, expected);         \
    } while (0)
#define T_DONE(l, wanted_error)                                                           \
    T_CHECK((l).times == 1 && (l).error == (wanted_error), "%d times, error %d", (l).times, \
            (l).error)

static void tell_all(stage *s) {
    for (int i = 0; s->reader.n > 0; i++) {
        give_up_unless(i < 1000, "reads without an end");
        tell(&s->reader, 0, INT64_MAX);
    }
}

static int wrong_bytes(const test_load *l, int64_t begin, int64_t size) {
    int wrong = 0;
    for (int64_t i = 0; i < size; i++) wrong += l->memory[i] != byte_at(begin + i);
    return wrong;
}

/* ---- Order --------------------------------------------------------------------------------------- */

static void urgent_first(void) {
    static stage s;
    set_up(&s, 3);
    add(&s, 0, 2, false);
    T_FLIGHT(&s, "0 0");
    add(&s, 1, 3, false);
    T_FLIGHT(&s, "0 0 1");
    add(&s, 2, 2, true);
    add(&s, 3, 3, true);
    T_FLIGHT(&s, "0 0 1");
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "0 1 2");
    tell(&s.reader, 1, PIECE); /* of read-ahead; the place goes to the urgent */
    T_FLIGHT(&s, "0 2 2");
    tell(&s.reader, 0, PIECE);
    T_DONE(s.loads[0], 0);
    T_FLIGHT(&s, "2 2 3");
    tell(&s.reader, 2, PIECE);
    T_FLIGHT(&s, "2 2 3");
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "2 3 3");
    tell(&s.reader, 0, PIECE);
    T_DONE(s.loads[2], 0);
    T_FLIGHT(&s, "3 3"); /* a place is free, but an urgent piece is in flight */
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "3");
    add(&s, 4, 1, false);
    T_FLIGHT(&s, "3");
    tell(&s.reader, 0, PIECE);
    T_DONE(s.loads[3], 0);
    T_FLIGHT(&s, "1 1 4");
    tell_all(&s);
    for (int i = 0; i <= 4; i++) {
        T_DONE(s.loads[i], 0);
        T_CHECK(s.loads[i].extent == -1 && s.loads[i].offset == -1, "%d", s.loads[i].extent);
        T_CHECK(wrong_bytes(&s.loads[i], 0, s.loads[i].load.extent[0].size) == 0, "load %d", i);
    }
    T_CHECK(s.loads[0].rank == 0 && s.loads[2].rank == 1 && s.loads[3].rank == 2, "%d %d %d",
            s.loads[0].rank, s.loads[2].rank, s.loads[3].rank);
    T_CHECK(s.reader.most == 3 && s.reader.started == 11, "%d, %d", s.reader.most, s.reader.started);
    take_down(&s);
}

static void promotion(void) {
    static stage s;
    set_up(&s, 2);
    for (int i = 0; i < 4; i++) add(&s, i, 2, false);
    T_FLIGHT(&s, "0 0");
    add(&s, 4, 1, true);
    plumb__read_queue_urge(s.queue, &s.loads[2].load);
    plumb__read_queue_urge(s.queue, &s.loads[2].load); /* is urgent already */
    plumb__read_queue_urge(s.queue, &s.loads[0].load); /* has begun altogether */
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "0 4");
    tell(&s.reader, 1, PIECE);
    T_FLIGHT(&s, "0 2");
    tell(&s.reader, 1, PIECE);
    T_FLIGHT(&s, "0 2");
    tell(&s.reader, 1, PIECE);
    T_DONE(s.loads[2], 0);
    T_FLIGHT(&s, "0"); /* read-ahead waits: load 0 is urgent */
    plumb__read_queue_urge(s.queue, &s.loads[2].load); /* finished: nothing */
    plumb__read_queue_urge(s.queue, &s.loads[3].load); /* a place is free */
    T_FLIGHT(&s, "0 3");
    tell(&s.reader, 0, PIECE);
    T_DONE(s.loads[0], 0);
    T_FLIGHT(&s, "3 3");
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "3");
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "1 1");
    tell_all(&s);
    for (int i = 0; i <= 4; i++) T_DONE(s.loads[i], 0);
    take_down(&s);
}

static void cancelled(void) {
    static stage s;
    set_up(&s, 2);
    add(&s, 0, 3, true);
    add(&s, 1, 1, true);
    add(&s, 2, 1, false);
    add(&s, 3, 1, false);
    T_CHECK(cancel(&s, 1), "%s", "nothing has begun");
    T_CHECK(cancel(&s, 3), "%s", "nothing has begun");
    T_CHECK(!cancel(&s, 0), "%s", "two pieces are in flight");
    T_CHECK(s.loads[0].times == 0, "%d", s.loads[0].times);
    T_FLIGHT(&s, "0 0");
    T_CHECK(!cancel(&s, 0), "%s", "again");
    tell(&s.reader, 0, 1); /* short, but it does not go on */
    T_FLIGHT(&s, "0");
    T_CHECK(s.loads[0].times == 0, "%d", s.loads[0].times);
    tell(&s.reader, 0, PIECE);
    T_DONE(s.loads[0], ECANCELED);
    T_CHECK(s.loads[0].extent == 0 && s.loads[0].offset == 2 * PIECE, "%lld",
            (long long)s.loads[0].offset);
    T_FLIGHT(&s, "2");
    tell_all(&s);
    T_DONE(s.loads[2], 0);
    T_CHECK(!cancel(&s, 2), "%s", "finished: nothing");
    T_DONE(s.loads[2], 0);
    /* The urgent load that read-ahead waited for may be the one that is cancelled. */
    add(&s, 4, 2, true);
    add(&s, 5, 2, true);
    add(&s, 6, 1, false);
    tell(&s.reader, 0, PIECE);
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "5 5");
    T_CHECK(!cancel(&s, 5), "%s", "two pieces are in flight");
    tell(&s.reader, 0, PIECE);
    T_FLIGHT(&s, "5");
    tell(&s.reader, 0, -EIO); /* the first fault is the cancelling */
    T_DONE(s.loads[5], ECANCELED);
    T_FLIGHT(&s, "6");
    tell_all(&s);
    take_down(&s);
}

/* ---- Faults -------------------------------------------------------------------------------------- */

/* One load of one extent; the reader's answers in turn (repeated from the last on), what is to come. */
static const struct {
    const char *name;
    int64_t offset, size, needed;
    bool odd_memory;
    int64_t answers[6]; /* 0 ends them: FEED_ZERO for no bytes */
    int error;
    int64_t fault; /* offset */
    int reads;
} single[] = {
#define ALL INT64_MAX
#define NONE INT64_MIN
    {"whole", PIECE, PIECE, PIECE, false, {ALL}, 0, -1, 1},
    {"pieces", PIECE, 3 * PIECE, 3 * PIECE, false, {ALL}, 0, -1, 3},
    {"unaligned", 77, 2 * PIECE + 5, 2 * PIECE + 5, true, {ALL}, 0, -1, 3},
    {"short, then the rest", 77, 1000, 1000, true, {300, ALL}, 0, -1, 2},
    {"byte by byte", 77, 5, 5, true, {1}, 0, -1, 5},
    {"short, aligned", PIECE, PIECE, PIECE, false, {100, ALL}, 0, -1, 2},
    {"short inside a block again and again", PIECE, PIECE, PIECE, false, {100}, ENODATA,
     PIECE + 100, 17},
    {"interrupted", PIECE, PIECE, PIECE, false, {-EINTR, -EAGAIN, -EINTR, ALL}, 0, -1, 4},
    {"interrupted for ever", PIECE, PIECE, PIECE, false, {-EINTR}, EINTR, PIECE, 16},
    {"not ready for ever", PIECE, PIECE, PIECE, false, {300, -EAGAIN}, EAGAIN, PIECE + 300, 17},
    {"a fault", PIECE, PIECE, PIECE, false, {-EIO}, EIO, PIECE, 1},
    {"a fault of the second piece", PIECE, 3 * PIECE, 3 * PIECE, false, {ALL, -EIO}, EIO, 2 * PIECE,
     2},
    {"a fault after a short read", 77, 1000, 1000, true, {300, -EBADF}, EBADF, 377, 2},
    {"the end at once", PIECE, PIECE, PIECE, false, {NONE}, ENODATA, PIECE, 1},
    {"the end too early", 77, 1000, 1000, true, {300, NONE}, ENODATA, 377, 2},
    {"the end inside alignment", PIECE, PIECE, 1000, false, {1000}, 0, -1, 1},
    {"the end a byte too early", PIECE, PIECE, 1000, false, {999, NONE}, ENODATA, PIECE + 999, 2},
    {"a last piece of alignment", PIECE, 2 * PIECE, PIECE, false, {ALL, NONE}, 0, -1, 2},
    {"an end that alignment repeats", PIECE, PIECE, PIECE, false, {PIECE - 1}, ENODATA,
     2 * PIECE - 1, 17},
};

static void single_faults(void) {
    static stage s;
    for (size_t c = 0; c < sizeof single / sizeof *single; c++) {
        set_up(&s, 1);
        test_load *l = new_load(&s, 0, 4);
        unsigned char *into = l->memory + single[c].odd_memory;
        l->load.extent[0] = (plumb_extent){0, single[c].offset, single[c].size, single[c].needed,
                                           into};
        plumb__read_queue_add(s.queue, &l->load, true);
        int answer = 0;
        while (s.reader.n > 0) {
            give_up_unless(s.reader.started < 100, single[c].name);
            int64_t result = single[c].answers[answer];
            if (single[c].answers[answer + 1]) answer++;
            tell(&s.reader, 0, result == NONE ? 0 : result);
        }
        const char *name = single[c].name;
        T_CHECK(l->times == 1 && l->error == single[c].error, "%s: %d times, error %d", name,
                l->times, l->error);
        T_CHECK(l->offset == single[c].fault, "%s: offset %lld", name, (long long)l->offset);
        T_CHECK(s.reader.started == single[c].reads, "%s: %d reads", name, s.reader.started);
        int wrong = 0;
        for (int64_t i = 0; i < single[c].needed && l->error == 0; i++)
            wrong += into[i] != byte_at(single[c].offset + i);
        T_CHECK(wrong == 0, "%s: %d wrong bytes", name, wrong);
        take_down(&s);
    }
}

/* A rest that may be read uncached begins at a block, in the file and in memory, and ends at one. */
static void rests_stay_aligned(void) {
    static stage s;
    plumb_error err;
    set_up(&s, 1);
    plumb__read_queue_close(s.queue);
    T_CHECK(plumb__read_queue_open(&s.reader.reader, 8 * PIECE, &s.queue, &err) == PLUMB_OK, "%s",
            "open");
    test_load *l = new_load(&s, 0, 8);
    l->load.extent[0].offset = 3 * PIECE;
    plumb__read_queue_add(s.queue, &l->load, true);
    static const int64_t results[] = {2 * PIECE + 9, PIECE, 3 * PIECE - 1, 12};
    static const int64_t begins[] = {0, 2, 3, 5, 5};
    for (int i = 0; i < 5; i++) {
        const plumb_read *read = s.reader.waiting[0];
        T_CHECK(read->offset == (3 + begins[i]) * PIECE, "%d: %lld", i, (long long)read->offset);
        T_CHECK(read->size == (8 - begins[i]) * PIECE, "%d: %lld", i, (long long)read->size);
        T_CHECK(read->into == l->memory + begins[i] * PIECE, "%d", i);
        tell(&s.reader, 0, i < 4 ? results[i] : INT64_MAX);
    }
    T_DONE(*l, 0);
    T_CHECK(wrong_bytes(l, 3 * PIECE, 8 * PIECE) == 0, "%s", "bytes");
    plumb_read_stats stats;
    plumb__read_queue_stats(s.queue, &stats);
    T_CHECK(stats.bytes == 8 * PIECE && stats.urgent_bytes == 8 * PIECE, "%lld",
            (long long)stats.bytes);
    take_down(&s);
}

/* After the first fault nothing of the load begins or goes on; the load is over with its last piece. */
static void first_fault_counts(void) {
    static stage s;
    set_up(&s, 3);
    test_load *l = new_load(&s, 0, 8);
    l->load.n_extents = 2;
    l->load.extent[0].size = l->load.extent[0].needed = 2 * PIECE;
    l->load.extent[1] = (plumb_extent){7, 100 * PIECE, 6 * PIECE, 6 * PIECE,
                                       l->memory + 2 * PIECE};
    plumb__read_queue_add(s.queue, &l->load, true);
    add(&s, 1, 1, true);
    T_FLIGHT(&s, "0 0 7");
    tell(&s.reader, 2, -EIO);
    T_FLIGHT(&s, "0 0 1");
    tell(&s.reader, 1, -EINTR);
    T_FLIGHT(&s, "0 1");
    T_CHECK(l->times == 0, "%d", l->times);
    tell(&s.reader, 0, -ENXIO);
    T_DONE(*l, EIO);
    T_CHECK(l->extent == 1 && l->offset == 100 * PIECE, "%d, %lld", l->extent, (long long)l->offset);
    tell_all(&s);
    T_DONE(s.loads[1], 0);
    take_down(&s);
}

/* ---- Counting, closing -------------------------------------------------------------------------- */

static void statistics(void) {
    static stage s;
    plumb_read_stats a, b;
    set_up(&s, 4);
    plumb__read_queue_stats(s.queue, &a);
    T_CHECK(a.bytes == 0 && a.urgent_seconds == 0 && a.busy_seconds == 0, "%s", "nothing yet");
    add(&s, 0, 2, false);
    tell(&s.reader, 0, PIECE);
    plumb__read_queue_stats(s.queue, &a);
    T_CHECK(a.bytes == PIECE && a.urgent_bytes == 0 && a.urgent_seconds == 0, "%lld",
            (long long)a.urgent_bytes);
    T_CHECK(a.busy_seconds > 0, "%g", a.busy_seconds);
    add(&s, 1, 1, true);
    tell(&s.reader, 0, PIECE); /* of read-ahead, while an urgent load is unfinished */
    tell(&s.reader, 0, PIECE);
    plumb__read_queue_stats(s.queue, &a);
    T_CHECK(a.bytes == 3 * PIECE && a.urgent_bytes == 2 * PIECE, "%lld", (long long)a.urgent_bytes);
    T_CHECK(a.urgent_seconds > 0 && a.busy_seconds > a.urgent_seconds, "%g %g", a.urgent_seconds,
            a.busy_seconds);
    plumb__read_queue_stats(s.queue, &b);
    T_CHECK(b.urgent_seconds == a.urgent_seconds && b.busy_seconds == a.busy_seconds, "%g",
            b.busy_seconds);
    take_down(&s);
}

static void *close_queue(void *arg) {
    plumb__read_queue_close(arg);
    return NULL;
}

static void closing(void) {
    static stage s;
    static const int64_t bad_pieces[] = {0, -PIECE, PIECE - 1, PIECE + 1};
    plumb_read_queue *none = NULL;
    plumb_error err;
    set_up(&s, 2);
    T_CHECK(plumb__read_queue_reader(s.queue) == &s.reader.reader, "%s", "the reader");
    for (size_t i = 0; i < 4; i++)
        T_CHECK(plumb__read_queue_open(&s.reader.reader, bad_pieces[i], &none, &err) ==
                    PLUMB_ERROR_ARGUMENT, "%lld", (long long)bad_pieces[i]);
    plumb__read_queue_wait_idle(s.queue);
    plumb__read_queue_close(NULL);
    /* What has begun is awaited, what has not is dropped at once. */
    add(&s, 0, 4, true);
    add(&s, 1, 2, true);
    add(&s, 2, 2, false);
    T_FLIGHT(&s, "0 0");
    pthread_t thread;
    if (pthread_create(&thread, NULL, close_queue, s.queue) != 0) exit(1);
    await(&s.loads[1]);
    await(&s.loads[2]);
    T_CHECK(s.loads[0].times == 0, "%d", s.loads[0].times);
    T_DONE(s.loads[1], ECANCELED);
    T_DONE(s.loads[2], ECANCELED);
    tell(&s.reader, 0, PIECE);
    T_CHECK(s.loads[0].times == 0, "%d", s.loads[0].times);
    tell(&s.reader, 0, PIECE);
    pthread_join(thread, NULL);
    T_DONE(s.loads[0], ECANCELED);
    T_CHECK(s.reader.closed && s.reader.n == 0, "%d", s.reader.n);
    for (int i = 0; i < 3; i++) free(s.loads[i].memory);
}

/* ---- Many faulty loads --------------------------------------------------------------------------- */

enum { LOADS = 10000, DEPTH = 8 };

/* Nothing is lost by faults: at the end the queue still fills its reader. */
static void capacity(void) {
    static stage s;
    uint64_t random = 1;
    int added = 0, faults = 0, steps = 0;
    set_up(&s, DEPTH);
    for (int i = 0; i < MOST_LOADS; i++) s.loads[i].times = 1;
    while (added < LOADS || s.reader.n > 0) {
        int i = random_below(&random, MOST_LOADS), what = random_below(&random, 20);
        give_up_unless(steps++ < 100 * LOADS, "loads without an end");
        if (added < LOADS && s.loads[i].times == 1 && what < 10) {
            faults += s.loads[i].error != 0;
            add(&s, i, 1 + random_below(&random, 4), what < 5);
            added++;
        } else if (s.loads[i].times == 0 && what == 10) {
            cancel(&s, i);
        } else if (s.loads[i].times == 0 && what == 11) {
            plumb__read_queue_urge(s.queue, &s.loads[i].load);
        } else if (s.reader.n > 0) {
            static const int64_t results[] = {INT64_MAX, INT64_MAX, INT64_MAX, 1000, -EINTR, -EAGAIN,
                                              -EIO, 0};
            tell(&s.reader, random_below(&random, s.reader.n), results[random_below(&random, 8)]);
        }
    }
    int unreported = 0;
    for (int i = 0; i < MOST_LOADS; i++) unreported += s.loads[i].times != 1;
    T_CHECK(unreported == 0 && reported == LOADS, "%d, %d", unreported, reported);
    T_CHECK(faults > LOADS / 10 && faults < LOADS * 9 / 10, "%d faults", faults);
    plumb__read_queue_wait_idle(s.queue);
    add(&s, 0, 4 * DEPTH, false);
    T_CHECK(s.reader.n == DEPTH && s.reader.most == DEPTH, "%d in flight", s.reader.n);
    tell_all(&s);
    T_DONE(s.loads[0], 0);
    take_down(&s);
}

T_MAIN({"urgent_first", urgent_first}, {"promotion", promotion}, {"cancelled", cancelled},
       {"single_faults", single_faults}, {"rests_stay_aligned", rests_stay_aligned},
       {"first_fault_counts", first_fault_counts}, {"statistics", statistics},
       {"closing", closing}, {"capacity", capacity})
