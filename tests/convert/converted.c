#include "converted.h"

#include "format/gguf_seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const converted_models[CONVERTED_MODELS] = {"tiny", "deep40", "demo"};

void converted_must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s: %s\n", what, line);
    exit(1);
}

void converted_source(const char *model, char folder[512]) {
    if (strcmp(model, "demo") == 0)
        (void)snprintf(folder, 512, "%s", PROJECT_DIR "/data/demo-model");
    else
        (void)snprintf(folder, 512, BUILD_DIR "/checkpoints/%s", model);
}

const char *flavour_name(flavour f) {
    return f == FLAVOUR_PACKED ? "packed" : plumb__dense_name((int)f);
}

converted converted_make_from(const char *place, const char *name, const char *folder, flavour f) {
    converted c = {.model = name, .flavour = f};
    char parent[256], from[512];
    (void)snprintf(parent, sizeof parent, BUILD_DIR "/%s", place);
    (void)mkdir(parent, 0777);
    (void)snprintf(c.source, sizeof c.source, "%s", folder);
    (void)snprintf(c.path, sizeof c.path, "%s/%s-%s.gguf", parent, name, flavour_name(f));
    (void)snprintf(from, sizeof from, "%s/%s-f32.gguf", parent, name);
    const plumb_convert_options options = {
        .dense = f == FLAVOUR_PACKED ? PLUMB_DENSE_BF16 : (plumb_dense)f, .force = true, .jobs = 2};
    plumb_convert_result result;
    plumb_error err;
    plumb_status status = f == FLAVOUR_PACKED ? plumb__pack(from, c.path, &options, &result, &err)
                                              : plumb__convert(folder, c.path, &options, &result, &err);
    converted_must(status, &err, c.path);
    return c;
}

converted converted_make(const char *place, const char *model, flavour f) {
    char folder[512];
    converted_source(model, folder);
    return converted_make_from(place, model, folder, f);
}

void converted_remove(const char *place, const char *name) {
    for (flavour f = 0; f < FLAVOURS; f++) {
        char path[512];
        (void)snprintf(path, sizeof path, BUILD_DIR "/%s/%s-%s.gguf", place, name, flavour_name(f));
        (void)unlink(path);
    }
}

plumb_status converted_audit(const char *path, const char *source, int jobs, bool sample,
                             plumb_error *err) {
    const plumb_audit_options options = {.source = source, .jobs = jobs, .sample = sample};
    plumb_audit_result result;
    return plumb__audit_file(path, &options, &result, err);
}

uint64_t converted_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

/* ---- Released bytes -------------------------------------------------------------------------- */

static bool same_kind(const plumb_tensor *a, const plumb_tensor *b) {
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank &&
           a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1] && a->bytes == b->bytes &&
           a->tensor_class == b->tensor_class;
}

static void read_range(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                       int64_t begin, int64_t size, uint8_t *into) {
    plumb_error err;
    converted_must(plumb__checkpoint_read(checkpoint, tensor, begin, size, into, &err), &err,
                   tensor->name);
}

/* Ranges that begin and end inside units and elements, and all of it. */
static bool same_bytes(const plumb_checkpoint *file, const plumb_tensor *tensor,
                       const uint8_t *expected, uint64_t *random, char fault[512]) {
    enum { RANGES = 6 };
    int64_t bytes = tensor->bytes;
    uint8_t *found = malloc((size_t)bytes + 1);
    bool same = true;
    for (int i = 0; i < RANGES && same; i++) {
        int64_t begin = 0, size = bytes;
        if (i == 1) begin = 1, size = bytes - 1;
        if (i == 2) begin = bytes - 1, size = 1;
        if (i > 2) {
            begin = (int64_t)(converted_random(random) % (uint64_t)bytes);
            size = (int64_t)(converted_random(random) % (uint64_t)(bytes - begin + 1));
            if (i == 3 && size > 100) size = 100 - begin % 67;
        }
        found[size] = 0xA5;
        read_range(file, tensor, begin, size, found);
        same = memcmp(found, expected + begin, (size_t)size) == 0 && found[size] == 0xA5;
        if (!same)
            (void)snprintf(fault, 512, "%s: bytes [%lld, +%lld) differ", tensor->name,
                           (long long)begin, (long long)size);
    }
    free(found);
    return same;
}

bool converted_gives_back(const char *path, const char *folder, char fault[512]) {
    plumb_checkpoint *file, *source;
    plumb_error err;
    uint64_t random = 0x2545F4914F6CDD1Du;
    converted_must(plumb__checkpoint_open(path, NULL, NULL, &file, &err), &err, path);
    converted_must(plumb__checkpoint_open(folder, NULL, NULL, &source, &err), &err, folder);
    int64_t count = plumb__checkpoint_count(source);
    bool same = plumb__checkpoint_count(file) == count;
    if (!same) (void)snprintf(fault, 512, "%lld tensors", (long long)plumb__checkpoint_count(file));
    for (int64_t i = 0; i < count && same; i++) {
        const plumb_tensor *a = plumb__checkpoint_tensor(file, i);
        const plumb_tensor *b = plumb__checkpoint_tensor(source, i);
        same = same_kind(a, b);
        if (!same) {
            (void)snprintf(fault, 512, "%s: another name, dtype or shape than %s", a->name, b->name);
            break;
        }
        uint8_t *expected = malloc((size_t)b->bytes);
        read_range(source, b, 0, b->bytes, expected);
        same = same_bytes(file, a, expected, &random, fault);
        free(expected);
    }
    plumb__checkpoint_close(source);
    plumb__checkpoint_close(file);
    return same;
}

void converted_seal(uint8_t *header, int64_t bytes, int64_t file_bytes) {
    plumb_gguf gguf;
    plumb_error err;
    converted_must(plumb__gguf_parse(header, bytes, file_bytes, "forged", &gguf, &err), &err, "parse");
    const plumb_gguf_value *digests = plumb__gguf_find(&gguf, PLUMB_KEY_HEADER_DIGESTS);
    uint64_t found[64];
    converted_must(plumb__gguf_seal_compute(header, gguf.header_bytes, digests->offset, found, &err),
                   &err, "seal");
    memcpy(header + digests->offset, found, (size_t)digests->size);
    plumb__gguf_free(&gguf);
}
