#include "plan/machine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/machine.h"
#include "base/memory_read.h"
#include "base/pages.h"
#include "stream/expert_layout.h"
#include "stream/read_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The drive ----------------------------------------------------------------------------------
 */

enum {
    IN_FLIGHT = 8, /* experts: one token misses about as many at once */
    READS = 32,    /* of the system */
    PIECE_BYTES = 4 << 20,
    SHARD_NOTE = 80
};

typedef struct disk_run disk_run;

typedef struct flight {
    plumb_load load;
    uint8_t *memory;
    disk_run *run;
    bool flying;
} flight;

struct disk_run {
    const plumb_checkpoint *checkpoint;
    int *fd; /* [shards] */
    int64_t shards, slot_bytes;
    plumb_read_queue *queue;
    flight flight[IN_FLIGHT];
    pthread_mutex_t lock; /* guards what follows and `flying` */
    pthread_cond_t landed;
    int flying, error;  /* error: the first errno */
    plumb_extent fault; /* where it happened */
    int64_t fault_offset, bytes;
};

static void land(plumb_load *load, int error, int extent, int64_t offset) {
    flight *f = load->user;
    disk_run *run = f->run;
    int64_t bytes = 0;
    for (int i = 0; i < load->n_extents; i++) bytes += load->extent[i].needed;
    pthread_mutex_lock(&run->lock);
    f->flying = false;
    run->flying--;
    if (error == 0)
        run->bytes += bytes;
    else if (run->error == 0) {
        run->error = error;
        run->fault = load->extent[extent];
        run->fault_offset = offset;
    }
    pthread_cond_signal(&run->landed);
    pthread_mutex_unlock(&run->lock);
}

/* A flight that is over, waiting for one; NULL after a fault. */
static flight *idle_flight(disk_run *run) {
    flight *idle = NULL;
    pthread_mutex_lock(&run->lock);
    while (run->flying == IN_FLIGHT && run->error == 0) pthread_cond_wait(&run->landed, &run->lock);
    for (int i = 0; i < IN_FLIGHT && run->error == 0 && !idle; i++)
        if (!run->flight[i].flying) idle = &run->flight[i];
    if (idle) {
        idle->flying = true;
        run->flying++;
    }
    pthread_mutex_unlock(&run->lock);
    return idle;
}

static plumb_status launch(disk_run *run, flight *f, int64_t pair, plumb_error *err) {
    int64_t experts = plumb__checkpoint_config(run->checkpoint)->experts;
    plumb_expert_layout layout;
    plumb_status status = plumb__expert_layout_find(run->checkpoint, pair / experts, pair % experts,
                                                    PLUMB_READ_ALIGNMENT, &layout, err);
    if (status != PLUMB_OK) return status;
    f->load = (plumb_load){.n_extents = layout.n_runs, .done = land, .user = f};
    for (int i = 0; i < layout.n_runs; i++)
        f->load.extent[i] = (plumb_extent){.fd = run->fd[layout.run[i].shard],
                                           .offset = layout.run[i].offset,
                                           .size = layout.run[i].size,
                                           .needed = layout.run[i].needed,
                                           .into = f->memory + layout.run[i].place};
    plumb__read_queue_add(run->queue, &f->load, true);
    return PLUMB_OK;
}

static plumb_status report_fault(const disk_run *run, plumb_error *err) {
    int64_t shard = 0;
    while (shard < run->shards - 1 && run->fd[shard] != run->fault.fd) shard++;
    return plumb__fail(err, PLUMB_ERROR_IO, plumb__checkpoint_shard_path(run->checkpoint, shard),
                       "experts", run->fault_offset, strerror(run->error), "a read of %lld bytes",
                       (long long)run->fault.needed);
}

/* Keeps IN_FLIGHT experts flying until the time is over and all have landed; one at least, should the
 * time pass while others have the processor. */
static plumb_status fly(disk_run *run, double seconds, plumb_disk_rate *rate, plumb_error *err) {
    const plumb_model_config *c = plumb__checkpoint_config(run->checkpoint);
    uint64_t pairs = (uint64_t)(c->layers * c->experts), random = 1;
    plumb_status status = PLUMB_OK;
    double start = plumb__now();
    while (status == PLUMB_OK && (rate->experts == 0 || plumb__now() - start < seconds)) {
        flight *f = idle_flight(run);
        if (!f) break;
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        status = launch(run, f, (int64_t)((random >> 33) % pairs), err);
        rate->experts += status == PLUMB_OK;
    }
    plumb__read_queue_wait_idle(run->queue);
    rate->seconds = plumb__now() - start;
    rate->bytes = run->bytes;
    rate->bytes_per_second = (double)rate->bytes / rate->seconds;
    return status == PLUMB_OK && run->error != 0 ? report_fault(run, err) : status;
}

static bool holds_experts(const plumb_checkpoint *checkpoint, int64_t shard) {
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (t->shard == shard && t->tensor_class == PLUMB_CLASS_EXPERT) return true;
    }
    return false;
}

static plumb_status open_shards(disk_run *run, plumb_disk_rate *rate, plumb_error *err) {
    run->shards = plumb__checkpoint_shards(run->checkpoint);
    run->fd = malloc((size_t)run->shards * sizeof *run->fd);
    if (!run->fd) return plumb__fail_memory(err, "shards", (size_t)run->shards * sizeof *run->fd);
    for (int64_t i = 0; i < run->shards; i++) run->fd[i] = -1;
    rate->uncached = true;
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < run->shards && status == PLUMB_OK; i++) {
        char why[SHARD_NOTE];
        bool uncached = false;
        status = plumb__checkpoint_open_uncached(run->checkpoint, i, &run->fd[i], &uncached, why,
                                                 sizeof why, err);
        if (status != PLUMB_OK) break;
        rate->uncached &= uncached;
        enum { BLOCK = 512 }; /* of st_blocks */
        struct stat file;
        if (holds_experts(run->checkpoint, i) && fstat(run->fd[i], &file) == 0)
            rate->holes |= (int64_t)file.st_blocks * BLOCK < file.st_size / 2;
    }
    return status;
}

static plumb_status open_queue(disk_run *run, plumb_disk_rate *rate, plumb_error *err) {
    plumb_reader *reader = NULL;
    plumb_status status = plumb__reader_open(PLUMB_READER_BEST, READS, &reader, rate->reader,
                                             sizeof rate->reader, err);
    if (status == PLUMB_OK) {
        status = plumb__read_queue_open(reader, PIECE_BYTES, &run->queue, err);
        if (status != PLUMB_OK) reader->ops->close(reader);
    }
    run->slot_bytes =
        plumb__expert_layout_bytes(plumb__checkpoint_config(run->checkpoint), PLUMB_READ_ALIGNMENT);
    for (int i = 0; i < IN_FLIGHT && status == PLUMB_OK; i++) {
        run->flight[i].run = run;
        run->flight[i].memory = plumb__pages_map(run->slot_bytes);
        if (!run->flight[i].memory)
            status = plumb__fail_memory(err, "experts", (size_t)run->slot_bytes);
    }
    return status;
}

static void close_run(disk_run *run) {
    if (run->queue) plumb__read_queue_close(run->queue);
    for (int i = 0; i < IN_FLIGHT; i++)
        if (run->flight[i].memory) plumb__pages_unmap(run->flight[i].memory, run->slot_bytes);
    for (int64_t i = 0; run->fd && i < run->shards; i++)
        if (run->fd[i] >= 0) (void)close(run->fd[i]);
    free(run->fd);
    pthread_mutex_destroy(&run->lock);
    pthread_cond_destroy(&run->landed);
}

plumb_status plumb__measure_disk(const plumb_checkpoint *checkpoint, double seconds,
                                 plumb_disk_rate *rate, plumb_error *err) {
    disk_run run = {.checkpoint = checkpoint};
    plumb_disk_rate found = {.in_flight = IN_FLIGHT};
    pthread_mutex_init(&run.lock, NULL);
    pthread_cond_init(&run.landed, NULL);
    plumb_status status = open_shards(&run, &found, err);
    if (status == PLUMB_OK) status = open_queue(&run, &found, err);
    if (status == PLUMB_OK) status = fly(&run, seconds, &found, err);
    close_run(&run);
    if (status == PLUMB_OK) *rate = found;
    return status;
}

/* ---- Memory
 * --------------------------------------------------------------------------------------- */

static void touch(void *arg, int64_t begin, int64_t end, int thread) {
    (void)thread;
    memset((uint8_t *)arg + begin, 1, (size_t)(end - begin));
}

plumb_status plumb__measure_memory(int threads, double seconds, double *rate, plumb_error *err) {
    enum { LEAST_ROUNDS = 3 };
    /* Larger than caches are, and a small part of what the machine has. */
    const int64_t most = INT64_C(1) << 29, word = sizeof(uint64_t);
    int64_t bytes = plumb__machine_memory_bytes() / 16;
    bytes = (bytes > 0 && bytes < most ? bytes : most) / word * word;
    uint8_t *memory = plumb__pages_map(bytes);
    if (!memory) return plumb__fail_memory(err, "memory to read", (size_t)bytes);
    plumb_pool *pool = NULL;
    plumb_status status = plumb__pool_create(threads, NULL, &pool, err);
    if (status == PLUMB_OK) {
        /* Untouched pages are all the same one. */
        plumb__pool_run(pool, bytes, 1, touch, memory);
        double best = 0, start = plumb__now();
        uint64_t volatile sum = 0;
        for (int round = 0; round < LEAST_ROUNDS || plumb__now() - start < seconds; round++) {
            double began = plumb__now();
            sum = plumb__memory_read(pool, memory, bytes);
            double reached = (double)bytes / (plumb__now() - began);
            if (reached > best) best = reached;
        }
        (void)sum;
        plumb__pool_destroy(pool);
        *rate = best;
    }
    plumb__pages_unmap(memory, bytes);
    return status;
}
