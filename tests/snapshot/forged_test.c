/* Files whose checksums are right and which lie all the same, or are of something else: each is refused
 * by name and number, before any of it is used.  Also the session that does not fit. */
#include "snapshot/forged.h"

#include "base/error.h"

#include <stdlib.h>
#include <unistd.h>

#include "t.h"

enum { LENGTH = 40, RESUME = 5, HELD = 4, TINY_VOCAB = 512, WINDOW = 8, MOST_BIASES = 1 << 24 };

static specimen tiny;
static plumb_model *model;
static plumb_session *session;
static const char *good_path, *bent_path;

static void open_all(void) {
    if (session) return;
    tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    model = specimen_model(&tiny, 1, NULL);
    session = specimen_session(model, 0);
    float *logits = specimen_logits(&tiny);
    plumb_session *source = specimen_session(model, 0);
    specimen_advance(&tiny, source, RESUME, logits);
    specimen_advance(&tiny, source, LENGTH, logits);
    specimen_advance(&tiny, session, HELD, logits);
    good_path = strdup(snapshot_path("forged.good"));
    bent_path = strdup(snapshot_path("forged.bent"));
    const plumb_sampling sampling = plumb_sampling_default();
    snapshot_save(source, good_path, &(plumb_snapshot_extra){.sampling = &sampling, .note = "note",
                                                             .note_bytes = 4, .resume_points = true});
    plumb_session_destroy(source);
    free(logits);
}

static void check_refused(const char *how, const file_bytes *file, plumb_status status,
                          const char *field, const char *found, const char *expected) {
    plumb_error err = {0};
    file_store(bent_path, file->bytes, file->size);
    plumb_status got = snapshot_try(session, bent_path, &err);
    T_CHECK(got == status && !strcmp(err.field, field) && strstr(err.found, found) &&
                strstr(err.expected, expected) && !strcmp(err.file, bent_path),
            "%s: status %d, %s: found %s, expected %s", how, got, err.field, err.found, err.expected);
    T_CHECK(plumb_session_length(session) == HELD, "%s: the session", how);
}

/* ---- Numbers of header and table ------------------------------------------------------------------ */

enum { U32, U64 };
#define HEADER(name) FORGED_##name
/* Fields of the table's entry i. */
#define ENTRY(i, field) (FORGED_HEADER + (i) * FORGED_ENTRY + (field))
enum { KIND = 0, LAYER = 4, POSITION = 8, OFFSET = 16, BYTES = 24 };

static const struct {
    const char *how;
    int at, width;
    uint64_t value;
    plumb_status status;
    const char *field, *found, *expected;
} lies[] = {
    {"the next arithmetic revision", HEADER(REVISION), U32, PLUMB_ARITHMETIC_REVISION + 1,
     PLUMB_ERROR_UNSUPPORTED, "arithmetic revision", "2", "1, that of this plumb"},
    {"revision 0", HEADER(REVISION), U32, 0, PLUMB_ERROR_UNSUPPORTED, "arithmetic revision", "0",
     "1, that of this plumb"},
    {"the next version", HEADER(VERSION), U32, 2, PLUMB_ERROR_UNSUPPORTED, "format version", "2",
     "1, all that this plumb knows"},
    {"another model", HEADER(MODEL), U64, 0x0123456789abcdef, PLUMB_ERROR_ARGUMENT, "model digest",
     "efcdab8967452301", "that of the model"},
    {"other layers", HEADER(LAYERS), U32, 7, PLUMB_ERROR_ARGUMENT, "layers", "7", "6, as"},
    {"another window", HEADER(WINDOW), U32, 9, PLUMB_ERROR_ARGUMENT, "window", "9", "8, as"},
    {"other heads", HEADER(HEAD_DIM), U32, 128, PLUMB_ERROR_ARGUMENT, "head_dim", "128", "96, as"},
    {"another index", HEADER(INDEX_DIM), U32, 32, PLUMB_ERROR_ARGUMENT, "index_dim", "32", "64, as"},
    {"other words", HEADER(VOCAB), U32, 4096, PLUMB_ERROR_ARGUMENT, "vocabulary", "4096", "as the model"},
    {"few words", HEADER(VOCAB), U32, 1, PLUMB_ERROR_FORMAT, "tokens", "", "0 to 0"},
    {"a huge file", HEADER(FILE_BYTES), U64, INT64_MAX, PLUMB_ERROR_FORMAT, "file size", "cut short",
     "9223372036854775807"},
    {"a negative file", HEADER(FILE_BYTES), U64, UINT64_MAX, PLUMB_ERROR_FORMAT, "file size", "", "-1"},
    {"huge length", HEADER(LENGTH), U64, (uint64_t)1 << 60, PLUMB_ERROR_FORMAT, "length",
     "1152921504606846976 tokens", "0 to 268435456"},
    {"negative length", HEADER(LENGTH), U64, UINT64_MAX, PLUMB_ERROR_FORMAT, "length", "-1 tokens", "0 to"},
    {"another length", HEADER(LENGTH), U64, LENGTH + 1, PLUMB_ERROR_FORMAT, "section length", "40", "41"},
    {"an unknown flag", HEADER(FLAGS), U64, 2, PLUMB_ERROR_FORMAT, "flags", "2", "0 or 1"},
    {"the last flag", HEADER(FLAGS), U64, (uint64_t)1 << 63, PLUMB_ERROR_FORMAT, "flags",
     "9223372036854775808", "0 or 1"},
    {"no sections", HEADER(SECTIONS), U32, 0, PLUMB_ERROR_FORMAT, "sections", "0", "1 to"},
    {"huge sections", HEADER(SECTIONS), U32, UINT32_MAX, PLUMB_ERROR_FORMAT, "sections", "4294967295",
     "1 to"},
    {"no tokens", ENTRY(0, KIND), U32, 2, PLUMB_ERROR_FORMAT, "section kind", "2", "1, the tokens"},
    {"unknown kind", ENTRY(4, KIND), U32, 8, PLUMB_ERROR_FORMAT, "section kind", "8", "1 to 7"},
    {"negative kind", ENTRY(4, KIND), U32, UINT32_MAX, PLUMB_ERROR_FORMAT, "section kind", "-1", "1 to 7"},
    {"no kind", ENTRY(4, KIND), U32, 0, PLUMB_ERROR_FORMAT, "section kind", "0", "1 to 7"},
    {"tokens twice", ENTRY(1, KIND), U32, 1, PLUMB_ERROR_FORMAT, "section kind", "1", "above 1"},
    {"sampling twice", ENTRY(2, KIND), U32, 2, PLUMB_ERROR_FORMAT, "section kind", "2", "above 2"},
    {"layer too high", ENTRY(3, LAYER), U32, 6, PLUMB_ERROR_FORMAT, "section layer", "6", "0 to 5"},
    {"no layer", ENTRY(3, LAYER), U32, UINT32_MAX, PLUMB_ERROR_FORMAT, "section layer", "-1", "0 to 5"},
    {"tokens of a layer", ENTRY(0, LAYER), U32, 0, PLUMB_ERROR_FORMAT, "section layer", "0", "-1"},
    {"longer than the session", ENTRY(3, POSITION), U64, LENGTH + 1, PLUMB_ERROR_FORMAT,
     "section length", "41", "0 to 40"},
    {"negative position", ENTRY(3, POSITION), U64, UINT64_MAX, PLUMB_ERROR_FORMAT, "section length",
     "-1", "0 to 40"},
    {"an overlap", ENTRY(1, OFFSET), U64, 100, PLUMB_ERROR_FORMAT, "section offset", "100",
     "where the one before ends"},
    {"a gap", ENTRY(0, OFFSET), U64, 1 << 20, PLUMB_ERROR_FORMAT, "section offset", "1048576",
     "where the one before ends"},
    {"negative offset", ENTRY(3, OFFSET), U64, UINT64_MAX, PLUMB_ERROR_FORMAT, "section offset", "-1",
     "where the one before ends"},
    {"huge section", ENTRY(3, BYTES), U64, INT64_MAX, PLUMB_ERROR_FORMAT, "section size",
     "9223372036854775807", "at most"},
    {"negative section", ENTRY(3, BYTES), U64, UINT64_MAX, PLUMB_ERROR_FORMAT, "section size", "-1",
     "at most"},
    {"few tokens", ENTRY(0, BYTES), U64, 4 * LENGTH - 4, PLUMB_ERROR_FORMAT, "tokens", "156 bytes",
     "160 for 40 tokens"},
    {"half a bias", ENTRY(1, BYTES), U64, 28, PLUMB_ERROR_FORMAT, "sampling", "28 bytes",
     "24 and 8 for each bias"},
    {"short sampling", ENTRY(1, BYTES), U64, 16, PLUMB_ERROR_FORMAT, "sampling", "16 bytes",
     "24 and 8 for each bias"},
};

static void numbers(void) {
    open_all();
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        file_bytes file = file_load(good_path);
        if (lies[i].width == U32) forged_set_u32(file.bytes + lies[i].at, (uint32_t)lies[i].value);
        else forged_set_u64(file.bytes + lies[i].at, lies[i].value);
        forged_seal(&file);
        check_refused(lies[i].how, &file, lies[i].status, lies[i].field, lies[i].found,
                      lies[i].expected);
        free(file.bytes);
    }
}

/* ---- Sections --------------------------------------------------------------------------------------- */

static int find(const forged *f, uint32_t kind, uint32_t layer, int64_t length) {
    for (int i = 0; i < f->sections; i++)
        if (f->section[i].kind == kind && f->section[i].layer == layer && f->section[i].length == length)
            return i;
    file_must(false, "section");
    return -1;
}

static void drop(forged *f, int i) {
    memmove(&f->section[i], &f->section[i + 1],
            (size_t)(f->sections - i - 1) * sizeof f->section[0]);
    f->sections--;
}

static void insert(forged *f, int i, forged_section section) {
    memmove(&f->section[i + 1], &f->section[i], (size_t)(f->sections - i) * sizeof f->section[0]);
    f->section[i] = section;
    f->sections++;
}

static void swap(forged *f, int i, int j) {
    forged_section kept = f->section[i];
    f->section[i] = f->section[j];
    f->section[j] = kept;
}

enum { RING = 4, CARRY = 5, COMPRESSED = 6, INDEX_KEYS = 7 };

static void missing(forged *f) { drop(f, find(f, RING, 2, LENGTH)); }
static void missing_last(forged *f) { drop(f, f->sections - 1); }
static void doubled(forged *f) {
    int i = find(f, RING, 2, LENGTH);
    insert(f, i, f->section[i]);
}
static void too_many(forged *f) { insert(f, f->sections, f->section[f->sections - 1]); }
static void out_of_order(forged *f) {
    swap(f, find(f, RING, 1, LENGTH), find(f, RING, 2, LENGTH));
}
static void short_ring(forged *f) { f->section[find(f, RING, 3, LENGTH)].bytes -= 99; }
static void empty_carry(forged *f) { f->section[find(f, CARRY, 1, LENGTH)].bytes = 0; }
static void row_short(forged *f) { f->section[find(f, COMPRESSED, 1, LENGTH)].bytes -= 54; }
static void key_short(forged *f) { f->section[find(f, INDEX_KEYS, 1, LENGTH)].bytes -= 34; }
static void no_point_ring(forged *f) { drop(f, find(f, RING, 0, RESUME)); }
static void cut_point(forged *f) { drop(f, find(f, RING, 5, RESUME)); }
static void points_descend(forged *f) {
    int first = find(f, RING, 0, RESUME), count = f->sections - first;
    for (int i = 0; i < count; i++) insert(f, f->sections, f->section[first + i]);
    for (int i = first + count; i < f->sections; i++) f->section[i].length = RESUME - 1;
}
static void point_at_0(forged *f) {
    for (int i = 0; i < f->sections; i++)
        if (f->section[i].length == RESUME) f->section[i].length = 0;
}
static void large_token(forged *f) {
    static uint8_t tokens[4 * LENGTH];
    forged_set_u32(tokens + 8, TINY_VOCAB);
    f->section[0].payload = tokens;
}
static void negative_token(forged *f) {
    static uint8_t tokens[4 * LENGTH];
    forged_set_u32(tokens, UINT32_MAX);
    f->section[0].payload = tokens;
}

static const struct {
    const char *how;
    void (*bend)(forged *f);
    const char *field, *found, *expected;
} tables[] = {
    {"a section is missing", missing, "section", "ring of layer 3, 792 bytes", "ring of layer 2, 792 bytes"},
    {"the last is missing", missing_last, "section", "the end", " of layer 5 at 5, "},
    {"a section twice", doubled, "section", "ring of layer 2, 792 bytes", " of layer "},
    {"one too many", too_many, "section", " of layer 5 at 5, ", "the end"},
    {"out of order", out_of_order, "section", "ring of layer 2, 792 bytes", "ring of layer 1, 792 bytes"},
    {"a ring too short", short_ring, "section", "ring of layer 3, 693 bytes", "ring of layer 3, 792 bytes"},
    {"a carry of nothing", empty_carry, "section", "carry of layer 1, 0 bytes", "carry of layer 1, 768 bytes"},
    {"a row too few", row_short, "section", "compressed rows of layer 1, ", "compressed rows of layer 1, "},
    {"a key too few", key_short, "section", "index keys of layer 1, ", "index keys of layer 1, "},
    {"a resume point without its beginning", no_point_ring, "section", "ring of layer 1 at 5, 495 bytes",
     "the end"},
    {"a resume point without its end", cut_point, "section", "the end", "ring of layer 5 at 5, 495 bytes"},
    {"resume points that descend", points_descend, "resume points", "one of 4 tokens behind 1 others up to 5",
     "ascending"},
    {"a resume point at the beginning", point_at_0, "resume points", "one of 0 tokens", "ascending"},
    {"a token beyond the vocabulary", large_token, "tokens", "512", "0 to 511"},
    {"a negative token", negative_token, "tokens", "-1", "0 to 511"},
};

static void sections(void) {
    open_all();
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        forged f = forged_take_apart(good_path);
        tables[i].bend(&f);
        file_bytes file = forged_assemble(&f);
        check_refused(tables[i].how, &file, PLUMB_ERROR_FORMAT, tables[i].field, tables[i].found,
                      tables[i].expected);
        free(file.bytes);
        forged_free(&f);
    }
}

static void check_points(const forged *f, int points) {
    plumb_error err = {0};
    file_bytes file = forged_assemble(f);
    if (points > 16) {
        check_refused("17 resume points", &file, PLUMB_ERROR_FORMAT, "resume points",
                      "one of 24 tokens behind 16 others up to 23", "at most 16");
    } else {
        plumb_session *target = specimen_session(model, 0);
        file_store(bent_path, file.bytes, file.size);
        T_CHECK(snapshot_try(target, bent_path, &err) == PLUMB_OK &&
                    plumb_session_length(target) == LENGTH,
                "%s: found %s, expected %s", err.field, err.found, err.expected);
        plumb_session_destroy(target);
    }
    free(file.bytes);
}

/* As many resume points as a session keeps are taken; one more is not. */
static void many_points(void) {
    open_all();
    for (int points = 16; points <= 17; points++) {
        forged f = forged_take_apart(good_path);
        f.sections = find(&f, RING, 0, RESUME);
        int first = find(&f, RING, 0, LENGTH), present = f.sections;
        for (int point = 0; point < points; point++)
            for (int i = first; i < present; i++) {
                forged_section s = f.section[i];
                if (s.kind != RING && s.kind != CARRY) continue;
                s.length = WINDOW + point;
                insert(&f, f.sections, s);
            }
        check_points(&f, points);
        forged_free(&f);
    }
}

/* The writer's file is what the second writing of the format makes of its parts. */
static void both_writers(void) {
    open_all();
    forged f = forged_take_apart(good_path);
    file_bytes file = forged_assemble(&f);
    T_CHECK(file.size == f.original.size && !memcmp(file.bytes, f.original.bytes, file.size),
            "the same bytes");
    file_store(bent_path, file.bytes, file.size);
    plumb_session *target = specimen_session(model, 0);
    snapshot_restore(target, bent_path);
    T_CHECK(plumb_session_length(target) == LENGTH, "restored");
    plumb_session_destroy(target);
    free(file.bytes);
    forged_free(&f);
}

/* A file of holes costs its author nothing; more biases than any vocabulary has tokens are not read. */
static void many_biases(void) {
    enum { TOKENS = FORGED_HEADER + 2 * FORGED_ENTRY, SAMPLING = TOKENS + 4 * LENGTH };
    open_all();
    const int64_t bytes = 24 + 8 * (int64_t)(MOST_BIASES + 1);
    file_bytes file = file_load(good_path);
    forged_set_u32(file.bytes + FORGED_SECTIONS, 2);
    forged_set_u64(file.bytes + FORGED_FILE_BYTES, (uint64_t)(SAMPLING + bytes));
    forged_set_u64(forged_entry(&file, 0) + OFFSET, TOKENS);
    forged_set_u64(forged_entry(&file, 1) + OFFSET, SAMPLING);
    forged_set_u64(forged_entry(&file, 1) + BYTES, (uint64_t)bytes);
    forged_seal(&file);
    file_store(bent_path, file.bytes, TOKENS);
    file_must(truncate(bent_path, SAMPLING + bytes) == 0, bent_path);
    plumb_error err = {0};
    T_CHECK(snapshot_try(session, bent_path, &err) == PLUMB_ERROR_FORMAT &&
                !strcmp(err.field, "sampling") && !strcmp(err.found, "134217760 bytes") &&
                strstr(err.expected, "at most 16777216"),
            "%s: found %s, expected %s", err.field, err.found, err.expected);
    free(file.bytes);
}

/* ---- Other beginnings ------------------------------------------------------------------------------ */

static void no_snapshot(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *found;
    } files[] = {{"", 0, "ends too early"},
                 {"PLUMB", 5, "ends too early"},
                 {"PLUMBSNP", 8, "ends too early"},
                 {"GGUF, or something else entirely", 32, "other bytes"},
                 {"PLUMBprt and what was written so far", 36, "an unfinished snapshot"}};
    open_all();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        file_bytes file = {(uint8_t *)(uintptr_t)files[i].bytes, files[i].size};
        check_refused(files[i].bytes, &file, PLUMB_ERROR_FORMAT, "magic", files[i].found, "PLUMBSNP");
    }
}

static void small_context(void) {
    open_all();
    for (int64_t context = LENGTH - 1; context <= LENGTH; context++) {
        plumb_session *small = NULL;
        plumb_error err = {0};
        specimen_must(plumb_session_create(model, &(plumb_session_options){.context = context}, &small,
                                           &err), &err, "session");
        plumb_status status = snapshot_try(small, good_path, &err);
        if (context == LENGTH)
            T_CHECK(status == PLUMB_OK && plumb_session_length(small) == LENGTH, "just large enough");
        else
            T_CHECK(status == PLUMB_ERROR_CONTEXT && !strcmp(err.field, "length") &&
                        !strcmp(err.found, "40 tokens") && strstr(err.expected, "at most 39"),
                    "%s, %s", err.found, err.expected);
        plumb_session_destroy(small);
    }
}

/* A file of one model, a session of another. */
static void other_models(void) {
    open_all();
    specimen deep40 = specimen_open(BUILD_DIR "/checkpoints", "deep40");
    plumb_model *other = specimen_model(&deep40, 1, NULL);
    plumb_session *target = specimen_session(other, 0);
    plumb_error err = {0};
    T_CHECK(snapshot_try(target, good_path, &err) == PLUMB_ERROR_ARGUMENT &&
                !strcmp(err.field, "layers") && !strcmp(err.found, "6") && strstr(err.expected, "40"),
            "%s %s %s", err.field, err.found, err.expected);
    plumb_session_destroy(target);
    plumb_model_close(other);
    specimen_close(&deep40);
}

static void bad_calls(void) {
    open_all();
    plumb_error err = {0};
    plumb_snapshot *snapshot = NULL;
    T_CHECK(plumb_snapshot_open(NULL, &snapshot, &err) == PLUMB_ERROR_ARGUMENT, "%s", err.field);
    T_CHECK(plumb_session_save(session, NULL, NULL, &err) == PLUMB_ERROR_ARGUMENT, "%s", err.field);
    static const plumb_logit_bias bias = {0};
    static const plumb_sampling negative = {.n_bias = -1}, absent = {.n_bias = 1},
                                many = {.bias = &bias, .n_bias = MOST_BIASES + 1};
    const plumb_snapshot_extra extras[] = {{.note = "x", .note_bytes = -1},
                                           {.note = NULL, .note_bytes = 1},
                                           {.note = "x", .note_bytes = (1 << 28) + 1},
                                           {.sampling = &negative},
                                           {.sampling = &absent},
                                           {.sampling = &many}};
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++)
        T_CHECK(plumb_session_save(session, bent_path, &extras[i], &err) == PLUMB_ERROR_ARGUMENT,
                "extra %zu", i);
    plumb_snapshot_close(NULL);
}

/* Must be the last. */
static void close_all(void) {
    open_all();
    float *logits = specimen_logits(&tiny), *fresh = specimen_logits(&tiny);
    plumb_session *other = specimen_session(model, 0);
    specimen_advance(&tiny, other, HELD + 5, fresh);
    specimen_advance(&tiny, session, HELD + 5, logits);
    T_CHECK(specimen_first_difference(&tiny, fresh, logits, HELD, HELD + 5) < 0,
            "the session goes on as before");
    (void)unlink(good_path);
    (void)unlink(bent_path);
    free((char *)(uintptr_t)good_path);
    free((char *)(uintptr_t)bent_path);
    free(logits);
    free(fresh);
    plumb_session_destroy(other);
    plumb_session_destroy(session);
    plumb_model_close(model);
    specimen_close(&tiny);
    session = NULL;
}

T_MAIN({"numbers", numbers}, {"sections", sections}, {"many_points", many_points},
       {"many_biases", many_biases}, {"both_writers", both_writers}, {"no_snapshot", no_snapshot},
       {"small_context", small_context}, {"other_models", other_models}, {"bad_calls", bad_calls},
       {"close_all", close_all})
