/* Which release a model is, and by what that is known.
 *
 * Two are published: September's, specified down to the digests of config and index, and 1017, of
 * which only repository and revision are known.  They have the same geometry, and nothing published
 * says that their configs differ; so a config never proves which weights lie beside it, and every
 * answer comes with its evidence (docs/convert.md, "Releases"). */
#ifndef PLUMB_CONVERT_REVISION_H
#define PLUMB_CONVERT_REVISION_H

#include "format/checkpoint.h"

typedef enum plumb_release {
    PLUMB_RELEASE_UNKNOWN,
    PLUMB_RELEASE_SEPTEMBER,
    PLUMB_RELEASE_1017
} plumb_release;

/* From the strongest. */
typedef enum plumb_release_evidence {
    PLUMB_EVIDENCE_NONE,
    PLUMB_EVIDENCE_SNAPSHOT, /* repository and revision in the path of a Hugging Face cache */
    PLUMB_EVIDENCE_RECEIPT,  /* recorded when it was audited, the files unchanged since */
    PLUMB_EVIDENCE_FILE,     /* stored in a converted file */
    PLUMB_EVIDENCE_CONFIG    /* the digest of config.json, shapes and all */
} plumb_release_evidence;

typedef struct plumb_revision {
    plumb_release release;
    plumb_release_evidence evidence;
    char config_sha256[65];
    char index_sha256[65]; /* "": no index */
    char words[192];       /* the evidence, as a phrase that is fit to be shown */
} plumb_revision;

/* What stores it in a converted file. */
#define PLUMB_KEY_RELEASE "plumb.release"
#define PLUMB_KEY_RELEASE_EVIDENCE "plumb.release.evidence"

/* "September", "1017", "unknown". */
const char *plumb__release_name(plumb_release release);

/* Of an open model, whose shapes are therefore those of its config.  Reads config, index, and the
 * receipt if there is one; a receipt that is damaged or of other files is no evidence. */
PLUMB_MUST_CHECK plumb_status plumb__revision_detect(const plumb_checkpoint *checkpoint,
                                                     plumb_revision *revision, plumb_error *err);

/* Detects it and adds name and evidence to the metadata of a converted file. */
PLUMB_MUST_CHECK plumb_status plumb__revision_write(plumb_gguf_writer *writer,
                                                    const plumb_checkpoint *checkpoint,
                                                    plumb_error *err);

/* The tables behind it.  A snapshot's revision and a digest may be longer than what is known of
 * them. */
plumb_release plumb__release_of_snapshot(const char *repository_url, const char *revision);
plumb_release plumb__release_of_config(const char *config_sha256, int64_t config_bytes);

#endif
