#include "drive.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/pages.h"
#include "base/thread_pool.h"
#include "measure.h"
#include "stream/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t blocks_of(const bench_drive *drive) {
    int64_t blocks = drive->bytes / drive->block_bytes;
    return blocks < drive->depth ? drive->depth : blocks;
}

/* ---- fio ------------------------------------------------------------------------------------- */

bool bench_drive_has_fio(void) {
    FILE *fio = popen("fio --version 2>/dev/null", "r");
    char line[64];
    bool found = fio && fgets(line, sizeof line, fio) && !strncmp(line, "fio-", 4);
    return fio && pclose(fio) == 0 && found;
}

/* Free huge pages of 2 MiB that the system keeps for whoever asks (vm.nr_hugepages). */
static int64_t free_huge_pages(void) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    long long pages = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "HugePages_Free: %lld", &pages) == 1) break;
    if (file) (void)fclose(file);
    return pages;
}

bool bench_drive_fio_takes_huge_pages(const bench_drive *drive) {
    enum { HUGE_PAGE = 2 << 20 };
    return free_huge_pages() >= (drive->depth + 1) * (drive->block_bytes + HUGE_PAGE) / HUGE_PAGE;
}

/* A job that reads whole blocks at random places, with io_uring into registered memory, as our reader
 * does.  One synchronous job reads one block at a time, so depth is a number of jobs there. */
static plumb_status fio_command(const bench_drive *drive, char *command, size_t size,
                                plumb_error *err) {
    if (strpbrk(drive->path, "':\\"))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, drive->path, "path", -1, "' or : or \\",
                           "a path that needs no quoting for fio");
    int jobs = drive->uring ? 1 : drive->depth;
    long long each = (long long)(blocks_of(drive) / jobs * drive->block_bytes);
    int written = snprintf(
        command, size,
        "fio --name=read --filename='%s' --readonly --rw=randread --norandommap --direct=1 "
        "--ioengine=%s --bs=%lld --iodepth=%d --numjobs=%d --thread --group_reporting --mem=%s "
        "--io_size=%lld --randseed=%llu --output-format=json 2>&1",
        drive->path, drive->uring ? "io_uring --fixedbufs" : "psync", (long long)drive->block_bytes,
        drive->uring ? drive->depth : 1, jobs,
        bench_drive_fio_takes_huge_pages(drive) ? "mmaphuge" : "malloc", each,
        (unsigned long long)drive->seed + 1);
    if (written > 0 && (size_t)written < size) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, drive->path, "path", -1, "a long one",
                       "a command of at most %zu bytes", size);
}

/* fio prints warnings before the object; a part of the output goes into the error. */
static plumb_status parse_fio(const bench_drive *drive, char *output, double *rate,
                              plumb_error *err) {
    const char *object = strchr(output, '{');
    json_t *root = object ? json_loads(object, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    json_t *bandwidth = json_object_get(json_object_get(job, "read"), "bw_bytes");
    int64_t fault = json_integer_value(json_object_get(job, "error"));
    *rate = json_number_value(bandwidth);
    json_decref(root);
    if (fault == 0 && *rate > 0) return PLUMB_OK;
    output[strcspn(output, "\n")] = '\0';
    return plumb__fail(err, PLUMB_ERROR_IO, drive->path, "fio", -1, plumb__format("%.150s", output).s,
                       "its JSON with a read rate");
}

static plumb_status read_with_fio(const bench_drive *drive, double *rate, plumb_error *err) {
    enum { MOST_OUTPUT = 1 << 16 };
    char command[4096];
    plumb_status status = fio_command(drive, command, sizeof command, err);
    if (status != PLUMB_OK) return status;
    char *output = plumb__alloc_aligned(MOST_OUTPUT, 1);
    if (!output) return plumb__fail_memory(err, "fio's output", MOST_OUTPUT);
    FILE *fio = popen(command, "r");
    size_t size = fio ? fread(output, 1, MOST_OUTPUT - 1, fio) : 0;
    output[size] = '\0';
    if (fio) (void)pclose(fio);
    status = parse_fio(drive, output, rate, err);
    plumb__free_aligned(output);
    return status;
}

/* ---- The plain loop -------------------------------------------------------------------------- */

typedef struct loop {
    const bench_drive *drive;
    int fd;
    int64_t places;    /* blocks in the file */
    int64_t blocks;    /* to read */
    atomic_llong next; /* of these */
    uint8_t *memory;   /* [depth][block_bytes] */
    atomic_int fault;  /* an errno */
} loop;

/* One step of SplitMix64: block i lies anywhere. */
static int64_t place_of(const loop *l, int64_t i) {
    uint64_t z = (l->drive->seed << 32) + ((uint64_t)i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)l->places);
}

/* Whichever thread is free reads the next one. */
static void read_blocks(void *arg, int64_t begin, int64_t end, int thread) {
    loop *l = arg;
    int64_t size = l->drive->block_bytes;
    uint8_t *into = l->memory + thread * size;
    (void)begin;
    (void)end;
    for (int64_t i; (i = atomic_fetch_add(&l->next, 1)) < l->blocks;) {
        int64_t place = l->drive->in_order ? i : place_of(l, i);
        ssize_t got = pread(l->fd, into, (size_t)size, (off_t)(place * size));
        if (got != size) l->fault = got < 0 ? errno : EIO;
    }
}

static int open_uncached(const char *path) {
#if defined(__APPLE__)
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) (void)fcntl(fd, F_NOCACHE, 1);
    return fd;
#else
    return open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
#endif
}

static plumb_status run_loop(loop *l, double *rate, plumb_error *err) {
    plumb_pool *pool = NULL;
    plumb_status status = plumb__pool_create(l->drive->depth, NULL, &pool, err);
    if (status != PLUMB_OK) return status;
    double start = bench_now();
    plumb__pool_run(pool, l->drive->depth, 0, read_blocks, l);
    *rate = (double)(l->blocks * l->drive->block_bytes) / (bench_now() - start);
    plumb__pool_destroy(pool);
    if (!l->fault) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, l->drive->path, "read", -1, strerror(l->fault),
                       "whole blocks past the page cache");
}

static plumb_status read_with_loop(const bench_drive *drive, double *rate, plumb_error *err) {
    loop l = {.drive = drive, .fd = open_uncached(drive->path)};
    struct stat about;
    if (l.fd < 0 || fstat(l.fd, &about) != 0 || about.st_size < drive->block_bytes) {
        if (l.fd >= 0) close(l.fd);
        return plumb__fail(err, PLUMB_ERROR_IO, drive->path, "open", -1, strerror(errno),
                           "a file of at least one block");
    }
    l.places = about.st_size / drive->block_bytes;
    l.blocks = drive->in_order ? l.places : blocks_of(drive);
    int64_t bytes = drive->depth * drive->block_bytes;
    l.memory = plumb__pages_map(bytes);
    plumb_status status = l.memory ? run_loop(&l, rate, err)
                                   : plumb__fail_memory(err, "blocks", (size_t)bytes);
    plumb__pages_unmap(l.memory, bytes);
    close(l.fd);
    return status;
}

plumb_status bench_drive_read(const bench_drive *drive, bool fio, double *rate, plumb_error *err) {
    return fio ? read_with_fio(drive, rate, err) : read_with_loop(drive, rate, err);
}
