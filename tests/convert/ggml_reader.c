/* Lets ggml open a GGUF file, decodes every tensor with ggml's own functions, and compares the
 * numbers bit for bit with what they must be.
 *
 *   ggml_reader LIBRARY FILE --released FOLDER
 *       a converted file: the numbers of the released folder, decoded here from the released bytes
 *   ggml_reader LIBRARY FILE --values VALUES
 *       any file: the float32 numbers (of I8: the bytes) of its tensors, one after the other
 *
 * Exit status 0: all equal; 1: the first difference is on stderr, by tensor, row and column; 2: a
 * file that cannot be read, or a library that is not ggml's.
 *
 * One difference is ggml's way and allowed: its table of e2m1 codes holds integers, so code 8, -0,
 * decodes to +0 in MXFP4. */
#include "ggml_library.h"

#include "arith/formats.h"
#include "format/checkpoint.h"
#include "format/gguf.h"
#include "format/gguf_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILE = 32 }; /* elements that share a scale */

/* ---- A file as ggml sees it ---------------------------------------------------------------- */

typedef struct foreign_tensor {
    const char *name;
    int type;
    const int64_t *shape; /* [GGML_DIMS], fastest first */
    int64_t rows, row_bytes;
    const uint8_t *data;
    int64_t rows_compared; /* rows of tensors that are shared by several count once for each */
    int64_t parts;         /* released tensors that were found in it */
    ggml_to_float to_float;
} foreign_tensor;

typedef struct foreign_file {
    const ggml_library *ggml;
    void *gguf, *context;
    foreign_tensor *tensor;
    int64_t tensors;
    int64_t values, bytes; /* compared */
} foreign_file;

static bool describe(foreign_file *file, int64_t i) {
    const ggml_library *ggml = file->ggml;
    foreign_tensor *t = &file->tensor[i];
    t->name = ggml->gguf_get_tensor_name(file->gguf, i);
    t->type = ggml->gguf_get_tensor_type(file->gguf, i);
    t->shape = ggml->gguf_get_tensor_ne(file->gguf, i);
    t->rows = t->shape[1] * t->shape[2] * t->shape[3];
    t->row_bytes = (int64_t)ggml->gguf_get_tensor_size(file->gguf, i) / t->rows;
    t->to_float = ggml->ggml_get_type_traits(t->type)->to_float;
    void *tensor = ggml->ggml_get_tensor(file->context, t->name);
    t->data = tensor ? ggml->ggml_get_data(tensor) : NULL;
    bool known = plumb__ggml_row_bytes(t->type, t->shape[0]) == t->row_bytes && t->data;
    if (!known) fprintf(stderr, "%s: type %d, or no payload\n", t->name, t->type);
    return known;
}

static bool open_file(foreign_file *file, const char *path) {
    const ggml_library *ggml = file->ggml;
    file->gguf = ggml->gguf_init_from_file(path, (gguf_init_params){.tensors = &file->context});
    if (!file->gguf || !file->context) {
        fprintf(stderr, "%s: ggml does not open it\n", path);
        return false;
    }
    file->tensors = ggml->gguf_get_n_tensors(file->gguf);
    file->tensor = calloc((size_t)file->tensors + 1, sizeof *file->tensor);
    bool good = file->tensor && ggml->gguf_get_version(file->gguf) == 3;
    for (int64_t i = 0; good && i < file->tensors; i++) good = describe(file, i);
    return good;
}

static void close_file(foreign_file *file) {
    if (file->gguf) file->ggml->gguf_free(file->gguf);
    if (file->context) file->ggml->ggml_free(file->context);
    free(file->tensor);
}

static void decode_row(const foreign_tensor *t, int64_t row, float *values) {
    const uint8_t *stored = t->data + row * t->row_bytes;
    if (t->to_float) t->to_float(stored, values, t->shape[0]);
    else memcpy(values, stored, (size_t)t->row_bytes); /* F32 */
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static bool same_number(const foreign_tensor *t, float theirs, float ours) {
    uint32_t a = plumb__bits_of(theirs), b = plumb__bits_of(ours);
    return a == b || (t->type == PLUMB_GGML_MXFP4 && a == 0 && b == 0x80000000u);
}

static bool compare_values(foreign_file *file, foreign_tensor *t, int64_t row, const float *theirs,
                           const float *ours) {
    for (int64_t i = 0; i < t->shape[0]; i++)
        if (!same_number(t, theirs[i], ours[i])) {
            fprintf(stderr, "%s: row %" PRId64 ", column %" PRId64 ": ggml reads %a, not %a\n",
                    t->name, row, i, (double)theirs[i], (double)ours[i]);
            return false;
        }
    t->rows_compared++;
    file->values += t->shape[0];
    return true;
}

/* Bytes [begin, begin + size) of a row. */
static bool compare_bytes(foreign_file *file, foreign_tensor *t, int64_t row, int64_t begin,
                          int64_t size, const uint8_t *ours) {
    const uint8_t *theirs = t->data + row * t->row_bytes + begin;
    for (int64_t i = 0; i < size; i++)
        if (theirs[i] != ours[i]) {
            fprintf(stderr, "%s: row %" PRId64 ", byte %" PRId64 ": ggml reads %d, not %d\n",
                    t->name, row, begin + i, theirs[i], ours[i]);
            return false;
        }
    t->rows_compared++;
    file->bytes += size;
    return true;
}

/* ---- A file of known numbers ---------------------------------------------------------------- */

static bool compare_known_row(foreign_file *file, foreign_tensor *t, int64_t row, FILE *known,
                              float *theirs, float *ours) {
    size_t n = (size_t)t->shape[0], item = t->type == PLUMB_GGML_I8 ? 1 : sizeof *ours;
    if (fread(ours, item, n, known) != n) {
        fprintf(stderr, "%s: row %" PRId64 ": no numbers to compare with\n", t->name, row);
        return false;
    }
    if (t->type == PLUMB_GGML_I8)
        return compare_bytes(file, t, row, 0, t->shape[0], (const uint8_t *)ours);
    decode_row(t, row, theirs);
    return compare_values(file, t, row, theirs, ours);
}

static bool compare_known(foreign_file *file, const char *path) {
    FILE *known = fopen(path, "rb");
    bool equal = known != NULL;
    for (int64_t i = 0; equal && i < file->tensors; i++) {
        foreign_tensor *t = &file->tensor[i];
        float *theirs = malloc((size_t)t->shape[0] * sizeof *theirs);
        float *ours = malloc((size_t)t->shape[0] * sizeof *ours);
        equal = theirs && ours;
        for (int64_t row = 0; equal && row < t->rows; row++)
            equal = compare_known_row(file, t, row, known, theirs, ours);
        free(theirs);
        free(ours);
    }
    if (equal && fgetc(known) != EOF) {
        fprintf(stderr, "%s: more numbers than in the file\n", path);
        equal = false;
    }
    if (known) (void)fclose(known);
    return equal;
}

/* ---- Released tensors ----------------------------------------------------------------------- */

/* A released matrix in memory, and where it must be in the file. */
typedef struct released {
    const plumb_tensor *tensor;
    uint8_t *bytes, *scales;  /* scales: of codes whose values are compared; else NULL */
    int64_t rows, columns;    /* columns of numbers, not of bytes */
    int64_t row_bytes, tiles; /* released bytes and scales of a row */
    plumb_gguf_name name;
} released;

static bool fail(const plumb_error *err) {
    char line[1024];
    plumb_error_line(err, line, sizeof line);
    fprintf(stderr, "%s\n", line);
    return false;
}

static uint8_t *load(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor) {
    plumb_error err;
    uint8_t *bytes = malloc((size_t)tensor->bytes + 1);
    if (!bytes) return NULL;
    if (plumb__checkpoint_read(checkpoint, tensor, 0, tensor->bytes, bytes, &err) == PLUMB_OK)
        return bytes;
    (void)fail(&err);
    free(bytes);
    return NULL;
}

/* The scales of the codes "NAME.weight" are "NAME.scale". */
static uint8_t *load_scales(const plumb_checkpoint *checkpoint, const plumb_tensor *codes,
                            int64_t *tiles) {
    int stem = (int)(strlen(codes->name) - strlen(".weight"));
    const plumb_tensor *scale = plumb__checkpoint_find(checkpoint, "%.*s.scale", stem, codes->name);
    if (!scale) return NULL;
    *tiles = scale->shape[1];
    return load(checkpoint, scale);
}

static bool load_released(const plumb_checkpoint *checkpoint, const plumb_tensor *tensor,
                          released *r) {
    *r = (released){.tensor = tensor};
    if (!plumb__gguf_name_of(tensor->name, &r->name)) {
        fprintf(stderr, "%s: no name in a converted file\n", tensor->name);
        return false;
    }
    r->rows = tensor->rank == 1 ? 1 : tensor->shape[0];
    r->row_bytes = tensor->bytes / r->rows;
    r->columns = tensor->rank == 1 ? tensor->shape[0] : tensor->shape[1];
    if (tensor->dtype == PLUMB_DTYPE_I8) r->columns *= 2;
    bool codes = tensor->dtype == PLUMB_DTYPE_I8 || tensor->dtype == PLUMB_DTYPE_F8_E4M3;
    if (codes && !r->name.in_rows) r->scales = load_scales(checkpoint, tensor, &r->tiles);
    r->bytes = load(checkpoint, tensor);
    return r->bytes && (!codes || r->name.in_rows || r->scales);
}

static void free_released(released *r) {
    free(r->bytes);
    free(r->scales);
}

static float released_number(const released *r, int64_t row, int64_t i) {
    const uint8_t *bytes = r->bytes + row * r->row_bytes;
    uint16_t half;
    float number;
    switch (r->tensor->dtype) {
    case PLUMB_DTYPE_BF16:
        memcpy(&half, bytes + 2 * i, sizeof half);
        return plumb__bf16_decode(half);
    case PLUMB_DTYPE_F32:
        memcpy(&number, bytes + 4 * i, sizeof number);
        return number;
    case PLUMB_DTYPE_F8_E4M3: /* a scale per 32 rows and 32 columns */
        return plumb__e4m3_decode(bytes[i]) *
               plumb__power_of_two(r->scales[row / TILE * r->tiles + i / TILE] - 127);
    default: /* e2m1 pairs, a scale per row and 32 columns */
        return plumb__e2m1_decode(bytes[i / 2] >> (4 * (i & 1)) & 15) *
               plumb__power_of_two(r->scales[row * r->tiles + i / TILE] - 127);
    }
}

/* Are the tensor's rows where they belong: with this width, as this slice? */
static bool fits(const foreign_tensor *t, const released *r) {
    int64_t slice = r->name.expert < 0 ? 0 : r->name.expert;
    bool stacked = r->name.expert >= 0;
    return (r->name.in_rows ? t->shape[0] > r->row_bytes : t->shape[0] == r->columns) &&
           t->shape[1] == r->rows && (stacked ? slice < t->shape[2] : t->shape[2] == 1) &&
           t->shape[3] == 1;
}

static bool compare_rows(foreign_file *file, foreign_tensor *t, const released *r) {
    int64_t first = r->name.expert < 0 ? 0 : r->name.expert * r->rows;
    float *theirs = malloc((size_t)r->columns * sizeof *theirs);
    float *ours = malloc((size_t)r->columns * sizeof *ours);
    bool equal = theirs && ours;
    for (int64_t row = 0; equal && row < r->rows; row++) {
        if (t->type == PLUMB_GGML_I8) { /* codes and scales, in tables the codes first */
            bool behind = r->name.in_rows && r->tensor->dtype == PLUMB_DTYPE_F8_E8M0;
            equal = compare_bytes(file, t, row, behind ? t->row_bytes - r->row_bytes : 0,
                                  r->row_bytes, r->bytes + row * r->row_bytes);
            continue;
        }
        decode_row(t, first + row, theirs);
        for (int64_t i = 0; i < r->columns; i++) ours[i] = released_number(r, row, i);
        equal = compare_values(file, t, first + row, theirs, ours);
    }
    free(theirs);
    free(ours);
    return equal;
}

static bool compare_tensor(foreign_file *file, const plumb_checkpoint *checkpoint,
                           const plumb_tensor *tensor) {
    released r;
    bool equal = load_released(checkpoint, tensor, &r);
    int64_t i = equal ? file->ggml->gguf_find_tensor(file->gguf, r.name.name) : -1;
    /* Scales of experts are part of the values of their codes. */
    bool of_codes = equal && r.name.expert >= 0 && tensor->dtype == PLUMB_DTYPE_F8_E8M0;
    if (equal && i < 0) {
        fprintf(stderr, "%s: ggml finds no %s\n", tensor->name, r.name.name);
        equal = false;
    } else if (equal && !of_codes) {
        foreign_tensor *t = &file->tensor[i];
        equal = fits(t, &r);
        if (!equal) fprintf(stderr, "%s: another shape in %s\n", tensor->name, t->name);
        t->parts++;
        equal = equal && compare_rows(file, t, &r);
    }
    free_released(&r);
    return equal;
}

/* Every row of every tensor of the file must have been compared: a table's rows twice, with codes
 * and with scales, all others once. */
static bool nothing_left(const foreign_file *file) {
    for (int64_t i = 0; i < file->tensors; i++) {
        const foreign_tensor *t = &file->tensor[i];
        bool table = t->type == PLUMB_GGML_I8 && t->parts == 2;
        if (t->rows_compared == t->rows * (table ? 2 : 1)) continue;
        fprintf(stderr, "%s: %" PRId64 " of %" PRId64 " rows are released ones\n", t->name,
                t->rows_compared, t->rows);
        return false;
    }
    return true;
}

static bool compare_released(foreign_file *file, const char *folder) {
    plumb_error err;
    plumb_checkpoint *checkpoint = NULL;
    if (plumb__checkpoint_open(folder, NULL, NULL, &checkpoint, &err) != PLUMB_OK)
        return fail(&err);
    bool equal = plumb__checkpoint_count(checkpoint) > 0;
    for (int64_t i = 0; equal && i < plumb__checkpoint_count(checkpoint); i++)
        equal = compare_tensor(file, checkpoint, plumb__checkpoint_tensor(checkpoint, i));
    plumb__checkpoint_close(checkpoint);
    return equal && nothing_left(file);
}

int main(int argc, char **argv) {
    bool released_folder = argc == 5 && !strcmp(argv[3], "--released");
    if (!released_folder && !(argc == 5 && !strcmp(argv[3], "--values"))) {
        fprintf(stderr, "usage: ggml_reader LIBRARY FILE --released FOLDER | --values VALUES\n");
        return 2;
    }
    ggml_library ggml;
    foreign_file file = {.ggml = &ggml};
    int status = 2;
    if (ggml_library_open(&ggml, argv[1]) && open_file(&file, argv[2])) {
        bool equal =
            released_folder ? compare_released(&file, argv[4]) : compare_known(&file, argv[4]);
        status = equal ? 0 : 1;
        printf("ggml %s (%s): %" PRId64 " tensors, %" PRId64 " values and %" PRId64 " bytes %s\n",
               ggml.ggml_version(), ggml.ggml_commit(), file.tensors, file.values, file.bytes,
               equal ? "equal" : "equal before a difference");
    }
    close_file(&file);
    ggml_library_close(&ggml);
    return status;
}
