/* Every payload is read once, past the page cache, the next piece while one is looked at.  Its bytes
 * are hashed as stored; decoded, the released bytes of every part are hashed too, so that a mistake of
 * the conversion would show as well as one of the disk. */
#include "convert/audit.h"

#include "base/alloc.h"
#include "base/error.h"
#include "convert/difference.h"
#include "convert/payload_reader.h"
#include "convert/source_reader.h"
#include "convert/zeros.h"
#include "format/model_files.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 4 << 20 };

/* What one thread works with. */
typedef struct auditor {
    plumb_payload_reader stored;
    plumb_source_reader source;
    uint8_t *codes, *scales; /* decoded; or expected as stored */
    int64_t codes_room, scales_room;
    uint8_t *tiles;          /* of the matrix at work */
    XXH3_state_t *stored_hash, *codes_hash, *scales_hash;
} auditor;

typedef struct audit_run {
    const plumb_audit *audit;
    plumb_payload_files files;
    plumb_source_files source_files;
    plumb_zeros zeros;
    auditor *auditors; /* [jobs] */
    int jobs;
} audit_run;

static plumb_status fail_digest(const audit_run *run, const char *name, int64_t offset,
                                int64_t bytes, XXH128_hash_t found, XXH128_hash_t expected,
                                plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_VALUE, run->audit->shard->path, name, offset,
                       plumb__format("%lld bytes with XXH3-128 %016llx%016llx", (long long)bytes,
                                     (unsigned long long)found.high64,
                                     (unsigned long long)found.low64).s,
                       "XXH3-128 %016llx%016llx", (unsigned long long)expected.high64,
                       (unsigned long long)expected.low64);
}

/* What was hashed is not the bytes of the file but what they stand for. */
static plumb_status fail_released(const audit_run *run, const plumb_tensor *released,
                                  int64_t offset, int64_t bytes, XXH128_hash_t found,
                                  XXH128_hash_t expected, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_VALUE, run->audit->shard->path, released->name, offset,
                       plumb__format("%lld bytes whose %lld released bytes have XXH3-128 %016llx%016llx",
                                     (long long)bytes, (long long)released->bytes,
                                     (unsigned long long)found.high64,
                                     (unsigned long long)found.low64).s,
                       "XXH3-128 %016llx%016llx", (unsigned long long)expected.high64,
                       (unsigned long long)expected.low64);
}

/* ---- One piece --------------------------------------------------------------------------------- */

typedef struct piece {
    const plumb_stored_tensor *tensor;
    int64_t number;          /* of the tensor in the file */
    plumb_stored_units units;
    int64_t part, first, n;  /* units [first, first + n) of the part */
    const uint8_t *bytes;    /* as stored */
} piece;

static plumb_status make_room(uint8_t **memory, int64_t *room, int64_t bytes, plumb_error *err) {
    return plumb__reserve_aligned(memory, room, bytes) ? PLUMB_OK
                                                       : plumb__fail_memory(err, "audit", (size_t)bytes);
}

/* Where element `bad` of the piece is in its matrix. */
static plumb__text192 place_text(const piece *p, int64_t bad) {
    int64_t columns = p->tensor->shape[0], element = p->first * (p->units.tiles ? columns : 1) + bad;
    return plumb__format("row %lld, column %lld", (long long)(element / columns),
                         (long long)(element % columns));
}

/* Released bytes that are stored as they are need no second digest. */
static bool decodes(const plumb_stored_tensor *t) { return t->form != PLUMB_STORED_RELEASED; }

static void hash_released(auditor *a, const piece *p, const uint8_t *codes, const uint8_t *scales) {
    (void)XXH3_128bits_update(a->codes_hash, codes, (size_t)(p->n * p->units.codes));
    (void)XXH3_128bits_update(a->scales_hash, scales, (size_t)(p->n * p->units.scales));
}

static plumb_status compare_piece(const audit_run *run, auditor *a, const piece *p,
                                  plumb_error *err) {
    const plumb_stored_tensor *source = &run->audit->source->tensor[p->number];
    const plumb_stored_units *u = &p->units;
    plumb_status status = plumb__source_units_read(&a->source, source, u, &source->part[p->part],
                                                   p->first, p->n, err);
    if (status == PLUMB_OK) status = make_room(&a->codes, &a->codes_room, p->n * u->stored, err);
    if (status != PLUMB_OK) return status;
    int64_t bad = plumb__stored_encode(u, p->first, p->n, a->source.codes, a->source.scales,
                                       a->source.tiles, a->codes);
    if (bad >= 0)
        return plumb__fail(err, PLUMB_ERROR_VALUE,
                           plumb__checkpoint_path(run->audit->source->checkpoint),
                           source->part[p->part].codes->name, -1,
                           plumb__format("in %s a value that the form of the file cannot hold",
                                         place_text(p, bad).s).s, "the value of the file");
    if (decodes(p->tensor)) hash_released(a, p, a->source.codes, a->source.scales);
    if (memcmp(a->codes, p->bytes, (size_t)(p->n * u->stored)) == 0) return PLUMB_OK;
    return plumb__difference_tell(p->tensor, p->part, p->first, p->n, p->bytes, a->codes,
                                  run->audit->shard->path, err);
}

static plumb_status decode_piece(const audit_run *run, auditor *a, const piece *p,
                                 plumb_error *err) {
    const plumb_stored_units *u = &p->units;
    const uint8_t *tiles = u->tiles ? a->tiles + plumb__stored_tiles_begin(u, p->first) : NULL;
    plumb_status status = make_room(&a->codes, &a->codes_room, p->n * u->codes, err);
    if (status == PLUMB_OK)
        status = make_room(&a->scales, &a->scales_room, p->n * u->scales, err);
    if (status != PLUMB_OK) return status;
    int64_t bad = plumb__stored_decode(u, p->first, p->n, p->bytes, tiles, a->codes, a->scales);
    if (bad >= 0)
        return plumb__fail(err, PLUMB_ERROR_VALUE, run->audit->shard->path, p->tensor->name,
                           p->tensor->offset + p->first * u->stored + bad * (u->stored / u->codes),
                           plumb__format("a value in %s that is no code times its scale",
                                         place_text(p, bad).s).s,
                           "the exact value of a released weight");
    hash_released(a, p, a->codes, a->scales);
    return PLUMB_OK;
}

/* ---- One tensor -------------------------------------------------------------------------------- */

/* A wrong scale is told as one, not as the wrong codes that would come of it. */
static plumb_status read_tiles(const audit_run *run, auditor *a, int64_t number, plumb_error *err) {
    const plumb_stored_tensor *t = &run->audit->file->tensor[number];
    const uint8_t *bytes;
    plumb_status status = plumb__payload_read(&a->stored, 0, t->offset, t->bytes, t->name, &bytes, err);
    if (status != PLUMB_OK) return status;
    XXH128_hash_t found = XXH3_128bits(bytes, (size_t)t->bytes);
    XXH128_hash_t expected = plumb__stored_digest(run->audit->header, number);
    if (!XXH128_isEqual(found, expected))
        return fail_digest(run, t->name, t->offset, t->bytes, found, expected, err);
    memcpy(a->tiles, bytes, (size_t)t->bytes);
    return PLUMB_OK;
}

static plumb_status load_tiles(const audit_run *run, auditor *a, const plumb_stored_tensor *t,
                               plumb_error *err) {
    const plumb_tensor *tiles = t->tiles;
    free(a->tiles);
    a->tiles = malloc((size_t)tiles->bytes);
    if (!a->tiles) return plumb__fail_memory(err, tiles->name, (size_t)tiles->bytes);
    const plumb_converted_file *file = run->audit->file;
    for (int64_t i = 0; i < file->count; i++)
        if (file->tensor[i].part->codes == tiles) return read_tiles(run, a, i, err);
    return plumb__fail(err, PLUMB_ERROR_TENSOR, run->audit->shard->path, t->name, t->offset,
                       "a matrix without scales", "its tiles' scales");
}

/* codes, scales: the digests found. */
static plumb_status check_part(const audit_run *run, const plumb_stored_tensor *t, int64_t part,
                               XXH128_hash_t codes_found, XXH128_hash_t scales_found,
                               plumb_error *err) {
    const plumb_converted_header *h = run->audit->header;
    const plumb_tensor *first = plumb__checkpoint_tensor(run->audit->file->checkpoint, 0);
    const plumb_tensor *codes = t->part[part].codes, *scales = t->part[part].scales;
    int64_t bytes = t->bytes / t->parts, offset = t->offset + part * bytes;
    XXH128_hash_t expected = plumb__source_digest(h, codes - first);
    if (!XXH128_isEqual(codes_found, expected))
        return fail_released(run, codes, offset, bytes, codes_found, expected, err);
    if (!scales) return PLUMB_OK;
    expected = plumb__source_digest(h, scales - first);
    if (XXH128_isEqual(scales_found, expected)) return PLUMB_OK;
    return fail_released(run, scales, offset, bytes, scales_found, expected, err);
}

/* Parts follow each other, so what is read next lies behind the piece; not in a sample. */
static plumb_status read_next_ahead(const audit_run *run, auditor *a, const piece *p, int64_t most,
                                    plumb_error *err) {
    const plumb_stored_tensor *t = p->tensor;
    int64_t first = p->part * p->units.count + p->first + p->n; /* in the whole tensor */
    int64_t left = p->units.count - first % p->units.count;
    if (first == t->parts * p->units.count || run->audit->wanted) return PLUMB_OK;
    return plumb__payload_read_ahead(&a->stored, 0, t->offset + first * p->units.stored,
                                     (left < most ? left : most) * p->units.stored, t->name, err);
}

static plumb_status audit_part(const audit_run *run, plumb_jobs *jobs, auditor *a, piece *p,
                               plumb_error *err) {
    const plumb_stored_units *u = &p->units;
    int64_t most = plumb__source_units_most(u);
    int64_t begin = p->tensor->offset + p->part * u->count * u->stored;
    (void)XXH3_128bits_reset(a->codes_hash);
    (void)XXH3_128bits_reset(a->scales_hash);
    for (p->first = 0; p->first < u->count; p->first += p->n) {
        p->n = u->count - p->first < most ? u->count - p->first : most;
        plumb_status status =
            plumb__payload_read(&a->stored, 0, begin + p->first * u->stored, p->n * u->stored,
                                p->tensor->name, &p->bytes, err);
        if (status == PLUMB_OK) status = read_next_ahead(run, a, p, most, err);
        if (status != PLUMB_OK) return status;
        (void)XXH3_128bits_update(a->stored_hash, p->bytes, (size_t)(p->n * u->stored));
        if (run->audit->source) status = compare_piece(run, a, p, err);
        else if (decodes(p->tensor)) status = decode_piece(run, a, p, err);
        if (status == PLUMB_OK) status = plumb__jobs_add(jobs, p->number, p->n * u->stored, err);
        if (status != PLUMB_OK) return status;
    }
    if (!decodes(p->tensor)) return PLUMB_OK; /* the stored digest is that of the source */
    return check_part(run, p->tensor, p->part, XXH3_128bits_digest(a->codes_hash),
                      XXH3_128bits_digest(a->scales_hash), err);
}

static int64_t padding_of(const plumb_stored_tensor *t) {
    int64_t end = t->offset + t->bytes;
    return plumb__gguf_align(end, PLUMB_GGUF_ALIGNMENT) - end;
}

/* Zeros from the payload's end to the next alignment. */
static plumb_status check_padding(const audit_run *run, auditor *a, const plumb_stored_tensor *t,
                                  plumb_error *err) {
    int64_t end = t->offset + t->bytes, size = padding_of(t);
    const uint8_t *bytes;
    plumb_status status = plumb__payload_read(&a->stored, 0, end, size, t->name, &bytes, err);
    for (int64_t i = 0; i < size && status == PLUMB_OK; i++)
        if (bytes[i] != 0)
            status = plumb__fail(err, PLUMB_ERROR_VALUE, run->audit->shard->path, t->name, end + i,
                                 plumb__format("0x%02X in the padding behind it", bytes[i]).s, "0");
    return status;
}

static plumb_status check_stored(const audit_run *run, int64_t number, XXH128_hash_t found,
                                 plumb_error *err) {
    const plumb_stored_tensor *t = &run->audit->file->tensor[number];
    const plumb_converted_header *h = run->audit->header;
    XXH128_hash_t expected = plumb__stored_digest(h, number);
    if (!XXH128_isEqual(found, expected))
        return fail_digest(run, t->name, t->offset, t->bytes, found, expected, err);
    if (decodes(t)) return PLUMB_OK;
    const plumb_tensor *first = plumb__checkpoint_tensor(run->audit->file->checkpoint, 0);
    expected = plumb__source_digest(h, t->part->codes - first);
    if (XXH128_isEqual(found, expected)) return PLUMB_OK;
    return fail_digest(run, t->part->codes->name, t->offset, t->bytes, found, expected, err);
}

/* ---- A tensor of zeros ------------------------------------------------------------------------- */

/* With its padding a hole, and zeros stand for zeros. */
static bool is_hollow(const audit_run *run, const plumb_stored_tensor *t,
                      const plumb_stored_units *u) {
    return !run->audit->source && plumb__zeros_stay(u) &&
           plumb__payload_is_hollow(&run->files, 0, t->offset, t->bytes + padding_of(t));
}

static plumb_status audit_hollow(audit_run *run, plumb_jobs *jobs, int64_t item,
                                 const plumb_stored_units *u, plumb_error *err) {
    const plumb_stored_tensor *t = &run->audit->file->tensor[item];
    XXH128_hash_t stored, codes, scales;
    plumb_status status = plumb__zeros_digest(&run->zeros, t->bytes, jobs, item, &stored, err);
    if (status == PLUMB_OK)
        status = plumb__zeros_digest(&run->zeros, u->count * u->codes, jobs, item, &codes, err);
    if (status == PLUMB_OK)
        status = plumb__zeros_digest(&run->zeros, u->count * u->scales, jobs, item, &scales, err);
    for (int64_t part = 0; part < t->parts && decodes(t) && status == PLUMB_OK; part++)
        status = check_part(run, t, part, codes, scales, err);
    if (status == PLUMB_OK) status = check_stored(run, item, stored, err);
    return status == PLUMB_OK ? plumb__jobs_add(jobs, item, t->bytes, err) : status;
}

/* ---- Any tensor -------------------------------------------------------------------------------- */

static bool is_wanted(const plumb_audit *audit, int64_t number, int64_t part) {
    return !audit->wanted || audit->wanted(&audit->file->tensor[number], number, part);
}

static int64_t wanted_parts(const plumb_audit *audit, int64_t number) {
    int64_t wanted = 0, parts = audit->file->tensor[number].parts;
    for (int64_t part = 0; part < parts; part++) wanted += is_wanted(audit, number, part);
    return wanted;
}

static plumb_status audit_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                 plumb_error *err) {
    audit_run *run = user;
    auditor *a = &run->auditors[job];
    const plumb_audit *audit = run->audit;
    const plumb_stored_tensor *t = &audit->file->tensor[item];
    int64_t wanted = wanted_parts(audit, item);
    if (wanted == 0) return PLUMB_OK;
    bool whole = wanted == t->parts;
    piece p = {.tensor = t, .number = item, .units = plumb__stored_tensor_units(t)};
    if (whole && is_hollow(run, t, &p.units)) return audit_hollow(run, jobs, item, &p.units, err);
    (void)XXH3_128bits_reset(a->stored_hash);
    plumb_status status =
        p.units.tiles && !audit->source ? load_tiles(run, a, t, err) : PLUMB_OK;
    for (p.part = 0; p.part < t->parts && status == PLUMB_OK; p.part++)
        if (is_wanted(audit, item, p.part)) status = audit_part(run, jobs, a, &p, err);
    if (status != PLUMB_OK || !whole) return status;
    status = check_stored(run, item, XXH3_128bits_digest(a->stored_hash), err);
    return status == PLUMB_OK ? check_padding(run, a, t, err) : status;
}

/* ---- All of them ------------------------------------------------------------------------------- */

static plumb_status open_auditor(const audit_run *run, auditor *a, plumb_error *err) {
    plumb_status status = plumb__payload_reader_open(&run->files, PIECE, &a->stored, err);
    if (status == PLUMB_OK && run->audit->source)
        status = plumb__source_reader_open(run->audit->source->checkpoint, &run->source_files,
                                           &a->source, err);
    a->stored_hash = XXH3_createState();
    a->codes_hash = XXH3_createState();
    a->scales_hash = XXH3_createState();
    if (status == PLUMB_OK && !(a->stored_hash && a->codes_hash && a->scales_hash))
        status = plumb__fail_memory(err, "digests", sizeof(XXH3_state_t));
    return status;
}

static void close_auditor(auditor *a) {
    plumb__payload_reader_close(&a->stored);
    plumb__source_reader_close(&a->source);
    plumb__free_aligned(a->codes);
    plumb__free_aligned(a->scales);
    free(a->tiles);
    (void)XXH3_freeState(a->stored_hash);
    (void)XXH3_freeState(a->codes_hash);
    (void)XXH3_freeState(a->scales_hash);
}

static plumb_status run_audit(audit_run *run, plumb_audit_result *result, plumb_error *err) {
    const plumb_audit *audit = run->audit;
    *result = (plumb_audit_result){.tensors = audit->file->count};
    for (int64_t i = 0; i < audit->file->count; i++) {
        const plumb_stored_tensor *t = &audit->file->tensor[i];
        int64_t wanted = wanted_parts(audit, i);
        result->bytes += t->bytes;
        result->read_tensors += wanted > 0;
        result->read_bytes += t->bytes / t->parts * wanted;
    }
    const plumb_work work = {.doing = audit->doing, .jobs = run->jobs, .items = audit->file->count,
                             .total = result->read_bytes, .run = audit_tensor, .user = run,
                             .progress = audit->options->progress,
                             .progress_user = audit->options->progress_user};
    return plumb__jobs_run(&work, err);
}

plumb_status plumb__audit_payloads(const plumb_audit *audit, plumb_audit_result *result,
                                   plumb_error *err) {
    audit_run run = {.audit = audit, .jobs = plumb__jobs_threads(audit->options->jobs)};
    run.auditors = calloc((size_t)run.jobs, sizeof *run.auditors);
    if (!run.auditors)
        return plumb__fail_memory(err, "audit", (size_t)run.jobs * sizeof *run.auditors);
    plumb__zeros_open(&run.zeros);
    plumb_status status = plumb__payload_files_open(&audit->shard, 1, &run.files, err);
    if (status == PLUMB_OK && audit->source)
        status = plumb__source_files_open(audit->source->checkpoint, &run.source_files, err);
    for (int i = 0; i < run.jobs && status == PLUMB_OK; i++)
        status = open_auditor(&run, &run.auditors[i], err);
    if (status == PLUMB_OK) status = run_audit(&run, result, err);
    for (int i = 0; i < run.jobs; i++) close_auditor(&run.auditors[i]);
    free(run.auditors);
    plumb__source_files_close(&run.source_files);
    plumb__payload_files_close(&run.files);
    plumb__zeros_close(&run.zeros);
    return status;
}
