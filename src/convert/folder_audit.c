/* Auditing a folder.
 *
 * Several jobs read pieces, in the order of the files; a digest needs a tensor's pieces one after
 * the other.  So whoever has read and checked a piece waits until the one before it is in the
 * digest, which is short, since that was begun earlier; different tensors do not wait for each
 * other.  That reads a table of 98 GB as fast as many small tensors. */
#include "convert/folder_audit.h"

#include "base/error.h"
#include "convert/folder_pieces.h"
#include "convert/source_reader.h"
#include "format/model_files.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The digest of a tensor whose pieces are on their way. */
typedef struct open_digest {
    XXH3_state_t *state;
    int64_t hashed; /* bytes that are in it */
    bool broken;    /* a piece failed: those after it wait for nothing */
} open_digest;

typedef struct job_buffers {
    plumb_payload_reader own, source;
} job_buffers;

typedef struct audit {
    const plumb_checkpoint *checkpoint, *source; /* source: or NULL */
    const plumb_receipt *receipt;
    bool whole;             /* tensors are read whole, so that they have digests */
    XXH128_hash_t *digests; /* [tensors], or NULL */
    plumb_pieces pieces;
    plumb_source_files files, source_files;
    job_buffers *job; /* [jobs] */
    int jobs;
    pthread_mutex_t lock; /* guards the digests' progress; a state belongs to whose turn it is */
    pthread_cond_t turn;
    open_digest *open; /* [tensors] */
} audit;

/* ---- The same tensors on both sides ---------------------------------------------------------- */

static plumb_status missing(const char *where, const char *tensor, const char *what,
                            const char *than, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_TENSOR, where, tensor, -1, what, "the tensors of %.150s",
                       than);
}

static plumb_status match_receipt(const audit *a, plumb_error *err) {
    const char *path = plumb__checkpoint_path(a->checkpoint);
    int64_t count = plumb__checkpoint_count(a->checkpoint);
    for (int64_t i = 0; i < count; i++) {
        const char *name = plumb__checkpoint_tensor(a->checkpoint, i)->name;
        if (!plumb__receipt_digest(a->receipt, name))
            return missing(path, name, "a tensor that was not there", "its receipt", err);
    }
    if (plumb__receipt_tensors(a->receipt) == count) return PLUMB_OK;
    return missing(path, NULL, plumb__format("%lld tensors", (long long)count).s, "its receipt",
                   err);
}

static plumb_status match_source(const audit *a, plumb_error *err) {
    const char *path = plumb__checkpoint_path(a->source),
               *own = plumb__checkpoint_path(a->checkpoint);
    int64_t count = plumb__checkpoint_count(a->checkpoint);
    for (int64_t i = 0; i < count; i++) {
        const plumb_tensor *tensor = plumb__checkpoint_tensor(a->checkpoint, i);
        const plumb_tensor *there = plumb__checkpoint_find(a->source, "%s", tensor->name);
        if (!there) return missing(path, tensor->name, "no such tensor", own, err);
        if (there->dtype != tensor->dtype || there->bytes != tensor->bytes ||
            memcmp(there->shape, tensor->shape, sizeof there->shape) != 0)
            return missing(path, tensor->name, "another shape", own, err);
    }
    if (plumb__checkpoint_count(a->source) == count) return PLUMB_OK;
    return missing(path, NULL,
                   plumb__format("%lld tensors", (long long)plumb__checkpoint_count(a->source)).s,
                   own, err);
}

/* ---- One piece ------------------------------------------------------------------------------- */

static plumb__text192 element_text(const plumb_tensor *tensor, int64_t element,
                                   const uint8_t *bytes) {
    int64_t width = plumb__dtype_bytes(tensor->dtype);
    unsigned code = 0;
    for (int64_t i = width; i-- > 0;) code = code << 8 | bytes[i];
    return plumb__format("0x%0*X in row %lld, column %lld", (int)(2 * width), code,
                         (long long)(element / tensor->shape[1]),
                         (long long)(element % tensor->shape[1]));
}

static plumb_status compare(const audit *a, const plumb_tensor *tensor, const plumb_piece *piece,
                            const uint8_t *bytes, const uint8_t *expected, plumb_error *err) {
    if (memcmp(bytes, expected, (size_t)piece->size) == 0) return PLUMB_OK;
    int64_t at = 0, width = plumb__dtype_bytes(tensor->dtype);
    while (bytes[at] == expected[at]) at++;
    at -= at % width;
    int64_t element = (piece->begin + at) / width;
    return plumb__fail(err, PLUMB_ERROR_VALUE,
                       plumb__checkpoint_shard_path(a->checkpoint, tensor->shard), tensor->name,
                       tensor->offset + piece->begin + at,
                       element_text(tensor, element, bytes + at).s, "%s",
                       element_text(tensor, element, expected + at).s);
}

static plumb_status compare_with_source(const audit *a, job_buffers *job,
                                        const plumb_tensor *tensor, const plumb_piece *piece,
                                        const uint8_t *bytes, plumb_error *err) {
    const plumb_tensor *there = plumb__checkpoint_find(a->source, "%s", tensor->name);
    const uint8_t *expected;
    plumb_status status =
        plumb__payload_read(&job->source, there->shard, there->offset + piece->begin, piece->size,
                            there->name, &expected, err);
    return status == PLUMB_OK ? compare(a, tensor, piece, bytes, expected, err) : status;
}

static plumb_status close_digest(audit *a, int64_t number, XXH128_hash_t digest, plumb_error *err) {
    if (a->digests) a->digests[number] = digest;
    if (!a->receipt) return PLUMB_OK;
    const plumb_tensor *tensor = plumb__checkpoint_tensor(a->checkpoint, number);
    const char *expected = plumb__receipt_digest(a->receipt, tensor->name);
    plumb_digest_text found = plumb__digest_text(digest);
    if (strcmp(found.hex, expected) == 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_VALUE,
                       plumb__checkpoint_shard_path(a->checkpoint, tensor->shard), tensor->name,
                       tensor->offset,
                       plumb__format("%s, digest of its %lld bytes from there on", found.hex,
                                     (long long)tensor->bytes)
                           .s,
                       "%s, as its receipt says", expected);
}

/* Waits until all before `begin` is in the tensor's digest.  False: it never will be. */
static bool wait_for_turn(audit *a, const open_digest *open, int64_t begin) {
    pthread_mutex_lock(&a->lock);
    while (open->hashed < begin && !open->broken) pthread_cond_wait(&a->turn, &a->lock);
    bool mine = open->hashed == begin;
    pthread_mutex_unlock(&a->lock);
    return mine;
}

static plumb_status add_to_digest(audit *a, const plumb_tensor *tensor, const plumb_piece *piece,
                                  const uint8_t *bytes, plumb_error *err) {
    if (piece->size == tensor->bytes)
        return close_digest(a, piece->tensor, XXH3_128bits(bytes, (size_t)piece->size), err);
    open_digest *open = &a->open[piece->tensor];
    if (!wait_for_turn(a, open, piece->begin))
        return plumb__fail(err, PLUMB_ERROR_CANCELLED, NULL, NULL, -1, NULL, NULL);
    if (piece->begin == 0) {
        open->state = XXH3_createState();
        if (!open->state) return plumb__fail_memory(err, "digest", sizeof *open->state);
        (void)XXH3_128bits_reset(open->state);
    }
    (void)XXH3_128bits_update(open->state, bytes, (size_t)piece->size);
    bool last = piece->begin + piece->size == tensor->bytes;
    plumb_status status = PLUMB_OK;
    if (last) {
        status = close_digest(a, piece->tensor, XXH3_128bits_digest(open->state), err);
        (void)XXH3_freeState(open->state);
        open->state = NULL;
    }
    pthread_mutex_lock(&a->lock);
    open->hashed += piece->size;
    pthread_cond_broadcast(&a->turn);
    pthread_mutex_unlock(&a->lock);
    return status;
}

static plumb_status read_piece(audit *a, plumb_jobs *jobs, job_buffers *job, int64_t item,
                               plumb_error *err) {
    const plumb_piece *piece = &a->pieces.piece[item];
    const plumb_tensor *tensor = plumb__checkpoint_tensor(a->checkpoint, piece->tensor);
    const uint8_t *bytes;
    plumb_status status =
        plumb__payload_read(&job->own, tensor->shard, tensor->offset + piece->begin, piece->size,
                            tensor->name, &bytes, err);
    if (status == PLUMB_OK)
        status = plumb__checkpoint_check_values(a->checkpoint, tensor, piece->begin, piece->size,
                                                bytes, err);
    if (status == PLUMB_OK && a->source)
        status = compare_with_source(a, job, tensor, piece, bytes, err);
    if (status == PLUMB_OK && a->whole) status = add_to_digest(a, tensor, piece, bytes, err);
    return status == PLUMB_OK ? plumb__jobs_add(jobs, item, piece->size, err) : status;
}

static plumb_status run_item(void *user, plumb_jobs *jobs, int number, int64_t item,
                             plumb_error *err) {
    audit *a = user;
    plumb_status status = read_piece(a, jobs, &a->job[number], item, err);
    if (status != PLUMB_OK) {
        pthread_mutex_lock(&a->lock);
        a->open[a->pieces.piece[item].tensor].broken = true;
        pthread_cond_broadcast(&a->turn);
        pthread_mutex_unlock(&a->lock);
    }
    return status;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static plumb_status open_buffers(audit *a, plumb_error *err) {
    a->job = calloc((size_t)a->jobs, sizeof *a->job);
    if (!a->job) return plumb__fail_memory(err, "jobs", (size_t)a->jobs * sizeof *a->job);
    plumb_status status = PLUMB_OK;
    for (int i = 0; i < a->jobs && status == PLUMB_OK; i++) {
        status =
            plumb__payload_reader_open(&a->files.files, PLUMB_PIECE_BYTES, &a->job[i].own, err);
        if (status == PLUMB_OK && a->source)
            status = plumb__payload_reader_open(&a->source_files.files, PLUMB_PIECE_BYTES,
                                                &a->job[i].source, err);
    }
    return status;
}

static plumb_status prepare(audit *a, const plumb_audit_options *options, plumb_error *err) {
    int64_t count = plumb__checkpoint_count(a->checkpoint);
    plumb_status status = PLUMB_OK;
    if (a->receipt) status = match_receipt(a, err);
    if (status == PLUMB_OK && a->source) status = match_source(a, err);
    if (status == PLUMB_OK && a->source)
        status = plumb__model_files_compare(plumb__checkpoint_path(a->checkpoint),
                                            plumb__checkpoint_path(a->source), err);
    if (status != PLUMB_OK) return status;
    status = plumb__pieces_list(a->checkpoint,
                                !options->sample ? PLUMB_PIECES_ALL
                                : a->whole       ? PLUMB_PIECES_SAMPLE_TENSORS
                                                 : PLUMB_PIECES_SAMPLE,
                                &a->pieces, err);
    if (status != PLUMB_OK) return status;
    a->open = calloc((size_t)count, sizeof *a->open);
    if (!a->open) return plumb__fail_memory(err, "digests", (size_t)count * sizeof *a->open);
    status = plumb__source_files_open(a->checkpoint, &a->files, err);
    if (status == PLUMB_OK && a->source)
        status = plumb__source_files_open(a->source, &a->source_files, err);
    return status == PLUMB_OK ? open_buffers(a, err) : status;
}

static void clean_up(audit *a) {
    for (int i = 0; a->job && i < a->jobs; i++) {
        plumb__payload_reader_close(&a->job[i].own);
        plumb__payload_reader_close(&a->job[i].source);
    }
    free(a->job);
    for (int64_t i = 0; a->open && i < plumb__checkpoint_count(a->checkpoint); i++)
        if (a->open[i].state) (void)XXH3_freeState(a->open[i].state);
    free(a->open);
    plumb__source_files_close(&a->files);
    plumb__source_files_close(&a->source_files);
    plumb__pieces_free(&a->pieces);
}

static plumb_status open_source(const plumb_audit_options *options, plumb_checkpoint **source,
                                plumb_error *err) {
    plumb_status status =
        plumb__checkpoint_open(options->source, options->log, options->log_user, source, err);
    if (status == PLUMB_OK && plumb__checkpoint_gguf(*source))
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, options->source, "source", -1,
                             "a converted file", "a folder in the released layout");
    return status;
}

plumb_status plumb__audit_folder(const plumb_checkpoint *checkpoint, const plumb_receipt *receipt,
                                 const plumb_audit_options *options, XXH128_hash_t *digests,
                                 plumb_audit_result *result, plumb_error *err) {
    plumb_checkpoint *source = NULL;
    plumb_status status = options->source ? open_source(options, &source, err) : PLUMB_OK;
    audit a = {.checkpoint = checkpoint,
               .source = source,
               .receipt = receipt,
               .digests = digests,
               .whole = receipt || digests,
               .jobs = plumb__jobs_threads(options->jobs)};
    pthread_mutex_init(&a.lock, NULL);
    pthread_cond_init(&a.turn, NULL);
    if (status == PLUMB_OK) status = prepare(&a, options, err);
    if (status == PLUMB_OK) {
        const plumb_work work = {.doing = "auditing",
                                 .jobs = a.jobs,
                                 .items = a.pieces.count,
                                 .total = a.pieces.bytes,
                                 .run = run_item,
                                 .user = &a,
                                 .progress = options->progress,
                                 .progress_user = options->progress_user};
        status = plumb__jobs_run(&work, err);
    }
    if (status == PLUMB_OK) {
        *result = (plumb_audit_result){.tensors = plumb__checkpoint_count(checkpoint),
                                       .read_tensors = a.pieces.tensors,
                                       .read_bytes = a.pieces.bytes};
        for (int64_t i = 0; i < result->tensors; i++)
            result->bytes += plumb__checkpoint_tensor(checkpoint, i)->bytes;
    }
    clean_up(&a);
    pthread_cond_destroy(&a.turn);
    pthread_mutex_destroy(&a.lock);
    plumb__checkpoint_close(source);
    return status;
}
