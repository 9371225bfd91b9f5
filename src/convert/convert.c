#include "convert/convert.h"

#include "base/error.h"
#include "base/machine.h"
#include "convert/audit.h"
#include "convert/dense_form.h"
#include "convert/gguf_metadata.h"
#include "convert/part_file.h"
#include "convert/payload_writer.h"
#include "convert/source_reader.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What one thread works with. */
typedef struct converter {
    plumb_source_reader source;
    plumb_payload_writer writer;
    XXH3_state_t *codes_hash, *scales_hash;
} converter;

typedef struct conversion {
    const plumb_convert_options *options;
    plumb_checkpoint *source;
    plumb_converted_file file;
    plumb_converted_header header;
    plumb_part_file part;
    plumb_source_files files;
    converter *converters; /* [jobs] */
    int jobs;
} conversion;

static const char *const dense_names[PLUMB_DENSE_COUNT] = {"f32", "bf16", "fp8"};

const char *plumb__dense_name(int dense) { return dense_names[dense]; }

int plumb__dense_from_name(const char *name) {
    for (int i = 0; i < PLUMB_DENSE_COUNT; i++)
        if (strcmp(name, dense_names[i]) == 0) return i;
    return -1;
}

/* ---- One tensor -------------------------------------------------------------------------------- */

static plumb_status fail_value(const conversion *c, const plumb_stored_part *part, int64_t element,
                               plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_VALUE, plumb__checkpoint_path(c->source), part->codes->name,
                       element, "a value that the chosen form cannot hold",
                       "the values that were looked at before: did the source change?");
}

/* Units [first, first + *n) of a part, as many as fit. */
static plumb_status convert_units(conversion *c, converter *w, const plumb_stored_tensor *t,
                                  const plumb_stored_units *u, int64_t part, int64_t first,
                                  int64_t *n, plumb_error *err) {
    uint8_t *room;
    int64_t most = plumb__source_units_most(u), left = u->count - first;
    plumb_status status = plumb__payload_reserve(&w->writer, u->stored, left < most ? left : most,
                                                 &room, n, err);
    if (status == PLUMB_OK)
        status = plumb__source_units_read(&w->source, t, u, &t->part[part], first, *n, err);
    if (status != PLUMB_OK) return status;
    const plumb_source_reader *s = &w->source;
    int64_t bad = plumb__stored_encode(u, first, *n, s->codes, s->scales, s->tiles, room);
    if (bad >= 0) return fail_value(c, &t->part[part], bad, err);
    plumb__payload_added(&w->writer, *n * u->stored);
    if (t->form == PLUMB_STORED_RELEASED) return PLUMB_OK; /* its digest is the stored one */
    (void)XXH3_128bits_update(w->codes_hash, s->codes, (size_t)(*n * u->codes));
    if (s->scales) (void)XXH3_128bits_update(w->scales_hash, s->scales, (size_t)(*n * u->scales));
    return PLUMB_OK;
}

static void note_sources(conversion *c, const converter *w, const plumb_stored_part *part) {
    const plumb_tensor *first = plumb__checkpoint_tensor(c->source, 0);
    plumb__part_file_note_source(&c->part, part->codes - first, XXH3_128bits_digest(w->codes_hash));
    if (part->scales)
        plumb__part_file_note_source(&c->part, part->scales - first,
                                     XXH3_128bits_digest(w->scales_hash));
}

static plumb_status convert_part(conversion *c, plumb_jobs *jobs, converter *w, int64_t number,
                                 int64_t part, plumb_error *err) {
    const plumb_stored_tensor *t = &c->file.tensor[number];
    plumb_stored_units u = plumb__stored_tensor_units(t);
    (void)XXH3_128bits_reset(w->codes_hash);
    (void)XXH3_128bits_reset(w->scales_hash);
    for (int64_t first = 0, n; first < u.count; first += n) {
        plumb_status status = convert_units(c, w, t, &u, part, first, &n, err);
        if (status == PLUMB_OK) status = plumb__jobs_add(jobs, number, n * u.stored, err);
        if (status != PLUMB_OK) return status;
    }
    if (t->form != PLUMB_STORED_RELEASED) note_sources(c, w, &t->part[part]);
    return PLUMB_OK;
}

static bool is_there(const conversion *c, int64_t tensor) {
    return plumb__digest_is_set(plumb__stored_digest(&c->header, tensor));
}

static plumb_status convert_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                   plumb_error *err) {
    conversion *c = user;
    converter *w = &c->converters[job];
    const plumb_stored_tensor *t = &c->file.tensor[item];
    if (is_there(c, item)) return PLUMB_OK;
    plumb__payload_begin(&w->writer, t->offset);
    plumb_status status = PLUMB_OK;
    for (int64_t part = 0; part < t->parts && status == PLUMB_OK; part++)
        status = convert_part(c, jobs, w, item, part, err);
    XXH128_hash_t digest;
    if (status == PLUMB_OK) status = plumb__payload_end(&w->writer, &digest, err);
    if (status != PLUMB_OK) return status;
    if (t->form == PLUMB_STORED_RELEASED)
        plumb__part_file_note_source(&c->part,
                                     t->part->codes - plumb__checkpoint_tensor(c->source, 0), digest);
    return plumb__part_file_note(&c->part, item, digest, t->bytes, err);
}

/* ---- Before --------------------------------------------------------------------------------- */

/* The target must not be one of the files that are read. */
static plumb_status check_target(const conversion *c, const char *target, plumb_error *err) {
    struct stat there;
    if (stat(target, &there) != 0) return PLUMB_OK;
    for (int64_t i = 0; i < plumb__checkpoint_shards(c->source); i++) {
        const plumb_shard_file *shard = plumb__checkpoint_shard(c->source, i);
        if (shard->opened.st_ino == there.st_ino && shard->opened.st_dev == there.st_dev)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, target, NULL, -1, "a file of the source",
                               "a name for a new file");
    }
    return PLUMB_OK;
}

/* Names, sizes and times of the shards: what a part was made from. */
static XXH128_hash_t origin_of(const plumb_checkpoint *source) {
    XXH3_state_t hash;
    (void)XXH3_128bits_reset(&hash);
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++) {
        const plumb_shard_file *s = plumb__checkpoint_shard(source, i);
        const int64_t facts[] = {s->opened.st_size, s->opened.st_mtim.tv_sec,
                                 s->opened.st_mtim.tv_nsec};
        (void)XXH3_128bits_update(&hash, s->file, strlen(s->file) + 1);
        (void)XXH3_128bits_update(&hash, facts, sizeof facts);
    }
    return XXH3_128bits_digest(&hash);
}

/* Bytes of the source that take no space, and will take none in the target. */
static int64_t holes_of(const plumb_checkpoint *source) {
    int64_t holes = 0;
    for (int64_t i = 0; i < plumb__checkpoint_shards(source); i++) {
        const struct stat *s = &plumb__checkpoint_shard(source, i)->opened;
        int64_t missing = (int64_t)s->st_size - (int64_t)s->st_blocks * 512;
        if (missing > 0) holes += missing;
    }
    return holes;
}

static plumb_status write_metadata(void *user, plumb_gguf_writer *writer, plumb_error *err) {
    const conversion *c = user;
    const char *dense = plumb__dense_name(c->options->dense);
    plumb_status status = plumb__gguf_metadata_write(writer, plumb__checkpoint_path(c->source),
                                                     plumb__checkpoint_config(c->source), err);
    plumb__gguf_write_string(writer, PLUMB_KEY_DENSE, dense, (int64_t)strlen(dense));
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static plumb_status open_converters(conversion *c, plumb_error *err) {
    c->jobs = c->options->jobs > 0 ? c->options->jobs : plumb__machine_cores();
    c->converters = calloc((size_t)c->jobs, sizeof *c->converters);
    if (!c->converters) return plumb__fail_memory(err, "jobs", sizeof *c->converters);
    plumb_status status = plumb__source_files_open(c->source, &c->files, err);
    for (int i = 0; i < c->jobs && status == PLUMB_OK; i++) {
        converter *w = &c->converters[i];
        status = plumb__source_reader_open(c->source, &c->files, &w->source, err);
        if (status == PLUMB_OK)
            status = plumb__payload_writer_open(c->part.path, c->part.payload_fd, &w->writer, err);
        w->codes_hash = XXH3_createState();
        w->scales_hash = XXH3_createState();
        if (status == PLUMB_OK && !(w->codes_hash && w->scales_hash))
            status = plumb__fail_memory(err, "digests", sizeof(XXH3_state_t));
    }
    return status;
}

static void close_converters(conversion *c) {
    for (int i = 0; c->converters && i < c->jobs; i++) {
        converter *w = &c->converters[i];
        plumb__source_reader_close(&w->source);
        plumb__payload_writer_close(&w->writer);
        (void)XXH3_freeState(w->codes_hash);
        (void)XXH3_freeState(w->scales_hash);
    }
    free(c->converters);
    plumb__source_files_close(&c->files);
}

static plumb_status write_payloads(conversion *c, plumb_error *err) {
    int64_t left = 0;
    for (int64_t i = 0; i < c->file.count; i++)
        if (!is_there(c, i)) left += c->file.tensor[i].bytes;
    const plumb_work work = {.doing = "writing", .jobs = c->jobs, .items = c->file.count,
                             .total = left, .run = convert_tensor, .user = c,
                             .progress = c->options->progress,
                             .progress_user = c->options->progress_user};
    plumb_status status = plumb__jobs_run(&work, err);
    plumb_error ignored;
    if (status != PLUMB_OK) (void)!plumb__part_file_sync(&c->part, &ignored);
    return status;
}

static plumb_status read_back(conversion *c, const plumb_shard_file *shard, plumb_error *err) {
    const plumb_audit_options options = {.jobs = c->jobs, .progress = c->options->progress,
                                         .progress_user = c->options->progress_user};
    const plumb_audit audit = {.file = &c->file, .header = &c->header, .shard = shard,
                               .options = &options, .doing = "checking what is on disk"};
    plumb_audit_result ignored;
    return plumb__audit_payloads(&audit, &ignored, err);
}

static plumb_status run(conversion *c, const char *target, plumb_convert_result *result,
                        plumb_error *err) {
    bool resumed;
    plumb_shard_file shard;
    plumb_status status = plumb__part_file_open(target, c->options->force, origin_of(c->source),
                                                &c->header, holes_of(c->source), &c->part, &resumed,
                                                err);
    if (status != PLUMB_OK) return status;
    for (int64_t i = 0; i < c->file.count; i++)
        if (is_there(c, i)) result->resumed_bytes += c->file.tensor[i].bytes;
    status = open_converters(c, err);
    if (status == PLUMB_OK) status = write_payloads(c, err);
    close_converters(c);
    if (status == PLUMB_OK) status = plumb__part_file_seal(&c->part, &shard, err);
    if (status == PLUMB_OK && !c->options->no_audit) status = read_back(c, &shard, err);
    if (status == PLUMB_OK && !c->options->no_audit) status = plumb__part_file_finish(&c->part, err);
    plumb__part_file_close(&c->part);
    return status;
}

static void fill_result(const conversion *c, plumb_convert_result *result) {
    static const int dense_of[] = {[PLUMB_STORED_F32] = PLUMB_DENSE_F32,
                                   [PLUMB_STORED_BF16] = PLUMB_DENSE_BF16,
                                   [PLUMB_STORED_RELEASED] = PLUMB_DENSE_FP8};
    result->file_bytes = c->header.file_bytes;
    result->tensors = c->file.count;
    for (int64_t i = 0; i < c->file.count; i++) {
        const plumb_stored_tensor *t = &c->file.tensor[i];
        if (!plumb__stored_tensor_has_choice(t)) continue;
        bool f32 = t->type == PLUMB_GGML_F32;
        result->matrices[f32 ? PLUMB_DENSE_F32 : dense_of[t->form]]++;
    }
}

static plumb_status open_source(conversion *c, const char *source, plumb_error *err) {
    const plumb_convert_options *o = c->options;
    plumb_status status = plumb__checkpoint_open(source, o->log, o->log_user, &c->source, err);
    if (status != PLUMB_OK || !plumb__checkpoint_gguf(c->source)) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, source, NULL, -1, "a converted file",
                       "a released folder (plumb pack changes converted files)");
}

plumb_status plumb__convert(const char *source, const char *target,
                            const plumb_convert_options *options, plumb_convert_result *result,
                            plumb_error *err) {
    conversion c = {.options = options};
    *result = (plumb_convert_result){0};
    plumb_status status = open_source(&c, source, err);
    if (status == PLUMB_OK) status = check_target(&c, target, err);
    if (status == PLUMB_OK) status = plumb__part_file_check(target, options->force, err);
    if (status == PLUMB_OK) status = plumb__converted_file_list(c.source, &c.file, err);
    if (status == PLUMB_OK)
        status = plumb__dense_forms_choose(&c.file, options->dense, options->log, options->log_user,
                                           err);
    if (status == PLUMB_OK)
        status = plumb__converted_header_build(&c.file, write_metadata, &c, &c.header, err);
    if (status == PLUMB_OK) status = run(&c, target, result, err);
    if (status == PLUMB_OK) fill_result(&c, result);
    plumb__converted_header_free(&c.header);
    plumb__converted_file_free(&c.file);
    plumb__checkpoint_close(c.source);
    return status;
}
