/* Reading all of a folder: every payload of every tensor, past the page cache, for NaN and for what
 * it should be.  What it should be is told by an earlier receipt, as a digest of the whole tensor,
 * or by another folder, byte by byte. */
#ifndef PLUMB_CONVERT_FOLDER_AUDIT_H
#define PLUMB_CONVERT_FOLDER_AUDIT_H

#include "convert/audit.h"
#include "convert/receipt.h"
#include "format/checkpoint.h"

/* Memory is 8 MiB for each job, twice that with a source.
 *
 * The first difference, by the order of the files, is an error: against a receipt it names tensor,
 * file and the range of its bytes; against a source also row, column and both values.  Tensors that
 * only one side has are errors too.  `receipt` may be NULL.
 *
 * A sample is about 1 % of the bytes, the same one every time; since a receipt has digests of whole
 * tensors, a sample that is compared with one consists of these, none larger than 1 % of the model
 * unless there is no other.
 *
 * digests (may be NULL, and not with options->sample): one for each tensor of the checkpoint, in
 * its order. */
PLUMB_MUST_CHECK plumb_status plumb__audit_folder(const plumb_checkpoint *checkpoint,
                                                  const plumb_receipt *receipt,
                                                  const plumb_audit_options *options,
                                                  XXH128_hash_t *digests,
                                                  plumb_audit_result *result, plumb_error *err);

#endif
