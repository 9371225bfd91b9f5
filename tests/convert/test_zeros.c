/* Holes that are neither read nor written, and reading ahead: the same bytes, digests and files as
 * without either. */
#include "convert/audit.h"
#include "convert/convert.h"
#include "convert/payload_writer.h"
#include "convert/zeros.h"
#include "fixture.h"
#include "synth/synth.h"
#include "t.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/falloc.h>
#endif

#define OUT BUILD_DIR "/zeros"
enum { BLOCK = 4096, FILE_BYTES = 64 * BLOCK };

/* ---- Digests ----------------------------------------------------------------------------------- */

static plumb_zeros zeros;
enum { SIZES = 9 };
static const int64_t sizes[SIZES] = {0, 1, 240, 4097, 16384, 16385, 1000000, 16384, 1};
static XXH128_hash_t digest_of[SIZES];

static plumb_status find_digest(void *user, plumb_jobs *jobs, int job, int64_t item,
                                plumb_error *err) {
    (void)user;
    (void)job;
    return plumb__zeros_digest(&zeros, sizes[item], jobs, item, &digest_of[item], err);
}

static void digests(void) {
    plumb_error err = {0};
    plumb__zeros_open(&zeros);
    const plumb_work work = {.jobs = 3, .items = SIZES, .run = find_digest};
    for (int round = 0; round < 2; round++) {
        memset(digest_of, 0, sizeof digest_of);
        T_CHECK(plumb__jobs_run(&work, &err) == PLUMB_OK, "%s", err.found);
        for (int i = 0; i < SIZES; i++) {
            uint8_t *bytes = calloc(1, (size_t)sizes[i] + 1);
            XXH128_hash_t expected = XXH3_128bits(bytes, (size_t)sizes[i]);
            T_CHECK(XXH128_isEqual(digest_of[i], expected), "%lld", (long long)sizes[i]);
            free(bytes);
        }
    }
    plumb__zeros_close(&zeros);
}

/* What conversion and audit rely on: in these forms zeros are zeros on both sides. */
static void every_form(void) {
    enum { UNITS = 40, BYTES = 1 << 14 };
    const plumb_tensor tensors[] = {
        {.dtype = PLUMB_DTYPE_BF16, .shape = {UNITS, 1}, .bytes = 2 * UNITS, .stored = PLUMB_STORED_RELEASED},
        {.dtype = PLUMB_DTYPE_F32, .shape = {UNITS, 1}, .bytes = 4 * UNITS, .stored = PLUMB_STORED_BF16},
        {.dtype = PLUMB_DTYPE_I8, .shape = {UNITS, 16}, .bytes = 16 * UNITS, .stored = PLUMB_STORED_MXFP4},
        {.dtype = PLUMB_DTYPE_F8_E4M3, .shape = {UNITS, 64}, .bytes = 64 * UNITS, .stored = PLUMB_STORED_ROWS}};
    static const uint8_t nothing[BYTES];
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        plumb_stored_units u = plumb__stored_units(&tensors[i], tensors[i].stored);
        uint8_t stored[BYTES], codes[BYTES], scales[BYTES];
        memset(stored, 1, BYTES);
        memset(codes, 1, BYTES);
        memset(scales, 1, BYTES);
        T_CHECK(plumb__zeros_stay(&u) && u.count == UNITS, "%zu", i);
        T_CHECK(plumb__stored_encode(&u, 0, UNITS, nothing, nothing, NULL, stored) < 0, "%zu", i);
        T_CHECK(!memcmp(stored, nothing, (size_t)(UNITS * u.stored)), "%zu", i);
        T_CHECK(plumb__stored_decode(&u, 0, UNITS, nothing, NULL, codes, scales) < 0, "%zu", i);
        T_CHECK(!memcmp(codes, nothing, (size_t)(UNITS * u.codes)), "%zu", i);
        T_CHECK(!memcmp(scales, nothing, (size_t)(UNITS * u.scales)), "%zu", i);
    }
    const plumb_tensor matrix = {.dtype = PLUMB_DTYPE_F8_E4M3, .shape = {32, 32}, .bytes = 1024};
    plumb_stored_units u = plumb__stored_units(&matrix, PLUMB_STORED_F32);
    T_CHECK(!plumb__zeros_stay(&u), "scales elsewhere may be NaN");
}

/* ---- One file ---------------------------------------------------------------------------------- */

typedef struct opened {
    plumb_shard_file shard;
    const plumb_shard_file *list[1];
    plumb_payload_files files;
} opened;

/* Blocks 8 to 15 and 40 to the end hold data, bytes that tell their place. */
static void open_file(opened *o) {
    static const char path[] = OUT "/file";
    uint8_t block[BLOCK];
    plumb_error err = {0};
    (void)mkdir(OUT, 0777);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    T_CHECK(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "%s", path);
    for (int b = 8; b < 64; b = b == 15 ? 40 : b + 1) {
        for (int i = 0; i < BLOCK; i++) block[i] = (uint8_t)(1 + (i * 7 + b) % 255);
        T_CHECK(pwrite(fd, block, BLOCK, (off_t)b * BLOCK) == BLOCK, "block %d", b);
    }
    o->shard = (plumb_shard_file){.path = (char *)(uintptr_t)path, .file = (char *)(uintptr_t)path, .fd = fd};
    T_CHECK(fstat(fd, &o->shard.opened) == 0, "%s", path);
    o->list[0] = &o->shard;
    T_CHECK(plumb__payload_files_open(o->list, 1, &o->files, &err) == PLUMB_OK, "%s", err.found);
}

static void close_file(opened *o) {
    plumb__payload_files_close(&o->files);
    (void)close(o->shard.fd);
}

static void hollow(void) {
    static const struct {
        int64_t begin, end;
        bool hollow;
    } cases[] = {{0, 8 * BLOCK, true},          {1, 8 * BLOCK - 1, true},
                 {0, 8 * BLOCK + 1, false},     {7 * BLOCK + 5, 8 * BLOCK, true},
                 {5, 9, true},                  {8 * BLOCK + 5, 8 * BLOCK + 9, false},
                 {16 * BLOCK - 1, 20 * BLOCK, false}, {16 * BLOCK, 40 * BLOCK, true},
                 {16 * BLOCK, 64 * BLOCK, false}, {2 * BLOCK, 30 * BLOCK, false},
                 {7 * BLOCK + 5, 8 * BLOCK + 5, false}, {0, FILE_BYTES + 1, false}};
    opened o;
    open_file(&o);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t begin = cases[i].begin, size = cases[i].end - begin;
        bool found = plumb__payload_is_hollow(&o.files, 0, begin, size);
        /* A file system without holes has all of it as data, and is then read. */
        T_CHECK(found == cases[i].hollow || (!found && size > BLOCK), "%zu: %d", i, found);
    }
    close_file(&o);
}

static void check_read(plumb_payload_reader *reader, const opened *o, int64_t offset, int64_t size) {
    uint8_t expected[16 * BLOCK];
    const uint8_t *bytes;
    plumb_error err = {0};
    T_CHECK(pread(o->shard.fd, expected, (size_t)size, (off_t)offset) == size, "pread");
    T_CHECK(plumb__payload_read(reader, 0, offset, size, "x", &bytes, &err) == PLUMB_OK, "%s",
            err.found);
    T_CHECK(!memcmp(bytes, expected, (size_t)size), "%lld", (long long)offset);
}

/* Read what was announced, something else, another size, or nothing; across holes, aligned or not. */
static void ahead(void) {
    opened o;
    plumb_payload_reader reader;
    plumb_error err = {0};
    open_file(&o);
    T_CHECK(plumb__payload_reader_open(&o.files, 16 * BLOCK, &reader, &err) == PLUMB_OK, "%s", err.found);
    uint32_t random = 1;
    int64_t next = 0, size = 3 * BLOCK;
    for (int i = 0; i < 400; i++) {
        int64_t now = next, now_size = size;
        random = random * 1664525u + 1013904223u;
        next = (random >> 8) % (48 * BLOCK);
        size = 1 + (random >> 4) % (16 * BLOCK);
        bool follow = i % 5 != 3;
        T_CHECK(plumb__payload_read_ahead(&reader, 0, follow ? now : next, now_size, "x", &err) ==
                    PLUMB_OK, "%s", err.found);
        if (i % 11 == 0) continue;
        check_read(&reader, &o, now, now_size);
    }
    /* What was read stays while the next is read; the second request waits for the first. */
    const uint8_t *bytes;
    T_CHECK(plumb__payload_read(&reader, 0, 8 * BLOCK, BLOCK, "x", &bytes, &err) == PLUMB_OK, "read");
    uint8_t before = bytes[0]; /* block 41 begins with another byte */
    for (int i = 0; i < 2; i++)
        T_CHECK(plumb__payload_read_ahead(&reader, 0, 41 * BLOCK + i, BLOCK, "x", &err) == PLUMB_OK, "asked");
    T_CHECK(bytes[0] == before, "overwritten");
    check_read(&reader, &o, 41 * BLOCK + 1, BLOCK);
    T_CHECK(plumb__payload_read(&reader, 0, 8 * BLOCK, BLOCK, "x", &bytes, &err) == PLUMB_OK, "read");
    /* What went wrong ahead is told by the read that asks for it, and by no other. */
    T_CHECK(plumb__payload_read_ahead(&reader, 0, FILE_BYTES - 8, 100, "end", &err) == PLUMB_OK, "asked");
    check_read(&reader, &o, 8 * BLOCK, BLOCK);
    T_CHECK(plumb__payload_read_ahead(&reader, 0, FILE_BYTES - 8, 100, "end", &err) == PLUMB_OK, "asked");
    T_CHECK(plumb__payload_read(&reader, 0, FILE_BYTES - 8, 100, "end", &bytes, &err) == PLUMB_ERROR_IO,
            "behind the end");
    T_CHECK(!strcmp(err.field, "end"), "%s", err.field);
    T_CHECK(plumb__payload_read(&reader, 0, 0, 17 * BLOCK + 1, "large", &bytes, &err) ==
                PLUMB_ERROR_UNSUPPORTED, "more than the buffer");
    T_CHECK(plumb__payload_read_ahead(&reader, 0, 0, BLOCK, "last", &err) == PLUMB_OK, "closed under it");
    plumb__payload_reader_close(&reader);
    close_file(&o);
}

/* ---- Writing ----------------------------------------------------------------------------------- */

/* What the writer leaves out is zeros and nothing else: pieces of one value throughout, pieces that
 * begin or end with zeros, zeros themselves, and an end that is no whole block. */
static void left_out(void) {
    enum { PIECE = 64 << 10, TAIL = 5000 };
    static const struct {
        int first, middle, last;
    } pieces[] = {{7, 7, 7}, {0, 0, 0}, {255, 255, 255}, {0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 5, 5},
                  {0, 0, 0}, {1, 1, 1}};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    static uint8_t wanted[PIECES * PIECE + TAIL + BLOCK], found[PIECES * PIECE + TAIL + BLOCK];
    static const char path[] = OUT "/left-out";
    const int64_t size = PIECES * PIECE + TAIL, blocks = (size + BLOCK - 1) / BLOCK * BLOCK;
    for (int i = 0; i < PIECES; i++) {
        memset(wanted + i * PIECE, pieces[i].middle, PIECE);
        wanted[i * PIECE] = (uint8_t)pieces[i].first;
        wanted[(i + 1) * PIECE - 1] = (uint8_t)pieces[i].last;
    }
    memset(wanted + PIECES * PIECE, 3, TAIL);
    (void)mkdir(OUT, 0777);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    T_CHECK(fd >= 0 && ftruncate(fd, (off_t)blocks) == 0, "%s", path);
    plumb_payload_writer writer;
    plumb_error err = {0};
    XXH128_hash_t digest;
    T_CHECK(plumb__payload_writer_open(path, fd, &writer, &err) == PLUMB_OK, "%s", err.found);
    plumb__payload_begin(&writer, 0);
    for (int64_t done = 0, n; done < size; done += n) {
        uint8_t *room;
        T_CHECK(plumb__payload_reserve(&writer, 1, size - done, &room, &n, &err) == PLUMB_OK, "%s", err.found);
        memcpy(room, wanted + done, (size_t)n);
        plumb__payload_added(&writer, n);
    }
    T_CHECK(plumb__payload_end(&writer, &digest, &err) == PLUMB_OK, "%s", err.found);
    plumb__payload_writer_close(&writer);
    T_CHECK(XXH128_isEqual(digest, XXH3_128bits(wanted, (size_t)size)), "digest");
    T_CHECK(pread(fd, found, (size_t)blocks, 0) == blocks, "%s", path);
    for (int i = 0; i < PIECES; i++)
        T_CHECK(!memcmp(found + i * PIECE, wanted + i * PIECE, PIECE), "piece %d", i);
    T_CHECK(!memcmp(found, wanted, (size_t)blocks), "the end");
    (void)close(fd);
    (void)unlink(path);
}

/* ---- Conversion -------------------------------------------------------------------------------- */

static bool is_emptied(const char *name) {
    return strstr(name, ".experts.") || strstr(name, "engram.embed") || !strcmp(name, "head.weight");
}

/* The bytes become zeros, in a hole where there can be one. */
static void empty(int fd, int64_t offset, int64_t bytes, bool hole) {
    char *nothing = calloc(1, (size_t)bytes);
    T_CHECK(pwrite(fd, nothing, (size_t)bytes, (off_t)offset) == bytes, "%lld", (long long)offset);
    free(nothing);
#if defined(FALLOC_FL_PUNCH_HOLE)
    if (hole)
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
#else
    (void)hole;
#endif
}

static void make_source(const char *folder, bool hole) {
    plumb_error err = {0};
    plumb_checkpoint *checkpoint = NULL;
    const plumb_synth_options tiny = {.variant = PLUMB_SYNTH_TINY, .folder = folder, .force = true};
    T_CHECK(plumb__synth_write(&tiny, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__checkpoint_open(folder, NULL, NULL, &checkpoint, &err) == PLUMB_OK, "%s", err.found);
    for (int64_t i = 0; i < plumb__checkpoint_count(checkpoint); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(checkpoint, i);
        if (!is_emptied(t->name)) continue;
        int fd = open(plumb__checkpoint_shard_path(checkpoint, t->shard), O_RDWR);
        empty(fd, t->offset, t->bytes, hole);
        (void)close(fd);
    }
    plumb__checkpoint_close(checkpoint);
}

/* Zeros make the same file whether they are written out or left out, and both pass the audit, alone and
 * beside the source. */
static void conversion(void) {
    static const char *const kinds[] = {"written", "holes"};
    char *bytes[2];
    size_t size[2];
    (void)mkdir(OUT, 0777);
    for (int i = 0; i < 2; i++) {
        char folder[256], target[300];
        plumb_error err = {0};
        plumb_convert_result converted;
        plumb_audit_result audited;
        (void)snprintf(folder, sizeof folder, OUT "/%s", kinds[i]);
        (void)mkdir(folder, 0777);
        (void)snprintf(target, sizeof target, OUT "/%s.gguf", kinds[i]);
        (void)snprintf(folder, sizeof folder, OUT "/%s/model", kinds[i]);
        make_source(folder, i == 1);
        const plumb_convert_options options = {.dense = PLUMB_DENSE_FP8, .force = true, .jobs = 3};
        const plumb_audit_options alone = {.jobs = 3}, beside = {.jobs = 2, .source = folder};
        T_CHECK(plumb__convert(folder, target, &options, &converted, &err) == PLUMB_OK, "%s: %s",
                err.field, err.found);
        T_CHECK(plumb__audit_file(target, &alone, &audited, &err) == PLUMB_OK, "%s", err.found);
        T_CHECK(plumb__audit_file(target, &beside, &audited, &err) == PLUMB_OK, "%s", err.found);
        bytes[i] = fixture_load(target, &size[i]);
    }
    T_CHECK(size[0] == size[1] && !memcmp(bytes[0], bytes[1], size[0]), "files differ");
    for (int i = 0; i < 2; i++) free(bytes[i]);
}

/* A payload that lost its bytes to a hole is no payload of zeros. */
static void lost_payload(void) {
    plumb_error err = {0};
    plumb_checkpoint *checkpoint = NULL;
    plumb_convert_result converted;
    plumb_audit_result audited;
    static const char folder[] = OUT "/lost", target[] = OUT "/lost.gguf";
    const plumb_convert_options options = {.dense = PLUMB_DENSE_FP8, .force = true};
    const plumb_audit_options audit = {.jobs = 2};
    (void)mkdir(OUT, 0777);
    const plumb_synth_options tiny = {.variant = PLUMB_SYNTH_TINY, .folder = folder, .force = true};
    T_CHECK(plumb__synth_write(&tiny, &err) == PLUMB_OK, "%s", err.found);
    for (int expert = 0; expert < 2; expert++) {
        T_CHECK(plumb__convert(folder, target, &options, &converted, &err) == PLUMB_OK, "%s", err.found);
        T_CHECK(plumb__checkpoint_open(target, NULL, NULL, &checkpoint, &err) == PLUMB_OK, "%s", err.found);
        const plumb_tensor *t = plumb__checkpoint_find(checkpoint, "%s", expert
                                    ? "layers.0.ffn.experts.0.w1.weight" : "head.weight");
        const plumb_gguf *gguf = plumb__checkpoint_gguf(checkpoint);
        int64_t bytes = 0;
        for (int64_t i = 0; i < gguf->tensors; i++)
            if (gguf->tensor[i].offset == t->offset) bytes = gguf->tensor[i].bytes;
        int fd = open(target, O_RDWR);
        empty(fd, t->offset, bytes, true);
        (void)close(fd);
        plumb__checkpoint_close(checkpoint);
        T_CHECK(plumb__audit_file(target, &audit, &audited, &err) == PLUMB_ERROR_VALUE, "expert %d", expert);
    }
}

T_MAIN({"digests", digests}, {"every_form", every_form}, {"hollow", hollow}, {"ahead", ahead},
       {"left_out", left_out},
       {"conversion", conversion}, {"lost_payload", lost_payload})
