/* Reading a converted file back: every payload against the digests in its header, and, decoded to the
 * released bytes, against those of the source; or against the source itself. */
#ifndef PLUMB_CONVERT_AUDIT_H
#define PLUMB_CONVERT_AUDIT_H

#include "convert/converted_header.h"
#include "convert/jobs.h"
#include "format/shard_file.h"

typedef struct plumb_audit_options {
    const char *source; /* a folder to compare with; NULL: digests only */
    bool sample;        /* a small part only, the same one every time */
    int jobs;           /* 0: plumb__jobs_threads */
    plumb_log_fn log;
    void *log_user;
    plumb_progress_fn progress; /* may be NULL */
    void *progress_user;
} plumb_audit_options;

typedef struct plumb_audit_result {
    int64_t tensors, bytes;         /* payloads of the file */
    int64_t read_tensors, read_bytes; /* of these, read: all of them, but for a sample */
} plumb_audit_result;

/* Audits `path`.  The first difference, by the order of the file, is an error that names the tensor
 * and the offset; compared with a source also row, column and both values. */
PLUMB_MUST_CHECK plumb_status plumb__audit_file(const char *path, const plumb_audit_options *options,
                                                plumb_audit_result *result, plumb_error *err);

/* The same for a file that is not yet under its name, or whose header was read before. */
typedef struct plumb_audit {
    const plumb_converted_file *file;
    const plumb_converted_header *header;
    const plumb_shard_file *shard;      /* where the payloads are */
    const plumb_converted_file *source; /* the same tensors in a source; NULL: digests only */
    const plumb_audit_options *options;
    const char *doing;                  /* for the progress */
    /* Is this part of a tensor to be read?  NULL: every one. */
    bool (*wanted)(const plumb_stored_tensor *tensor, int64_t number, int64_t part);
} plumb_audit;
PLUMB_MUST_CHECK plumb_status plumb__audit_payloads(const plumb_audit *audit,
                                                    plumb_audit_result *result, plumb_error *err);

#endif
