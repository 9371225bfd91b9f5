/* Sessions to snapshot files and back.
 *
 * One list says which sections a session of a given length has, in which order, how large and where in
 * memory; it is what saving writes, what a file's table is compared with, and where restoring reads
 * to.  Restoring fills memory of its own and hands it over when every checksum was right. */
#include "engine/model_digest.h"

#include "arith/rounding.h"
#include "base/alloc.h"
#include "base/error.h"
#include "engine/memory_budget.h"
#include "format/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which sections there are ------------------------------------------------------------------ */

typedef struct section_list {
    const plumb_model_config *config;
    plumb_snapshot_section *section;
    int64_t count;
} section_list;

/* Tokens, sampling and note; ring, carry and two caches of each layer; ring and carry of each at every
 * resume point. */
static bool list_create(section_list *list, const plumb_model_config *c) {
    size_t most = (size_t)(3 + c->layers * (4 + 2 * PLUMB_MAX_RESUME_POINTS));
    *list = (section_list){.config = c, .section = calloc(most, sizeof *list->section)};
    return list->section != NULL;
}

static void add(section_list *list, plumb_snapshot_kind kind, int64_t layer, int64_t length,
                int64_t bytes, void *memory) {
    list->section[list->count++] =
        (plumb_snapshot_section){.kind = (int32_t)kind, .layer = (int32_t)layer, .length = length,
                                 .bytes = bytes, .memory = memory};
}

static bool has_carry(const plumb_model_config *c, int64_t layer) {
    return c->is_kv_source[layer] && c->ratio[layer] > 1;
}

/* Slots of a ring are used one after the other; a carry has a meaning once there is a token. */
static void add_ring(section_list *list, int64_t layer, int64_t length, void *ring) {
    const plumb_model_config *c = list->config;
    int64_t rows = length < c->window ? length : c->window;
    add(list, PLUMB_SNAPSHOT_RING, layer, length, rows * plumb__window_row_bytes(c->head_dim), ring);
}

static void add_carry(section_list *list, int64_t layer, int64_t length, void *carry) {
    const plumb_model_config *c = list->config;
    int64_t bytes = length > 0 ? 2 * c->head_dim * (int64_t)sizeof(float) : 0;
    if (has_carry(c, layer)) add(list, PLUMB_SNAPSHOT_CARRY, layer, length, bytes, carry);
}

/* state NULL: only sizes. */
static void add_state(section_list *list, int64_t length, const plumb_state *state) {
    static const plumb_layer_state nowhere = {0};
    const plumb_model_config *c = list->config;
    for (int64_t l = 0; l < c->layers; l++) {
        const plumb_layer_state *at = state ? &state->layer[l] : &nowhere;
        add_ring(list, l, length, at->ring);
        add_carry(list, l, length, at->carry);
        if (!c->is_kv_source[l]) continue;
        int64_t rows = length / c->ratio[l];
        add(list, PLUMB_SNAPSHOT_COMPRESSED, l, length,
            rows * plumb__compressed_row_bytes(c->head_dim), at->compressed);
        add(list, PLUMB_SNAPSHOT_INDEX_KEYS, l, length, rows * plumb__index_row_bytes(c->index_dim),
            at->index_keys);
    }
}

/* fixed NULL: only sizes. */
static void add_point(section_list *list, int64_t length, uint8_t *fixed) {
    const plumb_model_config *c = list->config;
    int64_t ring_bytes = c->window * plumb__window_row_bytes(c->head_dim);
    for (int64_t l = 0; l < c->layers; l++) {
        uint8_t *ring = fixed ? fixed + plumb__state_ring_offset(c, l) : NULL;
        add_ring(list, l, length, ring);
        add_carry(list, l, length, ring ? ring + ring_bytes : NULL);
    }
}

static plumb_snapshot_layout layout_of(const plumb_model_config *c) {
    return (plumb_snapshot_layout){(uint32_t)c->layers, (uint32_t)c->window, (uint32_t)c->head_dim,
                                   (uint32_t)c->index_dim, (uint32_t)c->vocab};
}

/* ---- Saving ------------------------------------------------------------------------------------ */

static plumb_status check_extra(const plumb_snapshot_extra *extra, plumb_error *err) {
    if (extra->note_bytes < 0 || extra->note_bytes > PLUMB_SNAPSHOT_MOST_NOTE_BYTES ||
        (!extra->note && extra->note_bytes > 0))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "note_bytes", -1,
                           plumb__format("%lld", (long long)extra->note_bytes).s,
                           "the bytes of note, at most %d", PLUMB_SNAPSHOT_MOST_NOTE_BYTES);
    const plumb_sampling *s = extra->sampling;
    if (s && (s->n_bias < 0 || s->n_bias > PLUMB_SNAPSHOT_MOST_BIASES || (s->n_bias > 0 && !s->bias)))
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "n_bias", -1,
                           plumb__format("%ld", (long)s->n_bias).s,
                           "the number of entries of bias, at most %d", PLUMB_SNAPSHOT_MOST_BIASES);
    return PLUMB_OK;
}

static int64_t sampling_bytes_of(const plumb_snapshot_extra *extra) {
    if (!extra->sampling) return 0;
    return PLUMB_SNAPSHOT_SAMPLING_BYTES +
           (int64_t)extra->sampling->n_bias * PLUMB_SNAPSHOT_BIAS_BYTES;
}

/* Everything the file will hold; `sampling` are the bytes of extra->sampling. */
static void list_session(section_list *list, const plumb_session *s,
                         const plumb_snapshot_extra *extra, uint8_t *sampling,
                         int64_t sampling_bytes) {
    int64_t length = s->state->length;
    add(list, PLUMB_SNAPSHOT_TOKENS, PLUMB_SNAPSHOT_NO_LAYER, length,
        length * (int64_t)sizeof *s->tokens, s->tokens);
    if (sampling)
        add(list, PLUMB_SNAPSHOT_SAMPLING, PLUMB_SNAPSHOT_NO_LAYER, length, sampling_bytes, sampling);
    if (extra->note)
        add(list, PLUMB_SNAPSHOT_NOTE, PLUMB_SNAPSHOT_NO_LAYER, length, extra->note_bytes,
            (void *)(uintptr_t)extra->note); /* only read */
    add_state(list, length, s->state);
    for (int i = 0; extra->resume_points && i < s->n_points; i++)
        if (s->point[i].length < length) add_point(list, s->point[i].length, s->point[i].fixed);
}

static plumb_status write_session(const plumb_session *s, const char *path,
                                  const plumb_snapshot_extra *extra, uint8_t *sampling,
                                  int64_t sampling_bytes, plumb_error *err) {
    const plumb_model_config *c = s->state->config;
    plumb_snapshot_header header = {.arithmetic_revision = PLUMB_ARITHMETIC_REVISION,
                                    .length = s->state->length, .layout = layout_of(c),
                                    .flags = s->stepped_back ? PLUMB_SNAPSHOT_STEPPED_BACK : 0};
    plumb_status status = plumb__model_digest(s->model, header.model, err);
    if (status != PLUMB_OK) return status;
    section_list list;
    if (!list_create(&list, c)) return plumb__fail_memory(err, "sections", 0);
    list_session(&list, s, extra, sampling, sampling_bytes);
    status = plumb__snapshot_write(path, &header, list.section, list.count, err);
    free(list.section);
    return status;
}

plumb_status plumb_session_save(const plumb_session *s, const char *path,
                                const plumb_snapshot_extra *extra, plumb_error *err) {
    static const plumb_snapshot_extra nothing = {0};
    if (!path) return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "path", -1, "NULL", "a file");
    if (!extra) extra = &nothing;
    plumb_status status = check_extra(extra, err);
    if (status != PLUMB_OK) return status;
    int64_t bytes = sampling_bytes_of(extra);
    uint8_t *sampling = NULL;
    if (extra->sampling) {
        sampling = malloc((size_t)bytes);
        if (!sampling) return plumb__fail_memory(err, "sampling", (size_t)bytes);
        plumb__snapshot_pack_sampling(extra->sampling, sampling);
    }
    status = write_session(s, path, extra, sampling, bytes, err);
    free(sampling);
    return status;
}

int64_t plumb_session_snapshot_bytes(const plumb_session *s, const plumb_snapshot_extra *extra) {
    static const plumb_snapshot_extra nothing = {0};
    uint8_t sampling = 0; /* only whether there is one matters to the list */
    section_list list;
    if (!extra) extra = &nothing;
    if (!list_create(&list, s->state->config)) return -1;
    list_session(&list, s, extra, extra->sampling ? &sampling : NULL, sampling_bytes_of(extra));
    int64_t bytes = PLUMB_SNAPSHOT_HEADER_BYTES + list.count * PLUMB_SNAPSHOT_ENTRY_BYTES;
    for (int64_t i = 0; i < list.count; i++) bytes += list.section[i].bytes;
    free(list.section);
    return bytes;
}

/* ---- Does it fit? ------------------------------------------------------------------------------ */

static plumb_status check_revision(const plumb_snapshot *snapshot, plumb_error *err) {
    uint32_t found = snapshot->header.arithmetic_revision;
    if (found == PLUMB_ARITHMETIC_REVISION) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_UNSUPPORTED, snapshot->path, "arithmetic revision", -1,
                       plumb__format("%lu", (unsigned long)found).s,
                       "%d, that of this plumb: other bits would follow", PLUMB_ARITHMETIC_REVISION);
}

static plumb_status check_layout(const plumb_snapshot *snapshot, const plumb_model_config *config,
                                 plumb_error *err) {
    const plumb_snapshot_layout *found = &snapshot->header.layout, wanted = layout_of(config);
    const struct {
        const char *field;
        uint32_t found, wanted;
    } number[] = {{"layers", found->layers, wanted.layers},
                  {"window", found->window, wanted.window},
                  {"head_dim", found->head_dim, wanted.head_dim},
                  {"index_dim", found->index_dim, wanted.index_dim},
                  {"vocabulary", found->vocab, wanted.vocab}};
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
        if (number[i].found != number[i].wanted)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, snapshot->path, number[i].field, -1,
                               plumb__format("%lu", (unsigned long)number[i].found).s,
                               "%lu, as the model has", (unsigned long)number[i].wanted);
    return PLUMB_OK;
}

static plumb__text192 hex(const uint8_t digest[PLUMB_MODEL_DIGEST_BYTES]) {
    plumb__text192 text = {""};
    for (int i = 0; i < PLUMB_MODEL_DIGEST_BYTES; i++) {
        static const char digits[] = "0123456789abcdef";
        text.s[2 * i] = digits[digest[i] >> 4];
        text.s[2 * i + 1] = digits[digest[i] & 15];
    }
    return text;
}

static plumb_status check_model(const plumb_snapshot *snapshot, plumb_model *model,
                                plumb_error *err) {
    uint8_t digest[PLUMB_MODEL_DIGEST_BYTES];
    plumb_status status = plumb__model_digest(model, digest, err);
    if (status != PLUMB_OK || memcmp(digest, snapshot->header.model, sizeof digest) == 0) return status;
    return plumb__fail(err, PLUMB_ERROR_ARGUMENT, snapshot->path, "model digest", -1,
                       hex(snapshot->header.model).s, "%s, that of the model", hex(digest).s);
}

plumb_status plumb_snapshot_check(const plumb_snapshot *snapshot, const plumb_session *s,
                                  plumb_error *err) {
    plumb_status status = check_revision(snapshot, err);
    if (status == PLUMB_OK) status = check_layout(snapshot, s->state->config, err);
    if (status == PLUMB_OK) status = check_model(snapshot, s->model, err);
    if (status != PLUMB_OK || snapshot->header.length <= s->options.context) return status;
    return plumb__fail(err, PLUMB_ERROR_CONTEXT, snapshot->path, "length", -1,
                       plumb__format("%lld tokens", (long long)snapshot->header.length).s,
                       "at most %lld, the session's context", (long long)s->options.context);
}

/* ---- Restoring --------------------------------------------------------------------------------- */

/* Lengths of the resume points, each told by the ring of layer 0. */
static plumb_status find_points(const plumb_snapshot *snapshot, plumb_session_contents *to,
                                plumb_error *err) {
    const plumb_snapshot_header *h = &snapshot->header;
    for (int64_t i = snapshot->first_cache; i < h->sections; i++) {
        const plumb_snapshot_section *s = &snapshot->section[i];
        if (s->kind != PLUMB_SNAPSHOT_RING || s->layer != 0 || s->length == h->length) continue;
        int64_t before = to->n_points > 0 ? to->point[to->n_points - 1].length : 0;
        if (to->n_points == PLUMB_MAX_RESUME_POINTS || s->length <= before)
            return plumb__fail(err, PLUMB_ERROR_FORMAT, snapshot->path, "resume points", s->offset,
                               plumb__format("one of %lld tokens behind %d others up to %lld",
                                             (long long)s->length, to->n_points,
                                             (long long)before).s,
                               "at most %d, of ascending lengths", PLUMB_MAX_RESUME_POINTS);
        to->point[to->n_points++] = (plumb_resume_point){.length = s->length};
    }
    return PLUMB_OK;
}

static void list_contents(section_list *list, int64_t length, const plumb_session_contents *to) {
    list->count = 0;
    add_state(list, length, to->state);
    for (int i = 0; i < to->n_points; i++) add_point(list, to->point[i].length, to->point[i].fixed);
}

static plumb__text192 described(const plumb_snapshot_header *header,
                                const plumb_snapshot_section *section) {
    if (!section) return plumb__format("the end");
    return plumb__format("%s, %lld bytes", plumb__snapshot_section_name(header, section).s,
                         (long long)section->bytes);
}

/* Exactly the sections that a session of this model and length has. */
static plumb_status check_sections(const plumb_snapshot *snapshot, const section_list *list,
                                   plumb_error *err) {
    const plumb_snapshot_header *h = &snapshot->header;
    int64_t there = (int64_t)h->sections - snapshot->first_cache;
    for (int64_t i = 0; i < there || i < list->count; i++) {
        const plumb_snapshot_section *found =
            i < there ? &snapshot->section[snapshot->first_cache + i] : NULL;
        const plumb_snapshot_section *wanted = i < list->count ? &list->section[i] : NULL;
        if (found && wanted && found->kind == wanted->kind && found->layer == wanted->layer &&
            found->length == wanted->length && found->bytes == wanted->bytes)
            continue;
        return plumb__fail(err, PLUMB_ERROR_FORMAT, snapshot->path, "section",
                           found ? found->offset : h->file_bytes, described(h, found).s, "%s",
                           described(h, wanted).s);
    }
    return PLUMB_OK;
}

/* Memory for all of it. */
static plumb_status create_contents(const plumb_session *s, const plumb_snapshot *snapshot,
                                    plumb_session_contents *to, plumb_error *err) {
    const plumb_state *now = s->state;
    int64_t length = snapshot->header.length;
    plumb_status status = plumb__state_create(now->config, now->backend, &to->state, err);
    if (status != PLUMB_OK) return status;
    to->state->limit = now->limit;
    status = plumb__state_reserve(to->state, length, err);
    if (status != PLUMB_OK) return status;
    to->state->length = length;
    to->tokens = plumb__grow(NULL, &to->token_capacity, length, sizeof *to->tokens);
    if (length > 0 && !to->tokens)
        return plumb__fail_memory(err, "tokens", (size_t)length * sizeof *to->tokens);
    if (length > 0)
        memcpy(to->tokens, snapshot->tokens, (size_t)length * sizeof *to->tokens);
    for (int i = 0; i < to->n_points; i++) {
        size_t bytes = (size_t)plumb__state_fixed_bytes(to->state);
        to->point[i].fixed = calloc(1, bytes);
        if (!to->point[i].fixed) return plumb__fail_memory(err, "resume points", bytes);
    }
    return PLUMB_OK;
}

static void destroy_contents(plumb_session_contents *contents) {
    plumb__state_destroy(contents->state);
    free(contents->tokens);
    for (int i = 0; i < contents->n_points; i++) free(contents->point[i].fixed);
}

static plumb_status read_sections(const plumb_snapshot *snapshot, const section_list *list,
                                  plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < list->count && status == PLUMB_OK; i++)
        status = plumb__snapshot_read(snapshot, &snapshot->section[snapshot->first_cache + i],
                                      list->section[i].memory, err);
    return status;
}

/* While both are there, both count: experts give way before memory is taken. */
static void make_room(plumb_model *model, int64_t bytes) {
    model->session_bytes += bytes;
    if (pthread_mutex_trylock(&model->lock) != 0) return; /* the next batch does it */
    plumb__budget_apply(model, 1);
    pthread_mutex_unlock(&model->lock);
}

static plumb_status fill(const plumb_session *s, const plumb_snapshot *snapshot, section_list *list,
                         plumb_session_contents *to, plumb_error *err) {
    int64_t length = snapshot->header.length;
    plumb_status status = find_points(snapshot, to, err);
    if (status != PLUMB_OK) return status;
    list_contents(list, length, to);
    status = check_sections(snapshot, list, err);
    if (status != PLUMB_OK) return status;
    int64_t bytes = plumb__state_bytes_at(list->config, length) +
                    to->n_points * plumb__state_fixed_bytes(s->state);
    make_room(s->model, bytes);
    status = create_contents(s, snapshot, to, err);
    if (status == PLUMB_OK) {
        list_contents(list, length, to);
        status = read_sections(snapshot, list, err);
    }
    s->model->session_bytes -= bytes;
    return status;
}

plumb_status plumb_session_restore(plumb_session *s, const plumb_snapshot *snapshot,
                                   plumb_error *err) {
    plumb_status status = plumb_snapshot_check(snapshot, s, err);
    if (status != PLUMB_OK) return status;
    section_list list;
    if (!list_create(&list, s->state->config)) return plumb__fail_memory(err, "sections", 0);
    plumb_session_contents contents = {
        .stepped_back = (snapshot->header.flags & PLUMB_SNAPSHOT_STEPPED_BACK) != 0};
    status = fill(s, snapshot, &list, &contents, err);
    if (status == PLUMB_OK) plumb__session_replace(s, &contents);
    else destroy_contents(&contents);
    free(list.section);
    return status;
}
