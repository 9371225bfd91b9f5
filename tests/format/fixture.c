#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fixture that cannot be written is no failed check but a broken machine. */
static void need(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "fixture: %s: %s\n", what, strerror(errno));
    exit(2);
}

void fixture_folder(const char *name, char folder[256]) {
    static const char *const leftovers[] = {
        "config.json", "model.safetensors", "model.safetensors.index.json",
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "x.safetensors"};
    static const char parent[] = BUILD_DIR "/fixtures";
    need(mkdir(parent, 0777) == 0 || errno == EEXIST, parent);
    int length = snprintf(folder, 256, "%s/%s", parent, name);
    need(length > 0 && length < 256, "a build folder with a shorter path");
    need(mkdir(folder, 0777) == 0 || errno == EEXIST, folder);
    for (size_t i = 0; i < sizeof leftovers / sizeof leftovers[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", folder, leftovers[i]);
        need(unlink(path) == 0 || errno == ENOENT || rmdir(path) == 0, path);
    }
}

void fixture_write(const char *folder, const char *file, const void *bytes, size_t size) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *out = fopen(path, "wb");
    need(out != NULL, path);
    need(fwrite(bytes, 1, size, out) == size && fclose(out) == 0, path);
}

char *fixture_load(const char *path, size_t *size) {
    FILE *in = fopen(path, "rb");
    need(in != NULL, path);
    struct stat status;
    need(fstat(fileno(in), &status) == 0, path);
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    need(bytes != NULL && fread(bytes, 1, *size, in) == *size, path);
    bytes[*size] = 0;
    (void)fclose(in);
    return bytes;
}

const char *fixture_shard_name(const fixture *f, int shard) {
    static const char *const names[FIXTURE_SHARDS] = {"model-00001-of-00002.safetensors",
                                                      "model-00002-of-00002.safetensors"};
    return f->no_index ? "model.safetensors" : names[shard];
}

static int add_tensor(void *user, const char *name, const plumb_tensor_spec *spec) {
    fixture *f = user;
    need(f->count < FIXTURE_MAX, "more tensors than FIXTURE_MAX");
    fixture_tensor *t = &f->tensors[f->count];
    t->shard = f->count++ % FIXTURE_SHARDS;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    (void)snprintf(t->dtype, sizeof t->dtype, "%s", plumb__dtype_name(spec->dtype));
    if (spec->rank == 1)
        (void)snprintf(t->shape, sizeof t->shape, "[%lld]", (long long)spec->shape[0]);
    else
        (void)snprintf(t->shape, sizeof t->shape, "[%lld, %lld]", (long long)spec->shape[0],
                       (long long)spec->shape[1]);
    t->begin = f->data_bytes[t->shard];
    t->end = f->data_bytes[t->shard] += spec->bytes;
    f->total_size += spec->bytes;
    (void)snprintf(t->indexed_as, sizeof t->indexed_as, "%s", fixture_shard_name(f, t->shard));
    return 0;
}

static void load_config(fixture *f) {
    size_t size;
    char *config = fixture_load(TEST_DATA "/config/small.json", &size);
    need(size < sizeof f->config, "small.json fits");
    memcpy(f->config, config, size + 1);
    free(config);
}

static void list_tensors(fixture *f) {
    plumb_model_config parsed;
    plumb_status status = plumb__config_parse(f->config, strlen(f->config), "small.json", NULL, NULL,
                                              &parsed, NULL);
    need(status == PLUMB_OK, "small.json loads");
    need(plumb__tensor_table_visit(&parsed, add_tensor, f) == 0, "visit");
}

void fixture_small(fixture *f, const char *name) {
    memset(f, 0, sizeof *f);
    fixture_folder(name, f->folder);
    load_config(f);
    list_tensors(f);
}

void fixture_wordy(fixture *f, const char *name) {
    static const char few[] = "\"vocab_size\": 64,", many[] = "\"vocab_size\": 263000,";
    memset(f, 0, sizeof *f);
    fixture_folder(name, f->folder);
    load_config(f);
    char *at = strstr(f->config, few);
    need(at && strlen(f->config) + sizeof many < sizeof f->config, "small.json has a vocabulary");
    memmove(at + sizeof many - 1, at + sizeof few - 1, strlen(at + sizeof few - 1) + 1);
    memcpy(at, many, sizeof many - 1);
    list_tensors(f);
}

fixture_tensor *fixture_find(fixture *f, const char *name) {
    for (int i = 0; i < f->count; i++)
        if (!strcmp(f->tensors[i].name, name)) return &f->tensors[i];
    need(0, name);
    return NULL;
}

static void save_shard(const fixture *f, int shard, unsigned char fill) {
    static char header[1 << 16];
    size_t at = 8;
    bool any = false;
    header[at++] = '{';
    for (int i = 0; i < f->count; i++) {
        const fixture_tensor *t = &f->tensors[i];
        for (int copy = 0; t->shard == shard && copy < (t->twice ? 2 : 1); copy++) {
            at += (size_t)snprintf(header + at, sizeof header - at,
                                   "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,"
                                   "\"data_offsets\":[%lld,%lld]}",
                                   any ? "," : "", t->name, t->dtype, t->shape,
                                   (long long)t->begin, (long long)t->end);
            need(at < sizeof header - 2, "header fits");
            any = true;
        }
    }
    header[at++] = '}';
    for (int i = 0; i < 8; i++) header[i] = (char)((at - 8) >> (8 * i) & 0xFF);
    size_t data = (size_t)f->data_bytes[shard];
    char *file = malloc(at + data);
    need(file != NULL, "memory");
    memcpy(file, header, at);
    memset(file + at, fill, data);
    fixture_write(f->folder, fixture_shard_name(f, shard), file, at + data);
    free(file);
}

void fixture_save(const fixture *f, unsigned char fill) {
    static char index[1 << 16];
    fixture_write(f->folder, "config.json", f->config, strlen(f->config));
    for (int shard = 0; shard < (f->no_index ? 1 : FIXTURE_SHARDS); shard++)
        save_shard(f, shard, fill);
    if (f->no_index) return;
    size_t at = (size_t)snprintf(index, sizeof index,
                                 "{\"metadata\": {\"total_size\": %lld}, \"weight_map\": {",
                                 (long long)f->total_size);
    bool any = false;
    for (int i = 0; i < f->count; i++) {
        const fixture_tensor *t = &f->tensors[i];
        if (!t->indexed_as[0]) continue;
        at += (size_t)snprintf(index + at, sizeof index - at, "%s\n\"%s\": \"%s\"", any ? "," : "",
                               t->name, t->indexed_as);
        any = true;
    }
    at += (size_t)snprintf(index + at, sizeof index - at, "}}\n");
    need(at < sizeof index, "index fits");
    fixture_write(f->folder, "model.safetensors.index.json", index, at);
}

const char *fixture_fault(const plumb_error *err, plumb_status status, const char *file_part,
                          const char *field_part) {
    static char fault[1200];
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    const char *wrong = err->status != status                                  ? "status"
                        : !strstr(err->file, file_part)                        ? "file"
                        : !err->field[0] || !strstr(err->field, field_part)    ? "field"
                        : !err->found[0] || !err->expected[0]                  ? "found or expected"
                        : strpbrk(line, "\r\n")                                ? "more than a line"
                                                                               : NULL;
    if (!wrong) return "";
    (void)snprintf(fault, sizeof fault, "wrong %s: %s: %s", wrong, plumb_status_name(err->status),
                   line);
    return fault;
}
