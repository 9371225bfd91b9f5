/* Each byte of a file matters: with any bit flipped, cut short anywhere or with anything behind its end a
 * snapshot is refused, told by the part that is damaged, and the session stays as it was. */
#include "engine/engine.h"
#include "snapshot/forged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "t.h"

enum { LENGTH = 19, HELD = 11 };

/* A snapshot with all kinds of sections, and a session that holds something else. */
typedef struct damage_rig {
    specimen s;
    plumb_model *model;
    plumb_session *session;
    float *fresh;
    const char *path;
    file_bytes whole;
    int fd;
} damage_rig;

static damage_rig rig_open(const char *name) {
    damage_rig r = {.s = specimen_open(BUILD_DIR "/checkpoints", "tiny"),
                    .path = snapshot_path(name)};
    r.model = specimen_model(&r.s, 1, NULL);
    r.session = specimen_session(r.model, 0);
    r.fresh = specimen_logits(&r.s);
    float *logits = specimen_logits(&r.s);
    plumb_session *source = specimen_session(r.model, 0), *all = specimen_session(r.model, 0);
    specimen_advance(&r.s, all, r.s.count, r.fresh);
    specimen_advance(&r.s, source, 7, logits);
    specimen_advance(&r.s, source, LENGTH, logits);
    specimen_advance(&r.s, r.session, HELD, logits);
    const plumb_logit_bias bias = {5, 0.5f};
    const plumb_sampling sampling = {.temperature = 1, .top_p = 0.5f, .seed = 9, .bias = &bias,
                                     .n_bias = 1};
    snapshot_save(source, r.path, &(plumb_snapshot_extra){.sampling = &sampling, .note = "a note",
                                                          .note_bytes = 6, .resume_points = true});
    plumb_session_destroy(source);
    plumb_session_destroy(all);
    free(logits);
    r.whole = file_load(r.path);
    r.fd = open(r.path, O_RDWR);
    file_must(r.fd >= 0, r.path);
    return r;
}

static void rig_close(damage_rig *r) {
    (void)close(r->fd);
    (void)unlink(r->path);
    free(r->whole.bytes);
    free(r->fresh);
    plumb_session_destroy(r->session);
    plumb_model_close(r->model);
    specimen_close(&r->s);
}

/* What the session held, goes on as if nothing had been asked of it. */
static void check_session(damage_rig *r, const char *how) {
    float *logits = specimen_logits(&r->s);
    plumb_error err;
    T_CHECK(plumb_session_length(r->session) == HELD, "%s: length", how);
    specimen_advance(&r->s, r->session, HELD + 3, logits);
    T_CHECK(specimen_first_difference(&r->s, r->fresh, logits, HELD, HELD + 3) < 0, "%s: logits", how);
    specimen_must(plumb_session_rewind(r->session, HELD, &err), &err, "rewind");
    free(logits);
}

/* Errors name the part of the file that `at` is in. */
static const char *part_of(const damage_rig *r, size_t at, char name[64]) {
    static const char *const kinds[] = {"",     "tokens", "sampling",        "note",
                                        "ring", "carry",  "compressed rows", "index keys"};
    int sections = (int)forged_u32(r->whole.bytes + FORGED_SECTIONS);
    if (at < 8) return "magic";
    if (at < 12) return "format version";
    if (at < FORGED_HEADER) return "header";
    if (at < (size_t)(FORGED_HEADER + sections * FORGED_ENTRY)) return "table";
    for (int i = 0; i < sections; i++) {
        const uint8_t *entry = forged_entry(&r->whole, i);
        uint64_t begin = forged_u64(entry + 16);
        if (at < begin || at - begin >= forged_u64(entry + 24)) continue;
        uint32_t kind = forged_u32(entry), layer = forged_u32(entry + 4);
        long length = (long)forged_u64(entry + 8);
        if (kind < 4) return kinds[kind];
        if (length == LENGTH) snprintf(name, 64, "%s of layer %u", kinds[kind], layer);
        else snprintf(name, 64, "%s of layer %u at %ld", kinds[kind], layer, length);
        return name;
    }
    return "nothing";
}

static void flip(damage_rig *r, size_t at, int bit) {
    char name[64];
    plumb_error err = {0};
    uint8_t bent = r->whole.bytes[at] ^ (uint8_t)(1 << bit);
    file_must(pwrite(r->fd, &bent, 1, (off_t)at) == 1, r->path);
    plumb_status status = snapshot_try(r->session, r->path, &err);
    const char *part = part_of(r, at, name);
    bool version = !strcmp(part, "format version");
    T_CHECK(status == (version ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT) &&
                !strcmp(err.field, part) && !strcmp(err.file, r->path) && err.offset >= 0 &&
                (size_t)err.offset <= at && err.found[0] && err.expected[0],
            "byte %zu bit %d, %s: status %d, %s", at, bit, part, status, err.field);
    T_CHECK(plumb_session_length(r->session) == HELD, "byte %zu bit %d", at, bit);
    file_must(pwrite(r->fd, &r->whole.bytes[at], 1, (off_t)at) == 1, r->path);
}

static void every_byte_flipped(void) {
    damage_rig r = rig_open("damage.flipped");
    for (size_t at = 0; at < r.whole.size; at++) {
        bool all = at < FORGED_HEADER + 4 * FORGED_ENTRY;
        for (int bit = all ? 0 : (int)(at % 8); bit < (all ? 8 : (int)(at % 8) + 1); bit++)
            flip(&r, at, bit);
        if (at % 1000 == 0) check_session(&r, "flipped");
    }
    check_session(&r, "flipped");
    plumb_error err;
    T_CHECK(snapshot_try(r.session, r.path, &err) == PLUMB_OK, "undamaged: %s", err.field);
    T_CHECK(plumb_session_length(r.session) == LENGTH, "undamaged");
    rig_close(&r);
}

static void every_truncation(void) {
    damage_rig r = rig_open("damage.cut");
    for (size_t size = r.whole.size; size-- > 0;) {
        plumb_error err = {0};
        file_must(ftruncate(r.fd, (off_t)size) == 0, r.path);
        T_CHECK(snapshot_try(r.session, r.path, &err) == PLUMB_ERROR_FORMAT, "%zu bytes", size);
        T_CHECK(!strcmp(err.file, r.path) && err.found[0] && err.expected[0], "%zu bytes", size);
        if (size >= FORGED_HEADER)
            T_CHECK(!strcmp(err.field, "file size") && strstr(err.found, "cut short"), "%zu bytes: %s",
                    size, err.found);
    }
    check_session(&r, "cut");
    rig_close(&r);
}

static void bytes_behind_the_end(void) {
    damage_rig r = rig_open("damage.longer");
    static const size_t more[] = {1, 7, 40, 4096};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        plumb_error err = {0};
        file_must(ftruncate(r.fd, (off_t)(r.whole.size + more[i])) == 0, r.path);
        T_CHECK(snapshot_try(r.session, r.path, &err) == PLUMB_ERROR_FORMAT &&
                    !strcmp(err.field, "file size") && strstr(err.found, "more behind its end"),
                "%zu bytes: %s", more[i], err.found);
    }
    check_session(&r, "longer");
    rig_close(&r);
}

/* Damaged, or cut short, between opening and restoring. */
static void changed_while_open(void) {
    damage_rig r = rig_open("damage.open");
    plumb_error err = {0};
    plumb_snapshot *snapshot = snapshot_open(r.path);
    uint8_t bent = r.whole.bytes[r.whole.size - 1] ^ 16;
    file_must(pwrite(r.fd, &bent, 1, (off_t)r.whole.size - 1) == 1, r.path);
    T_CHECK(plumb_session_restore(r.session, snapshot, &err) == PLUMB_ERROR_FORMAT, "%s", err.field);
    file_must(ftruncate(r.fd, (off_t)r.whole.size - 1) == 0, r.path);
    T_CHECK(plumb_session_restore(r.session, snapshot, &err) == PLUMB_ERROR_IO &&
                err.offset == (int64_t)r.whole.size - 1, "%s", err.field);
    check_session(&r, "changed");
    plumb_snapshot_close(snapshot);
    rig_close(&r);
}

T_MAIN({"every_byte_flipped", every_byte_flipped}, {"every_truncation", every_truncation},
       {"bytes_behind_the_end", bytes_behind_the_end}, {"changed_while_open", changed_while_open})
