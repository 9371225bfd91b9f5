/* Files for the format tests: a folder below the build folder, and a small checkpoint in it whose
 * parts a test may bend before they are written. */
#ifndef PLUMB_TESTS_FORMAT_FIXTURE_H
#define PLUMB_TESTS_FORMAT_FIXTURE_H

#include "base/error.h"
#include "format/checkpoint.h"
#include "format/tensor_table.h"

enum { FIXTURE_SHARDS = 2, FIXTURE_MAX = 256 };

/* One tensor as the header will say it, whether true or not. */
typedef struct fixture_tensor {
    char name[96];
    char dtype[16];
    char shape[48];        /* "[2, 3]" */
    int64_t begin, end;    /* data_offsets */
    int shard;             /* -1: not written */
    char indexed_as[96];   /* file that weight_map names; "": no entry */
    bool twice;            /* the header names it two times */
} fixture_tensor;

typedef struct fixture {
    char folder[256];
    char config[8192];
    fixture_tensor tensors[FIXTURE_MAX];
    int count;
    int64_t data_bytes[FIXTURE_SHARDS];
    int64_t total_size;
    bool no_index;         /* write one shard, model.safetensors, alone */
} fixture;

/* An empty folder BUILD_DIR/fixtures/<name>, created or emptied. */
void fixture_folder(const char *name, char folder[256]);
void fixture_write(const char *folder, const char *file, const void *bytes, size_t size);
/* The whole file, NUL-terminated; free() it. */
char *fixture_load(const char *path, size_t *size);
/* A correct checkpoint of tests/data/config/small.json, not yet written. */
void fixture_small(fixture *f, const char *name);
/* The same with so many words that embedding and head are of 17 MB. */
void fixture_wordy(fixture *f, const char *name);
fixture_tensor *fixture_find(fixture *f, const char *name);
/* Writes config, shards (payload bytes are `fill`) and index. */
void fixture_save(const fixture *f, unsigned char fill);
const char *fixture_shard_name(const fixture *f, int shard);

/* "" when the error has this status, names file and field, says what was found and expected and
 * prints as one line; otherwise what is wrong with it, valid until the next call. */
const char *fixture_fault(const plumb_error *err, plumb_status status, const char *file_part,
                          const char *field_part);
/* A check that needs no words of its own. */
#define T_TRUE(condition) T_CHECK(condition, "%s", "must hold")
#define T_ERROR(err, status, file, field, what)                                       \
    do {                                                                              \
        const char *fault_ = fixture_fault(err, status, file, field);                 \
        T_CHECK(!*fault_, "%s: %s", what, fault_);                                    \
    } while (0)

#endif
