/* Ten thousand loads through real readers that are spoiled by rules, while other loads are cancelled
 * and urged: each is reported once, and what is reported as good has the bytes of the file. */
#include "stream/read_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream/faulty_reader.h"
#include "t.h"

enum {
    PIECE = PLUMB_READ_ALIGNMENT,
    LOADS = 10000,
    DEPTH = 8,
    PLACES = 24,
    PLACE_BYTES = 16 * PIECE,
    FILE_BYTES = 200 * PIECE + 1234
};

static unsigned char byte_at(int64_t offset) {
    return (unsigned char)((uint64_t)offset * 0x9E3779B97F4A7C15u >> 56);
}

static int random_below(uint64_t *state, int n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}


typedef struct crowd crowd;

typedef struct place {
    plumb_load load;
    crowd *crowd;
    unsigned char *memory; /* PLACE_BYTES */
    bool used, busy;       /* under the lock */
} place;

struct crowd {
    plumb_read_queue *queue;
    int fd;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t free;
    place places[PLACES];
    int reports, wrong, good, cancelled, faulty;
};

static void crowd_done(plumb_load *load, int error, int extent, int64_t offset) {
    place *p = load->user;
    crowd *c = p->crowd;
    bool wrong = error ? extent < 0 || extent >= load->n_extents || offset < 0 : false;
    for (int e = 0; e < load->n_extents && !error; e++) {
        const plumb_extent *x = &load->extent[e];
        const unsigned char *bytes = x->into;
        for (int64_t i = 0; i < x->needed; i++) wrong |= bytes[i] != byte_at(x->offset + i);
    }
    pthread_mutex_lock(&c->lock);
    wrong |= !p->busy;
    p->busy = false;
    c->reports++;
    c->wrong += wrong || (error && error != EIO && error != ENODATA && error != ECANCELED);
    c->good += error == 0;
    c->cancelled += error == ECANCELED;
    c->faulty += error == EIO || error == ENODATA;
    pthread_cond_signal(&c->free);
    pthread_mutex_unlock(&c->lock);
}

static place *free_place(crowd *c) {
    pthread_mutex_lock(&c->lock);
    for (;;) {
        for (int i = 0; i < PLACES; i++) {
            if (c->places[i].busy) continue;
            c->places[i].busy = c->places[i].used = true;
            pthread_mutex_unlock(&c->lock);
            return &c->places[i];
        }
        pthread_cond_wait(&c->free, &c->lock);
    }
}

/* One to three extents, of whole blocks or of any bytes; some reach over the end of the file. */
static void fill_load(place *p, uint64_t *random) {
    int n = 1 + random_below(random, 3);
    unsigned char *at = p->memory;
    p->load = (plumb_load){.n_extents = n, .done = crowd_done, .user = p};
    memset(p->memory, 0xEE, PLACE_BYTES);
    for (int e = 0; e < n; e++) {
        int64_t offset = random_below(random, FILE_BYTES / PIECE), blocks = 1 + random_below(random, 4);
        plumb_extent *x = &p->load.extent[e];
        *x = (plumb_extent){p->crowd->fd, offset * PIECE, blocks * PIECE, 0, at};
        if (random_below(random, 2)) x->offset += 321, x->size -= 100;
        int64_t left = FILE_BYTES - x->offset;
        x->needed = left < x->size ? left : x->size;
        at += blocks * PIECE;
    }
}

/* Into memory where the places are to be, too, since it is the larger. */
static unsigned char *make_file(crowd *c) {
    char path[512];
    unsigned char *bytes = aligned_alloc(PIECE, PLACES * PLACE_BYTES);
    (void)snprintf(path, sizeof path, "%s/read_faults_test.%ld", BUILD_DIR, (long)getpid());
    c->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (c->fd < 0 || unlink(path) != 0 || !bytes) exit(1);
    for (int64_t i = 0; i < FILE_BYTES; i++) bytes[i] = byte_at(i);
    if (write(c->fd, bytes, FILE_BYTES) != FILE_BYTES) exit(1);
    return bytes;
}

/* A cancelled load that comes back at once is not reported. */
static void note_dropped(place *p) {
    pthread_mutex_lock(&p->crowd->lock);
    p->busy = false;
    p->crowd->reports++;
    p->crowd->cancelled++;
    pthread_mutex_unlock(&p->crowd->lock);
}

static void add_loads(crowd *c) {
    uint64_t random = 7;
    for (int i = 0; i < LOADS; i++) {
        place *p = free_place(c);
        fill_load(p, &random);
        plumb__read_queue_add(c->queue, &p->load, random_below(&random, 3) == 0);
        place *other = &c->places[random_below(&random, PLACES)];
        int what = random_below(&random, 16);
        if (other->used && what == 0 && plumb__read_queue_cancel(c->queue, &other->load))
            note_dropped(other);
        if (other->used && what == 1) plumb__read_queue_urge(c->queue, &other->load);
    }
    plumb__read_queue_wait_idle(c->queue);
}

static void run_crowd(plumb_reader *inner, const fault_rule *rules, int n_rules) {
    static crowd c;
    plumb_error err = {0};
    plumb_reader *reader = faulty_reader_open(inner, rules, n_rules);
    c = (crowd){.lock = PTHREAD_MUTEX_INITIALIZER, .free = PTHREAD_COND_INITIALIZER};
    unsigned char *bytes = make_file(&c);
    for (int i = 0; i < PLACES; i++) {
        c.places[i].crowd = &c;
        c.places[i].memory = bytes + (size_t)i * PLACE_BYTES;
    }
    if (plumb__read_queue_open(reader, PIECE, &c.queue, &err) != PLUMB_OK) exit(1);
    reader->ops->add_memory(reader, bytes, PLACES * PLACE_BYTES);
    add_loads(&c);
    T_CHECK(c.reports == LOADS && c.wrong == 0, "%s: %d reports, %d wrong", inner->ops->name,
            c.reports, c.wrong);
    T_CHECK(c.good > LOADS / 2 && c.good + c.cancelled + c.faulty == LOADS, "%d, %d, %d", c.good,
            c.cancelled, c.faulty);
    T_CHECK(n_rules == 0 ? c.faulty == 0 : c.faulty > LOADS / 100, "%d faulty", c.faulty);
    T_CHECK((faulty_reader_faults(reader) > 0) == (n_rules > 0), "%d rules", n_rules);
    reader->ops->remove_memory(reader, bytes, PLACES * PLACE_BYTES);
    plumb__read_queue_close(c.queue);
    (void)close(c.fd);
    free(bytes);
}

static void faulty_loads(void) {
    static const fault_rule rules[] = {
        {7, true, FAULT_SHORT, 0},      {11, true, FAULT_ERROR, EINTR}, {17, true, FAULT_ERROR, EAGAIN},
        {13, true, FAULT_HOLD, 5},      {23, true, FAULT_SHORT, 3},     {211, true, FAULT_ERROR, EIO},
        {499, true, FAULT_ZERO, 0},     {997, true, FAULT_DELAY, 500},  {2, false, FAULT_HOLD, 100},
    };
    static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_URING};
    for (int k = 0; k < 2; k++) {
        for (int faulty = 0; faulty < 2; faulty++) {
            plumb_reader *inner;
            plumb_error err = {0};
            if (plumb__reader_open(kinds[k], DEPTH, &inner, NULL, 0, &err) == PLUMB_OK)
                run_crowd(inner, rules, faulty ? (int)(sizeof rules / sizeof *rules) : 0);
            else
                printf("io_uring skipped: %s\n", err.found);
        }
    }
}

T_MAIN({"faulty_loads", faulty_loads})
