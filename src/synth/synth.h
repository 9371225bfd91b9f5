/* Synthetic checkpoints in the released layout (docs/checkpoint.md sections 2 to 4).
 *
 * Four small variants for tests and the released geometry, whole or cut to its first layers.  Every
 * byte follows from (variant, options, seed): files are the same on every machine.  A number
 * depends on the seed, its tensor's name and its index alone, so a cut has the weights of the
 * whole. */
#ifndef PLUMB_SYNTH_SYNTH_H
#define PLUMB_SYNTH_SYNTH_H

#include "plumb.h"

typedef enum plumb_synth_variant {
    PLUMB_SYNTH_TINY,    /* 6 layers that meet every kind of layer */
    PLUMB_SYNTH_DEEP40,  /* the released topology, narrow */
    PLUMB_SYNTH_DSPARK,  /* tiny and three draft stages */
    PLUMB_SYNTH_VISION,  /* tiny and a two-layer image tower */
    PLUMB_SYNTH_RELEASE, /* the released geometry: 510 GB */
    PLUMB_SYNTH_VARIANTS
} plumb_synth_variant;

/* What is left out of the files: a hole takes no room and reads as zeros, which are zero codes with
 * scales of 2^-127. */
typedef enum plumb_synth_payload {
    PLUMB_SYNTH_FULL,          /* nothing */
    PLUMB_SYNTH_SPARSE_TABLES, /* the Engram tables, 203 of 510 GB; the rest as in the full payload */
    PLUMB_SYNTH_SPARSE,        /* all but the backbone's BF16 and F32 tensors: embedding, head,
                                * routers, norms, ...; activations, routing and logits look alive */
    PLUMB_SYNTH_HOLLOW         /* everything: for tools that read no payload */
} plumb_synth_payload;

const char *plumb__synth_variant_name(int variant);
/* The variant of that name, or -1. */
int plumb__synth_variant_find(const char *name);

typedef struct plumb_synth_options {
    plumb_synth_variant variant;
    const char *folder; /* made if absent; must be empty unless `force` */
    uint64_t seed;
    /* release only: keep layers 0..layers-1, no draft stages, no vision; 0 keeps everything.
     * With a full payload the Engram tables shrink to buckets of about 100,000 rows; holes keep
     * their released size. */
    int64_t layers;
    plumb_synth_payload payload; /* release only: other than PLUMB_SYNTH_FULL */
    bool force;  /* write into a folder that has files; those of the same name are replaced */
    int threads; /* 0: one per core; never changes a byte */
    /* Bytes written and to be written, holes not counted; nonzero cancels.  May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t total);
    void *progress_user;
} plumb_synth_options;

/* Writes the checkpoint.  Refuses a folder with files, too little disk space, and options that do
 * not fit the variant.  All files have temporary names until the last is complete; after a failure
 * or cancellation (PLUMB_ERROR_CANCELLED) they are removed. */
PLUMB_MUST_CHECK plumb_status plumb__synth_write(const plumb_synth_options *options,
                                                 plumb_error *err);

#endif
