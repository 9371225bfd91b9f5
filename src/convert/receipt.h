/* The receipt of an audit: what every payload of a model was when all of it was read, in a JSON
 * file beside the model (docs/convert.md, "Receipts").  Later audits compare with it; and as long
 * as no file's size or modification time differs from it, nobody has written to the model since.
 *
 *   {"plumb_receipt": 1, "made": UTC, "release": NAME, "evidence": PHRASE,
 *    "files": {NAME: {"bytes": N, "mtime_ns": N, "digest": HEX}},   digest: not of shards
 *    "tensors": {NAME: HEX},                                        of released bytes
 *    "digest": HEX}                       of the bytes before this line
 *
 * A converted file has its tensors' digests inside: its receipt lists none, and one file.
 *
 * Digests are XXH3-128: they find damage, they are no proof against forgery.  A receipt is used by
 * one thread at a time; looking tensors up is thread-safe. */
#ifndef PLUMB_CONVERT_RECEIPT_H
#define PLUMB_CONVERT_RECEIPT_H

#include "format/checkpoint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct plumb_receipt plumb_receipt;

/* 32 hexadecimal digits. */
typedef struct plumb_digest_text {
    char hex[33];
} plumb_digest_text;
plumb_digest_text plumb__digest_text(XXH128_hash_t digest);

/* Where the receipt of this model is: MODEL.audit.json, without the slashes that end MODEL.  NULL
 * without memory; free() it. */
char *plumb__receipt_path(const char *model);
/* A link that leads nowhere is true, so that reading it says what is wrong. */
bool plumb__receipt_exists(const char *path);

/* ---- Making one ---- */

/* An empty one, made now. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_create(plumb_receipt **receipt, plumb_error *err);
void plumb__receipt_destroy(plumb_receipt *receipt);
/* Notes size and modification time of every file that the model is made of; those beside the shards
 * (config, index, tokenizer) are read for their digests. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_add_files(plumb_receipt *receipt,
                                                       const plumb_checkpoint *checkpoint,
                                                       plumb_error *err);
/* digests: of all its tensors, in its order. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_add_tensors(plumb_receipt *receipt,
                                                         const plumb_checkpoint *checkpoint,
                                                         const XXH128_hash_t *digests,
                                                         plumb_error *err);
/* Which release this is, and by what that is known (revision.h). */
PLUMB_MUST_CHECK plumb_status plumb__receipt_set_release(plumb_receipt *receipt,
                                                         const char *release, const char *evidence,
                                                         plumb_error *err);
/* Writes it whole or not at all, in place of an older one. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_write(const plumb_receipt *receipt, const char *path,
                                                   plumb_error *err);

/* ---- Reading one ---- */

/* Refuses what is damaged: whose own digest differs, or which says anything impossible. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_read(const char *path, plumb_receipt **receipt,
                                                  plumb_error *err);
/* The same from memory; `path` only names the source in errors. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_parse(const char *text, size_t size, const char *path,
                                                   plumb_receipt **receipt, plumb_error *err);
/* All of these are owned by the receipt. */
const char *plumb__receipt_made(const plumb_receipt *receipt);
const char *plumb__receipt_release(const plumb_receipt *receipt);
const char *plumb__receipt_evidence(const plumb_receipt *receipt);
int64_t plumb__receipt_tensors(const plumb_receipt *receipt);
/* 32 hexadecimal digits, or NULL: no such tensor. */
const char *plumb__receipt_digest(const plumb_receipt *receipt, const char *tensor);

/* ---- Comparing ---- */

/* Every file of the receipt is there with its size and modification time, and so is no other that a
 * model is made of.  Reads no content. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_check_unchanged(const plumb_receipt *receipt,
                                                             const char *model, plumb_error *err);
/* The files beside the shards are those of `then`, by content; times do not matter. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_compare_small_files(const plumb_receipt *now,
                                                                 const plumb_receipt *then,
                                                                 const char *model,
                                                                 plumb_error *err);
/* For whoever will only run audited models: there is a receipt, intact, and the files are
 * unchanged. */
PLUMB_MUST_CHECK plumb_status plumb__receipt_require(const char *model, plumb_error *err);

#endif
