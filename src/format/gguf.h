/* GGUF version 3, the container: metadata, a table of tensors, aligned payloads.  Knows nothing of
 * models.  Layout as published with ggml: magic "GGUF", u32 version, u64 tensors, u64 keys; the keys;
 * the tensors' names, shapes, types and offsets; padding to the alignment; the payloads, each padded
 * to the alignment.  Little-endian. */
#ifndef PLUMB_FORMAT_GGUF_H
#define PLUMB_FORMAT_GGUF_H

#include "plumb.h"

/* In place of magic and version: a file that is still being written (convert/part_file.h). */
#define PLUMB_GGUF_PART_MARK "PLUMBPRT"

enum {
    PLUMB_GGUF_DEFAULT_ALIGNMENT = 32, /* without general.alignment */
    PLUMB_GGUF_MOST_NAME = 63,         /* bytes of a tensor's name; ggml holds 64 with the NUL */
    PLUMB_GGUF_MOST_DIMS = 4
};

/* Types of metadata values, numbered as in the file. */
typedef enum plumb_gguf_type {
    PLUMB_GGUF_U8, PLUMB_GGUF_I8, PLUMB_GGUF_U16, PLUMB_GGUF_I16, PLUMB_GGUF_U32, PLUMB_GGUF_I32,
    PLUMB_GGUF_F32, PLUMB_GGUF_BOOL, PLUMB_GGUF_STRING, PLUMB_GGUF_ARRAY, PLUMB_GGUF_U64,
    PLUMB_GGUF_I64, PLUMB_GGUF_F64
} plumb_gguf_type;

/* Types of tensors, numbered as in the file; only those this project writes. */
typedef enum plumb_ggml_type {
    PLUMB_GGML_F32 = 0, PLUMB_GGML_I8 = 24, PLUMB_GGML_BF16 = 30, PLUMB_GGML_MXFP4 = 39
} plumb_ggml_type;

/* Its name, "MXFP4"; NULL for types of other projects. */
const char *plumb__ggml_type_name(int type);
/* Bytes of `elements` elements in a row; -1 where the type is unknown or the row has no whole
 * number of blocks. */
int64_t plumb__ggml_row_bytes(int type, int64_t elements);
/* Bytes of all rows of a tensor; -1 also for extents below 1 and where the sum is beyond 2^63. */
int64_t plumb__ggml_tensor_bytes(int type, int dims, const int64_t *shape);

/* `at` rounded up to the alignment, a power of two; -1 beyond 2^63. */
int64_t plumb__gguf_align(int64_t at, int64_t alignment);

/* ---- Reading ---------------------------------------------------------------------------------- */

typedef struct plumb_gguf_value {
    const char *key;        /* NUL-terminated, owned by the plumb_gguf */
    uint8_t type, item;     /* plumb_gguf_type; `item` of the elements when type is ARRAY */
    int64_t count;          /* elements of an array; bytes of a string; else 1 */
    int64_t offset;         /* of `bytes` in the file */
    /* Little-endian and unaligned: the number; the string without a NUL; the elements, where
     * strings are a u64 length and their bytes each. */
    const uint8_t *bytes;
    int64_t size;           /* of `bytes` */
} plumb_gguf_value;

typedef struct plumb_gguf_tensor {
    const char *name;       /* NUL-terminated, owned by the plumb_gguf */
    int32_t type, dims;     /* plumb_ggml_type */
    int64_t shape[PLUMB_GGUF_MOST_DIMS]; /* fastest first, as in the file; 1 where not used */
    int64_t offset, bytes;  /* of the payload, in the file */
} plumb_gguf_tensor;

typedef struct plumb_gguf {
    char *path;
    uint8_t *header;        /* [header_bytes] all that comes before the first payload's padding */
    int64_t header_bytes, data_offset, file_bytes, alignment;
    plumb_gguf_value *value;
    plumb_gguf_tensor *tensor;
    int64_t values, tensors;
    char *names;            /* of keys and tensors */
    const plumb_gguf_value **by_key;   /* both sorted, for looking up */
    const plumb_gguf_tensor **by_name;
} plumb_gguf;

/* Reads and checks the header of the open file `fd`, at most 1 GiB.  Refused, by place: another magic
 * or version; lengths beyond the file; unknown value types, nested arrays, BOOL bytes other than 0 and
 * 1, strings that are no UTF-8; keys or tensors twice; names that are empty, no UTF-8, hold a NUL or
 * are longer than PLUMB_GGUF_MOST_NAME (of keys: 65535 bytes); an alignment that is no u32 power of
 * two; empty tensors and shapes that overflow; types that plumb__ggml_row_bytes does not know; offsets
 * other than the running sum of padded payloads; a last payload beyond the file.  The header's memory
 * is bounded by what the file holds, whatever it claims.  Free it with plumb__gguf_free in any case. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_read(int fd, int64_t file_bytes, const char *path,
                                               plumb_gguf *gguf, plumb_error *err);
/* The same from a header in memory, which is copied: `size` bytes of a file of `file_bytes`.  `path`
 * stands in messages and may be NULL. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_parse(const uint8_t *header, int64_t size,
                                                int64_t file_bytes, const char *path,
                                                plumb_gguf *gguf, plumb_error *err);
void plumb__gguf_free(plumb_gguf *gguf);

/* By key or name; NULL when absent. */
const plumb_gguf_value *plumb__gguf_find(const plumb_gguf *gguf, const char *key);
const plumb_gguf_tensor *plumb__gguf_find_tensor(const plumb_gguf *gguf, const char *name);
/* Whole numbers of any integer type; PLUMB_ERROR_FORMAT naming the key when it is absent, of another
 * type or outside [least, most]. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_integer(const plumb_gguf *gguf, const char *key,
                                                  int64_t least, int64_t most, int64_t *value,
                                                  plumb_error *err);
/* A string; *text is not NUL-terminated and owned by the plumb_gguf. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_string(const plumb_gguf *gguf, const char *key,
                                                 const char **text, int64_t *size,
                                                 plumb_error *err);
/* An array of `item` elements, exactly `count` of them unless count is -1. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_array(const plumb_gguf *gguf, const char *key,
                                                plumb_gguf_type item, int64_t count,
                                                const plumb_gguf_value **value, plumb_error *err);

/* ---- Writing ---------------------------------------------------------------------------------- */

/* A header under construction, of one thread.  The first fault (no memory, a shape that the type does
 * not allow) is kept and told by plumb__gguf_writer_finish, so that a list of calls reads as a list.
 * What the reader refuses, names twice or too long among it, plumb__gguf_writer_finish refuses too: it
 * reads what it made.  general.alignment is written by the writer itself, first. */
typedef struct plumb_gguf_writer plumb_gguf_writer;

/* alignment: a power of two, at least 32. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_writer_create(int64_t alignment,
                                                        plumb_gguf_writer **writer,
                                                        plumb_error *err);
void plumb__gguf_writer_destroy(plumb_gguf_writer *writer);

void plumb__gguf_write_u32(plumb_gguf_writer *writer, const char *key, uint32_t value);
void plumb__gguf_write_f32(plumb_gguf_writer *writer, const char *key, float value);
void plumb__gguf_write_bool(plumb_gguf_writer *writer, const char *key, bool value);
void plumb__gguf_write_string(plumb_gguf_writer *writer, const char *key, const char *text,
                              int64_t size);
/* count elements of a fixed-size type, native in memory (hosts are little-endian). */
void plumb__gguf_write_array(plumb_gguf_writer *writer, const char *key, plumb_gguf_type item,
                             const void *items, int64_t count);
/* A value of another file, as it is there. */
void plumb__gguf_write_value(plumb_gguf_writer *writer, const plumb_gguf_value *value);
/* An array of strings, one by one: begin, then `count` times add. */
void plumb__gguf_write_strings_begin(plumb_gguf_writer *writer, const char *key, int64_t count);
void plumb__gguf_write_strings_add(plumb_gguf_writer *writer, const char *text, int64_t size);
/* Offsets follow from the order of the calls.  shape[dims], fastest first. */
void plumb__gguf_write_tensor(plumb_gguf_writer *writer, const char *name, plumb_ggml_type type,
                              int dims, const int64_t *shape);

/* The header as it will be in the file, up to the first payload (padding included): *header is
 * malloc'd, *bytes = offset of the first payload.  `offsets` (may be NULL) receives each tensor's
 * payload offset in the file, *file_bytes the size of the whole file: the last payload is padded to
 * the alignment too. */
PLUMB_MUST_CHECK plumb_status plumb__gguf_writer_finish(plumb_gguf_writer *writer,
                                                        uint8_t **header, int64_t *bytes,
                                                        int64_t *offsets, int64_t *file_bytes,
                                                        plumb_error *err);

#endif
