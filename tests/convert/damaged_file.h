/* A converted file in memory and on disk, to be damaged in place and made whole again. */
#ifndef PLUMB_TESTS_CONVERT_DAMAGED_FILE_H
#define PLUMB_TESTS_CONVERT_DAMAGED_FILE_H

#include "converted.h"

typedef struct damaged_file {
    converted made;
    plumb_gguf gguf;    /* of the whole file */
    uint8_t *bytes;     /* [size] of the whole file */
    int64_t size;
    int fd;
} damaged_file;

/* Makes BUILD_DIR/PLACE/tiny-FLAVOUR.gguf. */
damaged_file damaged_file_open(const char *place, flavour flavour);
void damaged_file_close(damaged_file *file); /* and removes it */

void damaged_file_flip(const damaged_file *file, int64_t at, int bit);
void damaged_file_cut(const damaged_file *file, int64_t size);
void damaged_file_restore_byte(const damaged_file *file, int64_t at);
void damaged_file_restore_end(const damaged_file *file, int64_t from);

/* The tensor whose payload, or padding behind it, holds this byte; NULL before the first one. */
const plumb_gguf_tensor *damaged_file_tensor(const damaged_file *file, int64_t at);
/* Does a report mean this tensor, by its own name or by that of a released one inside it? */
bool damaged_file_names(const plumb_gguf_tensor *tensor, const char *field);

#endif
