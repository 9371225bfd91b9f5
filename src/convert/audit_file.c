/* Auditing a file under its name: header first, then payloads. */
#include "convert/audit.h"

#include "base/error.h"
#include "base/file.h"
#include "format/model_files.h"

#include <string.h>
#include <unistd.h>

/* About 1 % of the model: one expert in a hundred, one of a hundred other tensors.  A table of 98 GB is
 * one payload with one digest, and in no sample. */
static bool in_sample(const plumb_stored_tensor *tensor, int64_t number, int64_t part) {
    enum { EVERY = 100, STRIDE = 37 }; /* experts of other numbers in other stacks */
    return tensor->form != PLUMB_STORED_ROWS && (STRIDE * number + part) % EVERY == 0;
}

/* ---- The header -------------------------------------------------------------------------------- */

static bool has_digests(const plumb_gguf *gguf) {
    int64_t format;
    return plumb__gguf_find(gguf, PLUMB_KEY_HEADER_DIGESTS) &&
           plumb__gguf_integer(gguf, PLUMB_GGUF_FORMAT_KEY, 0, UINT32_MAX, &format, NULL) == PLUMB_OK &&
           format == PLUMB_GGUF_FORMAT;
}

/* Zeros from the header's end to the first payload. */
static plumb_status check_padding(const plumb_gguf *gguf, int fd, plumb_error *err) {
    uint8_t bytes[PLUMB_GGUF_ALIGNMENT];
    int64_t size = gguf->data_offset - gguf->header_bytes;
    if (gguf->alignment > PLUMB_GGUF_ALIGNMENT)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, gguf->path, "general.alignment", -1,
                           plumb__format("%lld", (long long)gguf->alignment).s, "%d",
                           PLUMB_GGUF_ALIGNMENT);
    plumb_status status = plumb__file_read_at(fd, gguf->path, "header", gguf->header_bytes, size,
                                              bytes, err);
    for (int64_t i = 0; i < size && status == PLUMB_OK; i++)
        if (bytes[i] != 0)
            status = plumb__fail(err, PLUMB_ERROR_VALUE, gguf->path, "header", gguf->header_bytes + i,
                                 plumb__format("0x%02X in the padding behind it", bytes[i]).s, "0");
    return status;
}

/* Before anything is made of what the header says: a damaged byte is told as such, not as the unknown
 * key or odd config that it would be taken for.  What has no digests that we know is left to
 * plumb__checkpoint_open to refuse. */
static plumb_status check_header(const char *path, plumb_error *err) {
    int fd;
    struct stat opened;
    plumb_gguf gguf;
    plumb_status status = plumb__file_open(path, &fd, &opened, err);
    if (status != PLUMB_OK) return status;
    status = plumb__gguf_read(fd, opened.st_size, path, &gguf, err);
    if (status == PLUMB_OK && has_digests(&gguf)) {
        status = plumb__gguf_seal_check(&gguf, err);
        if (status == PLUMB_OK) status = check_padding(&gguf, fd, err);
    }
    plumb__gguf_free(&gguf);
    (void)close(fd);
    return status;
}

/* ---- The tensors ------------------------------------------------------------------------------- */

/* The source must hold the same tensors; its matrices take the forms that they have in the file. */
static plumb_status match_source(const plumb_converted_file *file, plumb_converted_file *source,
                                 plumb_error *err) {
    int64_t i = 0;
    while (i < file->count && i < source->count &&
           strcmp(file->tensor[i].name, source->tensor[i].name) == 0)
        i++;
    if (i < file->count || i < source->count)
        return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(source->checkpoint),
                           i < source->count ? source->tensor[i].name : file->tensor[i].name, -1,
                           i < source->count ? "a tensor that the file lacks" : "no such tensor",
                           "the tensors of %.150s", plumb__checkpoint_path(file->checkpoint));
    for (i = 0; i < file->count; i++) {
        plumb_stored_tensor *s = &source->tensor[i];
        const plumb_stored_tensor *f = &file->tensor[i];
        if (plumb__stored_tensor_has_choice(s)) plumb__stored_tensor_set_form(s, f->form);
        if (s->bytes != f->bytes || memcmp(s->shape, f->shape, sizeof s->shape) != 0)
            return plumb__fail(err, PLUMB_ERROR_TENSOR, plumb__checkpoint_path(source->checkpoint),
                               s->name, -1, "another shape", "that of %.150s",
                               plumb__checkpoint_path(file->checkpoint));
    }
    return PLUMB_OK;
}

static plumb_status audit_opened(const plumb_checkpoint *checkpoint,
                                 const plumb_checkpoint *source,
                                 const plumb_audit_options *options, plumb_audit_result *result,
                                 plumb_error *err) {
    plumb_converted_header header;
    plumb_converted_file file = {0}, source_file = {0};
    plumb_status status = plumb__converted_header_read(checkpoint, &header, err);
    if (status == PLUMB_OK) status = plumb__converted_file_list(checkpoint, &file, err);
    if (status == PLUMB_OK && source) {
        status = plumb__converted_file_list(source, &source_file, err);
        if (status == PLUMB_OK) status = match_source(&file, &source_file, err);
    }
    if (status == PLUMB_OK) {
        const plumb_audit audit = {.file = &file, .header = &header,
                                   .shard = plumb__checkpoint_shard(checkpoint, 0),
                                   .source = source ? &source_file : NULL, .options = options,
                                   .doing = "auditing",
                                   .wanted = options->sample ? in_sample : NULL};
        status = plumb__audit_payloads(&audit, result, err);
    }
    plumb__converted_file_free(&source_file);
    plumb__converted_file_free(&file);
    plumb__converted_header_free(&header);
    return status;
}

/* ---- The whole --------------------------------------------------------------------------------- */

plumb_status plumb__audit_file(const char *path, const plumb_audit_options *options,
                               plumb_audit_result *result, plumb_error *err) {
    plumb_checkpoint *checkpoint = NULL, *source = NULL;
    plumb_status status = check_header(path, err);
    if (status == PLUMB_OK)
        status = plumb__checkpoint_open(path, options->log, options->log_user, &checkpoint, err);
    if (status == PLUMB_OK && options->source)
        status = plumb__checkpoint_open(options->source, options->log, options->log_user, &source,
                                        err);
    if (status == PLUMB_OK && source && plumb__checkpoint_gguf(source))
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, options->source, "source", -1,
                             "a converted file", "the released folder");
    if (status == PLUMB_OK && source)
        status = plumb__model_files_compare(path, options->source, err);
    if (status == PLUMB_OK) status = audit_opened(checkpoint, source, options, result, err);
    plumb__checkpoint_close(source);
    plumb__checkpoint_close(checkpoint);
    return status;
}
