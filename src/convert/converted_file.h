/* The layout of a converted file: which tensors it has, in which form and order, and which released
 * tensors each is made of (docs/convert.md).  The same list serves writing one, packing one and
 * auditing one. */
#ifndef PLUMB_CONVERT_CONVERTED_FILE_H
#define PLUMB_CONVERT_CONVERTED_FILE_H

#include "format/checkpoint.h"
#include "format/stored_units.h"

/* Released tensors whose units are stored together; one expert of a stack. */
typedef struct plumb_stored_part {
    const plumb_tensor *codes;
    const plumb_tensor *scales; /* inside the units, or NULL */
} plumb_stored_part;

typedef struct plumb_stored_tensor {
    char name[64];
    int form, type;             /* plumb_stored_form, plumb_ggml_type */
    int dims;
    int64_t shape[3];           /* fastest first */
    plumb_stored_part *part;    /* [parts], of equal size */
    int64_t parts;
    const plumb_tensor *tiles;  /* scales of an FP8 matrix, which are a stored tensor of their own */
    int64_t offset, bytes;      /* of the payload in the file */
} plumb_stored_tensor;

typedef struct plumb_converted_file {
    const plumb_checkpoint *checkpoint; /* whose released tensors it holds */
    plumb_stored_tensor *tensor;        /* [count] in file order */
    int64_t count;
    plumb_stored_part *parts;           /* of all tensors */
} plumb_converted_file;

/* Lists what a file with all tensors of the checkpoint holds, each in the form in which the checkpoint
 * has it (FP8 codes and F32 numbers of a folder as released); offsets are those of a converted
 * checkpoint and 0 otherwise.  The checkpoint is kept. */
PLUMB_MUST_CHECK plumb_status plumb__converted_file_list(const plumb_checkpoint *checkpoint,
                                                         plumb_converted_file *file,
                                                         plumb_error *err);
void plumb__converted_file_free(plumb_converted_file *file);
/* Chooses the form of a dense matrix; type and bytes follow. */
void plumb__stored_tensor_set_form(plumb_stored_tensor *tensor, int form);
/* Is it a matrix of numbers that has a choice of forms: FP8 codes, or float32? */
bool plumb__stored_tensor_has_choice(const plumb_stored_tensor *tensor);
/* Units of each part. */
plumb_stored_units plumb__stored_tensor_units(const plumb_stored_tensor *tensor);

#endif
