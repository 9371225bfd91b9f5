/* Packing: the same file again, float32 matrices as bfloat16 where that is exact.
 *
 * Payloads that stay are shared with the source where the file system can do that for ranges of a file
 * (FICLONERANGE), else copied.  A whole-file clone would not do: everything behind a packed matrix
 * moves forward, since readers of the format allow no gaps. */
#include "convert/convert.h"

#include "base/error.h"
#include "convert/dense_form.h"
#include "convert/difference.h"
#include "convert/new_file.h"
#include "convert/payload_reader.h"
#include "convert/payload_writer.h"
#include "format/model_files.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

enum { PIECE = 4 << 20 };

/* What one thread works with. */
typedef struct packer {
    plumb_payload_reader source, written;
    plumb_payload_writer writer;
} packer;

typedef struct packing {
    plumb_new_file out;
    plumb_checkpoint *source;
    plumb_converted_file from;      /* the source's tensors, in the order of the new file's */
    plumb_converted_header header;  /* the source's */
    const plumb_shard_file *shard;  /* the source's file */
    plumb_payload_files files, written_files;
    packer *packers;                /* [out.jobs] */
    bool packs;                     /* anything at all */
    atomic_bool cannot_clone;
} packing;

static bool is_packed(const packing *p, int64_t tensor) {
    return p->from.tensor[tensor].form != p->out.file.tensor[tensor].form;
}

/* ---- Choosing ---------------------------------------------------------------------------------- */

/* The first value of a float32 payload that is no bfloat16, or -1: *unfit. */
static plumb_status find_unfit(plumb_payload_reader *reader, const plumb_stored_tensor *t,
                               plumb_jobs *jobs, int64_t item, int64_t *unfit, plumb_error *err) {
    *unfit = -1;
    int64_t left = t->bytes;
    for (int64_t begin = 0; begin < t->bytes && *unfit < 0; begin += PIECE) {
        int64_t size = t->bytes - begin < PIECE ? t->bytes - begin : PIECE;
        const uint8_t *bytes;
        plumb_status status = plumb__payload_read(reader, 0, t->offset + begin, size, t->name,
                                                  &bytes, err);
        if (status != PLUMB_OK) return status;
        int64_t at = plumb__f32_unfit_for_bf16((const float *)(const void *)bytes, size / 4);
        if (at >= 0) *unfit = begin / 4 + at;
        left -= size;
        status = plumb__jobs_add(jobs, item, size, err);
        if (status != PLUMB_OK) return status;
    }
    return plumb__jobs_add(jobs, item, left, err); /* decided: what is left need not be looked at */
}

/* One look at the values of every float32 matrix. */
typedef struct looking {
    packing *p;
    plumb_payload_reader *reader; /* [jobs] */
    int64_t *unfit;               /* [tensors] as find_unfit */
} looking;

static bool can_be_packed(const packing *p, int64_t tensor) {
    const plumb_stored_tensor *t = &p->from.tensor[tensor];
    return plumb__stored_tensor_has_choice(t) && t->type == PLUMB_GGML_F32;
}

static plumb_status look_at_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                   plumb_error *err) {
    const looking *l = user;
    if (!can_be_packed(l->p, item)) return PLUMB_OK;
    return find_unfit(&l->reader[job], &l->p->from.tensor[item], jobs, item, &l->unfit[item], err);
}

static plumb_status look_at_values(packing *p, int64_t *unfit, plumb_error *err) {
    const plumb_convert_options *o = p->out.options;
    const int threads = plumb__jobs_threads(o->jobs);
    looking l = {.p = p, .unfit = unfit, .reader = calloc((size_t)threads, sizeof *l.reader)};
    if (!l.reader) return plumb__fail_memory(err, "jobs", (size_t)threads * sizeof *l.reader);
    int64_t total = 0;
    for (int64_t i = 0; i < p->from.count; i++)
        if (can_be_packed(p, i)) total += p->from.tensor[i].bytes;
    const plumb_work work = {.doing = "looking at values", .jobs = threads, .items = p->from.count,
                             .total = total, .run = look_at_tensor, .user = &l,
                             .progress = o->progress, .progress_user = o->progress_user};
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < threads && status == PLUMB_OK; i++)
        status = plumb__payload_reader_open(&p->files, PIECE, &l.reader[i], err);
    if (status == PLUMB_OK) status = plumb__jobs_run(&work, err);
    for (int i = 0; i < threads; i++) plumb__payload_reader_close(&l.reader[i]);
    free(l.reader);
    return status;
}

/* Told in the order of the file, whichever thread was first. */
static void set_forms(packing *p, const int64_t *unfit) {
    const plumb_convert_options *o = p->out.options;
    for (int64_t i = 0; i < p->out.file.count; i++) {
        plumb_stored_tensor *t = &p->out.file.tensor[i];
        if (!can_be_packed(p, i)) continue;
        if (unfit[i] >= 0) {
            plumb__dense_form_tell(t, PLUMB_STORED_BF16, unfit[i], o->log, o->log_user);
            continue;
        }
        plumb__stored_tensor_set_form(t, PLUMB_STORED_BF16);
        p->packs = true;
    }
    if (!p->packs && o->log)
        o->log(o->log_user, PLUMB_LOG_INFO, "nothing could be packed: no f32 matrix fits bf16");
}

static plumb_status choose_forms(packing *p, plumb_error *err) {
    size_t count = (size_t)p->from.count;
    int64_t *unfit = calloc(count, sizeof *unfit);
    if (!unfit) return plumb__fail_memory(err, "tensors", count * sizeof *unfit);
    plumb_status status = look_at_values(p, unfit, err);
    if (status == PLUMB_OK) set_forms(p, unfit);
    free(unfit);
    return status;
}

/* ---- One tensor -------------------------------------------------------------------------------- */

/* A payload and the padding behind it. */
static int64_t padded(const plumb_stored_tensor *t) {
    return plumb__gguf_align(t->bytes, PLUMB_GGUF_ALIGNMENT);
}

/* Shares blocks of the source with the file `fd`. */
static bool share(const packing *p, int64_t from, int64_t size, int fd, int64_t to) {
#if defined(FICLONERANGE)
    struct file_clone_range range = {.src_fd = p->shard->fd, .src_offset = (uint64_t)from,
                                     .src_length = (uint64_t)size, .dest_offset = (uint64_t)to};
    return ioctl(fd, FICLONERANGE, &range) == 0;
#else
    (void)p;
    (void)from;
    (void)size;
    (void)fd;
    (void)to;
    return false;
#endif
}

/* A file without a name in the target's folder, or -1. */
static int open_nameless(const char *target) {
    static const char ending[] = ".XXXXXX";
    size_t size = strlen(target) + sizeof ending;
    char *path = malloc(size);
    if (!path) return -1;
    int fd = -1;
#if defined(O_TMPFILE)
    memcpy(path, target, strlen(target) + 1);
    fd = open(dirname(path), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
    if (fd < 0) {
        (void)snprintf(path, size, "%s%s", target, ending);
        fd = mkstemp(path);
        if (fd >= 0) (void)unlink(path);
    }
    free(path);
    return fd;
}

/* Tried with a file of its own, since the room has to be known before the part is begun. */
static bool can_share(const packing *p, const char *target) {
    int fd = open_nameless(target);
    if (fd < 0) return false;
    bool shared = share(p, p->from.tensor[0].offset, PLUMB_GGUF_ALIGNMENT, fd, 0);
    (void)close(fd);
    return shared;
}

/* Bytes of the new file that will take no space.  What a part of an earlier run shares is counted as
 * space that it has as well: the check may then pass where room lacks, which the write will tell. */
static int64_t count_free_bytes(packing *p, const char *target) {
    int64_t bytes = 0;
    atomic_store(&p->cannot_clone, !can_share(p, target));
    if (atomic_load(&p->cannot_clone)) return plumb__new_file_holes(p->source);
    for (int64_t i = 0; i < p->from.count; i++)
        if (!is_packed(p, i)) bytes += padded(&p->from.tensor[i]);
    return bytes;
}

/* Shares a payload and its padding with the source. */
static bool try_clone(packing *p, const plumb_stored_tensor *from, const plumb_stored_tensor *to) {
    if (atomic_load(&p->cannot_clone)) return false;
    if (share(p, from->offset, padded(from), p->out.part.fd, to->offset)) return true;
    atomic_store(&p->cannot_clone, true); /* another file system, or one that cannot */
    return false;
}

/* Reads `n` units of the source and appends what the new file has for them. */
static plumb_status pack_units(packer *w, const plumb_stored_tensor *from, bool packed,
                               int64_t first, int64_t *n, plumb_error *err) {
    const int64_t unit = packed ? 4 : 1;
    int64_t left = from->bytes / unit - first, most = PIECE / unit;
    uint8_t *room;
    const uint8_t *bytes;
    plumb_status status = plumb__payload_reserve(&w->writer, packed ? 2 : 1,
                                                 left < most ? left : most, &room, n, err);
    if (status == PLUMB_OK)
        status = plumb__payload_read(&w->source, 0, from->offset + first * unit, *n * unit,
                                     from->name, &bytes, err);
    if (status != PLUMB_OK) return status;
    if (packed)
        plumb__f32_to_bf16((const float *)(const void *)bytes, *n, (uint16_t *)(void *)room);
    else
        memcpy(room, bytes, (size_t)*n);
    plumb__payload_added(&w->writer, *n * (packed ? 2 : 1));
    return PLUMB_OK;
}

static plumb_status check_copy(const packing *p, int64_t item, XXH128_hash_t digest,
                               plumb_error *err) {
    const plumb_stored_tensor *from = &p->from.tensor[item];
    if (XXH128_isEqual(digest, plumb__stored_digest(&p->header, item))) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_VALUE, p->shard->path, from->name, from->offset,
                       plumb__format("%lld bytes with another digest", (long long)from->bytes).s,
                       "the digest in its header");
}

static plumb_status pack_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                plumb_error *err) {
    packing *p = user;
    packer *w = &p->packers[job];
    const plumb_stored_tensor *from = &p->from.tensor[item], *to = &p->out.file.tensor[item];
    bool packed = is_packed(p, item);
    XXH128_hash_t digest = plumb__stored_digest(&p->header, item);
    plumb_status status = PLUMB_OK;
    if (!packed && try_clone(p, from, to)) {
        status = plumb__jobs_add(jobs, item, to->bytes, err);
    } else {
        plumb__payload_begin(&w->writer, to->offset);
        int64_t units = packed ? from->bytes / 4 : from->bytes;
        for (int64_t first = 0, n; first < units && status == PLUMB_OK; first += n) {
            status = pack_units(w, from, packed, first, &n, err);
            if (status == PLUMB_OK) status = plumb__jobs_add(jobs, item, n * (packed ? 2 : 1), err);
            if (status != PLUMB_OK) return status;
        }
        status = plumb__payload_end(&w->writer, &digest, err);
        if (status == PLUMB_OK && !packed) status = check_copy(p, item, digest, err);
    }
    return status == PLUMB_OK ? plumb__part_file_note(&p->out.part, item, digest, to->bytes, err)
                              : status;
}

/* ---- Comparing --------------------------------------------------------------------------------- */

/* Packed values, widened, are the source's bit for bit. */
static plumb_status compare_values(const packing *p, int64_t item, int64_t first, int64_t n,
                                   const uint8_t *packed, const uint8_t *values, plumb_error *err) {
    const plumb_stored_tensor *from = &p->from.tensor[item];
    for (int64_t i = 0; i < n; i++) {
        uint16_t narrow;
        uint32_t wide;
        memcpy(&narrow, packed + 2 * i, sizeof narrow);
        memcpy(&wide, values + 4 * i, sizeof wide);
        if (wide == (uint32_t)narrow << 16) continue;
        int64_t at = first + i;
        return plumb__fail(err, PLUMB_ERROR_VALUE, p->out.part.path, from->name,
                           p->out.file.tensor[item].offset + 2 * at,
                           plumb__format("0x%04X in row %lld, column %lld", narrow,
                                         (long long)(at / from->shape[0]),
                                         (long long)(at % from->shape[0])).s,
                           "the upper half of 0x%08X", wide);
    }
    return PLUMB_OK;
}

static plumb_status compare_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                   plumb_error *err) {
    const packing *p = user;
    packer *w = &p->packers[job];
    const plumb_stored_tensor *from = &p->from.tensor[item], *to = &p->out.file.tensor[item];
    if (!is_packed(p, item)) return PLUMB_OK;
    enum { MOST = PIECE / 4 };
    for (int64_t first = 0, n; first < from->bytes / 4; first += n) {
        n = from->bytes / 4 - first < MOST ? from->bytes / 4 - first : MOST;
        const uint8_t *packed, *values;
        plumb_status status = plumb__payload_read(&w->source, 0, from->offset + 4 * first, 4 * n,
                                                  from->name, &values, err);
        if (status == PLUMB_OK)
            status = plumb__payload_read(&w->written, 0, to->offset + 2 * first, 2 * n, to->name,
                                         &packed, err);
        if (status == PLUMB_OK) status = compare_values(p, item, first, n, packed, values, err);
        if (status == PLUMB_OK) status = plumb__jobs_add(jobs, item, 2 * n, err);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static plumb_status open_packers(void *user, plumb_error *err) {
    packing *p = user;
    int jobs = p->out.jobs;
    p->packers = calloc((size_t)jobs, sizeof *p->packers);
    if (!p->packers) return plumb__fail_memory(err, "jobs", (size_t)jobs * sizeof *p->packers);
    /* What was released is the same: so are its digests. */
    for (int64_t i = 0; i < p->header.sources; i++)
        plumb__part_file_note_source(&p->out.part, i, plumb__source_digest(&p->header, i));
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < jobs && status == PLUMB_OK; i++) {
        packer *w = &p->packers[i];
        status = plumb__payload_reader_open(&p->files, PIECE, &w->source, err);
        if (status == PLUMB_OK)
            status = plumb__payload_writer_open(p->out.part.path, p->out.part.payload_fd,
                                                &w->writer, err);
    }
    return status;
}

static void close_packers(void *user) {
    packing *p = user;
    for (int i = 0; p->packers && i < p->out.jobs; i++) {
        plumb__payload_reader_close(&p->packers[i].source);
        plumb__payload_reader_close(&p->packers[i].written);
        plumb__payload_writer_close(&p->packers[i].writer);
    }
    free(p->packers);
    p->packers = NULL;
}

static plumb_status compare_packed(void *user, const plumb_shard_file *written, plumb_error *err) {
    packing *p = user;
    int64_t total = 0;
    for (int64_t i = 0; i < p->out.file.count; i++)
        if (is_packed(p, i)) total += p->out.file.tensor[i].bytes;
    plumb_status status = plumb__payload_files_open(&written, 1, &p->written_files, err);
    if (status != PLUMB_OK) return status;
    status = open_packers(p, err);
    for (int i = 0; i < p->out.jobs && status == PLUMB_OK; i++)
        status = plumb__payload_reader_open(&p->written_files, PIECE, &p->packers[i].written, err);
    const plumb_work work = {.doing = "comparing with the source", .jobs = p->out.jobs,
                             .items = p->out.file.count, .total = total, .run = compare_tensor,
                             .user = p, .progress = p->out.options->progress,
                             .progress_user = p->out.options->progress_user};
    if (status == PLUMB_OK) status = plumb__jobs_run(&work, err);
    close_packers(p);
    plumb__payload_files_close(&p->written_files);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static bool is_ours_to_write(const char *key) {
    static const char *const keys[] = {"general.alignment", PLUMB_KEY_DENSE,
                                       PLUMB_KEY_SOURCE_DIGESTS, PLUMB_KEY_STORED_DIGESTS,
                                       PLUMB_KEY_HEADER_DIGESTS};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static plumb_status copy_metadata(void *user, plumb_gguf_writer *writer, plumb_error *err) {
    (void)err;
    const packing *p = user;
    const plumb_gguf *gguf = plumb__checkpoint_gguf(p->source);
    for (int64_t i = 0; i < gguf->values; i++)
        if (!is_ours_to_write(gguf->value[i].key))
            plumb__gguf_write_value(writer, &gguf->value[i]);
    const char *dense = plumb__dense_name(PLUMB_DENSE_BF16);
    const plumb_gguf_value *as_it_was = plumb__gguf_find(gguf, PLUMB_KEY_DENSE);
    if (p->packs || !as_it_was)
        plumb__gguf_write_string(writer, PLUMB_KEY_DENSE, dense, (int64_t)strlen(dense));
    else
        plumb__gguf_write_value(writer, as_it_was);
    return PLUMB_OK;
}

static plumb_status open_source(packing *p, const char *source, plumb_error *err) {
    const plumb_convert_options *o = p->out.options;
    plumb_status status = plumb__checkpoint_open(source, o->log, o->log_user, &p->source, err);
    if (status != PLUMB_OK) return status;
    const plumb_gguf *gguf = plumb__checkpoint_gguf(p->source);
    if (!gguf)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, source, NULL, -1, "a folder",
                           "a file that plumb convert wrote");
    p->shard = plumb__checkpoint_shard(p->source, 0);
    status = plumb__converted_header_read(p->source, &p->header, err);
    if (status == PLUMB_OK) status = plumb__converted_file_list(p->source, &p->from, err);
    if (status == PLUMB_OK) status = plumb__converted_file_list(p->source, &p->out.file, err);
    return status == PLUMB_OK ? plumb__payload_files_open(&p->shard, 1, &p->files, err) : status;
}

plumb_status plumb__pack(const char *source, const char *target,
                         const plumb_convert_options *options, plumb_convert_result *result,
                         plumb_error *err) {
    packing p = {.out.options = options};
    *result = (plumb_convert_result){0};
    plumb_status status = open_source(&p, source, err);
    if (status == PLUMB_OK)
        status = plumb__new_file_check_target(p.source, target, options->force, err);
    if (status == PLUMB_OK) status = choose_forms(&p, err);
    if (status == PLUMB_OK)
        status = plumb__converted_header_build(&p.out.file, copy_metadata, &p, &p.out.header, err);
    const plumb_new_file_work work = {.open = open_packers, .write = pack_tensor,
                                      .close = close_packers, .compare = compare_packed, .user = &p};
    if (status == PLUMB_OK)
        status = plumb__new_file_make(&p.out, target, plumb__new_file_origin(p.source),
                                      count_free_bytes(&p, target), &work, result, err);
    plumb__new_file_free(&p.out);
    plumb__payload_files_close(&p.files);
    plumb__converted_file_free(&p.from);
    plumb__converted_header_free(&p.header);
    plumb__checkpoint_close(p.source);
    return status;
}
