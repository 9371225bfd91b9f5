/* What stands before the payloads of a converted file, and the digests in it.
 *
 * XXH3-128 of every released tensor's bytes (in ascending order of released names) and of every stored
 * payload (in file order), XXH3-64 of the header itself by blocks of 64 KiB with these block digests
 * read as zeros.  While a file is being written, digests that are zero belong to tensors that are not
 * there yet. */
#ifndef PLUMB_CONVERT_CONVERTED_HEADER_H
#define PLUMB_CONVERT_CONVERTED_HEADER_H

#include "convert/converted_file.h"
#include "format/gguf_seal.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* u64 arrays; of 128-bit digests the low half first. */
#define PLUMB_KEY_SOURCE_DIGESTS "plumb.digest.source"
#define PLUMB_KEY_STORED_DIGESTS "plumb.digest.stored"
/* String: f32, bf16, fp8, as asked for; the tensors' types tell what became of each. */
#define PLUMB_KEY_DENSE "plumb.dense"

typedef struct plumb_converted_header {
    uint8_t *bytes;       /* [size] */
    int64_t size;         /* as built, up to the first payload; as read, text_bytes */
    int64_t file_bytes;
    int64_t text_bytes;   /* without the padding */
    int64_t source_at, sources; /* where the digests begin, how many */
    int64_t stored_at, stored;
    int64_t blocks_at, blocks;  /* of the header's own */
} plumb_converted_header;

/* Adds the metadata of one kind of source to a header under construction. */
typedef plumb_status (*plumb_metadata_fn)(void *user, plumb_gguf_writer *writer, plumb_error *err);

/* Builds the header and sets the tensors' offsets.  All digests are zero. */
PLUMB_MUST_CHECK plumb_status plumb__converted_header_build(plumb_converted_file *file,
                                                            plumb_metadata_fn metadata, void *user,
                                                            plumb_converted_header *header,
                                                            plumb_error *err);
/* The header of a converted checkpoint; its own digests are checked, and that there are as many others as
 * tensors. */
PLUMB_MUST_CHECK plumb_status plumb__converted_header_read(const plumb_checkpoint *checkpoint,
                                                           plumb_converted_header *header,
                                                           plumb_error *err);
void plumb__converted_header_free(plumb_converted_header *header);

XXH128_hash_t plumb__source_digest(const plumb_converted_header *header, int64_t tensor);
XXH128_hash_t plumb__stored_digest(const plumb_converted_header *header, int64_t tensor);
void plumb__set_source_digest(plumb_converted_header *header, int64_t tensor, XXH128_hash_t digest);
void plumb__set_stored_digest(plumb_converted_header *header, int64_t tensor, XXH128_hash_t digest);
bool plumb__digest_is_set(XXH128_hash_t digest);
/* Computes the header's own digests, when all others are there. */
PLUMB_MUST_CHECK plumb_status plumb__converted_header_seal(plumb_converted_header *header,
                                                           plumb_error *err);

#endif
