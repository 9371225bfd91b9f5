/* Released tensor names and the names they have in a converted file (docs/convert.md).
 *
 * One table of patterns.  Most tensors keep a place of their own; the codes of a layer's experts
 * share one tensor with their scales, [k, n, experts]; an Engram table's codes and scales share
 * rows. */
#ifndef PLUMB_FORMAT_GGUF_NAMES_H
#define PLUMB_FORMAT_GGUF_NAMES_H

#include "plumb.h"

typedef struct plumb_gguf_name {
    char name[64];    /* in the converted file */
    int64_t expert;   /* slice of the stacked tensor; -1: the tensor is not stacked */
    bool in_rows;     /* codes or scales of an Engram table */
} plumb_gguf_name;

/* Of a released name, "layers.3.attn.wq_a.weight" -> "blk.3.attn_q_a.weight"; false when no pattern
 * has it.  Scales of dense matrices: "layers.3.attn.wq_a.scale" -> "plumb.blk.3.attn_q_a.scale". */
bool plumb__gguf_name_of(const char *released, plumb_gguf_name *name);

#endif
