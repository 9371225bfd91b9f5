/* Both readers against a file whose bytes are known: many reads in flight into registered and other
 * memory, ends of files, descriptors and alignments that the system refuses. */
#include "stream/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "t.h"

enum { FILE_BYTES = 3 * 1000 * 1000 + 77, MOST_DEPTH = 256, SLOT_BYTES = 65536 };

static int file_fd = -1, uncached_fd = -1;

static unsigned char byte_at(int64_t offset) {
    return (unsigned char)((uint64_t)offset * 0x9E3779B97F4A7C15u >> 56);
}

/* Without a name once it is open, so that nothing is left behind. */
static void make_file(void) {
    char path[512];
    if (file_fd >= 0) return;
    (void)snprintf(path, sizeof path, "%s/reader_test.%ld", BUILD_DIR, (long)getpid());
    file_fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
#if defined(O_DIRECT)
    uncached_fd = open(path, O_RDONLY | O_DIRECT);
#endif
    unsigned char *bytes = malloc(FILE_BYTES);
    if (file_fd < 0 || unlink(path) != 0 || !bytes) exit(1);
    for (int64_t i = 0; i < FILE_BYTES; i++) bytes[i] = byte_at(i);
    if (write(file_fd, bytes, FILE_BYTES) != FILE_BYTES || fsync(file_fd) != 0) exit(1);
    free(bytes);
}

static int random_below(uint64_t *state, int n) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

/* NULL where this machine or build has no such reader. */
static plumb_reader *open_reader(plumb_reader_kind kind, int depth) {
    plumb_reader *reader = NULL;
    plumb_error err = {0};
    char why[128] = "";
    plumb_status status = plumb__reader_open(kind, depth, &reader, why, sizeof why, &err);
    if (kind == PLUMB_READER_URING && status == PLUMB_ERROR_UNSUPPORTED) {
        T_CHECK(err.found[0], "%s", "a reason");
        printf("io_uring skipped: %s\n", err.found);
        return NULL;
    }
    T_CHECK(status == PLUMB_OK, "%s", err.found);
    if (status != PLUMB_OK) exit(1);
    T_CHECK(reader->depth == depth && why[0], "%d, %s", reader->depth, why);
    return reader;
}

/* ---- One read after another ---------------------------------------------------------------------- */

typedef struct answer {
    plumb_read read;
    pthread_mutex_t lock;
    pthread_cond_t come;
    int times;
    int64_t result;
} answer;

static void take_answer(plumb_read *read, int64_t result) {
    answer *a = read->user;
    pthread_mutex_lock(&a->lock);
    a->result = result;
    a->times++;
    pthread_cond_signal(&a->come);
    pthread_mutex_unlock(&a->lock);
}

static int64_t read_now(plumb_reader *reader, int fd, int64_t offset, int64_t size, void *into) {
    answer a = {.lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};
    a.read = (plumb_read){fd, offset, size, into, take_answer, &a};
    reader->ops->start(reader, &a.read);
    pthread_mutex_lock(&a.lock);
    while (a.times == 0) pthread_cond_wait(&a.come, &a.lock);
    pthread_mutex_unlock(&a.lock);
    return a.result;
}

static const plumb_reader_kind kinds[] = {PLUMB_READER_PREAD, PLUMB_READER_URING};

static void single_reads(void) {
    static unsigned char into[10000];
    make_file();
    int closed = fcntl(file_fd, F_DUPFD, 200); /* a number that nothing else will get */
    (void)close(closed);
    const struct {
        const char *what;
        int fd;
        int64_t offset, size, result;
    } cases[] = {
        {"the beginning", file_fd, 0, 10, 10},
        {"the middle", file_fd, 123457, 9999, 9999},
        {"the end", file_fd, FILE_BYTES - 5, 5, 5},
        {"over the end", file_fd, FILE_BYTES - 5, 100, 5},
        {"at the end", file_fd, FILE_BYTES, 100, 0},
        {"behind the end", file_fd, FILE_BYTES + 100000, 100, 0},
        {"closed", closed, 0, 10, -EBADF},
        {"no descriptor", -1, 0, 10, -EBADF},
    };
    for (int k = 0; k < 2; k++) {
        plumb_reader *reader = open_reader(kinds[k], 2);
        for (size_t i = 0; reader && i < sizeof cases / sizeof *cases; i++) {
            memset(into, 0xEE, sizeof into);
            int64_t result = read_now(reader, cases[i].fd, cases[i].offset, cases[i].size, into);
            T_CHECK(result == cases[i].result, "%s, %s: %lld", reader->ops->name, cases[i].what,
                    (long long)result);
            int wrong = 0;
            for (int64_t b = 0; b < (int64_t)sizeof into; b++)
                wrong += into[b] != (b < result ? byte_at(cases[i].offset + b) : 0xEE);
            T_CHECK(wrong == 0, "%s, %s: %d bytes", reader->ops->name, cases[i].what, wrong);
        }
        if (reader) reader->ops->close(reader);
    }
}

/* Uncached reads are refused by an error value where they are not aligned. */
static void uncached_reads(void) {
    make_file();
    int fd = uncached_fd;
    unsigned char *memory = aligned_alloc(4096, 16384);
    if (!memory) exit(1);
    bool works = pread(fd, memory, 4096, 0) == 4096;
    if (!works) printf("uncached reads skipped: the file system refuses them\n");
    for (int k = 0; k < 2; k++) {
        plumb_reader *reader = works ? open_reader(kinds[k], 2) : NULL;
        T_CHECK(reader || !works || k == 1, "%s", "a reader");
        if (!reader) continue;
        for (int registered = 0; registered < 2; registered++) {
            if (registered) reader->ops->add_memory(reader, memory, 16384);
            int64_t whole = read_now(reader, fd, 4096, 8192, memory + 4096);
            T_CHECK(whole == 8192 && memory[4096 + 8191] == byte_at(4096 + 8191), "%lld",
                    (long long)whole);
            int64_t tail = FILE_BYTES % 4096;
            int64_t end = read_now(reader, fd, FILE_BYTES - tail, 8192, memory);
            T_CHECK(end == tail, "%lld", (long long)end);
            int64_t odd = read_now(reader, fd, 4096, 100, memory);
            T_CHECK(odd == -EINVAL, "%s: %lld", reader->ops->name, (long long)odd);
            odd = read_now(reader, fd, 77, 4096, memory);
            T_CHECK(odd == -EINVAL, "%s: %lld", reader->ops->name, (long long)odd);
        }
        reader->ops->remove_memory(reader, memory, 16384);
        reader->ops->close(reader);
    }
    free(memory);
}

/* ---- Many at once -------------------------------------------------------------------------------- */

typedef struct storm {
    plumb_reader *reader;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t over;
    int64_t to_start, unfinished, wrong;
    uint64_t random;
} storm;

/* A place for one read at a time, which starts the next when its read has come. */
typedef struct place {
    plumb_read read;
    storm *storm;
    unsigned char *memory; /* SLOT_BYTES */
} place;

static void storm_done(plumb_read *read, int64_t result);

/* Under the lock. */
static bool next_read(place *p) {
    storm *s = p->storm;
    if (s->to_start == 0) return false;
    s->to_start--;
    s->unfinished++;
    int skip = random_below(&s->random, 300), size = 1 + random_below(&s->random, SLOT_BYTES - 300);
    int64_t offset = random_below(&s->random, FILE_BYTES + 1000);
    p->read = (plumb_read){file_fd, offset, size, p->memory + skip, storm_done, p};
    return true;
}

static void storm_done(plumb_read *read, int64_t result) {
    place *p = read->user;
    storm *s = p->storm;
    int64_t left = FILE_BYTES - read->offset, expected = left < read->size ? left : read->size;
    bool wrong = result != (expected > 0 ? expected : 0);
    const unsigned char *bytes = read->into;
    for (int64_t i = 0; i < result && !wrong; i++) wrong = bytes[i] != byte_at(read->offset + i);
    pthread_mutex_lock(&s->lock);
    s->wrong += wrong;
    bool more = next_read(p);
    if (--s->unfinished == 0) pthread_cond_signal(&s->over);
    pthread_mutex_unlock(&s->lock);
    if (more) s->reader->ops->start(s->reader, &p->read);
}

typedef enum memory_kind { OUTSIDE, REGISTERED, IN_PARTS, MEMORY_KINDS } memory_kind;

static void tell_memory(plumb_reader *reader, unsigned char *memory, int depth, memory_kind kind,
                        void (*tell)(plumb_reader *, void *, int64_t)) {
    if (kind == REGISTERED) tell(reader, memory, (int64_t)depth * SLOT_BYTES);
    /* Every other slot, last first: ranges are kept in the order of addresses. */
    for (int i = depth - 1; kind == IN_PARTS && i >= 0; i--)
        if (i % 2 == 0) tell(reader, memory + (int64_t)i * SLOT_BYTES, SLOT_BYTES);
}

static void run_storm(plumb_reader *reader, unsigned char *memory, int64_t reads) {
    static place places[MOST_DEPTH];
    storm s = {.reader = reader, .lock = PTHREAD_MUTEX_INITIALIZER,
               .over = PTHREAD_COND_INITIALIZER, .to_start = reads, .random = 1};
    for (int i = 0; i < reader->depth; i++) {
        places[i] = (place){.storm = &s, .memory = memory + (int64_t)i * SLOT_BYTES};
        pthread_mutex_lock(&s.lock);
        bool more = next_read(&places[i]);
        pthread_mutex_unlock(&s.lock);
        if (more) reader->ops->start(reader, &places[i].read);
    }
    pthread_mutex_lock(&s.lock);
    while (s.unfinished > 0) pthread_cond_wait(&s.over, &s.lock);
    pthread_mutex_unlock(&s.lock);
    T_CHECK(s.to_start == 0 && s.wrong == 0, "%s, depth %d: %lld wrong", reader->ops->name,
            reader->depth, (long long)s.wrong);
}

static void many_reads(void) {
    static const int depths[] = {1, 3, 32, MOST_DEPTH};
    make_file();
    unsigned char *memory = aligned_alloc(65536, (size_t)MOST_DEPTH * SLOT_BYTES);
    if (!memory) exit(1);
    for (int k = 0; k < 2; k++) {
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
            plumb_reader *reader = open_reader(kinds[k], depths[d]);
            if (!reader) continue;
            for (memory_kind m = OUTSIDE; m < MEMORY_KINDS; m++) {
                tell_memory(reader, memory, depths[d], m, reader->ops->add_memory);
                run_storm(reader, memory, 400);
                tell_memory(reader, memory, depths[d], m, reader->ops->remove_memory);
            }
            reader->ops->close(reader);
        }
    }
    free(memory);
}

/* Memory that was registered may be given back and come again as another's. */
static void memory_comes_and_goes(void) {
    make_file();
    for (int k = 0; k < 2; k++) {
        plumb_reader *reader = open_reader(kinds[k], 4);
        int wrong = 0;
        for (int i = 0; reader && i < 200; i++) {
            unsigned char *memory = aligned_alloc(4096, 2 * 4096);
            if (!memory) exit(1);
            reader->ops->add_memory(reader, memory, 2 * 4096);
            wrong += read_now(reader, file_fd, i * 100, 5000, memory + 100) != 5000;
            wrong += memory[100] != byte_at(i * 100) || memory[5099] != byte_at(i * 100 + 4999);
            reader->ops->remove_memory(reader, memory, 2 * 4096);
            /* A part, and a read that reaches over its end. */
            reader->ops->add_memory(reader, memory, 4096);
            wrong += read_now(reader, file_fd, i * 10, 5000, memory + 7) != 5000;
            wrong += memory[7] != byte_at(i * 10) || memory[5006] != byte_at(i * 10 + 4999);
            reader->ops->remove_memory(reader, memory, 4096);
            wrong += read_now(reader, file_fd, i, 4096, memory) != 4096;
            wrong += memory[4095] != byte_at(i + 4095);
            free(memory);
        }
        T_CHECK(wrong == 0, "%d", wrong);
        if (reader) reader->ops->close(reader);
    }
}

/* ---- Threads that come and go -------------------------------------------------------------------- */

typedef struct errand {
    plumb_reader *reader;
    answer *answer;
} errand;

static void *start_and_leave(void *arg) {
    errand *e = arg;
    e->reader->ops->start(e->reader, &e->answer->read);
    return NULL;
}

/* The thread that starts a read may end before it comes.  The kernel may call the read off then, which
 * is an interruption and no fault of the file. */
static void starter_leaves(void) {
    static unsigned char memory[SLOT_BYTES];
    make_file();
    for (int k = 0; k < 2; k++) {
        plumb_reader *reader = open_reader(kinds[k], 4);
        int wrong = 0;
        for (int i = 0; reader && i < 100; i++) {
            answer a = {.lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};
            a.read = (plumb_read){file_fd, i, SLOT_BYTES, memory, take_answer, &a};
            errand e = {reader, &a};
            pthread_t thread;
            if (pthread_create(&thread, NULL, start_and_leave, &e) != 0) exit(1);
            pthread_join(thread, NULL);
            pthread_mutex_lock(&a.lock);
            while (a.times == 0) pthread_cond_wait(&a.come, &a.lock);
            pthread_mutex_unlock(&a.lock);
            wrong += a.result != SLOT_BYTES && a.result != -EINTR;
        }
        T_CHECK(wrong == 0, "%d", wrong);
        if (reader) reader->ops->close(reader);
    }
}

/* ---- Which one ----------------------------------------------------------------------------------- */

static void choice(void) {
    plumb_reader *reader = NULL;
    plumb_error err = {0};
    char why[128] = "";
    static const int bad_depths[] = {0, -1, 100000};
    for (size_t i = 0; i < 3; i++)
        T_CHECK(plumb__reader_open(PLUMB_READER_BEST, bad_depths[i], &reader, NULL, 0, &err) ==
                    PLUMB_ERROR_ARGUMENT, "%d", bad_depths[i]);
    bool uring = plumb__reader_open(PLUMB_READER_URING, 1, &reader, NULL, 0, &err) == PLUMB_OK;
    if (uring) {
        T_CHECK(!strcmp(reader->ops->name, "io_uring"), "%s", reader->ops->name);
        reader->ops->close(reader);
    }
    T_CHECK(plumb__reader_open(PLUMB_READER_BEST, 1, &reader, why, sizeof why, &err) == PLUMB_OK,
            "%s", err.found);
    T_CHECK(!strcmp(reader->ops->name, uring ? "io_uring" : "pread"), "%s", reader->ops->name);
    T_CHECK(!strncmp(why, reader->ops->name, strlen(reader->ops->name)), "%s", why);
    T_CHECK(uring || strstr(why, err.found), "%s: %s", why, err.found);
    reader->ops->close(reader);
    T_CHECK(plumb__reader_open(PLUMB_READER_PREAD, 1, &reader, why, sizeof why, &err) == PLUMB_OK,
            "%s", err.found);
    T_CHECK(!strcmp(why, "pread: asked for"), "%s", why);
    reader->ops->close(reader);
}

#if defined(__linux__) && defined(SYS_io_uring_setup)

typedef struct ban {
    long call; /* a system call that is refused */
    bool done; /* the kernel lets us refuse it */
    plumb_status best, uring;
    int64_t result;
    char name[16], why[128];
} ban;

/* What a container's filter does, for this thread and the reader's. */
static bool forbid(long call) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the system call */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *open_forbidden(void *arg) {
    ban *b = arg;
    static unsigned char memory[8192];
    plumb_reader *reader = NULL;
    b->done = forbid(b->call);
    b->uring = plumb__reader_open(PLUMB_READER_URING, 2, &reader, NULL, 0, NULL);
    if (b->uring == PLUMB_OK) reader->ops->close(reader);
    b->best = plumb__reader_open(PLUMB_READER_BEST, 2, &reader, b->why, sizeof b->why, NULL);
    if (b->best != PLUMB_OK) return NULL;
    (void)snprintf(b->name, sizeof b->name, "%s", reader->ops->name);
    reader->ops->add_memory(reader, memory, sizeof memory);
    b->result = read_now(reader, file_fd, 0, 1000, memory);
    reader->ops->remove_memory(reader, memory, sizeof memory);
    reader->ops->close(reader);
    return NULL;
}

/* Filters last as long as their thread, so each has one of its own. */
static void forbidden(void) {
    static const struct {
        long call;
        plumb_status uring;
        const char *name, *why;
    } cases[] = {
        {SYS_io_uring_setup, PLUMB_ERROR_UNSUPPORTED, "pread", "Operation not permitted"},
        {SYS_io_uring_enter, PLUMB_ERROR_UNSUPPORTED, "pread", "Operation not permitted"},
        {SYS_io_uring_register, PLUMB_OK, "io_uring", "not registered (Operation not permitted)"},
    };
    make_file();
    plumb_reader *reader = open_reader(PLUMB_READER_URING, 1);
    bool here = reader != NULL;
    if (here) reader->ops->close(reader);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ban b = {.call = cases[i].call};
        pthread_t thread;
        if (pthread_create(&thread, NULL, open_forbidden, &b) != 0) exit(1);
        pthread_join(thread, NULL);
        T_CHECK(b.best == PLUMB_OK && b.result == 1000, "case %zu: %lld", i, (long long)b.result);
        if (!b.done || !here) {
            printf("a forbidden io_uring skipped\n");
            continue;
        }
        T_CHECK(b.uring == cases[i].uring, "case %zu: %d", i, (int)b.uring);
        T_CHECK(!strcmp(b.name, cases[i].name) && strstr(b.why, cases[i].why), "case %zu: %s, %s", i,
                b.name, b.why);
    }
}

#else

static void forbidden(void) {
    T_CHECK(true, "%s", "no io_uring on this system");
    printf("a forbidden io_uring skipped\n");
}

#endif

T_MAIN({"single_reads", single_reads}, {"uncached_reads", uncached_reads},
       {"many_reads", many_reads}, {"memory_comes_and_goes", memory_comes_and_goes},
       {"starter_leaves", starter_leaves}, {"choice", choice},
       {"forbidden", forbidden})
