/* Shards that are changed, cut short, replaced, or lost under a running streaming model: the next read of
 * one notices, the request says which file, no logits come of it, and the session stays where it was.  When
 * the file is back as it was, the request can be made again. */
#include "equal/specimen_copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/checkpoint.h"
#include "t.h"

enum { PROMPT = 5, END = 9 };

static void must(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

/* ---- Changes -------------------------------------------------------------------------------------- */

static void restore_times(const char *path, const struct stat *was) {
    const struct timespec times[2] = {was->st_atim, was->st_mtim};
    must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void touch(const char *path) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
    must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

/* Half a file; its time is set back, so that only the size tells. */
static void cut_short(const char *path) {
    struct stat was;
    must(stat(path, &was) == 0 && truncate(path, was.st_size / 2) == 0, path);
    restore_times(path, &was);
}

static void cut_to_nothing(const char *path) { must(truncate(path, 0) == 0, path); }

/* The same bytes under the same name with the same times, but another file. */
static void replace(const char *path) {
    char beside[640];
    struct stat was;
    snprintf(beside, sizeof beside, "%s.new", path);
    must(stat(path, &was) == 0, path);
    specimen_copy_file(path, beside);
    restore_times(beside, &was);
    must(rename(beside, path) == 0, path);
}

/* Other weights of the same size, written over the file: numbers, and none of them NaN. */
static void write_over(const char *path) {
    FILE *file = fopen(path, "r+b");
    must(file && fseek(file, 0, SEEK_END) == 0, path);
    long size = ftell(file);
    for (long at = size / 8; at < size; at += 4096) {
        must(fseek(file, at, SEEK_SET) == 0, path);
        for (int i = 0; i < 512 && at + i < size; i++) must(fputc(0x11, file) == 0x11, path);
    }
    must(fclose(file) == 0, path);
}

static void lose(const char *path) { must(unlink(path) == 0, path); }

static void move_away(const char *path) {
    char away[640];
    snprintf(away, sizeof away, "%s.away", path);
    must(rename(path, away) == 0, path);
}

static void touch_back(const char *path, const struct stat *was) { restore_times(path, was); }

static void move_back(const char *path, const struct stat *was) {
    char away[640];
    (void)was;
    snprintf(away, sizeof away, "%s.away", path);
    must(rename(away, path) == 0, path);
}

static const struct {
    const char *name;
    void (*make)(const char *path);
    void (*undo)(const char *path, const struct stat *was); /* NULL: it stays so */
} changes[] = {
    {"touched", touch, touch_back},
    {"cut short", cut_short, NULL},
    {"cut to nothing", cut_to_nothing, NULL},
    {"replaced", replace, NULL},
    {"written over", write_over, NULL},
    {"lost", lose, NULL},
    {"moved away", move_away, move_back},
};

/* ---- Payloads of their own shard ------------------------------------------------------------------- */

static char *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    must(file && fseek(file, 0, SEEK_END) == 0, path);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(1, *size + 1);
    must(bytes && fread(bytes, 1, *size, file) == *size, path);
    must(fclose(file) == 0, path);
    return bytes;
}

/* Of the tensors in a shard only those whose names contain `part`, or only the others, stay; the bytes of
 * the rest become a gap. */
static void keep_tensors(const char *path, const char *part, bool others) {
    size_t size, last = 0, header_size = 0;
    char *bytes = read_whole(path, &size), *at = bytes + 8;
    for (int i = 0; i < 4; i++) header_size |= (size_t)(unsigned char)bytes[i] << 8 * i;
    char after = bytes[8 + header_size];
    bytes[8 + header_size] = '\0'; /* a string for now */
    while ((at = strstr(at, ",\"layers."))) {
        char *end = strchr(at, '}'), *found = strstr(at, part), *offsets = strstr(at, "_offsets\":[");
        must(end && offsets && offsets < end, "header");
        if ((found && found < end) != others) {
            size_t tensor_end = strtoull(strchr(offsets, ',') + 1, NULL, 10);
            if (tensor_end > last) last = tensor_end;
        } else {
            memset(at, ' ', (size_t)(end + 1 - at));
        }
        at = end;
    }
    bytes[8 + header_size] = after;
    FILE *file = fopen(path, "wb");
    size = 8 + header_size + last;
    must(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, path);
    free(bytes);
}

/* Moves those tensors of a shard whose names contain `part` to a shard of their own. */
static void split_off(const specimen *s, const char *shard, const char *part) {
    enum { NUMBER = 10 }; /* of the digit in model-0000N-of-... */
    char from[640], to[640], index[640];
    size_t size;
    snprintf(from, sizeof from, "%s/%s", s->folder, shard);
    snprintf(to, sizeof to, "%s", from);
    to[strlen(s->folder) + 1 + NUMBER] = '9';
    specimen_copy_file(from, to);
    keep_tensors(from, part, true);
    keep_tensors(to, part, false);
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", s->folder);
    char *text = read_whole(index, &size);
    for (char *at = text; (at = strstr(at, part)); at++) {
        char *file = strstr(at, "\"model-") + 1;
        if (!strncmp(file, shard, strlen(shard))) file[NUMBER] = '9';
    }
    FILE *out = fopen(index, "wb");
    must(out && fwrite(text, 1, size, out) == size && fclose(out) == 0, index);
    free(text);
}

/* ---- Runs ----------------------------------------------------------------------------------------- */

typedef struct run {
    const specimen *specimen;
    float *reference, *logits;
    int64_t rows; /* that the sink has seen */
} run;

static int keep(void *user, int64_t position, const float *row) {
    run *r = user;
    r->rows++;
    memcpy(r->logits + position * r->specimen->vocab, row,
           (size_t)r->specimen->vocab * sizeof *row);
    return 0;
}

static plumb_status advance(run *r, plumb_session *session, int64_t end, plumb_error *err) {
    int64_t begin = plumb_session_length(session);
    r->rows = 0;
    return plumb_session_eval_all(session, r->specimen->tokens + begin, end - begin, keep, r, err);
}

static void check_bits(const run *r, int64_t end, const char *when) {
    int64_t at = specimen_first_difference(r->specimen, r->reference, r->logits, 0, end);
    T_CHECK(at < 0, "%s: position %" PRId64 " differs", when, at);
}

static void path_of(const specimen *s, const char *tensor, char *path, size_t size) {
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err;
    specimen_must(plumb__checkpoint_open(s->folder, NULL, NULL, &checkpoint, &err), &err, "copy");
    const plumb_tensor *t = plumb__checkpoint_find(checkpoint, "%s", tensor);
    must(t != NULL, tensor);
    snprintf(path, size, "%s", plumb__checkpoint_shard_path(checkpoint, t->shard));
    plumb__checkpoint_close(checkpoint);
}

static void change(run *r, const specimen *copy, const char *tensor, size_t i) {
    char when[128], path[512];
    snprintf(when, sizeof when, "%s, %s", tensor, changes[i].name);
    path_of(copy, tensor, path, sizeof path);
    const plumb_model_options options = {.streaming = true, .cache_experts = 3, .threads = 1};
    plumb_model *model = NULL;
    plumb_error err = {0};
    specimen_must(plumb_model_open(copy->folder, &options, &model, &err), &err, "open");
    plumb_session *session = specimen_session(model, END);
    specimen_must(advance(r, session, PROMPT, &err), &err, when);
    check_bits(r, PROMPT, when);
    struct stat was;
    must(stat(path, &was) == 0, path);
    changes[i].make(path);
    for (int again = 0; again < 2; again++) {
        plumb_status status = advance(r, session, END, &err);
        T_CHECK(status == PLUMB_ERROR_IO && !strcmp(err.file, path) && err.found[0],
                "%s: status %d, file %s, found %s", when, (int)status, err.file, err.found);
        T_CHECK(r->rows == 0 && plumb_session_length(session) == PROMPT, "%s: %" PRId64 " rows", when,
                r->rows);
    }
    if (changes[i].undo) {
        changes[i].undo(path, &was);
        plumb_status status = advance(r, session, END, &err);
        T_CHECK(status == PLUMB_OK, "%s: undone: %s %s", when, err.field, err.found);
        if (status == PLUMB_OK) check_bits(r, END, when);
    }
    plumb_session_destroy(session);
    plumb_model_close(model);
}

static void every_change(void) {
    /* Where `part` is given, tensors of such names lie in a shard of their own. */
    static const struct {
        const char *tensor, *part;
    } cases[] = {
        {"layers.2.ffn.experts.0.w1.weight", NULL},
        {"layers.1.engram.embed.weight", NULL},
        {"layers.2.ffn.experts.0.w1.weight", ".w1.weight"},
        {"layers.2.ffn.experts.0.w2.weight", ".w2."},
        {"layers.2.ffn.experts.0.w3.scale", ".w3.scale"},
        {"layers.1.engram.embed.weight", "layers.1.engram.embed.scale"},
        {"layers.1.engram.embed.scale", "layers.1.engram.embed.scale"},
    };
    specimen tiny = specimen_open(BUILD_DIR "/checkpoints", "tiny");
    run r = {&tiny, specimen_logits(&tiny), specimen_logits(&tiny), 0};
    plumb_model *model = specimen_model(&tiny, 1, NULL);
    plumb_session *session = specimen_session(model, END);
    specimen_advance(&tiny, session, END, r.reference);
    plumb_session_destroy(session);
    plumb_model_close(model);
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++)
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
            specimen copy = specimen_copy(&tiny, BUILD_DIR "/streaming_changes", "tiny");
            char path[512];
            path_of(&copy, cases[t].tensor, path, sizeof path);
            if (cases[t].part) split_off(&copy, strrchr(path, '/') + 1, cases[t].part);
            change(&r, &copy, cases[t].tensor, i);
            specimen_close(&copy);
        }
    free(r.reference);
    free(r.logits);
    specimen_close(&tiny);
}

T_MAIN({"every_change", every_change})
