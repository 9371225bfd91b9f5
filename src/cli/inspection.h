/* What `plumb inspect` finds out about a checkpoint, before any of it is printed. */
#ifndef PLUMB_CLI_INSPECTION_H
#define PLUMB_CLI_INSPECTION_H

#include "convert/convert.h"
#include "convert/revision.h"
#include "cli/options.h"
#include "format/checkpoint.h"

typedef struct cli_tally {
    int64_t tensors, bytes;
    int64_t parameters; /* weights, not their scales; two to a byte of packed FP4 */
} cli_tally;

/* Of a converted file. */
typedef struct cli_stored {
    int64_t tensors, file_bytes;          /* 0 tensors: a folder */
    int64_t matrices[PLUMB_DENSE_COUNT];  /* dense ones, by what they are stored as */
} cli_stored;

/* What is known of the digests without reading any payload.  Damage to what holds them is told first. */
typedef enum cli_digest_state {
    CLI_DIGESTS_NONE,      /* a folder without a receipt */
    CLI_DIGESTS_INTACT,    /* in the header of a converted file without a receipt */
    CLI_DIGESTS_UNCHANGED, /* the files are those of the receipt, by size and time */
    CLI_DIGESTS_CHANGED,
    CLI_DIGESTS_UNUSABLE,  /* a receipt that is damaged or cannot be read */
    CLI_DIGEST_STATES
} cli_digest_state;

typedef struct cli_digests {
    cli_digest_state state;
    char words[512];
} cli_digests;

typedef struct cli_inspection {
    cli_tally dtypes[PLUMB_DTYPE_COUNT], classes[PLUMB_CLASS_COUNT], total;
    int64_t resident_bytes; /* dense backbone and head: what every token reads */
    plumb_revision revision;
    cli_stored stored;
    cli_digests digests;
    bool has_draft, has_vision, has_tokenizer, has_token_map;
} cli_inspection;

PLUMB_MUST_CHECK plumb_status cli_inspect(const plumb_checkpoint *checkpoint,
                                          cli_inspection *inspection, plumb_error *err);

/* The report for programs; the exit status. */
int cli_inspection_print_json(const cli_options *options, const plumb_checkpoint *checkpoint,
                              const cli_inspection *inspection);

/* Consecutive layers that attend alike. */
typedef struct cli_layer_span {
    int64_t first, last;
    int64_t ratio, kv_source, index_source; /* sources -1: none */
} cli_layer_span;

/* The span that begins at layer `first`. */
cli_layer_span cli_layer_span_at(const plumb_model_config *config, int64_t first);

#endif
