#include "damaged_file.h"

#include "base/file.h"
#include "format/gguf_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(bool condition, const char *what) {
    if (condition) return;
    perror(what);
    exit(1);
}

damaged_file damaged_file_open(const char *place, flavour f) {
    if (f == FLAVOUR_PACKED) (void)converted_make(place, "tiny", FLAVOUR_F32);
    damaged_file d = {.made = converted_make(place, "tiny", f)};
    struct stat status;
    plumb_error err;
    d.fd = open(d.made.path, O_RDWR | O_CLOEXEC);
    must(d.fd >= 0 && fstat(d.fd, &status) == 0, d.made.path);
    d.size = status.st_size;
    d.bytes = malloc((size_t)d.size);
    must(d.bytes != NULL, "memory");
    converted_must(plumb__file_read_at(d.fd, d.made.path, "all", 0, d.size, d.bytes, &err), &err,
                   "read");
    converted_must(plumb__gguf_read(d.fd, d.size, d.made.path, &d.gguf, &err), &err, d.made.path);
    return d;
}

void damaged_file_close(damaged_file *d) {
    plumb__gguf_free(&d->gguf);
    free(d->bytes);
    (void)close(d->fd);
    (void)unlink(d->made.path);
}

static void put(const damaged_file *d, int64_t at, const uint8_t *bytes, int64_t size) {
    must(pwrite(d->fd, bytes, (size_t)size, (off_t)at) == (ssize_t)size, d->made.path);
}

void damaged_file_flip(const damaged_file *d, int64_t at, int bit) {
    uint8_t flipped = (uint8_t)(d->bytes[at] ^ 1 << bit);
    put(d, at, &flipped, 1);
}

void damaged_file_cut(const damaged_file *d, int64_t size) {
    must(ftruncate(d->fd, (off_t)size) == 0, d->made.path);
}

void damaged_file_restore_byte(const damaged_file *d, int64_t at) { put(d, at, d->bytes + at, 1); }

void damaged_file_restore_end(const damaged_file *d, int64_t from) {
    put(d, from, d->bytes + from, d->size - from);
}

const plumb_gguf_tensor *damaged_file_tensor(const damaged_file *d, int64_t at) {
    const plumb_gguf_tensor *found = NULL;
    for (int64_t i = 0; i < d->gguf.tensors && d->gguf.tensor[i].offset <= at; i++)
        found = &d->gguf.tensor[i];
    return found;
}

bool damaged_file_names(const plumb_gguf_tensor *tensor, const char *field) {
    plumb_gguf_name name;
    return strcmp(tensor->name, field) == 0 ||
           (plumb__gguf_name_of(field, &name) && strcmp(tensor->name, name.name) == 0);
}
