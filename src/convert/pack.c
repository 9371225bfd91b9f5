/* Packing: the same file again, float32 matrices as bfloat16 where that is exact.
 *
 * Payloads that stay are shared with the source where the file system can do that for ranges of a file
 * (FICLONERANGE), else copied.  A whole-file clone would not do: everything behind a packed matrix
 * moves forward, since readers of the format allow no gaps. */
#include "convert/convert.h"

#include "base/error.h"
#include "convert/difference.h"
#include "convert/new_file.h"
#include "convert/payload_reader.h"
#include "convert/payload_writer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
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
    atomic_bool cannot_clone;
} packing;

static bool is_packed(const packing *p, int64_t tensor) {
    return p->from.tensor[tensor].form != p->out.file.tensor[tensor].form;
}

/* ---- Choosing ---------------------------------------------------------------------------------- */

/* The first value of a float32 payload that is no bfloat16, or -1: *unfit. */
static plumb_status find_unfit(plumb_payload_reader *reader, const plumb_stored_tensor *t,
                               int64_t *unfit, plumb_error *err) {
    *unfit = -1;
    for (int64_t begin = 0; begin < t->bytes && *unfit < 0; begin += PIECE) {
        int64_t size = t->bytes - begin < PIECE ? t->bytes - begin : PIECE;
        const uint8_t *bytes;
        plumb_status status = plumb__payload_read(reader, 0, t->offset + begin, size, t->name,
                                                  &bytes, err);
        if (status != PLUMB_OK) return status;
        int64_t at = plumb__f32_unfit_for_bf16((const float *)(const void *)bytes, size / 4);
        if (at >= 0) *unfit = begin / 4 + at;
    }
    return PLUMB_OK;
}

static plumb_status choose_forms(packing *p, plumb_error *err) {
    const plumb_convert_options *o = p->out.options;
    plumb_payload_reader reader = {0};
    plumb_status status = plumb__payload_reader_open(&p->files, PIECE, &reader, err);
    for (int64_t i = 0; i < p->out.file.count && status == PLUMB_OK; i++) {
        plumb_stored_tensor *t = &p->out.file.tensor[i];
        if (!plumb__stored_tensor_has_choice(t) || t->type != PLUMB_GGML_F32) continue;
        int64_t unfit;
        status = find_unfit(&reader, &p->from.tensor[i], &unfit, err);
        if (status != PLUMB_OK) break;
        if (unfit < 0)
            plumb__stored_tensor_set_form(t, PLUMB_STORED_BF16);
        else if (o->log)
            o->log(o->log_user, PLUMB_LOG_INFO,
                   plumb__format("%s stays f32: row %lld, column %lld is no bf16 number", t->name,
                                 (long long)(unfit / t->shape[0]),
                                 (long long)(unfit % t->shape[0])).s);
    }
    plumb__payload_reader_close(&reader);
    return status;
}

/* ---- One tensor -------------------------------------------------------------------------------- */

/* Shares the blocks of a payload and its padding with the source. */
static bool try_clone(packing *p, const plumb_stored_tensor *from, const plumb_stored_tensor *to) {
#if defined(FICLONERANGE)
    if (atomic_load(&p->cannot_clone)) return false;
    int64_t size = (from->bytes + PLUMB_CONVERTED_ALIGNMENT - 1) / PLUMB_CONVERTED_ALIGNMENT *
                   PLUMB_CONVERTED_ALIGNMENT;
    struct file_clone_range range = {.src_fd = p->shard->fd, .src_offset = (uint64_t)from->offset,
                                     .src_length = (uint64_t)size,
                                     .dest_offset = (uint64_t)to->offset};
    if (ioctl(p->out.part.fd, FICLONERANGE, &range) == 0) return true;
    atomic_store(&p->cannot_clone, true); /* another file system, or one that cannot */
#else
    (void)p;
    (void)from;
    (void)to;
#endif
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
    const char *dense = plumb__dense_name(PLUMB_DENSE_BF16);
    for (int64_t i = 0; i < gguf->values; i++)
        if (!is_ours_to_write(gguf->value[i].key))
            plumb__gguf_write_value(writer, &gguf->value[i]);
    plumb__gguf_write_string(writer, PLUMB_KEY_DENSE, dense, (int64_t)strlen(dense));
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
    status = plumb__converted_header_read(gguf, &p->header, err);
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
                                      plumb__new_file_holes(p.source), &work, result, err);
    plumb__new_file_free(&p.out);
    plumb__payload_files_close(&p.files);
    plumb__converted_file_free(&p.from);
    plumb__converted_header_free(&p.header);
    plumb__checkpoint_close(p.source);
    return status;
}
