/* The header of one safetensors file (spec: checkpoint.md section 2). */
#ifndef PLUMB_FORMAT_SAFETENSORS_H
#define PLUMB_FORMAT_SAFETENSORS_H

#include "format/tensor.h"

/* A growing list of tensors over all shards; start from {0}, free() items. */
typedef struct plumb_tensor_list {
    plumb_tensor *items;
    int64_t count, capacity;
} plumb_tensor_list;

/* Reads the header of the open file `fd` of `file_bytes` bytes and appends its tensors.  *text
 * receives the header's text, which holds the tensors' names: free() it after them.  Offsets are
 * of the file; tensor_class is left 0.  Refused: anything that is not such a header, dtypes other
 * than plumb_dtype, ranks other than 1 and 2, empty tensors, byte ranges that do not fit dtype and
 * shape, that overlap or lie outside the file, and bytes behind the last tensor.  Gaps between
 * tensors are fine. */
PLUMB_MUST_CHECK plumb_status plumb__safetensors_read(int fd, int64_t file_bytes, const char *path,
                                                      uint16_t shard, plumb_tensor_list *list,
                                                      char **text, plumb_error *err);

/* The same from a header in memory: header[size] must be a NUL, and names will point into header.
 * `data_bytes` is what the file holds after it. */
PLUMB_MUST_CHECK plumb_status plumb__safetensors_parse(char *header, int64_t size,
                                                       int64_t data_bytes, const char *path,
                                                       uint16_t shard, plumb_tensor_list *list,
                                                       plumb_error *err);

/* Names of older exports become the reference's own, in place: no "model." prefix, attn for
 * self_attn, ffn for mlp (outside vision), scale for weight_scale_inv, bias for
 * e_score_correction_bias.  Never longer than before. */
void plumb__safetensors_modern_name(char *name);

#endif
