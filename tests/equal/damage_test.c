/* Damaged checkpoints: copies of tiny with single bytes changed, or cut short while a model has
 * them open.  Dense weights are refused when the model opens; experts, Engram rows and embeddings
 * in the moment they are first used, which costs the call and nothing before it.
 *
 * When an expert or a row is first used is what the published code recorded (tests/data/oracle). */
#include "equal/specimen_copy.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/checkpoint.h"
#include "goldens.h"
#include "t.h"

/* ---- Copies
 * ------------------------------------------------------------------------------------------ */

static void must(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

/* A specimen like tiny whose folder is a fresh copy. */
static specimen copy_of_tiny(const char *name) {
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    specimen copy = specimen_copy(&tiny, BUILD_DIR "/damage", name);
    specimen_close(&tiny);
    return copy;
}

/* Where a payload byte of a tensor lies. */
typedef struct place {
    char path[512];
    int64_t offset;
} place;

/* Overwrites payload bytes of a tensor from `at` on. */
static place damage(const specimen *s, const char *tensor, int64_t at, const void *bytes,
                    size_t size) {
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err;
    specimen_must(plumb__checkpoint_open(s->folder, NULL, NULL, &checkpoint, &err), &err, "copy");
    const plumb_tensor *t = plumb__checkpoint_find(checkpoint, "%s", tensor);
    must(t && at + (int64_t)size <= t->bytes, tensor);
    place p = {.offset = t->offset + at};
    snprintf(p.path, sizeof p.path, "%s", plumb__checkpoint_shard_path(checkpoint, t->shard));
    plumb__checkpoint_close(checkpoint);
    FILE *file = fopen(p.path, "r+b");
    must(file && fseek(file, (long)p.offset, SEEK_SET) == 0, p.path);
    must(fwrite(bytes, 1, size, file) == size && fclose(file) == 0, p.path);
    return p;
}

/* The error names file, tensor and offset of the damage. */
static void check_error(const plumb_error *err, const place *p, const char *tensor,
                        const char *found) {
    T_CHECK(err->status == PLUMB_ERROR_VALUE, "%s: status %d", tensor, (int)err->status);
    T_CHECK(!strcmp(err->file, p->path), "%s: file %s", tensor, err->file);
    T_CHECK(!strcmp(err->field, tensor), "%s: field %s", tensor, err->field);
    T_CHECK(err->offset == p->offset, "%s: offset %" PRId64 ", not %" PRId64, tensor, err->offset,
            p->offset);
    T_CHECK(strstr(err->found, found) && err->expected[0], "%s: found %s", tensor, err->found);
}

/* ---- Dense weights: refused at open
 * -------------------------------------------------------------------- */

static void dense_weights(void) {
    static const struct {
        const char *tensor;
        int64_t at;
        size_t size;
        unsigned char bytes[4];
        const char *found;
    } cases[] = {
        {"layers.0.attn.wq_a.weight", 123, 1, {0x7F}, "0x7F"},
        {"layers.5.attn.wo_b.weight", 0, 1, {0xFF}, "0xFF"},
        {"layers.3.attn.wkv.scale", 2, 1, {0xFF}, "0xFF"},
        {"layers.2.ffn_norm.weight", 10, 2, {0xC0, 0x7F}, "0x7FC0"},
        {"layers.4.ffn.gate.bias", 4, 4, {0, 0, 0x80, 0xFF}, "0xFF800000"},
        {"layers.1.hc_attn_fn", 40, 4, {0, 0, 0xC0, 0x7F}, "0x7FC00000"},
        {"layers.1.engram.wkv.weight", 5, 1, {0x7F}, "0x7F"},
        {"layers.3.ffn.shared_experts.w2.weight", 7, 1, {0xFF}, "0xFF"},
        {"head.weight", 512, 2, {0x80, 0x7F}, "0x7F80"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        specimen s = copy_of_tiny("dense");
        place p = damage(&s, cases[i].tensor, cases[i].at, cases[i].bytes, cases[i].size);
        plumb_model *model = NULL;
        plumb_error err = {0};
        T_CHECK(plumb_model_open(s.folder, NULL, &model, &err) != PLUMB_OK && !model, "%s",
                cases[i].tensor);
        check_error(&err, &p, cases[i].tensor, cases[i].found);
        plumb_model_close(model);
        specimen_close(&s);
    }
}

/* ---- Weights that come when they are used
 * ----------------------------------------------------------------- */

static int ignore_row(void *user, int64_t position, const float *logits) {
    (void)user, (void)position, (void)logits;
    return 0;
}

/* Evaluates the prompt token by token until it fails, which must be at position `first`; then the
 * session must still be of use up to there. */
static void check_first_use(const specimen *s, const place *p, const char *tensor,
                            const char *found, int64_t first) {
    specimen intact = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    plumb_model *good = specimen_model(&intact, 1, NULL), *model = specimen_model(s, 1, NULL);
    plumb_session *reference = specimen_session(good, 0), *session = specimen_session(model, 16);
    float *expected = specimen_logits(s), *logits = specimen_logits(s);
    specimen_advance(&intact, reference, s->count, expected);
    plumb_error err = {0};
    /* All at once, every row: nothing of it counts. */
    T_CHECK(plumb_session_eval_all(session, s->tokens, s->count, ignore_row, NULL, &err) ==
                PLUMB_ERROR_VALUE,
            "%s", tensor);
    check_error(&err, p, tensor, found);
    T_CHECK(plumb_session_length(session) == 0, "%s: length %" PRId64, tensor,
            plumb_session_length(session));
    plumb_status status = PLUMB_OK;
    int64_t at = 0;
    for (; at < s->count && status == PLUMB_OK; at += status == PLUMB_OK)
        status = plumb_session_eval(session, s->tokens + at, 1, NULL, &err);
    T_CHECK(at == first && plumb_session_length(session) == first,
            "%s: fails at %" PRId64 " instead of %" PRId64, tensor, at, first);
    check_error(&err, p, tensor, found);
    /* Up to the last good position the session goes on giving the right bits. */
    specimen_must(plumb_session_rewind(session, 0, &err), &err, "rewind");
    specimen_advance(s, session, first, logits);
    int64_t differs = specimen_first_difference(s, expected, logits, 0, first);
    T_CHECK(differs < 0, "%s: position %" PRId64 " differs", tensor, differs);
    T_CHECK(plumb_session_eval(session, s->tokens + first, 1, NULL, &err) == PLUMB_ERROR_VALUE,
            "%s: not found again", tensor);
    free(logits);
    free(expected);
    plumb_session_destroy(session);
    plumb_session_destroy(reference);
    plumb_model_close(model);
    plumb_model_close(good);
    specimen_close(&intact);
}

/* Position at which `layer` first uses `expert`, or -1. */
static int64_t first_use_of_expert(const golden *used, int64_t layer, int expert) {
    int64_t rows = used->shape[1], k = used->shape[2];
    for (int64_t i = 0; i < rows * k; i++)
        if (used->u8[layer * rows * k + i] == expert) return i / k;
    return -1;
}

/* For every layer, the expert that is first used latest. */
static void experts(void) {
    static const char *const parts[] = {"w1", "w2", "w3"};
    goldens *g = goldens_open("oracle/tiny.prefill.safetensors");
    golden used = goldens_get(g, "prefill.gate_indices.f32", "U8");
    for (int layer = 0; layer < 6; layer++) {
        int64_t latest = -1;
        int expert = 0;
        for (int e = 0; e < 8; e++)
            if (first_use_of_expert(&used, layer, e) > latest) {
                latest = first_use_of_expert(&used, layer, e);
                expert = e;
            }
        specimen s = copy_of_tiny("expert");
        char tensor[96];
        snprintf(tensor, sizeof tensor, "layers.%d.ffn.experts.%d.%s.scale", layer, expert,
                 parts[layer % 3]);
        place p = damage(&s, tensor, 5, "\xFF", 1);
        check_first_use(&s, &p, tensor, "0xFF", latest);
        specimen_close(&s);
    }
    goldens_close(g);
}

/* A row that the prompt comes to late: NaN in its codes, then in its scales. */
static void engram_rows(void) {
    goldens *g = goldens_open("oracle/tiny.prefill.safetensors");
    golden rows = goldens_get(g, "prefill.engram_ids.1", "I32");
    int64_t columns = rows.shape[1], at = 70, row = rows.i32[at * columns + 3];
    int64_t first = 0;
    while (rows.i32[first] != row) first++;
    first /= columns;
    goldens_close(g);
    static const struct {
        const char *tensor;
        int64_t row_bytes;
    } cases[] = {{"layers.1.engram.embed.weight", 64}, {"layers.1.engram.embed.scale", 2}};
    for (int i = 0; i < 2; i++) {
        specimen s = copy_of_tiny("engram");
        place p = damage(&s, cases[i].tensor, row * cases[i].row_bytes + 1, "\xFF", 1);
        check_first_use(&s, &p, cases[i].tensor, "0xFF", first);
        specimen_close(&s);
    }
}

static void embedding_row(void) {
    specimen s = copy_of_tiny("embedding");
    int64_t first = 0;
    while (s.tokens[first] != s.tokens[60]) first++;
    place p = damage(&s, "embed.weight", s.tokens[60] * 192 + 4, "\x80\xFF", 2);
    check_first_use(&s, &p, "embed.weight", "0xFF80", first);
    specimen_close(&s);
}

/* ---- Files that change under an open model
 * -------------------------------------------------------------------- */

static void truncated_under_an_open_model(void) {
    specimen s = copy_of_tiny("truncated");
    plumb_model *model = specimen_model(&s, 1, NULL);
    plumb_session *session = specimen_session(model, 0);
    for (int i = 1; i <= 4; i++) {
        char path[640];
        snprintf(path, sizeof path, "%s/model-%05d-of-00004.safetensors", s.folder, i);
        must(truncate(path, 20000) == 0, path);
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        plumb_error err = {0};
        plumb_status status = plumb_session_eval(session, s.tokens, 12, NULL, &err);
        T_CHECK(status == PLUMB_ERROR_IO || status == PLUMB_ERROR_FORMAT, "status %d", (int)status);
        T_CHECK(strstr(err.file, "damage/truncated/model-0000") && err.field[0] && err.found[0] &&
                    err.offset >= 0,
                "%s, %s, %s", err.file, err.field, err.found);
        T_CHECK(plumb_session_length(session) == 0, "length %" PRId64,
                plumb_session_length(session));
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
    T_CHECK(plumb_model_open(s.folder, NULL, &model, NULL) != PLUMB_OK, "%s", "opens truncated");
    specimen_close(&s);
}

T_MAIN({"dense_weights", dense_weights}, {"experts", experts}, {"engram_rows", engram_rows},
       {"embedding_row", embedding_row},
       {"truncated_under_an_open_model", truncated_under_an_open_model})
