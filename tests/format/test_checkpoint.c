/* Whole checkpoint folders: the demo model, and a small one that each case bends in one place. */
#include "base/file.h"
#include "fixture.h"
#include "format/shard_file.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char logged[1024];
static int log_count;

static void keep_log(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    log_count++;
    (void)snprintf(logged, sizeof logged, "%s", line);
}

static plumb_status open_folder(const char *folder, plumb_checkpoint **checkpoint,
                                plumb_error *err) {
    log_count = 0;
    logged[0] = 0;
    *checkpoint = NULL;
    return plumb__checkpoint_open(folder, keep_log, NULL, checkpoint, err);
}

/* The folder must open and hold `count` tensors. */
static plumb_checkpoint *opened(const fixture *f, int64_t count) {
    plumb_checkpoint *checkpoint;
    plumb_error err = {0};
    T_CHECK(open_folder(f->folder, &checkpoint, &err) == PLUMB_OK, "%s: %s, not %s", err.field,
            err.found, err.expected);
    if (!checkpoint) exit(1);
    T_CHECK(plumb__checkpoint_count(checkpoint) == count, "%lld tensors",
            (long long)plumb__checkpoint_count(checkpoint));
    return checkpoint;
}

static void refused(const fixture *f, plumb_status status, const char *file, const char *field,
                    const char *what) {
    plumb_checkpoint *checkpoint;
    plumb_error err = {0};
    T_CHECK(open_folder(f->folder, &checkpoint, &err) == status, "%s", what);
    T_ERROR(&err, status, file, field, what);
    plumb__checkpoint_close(checkpoint);
}

/* ---- What opens ------------------------------------------------------------------------------ */

static void demo_model(void) {
    plumb_checkpoint *c;
    plumb_error err = {0};
    T_CHECK(open_folder(PROJECT_DIR "/data/demo-model", &c, &err) == PLUMB_OK, "%s: %s", err.field,
            err.found);
    if (!c) return;
    T_CHECK(log_count == 0, "%s", logged);
    T_TRUE(plumb__checkpoint_count(c) == 2022 && plumb__checkpoint_shards(c) == 2);
    T_TRUE(plumb__checkpoint_config(c)->hidden == 256);
    T_TRUE(!strcmp(plumb__checkpoint_path(c), PROJECT_DIR "/data/demo-model"));
    T_TRUE(strstr(plumb__checkpoint_shard_path(c, 1), "model-00002-of-00002.safetensors") != NULL);
    int64_t total = 0;
    for (int64_t i = 0; i < plumb__checkpoint_count(c); i++) {
        const plumb_tensor *t = plumb__checkpoint_tensor(c, i);
        T_CHECK(i == 0 || strcmp(plumb__checkpoint_tensor(c, i - 1)->name, t->name) < 0, "%s",
                t->name);
        T_CHECK(plumb__checkpoint_find(c, "%s", t->name) == t, "%s", t->name);
        void *bytes = malloc((size_t)t->bytes);
        T_CHECK(plumb__checkpoint_read(c, t, 0, t->bytes, bytes, &err) == PLUMB_OK, "%s", t->name);
        T_CHECK(plumb__checkpoint_check_values(c, t, 0, t->bytes, bytes, &err) == PLUMB_OK, "%s",
                t->name);
        free(bytes);
        total += t->bytes;
    }
    T_CHECK(total == 23738816, "%lld", (long long)total); /* the index's total_size */
    /* As the shard's header says, read by another program. */
    const plumb_tensor *t = plumb__checkpoint_find(c, "layers.%d.attn.%s", 0, "attn_sink");
    T_TRUE(t && t->dtype == PLUMB_DTYPE_F32 && t->rank == 1 && t->shape[0] == 8);
    T_TRUE(t && t->offset == 8 + 108432 + 2097152 && t->bytes == 32 && t->shard == 0);
    T_TRUE(t && t->tensor_class == PLUMB_CLASS_DENSE);
    T_TRUE(plumb__checkpoint_find(c, "layers.%d.nothing", 0) == NULL);
    T_TRUE(plumb__checkpoint_find(c, "%0300d", 1) == NULL);
    plumb__checkpoint_close(c);
}

static void small_model(void) {
    static fixture f;
    fixture_small(&f, "good");
    fixture_save(&f, 0);
    plumb__checkpoint_close(opened(&f, f.count));
    T_CHECK(log_count == 0, "%s", logged);
    plumb__checkpoint_close(NULL);
}

static void without_index(void) {
    static fixture f;
    fixture_small(&f, "no-index");
    f.no_index = true;
    for (int i = 0; i < f.count; i++) {
        fixture_tensor *t = &f.tensors[i];
        if (t->shard == 0) continue;
        t->begin += f.data_bytes[0];
        t->end += f.data_bytes[0];
        t->shard = 0;
    }
    f.data_bytes[0] += f.data_bytes[1];
    fixture_save(&f, 0);
    plumb_checkpoint *c = opened(&f, f.count);
    T_TRUE(plumb__checkpoint_shards(c) == 1);
    plumb__checkpoint_close(c);
}

static void older_names(void) {
    static fixture f;
    fixture_small(&f, "older-names");
    (void)snprintf(fixture_find(&f, "layers.0.attn.wq_a.scale")->name, 96,
                   "model.layers.0.self_attn.wq_a.weight_scale_inv");
    (void)snprintf(fixture_find(&f, "layers.1.ffn.gate.bias")->name, 96,
                   "layers.1.mlp.gate.e_score_correction_bias");
    fixture_save(&f, 0);
    plumb_checkpoint *c = opened(&f, f.count);
    T_TRUE(plumb__checkpoint_find(c, "layers.0.attn.wq_a.scale") != NULL);
    T_TRUE(plumb__checkpoint_find(c, "layers.1.ffn.gate.bias") != NULL);
    plumb__checkpoint_close(c);
}

static void wrong_total_size(void) {
    static fixture f;
    fixture_small(&f, "total-size");
    f.total_size++;
    fixture_save(&f, 0);
    plumb__checkpoint_close(opened(&f, f.count));
    T_CHECK(log_count == 1 && strstr(logged, "total_size"), "%s", logged);
}

/* Takes the tensors whose names start with `prefix` out of shards and index; returns how many. */
static int leave_out(fixture *f, const char *prefix) {
    int count = 0;
    for (int i = 0; i < f->count; i++) {
        fixture_tensor *t = &f->tensors[i];
        if (strncmp(t->name, prefix, strlen(prefix)) != 0) continue;
        t->shard = -1;
        t->indexed_as[0] = 0;
        count++;
    }
    return count;
}

/* Puts the payloads side by side again after leave_out. */
static void pack(fixture *f) {
    f->data_bytes[0] = f->data_bytes[1] = f->total_size = 0;
    for (int i = 0; i < f->count; i++) {
        fixture_tensor *t = &f->tensors[i];
        if (t->shard < 0) continue;
        int64_t bytes = t->end - t->begin;
        t->begin = f->data_bytes[t->shard];
        t->end = f->data_bytes[t->shard] += bytes;
        f->total_size += bytes;
    }
}

static void parts_switched_off(void) {
    static fixture f;
    fixture_small(&f, "no-draft");
    int draft = leave_out(&f, "mtp.");
    pack(&f);
    fixture_save(&f, 0);
    plumb__checkpoint_close(opened(&f, f.count - draft));
    T_CHECK(log_count == 1 && strstr(logged, "mtp"), "%s", logged);

    /* Vision off in the config: its tensors are ignored, or absent. */
    fixture_small(&f, "no-vision");
    char *layers = strstr(strstr(f.config, "vision_config"), "\"num_hidden_layers\": 1");
    memcpy(layers, "\"num_hidden_layers\": 0", 22);
    fixture_save(&f, 0);
    plumb_checkpoint *c;
    plumb_error err = {0};
    T_CHECK(open_folder(f.folder, &c, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    T_CHECK(log_count == 1 && strstr(logged, "ignored"), "%s", logged);
    T_TRUE(plumb__checkpoint_find(c, "vision.norm.weight") == NULL);
    plumb__checkpoint_close(c);
    int vision = leave_out(&f, "vision.") + leave_out(&f, "aligner.") + leave_out(&f, "image_");
    pack(&f);
    fixture_save(&f, 0);
    plumb__checkpoint_close(opened(&f, f.count - vision));
    T_CHECK(log_count == 0, "%s", logged);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void bent_tensors(void) {
    enum { DTYPE, SHAPE, NAME, MOVE, TWICE, UNINDEXED, MISINDEXED, UNWRITTEN, ABSENT,
           AGAIN, WIDER };
    static const struct {
        const char *what;
        int bend;
        const char *tensor, *to;
        plumb_status status;
        const char *file, *field;
    } cases[] = {
        {"dtype of equal size", DTYPE, "layers.0.attn.wq_a.weight", "I8", PLUMB_ERROR_TENSOR,
         ".safetensors", "layers.0.attn.wq_a.weight"},
        {"shape transposed", SHAPE, "layers.0.ffn.gate.weight", "[32, 2]", PLUMB_ERROR_TENSOR,
         ".safetensors", "layers.0.ffn.gate.weight"},
        {"vector as matrix", SHAPE, "norm.weight", "[32, 1]", PLUMB_ERROR_TENSOR, ".safetensors",
         "norm.weight"},
        {"row of a matrix as vector", SHAPE, "mtp.0.confidence_head.proj.weight", "[40]",
         PLUMB_ERROR_TENSOR, ".safetensors", "confidence_head"},
        {"unknown name", NAME, "norm.weight", "norms.weight", PLUMB_ERROR_TENSOR, ".safetensors",
         "norms.weight"},
        {"expert beyond the last", NAME, "layers.0.ffn.experts.1.w1.scale",
         "layers.0.ffn.experts.2.w1.scale", PLUMB_ERROR_TENSOR, ".safetensors", "experts.2.w1"},
        {"name of another tensor", NAME, "layers.0.ffn_norm.weight", "layers.0.attn_norm.weight",
         PLUMB_ERROR_FORMAT, "", "layers.0.attn_norm.weight"},
        {"name twice in a shard", TWICE, "norm.weight", NULL, PLUMB_ERROR_FORMAT, ".safetensors",
         "norm.weight"},
        {"name again in the other shard", AGAIN, "layers.0.ffn_norm.weight",
         "layers.0.attn_norm.weight", PLUMB_ERROR_FORMAT, ".safetensors",
         "layers.0.attn_norm.weight"},
        {"rows twice as long", WIDER, "layers.0.ffn.gate.weight", "[2, 64]", PLUMB_ERROR_TENSOR,
         ".safetensors", "layers.0.ffn.gate.weight"},
        {"range moved onto the next", MOVE, "embed.weight", NULL, PLUMB_ERROR_FORMAT,
         ".safetensors", ""},
        {"not in the index", UNINDEXED, "norm.weight", NULL, PLUMB_ERROR_TENSOR, "index.json",
         "norm.weight"},
        {"index names the other shard", MISINDEXED, "embed.weight",
         "model-00002-of-00002.safetensors", PLUMB_ERROR_TENSOR, "index.json", "embed.weight"},
        {"index names an absent shard", MISINDEXED, "embed.weight", "model-00003.safetensors",
         PLUMB_ERROR_IO, "model-00003.safetensors", "open"},
        {"index names a path", MISINDEXED, "embed.weight", "../x", PLUMB_ERROR_FORMAT, "index.json",
         "weight_map"},
        {"in the index only", UNWRITTEN, "vision.norm.weight", NULL, PLUMB_ERROR_TENSOR,
         "index.json", "vision.norm.weight"},
        {"backbone tensor absent", ABSENT, "layers.1.attn.attn_sink", NULL, PLUMB_ERROR_TENSOR,
         "bent", "layers.1.attn.attn_sink"},
        {"expert absent", ABSENT, "layers.0.ffn.experts.0.w2.scale", NULL, PLUMB_ERROR_TENSOR,
         "bent", "layers.0.ffn.experts.0.w2.scale"},
        {"one draft tensor absent", ABSENT, "mtp.0.norm.weight", NULL, PLUMB_ERROR_TENSOR, "bent",
         "mtp.0.norm.weight"},
        {"vision tensor absent", ABSENT, "vision.norm.weight", NULL, PLUMB_ERROR_TENSOR, "bent",
         "vision.norm.weight"},
    };
    static fixture f;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture_small(&f, "bent");
        fixture_tensor *t = fixture_find(&f, cases[i].tensor);
        switch (cases[i].bend) {
        case DTYPE: (void)snprintf(t->dtype, sizeof t->dtype, "%s", cases[i].to); break;
        case SHAPE: (void)snprintf(t->shape, sizeof t->shape, "%s", cases[i].to); break;
        case NAME: (void)snprintf(t->name, sizeof t->name, "%s", cases[i].to); break;
        case TWICE: t->twice = true; break;
        case MOVE: t->begin++, t->end++; break;
        case UNINDEXED: t->indexed_as[0] = 0; break;
        case MISINDEXED:
            (void)snprintf(t->indexed_as, sizeof t->indexed_as, "%s", cases[i].to);
            break;
        case UNWRITTEN: t->shard = -1, pack(&f); break;
        case AGAIN:
            t->indexed_as[0] = 0;
            (void)snprintf(t->name, sizeof t->name, "%s", cases[i].to);
            break;
        case WIDER:
            (void)snprintf(t->shape, sizeof t->shape, "%s", cases[i].to);
            t->end += t->end - t->begin;
            pack(&f);
            break;
        case ABSENT: (void)leave_out(&f, t->name), pack(&f); break;
        }
        fixture_save(&f, 0);
        refused(&f, cases[i].status, cases[i].file, cases[i].field, cases[i].what);
    }
}

/* Links that lead nowhere, or to themselves, are named, and no other file stands in. */
static void bent_links(void) {
    static fixture f;
    char path[512];
    static const char *const files[] = {"config.json", "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors", "model.safetensors"};
    static const char index[] = "model.safetensors.index.json";
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (int loop = 0; loop < 2; loop++) {
            fixture_small(&f, "links");
            fixture_save(&f, 0);
            (void)snprintf(path, sizeof path, "%s/%s", f.folder, i == 3 ? index : files[i]);
            T_TRUE(unlink(path) == 0);
            (void)snprintf(path, sizeof path, "%s/%s", f.folder, files[i]);
            T_TRUE(symlink(loop ? files[i] : "nowhere", path) == 0);
            if (i < 3) fixture_write(f.folder, files[3], "", 0); /* must not be looked at */
            refused(&f, PLUMB_ERROR_IO, files[i], "open", loop ? "a loop" : "a dangling link");
            T_TRUE(unlink(path) == 0);
        }
    /* Neither the index nor the single file: both are named. */
    plumb_checkpoint *c;
    plumb_error err = {0};
    T_TRUE(open_folder(f.folder, &c, &err) == PLUMB_ERROR_IO);
    T_ERROR(&err, PLUMB_ERROR_IO, index, "open", "no weights");
    T_CHECK(strstr(err.expected, index) && strstr(err.expected, "or model.safetensors"), "%s",
            err.expected);
}

static void bent_files(void) {
    static fixture f;
    char path[512];
    static const char *const files[] = {"config.json", "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        fixture_small(&f, "files");
        fixture_save(&f, 0);
        (void)snprintf(path, sizeof path, "%s/%s", f.folder, files[i]);
        /* without its last byte; empty; a folder; absent */
        size_t size;
        char *bytes = fixture_load(path, &size);
        size -= bytes[size - 1] == '\n' ? 2 : 1;
        fixture_write(f.folder, files[i], bytes, size);
        free(bytes);
        refused(&f, PLUMB_ERROR_FORMAT, files[i], "", "truncated");
        fixture_write(f.folder, files[i], "", 0);
        refused(&f, PLUMB_ERROR_FORMAT, files[i], "", "empty");
        T_TRUE(unlink(path) == 0 && mkdir(path, 0777) == 0);
        refused(&f, PLUMB_ERROR_IO, files[i], "open", "a folder");
        T_TRUE(rmdir(path) == 0);
        refused(&f, PLUMB_ERROR_IO, files[i], "open", "absent");
        /* A FIFO must neither hang nor pass. */
        T_TRUE(mkfifo(path, 0666) == 0);
        refused(&f, PLUMB_ERROR_IO, files[i], "open", "a FIFO");
        T_TRUE(unlink(path) == 0);
    }
    plumb_checkpoint *c;
    plumb_error err = {0};
    fixture_save(&f, 0);
    (void)snprintf(path, sizeof path, "%s/config.json", f.folder);
    T_TRUE(open_folder(path, &c, &err) == PLUMB_ERROR_FORMAT);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "config.json", "magic", "a file is a converted one");
    T_TRUE(open_folder(BUILD_DIR "/fixtures/none", &c, &err) == PLUMB_ERROR_IO);
    T_ERROR(&err, PLUMB_ERROR_IO, "config.json", "open", "no such folder");
    T_TRUE(plumb__checkpoint_open(BUILD_DIR "/fixtures/none", NULL, NULL, &c, NULL) != PLUMB_OK);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void reads(void) {
    static fixture f;
    fixture_small(&f, "reads");
    fixture_save(&f, 0x11);
    plumb_checkpoint *c = opened(&f, f.count);
    const plumb_tensor *t = plumb__checkpoint_find(c, "embed.weight");
    unsigned char bytes[4096];
    plumb_error err = {0};
    T_TRUE(t && t->bytes == sizeof bytes);
    T_TRUE(plumb__checkpoint_read(c, t, 0, t->bytes, bytes, &err) == PLUMB_OK);
    T_TRUE(bytes[0] == 0x11 && bytes[sizeof bytes - 1] == 0x11);
    T_TRUE(plumb__checkpoint_read(c, t, t->bytes, 0, bytes, &err) == PLUMB_OK);
    static const int64_t ranges[][2] = {{-1, 1}, {0, -1}, {0, 4097}, {4096, 1}, {4097, 0},
                                        {INT64_MAX, 1}, {1, INT64_MAX}, {INT64_MIN, 1}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        T_CHECK(plumb__checkpoint_read(c, t, ranges[i][0], ranges[i][1], bytes, &err) ==
                    PLUMB_ERROR_ARGUMENT, "%zu", i);
        T_ERROR(&err, PLUMB_ERROR_ARGUMENT, "model-0000", "embed.weight", "range");
    }
    plumb__checkpoint_close(c);
}

static void changed_after_open(void) {
    enum { TRUNCATED, GROWN, REWRITTEN, VANISHED, REPLACED, FIFO };
    static const char *const names[] = {"truncated", "grown",    "rewritten",
                                        "vanished",  "replaced", "a FIFO in its place"};
    static fixture f;
    for (int change = TRUNCATED; change <= FIFO; change++) {
        fixture_small(&f, "changed");
        fixture_save(&f, 0);
        plumb_checkpoint *c = opened(&f, f.count);
        const plumb_tensor *t = plumb__checkpoint_find(c, "embed.weight");
        unsigned char bytes[4096];
        plumb_error err = {0};
        T_TRUE(plumb__checkpoint_read(c, t, 0, 16, bytes, &err) == PLUMB_OK);
        T_TRUE(plumb__checkpoint_check_unchanged(c, t, &err) == PLUMB_OK);
        const char *path = plumb__checkpoint_shard_path(c, t->shard);
        char other[600];
        (void)snprintf(other, sizeof other, "%s.other", path);
        struct stat before; /* a second earlier, and nothing else */
        T_TRUE(stat(path, &before) == 0);
        before.st_mtim.tv_sec--;
        const struct timespec earlier[2] = {before.st_atim, before.st_mtim};
        switch (change) {
        case TRUNCATED: T_TRUE(truncate(path, t->offset + 100) == 0); break;
        case GROWN: T_TRUE(truncate(path, 1 << 20) == 0); break;
        case REWRITTEN: T_TRUE(utimensat(AT_FDCWD, path, earlier, 0) == 0); break;
        case VANISHED: T_TRUE(unlink(path) == 0); break;
        case FIFO: T_TRUE(unlink(path) == 0 && mkfifo(path, 0666) == 0); break;
        case REPLACED: {
            size_t size;
            char *content = fixture_load(path, &size);
            fixture_write(f.folder, strrchr(other, '/') + 1, content, size);
            free(content);
            T_TRUE(rename(other, path) == 0);
            break;
        }
        }
        T_CHECK(plumb__checkpoint_read(c, t, 8, 4000, bytes, &err) == PLUMB_ERROR_IO, "%s",
                names[change]);
        T_ERROR(&err, PLUMB_ERROR_IO, path, "embed.weight", names[change]);
        T_CHECK(err.offset == t->offset + (change == TRUNCATED ? 100 : 8), "%s: offset %lld",
                names[change], (long long)err.offset);
        T_CHECK(plumb__checkpoint_read(c, t, 0, 16, bytes, &err) == PLUMB_ERROR_IO, "%s: again",
                names[change]);
        err = (plumb_error){0};
        T_TRUE(plumb__checkpoint_check_unchanged(c, t, &err) == PLUMB_ERROR_IO);
        T_ERROR(&err, PLUMB_ERROR_IO, path, "embed.weight", names[change]);
        T_CHECK(err.offset == t->offset, "%s: offset %lld", names[change], (long long)err.offset);
        int fd = -1;
        bool uncached;
        err = (plumb_error){0};
        T_TRUE(plumb__checkpoint_open_uncached(c, t->shard, &fd, &uncached, NULL, 0, &err) ==
               PLUMB_ERROR_IO);
        T_ERROR(&err, PLUMB_ERROR_IO, path, "open again", names[change]);
        T_CHECK(fd == -1, "%s: %d", names[change], fd);
        plumb__checkpoint_close(c);
    }
}

/* The mode of a descriptor that reads uncached. */
#if defined(O_DIRECT)
enum { UNCACHED_FLAG = O_DIRECT };
#else
enum { UNCACHED_FLAG = 0 };
#endif

static void uncached_descriptors(void) {
    plumb_checkpoint *c;
    plumb_error err = {0};
    T_CHECK(open_folder(PROJECT_DIR "/data/demo-model", &c, &err) == PLUMB_OK, "%s: %s", err.field,
            err.found);
    const plumb_tensor *t = plumb__checkpoint_find(c, "embed.weight");
    enum { BLOCK = 16384 };
    int64_t begin = (t->offset + BLOCK - 1) / BLOCK * BLOCK;
    unsigned char *block = aligned_alloc(BLOCK, BLOCK), expected[BLOCK];
    if (!block) exit(1);
    T_TRUE(plumb__checkpoint_read(c, t, begin - t->offset, BLOCK, expected, &err) == PLUMB_OK);
    int fd = -1;
    bool uncached = false;
    char why[128] = "";
    T_CHECK(plumb__checkpoint_open_uncached(c, t->shard, &fd, &uncached, why, sizeof why, &err) ==
                PLUMB_OK, "%s", err.found);
    T_TRUE(pread(fd, block, BLOCK, begin) == BLOCK && !memcmp(block, expected, BLOCK));
    int mode = fcntl(fd, F_GETFL);
    T_CHECK((mode & UNCACHED_FLAG) == (uncached ? UNCACHED_FLAG : 0), "%#x", (unsigned)mode);
    T_CHECK(!(mode & O_NONBLOCK) && (fcntl(fd, F_GETFD) & FD_CLOEXEC), "%#x", (unsigned)mode);
    T_CHECK(uncached == !strcmp(why, "uncached"), "%s", why);
    T_TRUE(close(fd) == 0);
    plumb__checkpoint_close(c);
    free(block);
}

/* The kernel's own files can only be read through its memory. */
static void uncached_refused(void) {
#if defined(__linux__)
    plumb_shard_file shard = {.path = (char[]){"/proc/version"}};
    plumb_error err = {0};
    T_TRUE(plumb__file_open(shard.path, &shard.fd, &shard.opened, &err) == PLUMB_OK);
    int fd = -1;
    bool uncached = true;
    char why[128] = "", text[8] = "";
    T_CHECK(plumb__shard_open_uncached(&shard, &fd, &uncached, why, sizeof why, &err) == PLUMB_OK,
            "%s", err.found);
    T_CHECK(!uncached && strstr(why, "refused (Invalid argument)"), "%s", why);
    T_TRUE(pread(fd, text, 5, 0) == 5 && !strcmp(text, "Linux"));
    T_TRUE(close(fd) == 0 && close(shard.fd) == 0);
#else
    T_TRUE(true);
#endif
}

static void forbidden_values(void) {
    static const struct {
        const char *tensor;
        int64_t at; /* in the payload */
        unsigned char bytes[4];
        int width;
        bool bad;
    } cases[] = {
        {"layers.0.attn.wq_b.weight", 70, {0x7F}, 1, true},
        {"layers.0.attn.wq_b.weight", 0, {0xFF}, 1, true},
        {"layers.0.attn.wq_b.weight", 0, {0x7E}, 1, false},
        {"layers.0.attn.wq_b.weight", 2047, {0xFE}, 1, false},
        {"layers.0.attn.wq_b.scale", 1, {0xFF}, 1, true},
        {"layers.0.attn.wq_b.scale", 1, {0xFE}, 1, false},
        {"layers.0.attn.wq_b.scale", 1, {0x7F}, 1, false},
        {"layers.0.ffn.experts.0.w1.weight", 5, {0xFF}, 1, false},
        {"embed.weight", 4094, {0x80, 0x7F}, 2, true},  /* infinity */
        {"embed.weight", 4094, {0x80, 0xFF}, 2, true},
        {"embed.weight", 64, {0xC0, 0x7F}, 2, true},    /* NaN */
        {"embed.weight", 64, {0x7F, 0x7F}, 2, false},   /* the largest */
        {"embed.weight", 63, {0x80}, 1, false},         /* halves of two numbers */
        {"layers.0.hc_attn_fn", 8, {0, 0, 0x80, 0x7F}, 4, true},
        {"layers.0.hc_attn_fn", 8, {1, 0, 0x80, 0xFF}, 4, true},
        {"layers.0.hc_attn_fn", 12284, {0, 0, 0xC0, 0x7F}, 4, true},
        {"layers.0.hc_attn_fn", 8, {0xFF, 0xFF, 0x7F, 0x7F}, 4, false},
    };
    static fixture f;
    fixture_small(&f, "values");
    fixture_save(&f, 0);
    plumb_checkpoint *c = opened(&f, f.count);
    static unsigned char bytes[1 << 16];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const plumb_tensor *t = plumb__checkpoint_find(c, "%s", cases[i].tensor);
        plumb_error err = {0};
        T_CHECK(t && t->bytes <= (int64_t)sizeof bytes, "%s", cases[i].tensor);
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes + cases[i].at, cases[i].bytes, (size_t)cases[i].width);
        plumb_status status =
            plumb__checkpoint_check_values(c, t, 0, t->bytes, bytes, &err);
        T_CHECK(status == (cases[i].bad ? PLUMB_ERROR_VALUE : PLUMB_OK), "%zu: %s", i, err.found);
        if (!cases[i].bad) continue;
        T_ERROR(&err, PLUMB_ERROR_VALUE, ".safetensors", cases[i].tensor, "bad value");
        T_CHECK(err.offset == t->offset + cases[i].at, "%zu: offset %lld", i,
                (long long)err.offset);
        /* The same value when only a later piece is looked at. */
        int64_t piece = cases[i].at / 4 * 4;
        plumb_error part = {0};
        status = plumb__checkpoint_check_values(c, t, piece, t->bytes - piece, bytes + piece,
                                                &part);
        T_TRUE(status == PLUMB_ERROR_VALUE);
        T_CHECK(part.offset == err.offset && !strcmp(part.found, err.found), "%zu: %s", i,
                part.found);
    }
    const plumb_tensor *t = plumb__checkpoint_find(c, "layers.0.hc_attn_fn");
    plumb_error err = {0};
    T_TRUE(plumb__checkpoint_check_values(c, t, 2, 4, bytes, &err) == PLUMB_ERROR_ARGUMENT);
    T_TRUE(plumb__checkpoint_check_values(c, t, 0, 6, bytes, &err) == PLUMB_ERROR_ARGUMENT);
    plumb__checkpoint_close(c);
}

T_MAIN({"demo_model", demo_model}, {"small_model", small_model}, {"without_index", without_index},
       {"older_names", older_names}, {"wrong_total_size", wrong_total_size},
       {"parts_switched_off", parts_switched_off}, {"bent_tensors", bent_tensors},
       {"bent_files", bent_files}, {"bent_links", bent_links}, {"reads", reads}, {"changed_after_open", changed_after_open},
       {"uncached_descriptors", uncached_descriptors}, {"uncached_refused", uncached_refused},
       {"forbidden_values", forbidden_values})
