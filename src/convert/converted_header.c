#include "convert/converted_header.h"
#include "format/model_files.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* ---- Building ---------------------------------------------------------------------------------- */

static plumb_status write_zeros(plumb_gguf_writer *writer, const char *key, int64_t count,
                                plumb_error *err) {
    uint64_t *zeros = calloc((size_t)count, sizeof *zeros);
    if (!zeros) return plumb__fail_memory(err, key, (size_t)count * sizeof *zeros);
    plumb__gguf_write_array(writer, key, PLUMB_GGUF_U64, zeros, count);
    free(zeros);
    return PLUMB_OK;
}

/* Writes a header with room for so many digests of its own. */
static plumb_status write_header(const plumb_converted_file *file, plumb_metadata_fn metadata,
                                 void *user, int64_t blocks, plumb_converted_header *header,
                                 int64_t *offsets, plumb_error *err) {
    plumb_gguf_writer *writer;
    plumb_status status = plumb__gguf_writer_create(PLUMB_GGUF_ALIGNMENT, &writer, err);
    if (status != PLUMB_OK) return status;
    status = metadata(user, writer, err);
    const struct {
        const char *key;
        int64_t count;
    } digests[] = {{PLUMB_KEY_SOURCE_DIGESTS, 2 * plumb__checkpoint_count(file->checkpoint)},
                   {PLUMB_KEY_STORED_DIGESTS, 2 * file->count},
                   {PLUMB_KEY_HEADER_DIGESTS, blocks}};
    for (int i = 0; i < 3 && status == PLUMB_OK; i++)
        status = write_zeros(writer, digests[i].key, digests[i].count, err);
    for (int64_t i = 0; i < file->count; i++) {
        const plumb_stored_tensor *t = &file->tensor[i];
        plumb__gguf_write_tensor(writer, t->name, (plumb_ggml_type)t->type, t->dims, t->shape);
    }
    if (status == PLUMB_OK)
        status = plumb__gguf_writer_finish(writer, &header->bytes, &header->size, offsets,
                                           &header->file_bytes, err);
    plumb__gguf_writer_destroy(writer);
    return status;
}

static plumb_status find_digests(const plumb_gguf *gguf, int64_t sources,
                                 plumb_converted_header *header, plumb_error *err) {
    const plumb_gguf_value *source, *stored, *blocks;
    plumb_status status =
        plumb__gguf_array(gguf, PLUMB_KEY_SOURCE_DIGESTS, PLUMB_GGUF_U64, 2 * sources, &source,
                          err);
    if (status == PLUMB_OK)
        status = plumb__gguf_array(gguf, PLUMB_KEY_STORED_DIGESTS, PLUMB_GGUF_U64,
                                   2 * gguf->tensors, &stored, err);
    if (status == PLUMB_OK)
        status = plumb__gguf_array(gguf, PLUMB_KEY_HEADER_DIGESTS, PLUMB_GGUF_U64,
                                   plumb__gguf_seal_blocks(gguf->header_bytes), &blocks, err);
    if (status != PLUMB_OK) return status;
    header->text_bytes = gguf->header_bytes;
    header->source_at = source->offset;
    header->sources = source->count / 2;
    header->stored_at = stored->offset;
    header->stored = stored->count / 2;
    header->blocks_at = blocks->offset;
    header->blocks = blocks->count;
    return PLUMB_OK;
}

plumb_status plumb__converted_header_build(plumb_converted_file *file, plumb_metadata_fn metadata,
                                           void *user, plumb_converted_header *header,
                                           plumb_error *err) {
    *header = (plumb_converted_header){0};
    int64_t *offsets = calloc((size_t)file->count, sizeof *offsets);
    if (!offsets) return plumb__fail_memory(err, "offsets", (size_t)file->count * sizeof *offsets);
    plumb_gguf gguf = {0};
    plumb_status status = PLUMB_OK;
    /* The digests of the header are part of it: their number is right once it gives itself. */
    for (int64_t blocks = 1, before = 0; blocks != before && status == PLUMB_OK;) {
        free(header->bytes);
        header->bytes = NULL;
        plumb__gguf_free(&gguf);
        before = blocks;
        status = write_header(file, metadata, user, blocks, header, offsets, err);
        if (status == PLUMB_OK)
            status = plumb__gguf_parse(header->bytes, header->size, header->file_bytes,
                                       "the new header", &gguf, err);
        if (status == PLUMB_OK) blocks = plumb__gguf_seal_blocks(gguf.header_bytes);
    }
    if (status == PLUMB_OK) status = find_digests(&gguf, plumb__checkpoint_count(file->checkpoint), header, err);
    for (int64_t i = 0; i < file->count && status == PLUMB_OK; i++)
        file->tensor[i].offset = offsets[i];
    plumb__gguf_free(&gguf);
    free(offsets);
    if (status != PLUMB_OK) plumb__converted_header_free(header);
    return status;
}

void plumb__converted_header_free(plumb_converted_header *header) {
    free(header->bytes);
    *header = (plumb_converted_header){0};
}

/* ---- Digests ----------------------------------------------------------------------------------- */

static XXH128_hash_t digest_at(const plumb_converted_header *header, int64_t at) {
    XXH128_hash_t digest;
    memcpy(&digest.low64, header->bytes + at, 8);
    memcpy(&digest.high64, header->bytes + at + 8, 8);
    return digest;
}

static void set_digest_at(plumb_converted_header *header, int64_t at, XXH128_hash_t digest) {
    memcpy(header->bytes + at, &digest.low64, 8);
    memcpy(header->bytes + at + 8, &digest.high64, 8);
}

XXH128_hash_t plumb__source_digest(const plumb_converted_header *header, int64_t tensor) {
    return digest_at(header, header->source_at + 16 * tensor);
}

XXH128_hash_t plumb__stored_digest(const plumb_converted_header *header, int64_t tensor) {
    return digest_at(header, header->stored_at + 16 * tensor);
}

void plumb__set_source_digest(plumb_converted_header *header, int64_t tensor,
                              XXH128_hash_t digest) {
    set_digest_at(header, header->source_at + 16 * tensor, digest);
}

void plumb__set_stored_digest(plumb_converted_header *header, int64_t tensor,
                              XXH128_hash_t digest) {
    set_digest_at(header, header->stored_at + 16 * tensor, digest);
}

bool plumb__digest_is_set(XXH128_hash_t digest) { return digest.low64 != 0 || digest.high64 != 0; }

/* ---- The header's own -------------------------------------------------------------------------- */

plumb_status plumb__converted_header_seal(plumb_converted_header *header, plumb_error *err) {
    size_t size = (size_t)header->blocks * sizeof(uint64_t);
    uint64_t *digests = malloc(size);
    if (!digests) return plumb__fail_memory(err, "header digests", size);
    plumb_status status = plumb__gguf_seal_compute(header->bytes, header->text_bytes,
                                                   header->blocks_at, digests, err);
    if (status == PLUMB_OK) memcpy(header->bytes + header->blocks_at, digests, size);
    free(digests);
    return status;
}

plumb_status plumb__converted_header_read(const plumb_checkpoint *checkpoint,
                                          plumb_converted_header *header, plumb_error *err) {
    const plumb_gguf *gguf = plumb__checkpoint_gguf(checkpoint);
    *header = (plumb_converted_header){.size = gguf->header_bytes, .file_bytes = gguf->file_bytes};
    header->bytes = malloc((size_t)gguf->header_bytes);
    if (!header->bytes) return plumb__fail_memory(err, "header", (size_t)gguf->header_bytes);
    memcpy(header->bytes, gguf->header, (size_t)gguf->header_bytes);
    plumb_status status = find_digests(gguf, plumb__checkpoint_count(checkpoint), header, err);
    if (status == PLUMB_OK) status = plumb__gguf_seal_check(gguf, err);
    if (status != PLUMB_OK) plumb__converted_header_free(header);
    return status;
}
