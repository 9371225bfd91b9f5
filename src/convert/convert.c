#include "convert/convert.h"

#include "base/error.h"
#include "convert/dense_form.h"
#include "convert/gguf_metadata.h"
#include "convert/revision.h"
#include "convert/new_file.h"
#include "convert/payload_writer.h"
#include "convert/source_reader.h"
#include "convert/zeros.h"
#include "format/model_files.h"

#include <stdlib.h>
#include <string.h>

/* What one thread works with. */
typedef struct converter {
    plumb_source_reader source;
    plumb_payload_writer writer;
    XXH3_state_t *codes_hash, *scales_hash;
} converter;

typedef struct conversion {
    plumb_new_file out;
    plumb_checkpoint *source;
    plumb_source_files files;
    plumb_zeros zeros;
    converter *converters; /* [out.jobs] */
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
    plumb__part_file_note_source(&c->out.part, part->codes - first, XXH3_128bits_digest(w->codes_hash));
    if (part->scales)
        plumb__part_file_note_source(&c->out.part, part->scales - first,
                                     XXH3_128bits_digest(w->scales_hash));
}

static plumb_status convert_part(conversion *c, plumb_jobs *jobs, converter *w, int64_t number,
                                 int64_t part, plumb_error *err) {
    const plumb_stored_tensor *t = &c->out.file.tensor[number];
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

/* ---- A tensor of zeros ------------------------------------------------------------------------- */

static bool is_hollow(const conversion *c, const plumb_tensor *t) {
    return !t || plumb__payload_is_hollow(&c->files.files, t->shard, t->offset, t->bytes);
}

static bool all_hollow(const conversion *c, const plumb_stored_tensor *t) {
    plumb_stored_units u = plumb__stored_tensor_units(t);
    if (!plumb__zeros_stay(&u)) return false;
    for (int64_t i = 0; i < t->parts; i++)
        if (!is_hollow(c, t->part[i].codes) || !is_hollow(c, t->part[i].scales)) return false;
    return true;
}

static plumb_status note_zeros(conversion *c, plumb_jobs *jobs, int64_t item,
                               const plumb_tensor *source, plumb_error *err) {
    XXH128_hash_t digest;
    plumb_status status = plumb__zeros_digest(&c->zeros, source->bytes, jobs, item, &digest, err);
    if (status == PLUMB_OK)
        plumb__part_file_note_source(&c->out.part, source - plumb__checkpoint_tensor(c->source, 0),
                                     digest);
    return status;
}

/* The file has its zeros already: nothing was ever written there. */
static plumb_status leave_hollow(conversion *c, plumb_jobs *jobs, int64_t item, plumb_error *err) {
    const plumb_stored_tensor *t = &c->out.file.tensor[item];
    XXH128_hash_t digest;
    plumb_status status = plumb__zeros_digest(&c->zeros, t->bytes, jobs, item, &digest, err);
    for (int64_t i = 0; i < t->parts && status == PLUMB_OK; i++) {
        status = note_zeros(c, jobs, item, t->part[i].codes, err);
        if (status == PLUMB_OK && t->part[i].scales)
            status = note_zeros(c, jobs, item, t->part[i].scales, err);
    }
    if (status == PLUMB_OK) status = plumb__jobs_add(jobs, item, t->bytes, err);
    if (status != PLUMB_OK) return status;
    return plumb__part_file_note(&c->out.part, item, digest, 0, err);
}

/* ---- Any tensor -------------------------------------------------------------------------------- */

static plumb_status convert_tensor(void *user, plumb_jobs *jobs, int job, int64_t item,
                                   plumb_error *err) {
    conversion *c = user;
    converter *w = &c->converters[job];
    const plumb_stored_tensor *t = &c->out.file.tensor[item];
    if (all_hollow(c, t)) return leave_hollow(c, jobs, item, err);
    plumb__payload_begin(&w->writer, t->offset);
    plumb_status status = PLUMB_OK;
    for (int64_t part = 0; part < t->parts && status == PLUMB_OK; part++)
        status = convert_part(c, jobs, w, item, part, err);
    XXH128_hash_t digest;
    if (status == PLUMB_OK) status = plumb__payload_end(&w->writer, &digest, err);
    if (status != PLUMB_OK) return status;
    if (t->form == PLUMB_STORED_RELEASED)
        plumb__part_file_note_source(&c->out.part,
                                     t->part->codes - plumb__checkpoint_tensor(c->source, 0), digest);
    return plumb__part_file_note(&c->out.part, item, digest, t->bytes, err);
}

/* The config was read once for the layout and once to be stored: whoever writes to it in between would
 * get a file that does not fit its config. */
static plumb_status check_config(const conversion *c, plumb_error *err) {
    static const char source[] = "the new header";
    const plumb_converted_header *h = &c->out.header;
    const plumb_model_config *before = plumb__checkpoint_config(c->source);
    plumb_model_config stored;
    plumb_gguf gguf;
    const char *text;
    int64_t size;
    plumb_status status = plumb__gguf_parse(h->bytes, h->size, h->file_bytes, source, &gguf, err);
    if (status == PLUMB_OK)
        status = plumb__gguf_string(&gguf, PLUMB_GGUF_CONFIG_KEY, &text, &size, err);
    if (status == PLUMB_OK)
        status = plumb__config_parse(text, (size_t)size, source, NULL, NULL, &stored, err);
    if (status == PLUMB_OK && memcmp(&stored, before, sizeof stored) != 0)
        status = plumb__fail(err, PLUMB_ERROR_IO, plumb__checkpoint_path(c->source), "config.json",
                             -1, "another config than when it was opened", "the unchanged file");
    plumb__gguf_free(&gguf);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------- */

static plumb_status write_metadata(void *user, plumb_gguf_writer *writer, plumb_error *err) {
    const conversion *c = user;
    const char *dense = plumb__dense_name((int)c->out.options->dense);
    plumb_status status = plumb__gguf_metadata_write(writer, plumb__checkpoint_path(c->source),
                                                     plumb__checkpoint_config(c->source), err);
    if (status == PLUMB_OK) status = plumb__revision_write(writer, c->source, err);
    /* Last, as packing writes it: the packed file is then the very one that this makes. */
    plumb__gguf_write_string(writer, PLUMB_KEY_DENSE, dense, (int64_t)strlen(dense));
    return status;
}

static plumb_status open_converters(void *user, plumb_error *err) {
    conversion *c = user;
    int jobs = c->out.jobs;
    c->converters = calloc((size_t)jobs, sizeof *c->converters);
    if (!c->converters)
        return plumb__fail_memory(err, "jobs", (size_t)jobs * sizeof *c->converters);
    plumb_status status = plumb__source_files_open(c->source, &c->files, err);
    for (int i = 0; i < jobs && status == PLUMB_OK; i++) {
        converter *w = &c->converters[i];
        status = plumb__source_reader_open(c->source, &c->files, &w->source, err);
        if (status == PLUMB_OK)
            status = plumb__payload_writer_open(c->out.part.path, c->out.part.payload_fd, &w->writer,
                                                err);
        w->codes_hash = XXH3_createState();
        w->scales_hash = XXH3_createState();
        if (status == PLUMB_OK && !(w->codes_hash && w->scales_hash))
            status = plumb__fail_memory(err, "digests", sizeof(XXH3_state_t));
    }
    return status;
}

static void close_converters(void *user) {
    conversion *c = user;
    for (int i = 0; c->converters && i < c->out.jobs; i++) {
        converter *w = &c->converters[i];
        plumb__source_reader_close(&w->source);
        plumb__payload_writer_close(&w->writer);
        (void)XXH3_freeState(w->codes_hash);
        (void)XXH3_freeState(w->scales_hash);
    }
    free(c->converters);
    plumb__source_files_close(&c->files);
}

static plumb_status open_source(conversion *c, const char *source, plumb_error *err) {
    const plumb_convert_options *o = c->out.options;
    plumb_status status = plumb__checkpoint_open(source, o->log, o->log_user, &c->source, err);
    if (status != PLUMB_OK || !plumb__checkpoint_gguf(c->source)) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, source, NULL, -1, "a converted file",
                       "a released folder (plumb pack changes converted files)");
}

plumb_status plumb__convert(const char *source, const char *target,
                            const plumb_convert_options *options, plumb_convert_result *result,
                            plumb_error *err) {
    conversion c = {.out.options = options};
    plumb__zeros_open(&c.zeros);
    plumb_converted_file *file = &c.out.file;
    *result = (plumb_convert_result){0};
    plumb_status status = open_source(&c, source, err);
    if (status == PLUMB_OK)
        status = plumb__new_file_check_target(c.source, target, options->force, err);
    if (status == PLUMB_OK) status = plumb__converted_file_list(c.source, file, err);
    if (status == PLUMB_OK)
        status = plumb__dense_forms_choose(file, options->dense, options->log, options->log_user,
                                           err);
    if (status == PLUMB_OK)
        status = plumb__converted_header_build(file, write_metadata, &c, &c.out.header, err);
    if (status == PLUMB_OK) status = check_config(&c, err);
    const plumb_new_file_work work = {.open = open_converters, .write = convert_tensor,
                                      .close = close_converters, .user = &c};
    if (status == PLUMB_OK)
        status = plumb__new_file_make(&c.out, target, plumb__new_file_origin(c.source),
                                      plumb__new_file_holes(c.source), &work, result, err);
    plumb__new_file_free(&c.out);
    plumb__zeros_close(&c.zeros);
    plumb__checkpoint_close(c.source);
    return status;
}
